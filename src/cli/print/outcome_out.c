/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome_out.c - print the answer to a claim or a check.
 */
#include "cli/print/outcome_out.h"

#include "base/duration.h"
#include "cli/frame/exit_code.h"
#include "cli/print/record_out.h"
#include "cli/print/text.h"

int hx_outcome_out_exit(enum hapax_outcome outcome)
{
	switch (outcome) {
	case HAPAX_OUTCOME_ACQUIRED: return HX_EXIT_OK;
	case HAPAX_OUTCOME_REPLAY: return HX_EXIT_NO;
	case HAPAX_OUTCOME_IN_PROGRESS:
	case HAPAX_OUTCOME_PARKED: return HX_EXIT_BUSY;
	case HAPAX_OUTCOME_MISMATCH: return HX_EXIT_MISMATCH;
	case HAPAX_OUTCOME_NONE:
	case HAPAX_OUTCOME_APPLIED:
	case HAPAX_OUTCOME_FOUND:
	case HAPAX_OUTCOME_ABSENT:
	case HAPAX_OUTCOME_BUSY:
	case HAPAX_OUTCOME_NOT_MET:
	case HAPAX_OUTCOME_SKIPPED: break;
	}
	return HX_EXIT_SOFTWARE;
}

/* Members that only some answers have. A mark holds no lease and needs no result. */
static void write_holder(struct hx_json_write *json, const struct hapax_op *op)
{
	bool is_claim = op->type == HAPAX_OP_CLAIM;

	if (op->outcome == HAPAX_OUTCOME_IN_PROGRESS ||
	    (op->outcome == HAPAX_OUTCOME_ACQUIRED && is_claim))
		hx_json_write_signed(json, "lease_left_ms", op->lease_left_ms);
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED || op->record == NULL)
		return;
	if (op->record->owner.size > 0)
		hx_json_write_any(json, "owner", op->record->owner);
	if (op->record->error.size > 0)
		hx_json_write_any(json, "error", op->record->error);
	if (op->outcome == HAPAX_OUTCOME_REPLAY && is_claim)
		hx_record_result_write_json(json, &op->record->result, HX_RECORD_JSON_BRIEF);
}

void hx_outcome_out_json(struct hx_out *out, const struct hapax_op *op)
{
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "outcome", hapax_outcome_name(op->outcome));
	hx_record_out_name(&json, op->tenant, op->group, op->key);
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED)
		hx_json_write_unsigned(&json, "token", op->token);
	hx_json_write_unsigned(&json, "attempt", op->attempt);
	hx_json_write_time(&json, "first_seen", op->first_seen_ms);
	hx_json_write_time(&json, "expires_at", op->expires_ms);
	write_holder(&json, op);
	hx_json_write_end(&json, '}');
}

static void print_first_seen(struct hx_out *out, int64_t first_seen_ms, int64_t now_ms)
{
	char time[HX_TEXT_SIZE], span[HX_TEXT_SIZE];

	hx_text_time(first_seen_ms, time);
	hx_duration_span(now_ms - first_seen_ms, span);
	hx_out_printf(out, "  first seen %s (%s ago)", time, span);
}

static void print_expiry(struct hx_out *out, int64_t expires_ms, int64_t now_ms)
{
	char time[HX_TEXT_SIZE], span[HX_TEXT_SIZE];

	if (expires_ms == HAPAX_TIME_NEVER) {
		hx_out_text(out, ", never expires");
		return;
	}
	hx_text_time(expires_ms, time);
	hx_duration_span(expires_ms - now_ms, span);
	hx_out_printf(out, ", expires %s (in %s)", time, span);
}

static void print_holder(struct hx_out *out, const struct hapax_op *op)
{
	char span[HX_TEXT_SIZE];

	hx_out_printf(out, "  attempt %u", (unsigned)op->attempt);
	if (op->record->owner.size > 0) {
		hx_out_text(out, " by ");
		hx_out_escaped(out, op->record->owner);
	}
	hx_duration_span(op->lease_left_ms, span);
	hx_out_printf(out, ", lease ends in %s", span);
}

void hx_outcome_out_text(struct hx_out *out, const struct hapax_op *op, int64_t now_ms)
{
	switch (op->outcome) {
	case HAPAX_OUTCOME_REPLAY:
		hx_out_colored(out, HX_COLOR_YELLOW, "duplicate");
		print_first_seen(out, op->first_seen_ms, now_ms);
		print_expiry(out, op->expires_ms, now_ms);
		break;
	case HAPAX_OUTCOME_IN_PROGRESS:
		hx_out_colored(out, HX_COLOR_BLUE, "in progress");
		print_holder(out, op);
		break;
	case HAPAX_OUTCOME_MISMATCH:
		hx_out_colored(out, HX_COLOR_RED, "mismatch");
		print_first_seen(out, op->first_seen_ms, now_ms);
		hx_out_text(out, " with a different payload");
		break;
	case HAPAX_OUTCOME_PARKED:
		hx_out_colored(out, HX_COLOR_YELLOW, "parked");
		print_first_seen(out, op->first_seen_ms, now_ms);
		if (op->record->error.size > 0) {
			hx_out_text(out, ": ");
			hx_out_escaped(out, op->record->error);
		}
		break;
	case HAPAX_OUTCOME_NONE:
	case HAPAX_OUTCOME_ACQUIRED:
	case HAPAX_OUTCOME_APPLIED:
	case HAPAX_OUTCOME_FOUND:
	case HAPAX_OUTCOME_ABSENT:
	case HAPAX_OUTCOME_BUSY:
	case HAPAX_OUTCOME_NOT_MET:
	case HAPAX_OUTCOME_SKIPPED: return;
	}
	hx_out_text(out, "\n");
}
