/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_plan.c - the command line of `run` as a plan.
 */
#include "cli/run/run_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/macros.h"
#include "base/size.h"
#include "base/stream.h"
#include "cli/input/duration_text.h"
#include "cli/input/key_text.h"
#include "cli/frame/report.h"
#include "cli/run/run_key.h"

const char *const hx_run_on_lapse_choices[] = {"retry", "park", NULL};
const char *const hx_cmd_run_fingerprint_choices[] = {"args", "stdin", "none", NULL};

/* Long enough to clean up, short enough to wait for. */
static const int64_t kill_after_ms_default = 10 * 1000;

/* A week: anything longer is a service, not a command. */
static const int64_t span_ms_max = INT64_C(7) * 24 * 3600 * 1000;

enum { STATUS_FD_MAX = 1024 * 1024 };

static int read_spans(struct hx_invocation *inv, struct hx_cmd_run_plan *plan)
{
	const struct {
		int id;
		int64_t ms_max;
		int64_t *ret_ms;
	} spans[] = {
		{HX_RUN_OPTION_WAIT, span_ms_max, &plan->wait_ms},
		{HX_RUN_OPTION_TIMEOUT, span_ms_max, &plan->timeout_ms},
		{HX_RUN_OPTION_KILL_AFTER, span_ms_max, &plan->kill_after_ms},
		{HX_RUN_OPTION_LEASE, HX_LEASE_MS_MAX, &plan->lease_ms},
	};
	int code = HX_EXIT_OK;

	plan->lease_ms = HX_LEASE_MS_DEFAULT;
	plan->kill_after_ms = kill_after_ms_default;
	if (hx_options_has(&inv->options, HX_RUN_OPTION_WAIT))
		plan->wait_ms = HX_RUN_WAIT_FOREVER;
	for (size_t i = 0; i < HX_COUNT(spans) && code == HX_EXIT_OK; i++)
		code = hx_duration_text_read(inv, spans[i].id, spans[i].ms_max, spans[i].ret_ms);
	return code;
}

/* A whole number from 0 to max at the front of text. Returns its end; NULL: no number. */
static const char *read_number(const char *text, long max, long *ret)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return NULL;
	*ret = strtol(text, &end, 10);
	return *ret <= max ? end : NULL;
}

/* 0,3,10-19 */
static int read_codes(struct hx_invocation *inv, struct hx_cmd_run_plan *plan)
{
	const char *text = hx_options_text(&inv->options, HX_RUN_OPTION_SUCCESS_CODES);
	const char *at = text;

	plan->is_success[0] = true;
	while (at != NULL) {
		long first = 0, last;

		at = read_number(at, HX_RUN_EXIT_CODES - 1, &first);
		last = first;
		if (at != NULL && *at == '-')
			at = read_number(at + 1, HX_RUN_EXIT_CODES - 1, &last);
		if (at == NULL || last < first || (*at != ',' && *at != '\0'))
			return hx_report_misuse(
				inv->command->name, "use exit codes from 0 to 255, as in 3,10-19",
				"--success-codes: '%s' is not a list of exit codes", text);
		for (long code = first; code <= last; code++)
			plan->is_success[code] = true;
		at = *at == ',' ? at + 1 : NULL;
	}
	return HX_EXIT_OK;
}

static int read_status_fd(struct hx_invocation *inv, struct hx_cmd_run_plan *plan)
{
	const char *text = hx_options_text(&inv->options, HX_RUN_OPTION_STATUS_FD);
	const char *end;
	long fd = -1;

	if (text == NULL)
		return HX_EXIT_OK;
	end = read_number(text, STATUS_FD_MAX, &fd);
	if (end == NULL || *end != '\0')
		return hx_report_usage(
			inv->command->name, "--status-fd: '%s' is not a file descriptor", text);
	if (fd < 3)
		return hx_report_misuse(
			inv->command->name,
			"use 3 or higher: hapax run --status-fd 3 ... 3>status.json",
			"--status-fd: file descriptor %ld belongs to the command", fd);
	if (hx_stream_set_private((int)fd) != 0) {
		(void)hx_report_usage(
			inv->command->name, "--status-fd: file descriptor %ld is not open", fd);
		hx_report_hint(
			"open it in the shell: hapax run --status-fd %ld ... "
			"%ld>status.json",
			fd, fd);
		return HX_EXIT_USAGE;
	}
	plan->status_fd = (int)fd;
	return HX_EXIT_OK;
}

static int read_max_result(struct hx_invocation *inv, struct hx_cmd_run_plan *plan)
{
	const char *text = hx_options_text(&inv->options, HX_RUN_OPTION_MAX_RESULT);
	uint64_t bytes = HX_RESULT_SIZE_DEFAULT;
	struct hapax_error err;

	if (text != NULL && hx_size_parse(hapax_bytes_from_text(text), &bytes, &err) != HAPAX_OK)
		return hx_report_usage(inv->command->name, "--max-result: %s", err.message);
	if (bytes == 0 || bytes > HX_RESULT_SIZE_LIMIT)
		return hx_report_usage(
			inv->command->name, "--max-result: '%s' must be between 1 and 16MiB", text);
	plan->result_size_max = (size_t)bytes;
	inv->settings.result_size_max = bytes;
	return HX_EXIT_OK;
}

static int check_key(struct hx_invocation *inv, struct hx_cmd_run_plan *plan)
{
	const char *key = hx_options_text(&inv->options, HX_RUN_OPTION_KEY);
	const char *from = hx_options_text(&inv->options, HX_RUN_OPTION_STRATEGY);
	const char *name = inv->command->name;

	if (key != NULL && from != NULL)
		return hx_report_usage(name, "cannot use --key together with --strategy");
	if (key == NULL && from == NULL)
		return hx_report_misuse(
			name, "as in: hapax run --key report-2026-11-15 -- make report",
			"missing option: --key or --strategy");
	return key != NULL ? hx_key_text_read(name, "--key", key, &plan->key) : HX_EXIT_OK;
}

/* Read standard input last: a wrong option is reported before anything is typed. */
static int read_key(
	const struct hx_invocation *inv, struct hx_cmd_run_plan *plan,
	const struct hx_cmd_run_stdin *input)
{
	const char *from = hx_options_text(&inv->options, HX_RUN_OPTION_STRATEGY);
	int code;

	if (from == NULL)
		return HX_EXIT_OK;
	plan->made = (struct hapax_key)HAPAX_KEY_INIT;
	code = hx_cmd_run_key_make(inv->command->name, from, plan->argv, input, &plan->made);
	plan->key = (struct hapax_bytes){plan->made.key, plan->made.key_size};
	return code;
}

static int read_fingerprint(
	const struct hx_invocation *inv, struct hx_cmd_run_plan *plan,
	enum hx_cmd_run_fingerprint kind, const struct hx_cmd_run_stdin *input)
{
	plan->has_fingerprint = kind != HX_RUN_FINGERPRINT_NONE;
	if (kind == HX_RUN_FINGERPRINT_STDIN)
		return hx_cmd_run_stdin_hash(input, plan->fingerprint);
	if (kind == HX_RUN_FINGERPRINT_ARGS &&
	    hx_cmd_run_key_hash_arguments(plan->argv, plan->fingerprint) != HAPAX_OK)
		return hx_report_no_memory(inv->command->name);
	return HX_EXIT_OK;
}

static int read_identity(struct hx_invocation *inv, struct hx_cmd_run_plan *plan)
{
	enum hx_cmd_run_fingerprint kind = (enum hx_cmd_run_fingerprint)hx_options_number(
		&inv->options, HX_RUN_OPTION_FINGERPRINT);
	const char *from = hx_options_text(&inv->options, HX_RUN_OPTION_STRATEGY);
	struct hx_cmd_run_stdin input = {.copy = -1};
	bool key_needs = false;
	int code = HX_EXIT_OK;

	if (from != NULL)
		code = hx_cmd_run_key_needs_stdin(inv->command->name, from, &key_needs);
	if (code == HX_EXIT_OK && (key_needs || kind == HX_RUN_FINGERPRINT_STDIN)) {
		code = hx_cmd_run_stdin_open(&input, inv->command->name);
		plan->stdin_fd = input.copy;
	}
	if (code == HX_EXIT_OK)
		code = read_key(inv, plan, key_needs ? &input : NULL);
	return code == HX_EXIT_OK ? read_fingerprint(inv, plan, kind, &input) : code;
}

int hx_cmd_run_plan_read(struct hx_invocation *inv, struct hx_cmd_run_plan *plan)
{
	static int (*const steps[])(struct hx_invocation * inv, struct hx_cmd_run_plan * plan) = {
		check_key, read_spans, read_codes, read_max_result, read_status_fd, read_identity,
	};
	int code = HX_EXIT_OK;

	*plan = (struct hx_cmd_run_plan){.stdin_fd = -1, .status_fd = -1};
	plan->keep_on_fail = hx_options_has(&inv->options, HX_RUN_OPTION_KEEP_ON_FAIL);
	plan->on_lapse =
		(enum hapax_on_lapse)hx_options_number(&inv->options, HX_RUN_OPTION_ON_LAPSE);
	/* There is room: argv ends with NULL, and operands only move forward. */
	inv->options.operands[inv->options.operand_count] = NULL;
	plan->argv = (const char *const *)inv->options.operands;
	for (size_t i = 0; i < HX_COUNT(steps) && code == HX_EXIT_OK; i++)
		code = steps[i](inv, plan);
	return code;
}

void hx_cmd_run_plan_done(struct hx_cmd_run_plan *plan)
{
	hx_stream_close(plan->stdin_fd);
	plan->stdin_fd = -1;
}
