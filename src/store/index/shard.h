/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h - one part of the index: a table of buckets, an arena, a lock.
 *
 * Writing takes two steps, so that a group of records is written whole or not at all: stage does
 * everything that can fail; publish and remove cannot fail.
 *
 * Locks: everything but hx_shard_read() under shard->lock.
 */
#ifndef HX_STORE_INDEX_SHARD_H
#define HX_STORE_INDEX_SHARD_H

#include <stdalign.h>

#include "base/thread.h"
#include "store/index/index_arena.h"
#include "store/index/index_table.h"

/* Attempts to read between two writes before the lock is taken. */
enum { HX_READ_TRIES = 4 };

/* Bytes of gaps, beside a quarter of all, that are not worth the work. */
enum { HX_SHARD_GAPS_ALLOWED = 4 * HX_CHUNK_SIZE };

struct hx_shard {
	alignas(64) struct hx_lock lock;
	alignas(64) struct hx_table table;
	struct hx_arena arena;
	struct hx_profile_table *profiles;
	const uint64_t *hash_key;
	uint32_t profile_id;              /* the one last asked for, */
	uint32_t profile_scope;           /* by this scope */
	int64_t profile_ttl_ms;           /* and this ttl; 0: none yet */
	_Atomic uint64_t charged_bytes;   /* live records and buckets, for all threads to read */
	struct hx_elsewhere_users *users; /* NULL: every result is in its record */
	uint64_t elsewhere_bytes;         /* of results of live records that are elsewhere */
	uint64_t by_state[HAPAX_STATE_PARKED + 1];
	uint64_t evict_bucket;    /* where eviction looks next: the bucket, */
	size_t evict_index;       /* and which of its records */
	uint32_t tidy_chunk;      /* the chunk being emptied; 0: none */
	uint32_t tidy_at;         /* how far */
	uint32_t tidy_generation; /* of the chunk when it was chosen */
	uint32_t tidy_hand;       /* where the search for the next one continues */
	/* Memory promised to loading: see hx_index_populate(). */
	uint64_t expected_bytes;
	uint64_t expected_table_bytes;
};

struct hx_shard_setup {
	uint64_t arena_bytes;
	uint64_t buckets; /* to begin with */
	struct hx_epoch *epoch;
	struct hx_profile_table *profiles;
	const uint64_t *hash_key;
	struct hx_elsewhere_users *users;
};

/* The address space that such a shard reserves. */
uint64_t hx_shard_address_bytes(const struct hx_shard_setup *setup);

enum hapax_status hx_shard_init(struct hx_shard *shard, const struct hx_shard_setup *setup);
void hx_shard_done(struct hx_shard *shard);

/* Does a thread hold the lock? For asserts: it may be another one. */
static inline bool hx_shard_is_locked(const struct hx_shard *shard)
{
	return atomic_load_explicit(&shard->lock.state, memory_order_relaxed) != HX_LOCK_FREE;
}

/* What holds whenever the lock is taken or released. */
void hx_shard_assert(const struct hx_shard *shard);

/* Is the record at place, if there is one, that of key? */
static inline bool hx_shard_is_at(
	const struct hx_shard *shard, uint32_t place, const struct hx_packed_key *key)
{
	return place != 0 &&
		hx_packed_key_matches(hx_arena_at(&shard->arena, place), shard->profiles, key);
}

/* Look for key in the overflow of a full bucket. */
uint32_t hx_shard_find_overflow(
	const struct hx_shard *shard, const struct hx_bucket *bucket, uint16_t tag,
	const struct hx_packed_key *key);

/* The place of key's record, or 0. */
static inline uint32_t hx_shard_find(
	const struct hx_shard *shard, const struct hx_packed_key *key, uint64_t hash)
{
	uint64_t count = atomic_load_explicit(&shard->table.bucket_count, memory_order_acquire);
	const struct hx_bucket *bucket = &shard->table.buckets[hx_table_bucket_of(hash, count)];
	uint16_t tag = hx_table_tag(hash);
	unsigned candidates = hx_bucket_candidates(bucket, tag);

	for (; candidates != 0; candidates &= candidates - 1) {
		uint32_t place = hx_bucket_place(bucket, (unsigned)__builtin_ctz(candidates));

		if (hx_shard_is_at(shard, place, key))
			return place;
	}
	return hx_bucket_overflows(bucket, tag) ? hx_shard_find_overflow(shard, bucket, tag, key)
						: 0;
}

/*
 * The same without a lock, between hx_epoch_enter() and leave. False: writers interfered; find
 * it under the lock. The answer holds as long as the table's sequence is *ret_sequence.
 */
static inline bool hx_shard_read(
	const struct hx_shard *shard, const struct hx_packed_key *key, uint64_t hash,
	uint32_t *ret_place, uint64_t *ret_sequence)
{
	for (unsigned i = 0; i < HX_READ_TRIES; i++) {
		uint64_t sequence =
			atomic_load_explicit(&shard->table.sequence, memory_order_acquire);

		if (sequence & 1)
			continue;
		*ret_place = hx_shard_find(shard, key, hash);
		/* A split may have moved the record during the search; a group may be half done. */
		if (atomic_load_explicit(&shard->table.sequence, memory_order_relaxed) ==
		    sequence) {
			*ret_sequence = sequence;
			return true;
		}
	}
	return false;
}

/*
 * Unpack the record at place without its key. Valid while it is not removed, or until the reader
 * leaves. Its result may be elsewhere.
 */
void hx_shard_unpack(struct hx_shard *shard, uint32_t place, struct hapax_record *ret_record);

/* The place of the result of the record at place. False: it is in the record. */
bool hx_shard_elsewhere(
	const struct hx_shard *shard, uint32_t place, struct hx_elsewhere *ret_elsewhere);

/* The same as unpack, with its key. */
void hx_shard_unpack_all(
	struct hx_shard *shard, uint32_t place, unsigned char key_text[HX_KEY_TEXT_SIZE],
	struct hapax_record *ret_record);

/*
 * Write record and make room in the table for as many inserts as are staged.
 * HAPAX_ERR_NO_MEMORY, HAPAX_ERR_LIMIT: nothing was staged.
 */
enum hapax_status hx_shard_stage(
	struct hx_shard *shard, const struct hapax_record *record, const struct hx_packed_key *key,
	unsigned staged, int64_t now_ms, uint32_t *ret_place);

/* The same for a record whose result is elsewhere; NULL: it is in the record. */
enum hapax_status hx_shard_stage_elsewhere(
	struct hx_shard *shard, const struct hapax_record *record,
	const struct hx_elsewhere *elsewhere, const struct hx_packed_key *key, unsigned staged,
	int64_t now_ms, uint32_t *ret_place);

/* The same for a mark. Returns its place, or 0: no memory, or it needs the general form. */
uint32_t hx_shard_stage_mark(
	struct hx_shard *shard, const struct hx_packed_key *key, const struct hx_packed_mark *mark,
	int64_t now_ms);

/* Make the index point at a staged mark, under a key that is absent. */
static inline void hx_shard_publish_mark(struct hx_shard *shard, uint64_t hash, uint32_t place)
{
	hx_table_begin(&shard->table);
	hx_table_insert(&shard->table, hash, place);
	hx_table_end(&shard->table);
	shard->by_state[HAPAX_STATE_DONE]++;
}

/* hx_profile_intern() with a one-entry cache: neighbors mostly ask for the same. */
static inline uint32_t hx_shard_profile(struct hx_shard *shard, uint32_t scope_id, int64_t ttl_ms)
{
	if (shard->profile_ttl_ms != ttl_ms || shard->profile_scope != scope_id) {
		uint32_t id = hx_profile_intern(shard->profiles, scope_id, ttl_ms);

		if (id == HX_PROFILE_NONE)
			return id;
		shard->profile_id = id;
		shard->profile_scope = scope_id;
		shard->profile_ttl_ms = ttl_ms;
	}
	return shard->profile_id;
}

/* Give up a staged record. */
void hx_shard_unstage(struct hx_shard *shard, uint32_t place);

/* Make the index point at place, replacing old unless that is 0. Between table begin and end. */
void hx_shard_publish(struct hx_shard *shard, uint64_t hash, uint32_t old, uint32_t place);

/* Between table begin and end. */
void hx_shard_remove(struct hx_shard *shard, uint64_t hash, uint32_t place);

/* A little work against gaps: copies at most a few records. */
void hx_shard_tidy_some(struct hx_shard *shard, int64_t now_ms);

/* The same after a write, if there are enough gaps. */
static inline void hx_shard_tidy(struct hx_shard *shard, int64_t now_ms)
{
	const struct hx_arena *arena = &shard->arena;

	if (shard->tidy_chunk != 0 ||
	    arena->used_bytes - arena->live_bytes >= arena->used_bytes / 4 + HX_SHARD_GAPS_ALLOWED)
		hx_shard_tidy_some(shard, now_ms);
}

/*
 * Evict one DONE record that was not used lately, but not the one at spare. False: none was
 * found nearby. *ret_was_expired: it had already expired.
 */
bool hx_shard_evict(struct hx_shard *shard, uint32_t spare, int64_t now_ms, bool *ret_was_expired);

/* Publish the bytes in use, after writing. */
void hx_shard_charge(struct hx_shard *shard);

/* The hash of the record at place. */
uint64_t hx_shard_hash(struct hx_shard *shard, uint32_t place);

/* Bytes of records, gaps included, and of buckets. */
uint64_t hx_shard_bytes(const struct hx_shard *shard);

#endif
