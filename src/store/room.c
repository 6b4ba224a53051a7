/* SPDX-License-Identifier: Apache-2.0 */
#include "store/room.h"

#include <string.h>

#include "record/record.h"
#include "store/core.h"

/* The size of the record that the operation hands out if it changes something. */
static size_t size_wanted(const struct hapax_op *op)
{
	const struct hapax_result *result = op->result;

	if (hx_room_may_grow(op))
		return HX_ROOM_FIRST;
	if (op->type == HAPAX_OP_LOOKUP)
		return 0;
	if (op->type == HAPAX_OP_COMPLETE && result != NULL)
		return hx_room_name_size(op) + HX_CAUSE_SIZE_MAX + result->headers.size +
			result->body.size;
	if (op->type != HAPAX_OP_LOAD)
		return hx_room_name_size(op) + HX_ROOM_PEOPLE_MAX;
	result = &op->load->result;
	return hx_room_name_size(op) + HX_ROOM_PEOPLE_MAX + result->headers.size +
		result->body.size;
}

enum hapax_status hx_room_reserve(struct hapax_op *op)
{
	size_t wanted;
	enum hapax_status status;

	if (op->record == NULL || hx_room_is_all(op))
		return HAPAX_OK;
	wanted = size_wanted(op);
	hx_buf_clear(op->buf);
	/* The server decides with the room there is. */
	if (wanted >= op->buf->size_max) {
		wanted = op->buf->size_max;
		op->private_state |= HX_ROOM_IS_ALL;
	}
	status = hx_buf_reserve(op->buf, wanted);
	if (status != HAPAX_OK)
		hx_store_refuse(op, status);
	return status;
}

bool hx_room_make(struct hapax_op *op, size_t size)
{
	enum hapax_status status;

	if (op->record == NULL || hx_room_is_all(op))
		return false;
	hx_buf_clear(op->buf);
	status = hx_buf_reserve(op->buf, size);
	if (status != HAPAX_OK)
		op->private_state |= HX_ROOM_IS_ALL;
	if (status == HAPAX_ERR_NO_MEMORY)
		op->private_state |= HX_ROOM_NO_MEMORY;
	return true;
}

enum hapax_status hx_room_status(const struct hapax_op *op)
{
	return op->private_state & HX_ROOM_NO_MEMORY ? HAPAX_ERR_NO_MEMORY : HAPAX_ERR_LIMIT;
}

void hx_room_fill(struct hapax_op *op, struct hapax_record *record)
{
	enum hapax_status status = HAPAX_ERR_CORRUPT;

	record->tenant = op->tenant;
	record->group = op->group;
	record->key = op->key;
	if (hx_record_is_valid(record))
		status = hx_record_copy(record, op->record, op->buf);
	if (status != HAPAX_OK)
		hx_store_refuse(op, status);
}

void hx_room_fill_made(struct hapax_op *op, int64_t now_ms, int64_t lease_ends_ms)
{
	bool is_claim = op->type == HAPAX_OP_CLAIM;
	struct hapax_record record = {
		.state = is_claim ? HAPAX_STATE_CLAIMED : HAPAX_STATE_DONE,
		.origin = is_claim ? HAPAX_ORIGIN_CLAIM : HAPAX_ORIGIN_CHECK,
		.attempt = 1,
		.token = op->token,
		.first_seen_ms = now_ms,
		.changed_ms = now_ms,
		.lease_ends_ms = lease_ends_ms,
		.expires_ms = op->expires_ms,
		.ttl_ms = op->ttl_ms,
	};

	if (op->record == NULL)
		return;
	if (op->fingerprint != NULL) {
		record.fingerprint_size = HAPAX_FINGERPRINT_SIZE;
		memcpy(record.fingerprint, op->fingerprint, HAPAX_FINGERPRINT_SIZE);
	}
	if (is_claim) {
		record.on_lapse = op->on_lapse;
		record.owner = op->owner;
		record.cause = op->cause;
		memcpy(record.attempt_id, op->attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	}
	hx_room_fill(op, &record);
}
