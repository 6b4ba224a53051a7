/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duration_text.c - read durations from a command line.
 */
#include "cli/input/duration_text.h"

#include "base/duration.h"
#include "cli/frame/exit_code.h"
#include "cli/frame/report.h"

int hx_duration_text_read(
	const char *command, const char *what, const char *text, int64_t ms_max, int64_t *ret_ms)
{
	char longest[HX_DURATION_TEXT_SIZE];
	struct hapax_error err;
	int64_t ms;

	if (hx_duration_parse(hapax_bytes_from_text(text), &ms, &err) != HAPAX_OK) {
		(void)hx_report_usage(command, "%s: %s", what, err.message);
		hx_report_hint("use a duration such as 100ms, 90s, 5m, 24h, 7d or 1h30m");
		return HX_EXIT_USAGE;
	}
	if (ms == 0)
		return hx_report_usage(command, "%s must be greater than 0", what);
	if (ms > ms_max) {
		hx_duration_format(ms_max, longest);
		return hx_report_usage(
			command, "%s: '%s' is too long: the limit is %s", what, text, longest);
	}
	*ret_ms = ms;
	return HX_EXIT_OK;
}
