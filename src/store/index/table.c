/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - buckets, grown one at a time.
 *
 *  (1) A slot is in the chain of bucket hx_table_bucket_of(hash, bucket_count).
 *  (2) A slot with place 0 is empty: that place is never given out.
 *  (3) An overflow bucket is in one chain or in the free list.
 *
 * Sixteen bits of the hash are the slot's tag: bits 13 to 28. They are the very
 * bits that splits of tables from 2^13 to 2^28 buckets ask for, so that a split
 * need not touch the records, which would cost a cache miss each. What is left of
 * the tag in a table that large still tells ten slots apart.
 */
#include "store/index/table.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum {
	TAG_SHIFT = 13,
	TAG_BITS = 16,
	BUCKETS_MIN = 16,
	LOAD_NUMERATOR = 17, /* mean slots per bucket before a split: 8.5 */
	LOAD_DENOMINATOR = 2,
	HUGE_FROM_BYTES = HX_PAGES_HUGE_SIZE,
};

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
	return (bytes + step - 1) / step * step;
}

enum hapax_status hx_table_init(struct hx_table *table, uint64_t records_max)
{
	uint64_t buckets = records_max * LOAD_DENOMINATOR / LOAD_NUMERATOR + BUCKETS_MIN;

	memset(table, 0, sizeof(*table));
	table->buckets_bytes = round_up(buckets * sizeof(struct hx_bucket), HX_PAGES_HUGE_SIZE);
	table->overflow_bytes = round_up(table->buckets_bytes / 2, HX_PAGES_HUGE_SIZE);
	table->buckets = hx_pages_reserve(table->buckets_bytes);
	table->overflow = hx_pages_reserve(table->overflow_bytes);
	if (table->buckets == NULL || table->overflow == NULL ||
	    hx_pages_commit(table->buckets, HX_PAGES_STEP, 0) != 0) {
		hx_table_done(table);
		return HAPAX_ERR_NO_MEMORY;
	}
	table->buckets_committed = HX_PAGES_STEP;
	table->overflow_count = 1;
	atomic_store_explicit(&table->bucket_count, BUCKETS_MIN, memory_order_release);
	return HAPAX_OK;
}

void hx_table_done(struct hx_table *table)
{
	if (table->buckets != NULL)
		hx_pages_release(table->buckets, table->buckets_bytes);
	if (table->overflow != NULL)
		hx_pages_release(table->overflow, table->overflow_bytes);
	memset(table, 0, sizeof(*table));
}

uint64_t hx_table_bytes(const struct hx_table *table)
{
	return atomic_load_explicit(&table->bucket_count, memory_order_relaxed) *
		sizeof(struct hx_bucket) +
		table->overflow_count * sizeof(struct hx_overflow);
}

/* Commit so that the first bytes are usable; huge pages once the table is large. */
static bool commit(void *memory, uint64_t bytes, uint64_t reserved, uint64_t *committed)
{
	uint64_t step = *committed >= HUGE_FROM_BYTES ? HX_PAGES_HUGE_SIZE : HX_PAGES_STEP;
	unsigned flags = *committed >= HUGE_FROM_BYTES ? HX_PAGES_HUGE : 0;
	uint64_t end;

	if (bytes <= *committed)
		return true;
	end = round_up(bytes, step);
	if (end > reserved ||
	    hx_pages_commit((unsigned char *)memory + *committed, end - *committed, flags) != 0)
		return false;
	*committed = end;
	return true;
}

void hx_table_expect(struct hx_table *table, uint64_t records)
{
	uint64_t count = records * LOAD_DENOMINATOR / LOAD_NUMERATOR;
	uint64_t bytes = count * sizeof(struct hx_bucket);
	uint64_t small = bytes < HUGE_FROM_BYTES ? bytes : HUGE_FROM_BYTES;

	assert(table->slot_count == 0);
	if (count <= BUCKETS_MIN || bytes > table->buckets_bytes ||
	    !commit(table->buckets, small, table->buckets_bytes, &table->buckets_committed) ||
	    !commit(table->buckets, bytes, table->buckets_bytes, &table->buckets_committed))
		return;
	atomic_store_explicit(&table->bucket_count, count, memory_order_release);
}

/* Slots, of buckets and of overflow. */

struct slot {
	uint32_t place;
	uint16_t tag;
};

/* Where a slot is. */
struct slot_at {
	struct hx_bucket *bucket;     /* or NULL: */
	struct hx_overflow *overflow; /* in here */
	unsigned slot;
};

static uint64_t lane_set(uint64_t word, unsigned lane, uint16_t tag)
{
	unsigned shift = lane * 16;

	return (word & ~(UINT64_C(0xffff) << shift)) | (uint64_t)tag << shift;
}

static uint16_t bucket_tag(const struct hx_bucket *bucket, unsigned slot)
{
	uint64_t word = slot < 8
		? atomic_load_explicit(&bucket->tags[slot / 4], memory_order_relaxed)
		: atomic_load_explicit(&bucket->tags_last, memory_order_relaxed);

	return (uint16_t)(word >> slot % 4 * 16);
}

static uint16_t overflow_tag(const struct hx_overflow *overflow, unsigned slot)
{
	return (uint16_t)(atomic_load_explicit(&overflow->tags, memory_order_relaxed) >> slot * 16);
}

static void bucket_set_tag(struct hx_bucket *bucket, unsigned slot, uint16_t tag)
{
	if (slot < 8) {
		uint64_t word = atomic_load_explicit(&bucket->tags[slot / 4], memory_order_relaxed);

		atomic_store_explicit(
			&bucket->tags[slot / 4], lane_set(word, slot % 4, tag),
			memory_order_release);
	} else {
		uint64_t word = atomic_load_explicit(&bucket->tags_last, memory_order_relaxed);

		atomic_store_explicit(
			&bucket->tags_last, (uint32_t)lane_set(word, slot % 4, tag),
			memory_order_release);
	}
}

static void set_tag(struct slot_at at, uint16_t tag)
{
	uint64_t word;

	if (at.bucket != NULL) {
		bucket_set_tag(at.bucket, at.slot, tag);
		return;
	}
	word = atomic_load_explicit(&at.overflow->tags, memory_order_relaxed);
	atomic_store_explicit(
		&at.overflow->tags, lane_set(word, at.slot, tag), memory_order_release);
}

static void set_place(struct slot_at at, uint32_t place)
{
	_Atomic uint32_t *places = at.bucket != NULL ? at.bucket->places : at.overflow->places;

	atomic_store_explicit(&places[at.slot], place, memory_order_release);
}

static void set_slot(struct slot_at at, const struct slot *slot)
{
	set_tag(at, slot->tag);
	set_place(at, slot->place);
}

/* Chains. */

static void overflow_set_next(struct hx_overflow *overflow, uint32_t next)
{
	atomic_store_explicit(&overflow->next, next, memory_order_release);
}

/* Another number, the same filter. */
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
	table->overflow_free = hx_overflow_next(&table->overflow[number]);
	table->overflow_spare--;
	overflow_set_next(&table->overflow[number], 0);
	return number;
}

static void give_overflow(struct hx_table *table, uint32_t number)
{
	struct hx_overflow *overflow = &table->overflow[number];

	for (unsigned slot = 0; slot < HX_OVERFLOW_SLOTS; slot++)
		set_place((struct slot_at){NULL, overflow, slot}, 0);
	overflow_set_next(overflow, table->overflow_free);
	table->overflow_free = number;
	table->overflow_spare++;
}

static struct hx_bucket *chain_of(const struct hx_table *table, uint64_t hash)
{
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);

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

void hx_table_insert(struct hx_table *table, uint64_t hash, uint32_t place)
{
	const struct slot slot = {place, hx_table_tag(hash)};
	struct hx_bucket *bucket = chain_of(table, hash);
	struct slot_at at;

	assert(place != 0);
	if (!chain_find(table, bucket, 0, &at)) {
		/* All full: a new one goes right behind the bucket. */
		uint32_t number = take_overflow(table);

		at = (struct slot_at){NULL, &table->overflow[number], 0};
		overflow_set_next(at.overflow, hx_bucket_next(bucket));
		bucket_set_next(bucket, number);
	}
	if (at.bucket == NULL)
		bucket_add_filter(bucket, slot.tag);
	set_slot(at, &slot);
	table->slot_count++;
}

static void change(struct hx_table *table, uint64_t hash, uint32_t old, uint32_t place)
{
	struct slot_at at = {NULL, NULL, 0};
	bool is_found = chain_find(table, chain_of(table, hash), old, &at);

	assert(is_found && old != 0);
	(void)is_found;
	set_place(at, place);
}

void hx_table_replace(struct hx_table *table, uint64_t hash, uint32_t old, uint32_t place)
{
	assert(place != 0);
	change(table, hash, old, place);
}

void hx_table_remove(struct hx_table *table, uint64_t hash, uint32_t place)
{
	change(table, hash, place, 0);
	table->slot_count--;
}

/* Growth. */

/* Every slot of a chain. False: more than fit. */
static bool chain_slots(
	const struct hx_table *table, const struct hx_bucket *bucket,
	struct slot slots[HX_CHAIN_SLOTS_MAX], size_t *ret_count)
{
	size_t count = 0;

	for (unsigned i = 0; i < HX_BUCKET_SLOTS; i++) {
		uint32_t place = hx_bucket_place(bucket, i);

		if (place != 0)
			slots[count++] = (struct slot){place, bucket_tag(bucket, i)};
	}
	for (uint32_t number = hx_bucket_next(bucket); number != 0;) {
		const struct hx_overflow *overflow = &table->overflow[number];

		if (count + HX_OVERFLOW_SLOTS > HX_CHAIN_SLOTS_MAX)
			return false;
		for (unsigned i = 0; i < HX_OVERFLOW_SLOTS; i++) {
			uint32_t place = hx_overflow_place(overflow, i);

			if (place != 0)
				slots[count++] = (struct slot){place, overflow_tag(overflow, i)};
		}
		number = hx_overflow_next(overflow);
	}
	*ret_count = count;
	return true;
}

static void chain_clear(struct hx_table *table, struct hx_bucket *bucket)
{
	uint32_t number = hx_bucket_next(bucket);

	for (unsigned slot = 0; slot < HX_BUCKET_SLOTS; slot++)
		set_place((struct slot_at){bucket, NULL, slot}, 0);
	atomic_store_explicit(&bucket->next, 0, memory_order_release);
	while (number != 0) {
		uint32_t next = hx_overflow_next(&table->overflow[number]);

		give_overflow(table, number);
		number = next;
	}
}

/* The bit of the hash that decides a split, from the tag when it is in there. */
static bool goes_up(
	const struct slot *slot, unsigned bit, hx_table_rehash_fn *rehash, void *context)
{
	if (bit >= TAG_SHIFT && bit < TAG_SHIFT + TAG_BITS)
		return (slot->tag >> (bit - TAG_SHIFT)) & 1;
	return (rehash(slot->place, context) >> bit) & 1;
}

/* A chain that is being filled from its front. */
struct chain_end {
	struct hx_bucket *first;
	struct slot_at next; /* the next free slot, or one past the last */
};

static void chain_append(struct hx_table *table, struct chain_end *end, const struct slot *slot)
{
	unsigned slots = end->next.bucket != NULL ? HX_BUCKET_SLOTS : HX_OVERFLOW_SLOTS;

	if (end->next.slot == slots) {
		uint32_t number = take_overflow(table);

		if (end->next.bucket != NULL)
			bucket_set_next(end->first, number);
		else
			overflow_set_next(end->next.overflow, number);
		end->next = (struct slot_at){NULL, &table->overflow[number], 0};
	}
	if (end->next.bucket == NULL)
		bucket_add_filter(end->first, slot->tag);
	set_slot(end->next, slot);
	end->next.slot++;
}

/* Split the next bucket in turn. It needs no overflow that its chain does not give back. */
static void split(struct hx_table *table, hx_table_rehash_fn *rehash, void *context)
{
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);
	unsigned bit = 63u - (unsigned)__builtin_clzll(count);
	struct hx_bucket *low = &table->buckets[count - (UINT64_C(1) << bit)];
	struct hx_bucket *high = &table->buckets[count];
	struct chain_end low_end = {low, {low, NULL, 0}};
	struct chain_end high_end = {high, {high, NULL, 0}};
	struct slot slots[HX_CHAIN_SLOTS_MAX];
	size_t slot_count = 0;

	if (!chain_slots(table, low, slots, &slot_count))
		return;
	hx_table_begin(table);
	chain_clear(table, low);
	for (size_t i = 0; i < slot_count; i++) {
		bool up = goes_up(&slots[i], bit, rehash, context);

		chain_append(table, up ? &high_end : &low_end, &slots[i]);
	}
	atomic_store_explicit(&table->bucket_count, count + 1, memory_order_release);
	hx_table_end(table);
}

static bool add_spare(struct hx_table *table)
{
	uint64_t end = ((uint64_t)table->overflow_count + 1) * sizeof(struct hx_overflow);

	if (table->overflow_count > HX_OVERFLOW_MASK ||
	    !commit(table->overflow, end, table->overflow_bytes, &table->overflow_committed))
		return false;
	give_overflow(table, table->overflow_count++);
	return true;
}

enum hapax_status hx_table_reserve(
	struct hx_table *table, unsigned inserts, hx_table_rehash_fn *rehash, void *context)
{
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);

	/* A split may need one more bucket than it frees. */
	while (table->overflow_spare < inserts + 1) {
		if (!add_spare(table))
			return HAPAX_ERR_NO_MEMORY;
	}
	if (table->slot_count * LOAD_DENOMINATOR > count * LOAD_NUMERATOR &&
	    commit(table->buckets, (count + 1) * sizeof(struct hx_bucket), table->buckets_bytes,
	           &table->buckets_committed)) {
		split(table, rehash, context);
		while (table->overflow_spare < inserts + 1) {
			if (!add_spare(table))
				return HAPAX_ERR_NO_MEMORY;
		}
	}
	return HAPAX_OK;
}

size_t hx_table_places(
	const struct hx_table *table, uint64_t bucket, uint32_t ret_places[HX_CHAIN_SLOTS_MAX])
{
	struct slot slots[HX_CHAIN_SLOTS_MAX];
	size_t count = 0;

	if (!chain_slots(table, &table->buckets[bucket], slots, &count))
		count = 0;
	for (size_t i = 0; i < count; i++)
		ret_places[i] = slots[i].place;
	return count;
}
