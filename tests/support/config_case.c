/* SPDX-License-Identifier: Apache-2.0 */
#include "support/config_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct hapax_error config_case_err;
const char *const *config_case_variables;

int config_case_set_up(void **state)
{
	(void)state;
	config_case_variables = NULL;
	return 0;
}

const char *config_case_variable(const char *name)
{
	const char *const *pair = config_case_variables;

	for (; pair != NULL && *pair != NULL; pair += 2) {
		if (strcmp(pair[0], name) == 0)
			return pair[1];
	}
	return NULL;
}

struct hx_config *config_case_try(const char *text, struct hapax_buf *faults)
{
	struct hapax_bytes bytes = hapax_bytes_from_text(text);
	struct hx_config_source source = {
		.path = "h.yaml", .text = &bytes, .variable = config_case_variable};
	struct hx_config *config = NULL;

	config_case_err.message[0] = '\0';
	if (hx_config_load(&source, &config, faults, &config_case_err) != HAPAX_OK)
		assert_null(config);
	return config;
}

struct hx_config *config_case_load(const char *text)
{
	struct hx_config *config = config_case_try(text, NULL);

	if (config == NULL)
		fail_msg("%s: %s", text, config_case_err.message);
	return config;
}
