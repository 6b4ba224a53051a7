/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - invariants of every record, and copies of it.
 */
#include "record/record.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/cause.h"

static bool bytes_fit(struct hapax_bytes bytes, size_t size_max)
{
	return bytes.size <= size_max && (bytes.size == 0 || bytes.data != NULL);
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
	static const unsigned char zeros[HAPAX_FINGERPRINT_SIZE];

	assert(size <= sizeof(zeros));
	return memcmp(bytes, zeros, size) == 0;
}

static bool fingerprint_is_valid(const struct hapax_record *record)
{
	uint32_t size = record->fingerprint_size;

	if (size != 0 && size != HAPAX_FINGERPRINT_SHORT_SIZE && size != HAPAX_FINGERPRINT_SIZE)
		return false;
	return is_zero(record->fingerprint + size, HAPAX_FINGERPRINT_SIZE - size);
}

static bool result_is_empty(const struct hapax_result *result)
{
	return result->kind == HAPAX_RESULT_NONE && result->result_class == HAPAX_RESULT_OK &&
		result->status == 0 && result->omitted_bytes == 0 && result->headers.size == 0 &&
		result->body.size == 0;
}

static bool result_is_valid(const struct hapax_result *result)
{
	return result->kind <= HAPAX_RESULT_EXEC &&
		result->result_class <= HAPAX_RESULT_DEFINITIVE &&
		bytes_fit(result->headers, HX_RESULT_HEADERS_SIZE_MAX) &&
		bytes_fit(result->body, HX_RESULT_SIZE_LIMIT) &&
		(result->omitted_bytes == 0 || result->body.size == 0);
}

static bool lengths_are_valid(const struct hapax_record *record)
{
	return record->key.size >= 1 && bytes_fit(record->key, HX_KEY_SIZE_MAX) &&
		record->tenant.size >= 1 && bytes_fit(record->tenant, HX_SCOPE_PART_SIZE_MAX) &&
		record->group.size >= 1 && bytes_fit(record->group, HX_SCOPE_PART_SIZE_MAX) &&
		bytes_fit(record->owner, HX_OWNER_SIZE_MAX) &&
		bytes_fit(record->error, HX_ERROR_TEXT_SIZE_MAX);
}

static bool times_are_valid(const struct hapax_record *record)
{
	if (record->first_seen_ms > record->changed_ms || record->ttl_ms <= 0)
		return false;
	if (record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED)
		return record->expires_ms == HAPAX_TIME_NEVER;
	return record->lease_ends_ms == 0;
}

static bool state_parts_are_valid(const struct hapax_record *record)
{
	switch (record->state) {
	case HAPAX_STATE_CLAIMED: return result_is_empty(&record->result);
	case HAPAX_STATE_PARKED:
		return result_is_empty(&record->result) && record->lease_ends_ms == 0;
	case HAPAX_STATE_FAILED:
		return result_is_empty(&record->result) &&
			is_zero(record->attempt_id, sizeof(record->attempt_id));
	case HAPAX_STATE_DONE:
		return result_is_valid(&record->result) && record->owner.size == 0 &&
			record->error.size == 0 &&
			is_zero(record->attempt_id, sizeof(record->attempt_id));
	case HAPAX_STATE_ABSENT: break;
	}
	return false;
}

/* A mark and a value that was set have no event: theirs would cost more than the rest of them. */
static bool cause_is_allowed(const struct hapax_record *record)
{
	return record->cause.size == 0 || record->origin == HAPAX_ORIGIN_CLAIM;
}

bool hx_record_is_valid(const struct hapax_record *record)
{
	return record->token >= 1 && record->token <= HX_TOKEN_MAX && record->attempt >= 1 &&
		record->origin <= HAPAX_ORIGIN_SET && record->on_lapse <= HAPAX_ON_LAPSE_PARK &&
		fingerprint_is_valid(record) && lengths_are_valid(record) &&
		times_are_valid(record) && state_parts_are_valid(record) &&
		cause_is_allowed(record) && hx_cause_is_valid(record->cause);
}

void hx_record_assert(const struct hapax_record *record)
{
	assert(record->state >= HAPAX_STATE_CLAIMED);
	assert(record->state <= HAPAX_STATE_PARKED);
	assert(record->token >= 1);
	assert(record->token <= HX_TOKEN_MAX);
	assert(record->attempt >= 1);
	assert(record->origin <= HAPAX_ORIGIN_SET);
	assert(record->on_lapse <= HAPAX_ON_LAPSE_PARK);
	assert(fingerprint_is_valid(record));
	assert(lengths_are_valid(record));
	assert(record->first_seen_ms <= record->changed_ms);
	assert(times_are_valid(record));
	assert(state_parts_are_valid(record));
	assert(cause_is_allowed(record));
	assert(hx_cause_fits(record->cause));
}

bool hx_record_is_expired(const struct hapax_record *record, int64_t now_ms)
{
	/* CLAIMED and PARKED hold HAPAX_TIME_NEVER, which no clock reaches. */
	return record->expires_ms <= now_ms;
}

bool hx_record_is_lapsed(const struct hapax_record *record, int64_t now_ms)
{
	assert(record->state != HAPAX_STATE_CLAIMED || record->expires_ms == HAPAX_TIME_NEVER);
	return record->state == HAPAX_STATE_CLAIMED && record->lease_ends_ms <= now_ms;
}

void hx_record_result_omit_body(struct hapax_result *result)
{
	if (result->body.size == 0)
		return;
	/* A result has a body or the size of one, so nothing is overwritten here. */
	assert(result->omitted_bytes == 0);
	result->omitted_bytes = result->body.size;
	result->body = hx_bytes(NULL, 0);
}

/* Append one part and point it at its copy. Room was reserved, so nothing moves. */
static void copy_part(struct hapax_bytes *part, struct hapax_buf *buf)
{
	unsigned char *at;

	assert(buf->size <= buf->capacity);
	assert(buf->capacity - buf->size >= part->size);
	/* A result that is in a file has a size and no data: its caller must leave it out. */
	assert(part->size == 0 || part->data != NULL);
	/* A record without any bytes needs no room: buf then has no address to count from. */
	if (buf->data == NULL) {
		part->data = NULL;
		return;
	}
	at = buf->data + buf->size;
	/* The source lies outside of buf, which was cleared: it would be overwritten here. */
	assert((uintptr_t)part->data - (uintptr_t)buf->data >= buf->capacity || part->size == 0);
	if (part->size != 0)
		memcpy(at, part->data, part->size);
	buf->size += part->size;
	part->data = at;
}

enum hapax_status hx_record_copy(
	const struct hapax_record *source, struct hapax_record *ret_target, struct hapax_buf *buf)
{
	/* Every part is bounded by limits.h, so this sum cannot overflow. */
	size_t size = source->tenant.size + source->group.size + source->key.size +
		source->owner.size + source->error.size + source->cause.size +
		source->result.headers.size + source->result.body.size;
	enum hapax_status status;

	hx_buf_clear(buf);
	status = hx_buf_reserve(buf, size);
	if (status != HAPAX_OK)
		return status;
	*ret_target = *source;
	copy_part(&ret_target->tenant, buf);
	copy_part(&ret_target->group, buf);
	copy_part(&ret_target->key, buf);
	copy_part(&ret_target->owner, buf);
	copy_part(&ret_target->error, buf);
	copy_part(&ret_target->cause, buf);
	copy_part(&ret_target->result.headers, buf);
	copy_part(&ret_target->result.body, buf);
	assert(buf->size == size);
	assert(buf->data == NULL || ret_target->tenant.data == buf->data);
	assert(buf->data == NULL ||
	       (uintptr_t)ret_target->result.body.data + ret_target->result.body.size ==
		       (uintptr_t)buf->data + size);
	return HAPAX_OK;
}
