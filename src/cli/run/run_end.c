/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_end.c - how the command ended.
 */
#include "cli/run/run_end.h"

#include <stdio.h>

#include "cli/frame/report.h"

enum { WHY_SIZE = 256 };

static enum hapax_run_outcome judge(const struct hx_cmd_run_child *child)
{
	if (child->is_lost || child->stop == HX_RUN_STOP_TIMEOUT)
		return HAPAX_RUN_AMBIGUOUS;
	if (child->end.signal == 0 && child->plan->is_success[child->end.exit_code])
		return HAPAX_RUN_OK;
	/* A signal through us ended it: that is not a failure of the command. */
	if (child->plan->keep_on_fail && child->asked == 0)
		return HAPAX_RUN_DEFINITIVE;
	return HAPAX_RUN_TRANSIENT;
}

/* The text that the next reader of the key's record sees. */
static void explain_end(const struct hx_cmd_run_child *child, char out[WHY_SIZE])
{
	if (child->is_lost)
		(void)snprintf(out, WHY_SIZE, "its exit status was lost");
	else if (child->stop == HX_RUN_STOP_TIMEOUT)
		(void)snprintf(out, WHY_SIZE, "it exceeded --timeout");
	else if (child->end.signal > 0)
		(void)snprintf(out, WHY_SIZE, "it was killed by signal %d", child->end.signal);
	else
		(void)snprintf(out, WHY_SIZE, "exit status %d", child->end.exit_code);
}

/* The command's own status, as a shell reports it. */
static int exit_of(const struct hx_cmd_run_child *child)
{
	if (child->is_lost || child->stop == HX_RUN_STOP_FENCED)
		return HX_EXIT_WRAPPER;
	if (child->end.signal > 0)
		return HX_EXIT_SIGNAL + child->end.signal;
	/* We stopped the command. Its status 0 does not prove success. */
	if (child->stop == HX_RUN_STOP_TIMEOUT && child->end.exit_code == 0)
		return HX_EXIT_WRAPPER;
	return child->end.exit_code;
}

void hx_cmd_run_end_store(struct hx_cmd_run_report *report, struct hx_cmd_run_child *child)
{
	struct hapax_result result = {.kind = HAPAX_RESULT_NONE};
	struct hx_cmd_run_ledger *ledger = child->ledger;
	char why[WHY_SIZE];

	report->has_run = true;
	report->exit_code = exit_of(child);
	report->verdict = judge(child);
	report->is_timed_out = child->stop == HX_RUN_STOP_TIMEOUT;
	report->output_bytes = child->recorder.total;
	report->signal = child->is_lost ? 0 : child->end.signal;
	report->is_fenced = child->stop == HX_RUN_STOP_FENCED;
	if (report->is_fenced) {
		/* Changes nothing, but the core must end before the store is closed. */
		(void)hx_cmd_run_ledger_finish(
			ledger, HAPAX_RUN_TRANSIENT, NULL, "another run took over", NULL);
		return;
	}
	if (!child->is_lost)
		hx_exec_recorder_finish(
			&child->recorder, child->end.exit_code, child->end.signal, &result);
	report->omitted_bytes = result.omitted_bytes;
	explain_end(child, why);
	report->status =
		hx_cmd_run_ledger_finish(ledger, report->verdict, &result, why, &report->err);
	if (report->status == HAPAX_ERR_FENCED)
		report->standing = hx_cmd_run_ledger_standing(ledger);
	report->is_stored = report->status == HAPAX_OK ||
		(report->status == HAPAX_ERR_FENCED && report->verdict == HAPAX_RUN_OK &&
		 report->standing == HX_RUN_STANDING_COMPLETED);
}

/* The token was refused. The message depends on which claim has the key. */
static int tell_refused(struct hx_cmd_run_report *report, const char *name)
{
	switch (report->standing) {
	case HX_RUN_STANDING_COMPLETED:
		hx_report(
			name,
			"note: the key was completed while the command ran; exit "
			"status %d is not stored",
			report->exit_code);
		return report->exit_code;
	case HX_RUN_STANDING_OURS:
		hx_report(
			name,
			"the command exited with status %d, but its claim was "
			"released; the key is not parked",
			report->exit_code);
		return report->exit_code;
	case HX_RUN_STANDING_GONE:
		hx_report(
			name,
			"note: the record expired or was deleted while the command "
			"ran; exit status %d is not stored",
			report->exit_code);
		return report->exit_code;
	case HX_RUN_STANDING_TAKEN:
		hx_report(name, "fenced: another run has taken over; this result is not stored");
		break;
	case HX_RUN_STANDING_UNKNOWN:
		hx_report(name, "fenced: the claim was lost; this result is not stored");
		break;
	}
	report->is_fenced = true;
	return HX_EXIT_WRAPPER;
}

static int tell_unstored(struct hx_cmd_run_report *report, const char *name)
{
	report->error = report->err.message;
	if (report->status == HAPAX_ERR_FENCED)
		return tell_refused(report, name);
	hx_report(
		name,
		"the command exited with status %d, but its result %s stored: "
		"%s",
		report->exit_code, report->status == HAPAX_ERR_UNCERTAIN ? "may not be" : "was not",
		report->err.message);
	hx_report_hint("the command may run again; 'hapax explain KEY' describes the "
		       "state");
	return report->exit_code;
}

int hx_cmd_run_end_tell(struct hx_cmd_run_report *report, const struct hx_cmd_run_child *child)
{
	const char *name = child->ledger->inv->command->name;
	int code = report->exit_code;

	if (report->is_timed_out)
		hx_report(name, "timed out: the command was stopped and its outcome is unknown");
	if (child->ledger->is_shortened)
		hx_report(
			name,
			"note: the store has no room for the output; only the exit "
			"status is stored");
	if (!report->is_stored && child->stop != HX_RUN_STOP_FENCED)
		code = tell_unstored(report, name);
	for (size_t i = 0; i < 2; i++)
		if (hx_cmd_run_output_report(&child->streams[i].to, name) && code == HX_EXIT_OK)
			code = HX_EXIT_WRAPPER;
	return code;
}
