/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.c - a record in memory.
 *
 *	narrow form                     wide form
 *	 0  u16  head                    0  u16  head
 *	 2  u16  profile                 2  u32  profile
 *	 4  u32  expires - base, ms      6  i64  expires
 *	 8  i32  token - base           14  u64  token
 *	12       parts                  22       parts
 *
 * Parts, in this order, if the head or a byte before them announces them:
 *
 *	key          uuid: 16 bytes; hex: u8 size, bytes; raw: u16 size, bytes
 *	fingerprint  its first 16 bytes
 *	more         u8 of enum more, then those announced: varint changed - first_seen,
 *	             varint attempt, zigzag changed - base, zigzag lease_ends - base,
 *	             16 bytes attempt_id, owner (u8 size), error (u16 size), i64 ttl
 *	cause        u16 size, bytes
 *	result       u8 of kind, class and what follows: zigzag status, varint omitted,
 *	             varint size and headers, varint size and body; if they are elsewhere,
 *	             the sizes alone, then u16 file, u32 CRC, varint offset
 *
 * A record begins at an even address, for its atomic head, and is padded to even.
 *
 *  (1) Read returns all that write stored, except the second half of a fingerprint.
 *  (2) Without "changed" in more, changed is expires - ttl, as complete left it.
 */
#include "store/index/packed.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "base/limits.h"

enum more {
	MORE_AGE = 1 << 0,
	MORE_ATTEMPT = 1 << 1,
	MORE_CHANGED = 1 << 2,
	MORE_LEASE = 1 << 3,
	MORE_ATTEMPT_ID = 1 << 4,
	MORE_OWNER = 1 << 5,
	MORE_ERROR = 1 << 6,
	MORE_TTL = 1 << 7,
};

enum result_bits {
	RESULT_KIND_MASK = 3,
	RESULT_DEFINITIVE = 1 << 2,
	RESULT_STATUS = 1 << 3,
	RESULT_OMITTED = 1 << 4,
	RESULT_HEADERS = 1 << 5,
	RESULT_BODY = 1 << 6,
	RESULT_ELSEWHERE = 1 << 7,
};

/* No other bit of a record changes, once it is published. */
static void head_set(unsigned char *at, uint16_t bits)
{
	assert(((uintptr_t)at & 1) == 0);
	assert((bits & ~HX_HEAD_CHANGES) == 0);
	atomic_fetch_or_explicit((_Atomic uint16_t *)(void *)at, bits, memory_order_relaxed);
}

static void head_clear(unsigned char *at, uint16_t bits)
{
	assert(((uintptr_t)at & 1) == 0);
	/* A dead record stays dead: the index may point at another record by now. */
	assert((bits & ~(HX_HEAD_FRESH | HX_HEAD_HIT)) == 0);
	atomic_fetch_and_explicit(
		(_Atomic uint16_t *)(void *)at, (uint16_t)~bits, memory_order_relaxed);
}

static size_t varint_size(uint64_t value)
{
	size_t size = 1;

	while (value >= 0x80) {
		value >>= 7;
		size++;
	}
	assert(size <= 10);
	return size;
}

static int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static uint64_t zigzag(int64_t value)
{
	uint64_t folded = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);

	assert(unzigzag(folded) == value);
	return folded;
}

/* A write position and a read position. Sizes were computed before. */
static void write_bytes(unsigned char **at, const void *data, size_t size)
{
	if (size != 0)
		memcpy(*at, data, size);
	*at += size;
}

static void write_varint(unsigned char **at, uint64_t value)
{
	while (value >= 0x80) {
		*(*at)++ = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	*(*at)++ = (unsigned char)value;
}

static uint64_t read_varint(const unsigned char **at)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (**at & 0x80) {
		value |= (uint64_t)(*(*at)++ & 0x7f) << shift;
		shift += 7;
		assert(shift < 64);
	}
	return value | (uint64_t) * (*at)++ << shift;
}

static struct hapax_bytes read_bytes(const unsigned char **at, size_t size)
{
	struct hapax_bytes bytes = hx_bytes(*at, size);

	*at += size;
	return bytes;
}

static void write_sized(unsigned char **at, struct hapax_bytes bytes)
{
	uint16_t size = (uint16_t)bytes.size;

	assert(size == bytes.size);
	write_bytes(at, &size, sizeof(size));
	write_bytes(at, bytes.data, bytes.size);
}

static struct hapax_bytes read_sized(const unsigned char **at)
{
	size_t size = hx_packed_load16(*at);

	*at += sizeof(uint16_t);
	return read_bytes(at, size);
}

/* The parts of a record that do not fit the narrow form. */

static bool is_wide(
	const struct hapax_record *record, const struct hx_packed_base *base, uint32_t profile_id)
{
	int64_t expires = hx_packed_difference(record->expires_ms, base->ms);
	int64_t token = hx_packed_difference((int64_t)record->token, (int64_t)base->token);

	return profile_id > UINT16_MAX || token < INT32_MIN || token > INT32_MAX ||
		(record->expires_ms != HAPAX_TIME_NEVER && (expires < 0 || expires >= UINT32_MAX));
}

static bool changed_is_implied(const struct hapax_record *record)
{
	return record->expires_ms != HAPAX_TIME_NEVER && record->ttl_ms != INT64_MAX &&
		record->changed_ms == hx_packed_difference(record->expires_ms, record->ttl_ms);
}

static unsigned more_bits(const struct hapax_record *record, bool ttl_is_own)
{
	static const unsigned char zeros[HAPAX_ATTEMPT_ID_SIZE];
	unsigned bits = 0;

	assert(record->first_seen_ms <= record->changed_ms);
	/* Only a claim has room for a lease: another one would be lost. */
	assert(record->state == HAPAX_STATE_CLAIMED || record->lease_ends_ms == 0);
	if (record->changed_ms != record->first_seen_ms)
		bits |= MORE_AGE;
	if (record->attempt != 1)
		bits |= MORE_ATTEMPT;
	if (!changed_is_implied(record))
		bits |= MORE_CHANGED;
	if (record->state == HAPAX_STATE_CLAIMED)
		bits |= MORE_LEASE;
	if (memcmp(record->attempt_id, zeros, sizeof(zeros)) != 0)
		bits |= MORE_ATTEMPT_ID;
	if (record->owner.size != 0)
		bits |= MORE_OWNER;
	if (record->error.size != 0)
		bits |= MORE_ERROR;
	if (ttl_is_own)
		bits |= MORE_TTL;
	return bits;
}

static size_t more_size(
	const struct hapax_record *record, const struct hx_packed_base *base, unsigned bits)
{
	size_t size = 1;

	if (bits & MORE_AGE)
		size += varint_size(
			(uint64_t)hx_packed_difference(record->changed_ms, record->first_seen_ms));
	if (bits & MORE_ATTEMPT)
		size += varint_size(record->attempt);
	if (bits & MORE_CHANGED)
		size += varint_size(zigzag(hx_packed_difference(record->changed_ms, base->ms)));
	if (bits & MORE_LEASE)
		size += varint_size(zigzag(hx_packed_difference(record->lease_ends_ms, base->ms)));
	if (bits & MORE_ATTEMPT_ID)
		size += HAPAX_ATTEMPT_ID_SIZE;
	if (bits & MORE_OWNER)
		size += 1 + record->owner.size;
	if (bits & MORE_ERROR)
		size += 2 + record->error.size;
	if (bits & MORE_TTL)
		size += sizeof(int64_t);
	return size;
}

static void write_more(
	unsigned char **at, const struct hapax_record *record, const struct hx_packed_base *base,
	unsigned bits)
{
	*(*at)++ = (unsigned char)bits;
	if (bits & MORE_AGE)
		write_varint(
			at,
			(uint64_t)hx_packed_difference(record->changed_ms, record->first_seen_ms));
	if (bits & MORE_ATTEMPT)
		write_varint(at, record->attempt);
	if (bits & MORE_CHANGED)
		write_varint(at, zigzag(hx_packed_difference(record->changed_ms, base->ms)));
	if (bits & MORE_LEASE)
		write_varint(at, zigzag(hx_packed_difference(record->lease_ends_ms, base->ms)));
	if (bits & MORE_ATTEMPT_ID)
		write_bytes(at, record->attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	if (bits & MORE_OWNER) {
		assert(record->owner.size <= UINT8_MAX);
		*(*at)++ = (unsigned char)record->owner.size;
		write_bytes(at, record->owner.data, record->owner.size);
	}
	if (bits & MORE_ERROR)
		write_sized(at, record->error);
	if (bits & MORE_TTL)
		write_bytes(at, &record->ttl_ms, sizeof(record->ttl_ms));
}

/* record holds what the head says; ttl is known unless it is stored here. */
static void read_more(
	const unsigned char **at, const struct hx_packed_base *base, unsigned bits,
	struct hapax_record *record)
{
	uint64_t age = bits & MORE_AGE ? read_varint(at) : 0;
	bool is_implied = !(bits & MORE_CHANGED);

	if (bits & MORE_ATTEMPT)
		record->attempt = (uint32_t)read_varint(at);
	if (!is_implied)
		record->changed_ms = hx_packed_sum(base->ms, unzigzag(read_varint(at)));
	if (bits & MORE_LEASE)
		record->lease_ends_ms = hx_packed_sum(base->ms, unzigzag(read_varint(at)));
	if (bits & MORE_ATTEMPT_ID)
		memcpy(record->attempt_id, read_bytes(at, HAPAX_ATTEMPT_ID_SIZE).data,
		       HAPAX_ATTEMPT_ID_SIZE);
	if (bits & MORE_OWNER) {
		size_t size = *(*at)++;

		record->owner = read_bytes(at, size);
	}
	if (bits & MORE_ERROR)
		record->error = read_sized(at);
	if (bits & MORE_TTL) {
		record->ttl_ms = (int64_t)hx_packed_load64(*at);
		*at += sizeof(int64_t);
	}
	if (is_implied)
		record->changed_ms = hx_packed_difference(record->expires_ms, record->ttl_ms);
	record->first_seen_ms = hx_packed_difference(record->changed_ms, (int64_t)age);
}

/* Results. */

static unsigned result_bits(const struct hapax_result *result, bool is_elsewhere)
{
	unsigned bits = (unsigned)result->kind;

	assert(bits <= RESULT_KIND_MASK);
	assert(result->omitted_bytes == 0 || result->body.size == 0);
	assert(!is_elsewhere || hx_result_bytes(result) > HX_RESULT_IN_MEMORY_MAX);
	if (is_elsewhere)
		bits |= RESULT_ELSEWHERE;
	if (result->result_class == HAPAX_RESULT_DEFINITIVE)
		bits |= RESULT_DEFINITIVE;
	if (result->status != 0)
		bits |= RESULT_STATUS;
	if (result->omitted_bytes != 0)
		bits |= RESULT_OMITTED;
	if (result->headers.size != 0)
		bits |= RESULT_HEADERS;
	if (result->body.size != 0)
		bits |= RESULT_BODY;
	return bits;
}

static size_t result_size(
	const struct hapax_result *result, const struct hx_elsewhere *elsewhere, unsigned bits)
{
	size_t size = 1;

	if (bits & RESULT_STATUS)
		size += varint_size(zigzag(result->status));
	if (bits & RESULT_OMITTED)
		size += varint_size(result->omitted_bytes);
	if (bits & RESULT_HEADERS)
		size += varint_size(result->headers.size);
	if (bits & RESULT_BODY)
		size += varint_size(result->body.size);
	if (elsewhere != NULL)
		return size + sizeof(elsewhere->file) + sizeof(elsewhere->crc) +
			varint_size(elsewhere->offset);
	return size + result->headers.size + result->body.size;
}

static void write_result(
	unsigned char **at, const struct hapax_result *result, const struct hx_elsewhere *elsewhere,
	unsigned bits)
{
	size_t headers_here = elsewhere != NULL ? 0 : result->headers.size;
	size_t body_here = elsewhere != NULL ? 0 : result->body.size;

	*(*at)++ = (unsigned char)bits;
	if (bits & RESULT_STATUS)
		write_varint(at, zigzag(result->status));
	if (bits & RESULT_OMITTED)
		write_varint(at, result->omitted_bytes);
	if (bits & RESULT_HEADERS) {
		write_varint(at, result->headers.size);
		write_bytes(at, result->headers.data, headers_here);
	}
	if (bits & RESULT_BODY) {
		write_varint(at, result->body.size);
		write_bytes(at, result->body.data, body_here);
	}
	if (elsewhere != NULL) {
		assert(elsewhere->file != 0);
		assert(elsewhere->file < HX_ELSEWHERE_FILES);
		write_bytes(at, &elsewhere->file, sizeof(elsewhere->file));
		write_bytes(at, &elsewhere->crc, sizeof(elsewhere->crc));
		write_varint(at, elsewhere->offset);
	}
}

/* One of the two parts of a result: its bytes, or only its size. */
static struct hapax_bytes read_part(const unsigned char **at, unsigned bits)
{
	size_t size = (size_t)read_varint(at);

	return bits & RESULT_ELSEWHERE ? hx_bytes(NULL, size) : read_bytes(at, size);
}

/* True: the bytes are elsewhere, and *ret_elsewhere says where. */
static bool read_result(
	const unsigned char **at, struct hapax_result *result, struct hx_elsewhere *ret_elsewhere)
{
	unsigned bits = *(*at)++;

	result->kind = (enum hapax_result_kind)(bits & RESULT_KIND_MASK);
	result->result_class = bits & RESULT_DEFINITIVE ? HAPAX_RESULT_DEFINITIVE : HAPAX_RESULT_OK;
	if (bits & RESULT_STATUS)
		result->status = (int32_t)unzigzag(read_varint(at));
	if (bits & RESULT_OMITTED)
		result->omitted_bytes = read_varint(at);
	if (bits & RESULT_HEADERS)
		result->headers = read_part(at, bits);
	if (bits & RESULT_BODY)
		result->body = read_part(at, bits);
	if (!(bits & RESULT_ELSEWHERE))
		return false;
	ret_elsewhere->file = hx_packed_load16(*at);
	ret_elsewhere->crc = hx_packed_load32(*at + sizeof(uint16_t));
	*at += sizeof(uint16_t) + sizeof(uint32_t);
	ret_elsewhere->offset = read_varint(at);
	assert(ret_elsewhere->file != 0);
	assert(ret_elsewhere->file < HX_ELSEWHERE_FILES);
	assert(hx_result_bytes(result) > HX_RESULT_IN_MEMORY_MAX);
	return true;
}

/* The whole. */

struct hx_packed_shape hx_packed_shape(
	const struct hapax_record *record, const struct hx_elsewhere *elsewhere,
	const struct hx_packed_key *key, const struct hx_packed_base *base, uint32_t profile_id,
	bool ttl_is_own)
{
	struct hx_packed_shape shape = {
		.is_wide = is_wide(record, base, profile_id),
		.more = (uint8_t)more_bits(record, ttl_is_own),
		.result = (uint8_t)result_bits(&record->result, elsewhere != NULL),
	};
	size_t size = (shape.is_wide ? HX_PACKED_WIDE_SIZE : HX_PACKED_NARROW_SIZE) +
		hx_packed_key_part_size(key);

	hx_packed_key_assert(key);
	assert(profile_id != HX_PROFILE_NONE);
	assert(shape.result == 0 || record->state == HAPAX_STATE_DONE);
	if (record->fingerprint_size != 0)
		size += HAPAX_FINGERPRINT_SHORT_SIZE;
	if (shape.more != 0)
		size += more_size(record, base, shape.more);
	if (record->cause.size != 0)
		size += sizeof(uint16_t) + record->cause.size;
	if (shape.result != 0)
		size += result_size(&record->result, elsewhere, shape.result);
	shape.size = (uint32_t)(size + (size & 1));
	assert(shape.size >= size);
	return shape;
}

static uint16_t head_of(
	const struct hapax_record *record, const struct hx_packed_key *key,
	const struct hx_packed_shape *shape)
{
	unsigned head = ((unsigned)record->state - 1) << HX_HEAD_STATE_SHIFT;

	assert(record->state >= HAPAX_STATE_CLAIMED);
	assert(record->state <= HAPAX_STATE_PARKED);
	assert(record->origin <= HAPAX_ORIGIN_SET);
	head |= (unsigned)record->origin << HX_HEAD_ORIGIN_SHIFT;
	head |= (unsigned)key->encoding << HX_HEAD_ENCODING_SHIFT;
	if (record->on_lapse == HAPAX_ON_LAPSE_PARK)
		head |= HX_HEAD_PARK;
	if (record->fingerprint_size != 0)
		head |= HX_HEAD_PRINT;
	if (shape->more != 0)
		head |= HX_HEAD_MORE;
	if (record->cause.size != 0)
		head |= HX_HEAD_CAUSE;
	if (shape->result != 0)
		head |= HX_HEAD_RESULT;
	if (shape->is_wide)
		head |= HX_HEAD_WIDE;
	assert((head & HX_HEAD_CHANGES) == 0);
	return (uint16_t)head;
}

static void write_front(
	unsigned char **at, const struct hapax_record *record, const struct hx_packed_base *base,
	uint32_t profile_id, bool wide)
{
	if (wide) {
		write_bytes(at, &profile_id, sizeof(profile_id));
		write_bytes(at, &record->expires_ms, sizeof(record->expires_ms));
		write_bytes(at, &record->token, sizeof(record->token));
	} else {
		uint16_t profile = (uint16_t)profile_id;
		uint32_t expires = record->expires_ms == HAPAX_TIME_NEVER
			? HX_PACKED_NEVER32
			: (uint32_t)hx_packed_difference(record->expires_ms, base->ms);
		int32_t token =
			(int32_t)hx_packed_difference((int64_t)record->token, (int64_t)base->token);

		write_bytes(at, &profile, sizeof(profile));
		write_bytes(at, &expires, sizeof(expires));
		write_bytes(at, &token, sizeof(token));
	}
}

static void read_front(
	const unsigned char *at, uint16_t head, const struct hx_packed_base *base,
	struct hapax_record *record)
{
	if (head & HX_HEAD_WIDE) {
		record->token = hx_packed_load64(at + 14);
	} else {
		record->token = base->token + (uint64_t)(int64_t)(int32_t)hx_packed_load32(at + 8);
	}
	record->expires_ms = hx_packed_expires_ms(at, base);
	record->state = hx_packed_state(at);
	record->origin = (enum hapax_origin)((head >> HX_HEAD_ORIGIN_SHIFT) & 3);
	record->on_lapse = head & HX_HEAD_PARK ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
	record->attempt = 1;
}

/* What was written at at reads back: the front, and where the parts begin and end. */
static void front_assert(
	const unsigned char *at, const struct hapax_record *record, const struct hx_packed_key *key,
	const struct hx_packed_base *base, uint32_t profile_id)
{
	uint16_t head = hx_packed_head(at);
	const unsigned char *part = hx_packed_parts(at, head);
	struct hapax_record back;

	read_front(at, head, base, &back);
	assert(back.state == record->state);
	assert(back.origin == record->origin);
	assert(back.on_lapse == record->on_lapse);
	assert(back.token == record->token);
	assert(back.expires_ms == record->expires_ms);
	assert(hx_packed_profile(at, head) == profile_id);
	assert(hx_packed_encoding(head) == key->encoding);
	assert(hx_packed_next_key(&part, key->encoding).size == key->size);
}

void hx_packed_write(
	unsigned char *at, const struct hapax_record *record, const struct hx_elsewhere *elsewhere,
	const struct hx_packed_key *key, const struct hx_packed_base *base, uint32_t profile_id,
	struct hx_packed_shape shape)
{
	unsigned char *begin = at;

	assert(((uintptr_t)at & 1) == 0);
	assert(elsewhere != NULL || !hx_result_is_elsewhere(&record->result));
	/* No other thread sees these bytes yet, but the head is atomic for all. */
	atomic_store_explicit(
		(_Atomic uint16_t *)(void *)at, head_of(record, key, &shape), memory_order_relaxed);
	at += sizeof(uint16_t);
	write_front(&at, record, base, profile_id, shape.is_wide);
	at = hx_packed_key_write(at, key);
	if (record->fingerprint_size != 0)
		write_bytes(&at, record->fingerprint, HAPAX_FINGERPRINT_SHORT_SIZE);
	if (shape.more != 0)
		write_more(&at, record, base, shape.more);
	if (record->cause.size != 0)
		write_sized(&at, record->cause);
	if (shape.result != 0)
		write_result(&at, &record->result, elsewhere, shape.result);
	if ((at - begin) & 1)
		*at++ = 0;
	assert((size_t)(at - begin) == shape.size);
	front_assert(begin, record, key, base, profile_id);
}

/* The parts before the result; *at is moved behind them. */
static void skip_to_result(const unsigned char **at, uint16_t head)
{
	static const struct hx_packed_base zero_base;
	struct hapax_record ignored;

	*at = hx_packed_parts(*at, head);
	(void)hx_packed_next_key(at, hx_packed_encoding(head));
	if (head & HX_HEAD_PRINT)
		*at += HAPAX_FINGERPRINT_SHORT_SIZE;
	if (head & HX_HEAD_MORE) {
		unsigned bits = *(*at)++;

		memset(&ignored, 0, sizeof(ignored));
		read_more(at, &zero_base, bits, &ignored);
	}
	if (head & HX_HEAD_CAUSE)
		(void)read_sized(at);
}

size_t hx_packed_read_size(const unsigned char *at)
{
	uint16_t head = hx_packed_head(at);
	const unsigned char *end = at;

	skip_to_result(&end, head);
	if (head & HX_HEAD_RESULT) {
		struct hapax_result ignored = {.kind = HAPAX_RESULT_NONE};
		struct hx_elsewhere elsewhere;

		(void)read_result(&end, &ignored, &elsewhere);
	}
	return (size_t)(end - at) + ((size_t)(end - at) & 1);
}

bool hx_packed_read_elsewhere(
	const unsigned char *at, struct hx_elsewhere *ret_elsewhere, uint64_t *ret_bytes)
{
	uint16_t head = hx_packed_head(at);
	struct hapax_result result = {.kind = HAPAX_RESULT_NONE};

	if (!(head & HX_HEAD_RESULT))
		return false;
	skip_to_result(&at, head);
	if (!read_result(&at, &result, ret_elsewhere))
		return false;
	assert(((head >> HX_HEAD_STATE_SHIFT) & 3) + 1 == HAPAX_STATE_DONE);
	*ret_bytes = hx_result_bytes(&result);
	return true;
}

struct hapax_bytes hx_packed_read_text(
	const unsigned char *at, unsigned char key_text[HX_KEY_TEXT_SIZE])
{
	uint16_t head = hx_packed_head(at);
	const unsigned char *part = hx_packed_parts(at, head);
	struct hapax_bytes packed = hx_packed_next_key(&part, hx_packed_encoding(head));

	if (hx_packed_encoding(head) == HX_KEY_RAW)
		return packed;
	if (hx_packed_encoding(head) == HX_KEY_UUID) {
		hx_uuid7_unpack(packed.data, (char *)key_text);
		return hx_bytes(key_text, HX_UUID_TEXT_SIZE);
	}
	assert(packed.size * 2 <= HX_KEY_TEXT_SIZE);
	hx_hex_encode(packed.data, packed.size, (char *)key_text);
	return hx_bytes(key_text, packed.size * 2);
}

void hx_packed_read(
	const unsigned char *at, const struct hx_packed_base *base,
	struct hx_profile_table *profiles, struct hapax_record *ret_record)
{
	uint16_t head = hx_packed_head(at);
	const struct hx_profile *profile = hx_profile_get(profiles, hx_packed_profile(at, head));
	const unsigned char *part = hx_packed_parts(at, head);
	struct hx_elsewhere elsewhere;
	unsigned bits = 0;

	memset(ret_record, 0, sizeof(*ret_record));
	read_front(at, head, base, ret_record);
	ret_record->tenant = profile->scope->tenant;
	ret_record->group = profile->scope->group;
	ret_record->ttl_ms = profile->ttl_ms;
	(void)hx_packed_next_key(&part, hx_packed_encoding(head));
	if (head & HX_HEAD_PRINT) {
		ret_record->fingerprint_size = HAPAX_FINGERPRINT_SHORT_SIZE;
		memcpy(ret_record->fingerprint,
		       read_bytes(&part, HAPAX_FINGERPRINT_SHORT_SIZE).data,
		       HAPAX_FINGERPRINT_SHORT_SIZE);
	}
	if (head & HX_HEAD_MORE)
		bits = *part++;
	assert(((bits & MORE_LEASE) != 0) == (ret_record->state == HAPAX_STATE_CLAIMED));
	assert(((bits & MORE_TTL) != 0) == (profile->ttl_ms == 0));
	assert(!(head & HX_HEAD_RESULT) || ret_record->state == HAPAX_STATE_DONE);
	read_more(&part, base, bits, ret_record);
	assert(ret_record->first_seen_ms <= ret_record->changed_ms);
	assert(ret_record->ttl_ms > 0);
	if (head & HX_HEAD_CAUSE)
		ret_record->cause = read_sized(&part);
	if (head & HX_HEAD_RESULT)
		(void)read_result(&part, &ret_record->result, &elsewhere);
}

void hx_packed_read_key(
	const unsigned char *at, struct hx_profile_table *profiles, struct hx_packed_key *ret_key)
{
	uint16_t head = hx_packed_head(at);
	const unsigned char *part = hx_packed_parts(at, head);
	struct hapax_bytes key = hx_packed_next_key(&part, hx_packed_encoding(head));

	ret_key->scope_id = hx_profile_get(profiles, hx_packed_profile(at, head))->scope_id;
	ret_key->encoding = (uint8_t)hx_packed_encoding(head);
	ret_key->size = (uint16_t)key.size;
	ret_key->data = key.data;
	hx_packed_key_assert(ret_key);
}

bool hx_packed_other_matches(const unsigned char *part, const struct hx_packed_key *key)
{
	struct hapax_bytes stored = hx_packed_next_key(&part, key->encoding);

	return stored.size == key->size && memcmp(stored.data, key->data, key->size) == 0;
}

struct hx_scope *hx_packed_scope(const unsigned char *at, struct hx_profile_table *profiles)
{
	return hx_profile_get(profiles, hx_packed_profile(at, hx_packed_head(at)))->scope;
}

void hx_packed_set_dead(unsigned char *at)
{
	assert(!hx_packed_is_dead(at));
	head_set(at, HX_HEAD_DEAD);
}

unsigned hx_packed_use(const unsigned char *at)
{
	uint16_t head = hx_packed_head(at);

	return head & HX_HEAD_HIT ? 2 : head & HX_HEAD_FRESH ? 1 : 0;
}

/* A hit writes only if it must: a cache line that all threads read stays shared. */
void hx_packed_raise_use(unsigned char *at, unsigned use)
{
	assert(use <= 2);
	if (hx_packed_use(at) < use)
		head_set(at, use == 2 ? HX_HEAD_HIT | HX_HEAD_FRESH : HX_HEAD_FRESH);
}

void hx_packed_fade_use(unsigned char *at)
{
	head_clear(at, hx_packed_use(at) == 2 ? HX_HEAD_HIT : HX_HEAD_FRESH);
}
