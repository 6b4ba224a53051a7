/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_answer.c - write the answers to operations as JSON.
 */
#include "api/api_operation.h"
#include "api/api_request.h"
#include "base/bytes.h"

/* Does the answer contain a record? A record has at least one attempt. */
static bool has_record(const struct hapax_op *op)
{
	return op->attempt > 0;
}

/* The existing claim or result. */
static void write_other(
	struct hx_json_write *json, const struct hx_api_item *item, const struct hapax_op *op)
{
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED && op->type == HAPAX_OP_CLAIM)
		hx_json_write_hex(json, "attempt_id", op->attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED || op->record == NULL || !has_record(op))
		return;
	if (item->record.owner.size > 0)
		hx_json_write_any(json, "owner", item->record.owner);
	if (item->record.error.size > 0)
		hx_json_write_body(json, "error", item->record.error);
	if (op->outcome == HAPAX_OUTCOME_REPLAY && op->type == HAPAX_OP_CLAIM)
		hx_record_result_write_json(json, &item->record.result, 0);
}

static void write_failure(struct hx_json_write *json, const struct hapax_op *op)
{
	hx_json_write_text(json, "failure", hapax_status_name(op->status));
	hx_json_write_text(json, "detail", hx_api_status_text(op->status));
}

static void write_record(
	struct hx_json_write *json, const struct hapax_record *record, bool has_secrets)
{
	unsigned flags = HX_RECORD_JSON_WITH_RESULT;

	flags |= has_secrets ? (unsigned)HX_RECORD_JSON_WITH_SECRETS : 0;
	hx_json_write_begin(json, "record", '{');
	hx_record_write_json(json, record, flags);
	hx_json_write_end(json, '}');
}

void hx_api_answer_write(
	struct hx_json_write *json, const struct hx_api_item *item, const struct hapax_op *op,
	enum hx_operation_use use, bool has_secrets)
{
	hx_json_write_begin(json, NULL, '{');
	if (op->status == HAPAX_OK)
		hx_json_write_text(json, "outcome", hapax_outcome_name(op->outcome));
	else
		write_failure(json, op);
	hx_json_write_any(json, "tenant", op->tenant);
	hx_json_write_any(json, "group", op->group);
	hx_json_write_any(json, "key", op->key);
	if (op->status == HAPAX_OK && op->token > 0)
		hx_json_write_unsigned(json, "token", op->token);
	if (op->status == HAPAX_OK && has_record(op)) {
		hx_json_write_unsigned(json, "attempt", op->attempt);
		hx_json_write_time(json, "first_seen", op->first_seen_ms);
		hx_json_write_time(json, "expires_at", op->expires_ms);
		if (op->lease_left_ms > 0)
			hx_json_write_signed(json, "lease_left_ms", op->lease_left_ms);
	}
	if (op->status == HAPAX_OK && op->unverified)
		hx_json_write_boolean(json, "unverified", true);
	if (op->status == HAPAX_OK && use != HX_USE_ANY)
		write_other(json, item, op);
	if (op->status == HAPAX_OK && use == HX_USE_ANY && op->record != NULL &&
	    item->record.state != HAPAX_STATE_ABSENT)
		write_record(json, &item->record, has_secrets);
	hx_json_write_end(json, '}');
}
