/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.c - one part of the index.
 *
 *  (1) One slot of the table points at every live record in the arena.
 *  (2) by_state counts live records by their state; the scope's parked also.
 *  (3) Every live record whose result is elsewhere counts as a user of that file, from before
 *      the table points at it until after it stops.
 *  (4) Gaps are at most a quarter of the arena's bytes, and some chunks: every write that finds
 *      more copies a few records (tidy).
 */
#include "store/index/shard.h"

#include <assert.h>
#include <string.h>

#include "record/record.h"

enum {
	/* One copy per write is enough: a chunk is chosen only when a quarter is gaps. */
	TIDY_COPIES = 4,
	TIDY_SKIPS = 64,
	TIDY_SAMPLES = 32,
	EVICT_BUCKETS = 512,
	RECORD_SIZE_MIN = 16,
};

uint64_t hx_shard_address_bytes(const struct hx_shard_setup *setup)
{
	return hx_arena_address_bytes(setup->arena_bytes) +
		hx_table_address_bytes(setup->arena_bytes / RECORD_SIZE_MIN, setup->buckets);
}

enum hapax_status hx_shard_init(struct hx_shard *shard, const struct hx_shard_setup *setup)
{
	enum hapax_status status;

	memset(shard, 0, sizeof(*shard));
	hx_lock_init(&shard->lock);
	shard->profiles = setup->profiles;
	shard->hash_key = setup->hash_key;
	shard->users = setup->users;
	status = hx_arena_init(&shard->arena, setup->arena_bytes, setup->epoch);
	if (status == HAPAX_OK)
		status = hx_table_init(
			&shard->table, setup->arena_bytes / RECORD_SIZE_MIN, setup->buckets);
	if (status != HAPAX_OK)
		hx_shard_done(shard);
	return status;
}

void hx_shard_assert(const struct hx_shard *shard)
{
	const uint64_t *count = shard->by_state;

	assert(hx_shard_is_locked(shard));
	assert(!hx_table_is_begun(&shard->table));
	assert(count[HAPAX_STATE_ABSENT] == 0);
	assert(count[HAPAX_STATE_CLAIMED] + count[HAPAX_STATE_DONE] + count[HAPAX_STATE_FAILED] +
		       count[HAPAX_STATE_PARKED] ==
	       shard->table.slot_count);
	assert(shard->arena.live_bytes >= shard->table.slot_count * RECORD_SIZE_MIN);
	assert(shard->arena.live_bytes <= shard->arena.used_bytes);
	/* Only completed results are ever elsewhere, and only if there are files. */
	assert(shard->elsewhere_bytes == 0 || shard->users != NULL);
	assert(shard->elsewhere_bytes == 0 || count[HAPAX_STATE_DONE] != 0);
	assert(shard->evict_bucket <
	       atomic_load_explicit(&shard->table.bucket_count, memory_order_relaxed));
	assert(shard->tidy_chunk < shard->arena.chunk_count);
	assert(shard->tidy_at <= HX_CHUNK_SIZE);
	assert(shard->profile_ttl_ms == 0 || shard->profile_id != HX_PROFILE_NONE);
}

void hx_shard_done(struct hx_shard *shard)
{
	hx_table_done(&shard->table);
	hx_arena_done(&shard->arena);
}

uint32_t hx_shard_find_overflow(
	const struct hx_shard *shard, const struct hx_bucket *bucket, uint16_t tag,
	const struct hx_packed_key *key)
{
	assert(bucket >= shard->table.buckets);
	for (uint32_t number = hx_bucket_next(bucket); number != 0;) {
		const struct hx_overflow *overflow = hx_table_overflow(&shard->table, number);
		unsigned candidates = hx_overflow_candidates(overflow, tag);

		for (; candidates != 0; candidates &= candidates - 1) {
			uint32_t place =
				hx_overflow_place(overflow, (unsigned)__builtin_ctz(candidates));

			if (hx_shard_is_at(shard, place, key))
				return place;
		}
		number = hx_overflow_next(overflow);
	}
	return 0;
}

void hx_shard_unpack(struct hx_shard *shard, uint32_t place, struct hapax_record *ret_record)
{
	/* Readers have no lock: the bound that never changes is all that they may ask for. */
	assert(place != 0);
	assert(hx_arena_chunk_of(place) < shard->arena.chunk_count_max);
	hx_packed_read(
		hx_arena_at(&shard->arena, place), hx_arena_base(&shard->arena, place),
		shard->profiles, ret_record);
}

bool hx_shard_elsewhere(
	const struct hx_shard *shard, uint32_t place, struct hx_elsewhere *ret_elsewhere)
{
	uint64_t bytes;

	assert(place != 0);
	return hx_packed_read_elsewhere(hx_arena_at(&shard->arena, place), ret_elsewhere, &bytes);
}

void hx_shard_unpack_all(
	struct hx_shard *shard, uint32_t place, unsigned char key_text[HX_KEY_TEXT_SIZE],
	struct hapax_record *ret_record)
{
	hx_shard_unpack(shard, place, ret_record);
	ret_record->key = hx_packed_read_text(hx_arena_at(&shard->arena, place), key_text);
}

uint64_t hx_shard_hash(struct hx_shard *shard, uint32_t place)
{
	struct hx_packed_key key;

	hx_packed_read_key(hx_arena_at(&shard->arena, place), shard->profiles, &key);
	return hx_packed_key_hash(&key, shard->hash_key);
}

static uint64_t rehash(uint32_t place, void *context)
{
	return hx_shard_hash(context, place);
}

enum hapax_status hx_shard_stage(
	struct hx_shard *shard, const struct hapax_record *record, const struct hx_packed_key *key,
	unsigned staged, int64_t now_ms, uint32_t *ret_place)
{
	return hx_shard_stage_elsewhere(shard, record, NULL, key, staged, now_ms, ret_place);
}

enum hapax_status hx_shard_stage_elsewhere(
	struct hx_shard *shard, const struct hapax_record *record,
	const struct hx_elsewhere *elsewhere, const struct hx_packed_key *key, unsigned staged,
	int64_t now_ms, uint32_t *ret_place)
{
	uint32_t profile_id = hx_shard_profile(shard, key->scope_id, record->ttl_ms);
	enum hapax_status status;
	uint32_t place;

	assert(hx_shard_is_locked(shard));
	assert(!hx_table_is_begun(&shard->table));
	assert(elsewhere == NULL || shard->users != NULL);
	if (profile_id == HX_PROFILE_NONE)
		return HAPAX_ERR_NO_MEMORY;
	status = hx_table_reserve(&shard->table, staged, rehash, shard);
	if (status != HAPAX_OK)
		return status;
	place = hx_arena_write(
		&shard->arena, record, elsewhere, key, profile_id,
		hx_profile_get(shard->profiles, profile_id)->ttl_ms == 0, now_ms);
	if (place == 0)
		return shard->arena.failure;
	assert(hx_packed_key_matches(hx_arena_at(&shard->arena, place), shard->profiles, key));
	assert(shard->table.overflow_spare > staged);
	*ret_place = place;
	return HAPAX_OK;
}

uint32_t hx_shard_stage_mark(
	struct hx_shard *shard, const struct hx_packed_key *key, const struct hx_packed_mark *mark,
	int64_t now_ms)
{
	if (hx_table_reserve(&shard->table, 1, rehash, shard) != HAPAX_OK)
		return 0;
	return hx_arena_write_mark(&shard->arena, key, mark, now_ms);
}

void hx_shard_unstage(struct hx_shard *shard, uint32_t place)
{
	hx_arena_kill(&shard->arena, place);
}

/* Count the record at place in or out. */
static void count_record(struct hx_shard *shard, uint32_t place, bool is_in)
{
	const unsigned char *at = hx_arena_at(&shard->arena, place);
	enum hapax_state state = hx_packed_state(at);
	struct hx_elsewhere elsewhere;
	uint64_t bytes;

	assert(!hx_packed_is_dead(at));
	assert(is_in || shard->by_state[state] > 0);
	shard->by_state[state] += is_in ? 1 : UINT64_MAX;
	if (state == HAPAX_STATE_PARKED) {
		struct hx_scope *scope = hx_packed_scope(at, shard->profiles);
		uint64_t parked = atomic_fetch_add_explicit(
			&scope->parked, is_in ? 1 : UINT64_MAX, memory_order_relaxed);

		assert(is_in || parked > 0);
		(void)parked;
	}
	if (shard->users == NULL || !hx_packed_read_elsewhere(at, &elsewhere, &bytes))
		return;
	assert(is_in || shard->elsewhere_bytes >= bytes);
	shard->elsewhere_bytes += is_in ? bytes : -bytes;
	if (is_in)
		hx_elsewhere_hold(shard->users, elsewhere.file);
	else
		hx_elsewhere_release(shard->users, elsewhere.file);
}

void hx_shard_publish(struct hx_shard *shard, uint64_t hash, uint32_t old, uint32_t place)
{
	assert(hx_shard_is_locked(shard));
	assert(hx_table_is_begun(&shard->table));
	assert(place != old);
	count_record(shard, place, true);
	if (old == 0) {
		hx_table_insert(&shard->table, hash, place);
		return;
	}
	/* A record replaces one of its own key. */
	assert(hx_packed_scope(hx_arena_at(&shard->arena, old), shard->profiles) ==
	       hx_packed_scope(hx_arena_at(&shard->arena, place), shard->profiles));
	hx_table_replace(&shard->table, hash, old, place);
	count_record(shard, old, false);
	hx_arena_kill(&shard->arena, old);
}

void hx_shard_remove(struct hx_shard *shard, uint64_t hash, uint32_t place)
{
	assert(hx_shard_is_locked(shard));
	hx_table_remove(&shard->table, hash, place);
	count_record(shard, place, false);
	hx_arena_kill(&shard->arena, place);
}

/* Tidying. */

static bool is_worth_tidying(const struct hx_chunk *chunk)
{
	return chunk->state == HX_CHUNK_SEALED && chunk->run == 1 &&
		chunk->live < chunk->used / 4 * 3;
}

/* The emptiest of some chunks in turn. 0: none of them is worth it. */
static uint32_t choose_chunk(struct hx_shard *shard)
{
	const struct hx_arena *arena = &shard->arena;
	uint32_t best = 0;

	for (unsigned i = 0; i < TIDY_SAMPLES; i++) {
		const struct hx_chunk *chunk;

		if (++shard->tidy_hand >= arena->chunk_count)
			shard->tidy_hand = 1;
		chunk = &arena->chunks[shard->tidy_hand];
		if (is_worth_tidying(chunk) &&
		    (best == 0 || chunk->live < arena->chunks[best].live))
			best = shard->tidy_hand;
	}
	assert(best == 0 || arena->chunks[best].live < arena->chunks[best].used);
	return best;
}

/* Copy the record at place to the end of its class. False: no memory, try later. */
static bool move_record(struct hx_shard *shard, uint32_t place, int64_t now_ms)
{
	struct hapax_record record;
	struct hx_elsewhere elsewhere;
	struct hx_packed_key key;
	uint64_t hash = hx_shard_hash(shard, place);
	bool is_elsewhere = hx_shard_elsewhere(shard, place, &elsewhere);
	uint32_t moved = 0;

	hx_shard_unpack(shard, place, &record);
	hx_packed_read_key(hx_arena_at(&shard->arena, place), shard->profiles, &key);
	if (hx_shard_stage_elsewhere(
		    shard, &record, is_elsewhere ? &elsewhere : NULL, &key, 0, now_ms, &moved) !=
	    HAPAX_OK)
		return false;
	/* It has left the chunk, or that would never become empty. */
	assert(hx_arena_chunk_of(moved) != hx_arena_chunk_of(place));
	assert(hx_shard_elsewhere(shard, moved, &elsewhere) == is_elsewhere);
	hx_packed_raise_use(
		hx_arena_at(&shard->arena, moved),
		hx_packed_use(hx_arena_at(&shard->arena, place)));
	hx_table_begin(&shard->table);
	hx_shard_publish(shard, hash, place, moved);
	hx_table_end(&shard->table);
	assert(hx_packed_is_dead(hx_arena_at(&shard->arena, place)));
	return true;
}

void hx_shard_tidy_some(struct hx_shard *shard, int64_t now_ms)
{
	struct hx_arena *arena = &shard->arena;
	unsigned copies = 0;

	hx_shard_assert(shard);
	if (shard->tidy_chunk == 0) {
		shard->tidy_chunk = choose_chunk(shard);
		shard->tidy_at = 0;
		shard->tidy_generation = arena->chunks[shard->tidy_chunk].generation;
	}
	for (unsigned i = 0; i < TIDY_SKIPS && shard->tidy_chunk != 0; i++) {
		const struct hx_chunk *chunk = &arena->chunks[shard->tidy_chunk];
		uint32_t place = shard->tidy_chunk * (HX_CHUNK_SIZE / HX_PLACE_UNIT) +
			shard->tidy_at / HX_PLACE_UNIT;
		const unsigned char *at = hx_arena_at(arena, place);

		/* Retired when its last record left, whichever thread removed it. */
		if (chunk->state != HX_CHUNK_SEALED ||
		    chunk->generation != shard->tidy_generation) {
			shard->tidy_chunk = 0;
			return;
		}
		/* What was passed is dead, so a chunk that is not retired has a record ahead. */
		assert(shard->tidy_at < chunk->used);
		if (!hx_packed_is_dead(at) &&
		    (copies++ >= TIDY_COPIES || !move_record(shard, place, now_ms)))
			return;
		shard->tidy_at += hx_arena_room_at(at);
	}
}

/*
 * Eviction, by the clock algorithm: a hand goes round over all records. A new record is spared
 * once when the hand passes, a record that was hit since then twice.
 */

static bool evict_place(
	struct hx_shard *shard, uint32_t place, int64_t now_ms, bool spare_used,
	bool *ret_was_expired)
{
	unsigned char *at = hx_arena_at(&shard->arena, place);
	bool is_expired = hx_packed_expires_ms(at, hx_arena_base(&shard->arena, place)) <= now_ms;

	if (!is_expired) {
		bool is_used = hx_packed_use(at) != 0;

		hx_packed_fade_use(at);
		if (hx_packed_state(at) != HAPAX_STATE_DONE || (is_used && spare_used))
			return false;
	}
	/* A claim and a parked key never expire, and are never evicted. */
	assert(hx_packed_state(at) == HAPAX_STATE_DONE ||
	       hx_packed_state(at) == HAPAX_STATE_FAILED);
	hx_table_begin(&shard->table);
	hx_shard_remove(shard, hx_shard_hash(shard, place), place);
	hx_table_end(&shard->table);
	*ret_was_expired = is_expired;
	return true;
}

/* Move the hand over some buckets, until a record is evicted. */
static bool turn_hand(
	struct hx_shard *shard, uint64_t buckets, uint32_t spare, int64_t now_ms, bool spare_used,
	bool *ret_was_expired)
{
	uint64_t count = atomic_load_explicit(&shard->table.bucket_count, memory_order_relaxed);
	uint32_t places[HX_CHAIN_SLOTS_MAX];

	assert(shard->evict_bucket < count);
	for (uint64_t i = 0; i < buckets; i++) {
		size_t found = hx_table_places(&shard->table, shard->evict_bucket, places);

		/* The record after an evicted one takes its number. */
		for (size_t k = shard->evict_index; k < found; k++) {
			shard->evict_index = k;
			if (places[k] != spare &&
			    evict_place(shard, places[k], now_ms, spare_used, ret_was_expired))
				return true;
		}
		shard->evict_index = 0;
		shard->evict_bucket = (shard->evict_bucket + 1) % count;
	}
	return false;
}

bool hx_shard_evict(struct hx_shard *shard, uint32_t spare, int64_t now_ms, bool *ret_was_expired)
{
	uint64_t count = atomic_load_explicit(&shard->table.bucket_count, memory_order_relaxed);
	uint64_t buckets = count + 1 < EVICT_BUCKETS ? count + 1 : EVICT_BUCKETS;

	hx_shard_assert(shard);
	/* If all are in use, the hand would go far: then evict the next one. */
	return turn_hand(shard, buckets, spare, now_ms, true, ret_was_expired) ||
		turn_hand(shard, buckets, spare, now_ms, false, ret_was_expired);
}

void hx_shard_charge(struct hx_shard *shard)
{
	assert(hx_shard_is_locked(shard));
	atomic_store_explicit(
		&shard->charged_bytes, shard->arena.live_bytes + hx_table_bytes(&shard->table),
		memory_order_relaxed);
}

uint64_t hx_shard_bytes(const struct hx_shard *shard)
{
	return shard->arena.used_bytes + hx_table_bytes(&shard->table);
}
