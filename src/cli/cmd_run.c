/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_run.c - hapax run: any command, once per key.
 */
#include <errno.h>
#include <stdio.h>

#include <hapax/hapax.h>

#include "base/error.h"
#include "base/stream.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/run_child.h"
#include "cli/run_claim.h"
#include "cli/run_ledger.h"
#include "cli/run_lock.h"
#include "cli/run_plan.h"
#include "cli/run_replay.h"
#include "cli/run_report.h"
#include "cli/run_signal.h"

static const struct hx_option options[] = {
	{HX_RUN_OPTION_KEY, "key", 'k', HX_OPTION_TEXT, "K", "what must happen once", NULL},
	{HX_RUN_OPTION_KEY_FROM, "key-from", 0, HX_OPTION_TEXT, "F",
         "args, stdin, file:PATH, or a strategy of 'hapax key'", NULL},
	{HX_RUN_OPTION_WAIT, "wait", 'w', HX_OPTION_MAYBE, "T",
         "wait for a run in progress, at most T; then its output", NULL},
	{HX_RUN_OPTION_TIMEOUT, "timeout", 0, HX_OPTION_TEXT, "T",
         "end the command after T; what it did is not known then", NULL},
	{HX_RUN_OPTION_KILL_AFTER, "kill-after", 0, HX_OPTION_TEXT, "T",
         "from TERM to KILL when it is ended; 10s", NULL},
	{HX_RUN_OPTION_SUCCESS_CODES, "success-codes", 0, HX_OPTION_TEXT, "LIST",
         "exit codes that mean done, beside 0: 3,10-19", NULL},
	{HX_RUN_OPTION_KEEP_ON_FAIL, "keep-on-fail", 0, HX_OPTION_FLAG, NULL,
         "a failure is final: keep and replay it", NULL},
	{HX_RUN_OPTION_ON_LAPSE, "on-lapse", 0, HX_OPTION_CHOICE, "retry|park",
         "when nobody knows how it ended: run again, or ask", hx_run_on_lapse_choices},
	{HX_RUN_OPTION_FINGERPRINT, "fingerprint", 0, HX_OPTION_CHOICE, "args|stdin|none",
         "what must be the same when the key is; args", hx_run_fingerprint_choices},
	{HX_RUN_OPTION_LEASE, "lease", 0, HX_OPTION_TEXT, "D",
         "how long others wait when this host is gone; 30s", NULL},
	{HX_RUN_OPTION_MAX_RESULT, "max-result", 0, HX_OPTION_TEXT, "SIZE",
         "how much output is kept for replay; 256KiB", NULL},
	{HX_RUN_OPTION_STATUS_FD, "status-fd", 0, HX_OPTION_TEXT, "N",
         "write what happened to descriptor N, as JSON", NULL},
	{.name = NULL},
};

enum { WHY_SIZE = 256 };

/* Too large for a stack: buffers for output, paths. */
static struct {
	struct hx_run_plan plan;
	struct hx_run_ledger ledger;
	struct hx_run_lock_folders folders;
	struct hx_run_lock lock;
	struct hx_run_child child;
} run_state;

static int fail(struct hx_run_report *report, const struct hapax_error *err)
{
	(void)hx_report_error(report->ledger->inv->command->name, err);
	report->error = err->message;
	return HX_EXIT_WRAPPER;
}

static enum hapax_run_outcome judge(const struct hx_run_child *child)
{
	if (child->is_lost || child->stop == HX_RUN_STOP_TIMEOUT)
		return HAPAX_RUN_AMBIGUOUS;
	if (child->end.signal == 0 && child->plan->is_success[child->end.exit_code])
		return HAPAX_RUN_OK;
	/* Somebody ended it from outside: that is no failure of its own. */
	if (child->plan->keep_on_fail && child->asked == 0)
		return HAPAX_RUN_DEFINITIVE;
	return HAPAX_RUN_TRANSIENT;
}

/* What the next one who looks at the key reads. */
static void explain_end(const struct hx_run_child *child, char out[WHY_SIZE])
{
	if (child->is_lost)
		(void)snprintf(out, WHY_SIZE, "its exit status was lost");
	else if (child->stop == HX_RUN_STOP_TIMEOUT)
		(void)snprintf(out, WHY_SIZE, "it took longer than --timeout and was ended");
	else if (child->end.signal > 0)
		(void)snprintf(out, WHY_SIZE, "signal %d ended it", child->end.signal);
	else
		(void)snprintf(out, WHY_SIZE, "exit status %d", child->end.exit_code);
}

/* The command's own status, as a shell tells it. */
static int exit_of(const struct hx_run_child *child)
{
	if (child->is_lost || child->stop == HX_RUN_STOP_FENCED)
		return HX_EXIT_WRAPPER;
	if (child->end.signal > 0)
		return HX_EXIT_SIGNAL + child->end.signal;
	/* Ended by us, it may still say that all is well: we do not know that. */
	if (child->stop == HX_RUN_STOP_TIMEOUT && child->end.exit_code == 0)
		return HX_EXIT_WRAPPER;
	return child->end.exit_code;
}

/* Output that could not be passed on. The exit code, which says so if nothing else does. */
static int check_output(const struct hx_run_child *child, int code)
{
	struct hapax_error err;

	for (size_t i = 0; i < 2; i++) {
		int os_errno = child->streams[i].os_errno;

		if (os_errno == 0 || os_errno == EPIPE)
			continue;
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, os_errno, "standard %s was not written",
			i == 0 ? "output" : "error");
		hx_report(child->ledger->inv->command->name, "%s", err.message);
		if (code == HX_EXIT_OK)
			code = HX_EXIT_WRAPPER;
	}
	return code;
}

static int report_unstored(
	struct hx_run_report *report, enum hapax_status status, const struct hapax_error *err,
	int code)
{
	const char *name = report->ledger->inv->command->name;

	if (status == HAPAX_ERR_FENCED) {
		report->is_fenced = true;
		hx_report(name, "fenced: another run has taken over; this result is not kept");
		return HX_EXIT_WRAPPER;
	}
	hx_report(
		name, "the command ended with status %d, but that %s stored: %s", code,
		status == HAPAX_ERR_UNCERTAIN ? "may not be" : "was not", err->message);
	hx_report_hint("it may run again; 'hapax explain KEY' shows what is known");
	return code;
}

/* Store how it ended. */
static int finish(struct hx_run_report *report, struct hx_run_child *child)
{
	struct hapax_result result = {.kind = HAPAX_RESULT_NONE};
	char why[WHY_SIZE];
	static struct hapax_error err;
	enum hapax_status status;
	int code = check_output(child, exit_of(child));

	report->has_run = true;
	report->verdict = judge(child);
	report->is_timed_out = child->stop == HX_RUN_STOP_TIMEOUT;
	report->output_bytes = child->recorder.total;
	report->signal = child->is_lost ? 0 : child->end.signal;
	if (child->stop == HX_RUN_STOP_FENCED) {
		report->is_fenced = true;
		return code;
	}
	if (!child->is_lost)
		hx_exec_recorder_finish(
			&child->recorder, child->end.exit_code, child->end.signal, &result);
	report->omitted_bytes = result.omitted_bytes;
	explain_end(child, why);
	if (report->is_timed_out)
		hx_report(
			report->ledger->inv->command->name,
			"timed out: the command was ended; what it did is not known");
	status = hx_run_ledger_finish(child->ledger, report->verdict, &result, why, &err);
	report->is_stored = status == HAPAX_OK;
	if (status == HAPAX_OK)
		return code;
	report->error = err.message;
	return report_unstored(report, status, &err, code);
}

/* It did not start: nothing happened, and the next one may try. */
static int give_up(struct hx_run_report *report, const struct hapax_error *err)
{
	static struct hapax_error started;
	struct hapax_error ignored;

	started = *err;
	report->is_fenced = err->status == HAPAX_ERR_FENCED;
	report->error = started.message;
	hx_report(report->ledger->inv->command->name, "%s", started.message);
	if (started.os_errno == ENOEXEC)
		hx_report_hint("a script needs a first line that names its interpreter");
	report->is_stored = hx_run_ledger_finish(
				    &run_state.ledger, HAPAX_RUN_TRANSIENT, NULL, started.message,
				    &ignored) == HAPAX_OK;
	if (started.os_errno == ENOENT)
		return HX_EXIT_NOT_FOUND;
	return started.status == HAPAX_ERR_INVALID ? HX_EXIT_NOT_STARTED : HX_EXIT_WRAPPER;
}

/* Start the command, if the claim is still ours when it comes to that. */
static enum hapax_status start(struct hx_run_claim *claim, struct hapax_error *err)
{
	struct hx_run_ledger *ledger = claim->ledger;
	enum hapax_status status;

	if (hx_run_lock_make(&run_state.lock, &run_state.folders, &ledger->record, err) != HAPAX_OK)
		hx_report(
			ledger->inv->command->name, "note: %s; only the lease guards this run",
			err->message);
	status = hx_run_ledger_confirm(ledger, err);
	if (status == HAPAX_OK)
		status = hx_run_child_start(&run_state.child, ledger, run_state.lock.file, err);
	hx_run_claim_started(claim);
	return status;
}

static int execute(struct hx_run_report *report, struct hx_run_claim *claim)
{
	struct hx_run_child *child = &run_state.child;
	struct hapax_error err;
	int code;

	hx_run_child_init(child, claim->ledger);
	if (start(claim, &err) == HAPAX_OK) {
		hx_run_child_run(child);
		code = finish(report, child);
	} else {
		code = give_up(report, &err);
	}
	hx_run_lock_remove(&run_state.lock);
	hx_run_child_done(child);
	return code;
}

static int replay(struct hx_run_report *report, const struct hapax_result *result)
{
	report->omitted_bytes = result->omitted_bytes;
	return hx_run_replay(report->ledger->inv->command->name, result, &report->signal);
}

static int decide(struct hx_run_report *report)
{
	struct hx_run_ledger *ledger = &run_state.ledger;
	static struct hx_run_claim claim;

	hx_run_claim_init(&claim, ledger, &run_state.folders);
	if (hx_run_claim_wait(&claim) != HAPAX_OK)
		return fail(report, &claim.err);
	if (claim.signal != 0) {
		report->error = "a signal ended the wait";
		return HX_EXIT_SIGNAL + claim.signal;
	}
	report->outcome = ledger->seen.outcome;
	if (report->outcome == HAPAX_OUTCOME_ACQUIRED)
		return execute(report, &claim);
	if (report->outcome == HAPAX_OUTCOME_REPLAY)
		return replay(report, &ledger->record.result);
	hx_run_report_refusal(&claim);
	return report->outcome == HAPAX_OUTCOME_MISMATCH ? HX_EXIT_MISMATCH : HX_EXIT_BUSY;
}

static int run_planned(struct hx_invocation *inv)
{
	struct hx_run_ledger *ledger = &run_state.ledger;
	struct hx_run_report report = {.ledger = ledger};
	int code = hx_run_ledger_open(ledger, inv, &run_state.plan);

	report.exit_code = HX_EXIT_WRAPPER;
	run_state.lock.file = -1;
	hx_run_lock_folders(&run_state.folders);
	if (code == HX_EXIT_OK) {
		ledger->signal_fd = hx_run_signal_watch();
		if (ledger->signal_fd >= 0)
			report.exit_code = decide(&report);
		else
			hx_report(inv->command->name, "signals cannot be watched");
	} else {
		report.error = "the store was not opened";
	}
	if (run_state.plan.status_fd >= 0)
		hx_run_report_json(&report, run_state.plan.status_fd);
	if (report.is_stored)
		hx_settings_tidy(ledger->store);
	hx_run_ledger_close(ledger);
	return report.exit_code;
}

static int run(struct hx_invocation *inv)
{
	int code;

	if (hx_options_get(&inv->options, HX_OPTION_OUTPUT) != NULL)
		hx_report(
			inv->command->name,
			"note: -o changes nothing here: the output is the command's; see --status-fd");
	code = hx_run_plan_read(inv, &run_state.plan);
	code = code == HX_EXIT_OK ? run_planned(inv) : HX_EXIT_WRAPPER;
	hx_run_plan_done(&run_state.plan);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "the command's status, now or when it ran; with 128 added, its signal"},
	{HX_EXIT_MISMATCH, "mismatch: the same key came with another command"},
	{HX_EXIT_BUSY, "in progress, or parked until somebody decides: try again later"},
	{HX_EXIT_WRAPPER, "hapax itself failed: usage, store, fenced; see the message"},
	{HX_EXIT_NOT_STARTED, "the command was found, but could not be started"},
	{HX_EXIT_NOT_FOUND, "the command was not found"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax run --key report-2026-11-15 -- echo 'made the report'",
         "the second time it only shows the output again"},
	{"hapax run --key-from 'template:backup-{date:%Y-%m-%d}' -- echo 'backed up'",
         "once a day, however often cron or a person starts it"},
	{"hapax run --key import-7 --wait=10m --timeout 1h --on-lapse park -- echo imported",
         "wait for whoever is at it; if it ends in the dark, ask a person"},
	{"echo '{\"id\":17}' | hapax run --key-from field:id --fingerprint stdin -- cat",
         "the key stands in the message"},
	{NULL, NULL},
};

const struct command hx_cmd_run = {
	.name = "run",
	.summary = "run a command once per key, and replay its output and exit status",
	.usage = "--key K [OPTION]... -- COMMAND [ARGUMENT]...",
	.description =
		"Runs COMMAND if nobody has run it for this key, and keeps what it wrote and how it\n"
		"ended. Whoever comes again within the TTL gets the same output and status, byte for\n"
		"byte, and nothing runs. A command that fails (a status other than 0, or a signal)\n"
		"is not kept: the next one runs. If a run dies, or its host, the next one takes over.\n"
		"\n"
		"The command finds HAPAX_KEY, HAPAX_TOKEN and HAPAX_ATTEMPT in its environment, and\n"
		"signals sent to hapax reach it. Its output passes through as it comes.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_TTL | COMMAND_WRAPPER,
	.operands_min = 1,
	.operands_max = SIZE_MAX,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run,
};
