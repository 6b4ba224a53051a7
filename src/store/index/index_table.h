/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_table.h - from a hash to places: buckets of one cache line, grown one at a time.
 *
 * Linear hashing: when the mean load passes its bound, one bucket is split into itself and a new
 * last one, so there is never a pause to rehash. Records move only upward, and the table never
 * shrinks. So a walk by rising bucket number sees every record that stays.
 *
 * Readers do not lock. They look for their tag, then check in the sequence counter, which is odd
 * during a write, that nothing moved. A place is one atomic word, so a place that they follow
 * was a record's since they entered the epoch. Comparing the whole key decides whether it is
 * their record.
 *
 * Locks: writing under the shard's lock, between begin and end.
 */
#ifndef HX_STORE_INDEX_INDEX_TABLE_H
#define HX_STORE_INDEX_INDEX_TABLE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <hapax/error.h>

#include "store/index/ahead.h"

enum {
	HX_BUCKET_SLOTS = 10,
	HX_OVERFLOW_SLOTS = 4,
	HX_OVERFLOW_BITS =
		25, /* bits of an overflow bucket's number: enough for 8 GiB of records */
	HX_OVERFLOW_MASK = (1 << HX_OVERFLOW_BITS) - 1,
	HX_TABLE_TAG_SHIFT = 13, /* the first bit of the hash that is in a tag */
	HX_TABLE_BUCKETS_FAST = 1 << HX_TABLE_TAG_SHIFT,
	HX_LOAD_NUMERATOR = 17, /* mean slots per bucket before a split: 8.5 */
	HX_LOAD_DENOMINATOR = 2,
	/* More candidates than any chain that a keyed hash can make. */
	HX_CHAIN_SLOTS_MAX = 640,
};

/* Ten slots, each a tag of 16 bits and a place; place 0: empty. */
struct hx_bucket {
	_Atomic uint64_t tags[2];   /* of slots 0 to 7, four in a word */
	_Atomic uint32_t tags_last; /* of slots 8 and 9 */
	_Atomic uint32_t places[HX_BUCKET_SLOTS];
	_Atomic uint32_t next; /* see hx_bucket_next() and hx_bucket_overflows() */
};

_Static_assert(sizeof(struct hx_bucket) == 64, "a bucket is one cache line");

/* The overflow of a bucket: four more slots, and perhaps another four. */
struct hx_overflow {
	_Atomic uint64_t tags;
	_Atomic uint32_t places[HX_OVERFLOW_SLOTS];
	_Atomic uint32_t next; /* 0: none */
	uint32_t unused;
};

_Static_assert(sizeof(struct hx_overflow) == 32, "two to a cache line");

struct hx_table {
	_Atomic uint64_t sequence;     /* odd: a write is in progress */
	_Atomic uint64_t bucket_count; /* buckets in use, overflow not included */
	struct hx_bucket *buckets;
	struct hx_overflow *overflow; /* number 0 is never used */
	uint64_t buckets_bytes;       /* reserved */
	uint64_t overflow_bytes;      /* reserved */
	uint64_t buckets_committed;   /* bytes */
	uint64_t overflow_committed;
	uint32_t overflow_count; /* ever taken */
	uint32_t overflow_free;  /* first of the list; 0: none */
	uint32_t overflow_spare; /* length of that list */
	uint64_t slot_count;     /* in use */
};

/*
 * records_max: the table never has to hold more records. buckets: the initial number; splits of
 * HX_TABLE_BUCKETS_FAST and more need no record.
 */
enum hapax_status hx_table_init(struct hx_table *table, uint64_t records_max, uint64_t buckets);

/* The address space that such a table reserves. */
uint64_t hx_table_address_bytes(uint64_t records_max, uint64_t buckets);
void hx_table_done(struct hx_table *table);

/*
 * Begin with enough buckets for this many records, which saves the splits. The table is empty.
 * Without memory nothing happens.
 */
void hx_table_expect(struct hx_table *table, uint64_t records);

/* What holds whenever the shard's lock is free. Locks: the shard's. */
void hx_table_assert(const struct hx_table *table);

/* The bytes that buckets take. */
uint64_t hx_table_bytes(const struct hx_table *table);

/*
 * Make a huge page usable behind the buckets, and behind the overflow, if the used part comes
 * close to the end. Returns the number of ranges to populate.
 */
size_t hx_table_commit_ahead(struct hx_table *table, struct hx_ahead_pages ret_pages[2]);

static inline uint16_t hx_table_tag(uint64_t hash)
{
	return (uint16_t)(hash >> HX_TABLE_TAG_SHIFT);
}

/* The bucket of a hash when there are count of them. */
static inline uint64_t hx_table_bucket_of(uint64_t hash, uint64_t count)
{
	uint64_t half = UINT64_C(1) << (63 - __builtin_clzll(count));
	uint64_t number = hash & (half * 2 - 1);

	return number < count ? number : number - half;
}

/*
 * A bit for each of four 16-bit lanes of word that equals tag, at the lane's top. Lanes above a
 * match may give false bits.
 */
static inline uint64_t hx_bucket_lanes(uint64_t word, uint16_t tag)
{
	const uint64_t ones = UINT64_C(0x0001000100010001);
	uint64_t difference = word ^ (ones * tag);

	return (difference - ones) & ~difference & (ones << 15);
}

/* The four bits of hx_bucket_lanes() side by side. */
static inline unsigned hx_bucket_gather(uint64_t lanes)
{
	/* Moves bits 0, 16, 32 and 48 to 48, 49, 50 and 51; the products do not overlap. */
	return (unsigned)((lanes >> 15) * UINT64_C(0x0001000200040008) >> 48 & 0xf);
}

#if defined(__SSE2__)

/* Like hx_bucket_gather() of hx_bucket_lanes() for eight lanes, and exact. */
static inline unsigned hx_bucket_eight(uint64_t low, uint64_t high, uint16_t tag)
{
	__m128i equal = _mm_cmpeq_epi16(
		_mm_set_epi64x((int64_t)high, (int64_t)low), _mm_set1_epi16((short)tag));

	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()));
}

#else

static inline unsigned hx_bucket_eight(uint64_t low, uint64_t high, uint16_t tag)
{
	return hx_bucket_gather(hx_bucket_lanes(low, tag)) |
		hx_bucket_gather(hx_bucket_lanes(high, tag)) << 4;
}

#endif

/*
 * The slots of bucket that may hold tag, as bits 0 to 9. A false bit is harmless: candidates are
 * compared by key.
 */
static inline unsigned hx_bucket_candidates(const struct hx_bucket *bucket, uint16_t tag)
{
	uint64_t low = atomic_load_explicit(&bucket->tags[0], memory_order_acquire);
	uint64_t high = atomic_load_explicit(&bucket->tags[1], memory_order_acquire);
	uint32_t last = atomic_load_explicit(&bucket->tags_last, memory_order_acquire);

	return hx_bucket_eight(low, high, tag) | (unsigned)((uint16_t)last == tag) << 8 |
		(unsigned)(last >> 16 == tag) << 9;
}

/* Acquire: the record was written before its place. */
static inline uint32_t hx_bucket_place(const struct hx_bucket *bucket, unsigned slot)
{
	return atomic_load_explicit(&bucket->places[slot], memory_order_acquire);
}

/* The number of the next bucket in the chain; 0: none. */
static inline uint32_t hx_bucket_next(const struct hx_bucket *bucket)
{
	return atomic_load_explicit(&bucket->next, memory_order_acquire) & HX_OVERFLOW_MASK;
}

/* One of seven bits, from the part of the tag that splits use last. */
static inline uint32_t hx_bucket_filter(uint16_t tag)
{
	return UINT32_C(1) << (HX_OVERFLOW_BITS + ((uint32_t)(tag >> 8) * 7 >> 8));
}

/*
 * Can tag be in the overflow of bucket, which is the first of its chain? The bits that a number
 * leaves free say so, and save most new keys a cache miss.
 */
static inline bool hx_bucket_overflows(const struct hx_bucket *bucket, uint16_t tag)
{
	uint32_t next = atomic_load_explicit(&bucket->next, memory_order_acquire);

	return (next & hx_bucket_filter(tag)) != 0;
}

static inline const struct hx_overflow *hx_table_overflow(
	const struct hx_table *table, uint32_t number)
{
	return &table->overflow[number];
}

/* The same for the slots of an overflow bucket, as bits 0 to 3. */
static inline unsigned hx_overflow_candidates(const struct hx_overflow *overflow, uint16_t tag)
{
	return hx_bucket_gather(
		hx_bucket_lanes(atomic_load_explicit(&overflow->tags, memory_order_acquire), tag));
}

static inline uint32_t hx_overflow_place(const struct hx_overflow *overflow, unsigned slot)
{
	return atomic_load_explicit(&overflow->places[slot], memory_order_acquire);
}

static inline uint32_t hx_overflow_next(const struct hx_overflow *overflow)
{
	return atomic_load_explicit(&overflow->next, memory_order_acquire);
}

/* Writers bracket changes that readers must not see half done. Brackets do not nest. */
static inline void hx_table_begin(struct hx_table *table)
{
	uint64_t sequence = atomic_load_explicit(&table->sequence, memory_order_relaxed);

	assert((sequence & 1) == 0);
	atomic_store_explicit(&table->sequence, sequence + 1, memory_order_relaxed);
}

static inline void hx_table_end(struct hx_table *table)
{
	uint64_t sequence = atomic_load_explicit(&table->sequence, memory_order_relaxed);

	assert((sequence & 1) == 1);
	atomic_store_explicit(&table->sequence, sequence + 1, memory_order_release);
}

/* Between begin and end? */
static inline bool hx_table_is_begun(const struct hx_table *table)
{
	return atomic_load_explicit(&table->sequence, memory_order_relaxed) & 1;
}

/*
 * Make sure that inserts more inserts cannot fail. HAPAX_ERR_NO_MEMORY: they might. Grows the
 * table by a bucket if its load requires it and memory allows; failing to grow is not an error.
 * rehash returns the hash of the record at a place.
 */
typedef uint64_t hx_table_rehash_fn(uint32_t place, void *context);
enum hapax_status hx_table_grow(
	struct hx_table *table, unsigned inserts, hx_table_rehash_fn *rehash, void *context);

/* Does the load require another bucket? */
static inline bool hx_table_is_loaded(const struct hx_table *table)
{
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);

	return table->slot_count * HX_LOAD_DENOMINATOR > count * HX_LOAD_NUMERATOR;
}

static inline enum hapax_status hx_table_reserve(
	struct hx_table *table, unsigned inserts, hx_table_rehash_fn *rehash, void *context)
{
	if (table->overflow_spare > inserts && !hx_table_is_loaded(table))
		return HAPAX_OK;
	return hx_table_grow(table, inserts, rehash, context);
}

/*
 * The first empty slot of a bucket, or HX_BUCKET_SLOTS. There is one writer: nothing changes
 * meanwhile.
 */
static inline unsigned hx_bucket_empty_slot(const struct hx_bucket *bucket)
{
#if defined(__SSE2__)
	const __m128i zero = _mm_setzero_si128();
	const unsigned char *places =
		(const unsigned char *)bucket + offsetof(struct hx_bucket, places);
	__m128i four = _mm_cmpeq_epi32(_mm_loadu_si128((const void *)places), zero);
	__m128i eight = _mm_cmpeq_epi32(_mm_loadu_si128((const void *)(places + 16)), zero);
	__m128i ten = _mm_cmpeq_epi32(_mm_loadl_epi64((const void *)(places + 32)), zero);
	__m128i bytes = _mm_packs_epi16(_mm_packs_epi32(four, eight), _mm_packs_epi32(ten, zero));
	/* A bit beyond the last slot stops the search there. */
	unsigned empty = ((unsigned)_mm_movemask_epi8(bytes) & ((1u << HX_BUCKET_SLOTS) - 1)) |
		1u << HX_BUCKET_SLOTS;

	return (unsigned)__builtin_ctz(empty);
#else
	unsigned slot = 0;

	while (slot < HX_BUCKET_SLOTS && hx_bucket_place(bucket, slot) != 0)
		slot++;
	return slot;
#endif
}

/* word with a different tag in one of its lanes. */
static inline uint64_t hx_bucket_set_lane(uint64_t word, unsigned lane, uint16_t tag)
{
	unsigned shift = lane * 16;

	return (word & ~(UINT64_C(0xffff) << shift)) | (uint64_t)tag << shift;
}

static inline void hx_bucket_set_tag(struct hx_bucket *bucket, unsigned slot, uint16_t tag)
{
	assert(slot < HX_BUCKET_SLOTS);
	if (slot < 8) {
		uint64_t word = atomic_load_explicit(&bucket->tags[slot / 4], memory_order_relaxed);

		atomic_store_explicit(
			&bucket->tags[slot / 4], hx_bucket_set_lane(word, slot % 4, tag),
			memory_order_release);
	} else {
		uint64_t word = atomic_load_explicit(&bucket->tags_last, memory_order_relaxed);

		atomic_store_explicit(
			&bucket->tags_last, (uint32_t)hx_bucket_set_lane(word, slot % 4, tag),
			memory_order_release);
	}
}

/* For a bucket that is full. */
void hx_table_insert_overflow(
	struct hx_table *table, struct hx_bucket *bucket, uint16_t tag, uint32_t place);

/* Between begin and end; room was reserved. */
static inline void hx_table_insert(struct hx_table *table, uint64_t hash, uint32_t place)
{
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);
	struct hx_bucket *bucket = &table->buckets[hx_table_bucket_of(hash, count)];
	unsigned slot = hx_bucket_empty_slot(bucket);

	assert(place != 0);
	if (slot < HX_BUCKET_SLOTS) {
		hx_bucket_set_tag(bucket, slot, hx_table_tag(hash));
		atomic_store_explicit(&bucket->places[slot], place, memory_order_release);
	} else {
		hx_table_insert_overflow(table, bucket, hx_table_tag(hash), place);
	}
	table->slot_count++;
}

/* Between begin and end: replace old with place in the slot of hash that holds it. */
void hx_table_replace(struct hx_table *table, uint64_t hash, uint32_t old, uint32_t place);

/* Between begin and end: empty the slot of hash that holds place. */
void hx_table_remove(struct hx_table *table, uint64_t hash, uint32_t place);

/* The places in a bucket and its overflow. Returns how many; at most HX_CHAIN_SLOTS_MAX. */
size_t hx_table_places(
	const struct hx_table *table, uint64_t bucket, uint32_t ret_places[HX_CHAIN_SLOTS_MAX]);

#endif
