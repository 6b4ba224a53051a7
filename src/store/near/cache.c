/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - the places of the near cache, their readers and their writers.
 *
 *  (1) A place with a nonzero hash holds a whole record, which does not change while the hash
 *      stands.
 *  (2) A reader increments `readers`, then checks `hash`. A writer clears `hash`, then checks
 *      `readers`. One always sees the other.
 *  (3) An answer is not stored if its key was dropped after the store was asked.
 */
#include "store/near/cache.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/thread.h"
#include "record/record.h"

/* A larger record would evict many records that are needed as often. */
enum { RECORD_BYTES_MAX = 16 * 1024 + HX_KEY_SIZE_MAX + 2 * HX_SCOPE_PART_SIZE_MAX };

struct place {
	_Atomic uint64_t hash; /* 0: empty */
	_Atomic int64_t asked_ms;
	_Atomic uint32_t readers;
	struct hapax_record record;
	struct hapax_buf buf;
};

struct pair {
	struct hx_lock lock; /* for writers */
	uint64_t dropped;    /* Locks: lock. The number of the last drop here */
	struct place places[2];
};

struct hx_near_cache {
	uint64_t siphash_key[2];
	uint64_t mask;
	struct pair *pairs;
	_Atomic uint64_t drops;
};

struct hx_near_cache *hx_near_cache_new(uint64_t pairs)
{
	struct hx_near_cache *cache = hx_alloc_zero(1, sizeof(*cache));

	assert(pairs != 0 && (pairs & (pairs - 1)) == 0);
	if (cache == NULL)
		return NULL;
	cache->pairs = hx_alloc_zero(pairs, sizeof(cache->pairs[0]));
	if (cache->pairs == NULL) {
		hx_free(cache);
		return NULL;
	}
	cache->mask = pairs - 1;
	hx_random_bytes(cache->siphash_key, sizeof(cache->siphash_key));
	for (uint64_t i = 0; i < pairs; i++) {
		for (int k = 0; k < 2; k++)
			hx_buf_init(&cache->pairs[i].places[k].buf, RECORD_BYTES_MAX);
	}
	return cache;
}

void hx_near_cache_free(struct hx_near_cache *cache)
{
	if (cache == NULL)
		return;
	for (uint64_t i = 0; i <= cache->mask; i++) {
		for (int k = 0; k < 2; k++)
			hx_buf_done(&cache->pairs[i].places[k].buf);
	}
	hx_free(cache->pairs);
	hx_free(cache);
}

/* Hashes the key only; scopes are compared. Never 0. */
static uint64_t hash_of(const struct hx_near_cache *cache, struct hapax_bytes key)
{
	return hx_siphash13(cache->siphash_key, key.data, key.size) | 1;
}

static struct pair *pair_of(struct hx_near_cache *cache, uint64_t hash)
{
	return &cache->pairs[hash >> 1 & cache->mask];
}

static bool is_of(
	const struct hapax_record *record, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	return hx_bytes_equal(record->key, key) && hx_bytes_equal(record->tenant, tenant) &&
		hx_bytes_equal(record->group, group);
}

/* Locks: the pair's. */
static struct place *find(
	struct pair *pair, uint64_t hash, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	for (int k = 0; k < 2; k++) {
		struct place *place = &pair->places[k];

		if (atomic_load_explicit(&place->hash, memory_order_relaxed) == hash &&
		    is_of(&place->record, tenant, group, key))
			return place;
	}
	return NULL;
}

/* Gives the same answer as transition.c does for a DONE record. */
static bool answer(const struct hapax_record *record, struct hapax_op *op)
{
	bool is_verified = op->fingerprint != NULL && record->fingerprint_size != 0;
	bool is_equal = !is_verified ||
		memcmp(op->fingerprint, record->fingerprint, record->fingerprint_size) == 0;

	if (op->record != NULL && hx_record_copy(record, op->record, op->buf) != HAPAX_OK)
		return false;
	op->outcome = is_equal ? HAPAX_OUTCOME_REPLAY : HAPAX_OUTCOME_MISMATCH;
	op->unverified = !is_verified;
	op->attempt = record->attempt;
	op->first_seen_ms = record->first_seen_ms;
	op->expires_ms = record->expires_ms;
	return true;
}

/* The reader's half of invariant (2). */
static bool answer_from(struct place *place, uint64_t hash, struct hapax_op *op, int64_t from_ms)
{
	bool is_answered;

	/* Rejects most other records without touching `readers`. */
	if (atomic_load_explicit(&place->hash, memory_order_relaxed) != hash)
		return false;
	atomic_fetch_add_explicit(&place->readers, 1, memory_order_seq_cst);
	is_answered = atomic_load_explicit(&place->hash, memory_order_seq_cst) == hash &&
		atomic_load_explicit(&place->asked_ms, memory_order_relaxed) >= from_ms &&
		is_of(&place->record, op->tenant, op->group, op->key) && answer(&place->record, op);
	atomic_fetch_sub_explicit(&place->readers, 1, memory_order_release);
	return is_answered;
}

bool hx_near_cache_answer(struct hx_near_cache *cache, struct hapax_op *op, int64_t from_ms)
{
	uint64_t hash = hash_of(cache, op->key);
	struct pair *pair = pair_of(cache, hash);

	return answer_from(&pair->places[0], hash, op, from_ms) ||
		answer_from(&pair->places[1], hash, op, from_ms);
}

uint64_t hx_near_cache_drops(const struct hx_near_cache *cache)
{
	return atomic_load_explicit(&cache->drops, memory_order_acquire);
}

/* Locks: the pair's. Returns the place that holds the record, else the older place. */
static struct place *place_for(struct pair *pair, uint64_t hash, const struct hapax_record *record)
{
	struct place *place = find(pair, hash, record->tenant, record->group, record->key);

	if (place != NULL)
		return place;
	return &pair->places
			[atomic_load_explicit(&pair->places[1].asked_ms, memory_order_relaxed) <
			 atomic_load_explicit(&pair->places[0].asked_ms, memory_order_relaxed)];
}

/* Locks: the pair's. The writer's half of invariant (2). */
static void fill(
	struct place *place, uint64_t hash, const struct hapax_record *record, int64_t asked_ms)
{
	atomic_store_explicit(&place->hash, 0, memory_order_seq_cst);
	if (atomic_load_explicit(&place->readers, memory_order_seq_cst) != 0 ||
	    hx_record_copy(record, &place->record, &place->buf) != HAPAX_OK)
		return;
	atomic_store_explicit(&place->asked_ms, asked_ms, memory_order_relaxed);
	atomic_store_explicit(&place->hash, hash, memory_order_release);
}

void hx_near_cache_put(
	struct hx_near_cache *cache, const struct hapax_record *record, int64_t asked_ms,
	uint64_t drops)
{
	uint64_t hash = hash_of(cache, record->key);
	struct pair *pair = pair_of(cache, hash);

	hx_lock_acquire(&pair->lock);
	if (pair->dropped <= drops)
		fill(place_for(pair, hash, record), hash, record, asked_ms);
	hx_lock_release(&pair->lock);
}

/* A reader that is still reading the record began before the drop. */
void hx_near_cache_drop(struct hx_near_cache *cache, const struct hapax_op *op)
{
	uint64_t hash = hash_of(cache, op->key);
	struct pair *pair = pair_of(cache, hash);
	struct place *place;

	hx_lock_acquire(&pair->lock);
	pair->dropped = atomic_fetch_add_explicit(&cache->drops, 1, memory_order_acq_rel) + 1;
	place = find(pair, hash, op->tenant, op->group, op->key);
	if (place != NULL)
		atomic_store_explicit(&place->hash, 0, memory_order_release);
	hx_lock_release(&pair->lock);
}
