/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.c - shards, limits, tokens.
 *
 * bytes_max is divided so that the total stays below it. Three quarters are for live records and
 * buckets; a twelfth of these is reserved for the results of held claims. The last quarter is
 * for gaps, which tidying keeps that small. An operation that ends a claim is not refused when
 * the reserve is used up: work.c leaves out what does not fit.
 */
#include "store/index/index.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/process.h"
#include "base/random.h"

enum {
	/* Below these a store is small, and one shard knows best what to evict. */
	SMALL_KEYS = 65536,
	SMALL_BYTES = 64 * 1024 * 1024,
	SMALL_BUCKETS = 16,
};

/* The reach of 32 bits of even places. */
#define ARENA_BYTES_MAX (UINT64_C(8) << 30)
#define ARENA_BYTES_MIN (UINT64_C(64) << 20)

/* Ample room for all else in a process: program, libraries, stacks, frames of a log. */
#define ADDRESS_BYTES_BESIDES (UINT64_C(1) << 30)

/* Whole pages. */
enum { INDEX_BYTES = (sizeof(struct hx_index) / HX_PAGES_STEP + 1) * HX_PAGES_STEP };

static uint64_t machine_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_size = sysconf(_SC_PAGESIZE);

	/* An estimate is enough: it bounds address space, not memory. */
	return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size
					  : UINT64_C(8) << 30;
}

static bool is_small(const struct hx_index_setup *setup)
{
	return (setup->keys_max != 0 && setup->keys_max < SMALL_KEYS) ||
		(setup->bytes_max != 0 && setup->bytes_max < SMALL_BYTES);
}

static unsigned choose_shard_bits(const struct hx_index_setup *setup)
{
	unsigned bits = 0;

	if (is_small(setup))
		return 0;
	while ((1u << bits) < hx_thread_cpu_count() && (1u << bits) < HX_SHARDS_MAX)
		bits++;
	assert(1u << bits <= HX_SHARDS_MAX);
	return bits;
}

/* Twice the usable size, since shards do not fill evenly and records leave gaps. */
static uint64_t choose_arena_bytes(const struct hx_index_setup *setup, unsigned shard_bits)
{
	uint64_t bytes = setup->bytes_max != 0 ? setup->bytes_max : machine_memory();

	bytes = bytes > UINT64_MAX / 2 ? UINT64_MAX : bytes * 2;
	bytes >>= shard_bits;
	if (bytes < ARENA_BYTES_MIN)
		bytes = ARENA_BYTES_MIN;
	if (bytes > ARENA_BYTES_MAX)
		bytes = ARENA_BYTES_MAX;
	return bytes / HX_CHUNK_SIZE * HX_CHUNK_SIZE;
}

/*
 * Report why there was no memory. Limits on address space (ulimit -v) are rare, and meant for
 * memory; reserved space is not memory yet. The limit in the message also covers everything else
 * in the process.
 */
static enum hapax_status index_refuse(
	const struct hx_shard_setup *shard, unsigned shard_bits, enum hapax_status status,
	struct hapax_error *err)
{
	uint64_t bytes = hx_shard_address_bytes(shard) << shard_bits;
	uint64_t bytes_max = hx_process_address_bytes_max();

	if (status != HAPAX_ERR_NO_MEMORY || bytes_max > bytes + ADDRESS_BYTES_BESIDES)
		return hx_error_set(err, status, 0, "not enough memory to open a store");
	return hx_error_set(
		err, status, 0,
		"could not reserve %" PRIu64 " MiB of address space for a store: the limit of this"
		" process (RLIMIT_AS) is %" PRIu64 " MiB; run 'ulimit -v %" PRIu64
		"' or 'ulimit -v unlimited' first",
		bytes >> 20, bytes_max >> 20, (bytes + ADDRESS_BYTES_BESIDES) / 1024);
}

enum hapax_status hx_index_new(
	const struct hx_index_setup *setup, struct hx_index **ret_index, struct hapax_error *err)
{
	/* By pages, since shards and seats are aligned to cache lines. */
	struct hx_index *index = hx_alloc_pages_reserve(INDEX_BYTES);
	struct hx_shard_setup shard_setup;
	enum hapax_status status;

	if (index == NULL || hx_alloc_pages_commit(index, INDEX_BYTES, 0) != 0) {
		hx_alloc_pages_release(index, INDEX_BYTES);
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to open a store");
	}
	hx_random_bytes(index->hash_key, sizeof(index->hash_key));
	index->scopes = setup->scopes;
	index->bytes_max = setup->bytes_max;
	index->keys_max = setup->keys_max;
	index->evict = setup->evict;
	index->lapse = setup->lapse;
	index->lapse_context = setup->lapse_context;
	index->users = setup->users;
	index->shard_bits = choose_shard_bits(setup);
	atomic_store_explicit(&index->token, setup->token, memory_order_relaxed);
	hx_mutex_init(&index->sweep_mutex);
	hx_epoch_init(&index->epoch);
	status = hx_profile_table_init(&index->profiles, setup->scopes);
	shard_setup = (struct hx_shard_setup){
		.arena_bytes = choose_arena_bytes(setup, index->shard_bits),
		.buckets = is_small(setup) ? SMALL_BUCKETS : HX_TABLE_BUCKETS_FAST,
		.epoch = &index->epoch,
		.profiles = &index->profiles,
		.hash_key = index->hash_key,
		.users = setup->users,
	};
	while (status == HAPAX_OK && index->shard_count < 1u << index->shard_bits) {
		status = hx_shard_init(&index->shards[index->shard_count], &shard_setup);
		index->shard_count += status == HAPAX_OK;
	}
	if (status != HAPAX_OK) {
		status = index_refuse(&shard_setup, index->shard_bits, status, err);
		hx_index_free(index);
		return status;
	}
	assert(index->shard_count == 1u << index->shard_bits);
	*ret_index = index;
	return HAPAX_OK;
}

/* No operation is under way any more: the records of all shards add up. */
static void index_assert_idle(struct hx_index *index)
{
	uint64_t keys = 0;

	for (uint32_t i = 0; i < index->shard_count; i++) {
		struct hx_shard *shard = &index->shards[i];

		/* Its holder would use the index after its end. */
		assert(!hx_shard_is_locked(shard));
		keys += shard->table.slot_count;
	}
	assert(!hx_index_is_limited(index) || keys == atomic_load(&index->keys));
	for (size_t i = 0; i < HX_EPOCH_SEATS; i++)
		assert(atomic_load(&index->epoch.seats[i].since) == 0);
}

void hx_index_free(struct hx_index *index)
{
	if (index == NULL)
		return;
	hx_ahead_stop(index);
	index_assert_idle(index);
	for (uint32_t i = 0; i < index->shard_count; i++)
		hx_shard_done(&index->shards[i]);
	hx_profile_table_done(&index->profiles);
	hx_mutex_done(&index->sweep_mutex);
	hx_alloc_pages_release(index, INDEX_BYTES);
}

void hx_index_keys_init(
	struct hx_index *index, struct hx_index_key *keys, const struct hapax_op *ops, size_t count)
{
	struct hx_siphash_lanes lanes = {{0}, {0}, {0}};
	uint64_t hashes[HX_SIPHASH_LANES];
	bool are_uuids = true;

	assert(count <= HX_SIPHASH_LANES);
	for (size_t i = 0; i < count; i++) {
		struct hx_packed_key *key = &keys[i].packed;

		hx_packed_key_init(key, ops[i].private_scope, ops[i].key);
		if (key->encoding != HX_KEY_UUID) {
			are_uuids = false;
			continue;
		}
		lanes.first[i] = hx_siphash_load(key->packed);
		lanes.second[i] = hx_siphash_load(key->packed + 8);
		lanes.scope[i] = hx_packed_key_suffix(key);
	}
	if (are_uuids)
		hx_siphash13_20_lanes(index->hash_key, &lanes, count, hashes);
	assert(index->shard_count == 1u << index->shard_bits);
	for (size_t i = 0; i < count; i++)
		hx_index_key_locate(
			index, &keys[i],
			are_uuids ? hashes[i]
				  : hx_packed_key_hash(&keys[i].packed, index->hash_key));
}

/* A record that may be the key's. Its head and its key often lie in two cache lines. */
static void probe_place(struct hx_index_key *key, uint32_t place)
{
	const unsigned char *at = hx_arena_at(&key->shard->arena, place);

	key->place = place;
	__builtin_prefetch(at);
	__builtin_prefetch(at + HX_PACKED_NARROW_SIZE + HX_UUID_SIZE - 1);
}

uint32_t hx_index_probe(struct hx_index_key *key)
{
	const struct hx_table *table = &key->shard->table;
	uint16_t tag = hx_table_tag(key->hash);
	const struct hx_bucket *bucket;
	unsigned candidates;
	uint32_t number;
	uint64_t count;

	key->sequence = atomic_load_explicit(&table->sequence, memory_order_acquire);
	if (key->sequence & 1)
		return 0;
	count = atomic_load_explicit(&table->bucket_count, memory_order_acquire);
	bucket = &table->buckets[hx_table_bucket_of(key->hash, count)];
	candidates = hx_bucket_candidates(bucket, tag);
	if (candidates != 0) {
		probe_place(key, hx_bucket_place(bucket, (unsigned)__builtin_ctz(candidates)));
		return 0;
	}
	/* A new key with a full bucket goes there also; number 0 is a harmless prefetch. */
	number = hx_bucket_next(bucket);
	__builtin_prefetch(hx_table_overflow(table, number));
	return hx_bucket_overflows(bucket, tag) ? number : 0;
}

void hx_index_probe_overflow(struct hx_index_key *key, uint32_t number)
{
	const struct hx_overflow *overflow = hx_table_overflow(&key->shard->table, number);
	unsigned candidates = hx_overflow_candidates(overflow, hx_table_tag(key->hash));

	assert(number != 0);
	if (candidates != 0)
		probe_place(key, hx_overflow_place(overflow, (unsigned)__builtin_ctz(candidates)));
}

/* Live bytes of records and buckets, of all shards; other shards' values may be slightly old. */
static uint64_t charged_bytes(struct hx_index *index)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < index->shard_count; i++)
		bytes +=
			atomic_load_explicit(&index->shards[i].charged_bytes, memory_order_relaxed);
	return bytes;
}

/* The part of bytes_max that live records and buckets may take. */
static uint64_t bytes_for(const struct hx_index *index, const struct hx_admission *admission)
{
	uint64_t room = index->bytes_max / 4 * 3;

	return admission->from_reserve ? room : room - room / 12;
}

/* The bytes that replacing the record at place frees. */
static uint64_t bytes_at(const struct hx_admission *admission)
{
	return admission->place == 0
		? 0
		: hx_arena_room_at(hx_arena_at(&admission->shard->arena, admission->place));
}

static bool is_full(struct hx_index *index, const struct hx_admission *admission, uint64_t keys)
{
	if (admission->keys != 0 && index->keys_max != 0 && keys > index->keys_max)
		return true;
	return index->bytes_max != 0 &&
		charged_bytes(index) + admission->bytes >
		bytes_for(index, admission) + bytes_at(admission);
}

static bool can_evict_for(const struct hx_index *index, const struct hx_admission *admission)
{
	/* A record that would not even fit an empty store must not empty it. */
	return admission->may_evict && index->evict == HAPAX_EVICT_LRU &&
		(index->bytes_max == 0 || admission->bytes <= bytes_for(index, admission));
}

static bool evict_one(struct hx_index *index, const struct hx_admission *admission, int64_t now_ms)
{
	bool was_expired;

	assert(admission->may_evict);
	assert(hx_shard_is_locked(admission->shard));
	if (!hx_shard_evict(admission->shard, admission->place, now_ms, &was_expired))
		return false;
	hx_index_unadmit(index);
	hx_shard_charge(admission->shard);
	atomic_fetch_add_explicit(
		was_expired ? &index->swept : &index->evicted, 1, memory_order_relaxed);
	return true;
}

/* Count keys out that admit has counted in. */
static void uncount_keys(struct hx_index *index, uint64_t keys)
{
	uint64_t before = atomic_fetch_sub_explicit(&index->keys, keys, memory_order_relaxed);

	assert(before >= keys);
	(void)before;
}

enum hapax_status hx_index_admit(
	struct hx_index *index, const struct hx_admission *admission, int64_t now_ms)
{
	uint64_t keys;

	if (!hx_index_is_limited(index))
		return HAPAX_OK;
	assert(admission->shard >= index->shards);
	assert(admission->shard < index->shards + index->shard_count);
	/* A record that replaces another one is not a new key. */
	assert(admission->place == 0 || admission->keys == 0);
	/* Count first: two concurrent callers must not both get the last place. */
	keys = admission->keys +
		atomic_fetch_add_explicit(&index->keys, admission->keys, memory_order_relaxed);
	while (is_full(index, admission, keys)) {
		if (!can_evict_for(index, admission) || !evict_one(index, admission, now_ms)) {
			uncount_keys(index, admission->keys);
			return HAPAX_ERR_LIMIT;
		}
		keys = atomic_load_explicit(&index->keys, memory_order_relaxed);
	}
	return HAPAX_OK;
}

void hx_index_unadmit(struct hx_index *index)
{
	if (hx_index_is_limited(index))
		uncount_keys(index, 1);
}

void hx_index_make_room(
	struct hx_index *index, const struct hx_admission *admission, int64_t now_ms)
{
	if (hx_index_is_limited(index) && can_evict_for(index, admission) &&
	    hx_index_admit(index, admission, now_ms) == HAPAX_OK)
		uncount_keys(index, admission->keys);
}

void hx_index_raise_token(struct hx_index *index, uint64_t token)
{
	uint64_t last = atomic_load_explicit(&index->token, memory_order_relaxed);

	assert(token <= HX_TOKEN_MAX);
	while (last < token &&
	       !atomic_compare_exchange_weak_explicit(
		       &index->token, &last, token, memory_order_relaxed, memory_order_relaxed))
		continue;
	assert(atomic_load_explicit(&index->token, memory_order_relaxed) >= token);
}

uint64_t hx_index_take_tokens(struct hx_index *index, unsigned count)
{
	uint64_t last = atomic_fetch_add_explicit(&index->token, count, memory_order_relaxed);

	if (last <= HX_TOKEN_MAX - count)
		return last + 1;
	atomic_store_explicit(&index->token, HX_TOKEN_MAX, memory_order_relaxed);
	return 0;
}

uint64_t hx_index_count(struct hx_index *index)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < index->shard_count; i++) {
		struct hx_shard *shard = &index->shards[i];

		hx_lock_acquire(&shard->lock);
		hx_shard_assert(shard);
		count += shard->table.slot_count;
		hx_lock_release(&shard->lock);
	}
	return count;
}

uint64_t hx_index_live_bytes(struct hx_index *index)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < index->shard_count; i++) {
		struct hx_shard *shard = &index->shards[i];

		hx_lock_acquire(&shard->lock);
		hx_arena_assert(&shard->arena);
		bytes += shard->arena.live_bytes + shard->elsewhere_bytes;
		hx_lock_release(&shard->lock);
	}
	return bytes;
}

void hx_index_stats(struct hx_index *index, struct hapax_stats *stats, int64_t now_ms)
{
	for (uint32_t i = 0; i < index->shard_count; i++) {
		struct hx_shard *shard = &index->shards[i];

		hx_lock_acquire(&shard->lock);
		hx_shard_assert(shard);
		hx_table_assert(&shard->table);
		hx_arena_assert(&shard->arena);
		stats->claimed += shard->by_state[HAPAX_STATE_CLAIMED];
		stats->done += shard->by_state[HAPAX_STATE_DONE];
		stats->failed += shard->by_state[HAPAX_STATE_FAILED];
		stats->parked += shard->by_state[HAPAX_STATE_PARKED];
		stats->keys += shard->table.slot_count;
		stats->bytes += hx_shard_bytes(shard);
		hx_lock_release(&shard->lock);
	}
	stats->expired = hx_index_count_expired(index, now_ms);
	stats->swept = atomic_load_explicit(&index->swept, memory_order_relaxed);
	stats->evicted = atomic_load_explicit(&index->evicted, memory_order_relaxed);
	stats->token = atomic_load_explicit(&index->token, memory_order_relaxed);
}
