/* SPDX-License-Identifier: Apache-2.0 */
#include "support/postgres_store_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/thread.h"
#include "support/postgres_case.h"
#include "support/store_case.h"

struct hapax_store *postgres_store_open(const char *url, struct hapax_error *err)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	return hapax_store_open(url, &options, &store, err) == HAPAX_OK ? store : NULL;
}

void postgres_store_must_refuse(const char *url, enum hapax_status status, const char *hint)
{
	struct hapax_error err = {0};
	struct hapax_store *store = postgres_store_open(url, &err);

	if (store != NULL || err.status != status || strstr(err.message, hint) == NULL)
		printf("# %s: %s: %s\n", url, hapax_status_name(err.status), err.message);
	assert_null(store);
	assert_int_equal(err.status, status);
	assert_non_null(strstr(err.message, hint));
	assert_null(strstr(err.message, "secret"));
}

void postgres_store_migrate(const char *options)
{
	char url[512];
	struct hapax_error err = {0};

	postgres_case_url(url, sizeof(url), options);
	if (hapax_store_migrate(url, NULL, &err) != HAPAX_OK)
		printf("# %s: %s\n", url, err.message);
	assert_int_equal(err.status, HAPAX_OK);
}

enum hapax_status postgres_store_check(
	struct hapax_store *store, const char *tenant, const char *key, enum hapax_outcome *ret)
{
	struct hapax_op op = {
		.type = HAPAX_OP_CHECK,
		.tenant = hapax_bytes_from_text(tenant),
		.key = hapax_bytes_from_text(key),
	};
	enum hapax_status status = hapax_store_run(store, &op, 1, NULL);

	*ret = op.outcome;
	return status;
}
