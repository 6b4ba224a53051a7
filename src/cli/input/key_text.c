/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_text.c - read keys, prefixes and scopes from a command line.
 */
#include "cli/input/key_text.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/frame/exit_code.h"
#include "cli/frame/report.h"

static int read_text(
	const char *command, const char *what, struct hapax_bytes text, size_t size_max)
{
	char why[HX_UTF8_FAULT_SIZE];

	if (!hx_utf8_fault(text, size_max, why))
		return HX_EXIT_OK;
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
		if (strchr(slash + 1, '/') != NULL) {
			(void)hx_report_usage(
				command, "%s: '%s' has more than one slash", what, text);
			hx_report_hint("use TENANT/GROUP, or TENANT for TENANT/default");
			return HX_EXIT_USAGE;
		}
	}
	(void)snprintf(part, sizeof(part), "%s: the tenant", what);
	code = read_text(command, part, *ret_tenant, HX_SCOPE_PART_SIZE_MAX);
	if (code != HX_EXIT_OK)
		return code;
	(void)snprintf(part, sizeof(part), "%s: the group", what);
	return read_text(command, part, *ret_group, HX_SCOPE_PART_SIZE_MAX);
}
