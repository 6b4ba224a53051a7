/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_backtest.c - hapax backtest: replay past events through a key strategy.
 */
#include <hapax/hapax.h>

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/size.h"
#include "cli/backtest/backtest.h"
#include "cli/frame/command.h"
#include "cli/input/input.h"
#include "cli/input/key_setup.h"
#include "cli/frame/report.h"
#include "wire/json/json_tree.h"

enum { OPTION_AGAINST = 1, OPTION_MEMORY };

static const struct hx_option options[] = {
	HX_KEY_OPTION_ROWS,
	{OPTION_AGAINST, "against", 0, HX_OPTION_TEXT, "S2", "second strategy to compare with",
	 NULL},
	{OPTION_MEMORY, "memory", 0, HX_OPTION_TEXT, "SIZE",
	 "maximum memory for keys and payloads (default: 1GiB)", NULL},
	HX_OPTION_OUTPUT_ROW,
	{.name = NULL},
};

enum {
	/* Bad lines that are described; the rest are only counted. */
	BAD_LINES_SHOWN = 10,
	/* How often progress on a terminal is updated. */
	PROGRESS_NS = 200 * 1000 * 1000,
};

static const size_t scratch_max = (size_t)1 << 30;
static const uint64_t memory_max_default = (uint64_t)1 << 30;
static const uint64_t memory_max_least = (uint64_t)1 << 20;

struct tester {
	struct hx_invocation *inv;
	struct hx_input input;
	struct hx_event_reader reader;
	struct hapax_buf scratch;
	struct hx_backtest tests[2];
	size_t test_count;
	struct hx_backtest_comparison comparison;
	uint64_t lines;
	uint64_t bad_lines;
	bool is_cut; /* memory ran out */
	bool shows_progress;
	int64_t shown_ns; /* when progress was last shown */
};

/* One line that is overwritten; standard error is a terminal. */
static void show_progress(struct tester *tester)
{
	int64_t now_ns;

	if (!tester->shows_progress || tester->lines % 256 != 0)
		return;
	now_ns = hx_clock_mono_ns();
	if (now_ns - tester->shown_ns < PROGRESS_NS)
		return;
	tester->shown_ns = now_ns;
	(void)fprintf(stderr, "\r\033[K%" PRIu64 " events", tester->lines);
	if (tester->input.size > 0) {
		(void)fprintf(
			stderr, ", %" PRIu64 " %%",
			tester->input.offset * 100 / tester->input.size);
	}
	(void)fflush(stderr);
}

static void hide_progress(const struct tester *tester)
{
	if (tester->shows_progress && tester->shown_ns != 0)
		(void)fprintf(stderr, "\r\033[K");
}

static void bad_line(struct tester *tester, const struct hapax_error *err)
{
	tester->bad_lines++;
	if (tester->bad_lines > BAD_LINES_SHOWN)
		return;
	hide_progress(tester);
	hx_report(
		tester->inv->command->name, "%s:%" PRIu64 ": %s", tester->input.name,
		tester->input.line, err->message);
}

static void compare(struct tester *tester, const enum hx_backtest_decision decisions[2])
{
	bool first = decisions[0] == HX_BACKTEST_DROP;
	bool second = decisions[1] == HX_BACKTEST_DROP;

	if (first && second)
		tester->comparison.both_drop++;
	else if (first)
		tester->comparison.only_first_drops++;
	else if (second)
		tester->comparison.only_second_drops++;
	else
		tester->comparison.neither_drops++;
}

static bool is_blank(struct hapax_bytes line)
{
	const char *text = line.data;

	for (size_t i = 0; i < line.size; i++) {
		if (text[i] != ' ' && text[i] != '\t')
			return false;
	}
	return true;
}

/* A document that is not JSON is a bad line, not an event without a key. */
static enum hapax_status check_json(
	struct tester *tester, const struct hapax_event *event, struct hapax_error *err)
{
	struct hx_json_tree tree;
	bool is_short;

	if (tester->reader.form != HX_EVENT_DOCUMENT)
		return HAPAX_OK;
	return hx_json_tree_read_into(&tree, event->data, &tester->scratch, &is_short, err);
}

/* OK also if the line was bad: it is reported and counted. */
static enum hapax_status test_line(
	struct tester *tester, struct hapax_bytes line, struct hapax_error *err)
{
	enum hx_backtest_decision decisions[2] = {HX_BACKTEST_RUN, HX_BACKTEST_RUN};
	struct hapax_event event;
	enum hapax_status status = hx_event_reader_read(&tester->reader, line, &event, err);

	if (status == HAPAX_OK)
		status = check_json(tester, &event, err);
	if (status == HAPAX_ERR_INVALID || status == HAPAX_ERR_LIMIT) {
		bad_line(tester, err);
		return HAPAX_OK;
	}
	for (size_t i = 0; status == HAPAX_OK && i < tester->test_count; i++) {
		status = hx_backtest_add(
			&tester->tests[i], &event, tester->input.line, &tester->scratch,
			&decisions[i], err);
	}
	if (status == HAPAX_OK && tester->test_count == 2)
		compare(tester, decisions);
	return status;
}

static int test_all(struct tester *tester)
{
	for (;;) {
		struct hapax_bytes line;
		struct hapax_error err;
		enum hx_input_line kind;
		int code = hx_input_line(&tester->input, &line, &kind);

		if (code != HX_EXIT_OK || kind == HX_INPUT_LINE_NONE) {
			hide_progress(tester);
			return code;
		}
		if (kind == HX_INPUT_LINE && is_blank(line))
			continue;
		tester->lines++;
		if (kind == HX_INPUT_LINE_TOO_LONG) {
			(void)hx_error_set(&err, HAPAX_ERR_LIMIT, 0, HX_INPUT_TOO_LONG);
			bad_line(tester, &err);
			continue;
		}
		if (test_line(tester, line, &err) != HAPAX_OK) {
			/* Out of memory: judge what was read so far. */
			hide_progress(tester);
			hx_report(tester->inv->command->name, "%s", err.message);
			tester->is_cut = true;
			return HX_EXIT_OK;
		}
		show_progress(tester);
	}
}

static int print_result(struct tester *tester)
{
	struct hx_backtest_run run = {
		.file = tester->input.name,
		.lines = tester->lines,
		.bad_lines = tester->bad_lines,
		.is_cut = tester->is_cut,
		.first = &tester->tests[0],
		.second = tester->test_count == 2 ? &tester->tests[1] : NULL,
		.comparison = &tester->comparison,
	};

	if (tester->bad_lines > BAD_LINES_SHOWN) {
		hx_report(
			tester->inv->command->name, "%s: %" PRIu64 " more bad lines",
			tester->input.name, tester->bad_lines - BAD_LINES_SHOWN);
	}
	if (tester->inv->settings.format == HX_FORMAT_JSON)
		hx_backtest_print_json(&tester->inv->out, &run);
	else
		hx_backtest_print_text(&tester->inv->out, &run);
	switch (hx_backtest_judge(&tester->tests[0], &run)) {
	case HX_BACKTEST_EMPTY: return HX_EXIT_DATA;
	case HX_BACKTEST_UNSAFE:
	case HX_BACKTEST_INCOMPLETE:
	case HX_BACKTEST_LEAKY: return HX_EXIT_NO;
	case HX_BACKTEST_UNPROVEN:
	case HX_BACKTEST_FIT: break;
	}
	return HX_EXIT_OK;
}

static int read_memory(const struct hx_invocation *inv, uint64_t *ret)
{
	const char *memory = hx_options_text(&inv->options, OPTION_MEMORY);
	struct hapax_error err;

	*ret = memory_max_default;
	if (memory == NULL)
		return HX_EXIT_OK;
	if (hx_size_parse(hapax_bytes_from_text(memory), ret, &err) != HAPAX_OK)
		return hx_report_usage(inv->command->name, "--memory: %s", err.message);
	if (*ret >= memory_max_least)
		return HX_EXIT_OK;
	return hx_report_usage(inv->command->name, "--memory must be at least 1MiB");
}

/* --include applies to whichever of the two strategies takes paths, if one does. */
static int setup(struct tester *tester)
{
	struct hx_invocation *inv = tester->inv;
	const char *texts[2] = {
		hx_key_setup_strategy(inv), hx_options_text(&inv->options, OPTION_AGAINST)};
	bool has_include = hx_options_has(&inv->options, HX_KEY_OPTION_INCLUDE);
	bool any_takes = false;
	uint64_t memory_max = 0;
	size_t count = texts[1] != NULL ? 2 : 1;
	int code = texts[0] == NULL ? HX_EXIT_USAGE : read_memory(inv, &memory_max);

	tester->test_count = count;
	for (size_t i = 0; code == HX_EXIT_OK && i < count; i++) {
		hx_backtest_init(&tester->tests[i], (size_t)memory_max / count);
		code = hx_key_setup(inv, texts[i], 0, false, &tester->tests[i].strategy);
		any_takes |= code == HX_EXIT_OK &&
			hapax_key_strategy_takes_include(tester->tests[i].strategy);
	}
	for (size_t i = 0; code == HX_EXIT_OK && has_include && i < count; i++) {
		struct hapax_key_strategy **strategy = &tester->tests[i].strategy;

		if (any_takes && !hapax_key_strategy_takes_include(*strategy))
			continue;
		hapax_key_strategy_free(*strategy);
		*strategy = NULL;
		code = hx_key_setup(inv, texts[i], 0, true, strategy);
	}
	return code;
}

static int run_backtest(struct hx_invocation *inv)
{
	static struct tester tester; /* too large for a stack */
	int code;

	tester.inv = inv;
	tester.shows_progress = isatty(STDERR_FILENO) == 1;
	hx_event_reader_init(&tester.reader, hx_key_setup_form(inv));
	hx_buf_init(&tester.scratch, scratch_max);
	code = setup(&tester);
	if (code == HX_EXIT_OK) {
		code = hx_input_open(
			&tester.input, inv->command->name, hx_options_operand(&inv->options, 0));
		if (code == HX_EXIT_OK)
			code = test_all(&tester);
		if (code == HX_EXIT_OK)
			code = print_result(&tester);
		hx_input_close(&tester.input);
	}
	for (size_t i = 0; i < 2; i++)
		hx_backtest_done(&tester.tests[i]);
	hx_buf_done(&tester.scratch);
	hx_event_reader_done(&tester.reader);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "no problem was found"},
	{HX_EXIT_NO, "the strategy is unsafe, incomplete or leaky, or lines were skipped"},
	{HX_EXIT_DATA, "no line is an event"},
	{HX_EXIT_NO_INPUT, "the file could not be read"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"printf '{\"id\":1}\\n{\"id\":1}\\n{\"id\":2}\\n' | hapax backtest -s field:id",
	 "which events would be dropped?"},
	{"printf '{\"id\":1}\\n{\"n\":2}\\n' | hapax backtest -s content --against field:id",
	 "would a different strategy decide differently?"},
	{NULL, NULL},
};

const struct command hx_cmd_backtest = {
	.name = "backtest",
	.summary = "test a key strategy on past events",
	.usage = "--strategy S [--against S2] [OPTION]... [FILE|-]",
	.description =
		"Reads events, one JSON document per line, and reports what a strategy would have done:\n"
		"how many events it would drop as duplicates, how many of those despite a different\n"
		"payload, the number of keys, missing parts, and a verdict. Keys do not expire and nothing\n"
		"is stored. An invalid line is reported with its number and skipped.\n"
		"\n"
		"Each key and payload needs 60 to 150 bytes of memory: 1 GiB is enough for 7 million\n"
		"distinct events, and --against needs twice as much. If --memory is used up, the verdict\n"
		"is for the events read so far.\n"
		"\n"
		"The options of 'hapax key' apply to both strategies; --include applies to the one that\n"
		"hashes the content. Paths of --exclude do not count as a difference between payloads.\n",
	.operands = {0, 1},
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_backtest,
};
