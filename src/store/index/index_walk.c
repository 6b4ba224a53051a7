/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_walk.c - visit all records: sweep by chunk, scan by bucket.
 *
 * A sweep looks only at chunks in which something is due, so its cost depends on expired
 * records, not on stored ones. It holds a shard's lock for a few hundred records at a time. A
 * scan holds it for one bucket.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "record/record.h"
#include "record/transition.h"
#include "store/index/index.h"
#include "store/scan_place.h"

enum {
	RECORDS_PER_LOCK = 256,
	/* Enough to raise an alarm, and a bound on the cost of asking. */
	COUNTED_CHUNKS_MAX = 64,
};

/* Sweep. */

/* Settle the record at place if it is due. Returns when it will be, or NEVER if it is gone. */
static int64_t settle(
	struct hx_index *index, struct hx_shard *shard, uint32_t place, int64_t now_ms,
	struct hapax_sweep *sweep)
{
	const struct hx_transition_rules rules = {.now_ms = now_ms};
	unsigned char key_text[HX_KEY_TEXT_SIZE];
	struct hx_transition transition;
	struct hapax_record record;
	struct hx_packed_key key;
	uint32_t settled;

	assert(hx_shard_is_locked(shard));
	hx_shard_unpack_all(shard, place, key_text, &record);
	if (hx_arena_due(&record) > now_ms)
		return hx_arena_due(&record);
	if (hx_record_is_expired(&record, now_ms)) {
		assert(record.state == HAPAX_STATE_DONE || record.state == HAPAX_STATE_FAILED);
		hx_table_begin(&shard->table);
		hx_shard_remove(shard, hx_shard_hash(shard, place), place);
		hx_table_end(&shard->table);
		hx_index_unadmit(index);
		atomic_fetch_add_explicit(&index->swept, 1, memory_order_relaxed);
		sweep->removed++;
		return HAPAX_TIME_NEVER;
	}
	/* Due and not expired: a claim that no caller took over. */
	assert(record.state == HAPAX_STATE_CLAIMED);
	assert(record.lease_ends_ms <= now_ms);
	if (index->lapse != NULL) {
		index->lapse(&record, index->lapse_context);
		return hx_arena_due(&record);
	}
	hx_transition_sweep(&record, &rules, &transition);
	assert(transition.effect == HX_EFFECT_PUT);
	assert(transition.next.state != HAPAX_STATE_CLAIMED);
	hx_packed_read_key(hx_arena_at(&shard->arena, place), shard->profiles, &key);
	if (hx_shard_stage(shard, &transition.next, &key, 0, now_ms, &settled) != HAPAX_OK)
		return hx_arena_due(&record);
	hx_table_begin(&shard->table);
	hx_shard_publish(shard, hx_packed_key_hash(&key, index->hash_key), place, settled);
	hx_table_end(&shard->table);
	sweep->lapsed++;
	return HAPAX_TIME_NEVER;
}

static bool chunk_is_due(const struct hx_chunk *chunk, int64_t now_ms)
{
	return (chunk->state == HX_CHUNK_OPEN || chunk->state == HX_CHUNK_SEALED) &&
		chunk->due_ms <= now_ms;
}

/*
 * Visit some records of the current chunk. True: it is finished. The chunk's due time is cleared
 * first and rebuilt from the visited records, so that records added in between keep theirs.
 */
static bool sweep_slice(
	struct hx_index *index, struct hx_shard *shard, int64_t now_ms, struct hapax_sweep *sweep)
{
	struct hx_index_walk *walk = &index->walk;
	struct hx_chunk *chunk = &shard->arena.chunks[walk->chunk];

	if (walk->at == 0) {
		if (!chunk_is_due(chunk, now_ms))
			return true;
		walk->generation = chunk->generation;
		chunk->due_ms = HAPAX_TIME_NEVER;
	}
	for (unsigned i = 0; i < RECORDS_PER_LOCK && sweep->looked < sweep->count_max; i++) {
		uint32_t place =
			walk->chunk * (HX_CHUNK_SIZE / HX_PLACE_UNIT) + walk->at / HX_PLACE_UNIT;
		const unsigned char *at = hx_arena_at(&shard->arena, place);
		uint32_t size;

		/*
		 * The chunk was retired meanwhile, and perhaps reused: the visited records are
		 * gone.
		 */
		if (chunk->generation != walk->generation || chunk->state == HX_CHUNK_RETIRED ||
		    chunk->state == HX_CHUNK_FREE || walk->at >= chunk->used)
			return true;
		size = hx_arena_room_at(at);
		assert(size != 0);
		sweep->looked++;
		if (!hx_packed_is_dead(at)) {
			int64_t due_ms = settle(index, shard, place, now_ms, sweep);

			if (due_ms < chunk->due_ms)
				chunk->due_ms = due_ms;
		}
		walk->at += size;
		/* Records lie side by side up to the end of what is filled. */
		assert(walk->at <= chunk->used);
	}
	return false;
}

/* One slice under the shard's lock; advances the walk. */
static void sweep_step(struct hx_index *index, int64_t now_ms, struct hapax_sweep *sweep)
{
	struct hx_index_walk *walk = &index->walk;
	struct hx_shard *shard = &index->shards[walk->shard];

	assert(walk->shard < index->shard_count);
	hx_lock_acquire(&shard->lock);
	hx_shard_assert(shard);
	/* Chunks with nothing due are too cheap to deserve a lock of their own. */
	while (walk->chunk < shard->arena.chunk_count && sweep_slice(index, shard, now_ms, sweep)) {
		walk->chunk++;
		walk->at = 0;
	}
	if (walk->chunk >= shard->arena.chunk_count) {
		hx_arena_assert_chunks(&shard->arena);
		walk->shard++;
		walk->chunk = 0;
		walk->at = 0;
	}
	hx_shard_charge(shard);
	hx_shard_assert(shard);
	hx_lock_release(&shard->lock);
}

void hx_index_sweep(struct hx_index *index, struct hapax_sweep *sweep, int64_t now_ms)
{
	hx_mutex_lock(&index->sweep_mutex);
	while (index->walk.shard < index->shard_count && sweep->looked < sweep->count_max)
		sweep_step(index, now_ms, sweep);
	assert(index->walk.shard <= index->shard_count);
	sweep->done = index->walk.shard >= index->shard_count;
	if (sweep->done)
		memset(&index->walk, 0, sizeof(index->walk));
	hx_mutex_unlock(&index->sweep_mutex);
	sweep->remaining = hx_index_count(index);
}

/* Count the expired records of a chunk. Locks: the shard's. */
static uint64_t count_expired(const struct hx_shard *shard, uint32_t number, int64_t now_ms)
{
	const struct hx_chunk *chunk = &shard->arena.chunks[number];
	const unsigned char *at = shard->arena.memory + (uint64_t)number * HX_CHUNK_SIZE;
	const unsigned char *end = at + chunk->used;
	uint64_t count = 0;

	while (at < end) {
		count += !hx_packed_is_dead(at) && hx_packed_expires_ms(at, &chunk->base) <= now_ms;
		at += hx_arena_room_at(at);
	}
	assert(at == end);
	return count;
}

uint64_t hx_index_count_expired(struct hx_index *index, int64_t now_ms)
{
	unsigned chunks_left = COUNTED_CHUNKS_MAX;
	uint64_t count = 0;

	for (uint32_t i = 0; i < index->shard_count; i++) {
		struct hx_shard *shard = &index->shards[i];

		for (uint32_t number = 1; chunks_left != 0; number++) {
			bool is_end;

			hx_lock_acquire(&shard->lock);
			is_end = number >= shard->arena.chunk_count;
			if (!is_end && chunk_is_due(&shard->arena.chunks[number], now_ms)) {
				count += count_expired(shard, number, now_ms);
				chunks_left--;
			}
			hx_lock_release(&shard->lock);
			if (is_end)
				break;
		}
	}
	return count;
}

/* Scan. */

/*
 * The position of a scan. Within a bucket records are ordered by hash, which never changes, so
 * that a page may end anywhere.
 */
struct scan_place {
	uint64_t bucket;
	uint64_t hash; /* the last one handed out in this bucket, if is_inside */
	uint32_t shard;
	uint32_t is_inside;
};

_Static_assert(
	sizeof(struct scan_place) <= sizeof(((struct hapax_cursor *)0)->place), "fits a cursor");

struct scan_candidate {
	uint64_t hash;
	uint32_t place;
};

/* The remaining records of a bucket, by hash. Locks: the shard's. */
static size_t scan_candidates(
	struct hx_shard *shard, const struct scan_place *at,
	struct scan_candidate ret_candidates[HX_CHAIN_SLOTS_MAX])
{
	uint32_t places[HX_CHAIN_SLOTS_MAX];
	size_t found = hx_table_places(&shard->table, at->bucket, places);
	size_t count = 0;

	for (size_t i = 0; i < found; i++) {
		struct scan_candidate candidate = {hx_shard_hash(shard, places[i]), places[i]};
		size_t k = count;

		if (at->is_inside && candidate.hash <= at->hash)
			continue;
		for (; k > 0 && ret_candidates[k - 1].hash > candidate.hash; k--)
			ret_candidates[k] = ret_candidates[k - 1];
		ret_candidates[k] = candidate;
		count++;
		assert(k == 0 || ret_candidates[k - 1].hash <= ret_candidates[k].hash);
	}
	assert(count <= found);
	return count;
}

/* The parameters of a scan. */
struct scan_run {
	struct hx_index *index;
	const struct hapax_scan *scan;
	int64_t now_ms;
	hx_index_scan_fn *each;
	void *context;
	size_t handed;
	bool stopped;
};

/*
 * Hand out the rest of a bucket. Places are copied under the lock. The records behind them stay
 * readable until the reader leaves, so each runs without a lock.
 */
static void scan_bucket(struct scan_run *run, struct scan_place *at)
{
	struct hx_shard *shard = &run->index->shards[at->shard];
	unsigned seat = hx_epoch_enter(&run->index->epoch);
	struct scan_candidate candidates[HX_CHAIN_SLOTS_MAX];
	unsigned char key_text[HX_KEY_TEXT_SIZE];
	size_t count;
	size_t i = 0;

	hx_lock_acquire(&shard->lock);
	count = scan_candidates(shard, at, candidates);
	hx_lock_release(&shard->lock);
	for (; i < count && !run->stopped && run->handed < run->scan->count_max; i++) {
		struct hx_elsewhere elsewhere;
		struct hapax_record record;
		bool is_elsewhere;

		assert(!at->is_inside || at->hash <= candidates[i].hash);
		at->hash = candidates[i].hash;
		at->is_inside = 1;
		hx_shard_unpack_all(shard, candidates[i].place, key_text, &record);
		if (!hx_scan_place_accepts(run->scan, &record, run->now_ms))
			continue;
		run->handed++;
		is_elsewhere = hx_shard_elsewhere(shard, candidates[i].place, &elsewhere);
		run->stopped =
			run->each(&record, is_elsewhere ? &elsewhere : NULL, run->context) != 0;
	}
	hx_epoch_leave(&run->index->epoch, seat);
	if (i < count)
		return;
	at->bucket++;
	at->is_inside = 0;
}

void hx_index_scan(
	struct hx_index *index, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	int64_t now_ms, hx_index_scan_fn *each, void *context)
{
	struct scan_run run = {index, scan, now_ms, each, context, 0, false};
	struct scan_place at = {0};

	if (cursor->size == sizeof(at))
		memcpy(&at, cursor->place, sizeof(at));
	while (at.shard < index->shard_count && run.handed < scan->count_max && !run.stopped) {
		struct hx_table *table = &index->shards[at.shard].table;

		if (at.bucket < atomic_load_explicit(&table->bucket_count, memory_order_acquire)) {
			scan_bucket(&run, &at);
		} else {
			at.shard++;
			at.bucket = 0;
			at.is_inside = 0;
		}
	}
	assert(run.handed <= scan->count_max);
	cursor->done = at.shard >= index->shard_count;
	cursor->size = sizeof(at);
	memcpy(cursor->place, &at, sizeof(at));
}
