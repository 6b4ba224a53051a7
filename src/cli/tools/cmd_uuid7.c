/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_uuid7.c - hapax uuid7: create time-ordered IDs, or print the time of one.
 */
#include <hapax/hapax.h>

#include "base/clock.h"
#include "base/uuid7.h"
#include "cli/frame/command.h"
#include "wire/json/json_write.h"
#include "cli/frame/report.h"

enum { OPTION_COUNT = 1 };

static const struct hx_option options[] = {
	{OPTION_COUNT, "count", 'n', HX_OPTION_COUNT, "N", "number of IDs (default: 1)", NULL},
	HX_OPTION_OUTPUT_ROW,
	{.name = NULL},
};

enum { TIME_SIZE = 32 };

static void print(struct hx_invocation *inv, const unsigned char *uuid, bool wants_time)
{
	char text[HX_UUID_TEXT_SIZE + 1];
	char time[TIME_SIZE];
	struct hx_json_write json;
	int64_t time_ms = 0;

	(void)hx_uuid7_time_ms(uuid, &time_ms);
	hx_uuid7_format(uuid, text);
	hx_clock_format_utc(time_ms, time);
	if (inv->settings.format == HX_FORMAT_TEXT) {
		hx_out_printf(&inv->out, "%s\n", wants_time ? time : text);
		return;
	}
	hx_out_json(&json, &inv->out);
	hx_json_write_text(&json, "uuid", text);
	hx_json_write_text(&json, "time", time);
	hx_json_write_end(&json, '}');
}

static int read_back(struct hx_invocation *inv)
{
	const char *text = inv->options.operands[0];
	unsigned char uuid[HX_UUID_SIZE];
	int64_t time_ms;

	if (!hx_uuid7_parse(hapax_bytes_from_text(text), uuid))
		return hx_report_usage(inv->command->name, "'%s' is not a UUID", text);
	if (!hx_uuid7_time_ms(uuid, &time_ms)) {
		hx_report(inv->command->name, "'%s' is not a version 7 UUID", text);
		hx_report_hint("only version 7 contains its time in milliseconds");
		return HX_EXIT_DATA;
	}
	if (time_ms > HX_UTC_MS_MAX) {
		hx_report(inv->command->name, "the time of '%s' is after the year 9999", text);
		return HX_EXIT_DATA;
	}
	print(inv, uuid, true);
	return HX_EXIT_OK;
}

static int run_uuid7(struct hx_invocation *inv)
{
	const struct hx_option_value *count = hx_options_get(&inv->options, OPTION_COUNT);
	struct hx_uuid7 generator;

	if (inv->options.operand_count > 0) {
		if (count != NULL)
			return hx_report_usage(
				inv->command->name, "--count cannot be used with a UUID");
		return read_back(inv);
	}
	hx_uuid7_init(&generator);
	/* A closed reader ends the loop early. */
	for (int64_t i = 0; i < (count == NULL ? 1 : count->number) && inv->out.os_errno == 0;
	     i++) {
		unsigned char uuid[HX_UUID_SIZE];

		hx_uuid7_next(&generator, hx_clock_wall_ms(), uuid);
		print(inv, uuid, false);
	}
	return HX_EXIT_OK;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "printed"},
	{HX_EXIT_DATA, "the UUID has a different version, or a time after the year 9999"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax uuid7", "create an ID for one event"},
	{"hapax uuid7 --count 3", "create three IDs in ascending order"},
	{"hapax uuid7 0190163d-8694-739b-aea5-966c26f8ad91", "print the time of an ID"},
	{NULL, NULL},
};

const struct command hx_cmd_uuid7 = {
	.name = "uuid7",
	.summary = "create time-ordered IDs, or print the time of one",
	.usage = "[UUID] [OPTION]...",
	.description =
		"Prints a version 7 UUID (RFC 9562): the time in milliseconds, then random bits. A\n"
		"producer creates one for each event and sends it with every delivery. With UUID, prints\n"
		"the time at which it was created.\n",
	.operands = {0, 1},
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_uuid7,
};
