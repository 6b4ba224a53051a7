/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duration_text.c - read durations from a command line.
 */
#include "cli/input/duration_text.h"

#include "base/duration.h"
#include "cli/frame/report.h"

int hx_duration_text_read(const struct hx_invocation *inv, int id, int64_t ms_max, int64_t *ret_ms)
{
	const struct hx_option_value *value = hx_options_get(&inv->options, id);
	const char *command = inv->command->name;
	char longest[HX_DURATION_TEXT_SIZE];
	struct hapax_error err;
	int64_t ms;

	if (value == NULL || value->text == NULL)
		return HX_EXIT_OK;
	if (hx_duration_parse(hapax_bytes_from_text(value->text), &ms, &err) != HAPAX_OK)
		return hx_report_misuse(
			command, "use a duration such as 100ms, 90s, 5m, 24h, 7d or 1h30m",
			"--%s: %s", value->option->name, err.message);
	if (ms == 0)
		return hx_report_usage(command, "--%s must be greater than 0", value->option->name);
	if (ms > ms_max) {
		hx_duration_format(ms_max, longest);
		return hx_report_usage(
			command, "--%s: '%s' is too long: the limit is %s", value->option->name,
			value->text, longest);
	}
	*ret_ms = ms;
	return HX_EXIT_OK;
}
