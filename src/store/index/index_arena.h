/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_arena.h - the memory of packed records: chunks, filled in order, freed whole.
 *
 * Records of one expiry class share chunks, so that records that arrive together leave together.
 * A chunk is open while it is filled, then sealed. Dead records leave gaps. When the last record
 * is dead, the chunk is retired, and reused when no reader can still see it. Chunks that stay
 * half empty are emptied by copying the rest (shard.c). Large records share chunks with each
 * other as long as two fit into one; above that they have chunks of their own.
 *
 * Locks: one thread at a time, under the shard's lock; readers only follow hx_arena_at() and
 * hx_arena_base().
 */
#ifndef HX_STORE_INDEX_INDEX_ARENA_H
#define HX_STORE_INDEX_INDEX_ARENA_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/index/ahead.h"
#include "store/index/epoch.h"
#include "store/index/packed.h"
#include "store/index/packed_mark.h"

enum {
	HX_CHUNK_SIZE = 256 * 1024,
	/* Larger records are kept apart, so that sealing never wastes more than this. */
	HX_CHUNK_RECORD_MAX = HX_CHUNK_SIZE / 8,
	/* Records begin at even addresses: a 32-bit place reaches 8 GiB. */
	HX_PLACE_UNIT = 2,
};

enum hx_expiry_class {
	HX_CLASS_HELD, /* CLAIMED and PARKED: short-lived, or few */
	HX_CLASS_HOUR,
	HX_CLASS_DAY,
	HX_CLASS_WEEK,
	HX_CLASS_MONTH,
	HX_CLASS_EVER,
	HX_CLASS_LARGE, /* above HX_CHUNK_RECORD_MAX, whenever it expires */
};
enum { HX_CLASS_COUNT = HX_CLASS_LARGE + 1 };

enum hx_chunk_state {
	HX_CHUNK_FREE,
	HX_CHUNK_OPEN,
	HX_CHUNK_SEALED,
	HX_CHUNK_RETIRED,
	HX_CHUNK_TAIL, /* belongs to the large record that begins in an earlier chunk */
};

struct hx_chunk {
	struct hx_packed_base base; /* fixed from open to free */
	int64_t due_ms;             /* no live record is due before: see hx_arena_due() */
	uint64_t stamp;             /* RETIRED: when */
	uint32_t used;              /* bytes filled */
	uint32_t live;              /* bytes of records that are not dead */
	uint32_t run;               /* adjacent chunks of one record, including this first one */
	uint32_t next;              /* in the free list or the retired queue; 0: none */
	uint8_t state;              /* enum hx_chunk_state */
	uint8_t class_;             /* enum hx_expiry_class */
	uint32_t generation;        /* counts openings, so that a paused walk can tell */
};

struct hx_arena {
	unsigned char *memory;
	struct hx_chunk *chunks;
	uint64_t memory_bytes; /* reserved */
	uint64_t chunks_bytes; /* reserved */
	uint32_t chunk_count_max;
	uint32_t chunk_count;     /* ever taken; number 0 is never used */
	uint32_t committed_count; /* the memory of chunks is usable up to here */
	uint32_t open[HX_CLASS_COUNT];
	uint32_t free_first;
	uint32_t free_count;
	uint32_t retired_first;
	uint32_t retired_last;
	uint64_t live_bytes;
	uint64_t used_bytes;       /* live and dead, in open and sealed chunks */
	enum hapax_status failure; /* why a write returned 0 */
	struct hx_epoch *epoch;
	struct hx_ahead *ahead; /* NULL: memory is touched when it is needed */
};

/* What holds whenever the shard's lock is free. Locks: as above. */
void hx_arena_assert(const struct hx_arena *arena);

/* The same, and that every chunk adds up. This walks over all chunks. */
void hx_arena_assert_chunks(const struct hx_arena *arena);

/* The address space that an arena of this many bytes reserves. */
uint64_t hx_arena_address_bytes(uint64_t bytes);

enum hapax_status hx_arena_init(struct hx_arena *arena, uint64_t bytes, struct hx_epoch *epoch);
void hx_arena_done(struct hx_arena *arena);

/*
 * Prepare chunks for records that will take this many bytes. Without memory nothing happens.
 * Returns the prepared bytes, from arena->memory on.
 */
uint64_t hx_arena_expect(struct hx_arena *arena, uint64_t bytes);

/* The records have come: return prepared memory that is not needed. */
void hx_arena_settle(struct hx_arena *arena);

/*
 * Make chunks usable, if the untaken ones would not fill half of a huge page. Returns 1 and the
 * memory to populate, or 0. A small arena stays small.
 */
size_t hx_arena_commit_ahead(struct hx_arena *arena, struct hx_ahead_pages *ret_pages);

/* When a sweep must act on record: it expires, or its claim is given up. */
int64_t hx_arena_due(const struct hapax_record *record);

/*
 * The bytes of its chunk that a record of that size takes. A large one takes an even share, or
 * whole chunks, so that unusable space beside it counts as used.
 */
static inline uint32_t hx_arena_room(size_t size)
{
	if (size <= HX_CHUNK_RECORD_MAX)
		return (uint32_t)size;
	if (size <= HX_CHUNK_SIZE / 2)
		return (uint32_t)(HX_CHUNK_SIZE / (HX_CHUNK_SIZE / size)) & ~1u;
	return (uint32_t)((size + HX_CHUNK_SIZE - 1) / HX_CHUNK_SIZE * HX_CHUNK_SIZE);
}

/* The same for the record at at: the next one begins behind it. */
static inline uint32_t hx_arena_room_at(const unsigned char *at)
{
	size_t size = hx_packed_read_size(at);

	assert(size % HX_PLACE_UNIT == 0);
	return hx_arena_room(size);
}

enum hx_expiry_class hx_arena_class(const struct hapax_record *record, int64_t now_ms);

/*
 * Write record to its class's open chunk, or to a new one. now_ms and token are the base of a
 * new chunk. elsewhere: as for hx_packed_shape(). Returns its place, or 0: arena->failure is
 * HAPAX_ERR_NO_MEMORY, or HAPAX_ERR_LIMIT when all chunks are taken.
 */
uint32_t hx_arena_write(
	struct hx_arena *arena, const struct hapax_record *record,
	const struct hx_elsewhere *elsewhere, const struct hx_packed_key *key, uint32_t profile_id,
	bool ttl_is_own, int64_t now_ms);

/* The same for a mark. 0: no room, or the mark needs the general form. */
uint32_t hx_arena_write_mark(
	struct hx_arena *arena, const struct hx_packed_key *key, const struct hx_packed_mark *mark,
	int64_t now_ms);

/* No slot points at the record at place any more. */
void hx_arena_kill(struct hx_arena *arena, uint32_t place);

static inline unsigned char *hx_arena_at(const struct hx_arena *arena, uint32_t place)
{
	return arena->memory + (uint64_t)place * HX_PLACE_UNIT;
}

static inline uint32_t hx_arena_chunk_of(uint32_t place)
{
	return place / (HX_CHUNK_SIZE / HX_PLACE_UNIT);
}

static inline const struct hx_packed_base *hx_arena_base(
	const struct hx_arena *arena, uint32_t place)
{
	return &arena->chunks[hx_arena_chunk_of(place)].base;
}

#endif
