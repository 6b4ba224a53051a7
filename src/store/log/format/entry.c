/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.c - entries as bytes: the content of a frame.
 *
 *  (1) Decode reads back whatever an encoder writes; padding is zero.
 *  (2) Decode checks every length against the entry's size, and that against the available
 *      bytes. A PUT that it accepts is a valid record once it has its scope's names.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/index/elsewhere.h"
#include "store/index/packed_key.h"
#include "store/index/packed_mark.h"
#include "store/log/format/endian.h"
#include "store/log/format/format.h"

enum part {
	PART_PRINT_SHORT = 1 << 0,
	PART_PRINT = 1 << 1,
	PART_TTL = 1 << 2,
	PART_FIRST_SEEN = 1 << 3,
	PART_LEASE = 1 << 4,
	PART_ATTEMPT = 1 << 5,
	PART_ATTEMPT_ID = 1 << 6,
	PART_OWNER = 1 << 7,
	PART_ERROR = 1 << 8,
	PART_RESULT = 1 << 9,
	PART_CAUSE = 1 << 10,
	PARTS_KNOWN = (1 << 11) - 1,
};

enum bits {
	BITS_STATE_MASK = 7,
	BITS_ORIGIN_SHIFT = 3,
	BITS_PARK = 1 << 5,
	BITS_ENCODING_SHIFT = 6,
};

static size_t padded(size_t size)
{
	return (size + HX_LOG_ENTRY_ALIGN - 1) & ~(size_t)(HX_LOG_ENTRY_ALIGN - 1);
}

static bool is_any(const unsigned char *at, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (at[i] != 0)
			return true;
	}
	return false;
}

/* Encoding. */

static bool ttl_is_implied(const struct hapax_record *record)
{
	int64_t span_ms;

	return record->expires_ms != HAPAX_TIME_NEVER &&
		!__builtin_sub_overflow(record->expires_ms, record->changed_ms, &span_ms) &&
		span_ms == record->ttl_ms;
}

static bool has_result(const struct hapax_result *result)
{
	return result->kind != HAPAX_RESULT_NONE || result->result_class != HAPAX_RESULT_OK ||
		result->status != 0 || result->omitted_bytes != 0 || result->headers.size != 0 ||
		result->body.size != 0;
}

static unsigned parts_of(const struct hapax_record *record)
{
	unsigned parts = 0;

	assert(record->fingerprint_size <= HAPAX_FINGERPRINT_SIZE);
	/* Decode knows two sizes. */
	assert(record->fingerprint_size % HAPAX_FINGERPRINT_SHORT_SIZE == 0);
	if (record->fingerprint_size != 0)
		parts |= record->fingerprint_size == HAPAX_FINGERPRINT_SIZE ? PART_PRINT
									    : PART_PRINT_SHORT;
	if (!ttl_is_implied(record))
		parts |= PART_TTL;
	if (record->first_seen_ms != record->changed_ms)
		parts |= PART_FIRST_SEEN;
	if (record->lease_ends_ms != 0)
		parts |= PART_LEASE;
	if (record->attempt != 1)
		parts |= PART_ATTEMPT;
	if (is_any(record->attempt_id, sizeof(record->attempt_id)))
		parts |= PART_ATTEMPT_ID;
	if (record->owner.size != 0)
		parts |= PART_OWNER;
	if (record->error.size != 0)
		parts |= PART_ERROR;
	if (record->cause.size != 0)
		parts |= PART_CAUSE;
	if (has_result(&record->result))
		parts |= PART_RESULT;
	return parts;
}

/* The bytes of the parts that have a fixed size. */
static size_t fixed_size(unsigned parts)
{
	static const struct {
		unsigned part;
		size_t size;
	} sizes[] = {
		{PART_PRINT_SHORT, HAPAX_FINGERPRINT_SHORT_SIZE},
		{PART_PRINT, HAPAX_FINGERPRINT_SIZE},
		{PART_TTL, sizeof(int64_t)},
		{PART_FIRST_SEEN, sizeof(int64_t)},
		{PART_LEASE, sizeof(int64_t)},
		{PART_ATTEMPT, sizeof(uint32_t)},
		{PART_ATTEMPT_ID, HAPAX_ATTEMPT_ID_SIZE},
		{PART_OWNER, sizeof(uint8_t)},
		{PART_ERROR, sizeof(uint16_t)},
		{PART_CAUSE, sizeof(uint16_t)},
		{PART_RESULT, HX_LOG_RESULT_HEAD_SIZE},
	};
	size_t size = 0;

	assert((parts & ~(unsigned)PARTS_KNOWN) == 0);
	assert((parts & (PART_PRINT | PART_PRINT_SHORT)) != (PART_PRINT | PART_PRINT_SHORT));
	for (size_t i = 0; i < HX_COUNT(sizes); i++)
		size += parts & sizes[i].part ? sizes[i].size : 0;
	return size;
}

/* Is the stored key one that hx_packed_key_init() makes? */
static bool key_is_valid(unsigned encoding, size_t size)
{
	switch (encoding) {
	case HX_KEY_RAW: return size >= 1 && size <= HX_KEY_SIZE_MAX;
	case HX_KEY_UUID: return size == HX_UUID_SIZE;
	case HX_KEY_HEX: return size >= 1 && size <= HX_KEY_TEXT_SIZE / 2;
	default: return false;
	}
}

/* A key as hx_packed_key_init() makes it, or decode accepts it. */
static void key_assert(const struct hx_packed_key *key)
{
	assert(key_is_valid(key->encoding, key->size));
	assert(key->scope_id < HX_SCOPES_MAX);
}

/*
 * The parts of an entry end at end: the rest is only padding. An encoder and its size function
 * agree then.
 */
static void end_assert(const unsigned char *at, const unsigned char *end, size_t size)
{
	/* Also false if end lies behind the entry: the difference wraps around. */
	assert(size - (size_t)(end - at) < HX_LOG_ENTRY_ALIGN);
}

size_t hx_log_put_size(const struct hapax_record *record, const struct hx_packed_key *key)
{
	/* So a record always fits into an empty frame. */
	assert(record->owner.size <= HX_OWNER_SIZE_MAX);
	assert(record->error.size <= HX_ERROR_TEXT_SIZE_MAX);
	assert(record->cause.size <= HX_CAUSE_SIZE_MAX);
	assert(record->result.headers.size <= HX_RESULT_HEADERS_SIZE_MAX);
	assert(record->result.body.size <= HX_RESULT_SIZE_LIMIT);
	return padded(
		HX_LOG_RECORD_HEAD_SIZE + key->size + fixed_size(parts_of(record)) +
		record->owner.size + record->error.size + record->cause.size +
		record->result.headers.size + record->result.body.size);
}

size_t hx_log_remove_size(const struct hx_packed_key *key)
{
	return padded(HX_LOG_RECORD_HEAD_SIZE + key->size);
}

static inline void encode_head(unsigned char *at, uint8_t kind, size_t size, uint64_t lsn)
{
	assert(size % HX_LOG_ENTRY_ALIGN == 0);
	assert(size <= HX_LOG_FRAME_SIZE_MAX - HX_LOG_BLOCK_SIZE);
	at[HX_LOG_ENTRY_KIND] = kind;
	at[HX_LOG_ENTRY_FLAGS] = 0;
	hx_put16(at + HX_LOG_ENTRY_KEY_SIZE, 0);
	hx_put32(at + HX_LOG_ENTRY_SIZE, (uint32_t)size);
	hx_put64(at + HX_LOG_ENTRY_LSN, lsn);
}

static void append(unsigned char **at, const void *data, size_t size)
{
	if (size != 0)
		memcpy(*at, data, size);
	*at += size;
}

static void append64(unsigned char **at, int64_t value)
{
	hx_put64(*at, (uint64_t)value);
	*at += sizeof(value);
}

static void append_sized(unsigned char **at, struct hapax_bytes bytes)
{
	assert(bytes.size <= UINT16_MAX);
	hx_put16(*at, (uint16_t)bytes.size);
	*at += sizeof(uint16_t);
	append(at, bytes.data, bytes.size);
}

static void append_result(unsigned char **at, const struct hapax_result *result)
{
	unsigned char *head = *at;

	/* A result that is only on disk has sizes without bytes: its record is not encoded. */
	assert(!hx_result_is_elsewhere(result));
	assert((unsigned)result->kind <= UINT8_MAX);
	assert((unsigned)result->result_class <= UINT8_MAX);
	head[0] = (unsigned char)result->kind;
	head[1] = (unsigned char)result->result_class;
	hx_put16(head + 2, 0);
	hx_put32(head + 4, (uint32_t)result->status);
	hx_put64(head + 8, result->omitted_bytes);
	hx_put32(head + 16, (uint32_t)result->headers.size);
	hx_put32(head + 20, (uint32_t)result->body.size);
	*at += HX_LOG_RESULT_HEAD_SIZE;
	append(at, result->headers.data, result->headers.size);
	append(at, result->body.data, result->body.size);
}

static void append_parts(unsigned char **at, const struct hapax_record *record, unsigned parts)
{
	assert(((parts & PART_OWNER) != 0) == (record->owner.size != 0));
	assert(((parts & PART_ERROR) != 0) == (record->error.size != 0));
	assert(((parts & PART_CAUSE) != 0) == (record->cause.size != 0));
	assert(((parts & (PART_PRINT | PART_PRINT_SHORT)) != 0) == (record->fingerprint_size != 0));
	if (parts & (PART_PRINT_SHORT | PART_PRINT))
		append(at, record->fingerprint, record->fingerprint_size);
	if (parts & PART_TTL)
		append64(at, record->ttl_ms);
	if (parts & PART_FIRST_SEEN)
		append64(at, record->first_seen_ms);
	if (parts & PART_LEASE)
		append64(at, record->lease_ends_ms);
	if (parts & PART_ATTEMPT) {
		hx_put32(*at, record->attempt);
		*at += sizeof(uint32_t);
	}
	if (parts & PART_ATTEMPT_ID)
		append(at, record->attempt_id, HAPAX_ATTEMPT_ID_SIZE);
	if (parts & PART_OWNER) {
		*(*at)++ = (unsigned char)record->owner.size;
		append(at, record->owner.data, record->owner.size);
	}
	if (parts & PART_ERROR)
		append_sized(at, record->error);
	if (parts & PART_CAUSE)
		append_sized(at, record->cause);
	if (parts & PART_RESULT)
		append_result(at, &record->result);
}

/* Head and key of a PUT or REMOVE; returns where the parts go. */
static unsigned char *encode_keyed(
	unsigned char *at, uint8_t kind, size_t size, const struct hx_packed_key *key,
	uint32_t scope, uint64_t lsn)
{
	assert(size >= (size_t)HX_LOG_RECORD_HEAD_SIZE + key->size);
	encode_head(at, kind, size, lsn);
	hx_put16(at + HX_LOG_ENTRY_KEY_SIZE, key->size);
	hx_put64(at + HX_LOG_ENTRY_TOKEN, 0);
	hx_put32(at + HX_LOG_ENTRY_SCOPE, scope);
	at[HX_LOG_ENTRY_BITS] = (unsigned char)(key->encoding << BITS_ENCODING_SHIFT);
	at[HX_LOG_ENTRY_ZERO] = 0;
	hx_put16(at + HX_LOG_ENTRY_PARTS, 0);
	memcpy(at + HX_LOG_ENTRY_KEY, key->data, key->size);
	return at + HX_LOG_ENTRY_KEY + key->size;
}

void hx_log_put_encode(
	unsigned char *at, const struct hapax_record *record, const struct hx_packed_key *key,
	uint32_t scope, unsigned flags, uint64_t lsn)
{
	size_t size = hx_log_put_size(record, key);
	unsigned parts = parts_of(record);
	unsigned char *end = encode_keyed(at, HX_LOG_PUT, size, key, scope, lsn);

	_Static_assert(HX_OWNER_SIZE_MAX <= UINT8_MAX, "an owner's size is a byte");
	key_assert(key);
	assert(scope < HX_SCOPES_MAX);
	assert((flags & ~(unsigned)HX_LOG_REPLACES) == 0);
	assert(record->token <= HX_TOKEN_MAX);
	/* State, origin and encoding share a byte. */
	assert(((unsigned)record->state & ~(unsigned)BITS_STATE_MASK) == 0);
	assert((unsigned)record->origin << BITS_ORIGIN_SHIFT < BITS_PARK);
	at[HX_LOG_ENTRY_FLAGS] = (unsigned char)flags;
	hx_put64(at + HX_LOG_ENTRY_TOKEN, record->token);
	hx_put64(at + HX_LOG_ENTRY_EXPIRES, (uint64_t)record->expires_ms);
	hx_put64(at + HX_LOG_ENTRY_CHANGED, (uint64_t)record->changed_ms);
	at[HX_LOG_ENTRY_BITS] |=
		(unsigned char)((unsigned)record->state | (unsigned)record->origin << BITS_ORIGIN_SHIFT | (record->on_lapse == HAPAX_ON_LAPSE_PARK ? BITS_PARK : 0));
	hx_put16(at + HX_LOG_ENTRY_PARTS, (uint16_t)parts);
	append_parts(&end, record, parts);
	end_assert(at, end, size);
	memset(end, 0, size - (size_t)(end - at));
}

void hx_log_remove_encode(
	unsigned char *at, const struct hx_packed_key *key, uint32_t scope, int64_t changed_ms,
	int64_t needed_until_ms, uint64_t lsn)
{
	size_t size = hx_log_remove_size(key);
	unsigned char *end = encode_keyed(at, HX_LOG_REMOVE, size, key, scope, lsn);

	key_assert(key);
	assert(scope < HX_SCOPES_MAX);
	hx_put64(at + HX_LOG_ENTRY_EXPIRES, (uint64_t)needed_until_ms);
	hx_put64(at + HX_LOG_ENTRY_CHANGED, (uint64_t)changed_ms);
	end_assert(at, end, size);
	memset(end, 0, size - (size_t)(end - at));
}

size_t hx_log_mark_size(const struct hx_packed_mark *mark, const struct hx_packed_key *key)
{
	size_t print_size = mark->fingerprint != NULL ? HAPAX_FINGERPRINT_SIZE : 0;

	return padded((size_t)HX_LOG_RECORD_HEAD_SIZE + key->size + print_size);
}

/* The bytes that hx_log_put_encode() would write for the mark's record. */
void hx_log_mark_encode(
	unsigned char *at, const struct hx_packed_mark *mark, const struct hx_packed_key *key,
	int64_t now_ms, uint64_t lsn)
{
	size_t size = hx_log_mark_size(mark, key);
	unsigned char *end = encode_keyed(at, HX_LOG_PUT, size, key, key->scope_id, lsn);

	/* Otherwise the TTL would be a part of its own. */
	assert(mark->expires_ms != HAPAX_TIME_NEVER);
	hx_put64(at + HX_LOG_ENTRY_TOKEN, mark->token);
	hx_put64(at + HX_LOG_ENTRY_EXPIRES, (uint64_t)mark->expires_ms);
	hx_put64(at + HX_LOG_ENTRY_CHANGED, (uint64_t)now_ms);
	at[HX_LOG_ENTRY_BITS] |= HAPAX_STATE_DONE | HAPAX_ORIGIN_CHECK << BITS_ORIGIN_SHIFT;
	if (mark->fingerprint != NULL) {
		hx_put16(at + HX_LOG_ENTRY_PARTS, PART_PRINT);
		append(&end, mark->fingerprint, HAPAX_FINGERPRINT_SIZE);
	}
	end_assert(at, end, size);
	memset(end, 0, size - (size_t)(end - at));
}

size_t hx_log_scope_size(struct hapax_bytes tenant, struct hapax_bytes group)
{
	return padded(HX_LOG_SCOPE_HEAD_SIZE + tenant.size + group.size);
}

/* What the encoder of a small entry wrote, as decode reads it. */
static struct hx_log_entry read_back(const unsigned char *at, size_t size, uint64_t lsn)
{
	struct hx_log_entry back = {0};
	enum hapax_status status = hx_log_entry_decode(hx_bytes(at, size), &back, NULL);

	assert(status == HAPAX_OK);
	assert(back.size == size);
	assert(back.lsn == lsn);
	return back;
}

static void scope_assert_pair(
	const unsigned char *at, size_t size, uint32_t number, struct hapax_bytes tenant,
	struct hapax_bytes group, uint64_t lsn)
{
	struct hx_log_entry back = read_back(at, size, lsn);

	assert(back.kind == HX_LOG_SCOPE);
	assert(back.as.scope.number == number);
	assert(hx_bytes_equal(back.as.scope.tenant, tenant));
	assert(hx_bytes_equal(back.as.scope.group, group));
}

void hx_log_scope_encode(
	unsigned char *at, uint32_t number, struct hapax_bytes tenant, struct hapax_bytes group,
	uint64_t lsn)
{
	size_t size = hx_log_scope_size(tenant, group);
	unsigned char *end = at + HX_LOG_SCOPE_HEAD_SIZE;

	assert(number < HX_SCOPES_MAX);
	assert(tenant.size >= 1);
	assert(tenant.size <= HX_SCOPE_PART_SIZE_MAX);
	assert(group.size >= 1);
	assert(group.size <= HX_SCOPE_PART_SIZE_MAX);
	encode_head(at, HX_LOG_SCOPE, size, lsn);
	hx_put32(at + 16, number);
	hx_put16(at + 20, (uint16_t)tenant.size);
	hx_put16(at + 22, (uint16_t)group.size);
	append(&end, tenant.data, tenant.size);
	append(&end, group.data, group.size);
	end_assert(at, end, size);
	memset(end, 0, size - (size_t)(end - at));
	scope_assert_pair(at, size, number, tenant, group, lsn);
}

void hx_log_begin_encode(
	unsigned char *at, uint64_t previous_id, uint64_t previous_end, uint64_t lsn)
{
	/* The first segment follows none. */
	assert((previous_id == 0) == (previous_end == 0));
	assert(previous_end % HX_LOG_BLOCK_SIZE == 0);
	encode_head(at, HX_LOG_BEGIN, HX_LOG_BEGIN_SIZE, lsn);
	hx_put64(at + 16, previous_id);
	hx_put64(at + 24, previous_end);
}

size_t hx_log_manifest_size(uint32_t count)
{
	assert(count <= HX_LOG_CLASS_SEGMENTS_MAX);
	return HX_LOG_MANIFEST_HEAD_SIZE + (size_t)count * HX_LOG_MANIFEST_ITEM_SIZE;
}

/* A segment of a manifest, written or accepted. */
static void manifest_item_assert(const struct hx_log_manifest_item *item, uint64_t next_class_id)
{
	assert(item->kind != HX_LOG_KIND_LOG);
	assert((unsigned)item->kind < HX_LOG_KIND_COUNT);
	/* The next pass would otherwise write over it. */
	assert(item->id < next_class_id);
}

void hx_log_manifest_encode(
	unsigned char *at, uint64_t log_first_id, uint64_t next_class_id,
	const struct hx_log_manifest_item *items, uint32_t count, uint64_t lsn)
{
	assert(log_first_id != 0);
	encode_head(at, HX_LOG_MANIFEST, hx_log_manifest_size(count), lsn);
	hx_put64(at + 16, log_first_id);
	hx_put64(at + 24, next_class_id);
	hx_put32(at + 32, count);
	hx_put32(at + 36, 0);
	at += HX_LOG_MANIFEST_HEAD_SIZE;
	for (uint32_t i = 0; i < count; i++) {
		manifest_item_assert(&items[i], next_class_id);
		hx_put64(at, items[i].id);
		hx_put64(at + 8, items[i].bytes);
		hx_put32(at + 16, items[i].kind);
		hx_put32(at + 20, items[i].crc);
		at += HX_LOG_MANIFEST_ITEM_SIZE;
	}
}

void hx_log_counts_encode(
	unsigned char *at, int64_t hour_ms, uint32_t scope,
	const uint64_t counts[HAPAX_DECISION_COUNT], uint64_t lsn)
{
	assert(scope < HX_SCOPES_MAX);
	encode_head(at, HX_LOG_COUNTS, HX_LOG_COUNTS_SIZE, lsn);
	hx_put64(at + 16, (uint64_t)hour_ms);
	hx_put32(at + 24, scope);
	hx_put32(at + 28, 0);
	for (size_t i = 0; i < HAPAX_DECISION_COUNT; i++)
		hx_put64(at + 32 + 8 * i, counts[i]);
}

static void seal_assert_pair(const unsigned char *at, const struct hx_log_seal *seal, uint64_t lsn)
{
	struct hx_log_entry back = read_back(at, HX_LOG_SEAL_SIZE, lsn);

	assert(back.kind == HX_LOG_SEAL);
	assert(back.as.seal.puts == seal->puts);
	assert(back.as.seal.removes == seal->removes);
	assert(back.as.seal.removes_offset == seal->removes_offset);
	assert(back.as.seal.lsn_low == seal->lsn_low);
	assert(back.as.seal.made_lsn == seal->made_lsn);
	assert(back.as.seal.expires_ms_max == seal->expires_ms_max);
	assert(back.as.seal.put_bytes == seal->put_bytes);
}

void hx_log_seal_encode(unsigned char *at, const struct hx_log_seal *seal, uint64_t lsn)
{
	encode_head(at, HX_LOG_SEAL, HX_LOG_SEAL_SIZE, lsn);
	hx_put64(at + 16, seal->puts);
	hx_put64(at + 24, seal->removes);
	hx_put64(at + 32, seal->removes_offset);
	hx_put64(at + 40, seal->lsn_low);
	hx_put64(at + 48, seal->made_lsn);
	hx_put64(at + 56, (uint64_t)seal->expires_ms_max);
	hx_put64(at + 64, seal->put_bytes);
	seal_assert_pair(at, seal, lsn);
}

/* Decoding. */

static enum hapax_status corrupt(struct hapax_error *err, const char *what)
{
	return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "an entry is damaged: %s", what);
}

/* Bytes of an entry that are still to be read. */
struct rest {
	const unsigned char *at;
	size_t size;
	bool is_short; /* something did not fit */
};

static const unsigned char *entry_take(struct rest *rest, size_t size)
{
	static const unsigned char zeros[HAPAX_FINGERPRINT_SIZE];
	const unsigned char *at = rest->at;

	if (size > rest->size) {
		rest->is_short = true;
		rest->size = 0;
		assert(size <= sizeof(zeros));
		return zeros;
	}
	rest->at += size;
	rest->size -= size;
	return at;
}

static struct hapax_bytes take_bytes(struct rest *rest, size_t size)
{
	if (size > rest->size) {
		rest->is_short = true;
		return hx_bytes(NULL, 0);
	}
	return hx_bytes(entry_take(rest, size), size);
}

static int64_t take64(struct rest *rest)
{
	return (int64_t)hx_get64(entry_take(rest, sizeof(int64_t)));
}

static void take_result(struct rest *rest, struct hapax_result *result)
{
	const unsigned char *head = entry_take(rest, HX_LOG_RESULT_HEAD_SIZE);

	result->kind = (enum hapax_result_kind)head[0];
	result->result_class = (enum hapax_result_class)head[1];
	result->status = (int32_t)hx_get32(head + 4);
	result->omitted_bytes = hx_get64(head + 8);
	result->headers.size = hx_get32(head + 16);
	result->body.size = hx_get32(head + 20);
	result->headers = take_bytes(rest, result->headers.size);
	result->body = take_bytes(rest, result->body.size);
}

static void take_parts(struct rest *rest, unsigned parts, struct hapax_record *record)
{
	/* The caller cleared the record: a part that is absent leaves zeros. */
	assert(record->fingerprint_size == 0);
	assert(record->result.body.size == 0);
	if (parts & PART_PRINT_SHORT)
		record->fingerprint_size = HAPAX_FINGERPRINT_SHORT_SIZE;
	if (parts & PART_PRINT)
		record->fingerprint_size = HAPAX_FINGERPRINT_SIZE;
	memcpy(record->fingerprint, entry_take(rest, record->fingerprint_size),
	       record->fingerprint_size);
	if (parts & PART_TTL)
		record->ttl_ms = take64(rest);
	else if (__builtin_sub_overflow(record->expires_ms, record->changed_ms, &record->ttl_ms))
		rest->is_short = true;
	record->first_seen_ms = parts & PART_FIRST_SEEN ? take64(rest) : record->changed_ms;
	if (parts & PART_LEASE)
		record->lease_ends_ms = take64(rest);
	record->attempt = parts & PART_ATTEMPT ? hx_get32(entry_take(rest, sizeof(uint32_t))) : 1;
	if (parts & PART_ATTEMPT_ID)
		memcpy(record->attempt_id, entry_take(rest, HAPAX_ATTEMPT_ID_SIZE),
		       HAPAX_ATTEMPT_ID_SIZE);
	if (parts & PART_OWNER)
		record->owner = take_bytes(rest, *entry_take(rest, 1));
	if (parts & PART_ERROR)
		record->error = take_bytes(rest, hx_get16(entry_take(rest, sizeof(uint16_t))));
	if (parts & PART_CAUSE)
		record->cause = take_bytes(rest, hx_get16(entry_take(rest, sizeof(uint16_t))));
	if (parts & PART_RESULT)
		take_result(rest, &record->result);
}

/* Stand-ins for the scope's names, which are known elsewhere, so that the record can be checked. */
static bool record_is_valid(struct hapax_record *record)
{
	bool is_valid;

	assert(record->tenant.size == 0);
	assert(record->group.size == 0);
	record->tenant = HX_BYTES_LIT("t");
	record->group = HX_BYTES_LIT("g");
	is_valid = hx_record_is_valid(record);
	record->tenant = hx_bytes(NULL, 0);
	record->group = hx_bytes(NULL, 0);
	return is_valid;
}

static enum hapax_status decode_keyed(
	const unsigned char *at, struct hx_log_entry *entry, struct hapax_error *err)
{
	struct hapax_record *record = &entry->as.put.record;
	unsigned bits = at[HX_LOG_ENTRY_BITS];
	unsigned parts = hx_get16(at + HX_LOG_ENTRY_PARTS);
	size_t key_size = hx_get16(at + HX_LOG_ENTRY_KEY_SIZE);
	struct rest rest = {at + HX_LOG_RECORD_HEAD_SIZE, 0, false};

	assert(entry->size >= HX_LOG_RECORD_HEAD_SIZE);
	assert(entry->kind == HX_LOG_PUT || entry->kind == HX_LOG_REMOVE);
	memset(record, 0, sizeof(*record));
	rest.size = entry->size - HX_LOG_RECORD_HEAD_SIZE;
	entry->as.put.scope = hx_get32(at + HX_LOG_ENTRY_SCOPE);
	entry->as.put.encoding = (uint8_t)(bits >> BITS_ENCODING_SHIFT);
	record->expires_ms = (int64_t)hx_get64(at + HX_LOG_ENTRY_EXPIRES);
	record->changed_ms = (int64_t)hx_get64(at + HX_LOG_ENTRY_CHANGED);
	record->key = take_bytes(&rest, key_size);
	if (rest.is_short || at[HX_LOG_ENTRY_ZERO] != 0 ||
	    !key_is_valid(entry->as.put.encoding, key_size))
		return corrupt(err, "invalid key");
	if (entry->as.put.scope >= HX_SCOPES_MAX)
		return corrupt(err, "invalid scope");
	if (entry->kind == HX_LOG_REMOVE) {
		if (parts != 0 || rest.size >= HX_LOG_ENTRY_ALIGN)
			return corrupt(err, "a removal has extra parts");
		return HAPAX_OK;
	}
	record->token = hx_get64(at + HX_LOG_ENTRY_TOKEN);
	record->state = (enum hapax_state)(bits & BITS_STATE_MASK);
	record->origin = (enum hapax_origin)(bits >> BITS_ORIGIN_SHIFT & 3);
	record->on_lapse = bits & BITS_PARK ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
	take_parts(&rest, parts, record);
	entry->as.put.result_at = (uint32_t)((size_t)(rest.at - at) - record->result.headers.size -
	                                     record->result.body.size);
	if (parts & ~(unsigned)PARTS_KNOWN || rest.is_short || rest.size >= HX_LOG_ENTRY_ALIGN)
		return corrupt(err, "its sizes do not add up");
	/* fetch.c reads headers and body at this place of the file. */
	assert(entry->as.put.result_at >= HX_LOG_RECORD_HEAD_SIZE + key_size);
	assert(entry->as.put.result_at + hx_result_bytes(&record->result) <= entry->size);
	return record_is_valid(record) ? HAPAX_OK : corrupt(err, "invalid record");
}

static enum hapax_status decode_scope(
	const unsigned char *at, struct hx_log_entry *entry, struct hapax_error *err)
{
	struct rest rest = {at + HX_LOG_SCOPE_HEAD_SIZE, 0, false};
	size_t tenant_size = hx_get16(at + 20);
	size_t group_size = hx_get16(at + 22);

	assert(entry->size >= HX_LOG_SCOPE_HEAD_SIZE);
	rest.size = entry->size - HX_LOG_SCOPE_HEAD_SIZE;
	entry->as.scope.number = hx_get32(at + 16);
	entry->as.scope.tenant = take_bytes(&rest, tenant_size);
	entry->as.scope.group = take_bytes(&rest, group_size);
	if (rest.is_short || rest.size >= HX_LOG_ENTRY_ALIGN || tenant_size < 1 ||
	    tenant_size > HX_SCOPE_PART_SIZE_MAX || group_size < 1 ||
	    group_size > HX_SCOPE_PART_SIZE_MAX || entry->as.scope.number >= HX_SCOPES_MAX)
		return corrupt(err, "invalid scope names");
	return HAPAX_OK;
}

static enum hapax_status decode_manifest(
	const unsigned char *at, struct hx_log_entry *entry, struct hapax_error *err)
{
	assert(entry->size >= HX_LOG_MANIFEST_HEAD_SIZE);
	entry->as.manifest.log_first_id = hx_get64(at + 16);
	entry->as.manifest.next_class_id = hx_get64(at + 24);
	entry->as.manifest.count = hx_get32(at + 32);
	entry->as.manifest.items = at + HX_LOG_MANIFEST_HEAD_SIZE;
	if (entry->as.manifest.count > HX_LOG_CLASS_SEGMENTS_MAX ||
	    entry->size != hx_log_manifest_size(entry->as.manifest.count))
		return corrupt(err, "the sizes in a manifest do not add up");
	/* Passes count on from it, and never reach the last number. */
	if (entry->as.manifest.next_class_id == 0 ||
	    entry->as.manifest.next_class_id > UINT64_MAX / 2)
		return corrupt(err, "a manifest has an invalid next segment");
	if (entry->as.manifest.log_first_id == 0)
		return corrupt(err, "a manifest of a log without a beginning");
	for (uint32_t i = 0; i < entry->as.manifest.count; i++) {
		struct hx_log_manifest_item item = hx_log_manifest_item(entry, i);

		if (item.kind == HX_LOG_KIND_LOG || (unsigned)item.kind >= HX_LOG_KIND_COUNT)
			return corrupt(err, "a manifest names a segment with an unknown class");
		if (item.id >= entry->as.manifest.next_class_id)
			return corrupt(err, "a manifest that names a segment of the future");
	}
	return HAPAX_OK;
}

struct hx_log_manifest_item hx_log_manifest_item(const struct hx_log_entry *entry, uint32_t index)
{
	const unsigned char *at =
		entry->as.manifest.items + (size_t)index * HX_LOG_MANIFEST_ITEM_SIZE;

	assert(entry->kind == HX_LOG_MANIFEST);
	assert(index < entry->as.manifest.count);
	return (struct hx_log_manifest_item){
		.id = hx_get64(at),
		.bytes = hx_get64(at + 8),
		.kind = (enum hx_log_kind)hx_get32(at + 16),
		.crc = hx_get32(at + 20),
	};
}

static void decode_counts(const unsigned char *at, struct hx_log_entry *entry)
{
	assert(entry->size == HX_LOG_COUNTS_SIZE);
	entry->as.counts.hour_ms = (int64_t)hx_get64(at + 16);
	entry->as.counts.scope = hx_get32(at + 24);
	for (size_t i = 0; i < HAPAX_DECISION_COUNT; i++)
		entry->as.counts.counts[i] = hx_get64(at + 32 + 8 * i);
}

static void decode_seal(const unsigned char *at, struct hx_log_seal *seal)
{
	seal->puts = hx_get64(at + 16);
	seal->removes = hx_get64(at + 24);
	seal->removes_offset = hx_get64(at + 32);
	seal->lsn_low = hx_get64(at + 40);
	seal->made_lsn = hx_get64(at + 48);
	seal->expires_ms_max = (int64_t)hx_get64(at + 56);
	seal->put_bytes = hx_get64(at + 64);
}

/* The fixed part of an entry of this kind: decode reads it only after checking that it fits. */
static size_t head_size(uint8_t kind)
{
	switch (kind) {
	case HX_LOG_PUT:
	case HX_LOG_REMOVE: return HX_LOG_RECORD_HEAD_SIZE;
	case HX_LOG_SCOPE: return HX_LOG_SCOPE_HEAD_SIZE;
	case HX_LOG_MANIFEST: return HX_LOG_MANIFEST_HEAD_SIZE;
	default: return HX_LOG_ENTRY_HEAD_SIZE;
	}
}

static enum hapax_status decode_body(
	const unsigned char *at, struct hx_log_entry *entry, struct hapax_error *err)
{
	if (entry->size < head_size(entry->kind))
		return corrupt(err, "it is too short");
	switch (entry->kind) {
	case HX_LOG_PUT:
	case HX_LOG_REMOVE: return decode_keyed(at, entry, err);
	case HX_LOG_SCOPE: return decode_scope(at, entry, err);
	case HX_LOG_MANIFEST: return decode_manifest(at, entry, err);
	case HX_LOG_BEGIN:
		if (entry->size != HX_LOG_BEGIN_SIZE)
			return corrupt(err, "a first entry has the wrong size");
		entry->as.begin.previous_id = hx_get64(at + 16);
		entry->as.begin.previous_end = hx_get64(at + 24);
		return HAPAX_OK;
	case HX_LOG_COUNTS:
		if (entry->size != HX_LOG_COUNTS_SIZE)
			return corrupt(err, "counters have the wrong size");
		decode_counts(at, entry);
		return HAPAX_OK;
	case HX_LOG_SEAL:
		if (entry->size != HX_LOG_SEAL_SIZE)
			return corrupt(err, "a seal has the wrong size");
		decode_seal(at, &entry->as.seal);
		return HAPAX_OK;
	default:
		if (entry->kind & HX_LOG_ENTRY_SKIPPABLE)
			return HAPAX_OK;
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "unknown entry kind %u; use a newer hapax",
			entry->kind);
	}
}

enum hapax_status hx_log_entry_decode(
	struct hapax_bytes bytes, struct hx_log_entry *ret_entry, struct hapax_error *err)
{
	const unsigned char *at = bytes.data;

	if (bytes.size < HX_LOG_ENTRY_HEAD_SIZE)
		return corrupt(err, "it is cut off");
	ret_entry->kind = at[HX_LOG_ENTRY_KIND];
	ret_entry->flags = at[HX_LOG_ENTRY_FLAGS];
	ret_entry->size = hx_get32(at + HX_LOG_ENTRY_SIZE);
	ret_entry->lsn = hx_get64(at + HX_LOG_ENTRY_LSN);
	if (ret_entry->size < HX_LOG_ENTRY_HEAD_SIZE || ret_entry->size > bytes.size ||
	    ret_entry->size % HX_LOG_ENTRY_ALIGN != 0)
		return corrupt(err, "its size does not match");
	return decode_body(at, ret_entry, err);
}
