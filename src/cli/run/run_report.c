/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_report.c - report how a run ended.
 */
#include "cli/run/run_report.h"

#include <stdio.h>

#include "base/duration.h"
#include "base/stream.h"
#include "cli/print/record_out.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"

static const char *verdict_name(const struct hx_cmd_run_report *report)
{
	if (report->is_fenced)
		return "fenced";
	return hapax_run_outcome_name(report->verdict);
}

/* Is there a result that is kept? */
static bool is_kept(const struct hx_cmd_run_report *report)
{
	return report->outcome == HAPAX_OUTCOME_REPLAY ||
		(report->is_stored && report->has_run &&
		 (report->verdict == HAPAX_RUN_OK || report->verdict == HAPAX_RUN_DEFINITIVE));
}

static void write_record(struct hx_json_write *json, const struct hx_cmd_run_report *report)
{
	const struct hapax_op *seen = &report->ledger->seen;

	/* After a lookup, seen has the holder's values. */
	if (seen->outcome == HAPAX_OUTCOME_ACQUIRED)
		hx_json_write_unsigned(json, "token", seen->token);
	hx_json_write_unsigned(json, "attempt", seen->attempt);
	hx_json_write_time(json, "first_seen", seen->first_seen_ms);
	if (is_kept(report))
		hx_json_write_time(json, "expires_at", seen->expires_ms);
	if (seen->outcome == HAPAX_OUTCOME_IN_PROGRESS) {
		hx_json_write_any(json, "owner", seen->record->owner);
		hx_json_write_signed(json, "lease_left_ms", seen->lease_left_ms);
	}
}

static void write_run(struct hx_json_write *json, const struct hx_cmd_run_report *report)
{
	hx_json_write_text(json, "verdict", verdict_name(report));
	hx_json_write_boolean(json, "stored", report->is_stored);
	hx_json_write_boolean(json, "timed_out", report->is_timed_out);
	hx_json_write_unsigned(json, "output_bytes", report->output_bytes);
}

void hx_cmd_run_report_json(const struct hx_cmd_run_report *report, int fd)
{
	const struct hx_cmd_run_ledger *ledger = report->ledger;
	FILE *file = hx_stream_file(fd);
	struct hx_json_write json;
	struct hx_out out;

	if (file == NULL) {
		hx_report(
			ledger->inv->command->name,
			"--status-fd: could not write to file descriptor %d", fd);
		return;
	}
	hx_out_init(&out, file);
	hx_out_json(&json, &out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(
		&json, "outcome",
		report->outcome == HAPAX_OUTCOME_NONE ? "error"
						      : hapax_outcome_name(report->outcome));
	hx_record_out_name(
		&json, ledger->inv->settings.tenant, ledger->inv->settings.group,
		ledger->plan->key);
	if (report->outcome != HAPAX_OUTCOME_NONE)
		write_record(&json, report);
	if (report->has_run)
		write_run(&json, report);
	if (report->omitted_bytes > 0)
		hx_json_write_unsigned(&json, "omitted_bytes", report->omitted_bytes);
	hx_json_write_signed(&json, "exit_code", report->exit_code);
	if (report->signal > 0)
		hx_json_write_signed(&json, "signal", report->signal);
	if (report->error != NULL)
		hx_json_write_any(&json, "error", hapax_bytes_from_text(report->error));
	hx_json_write_end(&json, '}');
	(void)hx_out_finish(&out, ledger->inv->command->name, 0);
}

static void refuse_in_progress(const struct hx_cmd_run_claim *claim)
{
	const struct hapax_op *seen = &claim->ledger->seen;
	const char *name = claim->ledger->inv->command->name;
	char span[HX_TEXT_SIZE];

	hx_duration_span(seen->lease_left_ms, span);
	if (claim->is_held_here && seen->record->state != HAPAX_STATE_CLAIMED)
		hx_report(
			name,
			"in progress: a command with this key is running or starting "
			"on this host");
	else
		hx_report(
			name, "in progress: attempt %u by %.*s, %s %s", (unsigned)seen->attempt,
			(int)seen->record->owner.size, (const char *)seen->record->owner.data,
			claim->is_held_here && seen->lease_left_ms == 0
				? "still running on this host,"
				: "its lease ends in",
			claim->is_held_here && seen->lease_left_ms == 0
				? "although its lease has lapsed"
				: span);
	hx_report_hint("use --wait to wait for it and print its output");
}

void hx_cmd_run_report_refusal(const struct hx_cmd_run_claim *claim)
{
	const struct hapax_op *seen = &claim->ledger->seen;
	const char *name = claim->ledger->inv->command->name;
	char time[HX_TEXT_SIZE];

	hx_text_time(seen->first_seen_ms, time);
	if (seen->outcome == HAPAX_OUTCOME_IN_PROGRESS) {
		refuse_in_progress(claim);
	} else if (seen->outcome == HAPAX_OUTCOME_MISMATCH) {
		hx_report(
			name,
			"mismatch: the key was first used at %s with a different "
			"command",
			time);
		hx_report_hint("use a new key, or relax --fingerprint");
	} else {
		hx_report(
			name, "parked: the run of %s has an unknown outcome: %.*s", time,
			(int)seen->record->error.size, (const char *)seen->record->error.data);
		hx_report_hint("check it, then run 'hapax resolve KEY --done' or '--retry'");
	}
}
