/* SPDX-License-Identifier: Apache-2.0 */
#include "store/near/cache.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/thread.h"
#include "record/record.h"

/* A larger record would push out many that are asked for as often. */
enum { RECORD_BYTES_MAX = 16 * 1024 + HX_KEY_SIZE_MAX + 2 * HX_SCOPE_PART_SIZE_MAX };

struct place {
	uint64_t hash; /* 0: empty */
	int64_t put_ms;
	struct hapax_record record;
	struct hapax_buf buf; /* its bytes */
};

struct pair {
	struct hx_lock lock;
	struct place places[2];
};

struct hx_near_cache {
	uint64_t siphash_key[2];
	uint64_t mask;
	struct pair *pairs;
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

/* Of the key alone; scopes are compared. Never 0. */
static uint64_t hash_of(const struct hx_near_cache *cache, struct hapax_bytes key)
{
	return hx_siphash13(cache->siphash_key, key.data, key.size) | 1;
}

static struct pair *pair_of(struct hx_near_cache *cache, uint64_t hash)
{
	return &cache->pairs[hash >> 1 & cache->mask];
}

/* Locks: the pair's. */
static struct place *find(
	struct pair *pair, uint64_t hash, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	for (int k = 0; k < 2; k++) {
		struct place *place = &pair->places[k];

		if (place->hash == hash && hx_bytes_equal(place->record.key, key) &&
		    hx_bytes_equal(place->record.tenant, tenant) &&
		    hx_bytes_equal(place->record.group, group))
			return place;
	}
	return NULL;
}

/* As transition.c answers for a record that is DONE. */
static bool answer(const struct hapax_record *record, struct hapax_op *op)
{
	bool is_verified = op->fingerprint != NULL && record->fingerprint_size != 0;
	bool is_equal = !is_verified ||
		memcmp(op->fingerprint, record->fingerprint, record->fingerprint_size) == 0;

	if (op->record != NULL && hx_record_copy(record, op->record, op->buf) != HAPAX_OK)
		return false;
	op->outcome = is_equal ? HAPAX_OUTCOME_REPLAY : HAPAX_OUTCOME_MISMATCH;
	op->unverified = !is_verified;
	op->token = record->token;
	op->attempt = record->attempt;
	op->first_seen_ms = record->first_seen_ms;
	op->expires_ms = record->expires_ms;
	return true;
}

bool hx_near_cache_answer(struct hx_near_cache *cache, struct hapax_op *op, int64_t from_ms)
{
	uint64_t hash = hash_of(cache, op->key);
	struct pair *pair = pair_of(cache, hash);
	struct place *place;
	bool is_answered;

	hx_lock_acquire(&pair->lock);
	place = find(pair, hash, op->tenant, op->group, op->key);
	is_answered = place != NULL && place->put_ms >= from_ms && answer(&place->record, op);
	hx_lock_release(&pair->lock);
	return is_answered;
}

void hx_near_cache_put(
	struct hx_near_cache *cache, const struct hapax_record *record, int64_t now_ms)
{
	uint64_t hash = hash_of(cache, record->key);
	struct pair *pair = pair_of(cache, hash);
	struct place *place;

	hx_lock_acquire(&pair->lock);
	place = find(pair, hash, record->tenant, record->group, record->key);
	if (place == NULL)
		place = &pair->places[pair->places[1].put_ms < pair->places[0].put_ms];
	place->hash = 0;
	if (hx_record_copy(record, &place->record, &place->buf) == HAPAX_OK) {
		place->hash = hash;
		place->put_ms = now_ms;
	}
	hx_lock_release(&pair->lock);
}

void hx_near_cache_drop(struct hx_near_cache *cache, const struct hapax_op *op)
{
	uint64_t hash = hash_of(cache, op->key);
	struct pair *pair = pair_of(cache, hash);
	struct place *place;

	hx_lock_acquire(&pair->lock);
	place = find(pair, hash, op->tenant, op->group, op->key);
	if (place != NULL)
		place->hash = 0;
	hx_lock_release(&pair->lock);
}
