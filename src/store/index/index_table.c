/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_table.c - buckets, grown one at a time.
 *
 *  (1) A slot is in the chain of bucket hx_table_bucket_of(hash, bucket_count).
 *  (2) A slot with place 0 is empty: that place is never used.
 *  (3) An overflow bucket is in one chain or in the free list.
 *
 * Sixteen bits of the hash are the slot's tag: bits 13 to 28. Splits of tables from 2^13 to 2^28
 * buckets use the same bits. So a split need not touch the records, which would cost a cache
 * miss each. In a table that large, the rest of the tag still tells ten slots apart.
 */
#include "store/index/index_table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum {
	TAG_SHIFT = HX_TABLE_TAG_SHIFT,
	TAG_BITS = 16,
	HUGE_FROM_BYTES = HX_PAGES_HUGE_SIZE,
};

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
	assert(bytes <= UINT64_MAX - step);
	return (bytes + step - 1) / step * step;
}

/* Commit so that the first bytes are usable; huge pages if the table is large. */
static bool commit(void *memory, uint64_t bytes, uint64_t reserved, uint64_t *committed)
{
	uint64_t step = *committed >= HUGE_FROM_BYTES ? HX_PAGES_HUGE_SIZE : HX_PAGES_STEP;
	unsigned flags = *committed >= HUGE_FROM_BYTES ? HX_PAGES_HUGE : 0;
	uint64_t end;

	if (bytes <= *committed)
		return true;
	assert(*committed <= reserved);
	assert(*committed % step == 0);
	end = round_up(bytes, step);
	if (end > reserved ||
	    hx_alloc_pages_commit((unsigned char *)memory + *committed, end - *committed, flags) !=
		    0)
		return false;
	assert(end >= bytes);
	assert(end > *committed);
	*committed = end;
	return true;
}

static uint64_t buckets_bytes(uint64_t records_max, uint64_t buckets)
{
	uint64_t buckets_max = records_max * HX_LOAD_DENOMINATOR / HX_LOAD_NUMERATOR + buckets;

	return round_up(buckets_max * sizeof(struct hx_bucket), HX_PAGES_HUGE_SIZE);
}

static uint64_t overflow_bytes(uint64_t bytes)
{
	return round_up(bytes / 2, HX_PAGES_HUGE_SIZE);
}

uint64_t hx_table_address_bytes(uint64_t records_max, uint64_t buckets)
{
	uint64_t bytes = buckets_bytes(records_max, buckets);

	return bytes + overflow_bytes(bytes);
}

enum hapax_status hx_table_init(struct hx_table *table, uint64_t records_max, uint64_t buckets)
{
	assert(buckets >= 1);
	memset(table, 0, sizeof(*table));
	table->buckets_bytes = buckets_bytes(records_max, buckets);
	table->overflow_bytes = overflow_bytes(table->buckets_bytes);
	table->buckets = hx_alloc_pages_reserve(table->buckets_bytes);
	table->overflow = hx_alloc_pages_reserve(table->overflow_bytes);
	if (table->buckets == NULL || table->overflow == NULL ||
	    !commit(table->buckets, buckets * sizeof(struct hx_bucket), table->buckets_bytes,
		    &table->buckets_committed)) {
		hx_table_done(table);
		return HAPAX_ERR_NO_MEMORY;
	}
	table->overflow_count = 1;
	atomic_store_explicit(&table->bucket_count, buckets, memory_order_release);
	hx_table_assert(table);
	return HAPAX_OK;
}

void hx_table_assert(const struct hx_table *table)
{
	uint64_t buckets = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);

	assert(buckets >= 1);
	assert(buckets * sizeof(struct hx_bucket) <= table->buckets_committed);
	assert(table->buckets_committed <= table->buckets_bytes);
	assert(table->overflow_count >= 1);
	assert(table->overflow_count <= HX_OVERFLOW_MASK + 1);
	/* Number 0 is never used: until another one is, no memory is committed. */
	assert(table->overflow_count == 1 ||
	       table->overflow_count * sizeof(struct hx_overflow) <= table->overflow_committed);
	assert(table->overflow_committed <= table->overflow_bytes);
	assert(table->overflow_spare < table->overflow_count);
	assert((table->overflow_free == 0) == (table->overflow_spare == 0));
	assert(table->overflow_free < table->overflow_count);
	assert(table->slot_count <= buckets * HX_BUCKET_SLOTS +
		       (uint64_t)(table->overflow_count - 1 - table->overflow_spare) *
			       HX_OVERFLOW_SLOTS);
	assert(!hx_table_is_begun(table));
}

/* The list of free overflow buckets is as long as it should be. */
static void free_list_assert(const struct hx_table *table)
{
	uint32_t length = 0;

	for (uint32_t number = table->overflow_free; number != 0; length++) {
		assert(number < table->overflow_count);
		assert(length < table->overflow_spare);
		number = hx_overflow_next(&table->overflow[number]);
	}
	assert(length == table->overflow_spare);
}

void hx_table_done(struct hx_table *table)
{
	/* Without a bucket it was never opened. */
	if (atomic_load_explicit(&table->bucket_count, memory_order_relaxed) != 0) {
		hx_table_assert(table);
		free_list_assert(table);
	}
	if (table->buckets != NULL)
		hx_alloc_pages_release(table->buckets, table->buckets_bytes);
	if (table->overflow != NULL)
		hx_alloc_pages_release(table->overflow, table->overflow_bytes);
	memset(table, 0, sizeof(*table));
}

uint64_t hx_table_bytes(const struct hx_table *table)
{
	return atomic_load_explicit(&table->bucket_count, memory_order_relaxed) *
		sizeof(struct hx_bucket) +
		table->overflow_count * sizeof(struct hx_overflow);
}

void hx_table_expect(struct hx_table *table, uint64_t records)
{
	/* The number comes from a file. More than fit are as good as none. */
	uint64_t count = records <= table->buckets_bytes
		? records * HX_LOAD_DENOMINATOR / HX_LOAD_NUMERATOR
		: 0;
	uint64_t bytes = count * sizeof(struct hx_bucket);
	uint64_t small = bytes < HUGE_FROM_BYTES ? bytes : HUGE_FROM_BYTES;

	hx_table_assert(table);
	assert(table->slot_count == 0);
	if (count <= atomic_load_explicit(&table->bucket_count, memory_order_relaxed) ||
	    bytes > table->buckets_bytes ||
	    !commit(table->buckets, small, table->buckets_bytes, &table->buckets_committed) ||
	    !commit(table->buckets, bytes, table->buckets_bytes, &table->buckets_committed))
		return;
	atomic_store_explicit(&table->bucket_count, count, memory_order_release);
}

/* A huge page behind the first bytes, if the used ones come close to the end. */
static size_t commit_ahead(
	void *memory, uint64_t used, uint64_t reserved, uint64_t *committed,
	struct hx_ahead_pages *ret_pages)
{
	uint64_t before = *committed;

	assert(used <= before || before == 0);
	assert(before <= reserved);
	if (before < HUGE_FROM_BYTES || before - used >= HX_PAGES_HUGE_SIZE / 2 ||
	    !commit(memory, before + HX_PAGES_HUGE_SIZE, reserved, committed))
		return 0;
	ret_pages->at = (unsigned char *)memory + before;
	ret_pages->bytes = *committed - before;
	return 1;
}

size_t hx_table_commit_ahead(struct hx_table *table, struct hx_ahead_pages ret_pages[2])
{
	uint64_t buckets = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);
	size_t count = commit_ahead(
		table->buckets, buckets * sizeof(struct hx_bucket), table->buckets_bytes,
		&table->buckets_committed, ret_pages);

	count += commit_ahead(
		table->overflow, table->overflow_count * sizeof(struct hx_overflow),
		table->overflow_bytes, &table->overflow_committed, ret_pages + count);
	return count;
}

/* Slots, of buckets and of overflow. */

/* The location of a slot. */
struct slot_at {
	struct hx_bucket *bucket;     /* or NULL: */
	struct hx_overflow *overflow; /* in here */
	unsigned slot;
};

static void set_place(struct slot_at at, uint32_t place)
{
	_Atomic uint32_t *places = at.bucket != NULL ? at.bucket->places : at.overflow->places;

	atomic_store_explicit(&places[at.slot], place, memory_order_release);
}

/* Chains. */

static void overflow_set_next(struct hx_overflow *overflow, uint32_t next)
{
	atomic_store_explicit(&overflow->next, next, memory_order_release);
}

/* Change the number, keep the filter. */
static void bucket_set_next(struct hx_bucket *bucket, uint32_t number)
{
	uint32_t next = atomic_load_explicit(&bucket->next, memory_order_relaxed);

	next = (next & ~(uint32_t)HX_OVERFLOW_MASK) | number;
	atomic_store_explicit(&bucket->next, next, memory_order_release);
}

static void bucket_add_filter(struct hx_bucket *bucket, uint16_t tag)
{
	uint32_t next = atomic_load_explicit(&bucket->next, memory_order_relaxed);

	atomic_store_explicit(&bucket->next, next | hx_bucket_filter(tag), memory_order_release);
}

static uint32_t take_overflow(struct hx_table *table)
{
	uint32_t number = table->overflow_free;

	assert(number != 0);
	assert(table->overflow_spare > 0);
	table->overflow_free = hx_overflow_next(&table->overflow[number]);
	table->overflow_spare--;
	overflow_set_next(&table->overflow[number], 0);
	return number;
}

static void give_overflow(struct hx_table *table, uint32_t number)
{
	struct hx_overflow *overflow = &table->overflow[number];

	assert(number != 0);
	assert(number < table->overflow_count);
	assert(table->overflow_spare < table->overflow_count - 1);
	for (unsigned slot = 0; slot < HX_OVERFLOW_SLOTS; slot++)
		set_place((struct slot_at){NULL, overflow, slot}, 0);
	overflow_set_next(overflow, table->overflow_free);
	table->overflow_free = number;
	table->overflow_spare++;
}

static struct hx_bucket *chain_of(const struct hx_table *table, uint64_t hash)
{
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);

	assert(hx_table_bucket_of(hash, count) < count);
	return &table->buckets[hx_table_bucket_of(hash, count)];
}

/* The slot of a chain that holds place; place 0 finds an empty one. */
static bool chain_find(
	const struct hx_table *table, struct hx_bucket *bucket, uint32_t place,
	struct slot_at *ret_at)
{
	for (unsigned slot = 0; slot < HX_BUCKET_SLOTS; slot++) {
		if (hx_bucket_place(bucket, slot) == place) {
			*ret_at = (struct slot_at){bucket, NULL, slot};
			return true;
		}
	}
	for (uint32_t number = hx_bucket_next(bucket); number != 0;) {
		struct hx_overflow *overflow = &table->overflow[number];

		for (unsigned slot = 0; slot < HX_OVERFLOW_SLOTS; slot++) {
			if (hx_overflow_place(overflow, slot) == place) {
				*ret_at = (struct slot_at){NULL, overflow, slot};
				return true;
			}
		}
		number = hx_overflow_next(overflow);
	}
	return false;
}

void hx_table_insert_overflow(
	struct hx_table *table, struct hx_bucket *bucket, uint16_t tag, uint32_t place)
{
	struct slot_at at;

	if (!chain_find(table, bucket, 0, &at)) {
		/* All full: a new overflow bucket goes right behind the bucket. */
		uint32_t number = take_overflow(table);

		at = (struct slot_at){NULL, &table->overflow[number], 0};
		overflow_set_next(at.overflow, hx_bucket_next(bucket));
		bucket_set_next(bucket, number);
	}
	assert(at.bucket == NULL);
	bucket_add_filter(bucket, tag);
	atomic_store_explicit(
		&at.overflow->tags,
		hx_bucket_set_lane(
			atomic_load_explicit(&at.overflow->tags, memory_order_relaxed), at.slot,
			tag),
		memory_order_release);
	set_place(at, place);
}

static void change(struct hx_table *table, uint64_t hash, uint32_t old, uint32_t place)
{
	struct slot_at at = {NULL, NULL, 0};
	bool is_found = chain_find(table, chain_of(table, hash), old, &at);

	assert(old != 0);
	assert(is_found);
	assert(hx_table_is_begun(table));
	(void)is_found;
	set_place(at, place);
}

void hx_table_replace(struct hx_table *table, uint64_t hash, uint32_t old, uint32_t place)
{
	assert(place != 0);
	assert(place != old);
	change(table, hash, old, place);
}

void hx_table_remove(struct hx_table *table, uint64_t hash, uint32_t place)
{
	assert(table->slot_count > 0);
	change(table, hash, place, 0);
	table->slot_count--;
}

/* Growth. */

/* The slots taken out of a chain. */
struct chain {
	size_t count;
	uint32_t places[HX_CHAIN_SLOTS_MAX];
	uint16_t tags[HX_CHAIN_SLOTS_MAX];
};

/* Add the slot unless it is empty. */
static void chain_add(struct chain *chain, uint32_t place, uint16_t tag)
{
	chain->places[chain->count] = place;
	chain->tags[chain->count] = tag;
	chain->count += place != 0;
}

static void chain_add_four(struct chain *chain, const _Atomic uint32_t *places, uint64_t tags)
{
	for (unsigned i = 0; i < 4; i++)
		chain_add(
			chain, atomic_load_explicit(&places[i], memory_order_relaxed),
			(uint16_t)(tags >> i * 16));
}

/* Every slot of a chain. False: more than fit. */
static bool chain_read(
	const struct hx_table *table, const struct hx_bucket *bucket, struct chain *ret_chain)
{
	uint32_t last = atomic_load_explicit(&bucket->tags_last, memory_order_relaxed);

	ret_chain->count = 0;
	for (unsigned i = 0; i < 2; i++)
		chain_add_four(
			ret_chain, bucket->places + (size_t)i * 4,
			atomic_load_explicit(&bucket->tags[i], memory_order_relaxed));
	for (unsigned i = 0; i < 2; i++)
		chain_add(ret_chain, hx_bucket_place(bucket, 8 + i), (uint16_t)(last >> i * 16));
	for (uint32_t number = hx_bucket_next(bucket); number != 0;) {
		const struct hx_overflow *overflow = &table->overflow[number];

		if (ret_chain->count + HX_OVERFLOW_SLOTS >= HX_CHAIN_SLOTS_MAX)
			return false;
		chain_add_four(
			ret_chain, overflow->places,
			atomic_load_explicit(&overflow->tags, memory_order_relaxed));
		number = hx_overflow_next(overflow);
	}
	return true;
}

/* Free the overflow of a bucket. */
static void chain_cut(struct hx_table *table, struct hx_bucket *bucket)
{
	uint32_t number = hx_bucket_next(bucket);

	atomic_store_explicit(&bucket->next, 0, memory_order_release);
	while (number != 0) {
		uint32_t next = hx_overflow_next(&table->overflow[number]);

		give_overflow(table, number);
		number = next;
	}
}

/* Write at most slots slots from first on; the rest are emptied. */
static void write_slots(
	const struct chain *chain, size_t first, unsigned slots, _Atomic uint32_t *places,
	uint64_t ret_tags[3])
{
	for (unsigned i = 0; i < slots; i++) {
		bool is_used = first + i < chain->count;

		if (is_used)
			ret_tags[i / 4] |= (uint64_t)chain->tags[first + i] << i % 4 * 16;
		atomic_store_explicit(
			&places[i], is_used ? chain->places[first + i] : 0, memory_order_release);
	}
}

/* Fill a bucket that has no overflow with the slots of chain. */
static void chain_write(struct hx_table *table, struct hx_bucket *bucket, const struct chain *chain)
{
	uint64_t tags[3] = {0, 0, 0};

	write_slots(chain, 0, HX_BUCKET_SLOTS, bucket->places, tags);
	atomic_store_explicit(&bucket->tags[0], tags[0], memory_order_release);
	atomic_store_explicit(&bucket->tags[1], tags[1], memory_order_release);
	atomic_store_explicit(&bucket->tags_last, (uint32_t)tags[2], memory_order_release);
	for (size_t first = HX_BUCKET_SLOTS; first < chain->count; first += HX_OVERFLOW_SLOTS) {
		uint32_t number = take_overflow(table);
		struct hx_overflow *overflow = &table->overflow[number];
		uint64_t four_tags[3] = {0, 0, 0};

		write_slots(chain, first, HX_OVERFLOW_SLOTS, overflow->places, four_tags);
		atomic_store_explicit(&overflow->tags, four_tags[0], memory_order_release);
		overflow_set_next(overflow, hx_bucket_next(bucket));
		bucket_set_next(bucket, number);
	}
	for (size_t i = HX_BUCKET_SLOTS; i < chain->count; i++)
		bucket_add_filter(bucket, chain->tags[i]);
}

/* The bit of the hash that decides a split, from the tag if it is there. */
static bool goes_up(
	const struct chain *chain, size_t slot, unsigned bit, hx_table_rehash_fn *rehash,
	void *context)
{
	if (bit >= TAG_SHIFT && bit < TAG_SHIFT + TAG_BITS)
		return (chain->tags[slot] >> (bit - TAG_SHIFT)) & 1;
	return (rehash(chain->places[slot], context) >> bit) & 1;
}

/* Split the next bucket in turn. It needs no overflow beyond what its chain frees. */
static void split(struct hx_table *table, hx_table_rehash_fn *rehash, void *context)
{
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);
	unsigned bit = 63u - (unsigned)__builtin_clzll(count);
	struct hx_bucket *low = &table->buckets[count - (UINT64_C(1) << bit)];
	struct hx_bucket *high = &table->buckets[count];
	struct chain chain;
	struct chain up;
	size_t stay = 0;

	/* The new bucket was never used, so it has no chain. */
	assert(atomic_load_explicit(&high->next, memory_order_relaxed) == 0);
	if (!chain_read(table, low, &chain))
		return;
	up.count = 0;
	/* An unpredictable half moves up: each slot is written to both, kept in one. */
	for (size_t i = 0; i < chain.count; i++) {
		bool is_up = goes_up(&chain, i, bit, rehash, context);
		uint32_t place = chain.places[i];
		uint16_t tag = chain.tags[i];

		up.places[up.count] = place;
		up.tags[up.count] = tag;
		up.count += is_up;
		chain.places[stay] = place;
		chain.tags[stay] = tag;
		stay += !is_up;
	}
	assert(stay + up.count == chain.count);
	chain.count = stay;
	hx_table_begin(table);
	chain_cut(table, low);
	chain_write(table, low, &chain);
	chain_write(table, high, &up);
	atomic_store_explicit(&table->bucket_count, count + 1, memory_order_release);
	hx_table_end(table);
	/* The next split comes in about eight inserts: time to prefetch its lines. */
	__builtin_prefetch(low + 1, 1);
	__builtin_prefetch(high + 1, 1);
}

static bool add_spare(struct hx_table *table)
{
	uint64_t end = ((uint64_t)table->overflow_count + 1) * sizeof(struct hx_overflow);

	assert(table->overflow_count >= 1);
	if (table->overflow_count > HX_OVERFLOW_MASK ||
	    !commit(table->overflow, end, table->overflow_bytes, &table->overflow_committed))
		return false;
	give_overflow(table, table->overflow_count++);
	return true;
}

/* Make this many overflow buckets free. */
static bool add_spares(struct hx_table *table, unsigned count)
{
	while (table->overflow_spare < count) {
		if (!add_spare(table))
			return false;
	}
	return true;
}

enum hapax_status hx_table_grow(
	struct hx_table *table, unsigned inserts, hx_table_rehash_fn *rehash, void *context)
{
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);

	/* A split may need one more bucket than it frees. */
	if (!add_spares(table, inserts + 1))
		return HAPAX_ERR_NO_MEMORY;
	if (hx_table_is_loaded(table) &&
	    commit(table->buckets, (count + 1) * sizeof(struct hx_bucket), table->buckets_bytes,
		   &table->buckets_committed))
		split(table, rehash, context);
	/* Seldom: a split comes with every eighth new key. */
	if (count % 64 == 0)
		hx_table_assert(table);
	return add_spares(table, inserts + 1) ? HAPAX_OK : HAPAX_ERR_NO_MEMORY;
}

size_t hx_table_places(
	const struct hx_table *table, uint64_t bucket, uint32_t ret_places[HX_CHAIN_SLOTS_MAX])
{
	struct chain chain;

	assert(bucket < atomic_load_explicit(&table->bucket_count, memory_order_relaxed));
	if (!chain_read(table, &table->buckets[bucket], &chain))
		return 0;
	memcpy(ret_places, chain.places, chain.count * sizeof(*ret_places));
	return chain.count;
}
