/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_arena.c - chunks of packed records.
 *
 *  (1) A chunk goes FREE -> OPEN -> SEALED -> RETIRED -> FREE. Readers may use it until it is
 *      FREE.
 *  (2) used_bytes and live_bytes are the sums over OPEN and SEALED chunks.
 *  (3) A chunk with live 0 is not SEALED for longer than a call.
 */
#include "store/index/index_arena.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum {
	PLACES_PER_CHUNK = HX_CHUNK_SIZE / HX_PLACE_UNIT,
	/* Free chunks beyond this return their memory to the system. */
	FREE_KEPT_MAX = 16,
	/* Small stores stay small: huge pages only if there is one to fill. */
	CHUNKS_PER_HUGE = HX_PAGES_HUGE_SIZE / HX_CHUNK_SIZE,
};

#define HOUR_MS INT64_C(3600000)

/* One step more than needed: commits use whole steps. */
static uint64_t chunks_bytes(uint64_t chunks)
{
	return (chunks * sizeof(struct hx_chunk) / HX_PAGES_STEP + 2) * HX_PAGES_STEP;
}

uint64_t hx_arena_address_bytes(uint64_t bytes)
{
	return bytes + chunks_bytes(bytes / HX_CHUNK_SIZE);
}

enum hapax_status hx_arena_init(struct hx_arena *arena, uint64_t bytes, struct hx_epoch *epoch)
{
	uint64_t chunks = bytes / HX_CHUNK_SIZE;

	assert(chunks >= 2);
	assert(chunks <= UINT32_MAX / PLACES_PER_CHUNK + 1);
	assert(bytes % HX_CHUNK_SIZE == 0);
	memset(arena, 0, sizeof(*arena));
	arena->chunk_count_max = (uint32_t)chunks;
	arena->chunk_count = 1;
	arena->committed_count = 1;
	arena->epoch = epoch;
	arena->memory_bytes = bytes;
	arena->chunks_bytes = chunks_bytes(chunks);
	arena->memory = hx_alloc_pages_reserve(arena->memory_bytes);
	arena->chunks = hx_alloc_pages_reserve(arena->chunks_bytes);
	if (arena->memory == NULL || arena->chunks == NULL ||
	    hx_alloc_pages_commit(arena->chunks, HX_PAGES_STEP, 0) != 0) {
		/* Nothing to add up: the table of chunks may be missing. */
		arena->chunk_count = 0;
		hx_arena_done(arena);
		return HAPAX_ERR_NO_MEMORY;
	}
	hx_arena_assert(arena);
	return HAPAX_OK;
}

/* What holds for every chunk that was ever taken. */
static void chunk_assert(const struct hx_arena *arena, uint32_t number)
{
	const struct hx_chunk *chunk = &arena->chunks[number];

	assert(number >= 1);
	assert(number < arena->chunk_count);
	assert(chunk->state <= HX_CHUNK_TAIL);
	assert(chunk->class_ < HX_CLASS_COUNT);
	if (chunk->state != HX_CHUNK_OPEN && chunk->state != HX_CHUNK_SEALED)
		return;
	assert(chunk->run >= 1);
	assert(chunk->run <= arena->chunk_count - number);
	assert(chunk->live <= chunk->used);
	assert(chunk->used <= (uint64_t)chunk->run * HX_CHUNK_SIZE);
	/* Only a large record has more than one chunk, and it fills them alone. */
	assert(chunk->run == 1 || chunk->class_ == HX_CLASS_LARGE);
	/* A class fills its open chunk; a run is sealed before its record is published. */
	assert(chunk->state == HX_CHUNK_SEALED || chunk->run > 1 ||
	       arena->open[chunk->class_] == number);
}

void hx_arena_assert(const struct hx_arena *arena)
{
	assert(arena->chunk_count >= 1);
	assert(arena->chunk_count <= arena->committed_count);
	assert(arena->committed_count <= arena->chunk_count_max);
	assert(arena->live_bytes <= arena->used_bytes);
	assert(arena->used_bytes <= (uint64_t)(arena->chunk_count - 1) * HX_CHUNK_SIZE);
	assert(arena->free_count < arena->chunk_count);
	assert((arena->free_first == 0) == (arena->free_count == 0));
	assert((arena->retired_first == 0) == (arena->retired_last == 0));
	assert(arena->retired_last == 0 || arena->chunks[arena->retired_last].next == 0);
	for (unsigned i = 0; i < HX_CLASS_COUNT; i++) {
		assert(arena->open[i] < arena->chunk_count);
		assert(arena->open[i] == 0 || arena->chunks[arena->open[i]].state == HX_CHUNK_OPEN);
		assert(arena->open[i] == 0 || arena->chunks[arena->open[i]].class_ == i);
	}
}

void hx_arena_assert_chunks(const struct hx_arena *arena)
{
	uint64_t used = 0, live = 0;
	uint32_t free_count = 0;

	hx_arena_assert(arena);
	for (uint32_t i = 1; i < arena->chunk_count; i++) {
		const struct hx_chunk *chunk = &arena->chunks[i];

		chunk_assert(arena, i);
		free_count += chunk->state == HX_CHUNK_FREE;
		if (chunk->state != HX_CHUNK_OPEN && chunk->state != HX_CHUNK_SEALED)
			continue;
		used += chunk->used;
		live += chunk->live;
		assert(chunk->live != 0 || chunk->state == HX_CHUNK_OPEN);
	}
	assert(used == arena->used_bytes);
	assert(live == arena->live_bytes);
	assert(free_count == arena->free_count);
}

void hx_arena_done(struct hx_arena *arena)
{
	if (arena->chunk_count != 0)
		hx_arena_assert_chunks(arena);
	if (arena->memory != NULL)
		hx_alloc_pages_release(arena->memory, arena->memory_bytes);
	if (arena->chunks != NULL)
		hx_alloc_pages_release(arena->chunks, arena->chunks_bytes);
	memset(arena, 0, sizeof(*arena));
}

int64_t hx_arena_due(const struct hapax_record *record)
{
	int64_t due_ms;

	if (record->state != HAPAX_STATE_CLAIMED)
		return record->expires_ms;
	/* The same as hx_transition_sweep(): a loaded lease may have ended at any time. */
	if (record->ttl_ms == HAPAX_TTL_FOREVER ||
	    __builtin_add_overflow(record->lease_ends_ms, record->ttl_ms, &due_ms))
		return HAPAX_TIME_NEVER;
	return due_ms;
}

static enum hx_expiry_class class_of_span(int64_t left_ms)
{
	if (left_ms <= HOUR_MS)
		return HX_CLASS_HOUR;
	if (left_ms <= 24 * HOUR_MS)
		return HX_CLASS_DAY;
	if (left_ms <= 7 * 24 * HOUR_MS)
		return HX_CLASS_WEEK;
	return left_ms <= 31 * 24 * HOUR_MS ? HX_CLASS_MONTH : HX_CLASS_EVER;
}

enum hx_expiry_class hx_arena_class(const struct hapax_record *record, int64_t now_ms)
{
	if (record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED)
		return HX_CLASS_HELD;
	if (record->expires_ms == HAPAX_TIME_NEVER)
		return HX_CLASS_EVER;
	return class_of_span(record->expires_ms - now_ms);
}

/* Back to FREE, a large record's chunks one by one, so that any record can use them. */
static void chunk_free(struct hx_arena *arena, uint32_t number)
{
	uint32_t run = arena->chunks[number].run;

	assert(number >= 1);
	assert(run >= 1);
	assert(run <= arena->chunk_count - number);
	assert(arena->chunks[number].live == 0);
	for (uint32_t i = number; i < number + run; i++) {
		struct hx_chunk *chunk = &arena->chunks[i];

		/* A sealed one would be given to a second record while the first is read. */
		assert(chunk->state == (i == number ? HX_CHUNK_RETIRED : HX_CHUNK_TAIL));
		if (arena->free_count >= FREE_KEPT_MAX)
			hx_alloc_pages_discard(
				arena->memory + (uint64_t)i * HX_CHUNK_SIZE, HX_CHUNK_SIZE);
		chunk->state = HX_CHUNK_FREE;
		chunk->run = 1;
		chunk->next = arena->free_first;
		arena->free_first = i;
		arena->free_count++;
	}
}

/* Retired chunks are queued in order of their stamps, so the first one decides. */
static void reclaim(struct hx_arena *arena)
{
	while (arena->retired_first != 0) {
		uint32_t number = arena->retired_first;
		struct hx_chunk *chunk = &arena->chunks[number];

		assert(chunk->state == HX_CHUNK_RETIRED);
		assert(chunk->next == 0 || chunk->stamp < arena->chunks[chunk->next].stamp);
		if (!hx_epoch_is_past(arena->epoch, chunk->stamp))
			return;
		arena->retired_first = chunk->next;
		if (arena->retired_first == 0)
			arena->retired_last = 0;
		chunk_free(arena, number);
	}
}

static void chunk_retire(struct hx_arena *arena, uint32_t number)
{
	struct hx_chunk *chunk = &arena->chunks[number];

	assert(chunk->state == HX_CHUNK_SEALED);
	assert(chunk->live == 0);
	assert(chunk->used <= arena->used_bytes - arena->live_bytes);
	chunk->state = HX_CHUNK_RETIRED;
	chunk->stamp = hx_epoch_retire(arena->epoch);
	chunk->next = 0;
	arena->used_bytes -= chunk->used;
	if (arena->retired_last == 0)
		arena->retired_first = number;
	else
		arena->chunks[arena->retired_last].next = number;
	arena->retired_last = number;
}

/*
 * Make the memory of a chunk usable. A huge page must be wholly writable when it is first
 * touched, or the kernel uses small pages. So all its chunks are committed at once.
 */
static bool chunk_commit(struct hx_arena *arena, uint32_t number)
{
	uint32_t first = number;
	uint32_t count = 1;
	unsigned flags = 0;

	if (number < arena->committed_count)
		return true;
	if (number >= CHUNKS_PER_HUGE &&
	    number / CHUNKS_PER_HUGE < arena->chunk_count_max / CHUNKS_PER_HUGE) {
		count = CHUNKS_PER_HUGE;
		flags = HX_PAGES_HUGE;
	}
	assert(first == arena->committed_count);
	assert(first + count <= arena->chunk_count_max);
	/* A huge page begins at its own multiple, or the kernel has no use for it. */
	assert(count == 1 || first % CHUNKS_PER_HUGE == 0);
	if (hx_alloc_pages_commit(
		    arena->memory + (uint64_t)first * HX_CHUNK_SIZE,
		    (uint64_t)count * HX_CHUNK_SIZE, flags) != 0)
		return false;
	arena->committed_count = first + count;
	return true;
}

uint64_t hx_arena_expect(struct hx_arena *arena, uint64_t bytes)
{
	while ((uint64_t)arena->committed_count * HX_CHUNK_SIZE < bytes &&
	       arena->committed_count < arena->chunk_count_max &&
	       chunk_commit(arena, arena->committed_count))
		;
	return (uint64_t)arena->committed_count * HX_CHUNK_SIZE;
}

size_t hx_arena_commit_ahead(struct hx_arena *arena, struct hx_ahead_pages *ret_pages)
{
	uint32_t first = arena->committed_count;

	if (arena->chunk_count < CHUNKS_PER_HUGE / 2)
		return 0;
	while (arena->committed_count < arena->chunk_count + CHUNKS_PER_HUGE / 2 &&
	       arena->committed_count < arena->chunk_count_max &&
	       chunk_commit(arena, arena->committed_count))
		;
	assert(first <= arena->committed_count);
	ret_pages->at = arena->memory + (uint64_t)first * HX_CHUNK_SIZE;
	ret_pages->bytes = (size_t)(arena->committed_count - first) * HX_CHUNK_SIZE;
	return arena->committed_count != first;
}

void hx_arena_settle(struct hx_arena *arena)
{
	hx_arena_assert(arena);
	if (arena->chunk_count < arena->committed_count)
		hx_alloc_pages_discard(
			arena->memory + (uint64_t)arena->chunk_count * HX_CHUNK_SIZE,
			(uint64_t)(arena->committed_count - arena->chunk_count) * HX_CHUNK_SIZE);
}

/* Room in the table of chunks for number, which is the next one. */
static bool chunk_table_commit(struct hx_arena *arena, uint32_t number)
{
	uint64_t end = (uint64_t)(number + 1) * sizeof(struct hx_chunk);
	uint64_t step = end - end % HX_PAGES_STEP;

	assert(end <= arena->chunks_bytes);
	/* The entry that crosses into a new step commits that step. */
	if (end % HX_PAGES_STEP >= sizeof(struct hx_chunk) || step == 0)
		return true;
	return hx_alloc_pages_commit((unsigned char *)arena->chunks + step, HX_PAGES_STEP, 0) == 0;
}

/* Unused chunks, side by side. 0: see arena->failure. */
static uint32_t take_fresh(struct hx_arena *arena, uint32_t run)
{
	uint32_t first = arena->chunk_count;

	assert(run >= 1);
	assert(first <= arena->chunk_count_max);
	arena->failure = HAPAX_ERR_LIMIT;
	if (run > arena->chunk_count_max - first)
		return 0;
	arena->failure = HAPAX_ERR_NO_MEMORY;
	for (uint32_t i = first; i < first + run; i++) {
		if (!chunk_table_commit(arena, i) || !chunk_commit(arena, i))
			return 0;
	}
	arena->chunk_count += run;
	assert(arena->chunk_count <= arena->committed_count);
	return first;
}

static uint32_t take_free(struct hx_arena *arena)
{
	uint32_t number = arena->free_first;

	if (number == 0)
		return 0;
	assert(arena->chunks[number].state == HX_CHUNK_FREE);
	assert(arena->free_count > 0);
	arena->free_first = arena->chunks[number].next;
	arena->free_count--;
	return number;
}

/* The first of run adjacent free chunks, or 0. Large records are rare: a scan is enough. */
static uint32_t find_free_run(const struct hx_arena *arena, uint32_t run)
{
	uint32_t length = 0;

	for (uint32_t i = 1; i < arena->chunk_count && arena->free_count >= run; i++) {
		length = arena->chunks[i].state == HX_CHUNK_FREE ? length + 1 : 0;
		if (length == run)
			return i + 1 - run;
	}
	return 0;
}

static void unlink_free_run(struct hx_arena *arena, uint32_t first, uint32_t run)
{
	uint32_t *link = &arena->free_first;
	uint32_t unlinked = 0;

	while (*link != 0) {
		uint32_t number = *link;

		assert(arena->chunks[number].state == HX_CHUNK_FREE);
		if (number >= first && number < first + run) {
			*link = arena->chunks[number].next;
			unlinked++;
		} else {
			link = &arena->chunks[number].next;
		}
	}
	assert(unlinked == run);
	assert(arena->free_count >= run);
	arena->free_count -= run;
}

static uint32_t take_free_run(struct hx_arena *arena, uint32_t run)
{
	uint32_t first = find_free_run(arena, run);

	if (first != 0)
		unlink_free_run(arena, first, run);
	return first;
}

static void chunk_begin(
	struct hx_arena *arena, uint32_t number, uint32_t run, enum hx_expiry_class class_,
	int64_t now_ms, uint64_t token)
{
	struct hx_chunk *chunk = &arena->chunks[number];

	assert(number >= 1);
	assert(number + run <= arena->chunk_count);
	assert(chunk->state == HX_CHUNK_FREE);
	assert(run == 1 || class_ == HX_CLASS_LARGE);
	chunk->base.ms = now_ms;
	chunk->base.token = token;
	chunk->due_ms = HAPAX_TIME_NEVER;
	chunk->generation++;
	chunk->used = 0;
	chunk->live = 0;
	chunk->run = run;
	chunk->state = HX_CHUNK_OPEN;
	chunk->class_ = (uint8_t)class_;
	for (uint32_t i = number + 1; i < number + run; i++) {
		assert(arena->chunks[i].state == HX_CHUNK_FREE);
		arena->chunks[i].state = HX_CHUNK_TAIL;
	}
}

static void seal(struct hx_arena *arena, uint32_t number)
{
	struct hx_chunk *chunk = &arena->chunks[number];

	assert(chunk->state == HX_CHUNK_OPEN);
	/* A chunk is opened for a record that fits: none is sealed empty. */
	assert(chunk->used > 0);
	chunk->state = HX_CHUNK_SEALED;
	if (chunk->live == 0)
		chunk_retire(arena, number);
}

/* A new open chunk for class_, replacing the full one. */
static uint32_t open_next(
	struct hx_arena *arena, enum hx_expiry_class class_, int64_t now_ms, uint64_t token)
{
	uint32_t number;

	hx_arena_assert(arena);
	reclaim(arena);
	number = take_free(arena);
	if (number == 0)
		number = take_fresh(arena, 1);
	if (number == 0)
		return 0;
	if (arena->open[class_] != 0)
		seal(arena, arena->open[class_]);
	chunk_begin(arena, number, 1, class_, now_ms, token);
	arena->open[class_] = number;
	hx_arena_assert(arena);
	if (arena->ahead != NULL)
		hx_ahead_ask(arena->ahead);
	return number;
}

/* Chunks for a single record. */
static uint32_t open_run(
	struct hx_arena *arena, uint32_t run, enum hx_expiry_class class_, int64_t now_ms,
	uint64_t token)
{
	uint32_t number;

	hx_arena_assert(arena);
	assert(run >= 1);
	reclaim(arena);
	number = take_free_run(arena, run);
	if (number == 0)
		number = take_fresh(arena, run);
	if (number != 0)
		chunk_begin(arena, number, run, class_, now_ms, token);
	return number;
}

/* The address of the next bytes of a chunk. */
static unsigned char *chunk_end(const struct hx_arena *arena, uint32_t number)
{
	return arena->memory + (uint64_t)number * HX_CHUNK_SIZE + arena->chunks[number].used;
}

/* Count size bytes, just written at the chunk's end, as a live record. Returns its place. */
static uint32_t chunk_grow(struct hx_arena *arena, uint32_t number, uint32_t size, int64_t due_ms)
{
	struct hx_chunk *chunk = &arena->chunks[number];
	uint64_t at = (uint64_t)number * HX_CHUNK_SIZE + chunk->used;

	chunk->used += size;
	chunk->live += size;
	assert(chunk->used <= HX_CHUNK_SIZE || chunk->run > 1);
	arena->used_bytes += size;
	arena->live_bytes += size;
	if (due_ms < chunk->due_ms)
		chunk->due_ms = due_ms;
	return (uint32_t)(at / HX_PLACE_UNIT);
}

static uint32_t append(
	struct hx_arena *arena, uint32_t number, struct hx_packed_shape shape,
	const struct hapax_record *record, const struct hx_elsewhere *elsewhere,
	const struct hx_packed_key *key, uint32_t profile_id)
{
	assert(arena->chunks[number].state == HX_CHUNK_OPEN);
	assert(hx_arena_room(shape.size) >= shape.size);
	assert(hx_arena_room(shape.size) <=
	       (uint64_t)arena->chunks[number].run * HX_CHUNK_SIZE - arena->chunks[number].used);
	hx_packed_write(
		chunk_end(arena, number), record, elsewhere, key, &arena->chunks[number].base,
		profile_id, shape);
	return chunk_grow(arena, number, hx_arena_room(shape.size), hx_arena_due(record));
}

/* A chunk is opened only for a mark that will fit. Apart, so that it costs no mark a register. */
__attribute__((noinline)) static uint32_t open_for_mark(
	struct hx_arena *arena, const struct hx_packed_key *key, const struct hx_packed_mark *mark,
	enum hx_expiry_class class_, int64_t now_ms)
{
	const struct hx_packed_base fresh = {now_ms, mark->token};
	uint32_t number;

	assert(mark->token != 0);
	if (hx_packed_mark_size(key, mark, &fresh) == 0)
		return 0;
	number = open_next(arena, class_, now_ms, mark->token);
	assert(number == 0 || arena->chunks[number].base.ms == fresh.ms);
	assert(number == 0 || arena->chunks[number].base.token == fresh.token);
	return number;
}

uint32_t hx_arena_write_mark(
	struct hx_arena *arena, const struct hx_packed_key *key, const struct hx_packed_mark *mark,
	int64_t now_ms)
{
	enum hx_expiry_class class_ = class_of_span(mark->expires_ms - now_ms);
	uint32_t number = arena->open[class_];
	size_t size = 0;

	if (number != 0)
		size = hx_packed_mark_size(key, mark, &arena->chunks[number].base);
	if (size == 0 || size > HX_CHUNK_SIZE - arena->chunks[number].used) {
		number = open_for_mark(arena, key, mark, class_, now_ms);
		if (number == 0)
			return 0;
		size = hx_packed_mark_size(key, mark, &arena->chunks[number].base);
	}
	hx_packed_write_mark(chunk_end(arena, number), key, mark, &arena->chunks[number].base);
	return chunk_grow(arena, number, (uint32_t)size, mark->expires_ms);
}

static uint32_t write_large(
	struct hx_arena *arena, const struct hapax_record *record,
	const struct hx_elsewhere *elsewhere, const struct hx_packed_key *key, uint32_t profile_id,
	bool ttl_is_own, int64_t now_ms)
{
	const struct hx_packed_base fresh = {now_ms, record->token};
	uint32_t number = arena->open[HX_CLASS_LARGE];
	struct hx_packed_shape shape;
	uint32_t place;

	if (number != 0) {
		const struct hx_chunk *chunk = &arena->chunks[number];

		shape = hx_packed_shape(
			record, elsewhere, key, &chunk->base, profile_id, ttl_is_own);
		if (hx_arena_room(shape.size) <= HX_CHUNK_SIZE - chunk->used)
			return append(arena, number, shape, record, elsewhere, key, profile_id);
	}
	shape = hx_packed_shape(record, elsewhere, key, &fresh, profile_id, ttl_is_own);
	if (shape.size <= HX_CHUNK_SIZE / 2) {
		number = open_next(arena, HX_CLASS_LARGE, now_ms, record->token);
		return number == 0
			? 0
			: append(arena, number, shape, record, elsewhere, key, profile_id);
	}
	number = open_run(
		arena, hx_arena_room(shape.size) / HX_CHUNK_SIZE, HX_CLASS_LARGE, now_ms,
		record->token);
	if (number == 0)
		return 0;
	place = append(arena, number, shape, record, elsewhere, key, profile_id);
	seal(arena, number);
	chunk_assert(arena, number);
	assert(hx_arena_chunk_of(place) == number);
	return place;
}

uint32_t hx_arena_write(
	struct hx_arena *arena, const struct hapax_record *record,
	const struct hx_elsewhere *elsewhere, const struct hx_packed_key *key, uint32_t profile_id,
	bool ttl_is_own, int64_t now_ms)
{
	const struct hx_packed_base fresh = {now_ms, record->token};
	enum hx_expiry_class class_ = hx_arena_class(record, now_ms);
	uint32_t number = arena->open[class_];
	struct hx_packed_shape shape;

	if (number != 0) {
		const struct hx_chunk *chunk = &arena->chunks[number];

		shape = hx_packed_shape(
			record, elsewhere, key, &chunk->base, profile_id, ttl_is_own);
		if (shape.size <= HX_CHUNK_SIZE - chunk->used && shape.size <= HX_CHUNK_RECORD_MAX)
			return append(arena, number, shape, record, elsewhere, key, profile_id);
	}
	shape = hx_packed_shape(record, elsewhere, key, &fresh, profile_id, ttl_is_own);
	if (shape.size > HX_CHUNK_RECORD_MAX)
		return write_large(arena, record, elsewhere, key, profile_id, ttl_is_own, now_ms);
	number = open_next(arena, class_, now_ms, record->token);
	return number == 0 ? 0 : append(arena, number, shape, record, elsewhere, key, profile_id);
}

void hx_arena_kill(struct hx_arena *arena, uint32_t place)
{
	uint32_t number = hx_arena_chunk_of(place);
	struct hx_chunk *chunk = &arena->chunks[number];
	unsigned char *at = hx_arena_at(arena, place);
	uint32_t size = hx_arena_room_at(at);

	chunk_assert(arena, number);
	assert(chunk->state == HX_CHUNK_OPEN || chunk->state == HX_CHUNK_SEALED);
	assert(!hx_packed_is_dead(at));
	assert(chunk->live >= size);
	assert(arena->live_bytes >= size);
	/* The record ends within what was filled. */
	assert(size <= chunk->used);
	hx_packed_set_dead(at);
	chunk->live -= size;
	arena->live_bytes -= size;
	if (chunk->live == 0 && chunk->state == HX_CHUNK_SEALED)
		chunk_retire(arena, number);
}
