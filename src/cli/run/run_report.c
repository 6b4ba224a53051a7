/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_report.c - report how a run ended.
 */
#include "cli/run/run_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/macros.h"
#include "base/stream.h"
#include "cli/print/record_out.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"
#include "cli/run/run_signal.h"

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
			name,
			"parked: not started, because the run of %s has an unknown outcome: %.*s",
			time, (int)seen->record->error.size,
			(const char *)seen->record->error.data);
		hx_report_hint("if its work happened, run 'hapax resolve KEY --done'; if not, "
			       "'hapax resolve KEY --retry'");
	}
}

/* ------------------------------------------------------------------ the end of the command */

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

void hx_cmd_run_report_store(struct hx_cmd_run_report *report, struct hx_cmd_run_child *child)
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

int hx_cmd_run_report_end(struct hx_cmd_run_report *report, const struct hx_cmd_run_child *child)
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

/* ------------------------------------------------------------------ replay */

/* Write all of piece. Returns the signal that stopped it, else 0. */
static int write_piece(int signal_fd, struct hx_cmd_run_output *output, struct hapax_bytes piece)
{
	const unsigned char *data = piece.data;
	size_t done = 0;

	while (done < piece.size) {
		struct pollfd fds[] = {
			{.fd = signal_fd, .events = POLLIN},
			{.fd = output->fd, .events = POLLOUT},
		};
		int signal;

		(void)hx_stream_wait(fds, HX_COUNT(fds), INT64_MAX);
		signal = hx_cmd_run_signal_asked();
		if (signal != 0)
			return signal;
		if (fds[1].revents != 0)
			done += hx_cmd_run_output_write(output, data + done, piece.size - done);
	}
	return 0;
}

/* A reader that has gone is not an error, as with the command itself. */
static int write_pieces(
	const struct hx_cmd_run_ledger *ledger, struct hx_exec_reader *reader,
	struct hx_cmd_run_output outputs[2])
{
	enum hx_exec_stream stream;
	struct hapax_bytes piece;

	while (hx_exec_reader_next(reader, &stream, &piece)) {
		struct hx_cmd_run_output *output = &outputs[stream == HX_EXEC_STDOUT ? 0 : 1];
		int signal = write_piece(ledger->signal_fd, output, piece);

		if (signal != 0)
			return HX_EXIT_SIGNAL + signal;
		if (hx_cmd_run_output_report(output, ledger->inv->command->name))
			return HX_EXIT_WRAPPER;
	}
	return HX_EXIT_OK;
}

static int replay_exec(
	const struct hx_cmd_run_ledger *ledger, const struct hapax_result *result, int *ret_signal)
{
	const char *command = ledger->inv->command->name;
	struct hx_cmd_run_output outputs[2];
	struct hx_exec_reader reader;
	struct hapax_error err;
	int code;

	if (hx_exec_reader_init(&reader, result, &err) != HAPAX_OK) {
		hx_report(command, "%s", err.message);
		return HX_EXIT_WRAPPER;
	}
	*ret_signal = reader.signal;
	if (result->omitted_bytes > 0)
		hx_report(
			command,
			"note: the command has run before; its output (%" PRIu64
			" bytes) is not stored",
			result->omitted_bytes);
	hx_cmd_run_output_init(&outputs[0], STDOUT_FILENO);
	hx_cmd_run_output_init(&outputs[1], STDERR_FILENO);
	code = write_pieces(ledger, &reader, outputs);
	hx_cmd_run_output_done(&outputs[0]);
	hx_cmd_run_output_done(&outputs[1]);
	return code == HX_EXIT_OK ? (int)(result->status & UINT8_MAX) : code;
}

int hx_cmd_run_report_replay(
	const struct hx_cmd_run_ledger *ledger, const struct hapax_result *result, int *ret_signal)
{
	bool is_ok = result->result_class == HAPAX_RESULT_OK;

	*ret_signal = 0;
	if (result->kind == HAPAX_RESULT_EXEC)
		return replay_exec(ledger, result, ret_signal);
	hx_report(
		ledger->inv->command->name,
		"note: the work %s before, but not by 'hapax run'; there is no "
		"output",
		is_ok ? "was done" : "failed permanently");
	return is_ok ? HX_EXIT_OK : HX_EXIT_NO;
}
