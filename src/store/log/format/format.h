/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - the bytes of segments, frames and entries. README.md describes the format; here it
 * is in numbers. Nothing here does I/O or allocates.
 *
 * Decoders treat files as hostile: every length is checked before it is used, and accepted data
 * has no undefined bytes.
 *
 * Threads: any.
 */
#ifndef HX_STORE_LOG_FORMAT_FORMAT_H
#define HX_STORE_LOG_FORMAT_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>
#include <hapax/record.h>
#include <hapax/store.h>

#include "store/clock_mark.h"

enum {
	HX_LOG_BLOCK_SIZE = 4096,
	HX_LOG_BLOCK_BITS = 12,
	HX_LOG_UUID_SIZE = 16,
	HX_LOG_MAJOR = 1,
	HX_LOG_MINOR = 0,
	HX_LOG_HEADER_SIZE = 128, /* of its block; the rest is zero */
	HX_LOG_FRAME_HEADER_SIZE = 128,
	HX_LOG_ENTRY_ALIGN = 8,
	HX_LOG_ENTRY_HEAD_SIZE = 16,  /* of every entry */
	HX_LOG_RECORD_HEAD_SIZE = 48, /* of PUT and REMOVE */
	HX_LOG_SCOPE_HEAD_SIZE = 24,  /* of SCOPE */
	HX_LOG_BEGIN_SIZE = 32,
	HX_LOG_MANIFEST_HEAD_SIZE = 40,
	HX_LOG_MANIFEST_ITEM_SIZE = 24,
	HX_LOG_COUNTS_SIZE = 32 + 8 * HAPAX_DECISION_COUNT,
	HX_LOG_SEAL_SIZE = 72,
	HX_LOG_RESULT_HEAD_SIZE = 24,
	/* One result of the largest size, with its headers and texts, and a margin. */
	HX_LOG_FRAME_SIZE_MAX = 32 * 1024 * 1024,
	/* The most segments that a manifest can list; merging keeps them in the dozens. */
	HX_LOG_CLASS_SEGMENTS_MAX = 4096,
};

_Static_assert(HX_LOG_BLOCK_SIZE == 1 << HX_LOG_BLOCK_BITS, "a block");
_Static_assert(HX_LOG_COUNTS_SIZE % HX_LOG_ENTRY_ALIGN == 0, "entries are aligned");

enum hx_log_kind {
	HX_LOG_KIND_LOG = 0,
	HX_LOG_KIND_HOUR = 1,
	HX_LOG_KIND_DAY = 2,
	HX_LOG_KIND_WEEK = 3,
	HX_LOG_KIND_MONTH = 4,
	HX_LOG_KIND_EVER = 5,
};
enum { HX_LOG_KIND_COUNT = 6 };

/* The prefix of names: "log", "hour", ... */
const char *hx_log_kind_name(enum hx_log_kind kind);

/* Offsets in the header of a segment; STORE shares some of them. */
enum hx_log_header_at {
	HX_LOG_HEADER_MAGIC = 0,
	HX_LOG_HEADER_MAJOR = 8,
	HX_LOG_HEADER_MINOR = 10,
	HX_LOG_HEADER_INCOMPAT = 12,
	HX_LOG_HEADER_RO_COMPAT = 16,
	HX_LOG_HEADER_COMPAT = 20,
	HX_LOG_HEADER_UUID = 24,
	HX_LOG_HEADER_ID = 40,
	HX_LOG_HEADER_SALT = 48,
	HX_LOG_HEADER_CAPACITY = 56,
	HX_LOG_HEADER_KIND = 64,
	HX_LOG_HEADER_BLOCK_BITS = 65,
	HX_LOG_HEADER_ZERO = 66,
	HX_LOG_HEADER_CRC = 124,
	HX_LOG_STORE_CREATED = 40,
	HX_LOG_STORE_TOKEN_FLOOR = 48,
	HX_LOG_STORE_LOG_ID = 56,
	HX_LOG_STORE_ZERO = 64,
};

_Static_assert(HX_LOG_HEADER_UUID + HX_LOG_UUID_SIZE == HX_LOG_HEADER_ID, "uuid fills its field");
_Static_assert(HX_LOG_HEADER_CRC + 4 == HX_LOG_HEADER_SIZE, "the CRC ends the header");

enum hx_log_frame_at {
	HX_LOG_FRAME_MAGIC = 0,
	HX_LOG_FRAME_FLAGS = 4,
	HX_LOG_FRAME_SIZE = 8,
	HX_LOG_FRAME_PAYLOAD = 12,
	HX_LOG_FRAME_ENTRIES = 16,
	HX_LOG_FRAME_CHAIN = 20,
	HX_LOG_FRAME_LSN = 24,
	HX_LOG_FRAME_DURABLE = 32,
	HX_LOG_FRAME_TOKEN = 40,
	HX_LOG_FRAME_STORE_MS = 48,
	HX_LOG_FRAME_BOOT_MS = 56,
	HX_LOG_FRAME_OWED_MS = 64,
	HX_LOG_FRAME_BOOT_ID = 72,
	HX_LOG_FRAME_OFFSET = 88,
	HX_LOG_FRAME_ZERO = 96,
	HX_LOG_FRAME_CRC = 124,
};

_Static_assert(
	HX_LOG_FRAME_BOOT_ID + HAPAX_BOOT_ID_SIZE == HX_LOG_FRAME_OFFSET,
	"boot id fills its field");
_Static_assert(HX_LOG_FRAME_CRC + 4 == HX_LOG_FRAME_HEADER_SIZE, "the CRC ends the frame header");

enum hx_log_entry_at {
	HX_LOG_ENTRY_KIND = 0,
	HX_LOG_ENTRY_FLAGS = 1,
	HX_LOG_ENTRY_KEY_SIZE = 2,
	HX_LOG_ENTRY_SIZE = 4,
	HX_LOG_ENTRY_LSN = 8,
	HX_LOG_ENTRY_TOKEN = 16,
	HX_LOG_ENTRY_EXPIRES = 24,
	HX_LOG_ENTRY_CHANGED = 32,
	HX_LOG_ENTRY_SCOPE = 40,
	HX_LOG_ENTRY_BITS = 44,
	HX_LOG_ENTRY_ZERO = 45,
	HX_LOG_ENTRY_PARTS = 46,
	HX_LOG_ENTRY_KEY = 48,
};

_Static_assert((int)HX_LOG_ENTRY_KEY == (int)HX_LOG_RECORD_HEAD_SIZE, "the key follows the head");

enum hx_log_entry_kind {
	HX_LOG_ENTRY_NONE = 0,
	HX_LOG_PUT = 1,
	HX_LOG_REMOVE = 2,
	HX_LOG_SCOPE = 3,
	HX_LOG_BEGIN = 4,
	HX_LOG_MANIFEST = 5,
	HX_LOG_COUNTS = 6,
	HX_LOG_SEAL = 7,
	HX_LOG_ENTRY_SKIPPABLE = 0x80, /* a reader that does not know it may skip it */
};

enum hx_log_entry_flag {
	HX_LOG_REPLACES = 1 << 0, /* of PUT: lower LSNs of this key are dead */
};

enum hx_log_frame_flag {
	HX_LOG_FRAME_CLOSE = 1 << 0,
	HX_LOG_FRAME_SEAL = 1 << 1,
	HX_LOG_FRAME_LOOSE = 1 << 2, /* written without waiting for the one before it */
};

/* Flags of a segment's header and of STORE: a reader that does not know one must not open it. */
enum hx_log_incompat {
	HX_LOG_INCOMPAT_CAUSE = 1 << 0, /* a PUT may have an event */
};

struct hx_log_header {
	uint32_t incompat; /* enum hx_log_incompat */
	uint32_t ro_compat;
	uint32_t compat;
	uint16_t minor;
	enum hx_log_kind kind;
	unsigned char uuid[HX_LOG_UUID_SIZE];
	uint64_t id;
	uint64_t salt;
	uint64_t capacity;
};

struct hx_log_store_file {
	uint32_t incompat;
	uint32_t ro_compat;
	uint32_t compat;
	uint16_t minor;
	unsigned char uuid[HX_LOG_UUID_SIZE];
	int64_t created_ms;
	uint64_t token_floor;
	uint64_t log_id; /* this log segment or a later one has durable frames; 0: none */
};

/* Both fill a whole block. */
void hx_log_header_encode(
	const struct hx_log_header *header, unsigned char block[HX_LOG_BLOCK_SIZE]);
void hx_log_store_encode(
	const struct hx_log_store_file *store, unsigned char block[HX_LOG_BLOCK_SIZE]);

/*
 * CORRUPT: not such a block, or damaged; UNSUPPORTED: a newer format. The message says which,
 * without the file's name.
 */
enum hapax_status hx_log_header_decode(
	const unsigned char block[HX_LOG_BLOCK_SIZE], struct hx_log_header *ret_header,
	struct hapax_error *err);
enum hapax_status hx_log_store_decode(
	const unsigned char block[HX_LOG_BLOCK_SIZE], struct hx_log_store_file *ret_store,
	struct hapax_error *err);

/* The initial CRC of every frame of a segment. */
uint32_t hx_log_seed(const struct hx_log_header *header);

/* A frame without its entries. */
struct hx_log_frame {
	uint32_t flags;
	uint32_t size;    /* padded */
	uint32_t payload; /* bytes of entries */
	uint32_t entries;
	uint32_t chain;
	uint32_t crc; /* out only */
	uint64_t lsn;
	uint64_t durable_lsn;
	uint64_t token;
	uint64_t offset;
	struct hx_clock_mark clock;
};

/* The size, in whole blocks, of a frame with this many bytes of entries. */
static inline uint32_t hx_log_frame_size(uint32_t payload)
{
	assert(payload <= HX_LOG_FRAME_SIZE_MAX - HX_LOG_FRAME_HEADER_SIZE);
	return (HX_LOG_FRAME_HEADER_SIZE + payload + HX_LOG_BLOCK_SIZE - 1) &
		~(uint32_t)(HX_LOG_BLOCK_SIZE - 1);
}

/* Write the header in front of payload bytes of existing entries; sets frame->crc. */
void hx_log_frame_encode(struct hx_log_frame *frame, uint32_t seed, unsigned char *at);

/*
 * Does a frame begin at at, which holds HX_LOG_FRAME_HEADER_SIZE bytes? Checks everything but
 * the CRC. offset is where it was read.
 */
bool hx_log_frame_peek(const unsigned char *at, uint64_t offset, struct hx_log_frame *ret_frame);

/* Does the CRC of a frame match? at holds the header and all entries. */
bool hx_log_frame_is_whole(
	const struct hx_log_frame *frame, uint32_t seed, const unsigned char *at);

struct hx_log_seal {
	uint64_t puts;
	uint64_t removes;
	uint64_t removes_offset;
	uint64_t lsn_low;
	uint64_t made_lsn; /* its PUTs were live when the log had reached this LSN, or later */
	int64_t expires_ms_max;
	uint64_t put_bytes;
};

struct hx_log_manifest_item {
	uint64_t id;
	uint64_t bytes;
	enum hx_log_kind kind;
	uint32_t crc;            /* of its last frame */
	struct hx_log_seal seal; /* the segment's own; not in the manifest */
};

/* An entry in a frame; its pointers lead into the frame. */
struct hx_log_entry {
	uint8_t kind; /* enum hx_log_entry_kind, or unknown and skippable */
	uint8_t flags;
	uint32_t size;
	uint64_t lsn;
	uint64_t offset; /* in its file; set by hx_log_entries_next() */
	union {
		/*
		 * PUT: tenant and group are empty, scope replaces them, and key is as stored.
		 * REMOVE: key, changed_ms and expires_ms are set.
		 */
		struct {
			struct hapax_record record;
			uint32_t scope;
			uint8_t encoding;   /* of key: enum hx_key_encoding */
			uint32_t result_at; /* of PUT: offset of headers and body in the entry */
		} put;
		struct {
			uint32_t number;
			struct hapax_bytes tenant;
			struct hapax_bytes group;
		} scope;
		struct {
			uint64_t previous_id;
			uint64_t previous_end;
		} begin;
		struct {
			uint64_t log_first_id;
			uint64_t next_class_id;
			uint32_t count;
			const unsigned char *items; /* see hx_log_manifest_item() */
		} manifest;
		struct {
			int64_t hour_ms;
			uint32_t scope;
			uint64_t counts[HAPAX_DECISION_COUNT];
		} counts;
		struct hx_log_seal seal;
	} as;
};

/*
 * Read the entry at the front of bytes, which end with the frame's entries. CORRUPT: not a valid
 * entry of this format.
 */
enum hapax_status hx_log_entry_decode(
	struct hapax_bytes bytes, struct hx_log_entry *ret_entry, struct hapax_error *err);

struct hx_log_manifest_item hx_log_manifest_item(const struct hx_log_entry *entry, uint32_t index);

struct hx_packed_key;
struct hx_packed_mark;

/* The size of a PUT of record, and of a REMOVE: multiples of HX_LOG_ENTRY_ALIGN. */
size_t hx_log_put_size(const struct hapax_record *record, const struct hx_packed_key *key);
size_t hx_log_remove_size(const struct hx_packed_key *key);

/* Write size bytes. scope is the segment's number for key's scope. */
void hx_log_put_encode(
	unsigned char *at, const struct hapax_record *record, const struct hx_packed_key *key,
	uint32_t scope, unsigned flags, uint64_t lsn);
void hx_log_remove_encode(
	unsigned char *at, const struct hx_packed_key *key, uint32_t scope, int64_t changed_ms,
	int64_t needed_until_ms, uint64_t lsn);

/* The same for a mark made at now_ms; scope is key's own number. */
size_t hx_log_mark_size(const struct hx_packed_mark *mark, const struct hx_packed_key *key);
void hx_log_mark_encode(
	unsigned char *at, const struct hx_packed_mark *mark, const struct hx_packed_key *key,
	int64_t now_ms, uint64_t lsn);

size_t hx_log_scope_size(struct hapax_bytes tenant, struct hapax_bytes group);
void hx_log_scope_encode(
	unsigned char *at, uint32_t number, struct hapax_bytes tenant, struct hapax_bytes group,
	uint64_t lsn);

void hx_log_begin_encode(
	unsigned char *at, uint64_t previous_id, uint64_t previous_end, uint64_t lsn);

size_t hx_log_manifest_size(uint32_t count);
void hx_log_manifest_encode(
	unsigned char *at, uint64_t log_first_id, uint64_t next_class_id,
	const struct hx_log_manifest_item *items, uint32_t count, uint64_t lsn);

void hx_log_counts_encode(
	unsigned char *at, int64_t hour_ms, uint32_t scope,
	const uint64_t counts[HAPAX_DECISION_COUNT], uint64_t lsn);

void hx_log_seal_encode(unsigned char *at, const struct hx_log_seal *seal, uint64_t lsn);

#endif
