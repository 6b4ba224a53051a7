/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_text.c - read keys, prefixes, scopes and headers from a command line.
 */
#include "cli/input/key_text.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/frame/report.h"
#include "wire/scope_name.h"

static int read_text(
	const char *command, const char *what, struct hapax_bytes text, size_t size_max)
{
	char why[HX_UTF8_FAULT_SIZE];

	if (!hx_utf8_fault(text, size_max, why)) {
		const char *fault =
			size_max == HX_SCOPE_PART_SIZE_MAX ? hx_scope_name_fault(text) : NULL;

		return fault == NULL ? HX_EXIT_OK : hx_report_usage(command, "%s %s", what, fault);
	}
	(void)hx_report_usage(command, "%s %s", what, why);
	if (text.size == 0)
		hx_report_hint("use 1 to %zu bytes of UTF-8", size_max);
	return HX_EXIT_USAGE;
}

int hx_key_text_read(
	const char *command, const char *what, const char *text, struct hapax_bytes *ret)
{
	*ret = hapax_bytes_from_text(text);
	return read_text(command, what, *ret, HX_KEY_SIZE_MAX);
}

int hx_key_text_scope(
	const char *command, const char *what, const char *text, struct hapax_bytes *ret_tenant,
	struct hapax_bytes *ret_group)
{
	const char *slash = strchr(text, '/');
	char part[64];
	int code;

	*ret_tenant = hapax_bytes_from_text(text);
	*ret_group = HX_BYTES_LIT("default");
	if (slash != NULL) {
		ret_tenant->size = (size_t)(slash - text);
		*ret_group = hapax_bytes_from_text(slash + 1);
		if (strchr(slash + 1, '/') != NULL)
			return hx_report_misuse(
				command, "use TENANT/GROUP, or TENANT for TENANT/default",
				"%s: '%s' has more than one slash", what, text);
	}
	(void)snprintf(part, sizeof(part), "%s: the tenant", what);
	code = read_text(command, part, *ret_tenant, HX_SCOPE_PART_SIZE_MAX);
	if (code != HX_EXIT_OK)
		return code;
	(void)snprintf(part, sizeof(part), "%s: the group", what);
	return read_text(command, part, *ret_group, HX_SCOPE_PART_SIZE_MAX);
}

int hx_key_text_headers(
	const struct hx_invocation *inv, int id, struct hapax_field *fields, size_t max,
	size_t *ret_count)
{
	const char *texts[HX_OPTION_VALUES_MAX];

	*ret_count = hx_options_all(&inv->options, id, texts, HX_OPTION_VALUES_MAX);
	if (*ret_count > max)
		return hx_report_usage(
			inv->command->name, "too many headers: the limit is %zu", max);
	for (size_t i = 0; i < *ret_count; i++) {
		size_t size = strcspn(texts[i], ":");
		const char *value = texts[i] + size + 1;

		if (size == 0 || texts[i][size] == '\0')
			return hx_report_usage(
				inv->command->name, "--header: '%s' is not NAME:VALUE", texts[i]);
		fields[i].name = hx_bytes(texts[i], size);
		fields[i].value = hapax_bytes_from_text(value + strspn(value, " "));
	}
	return HX_EXIT_OK;
}
