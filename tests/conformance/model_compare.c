/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_compare.c - an answer of a store, beside that of the model; see model_private.h.
 */
#include "conformance/model_private.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/limits.h"

bool model_differ(struct model *model, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(model->why, sizeof(model->why), format, arguments);
	va_end(arguments);
	return false;
}

bool model_take_token(
	struct model *model, struct model_key *entry, const struct hapax_op *op, uint64_t shared)
{
	bool is_old = op->token <= model->token_max && !model->tokens_per_key;

	if (is_old || op->token <= entry->token_max || op->token > HX_TOKEN_MAX)
		return model_differ(
			model, "token %llu, after %llu of the store and %llu of the key",
			(unsigned long long)op->token, (unsigned long long)model->token_max,
			(unsigned long long)entry->token_max);
	if (shared && op->token != shared)
		return model_differ(model, "the claims of a group have different tokens");
	for (size_t i = 0; !shared && !model->tokens_per_key && i < model->count; i++)
		if (model->keys[i].token_max == op->token)
			return model_differ(
				model, "token %llu twice", (unsigned long long)op->token);
	entry->token_max = op->token;
	if (op->token > model->token_high)
		model->token_high = op->token;
	return true;
}

/*
 * A token is told to who may use it: the claim that got it, the operation that brought it or wrote the
 * record, and the caller that asks for the record. No other caller, however the answer is made.
 */
static bool compare_token(
	struct model *model, const struct hapax_op *op, const struct model_record *record)
{
	uint64_t expected = 0;

	if (op->type == HAPAX_OP_RENEW || op->type == HAPAX_OP_COMPLETE ||
	    op->type == HAPAX_OP_RELEASE || op->type == HAPAX_OP_PARK)
		return true;
	if (op->outcome == HAPAX_OUTCOME_ACQUIRED || op->outcome == HAPAX_OUTCOME_FOUND)
		expected = record->token;
	else if (op->outcome == HAPAX_OUTCOME_APPLIED)
		return true; /* set and forget: the record is the one before */
	if (op->token != expected)
		return model_differ(
			model, "token %llu, expected %llu", (unsigned long long)op->token,
			(unsigned long long)expected);
	return true;
}

bool model_compare(
	struct model *model, const struct hapax_op *op, const struct model_answer *expected,
	int64_t now_ms)
{
	const struct model_record *record = &expected->shown;

	if (op->status != expected->status)
		return model_differ(
			model, "status %s, expected %s", hapax_status_name(op->status),
			hapax_status_name(expected->status));
	if (op->outcome != expected->outcome)
		return model_differ(
			model, "outcome %s, expected %s", hapax_outcome_name(op->outcome),
			hapax_outcome_name(expected->outcome));
	if (op->status != HAPAX_OK)
		return true;
	if (!compare_token(model, op, record))
		return false;
	if (op->outcome == HAPAX_OUTCOME_SKIPPED && !expected->has_record) {
		/* Nothing leaks of what would have been. */
		if (op->attempt || op->lease_left_ms || op->expires_ms != HAPAX_TIME_NEVER)
			return model_differ(model, "a skipped operation tells of a record");
		return true;
	}
	if (op->outcome != HAPAX_OUTCOME_SKIPPED &&
	    (op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK) &&
	    !op->unverified != !expected->unverified)
		return model_differ(
			model, "unverified %d, expected %d", op->unverified, expected->unverified);
	if (op->outcome != HAPAX_OUTCOME_SKIPPED && !op->repeated != !expected->repeated)
		return model_differ(
			model, "repeated %d, expected %d", op->repeated, expected->repeated);
	if (!expected->has_record)
		return true;
	if (op->record) {
		struct model_record shown = *record;

		/* I7: another payload never sees the result, nor who ran it, for what, and how it failed. */
		if (op->outcome == HAPAX_OUTCOME_MISMATCH) {
			model_record_keep_result(model, &shown, NULL);
			shown.owner = shown.error = shown.cause = (struct model_text){0};
			shown.error_is_free = shown.cause_may_go = false;
		}
		const char *field = model_record_difference(&shown, op->record);

		if (field)
			return model_differ(model, "the record's %s", field);
	}
	if (op->type == HAPAX_OP_SET || op->type == HAPAX_OP_FORGET)
		return true;
	if (op->attempt != record->attempt)
		return model_differ(model, "attempt %u, expected %u", op->attempt, record->attempt);
	if (op->first_seen_ms != record->first_seen_ms)
		return model_differ(
			model, "first_seen_ms %lld, expected %lld", (long long)op->first_seen_ms,
			(long long)record->first_seen_ms);
	if (op->expires_ms != record->expires_ms)
		return model_differ(
			model, "expires_ms %lld, expected %lld", (long long)op->expires_ms,
			(long long)record->expires_ms);
	if (record->state == HAPAX_STATE_CLAIMED) {
		int64_t left =
			model_record_is_lapsed(record, now_ms) ? 0 : record->lease_ends_ms - now_ms;

		if (op->lease_left_ms != left)
			return model_differ(
				model, "lease_left_ms %lld, expected %lld",
				(long long)op->lease_left_ms, (long long)left);
	}
	return true;
}
