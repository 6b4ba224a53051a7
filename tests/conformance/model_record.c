/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_record.c - a record as a store shows it, beside that of the model.
 */
#include "conformance/model_private.h"

#include <string.h>

bool model_text_is(const struct model_text *text, struct hapax_bytes bytes)
{
	return text->size == bytes.size &&
		(bytes.size == 0 || memcmp(text->data, bytes.data, bytes.size) == 0);
}

struct model_text model_text_of(struct hapax_bytes bytes)
{
	struct model_text text = {0};

	text.size = bytes.size < MODEL_TEXT_MAX ? bytes.size : MODEL_TEXT_MAX;
	if (text.size)
		memcpy(text.data, bytes.data, text.size);
	return text;
}

/* A store keeps no bytes of no fingerprint, and 16 or all 32 of one. */
static bool is_kept_of(const struct hapax_record *record, const struct model_record *expected)
{
	static const unsigned char zero[HAPAX_FINGERPRINT_SIZE];
	size_t size = record->fingerprint_size;

	if (expected->has_fingerprint ? size != 16 && size != HAPAX_FINGERPRINT_SIZE : size != 0)
		return false;
	return memcmp(record->fingerprint, expected->fingerprint, size) == 0 &&
		memcmp(record->fingerprint + size, zero, HAPAX_FINGERPRINT_SIZE - size) == 0;
}

const char *model_record_difference(
	const struct model_record *expected, const struct hapax_record *record)
{
	const struct hapax_result *result = &record->result;
	/* Without its body, which it says, and with its headers or without. */
	bool is_cut = expected->may_be_cut && result->body.size == 0 &&
		result->omitted_bytes ==
			(expected->body_size ? expected->body_size : expected->omitted_bytes) &&
		(result->headers.size == 0 || model_text_is(&expected->headers, result->headers));

	if (record->state != expected->state)
		return "state";
	if (record->origin != expected->origin)
		return "origin";
	if (record->on_lapse != expected->on_lapse)
		return "on_lapse";
	if (record->attempt != expected->attempt)
		return "attempt";
	if (record->token != expected->token)
		return "token";
	if (record->first_seen_ms != expected->first_seen_ms)
		return "first_seen_ms";
	if (record->changed_ms != expected->changed_ms)
		return "changed_ms";
	if (record->lease_ends_ms != expected->lease_ends_ms)
		return "lease_ends_ms";
	if (record->expires_ms != expected->expires_ms)
		return "expires_ms";
	if (record->ttl_ms != expected->ttl_ms)
		return "ttl_ms";
	if (!is_kept_of(record, expected))
		return "fingerprint";
	if (memcmp(record->attempt_id, expected->attempt_id, HAPAX_ATTEMPT_ID_SIZE) != 0)
		return "attempt_id";
	if (!model_text_is(&expected->owner, record->owner))
		return "owner";
	if (!expected->error_is_free && !model_text_is(&expected->error, record->error))
		return "error";
	if (!model_text_is(&expected->cause, record->cause) &&
	    !(expected->cause_may_go && record->cause.size == 0))
		return "cause";
	if (result->kind != expected->kind || result->result_class != expected->result_class ||
	    result->status != expected->status)
		return "result's kind, class or status";
	if (result->omitted_bytes != expected->omitted_bytes && !is_cut)
		return "omitted_bytes";
	if (!model_text_is(&expected->headers, result->headers) && !is_cut)
		return "result's headers";
	if (is_cut)
		return NULL;
	if (result->body.size != expected->body_size ||
	    (expected->body_size &&
	     memcmp(result->body.data, expected->body, expected->body_size) != 0))
		return "result's body";
	return NULL;
}

bool model_shows_absence(
	const struct model *model, const struct hapax_op *op, const struct model_record *record)
{
	bool would_go = op->outcome == HAPAX_OUTCOME_APPLIED ||
		op->outcome == HAPAX_OUTCOME_SKIPPED || op->status == HAPAX_ERR_LIMIT;

	switch (op->type) {
	case HAPAX_OP_CLAIM:
	case HAPAX_OP_CHECK:
		return op->outcome != HAPAX_OUTCOME_REPLAY && op->outcome != HAPAX_OUTCOME_MISMATCH;
	case HAPAX_OP_COMPLETE: return op->status == HAPAX_ERR_FENCED && op->token == record->token;
	case HAPAX_OP_LOOKUP:
	case HAPAX_OP_FORGET:
	case HAPAX_OP_EXPIRE: return op->outcome == HAPAX_OUTCOME_ABSENT;
	case HAPAX_OP_SET:
		/* Refused for its own size, whatever was there. */
		if (op->result && op->result->body.size > model->result_size_max)
			return false;
		if (op->outcome == HAPAX_OUTCOME_NOT_MET || op->outcome == HAPAX_OUTCOME_SKIPPED)
			return op->attempt == 0;
		if (op->set_if == HAPAX_SET_IF_ABSENT || record->origin != HAPAX_ORIGIN_SET)
			return would_go;
		/* A value that is there may be refused for its bytes, not for its key. */
		if (op->status == HAPAX_ERR_LIMIT)
			return !model->has_bytes_max;
		return op->outcome == HAPAX_OUTCOME_APPLIED && op->record &&
			op->record->state == HAPAX_STATE_ABSENT;
	case HAPAX_OP_RENEW:
	case HAPAX_OP_RELEASE:
	case HAPAX_OP_PARK:
	case HAPAX_OP_LOAD: break;
	}
	return false;
}

bool model_record_is_lapsed(const struct model_record *record, int64_t now_ms)
{
	return record->state == HAPAX_STATE_CLAIMED && record->lease_ends_ms <= now_ms;
}

void model_record_keep_result(
	const struct model *model, struct model_record *record, const struct hapax_result *result)
{
	record->may_be_cut = false;
	record->kind = HAPAX_RESULT_NONE;
	record->result_class = HAPAX_RESULT_OK;
	record->status = 0;
	record->omitted_bytes = 0;
	record->headers = (struct model_text){0};
	record->body_size = 0;
	if (!result)
		return;
	record->kind = result->kind;
	record->result_class = result->result_class;
	record->status = result->status;
	record->omitted_bytes = result->omitted_bytes;
	record->headers = model_text_of(result->headers);
	if (result->body.size > model->result_size_max) {
		record->omitted_bytes = result->body.size;
	} else if (result->body.size) {
		record->body_size = result->body.size;
		memcpy(record->body, result->body.data, result->body.size);
	}
}
