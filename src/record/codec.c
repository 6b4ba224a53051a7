/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.c - a record as bytes.
 *
 * Little-endian. Offsets of version 1:
 *
 *	  0  u8   version, 1
 *	  1  u8   state
 *	  2  u8   origin
 *	  3  u8   on_lapse
 *	  4  u8   size of the fingerprint: 0, 16 or 32
 *	  5  u8   result kind
 *	  6  u8   result class
 *	  7  u8   zero
 *	  8  u32  size of all, the variable parts included
 *	 12  u32  attempt
 *	 16  u64  token
 *	 24  i64  first_seen_ms
 *	 32  i64  changed_ms
 *	 40  i64  lease_ends_ms
 *	 48  i64  expires_ms
 *	 56  i64  ttl_ms
 *	 64  32 B fingerprint
 *	 96  16 B attempt_id
 *	112  i32  result status
 *	116  u32  size of result headers
 *	120  u64  result omitted_bytes
 *	128  u32  size of result body
 *	132  u16  size of tenant
 *	134  u16  size of group
 *	136  u16  size of key
 *	138  u16  size of owner
 *	140  u16  size of error
 *	142  u16  size of cause
 *	144  32 B zero: room for later versions
 *	176       tenant, group, key, owner, error, cause, headers, body, without gaps
 *
 *  (1) Decode accepts only a valid record (record.h), and encoding it again gives the same
 *      bytes. Nonzero reserved bytes are refused, so that a flipped bit cannot hide in them.
 *  (2) Every length is checked against the available bytes before it is used.
 */
#include "record/codec.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"

enum { CODEC_VERSION = 1 };

enum offset {
	AT_VERSION = 0,
	AT_STATE = 1,
	AT_ORIGIN = 2,
	AT_ON_LAPSE = 3,
	AT_PRINT_SIZE = 4,
	AT_KIND = 5,
	AT_CLASS = 6,
	AT_ZERO = 7,
	AT_SIZE = 8,
	AT_ATTEMPT = 12,
	AT_TOKEN = 16,
	AT_FIRST_SEEN = 24,
	AT_CHANGED = 32,
	AT_LEASE_ENDS = 40,
	AT_EXPIRES = 48,
	AT_TTL = 56,
	AT_PRINT = 64,
	AT_ATTEMPT_ID = 96,
	AT_STATUS = 112,
	AT_HEADERS_SIZE = 116,
	AT_OMITTED = 120,
	AT_BODY_SIZE = 128,
	AT_TENANT_SIZE = 132,
	AT_GROUP_SIZE = 134,
	AT_KEY_SIZE = 136,
	AT_OWNER_SIZE = 138,
	AT_ERROR_SIZE = 140,
	AT_CAUSE_SIZE = 142,
	AT_RESERVED = 144,
};

_Static_assert(AT_PRINT + HAPAX_FINGERPRINT_SIZE == AT_ATTEMPT_ID, "fingerprint fills its field");
_Static_assert(AT_ATTEMPT_ID + HAPAX_ATTEMPT_ID_SIZE == AT_STATUS, "attempt_id fills its field");
_Static_assert(AT_RESERVED + 32 == HX_RECORD_HEADER_SIZE, "the header ends behind its reserve");
_Static_assert(HX_RECORD_HEADER_SIZE % 16 == 0, "frames align records to 16 bytes");
_Static_assert(
	HX_KEY_SIZE_MAX <= UINT16_MAX && HX_ERROR_TEXT_SIZE_MAX <= UINT16_MAX, "sizes fit u16");

static void put16(unsigned char *at, uint64_t value)
{
	at[0] = (unsigned char)value;
	at[1] = (unsigned char)(value >> 8);
}

static void put32(unsigned char *at, uint64_t value)
{
	put16(at, value);
	put16(at + 2, value >> 16);
}

static void put64(unsigned char *at, uint64_t value)
{
	put32(at, value);
	put32(at + 4, value >> 32);
}

static uint16_t get16(const unsigned char *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const unsigned char *at)
{
	return (uint32_t)get16(at) | (uint32_t)get16(at + 2) << 16;
}

static uint64_t get64(const unsigned char *at)
{
	return (uint64_t)get32(at) | (uint64_t)get32(at + 4) << 32;
}

size_t hx_record_encoded_size(const struct hapax_record *record)
{
	return HX_RECORD_HEADER_SIZE + record->tenant.size + record->group.size + record->key.size +
		record->owner.size + record->error.size + record->cause.size +
		record->result.headers.size + record->result.body.size;
}

static void encode_header(const struct hapax_record *record, size_t size, unsigned char *at)
{
	assert(size >= HX_RECORD_HEADER_SIZE);
	assert(size <= UINT32_MAX);
	memset(at, 0, HX_RECORD_HEADER_SIZE);
	at[AT_VERSION] = CODEC_VERSION;
	at[AT_STATE] = (unsigned char)record->state;
	at[AT_ORIGIN] = (unsigned char)record->origin;
	at[AT_ON_LAPSE] = (unsigned char)record->on_lapse;
	at[AT_PRINT_SIZE] = (unsigned char)record->fingerprint_size;
	at[AT_KIND] = (unsigned char)record->result.kind;
	at[AT_CLASS] = (unsigned char)record->result.result_class;
	put32(at + AT_SIZE, size);
	put32(at + AT_ATTEMPT, record->attempt);
	put64(at + AT_TOKEN, record->token);
	put64(at + AT_FIRST_SEEN, (uint64_t)record->first_seen_ms);
	put64(at + AT_CHANGED, (uint64_t)record->changed_ms);
	put64(at + AT_LEASE_ENDS, (uint64_t)record->lease_ends_ms);
	put64(at + AT_EXPIRES, (uint64_t)record->expires_ms);
	put64(at + AT_TTL, (uint64_t)record->ttl_ms);
	memcpy(at + AT_PRINT, record->fingerprint, sizeof(record->fingerprint));
	memcpy(at + AT_ATTEMPT_ID, record->attempt_id, sizeof(record->attempt_id));
	put32(at + AT_STATUS, (uint32_t)record->result.status);
	put32(at + AT_HEADERS_SIZE, record->result.headers.size);
	put64(at + AT_OMITTED, record->result.omitted_bytes);
	put32(at + AT_BODY_SIZE, record->result.body.size);
	put16(at + AT_TENANT_SIZE, record->tenant.size);
	put16(at + AT_GROUP_SIZE, record->group.size);
	put16(at + AT_KEY_SIZE, record->key.size);
	put16(at + AT_OWNER_SIZE, record->owner.size);
	put16(at + AT_ERROR_SIZE, record->error.size);
	put16(at + AT_CAUSE_SIZE, record->cause.size);
}

static void decode_header(const unsigned char *at, struct hapax_record *record)
{
	memset(record, 0, sizeof(*record));
	record->state = (enum hapax_state)at[AT_STATE];
	record->origin = (enum hapax_origin)at[AT_ORIGIN];
	record->on_lapse = (enum hapax_on_lapse)at[AT_ON_LAPSE];
	record->fingerprint_size = at[AT_PRINT_SIZE];
	record->result.kind = (enum hapax_result_kind)at[AT_KIND];
	record->result.result_class = (enum hapax_result_class)at[AT_CLASS];
	record->attempt = get32(at + AT_ATTEMPT);
	record->token = get64(at + AT_TOKEN);
	record->first_seen_ms = (int64_t)get64(at + AT_FIRST_SEEN);
	record->changed_ms = (int64_t)get64(at + AT_CHANGED);
	record->lease_ends_ms = (int64_t)get64(at + AT_LEASE_ENDS);
	record->expires_ms = (int64_t)get64(at + AT_EXPIRES);
	record->ttl_ms = (int64_t)get64(at + AT_TTL);
	memcpy(record->fingerprint, at + AT_PRINT, sizeof(record->fingerprint));
	memcpy(record->attempt_id, at + AT_ATTEMPT_ID, sizeof(record->attempt_id));
	record->result.status = (int32_t)get32(at + AT_STATUS);
	record->result.omitted_bytes = get64(at + AT_OMITTED);
	record->tenant.size = get16(at + AT_TENANT_SIZE);
	record->group.size = get16(at + AT_GROUP_SIZE);
	record->key.size = get16(at + AT_KEY_SIZE);
	record->owner.size = get16(at + AT_OWNER_SIZE);
	record->error.size = get16(at + AT_ERROR_SIZE);
	record->cause.size = get16(at + AT_CAUSE_SIZE);
	record->result.headers.size = get32(at + AT_HEADERS_SIZE);
	record->result.body.size = get32(at + AT_BODY_SIZE);
}

/* Every field of the header at at reads back as it was written. */
static void header_assert(const struct hapax_record *record, const unsigned char *at)
{
	struct hapax_record back;

	decode_header(at, &back);
	assert(back.state == record->state);
	assert(back.origin == record->origin);
	assert(back.on_lapse == record->on_lapse);
	assert(back.fingerprint_size == record->fingerprint_size);
	assert(back.result.kind == record->result.kind);
	assert(back.result.result_class == record->result.result_class);
	assert(back.attempt == record->attempt);
	assert(back.token == record->token);
	assert(back.first_seen_ms == record->first_seen_ms);
	assert(back.changed_ms == record->changed_ms);
	assert(back.lease_ends_ms == record->lease_ends_ms);
	assert(back.expires_ms == record->expires_ms);
	assert(back.ttl_ms == record->ttl_ms);
	assert(memcmp(back.fingerprint, record->fingerprint, sizeof(back.fingerprint)) == 0);
	assert(memcmp(back.attempt_id, record->attempt_id, sizeof(back.attempt_id)) == 0);
	assert(back.result.status == record->result.status);
	assert(back.result.omitted_bytes == record->result.omitted_bytes);
	assert(back.result.headers.size == record->result.headers.size);
	assert(back.result.body.size == record->result.body.size);
	assert(back.tenant.size == record->tenant.size);
	assert(back.group.size == record->group.size);
	assert(back.key.size == record->key.size);
	assert(back.owner.size == record->owner.size);
	assert(back.error.size == record->error.size);
	assert(back.cause.size == record->cause.size);
	assert(hx_record_encoded_size(&back) == get32(at + AT_SIZE));
}

enum hapax_status hx_record_encode(const struct hapax_record *record, struct hapax_buf *buf)
{
	const struct hapax_bytes parts[] = {
		record->tenant,         record->group,       record->key,
		record->owner,          record->error,       record->cause,
		record->result.headers, record->result.body,
	};
	size_t size = hx_record_encoded_size(record);
	enum hapax_status status = hx_buf_reserve(buf, size);
	unsigned char *at;

	hx_record_assert(record);
	if (status != HAPAX_OK)
		return status;
	at = buf->data + buf->size;
	encode_header(record, size, at);
	header_assert(record, at);
	at += HX_RECORD_HEADER_SIZE;
	for (size_t i = 0; i < HX_COUNT(parts); i++) {
		if (parts[i].size != 0)
			memcpy(at, parts[i].data, parts[i].size);
		at += parts[i].size;
	}
	buf->size += size;
	assert(at == buf->data + buf->size);
	return HAPAX_OK;
}

static enum hapax_status corrupt(struct hapax_error *err, size_t offset, const char *what)
{
	return hx_error_set(
		err, HAPAX_ERR_CORRUPT, 0, "record damaged at offset %zu: %s", offset, what);
}

static void decode_parts(const unsigned char *at, struct hapax_record *record)
{
	struct hapax_bytes *const parts[] = {
		&record->tenant,         &record->group,       &record->key,
		&record->owner,          &record->error,       &record->cause,
		&record->result.headers, &record->result.body,
	};

	for (size_t i = 0; i < HX_COUNT(parts); i++) {
		parts[i]->data = at;
		at += parts[i]->size;
	}
}

enum hapax_status hx_record_decode(
	struct hapax_bytes bytes, struct hapax_record *ret_record, size_t *ret_size,
	struct hapax_error *err)
{
	static const unsigned char zeros[HX_RECORD_HEADER_SIZE - AT_RESERVED];
	const unsigned char *at = bytes.data;
	struct hapax_record record;
	size_t size;

	if (bytes.size < HX_RECORD_HEADER_SIZE)
		return corrupt(err, bytes.size, "the header is truncated");
	if (at[AT_VERSION] != CODEC_VERSION)
		return corrupt(err, AT_VERSION, "unknown version");
	if (at[AT_ZERO] != 0 || memcmp(at + AT_RESERVED, zeros, sizeof(zeros)) != 0)
		return corrupt(err, AT_RESERVED, "reserved bytes are not zero");
	decode_header(at, &record);
	size = hx_record_encoded_size(&record);
	if (get32(at + AT_SIZE) != size)
		return corrupt(err, AT_SIZE, "the sizes do not add up");
	if (size > bytes.size)
		return corrupt(err, bytes.size, "the record is truncated");
	decode_parts(at + HX_RECORD_HEADER_SIZE, &record);
	if (!hx_record_is_valid(&record))
		return corrupt(err, AT_STATE, "invalid record");
	/* The parts fill the record to its end: encoding it again gives the same bytes. */
	assert((uintptr_t)record.result.body.data + record.result.body.size ==
	       (uintptr_t)at + size);
	*ret_record = record;
	*ret_size = size;
	return HAPAX_OK;
}
