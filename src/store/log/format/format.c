/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.c - segment headers, STORE and frames as bytes. Entries: entry.c.
 */
#include "store/log/format/format.h"

#include <assert.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/limits.h"
#include "store/log/format/endian.h"

static const unsigned char segment_magic[8] = {'H', 'A', 'P', 'A', 'X', 'S', 'E', 'G'};
static const unsigned char store_magic[8] = {'H', 'A', 'P', 'A', 'X', 'S', 'T', 'O'};

/* "HXFR" */
#define FRAME_MAGIC UINT32_C(0x52465848)

enum { KNOWN_INCOMPAT = HX_LOG_INCOMPAT_CAUSE };

const char *hx_log_kind_name(enum hx_log_kind kind)
{
	static const char *const names[HX_LOG_KIND_COUNT] = {
		"log", "hour", "day", "week", "month", "ever"};

	assert((unsigned)kind < HX_LOG_KIND_COUNT);
	return names[kind];
}

/* The promises of every segment header, written or accepted. */
static void header_assert(const struct hx_log_header *header)
{
	assert((unsigned)header->kind < HX_LOG_KIND_COUNT);
	assert((header->incompat & ~(uint32_t)KNOWN_INCOMPAT) == 0);
	assert(header->ro_compat == 0);
	/* The header's own block, and room for a frame. */
	assert(header->capacity >= 2 * HX_LOG_BLOCK_SIZE);
	assert(header->capacity % HX_LOG_BLOCK_SIZE == 0);
	/* Offsets in files are signed. */
	assert(header->capacity <= INT64_MAX);
}

static bool is_zero(const unsigned char *at, size_t size)
{
	static const unsigned char zeros[HX_LOG_HEADER_SIZE];

	assert(size <= sizeof(zeros));
	return memcmp(at, zeros, size) == 0;
}

/* The common part of segment headers and STORE. */
static void encode_common(
	unsigned char *block, const unsigned char magic[8], const unsigned char *uuid,
	uint32_t incompat, uint32_t ro_compat, uint32_t compat)
{
	memset(block, 0, HX_LOG_BLOCK_SIZE);
	memcpy(block + HX_LOG_HEADER_MAGIC, magic, sizeof(segment_magic));
	hx_put16(block + HX_LOG_HEADER_MAJOR, HX_LOG_MAJOR);
	hx_put16(block + HX_LOG_HEADER_MINOR, HX_LOG_MINOR);
	hx_put32(block + HX_LOG_HEADER_INCOMPAT, incompat);
	hx_put32(block + HX_LOG_HEADER_RO_COMPAT, ro_compat);
	hx_put32(block + HX_LOG_HEADER_COMPAT, compat);
	memcpy(block + HX_LOG_HEADER_UUID, uuid, HX_LOG_UUID_SIZE);
}

static void encode_crc(unsigned char *block)
{
	hx_put32(block + HX_LOG_HEADER_CRC, hx_crc32c(0, block, HX_LOG_HEADER_CRC));
}

static enum hapax_status decode_common(
	const unsigned char *block, const unsigned char magic[8], struct hapax_error *err)
{
	if (memcmp(block + HX_LOG_HEADER_MAGIC, magic, sizeof(segment_magic)) != 0)
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"it has no hapax header: it is damaged, or a file of another program");
	if (hx_get32(block + HX_LOG_HEADER_CRC) != hx_crc32c(0, block, HX_LOG_HEADER_CRC))
		return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "its header is damaged");
	if (hx_get16(block + HX_LOG_HEADER_MAJOR) != HX_LOG_MAJOR)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"its format has version %u, and this hapax supports up to %d; use a "
			"newer hapax",
			hx_get16(block + HX_LOG_HEADER_MAJOR), HX_LOG_MAJOR);
	if (hx_get32(block + HX_LOG_HEADER_INCOMPAT) & ~(uint32_t)KNOWN_INCOMPAT)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"it uses unknown features (0x%x); use a newer hapax",
			hx_get32(block + HX_LOG_HEADER_INCOMPAT));
	/* Opening writes here, so a file that must not be written must not be opened. */
	if (hx_get32(block + HX_LOG_HEADER_RO_COMPAT) != 0)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"it uses features (0x%x) that this hapax cannot write; use a newer hapax",
			hx_get32(block + HX_LOG_HEADER_RO_COMPAT));
	return HAPAX_OK;
}

/* Decode gives back what was encoded. */
static void header_assert_pair(
	const struct hx_log_header *header, const unsigned char block[HX_LOG_BLOCK_SIZE])
{
	struct hx_log_header back = {0};
	enum hapax_status status = hx_log_header_decode(block, &back, NULL);

	assert(status == HAPAX_OK);
	assert(back.kind == header->kind);
	assert(back.id == header->id);
	assert(back.salt == header->salt);
	assert(back.capacity == header->capacity);
	assert(back.compat == header->compat);
	assert(memcmp(back.uuid, header->uuid, HX_LOG_UUID_SIZE) == 0);
	/* The seed of all frames depends on nothing that the file does not hold. */
	assert(hx_log_seed(&back) == hx_log_seed(header));
}

void hx_log_header_encode(
	const struct hx_log_header *header, unsigned char block[HX_LOG_BLOCK_SIZE])
{
	header_assert(header);
	encode_common(
		block, segment_magic, header->uuid, header->incompat, header->ro_compat,
		header->compat);
	hx_put64(block + HX_LOG_HEADER_ID, header->id);
	hx_put64(block + HX_LOG_HEADER_SALT, header->salt);
	hx_put64(block + HX_LOG_HEADER_CAPACITY, header->capacity);
	block[HX_LOG_HEADER_KIND] = (unsigned char)header->kind;
	block[HX_LOG_HEADER_BLOCK_BITS] = HX_LOG_BLOCK_BITS;
	encode_crc(block);
	header_assert_pair(header, block);
}

enum hapax_status hx_log_header_decode(
	const unsigned char block[HX_LOG_BLOCK_SIZE], struct hx_log_header *ret_header,
	struct hapax_error *err)
{
	enum hapax_status status = decode_common(block, segment_magic, err);
	uint64_t capacity = hx_get64(block + HX_LOG_HEADER_CAPACITY);

	if (status != HAPAX_OK)
		return status;
	if (block[HX_LOG_HEADER_KIND] >= HX_LOG_KIND_COUNT ||
	    block[HX_LOG_HEADER_BLOCK_BITS] != HX_LOG_BLOCK_BITS ||
	    !is_zero(block + HX_LOG_HEADER_ZERO, HX_LOG_HEADER_CRC - HX_LOG_HEADER_ZERO) ||
	    capacity < 2 * HX_LOG_BLOCK_SIZE || capacity % HX_LOG_BLOCK_SIZE != 0 ||
	    capacity > INT64_MAX)
		return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "its header has invalid values");
	memset(ret_header, 0, sizeof(*ret_header));
	ret_header->incompat = hx_get32(block + HX_LOG_HEADER_INCOMPAT);
	ret_header->ro_compat = hx_get32(block + HX_LOG_HEADER_RO_COMPAT);
	ret_header->compat = hx_get32(block + HX_LOG_HEADER_COMPAT);
	ret_header->minor = hx_get16(block + HX_LOG_HEADER_MINOR);
	ret_header->kind = (enum hx_log_kind)block[HX_LOG_HEADER_KIND];
	memcpy(ret_header->uuid, block + HX_LOG_HEADER_UUID, HX_LOG_UUID_SIZE);
	ret_header->id = hx_get64(block + HX_LOG_HEADER_ID);
	ret_header->salt = hx_get64(block + HX_LOG_HEADER_SALT);
	ret_header->capacity = capacity;
	header_assert(ret_header);
	return HAPAX_OK;
}

static void store_assert_pair(
	const struct hx_log_store_file *store, const unsigned char block[HX_LOG_BLOCK_SIZE])
{
	struct hx_log_store_file back = {0};
	enum hapax_status status = hx_log_store_decode(block, &back, NULL);

	assert(status == HAPAX_OK);
	assert(back.created_ms == store->created_ms);
	assert(back.token_floor == store->token_floor);
	assert(back.log_id == store->log_id);
	assert(memcmp(back.uuid, store->uuid, HX_LOG_UUID_SIZE) == 0);
}

void hx_log_store_encode(
	const struct hx_log_store_file *store, unsigned char block[HX_LOG_BLOCK_SIZE])
{
	encode_common(
		block, store_magic, store->uuid, store->incompat, store->ro_compat, store->compat);
	hx_put64(block + HX_LOG_STORE_CREATED, (uint64_t)store->created_ms);
	hx_put64(block + HX_LOG_STORE_TOKEN_FLOOR, store->token_floor);
	hx_put64(block + HX_LOG_STORE_LOG_ID, store->log_id);
	encode_crc(block);
	store_assert_pair(store, block);
}

enum hapax_status hx_log_store_decode(
	const unsigned char block[HX_LOG_BLOCK_SIZE], struct hx_log_store_file *ret_store,
	struct hapax_error *err)
{
	enum hapax_status status = decode_common(block, store_magic, err);

	if (status != HAPAX_OK)
		return status;
	if (!is_zero(block + HX_LOG_STORE_ZERO, HX_LOG_HEADER_CRC - HX_LOG_STORE_ZERO) ||
	    hx_get64(block + HX_LOG_STORE_TOKEN_FLOOR) > HX_TOKEN_MAX)
		return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "it has invalid values");
	memset(ret_store, 0, sizeof(*ret_store));
	ret_store->incompat = hx_get32(block + HX_LOG_HEADER_INCOMPAT);
	ret_store->ro_compat = hx_get32(block + HX_LOG_HEADER_RO_COMPAT);
	ret_store->compat = hx_get32(block + HX_LOG_HEADER_COMPAT);
	ret_store->minor = hx_get16(block + HX_LOG_HEADER_MINOR);
	memcpy(ret_store->uuid, block + HX_LOG_HEADER_UUID, HX_LOG_UUID_SIZE);
	ret_store->created_ms = (int64_t)hx_get64(block + HX_LOG_STORE_CREATED);
	ret_store->token_floor = hx_get64(block + HX_LOG_STORE_TOKEN_FLOOR);
	ret_store->log_id = hx_get64(block + HX_LOG_STORE_LOG_ID);
	return HAPAX_OK;
}

uint32_t hx_log_seed(const struct hx_log_header *header)
{
	unsigned char salted[HX_LOG_UUID_SIZE + 24];

	memcpy(salted, header->uuid, HX_LOG_UUID_SIZE);

	assert((unsigned)header->kind < HX_LOG_KIND_COUNT);
	hx_put64(salted + HX_LOG_UUID_SIZE, header->kind);
	hx_put64(salted + HX_LOG_UUID_SIZE + 8, header->id);
	hx_put64(salted + HX_LOG_UUID_SIZE + 16, header->salt);
	return hx_crc32c(0, salted, sizeof(salted));
}

static uint32_t frame_crc(const unsigned char *at, uint32_t seed, uint32_t payload)
{
	uint32_t crc = hx_crc32c(seed, at, HX_LOG_FRAME_CRC);

	assert(payload <= HX_LOG_FRAME_SIZE_MAX - HX_LOG_FRAME_HEADER_SIZE);
	return hx_crc32c(crc, at + HX_LOG_FRAME_HEADER_SIZE, payload);
}

/* The promises of every frame that this code writes. */
static void frame_assert(const struct hx_log_frame *frame)
{
	assert(frame->size == hx_log_frame_size(frame->payload));
	/* Behind the header of the segment. */
	assert(frame->offset >= HX_LOG_BLOCK_SIZE);
	assert(frame->offset % HX_LOG_BLOCK_SIZE == 0);
	/* Its own entries are not durable while it is written. */
	assert(frame->durable_lsn <= frame->lsn);
}

/* Peek accepts what was encoded, with the same limits. */
static void frame_assert_pair(const struct hx_log_frame *frame, const unsigned char *at)
{
	struct hx_log_frame back = {0};
	bool is_frame = hx_log_frame_peek(at, frame->offset, &back);

	assert(is_frame);
	assert(back.crc == frame->crc);
	assert(back.size == frame->size);
	assert(back.entries == frame->entries);
	assert(back.chain == frame->chain);
	assert(back.lsn == frame->lsn);
	assert(back.durable_lsn == frame->durable_lsn);
	assert(back.token == frame->token);
	assert(back.clock.store_ms == frame->clock.store_ms);
}

void hx_log_frame_encode(struct hx_log_frame *frame, uint32_t seed, unsigned char *at)
{
	frame_assert(frame);
	memset(at, 0, HX_LOG_FRAME_HEADER_SIZE);
	hx_put32(at + HX_LOG_FRAME_MAGIC, FRAME_MAGIC);
	hx_put32(at + HX_LOG_FRAME_FLAGS, frame->flags);
	hx_put32(at + HX_LOG_FRAME_SIZE, frame->size);
	hx_put32(at + HX_LOG_FRAME_PAYLOAD, frame->payload);
	hx_put32(at + HX_LOG_FRAME_ENTRIES, frame->entries);
	hx_put32(at + HX_LOG_FRAME_CHAIN, frame->chain);
	hx_put64(at + HX_LOG_FRAME_LSN, frame->lsn);
	hx_put64(at + HX_LOG_FRAME_DURABLE, frame->durable_lsn);
	hx_put64(at + HX_LOG_FRAME_TOKEN, frame->token);
	hx_put64(at + HX_LOG_FRAME_STORE_MS, (uint64_t)frame->clock.store_ms);
	hx_put64(at + HX_LOG_FRAME_BOOT_MS, (uint64_t)frame->clock.boot_ms);
	hx_put64(at + HX_LOG_FRAME_OWED_MS, (uint64_t)frame->clock.owed_ms);
	memcpy(at + HX_LOG_FRAME_BOOT_ID, frame->clock.boot_id, HAPAX_BOOT_ID_SIZE);
	hx_put64(at + HX_LOG_FRAME_OFFSET, frame->offset);
	frame->crc = frame_crc(at, seed, frame->payload);
	hx_put32(at + HX_LOG_FRAME_CRC, frame->crc);
	/* Beside the CRC of more than a block it costs nothing. */
	if (frame->payload > HX_LOG_BLOCK_SIZE)
		frame_assert_pair(frame, at);
}

bool hx_log_frame_peek(const unsigned char *at, uint64_t offset, struct hx_log_frame *ret_frame)
{
	struct hx_log_frame frame = {
		.flags = hx_get32(at + HX_LOG_FRAME_FLAGS),
		.size = hx_get32(at + HX_LOG_FRAME_SIZE),
		.payload = hx_get32(at + HX_LOG_FRAME_PAYLOAD),
		.entries = hx_get32(at + HX_LOG_FRAME_ENTRIES),
		.chain = hx_get32(at + HX_LOG_FRAME_CHAIN),
		.crc = hx_get32(at + HX_LOG_FRAME_CRC),
		.lsn = hx_get64(at + HX_LOG_FRAME_LSN),
		.durable_lsn = hx_get64(at + HX_LOG_FRAME_DURABLE),
		.token = hx_get64(at + HX_LOG_FRAME_TOKEN),
		.offset = hx_get64(at + HX_LOG_FRAME_OFFSET),
		.clock =
			{
				.store_ms = (int64_t)hx_get64(at + HX_LOG_FRAME_STORE_MS),
				.boot_ms = (int64_t)hx_get64(at + HX_LOG_FRAME_BOOT_MS),
				.owed_ms = (int64_t)hx_get64(at + HX_LOG_FRAME_OWED_MS),
			},
	};

	memcpy(frame.clock.boot_id, at + HX_LOG_FRAME_BOOT_ID, HAPAX_BOOT_ID_SIZE);
	if (hx_get32(at + HX_LOG_FRAME_MAGIC) != FRAME_MAGIC || frame.offset != offset ||
	    frame.size > HX_LOG_FRAME_SIZE_MAX ||
	    frame.payload > HX_LOG_FRAME_SIZE_MAX - HX_LOG_FRAME_HEADER_SIZE ||
	    frame.size != hx_log_frame_size(frame.payload) ||
	    /* No log lives long enough to get there, and the next number must not wrap around. */
	    frame.lsn > UINT64_MAX / 2 || frame.token > HX_TOKEN_MAX ||
	    frame.clock.store_ms > INT64_MAX / 2 || frame.clock.owed_ms < 0 ||
	    !is_zero(at + HX_LOG_FRAME_ZERO, HX_LOG_FRAME_CRC - HX_LOG_FRAME_ZERO))
		return false;
	/* The entries lie inside the frame, and the frame fills whole blocks. */
	assert(frame.payload <= frame.size - HX_LOG_FRAME_HEADER_SIZE);
	assert(frame.size % HX_LOG_BLOCK_SIZE == 0);
	*ret_frame = frame;
	return true;
}

bool hx_log_frame_is_whole(const struct hx_log_frame *frame, uint32_t seed, const unsigned char *at)
{
	/* Only peek makes frames that may be verified: the CRC covers no byte behind size. */
	assert(frame->size == hx_log_frame_size(frame->payload));
	return frame_crc(at, seed, frame->payload) == frame->crc;
}
