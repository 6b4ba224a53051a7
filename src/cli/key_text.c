/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_text.c - keys, prefixes and scopes as they come from a command line.
 */
#include "cli/key_text.h"

#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "cli/exit_code.h"
#include "cli/report.h"
#include "wire/utf8.h"

static int read_text(
	const char *command, const char *what, struct hapax_bytes text, size_t size_max)
{
	const unsigned char *data = text.data;

	if (text.size == 0) {
		(void)hx_report_usage(command, "%s was empty", what);
		hx_report_hint("1 to %zu bytes of UTF-8 are allowed", size_max);
		return HX_EXIT_USAGE;
	}
	if (text.size > size_max)
		return hx_report_usage(
			command, "%s was %zu bytes long, at most %zu are allowed", what, text.size,
			size_max);
	for (size_t at = 0; at < text.size;) {
		uint32_t code = 0;
		size_t size = hx_utf8_size(hx_bytes(data + at, text.size - at), &code);

		if (size == 0)
			return hx_report_usage(
				command, "%s was not UTF-8 at offset %zu (byte 0x%02x)", what, at,
				data[at]);
		if (hx_utf8_is_control(code))
			return hx_report_usage(
				command, "%s had a control character at offset %zu (U+%04X)", what,
				at, (unsigned)code);
		at += size;
	}
	return HX_EXIT_OK;
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
			(void)hx_report_usage(command, "%s: '%s' has two slashes", what, text);
			hx_report_hint("a scope is TENANT/GROUP, or TENANT for TENANT/default");
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
