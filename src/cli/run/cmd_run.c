/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_run.c - hapax run: any command, once per key.
 */
#include <errno.h>

#include <hapax/hapax.h>

#include "cli/frame/key_command.h"
#include "cli/frame/report.h"
#include "cli/run/run_child.h"
#include "cli/run/run_claim.h"
#include "cli/run/run_ledger.h"
#include "cli/run/run_lock.h"
#include "cli/run/run_plan.h"
#include "cli/run/run_report.h"
#include "cli/run/run_signal.h"

static const struct hx_option options[] = {
	{HX_RUN_OPTION_KEY, "key", 'k', HX_OPTION_TEXT, "K", "key of this run", NULL},
	{HX_RUN_OPTION_STRATEGY, "strategy", 's', HX_OPTION_TEXT, "S",
	 "derive the key: args, stdin, file:PATH or a key strategy", NULL},
	{HX_RUN_OPTION_WAIT, "wait", 'w', HX_OPTION_MAYBE, "T",
	 "wait up to T for a run in progress and print its output", NULL},
	{HX_RUN_OPTION_TIMEOUT, "timeout", 0, HX_OPTION_TEXT, "T",
	 "stop the command after T; its outcome is then unknown", NULL},
	{HX_RUN_OPTION_KILL_AFTER, "kill-after", 0, HX_OPTION_TEXT, "T",
	 "time between TERM and KILL (default: 10s)", NULL},
	{HX_RUN_OPTION_SUCCESS_CODES, "success-codes", 0, HX_OPTION_TEXT, "LIST",
	 "exit codes that mean success, in addition to 0: 3,10-19", NULL},
	{HX_RUN_OPTION_KEEP_ON_FAIL, "keep-on-fail", 0, HX_OPTION_FLAG, NULL,
	 "store and replay failures, too", NULL},
	{HX_RUN_OPTION_ON_LAPSE, "on-lapse", 0, HX_OPTION_CHOICE, "retry|park",
	 "after an unknown outcome, run again or park (default: retry)", hx_run_on_lapse_choices},
	{HX_RUN_OPTION_FINGERPRINT, "fingerprint", 0, HX_OPTION_CHOICE, "args|stdin|none",
	 "what must match when the key matches (default: args)", hx_cmd_run_fingerprint_choices},
	{HX_RUN_OPTION_LEASE, "lease", 0, HX_OPTION_TEXT, "D",
	 "how long other hosts wait if this one dies (default: 30s)", NULL},
	{HX_RUN_OPTION_MAX_RESULT, "max-result", 0, HX_OPTION_TEXT, "SIZE",
	 "maximum output to store (default: 256KiB)", NULL},
	{HX_RUN_OPTION_STATUS_FD, "status-fd", 0, HX_OPTION_TEXT, "N",
	 "write the outcome to file descriptor N, as JSON", NULL},
	{.name = NULL},
};

/* Too large for a stack: output buffers and paths. */
static struct {
	struct hx_cmd_run_plan plan;
	struct hx_cmd_run_ledger ledger;
	struct hx_cmd_run_lock lock;
	struct hx_cmd_run_child child;
	struct hx_cmd_run_report report;
} run_state;

static int fail(struct hx_cmd_run_report *report, const struct hapax_error *err)
{
	const struct hx_cmd_run_ledger *ledger = report->ledger;

	(void)hx_key_command_report(
		ledger->inv, ledger->store, &(struct hapax_op){.type = HAPAX_OP_CLAIM}, err);
	report->error = err->message;
	return HX_EXIT_WRAPPER;
}

/* The command did not start: nothing happened, and the next run may try. */
static void give_up(struct hx_cmd_run_report *report)
{
	struct hx_cmd_run_ledger *ledger = &run_state.ledger;

	report->is_fenced = report->err.status == HAPAX_ERR_FENCED;
	report->error = report->err.message;
	report->is_stored =
		hx_cmd_run_ledger_finish(
			ledger, HAPAX_RUN_TRANSIENT, NULL, report->err.message, NULL) == HAPAX_OK;
}

static int tell_not_started(const struct hx_cmd_run_report *report)
{
	hx_report(report->ledger->inv->command->name, "%s", report->err.message);
	if (report->err.os_errno == ENOEXEC)
		hx_report_hint("start the script with a line such as #!/bin/sh");
	if (report->err.os_errno == ENOENT)
		return HX_EXIT_NOT_FOUND;
	return report->err.status == HAPAX_ERR_INVALID ? HX_EXIT_NOT_STARTED : HX_EXIT_WRAPPER;
}

/* Start the command, if the claim is still ours by then. */
static enum hapax_status start(struct hx_cmd_run_ledger *ledger, struct hapax_error *err)
{
	const struct hx_cmd_run_folders *folders = &run_state.lock.folders;
	enum hapax_status status;

	if (run_state.lock.file >= 0)
		hx_cmd_run_lock_note(&run_state.lock, &ledger->record);
	else
		hx_report(
			ledger->inv->command->name,
			"note: could not create a lock file%s%s; only the lease "
			"protects this run",
			folders->make_count > 0 ? " in " : "",
			folders->make_count > 0 ? folders->paths[0] : "");
	status = hx_cmd_run_ledger_confirm(ledger, err);
	if (status == HAPAX_OK)
		status = hx_cmd_run_child_start(&run_state.child, ledger, run_state.lock.file, err);
	return status;
}

/* Nothing is held any more: the reader of our output may be slow, and a signal ends us. */
static void let_go(struct hx_cmd_run_report *report)
{
	struct hx_cmd_run_ledger *ledger = &run_state.ledger;

	hx_cmd_run_lock_drop(&run_state.lock);
	if (report->is_stored && ledger->store != NULL)
		hx_settings_tidy(ledger->store);
	hx_cmd_run_ledger_leave(ledger);
	hx_cmd_run_signal_end_writes();
}

static int execute(struct hx_cmd_run_report *report)
{
	struct hx_cmd_run_child *child = &run_state.child;
	int signal = 0, code;

	hx_cmd_run_child_init(child, &run_state.ledger);
	if (start(&run_state.ledger, &report->err) == HAPAX_OK) {
		hx_cmd_run_child_run(child);
		hx_cmd_run_report_store(report, child);
		let_go(report);
		signal = hx_cmd_run_child_flush(child);
		code = signal == 0 ? hx_cmd_run_report_end(report, child) : HX_EXIT_SIGNAL + signal;
	} else {
		give_up(report);
		let_go(report);
		code = tell_not_started(report);
	}
	hx_cmd_run_child_done(child);
	return code;
}

static int replay(struct hx_cmd_run_report *report, const struct hapax_result *result)
{
	report->omitted_bytes = result->omitted_bytes;
	let_go(report);
	return hx_cmd_run_report_replay(report->ledger, result, &report->signal);
}

static int decide(struct hx_cmd_run_report *report)
{
	struct hx_cmd_run_ledger *ledger = &run_state.ledger;
	static struct hx_cmd_run_claim claim;

	claim = (struct hx_cmd_run_claim){.ledger = ledger, .lock = &run_state.lock};
	if (hx_cmd_run_claim_wait(&claim) != HAPAX_OK)
		return fail(report, &claim.err);
	if (claim.signal != 0) {
		report->error = "a signal stopped the wait";
		return HX_EXIT_SIGNAL + claim.signal;
	}
	report->outcome = ledger->seen.outcome;
	if (report->outcome == HAPAX_OUTCOME_ACQUIRED)
		return execute(report);
	if (report->outcome == HAPAX_OUTCOME_REPLAY)
		return replay(report, &ledger->record.result);
	hx_cmd_run_report_refusal(&claim);
	return report->outcome == HAPAX_OUTCOME_MISMATCH ? HX_EXIT_MISMATCH : HX_EXIT_BUSY;
}

static int run_planned(struct hx_invocation *inv)
{
	struct hx_cmd_run_ledger *ledger = &run_state.ledger;
	struct hx_cmd_run_report *report = &run_state.report;
	int code = hx_cmd_run_ledger_open(ledger, inv, &run_state.plan);

	report->ledger = ledger;
	report->exit_code = HX_EXIT_WRAPPER;
	hx_cmd_run_lock_init(
		&run_state.lock,
		&(struct hx_cmd_run_lock_key){
			.store_url = inv->settings.store_url,
			.tenant = inv->settings.tenant,
			.group = inv->settings.group,
			.key = run_state.plan.key,
		});
	if (code == HX_EXIT_OK) {
		ledger->signal_fd = hx_cmd_run_signal_watch();
		if (ledger->signal_fd >= 0)
			report->exit_code = decide(report);
		else
			hx_report(inv->command->name, "could not watch signals");
	} else {
		report->error = "could not open the store";
	}
	if (run_state.plan.status_fd >= 0)
		hx_cmd_run_report_json(report, run_state.plan.status_fd);
	hx_cmd_run_ledger_close(ledger);
	return report->exit_code;
}

static int run_run(struct hx_invocation *inv)
{
	int code;

	if (hx_options_get(&inv->options, HX_OPTION_OUTPUT) != NULL)
		hx_report(
			inv->command->name,
			"note: -o has no effect: the output is that of the command; "
			"see --status-fd");
	code = hx_cmd_run_plan_read(inv, &run_state.plan);
	code = code == HX_EXIT_OK ? run_planned(inv) : HX_EXIT_WRAPPER;
	hx_cmd_run_plan_done(&run_state.plan);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "the status of COMMAND, from this run or the stored one; 128+N for signal N"},
	{HX_EXIT_MISMATCH, "mismatch: the key was used with a different command"},
	{HX_EXIT_BUSY, "in progress (retry later), or parked (run 'hapax resolve')"},
	{HX_EXIT_WRAPPER, "hapax failed: usage, store or fencing error"},
	{HX_EXIT_NOT_STARTED, "COMMAND could not be executed"},
	{HX_EXIT_NOT_FOUND, "COMMAND was not found"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax run --key report-2026-11-15 -- echo 'made the report'",
	 "the second run prints the stored output"},
	{"hapax run --strategy 'template:backup-{date:%Y-%m-%d}' -- echo 'backed up'",
	 "once a day, no matter how often it is started"},
	{"hapax run --key import-7 --wait=10m --timeout 1h --on-lapse park -- echo imported",
	 "wait for a run in progress; park the key if the outcome is unknown"},
	{"echo '{\"id\":17}' | hapax run --strategy field:id --fingerprint stdin -- cat",
	 "use a field of the message as the key"},
	{NULL, NULL},
};

const struct command hx_cmd_run = {
	.name = "run",
	.summary = "run a command once per key; replay its output and exit status",
	.usage = "--key K [OPTION]... -- COMMAND [ARGUMENT]...",
	.description =
		"Runs COMMAND if no run with this key has succeeded within the TTL. Otherwise prints the\n"
		"stored output, byte for byte, and exits with the stored status.\n"
		"\n"
		"A command that fails (nonzero status or signal) leaves no result: the next run starts\n"
		"it again. If hapax dies, the next run takes over: on the same host once the old command\n"
		"has exited, on other hosts once the lease has lapsed. COMMAND inherits HAPAX_KEY,\n"
		"HAPAX_TOKEN and HAPAX_ATTEMPT. hapax forwards signals to it and passes its output through.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_TTL | COMMAND_WRAPPER,
	.operands = {1, SIZE_MAX},
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_run,
};
