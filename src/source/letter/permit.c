/* SPDX-License-Identifier: Apache-2.0 */
#include "source/letter/permit.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"

enum { SCRATCH_SIZE_MAX = 128 * 1024 * 1024, RECORD_SIZE_MAX = 64 * 1024 * 1024 };

enum hapax_status hx_permit_init(
	struct hx_permit *permit, const struct hx_letters *letters, struct hapax_error *err)
{
	permit->store = letters->store;
	hx_buf_init(&permit->scratch, SCRATCH_SIZE_MAX);
	hx_buf_init(&permit->buf, RECORD_SIZE_MAX);
	permit->envelope = hx_alloc_zero(1, sizeof(*permit->envelope));
	if (permit->envelope == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	hx_envelope_init(permit->envelope);
	return hx_identity_init(&permit->identity, letters->strategy, letters->key_options, err);
}

void hx_permit_done(struct hx_permit *permit)
{
	hx_identity_done(&permit->identity);
	if (permit->envelope != NULL)
		hx_envelope_done(permit->envelope);
	hx_free(permit->envelope);
	hx_buf_done(&permit->scratch);
	hx_buf_done(&permit->buf);
}

static enum hapax_status change(
	struct hx_permit *permit, const struct hapax_record *record, struct hapax_op *op,
	struct hapax_error *err)
{
	op->record = NULL;
	op->buf = NULL;
	if (record->state == HAPAX_STATE_PARKED) {
		op->type = HAPAX_OP_RELEASE;
		op->token = record->token;
		op->error = HX_BYTES_LIT("resolved: sent again from the dead letters");
	} else if (
		record->state == HAPAX_STATE_DONE &&
		record->result.result_class == HAPAX_RESULT_DEFINITIVE) {
		op->type = HAPAX_OP_FORGET;
	} else {
		return HAPAX_OK;
	}
	return hapax_store_run(permit->store, op, 1, err);
}

static enum hapax_status run_key(
	struct hx_permit *permit, const struct hapax_key *scope, struct hapax_bytes key,
	struct hapax_error *err)
{
	struct hapax_record record;
	struct hapax_op op = {
		.type = HAPAX_OP_LOOKUP,
		.tenant = hx_bytes(scope->tenant, scope->tenant_size),
		.group = hx_bytes(scope->group, scope->group_size),
		.key = key,
		.record = &record,
		.buf = &permit->buf,
	};
	enum hapax_status status = hapax_store_run(permit->store, &op, 1, err);

	if (status != HAPAX_OK || op.outcome != HAPAX_OUTCOME_FOUND)
		return status;
	return change(permit, &record, &op, err);
}

enum hapax_status hx_permit_run(
	struct hx_permit *permit, const struct hapax_message *message, struct hapax_bytes dead_key,
	struct hapax_error *err)
{
	struct hapax_key key = HAPAX_KEY_INIT;
	enum hapax_status status;
	bool lacks_id;

	if (hx_envelope_read(permit->envelope, message, NULL) != HAPAX_OK ||
	    hx_identity_make(
		    &permit->identity, permit->envelope, &permit->scratch, &key, &lacks_id, NULL) !=
		    HAPAX_OK ||
	    key.kind == HAPAX_KEY_NONE)
		return HAPAX_OK;
	status = run_key(permit, &key, hx_bytes(key.key, key.key_size), err);
	if (status == HAPAX_OK && key.also_size > 0)
		status = run_key(permit, &key, hx_bytes(key.also, key.also_size), err);
	if (status == HAPAX_OK && dead_key.size > 0 && dead_key.size <= HAPAX_KEY_SIZE_MAX &&
	    !hx_bytes_equal(dead_key, hx_bytes(key.key, key.key_size)))
		status = run_key(permit, &key, dead_key, err);
	return status;
}
