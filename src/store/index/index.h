/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - all records of a store, in memory: the whole of "memory:", and the base of a log on
 * disk.
 *
 * The index is split into shards by hash, one for each core. A reader finds a record without a
 * lock, between enter and leave of the epoch. A writer holds the lock of the shards that it
 * writes.
 *
 * Threads: any.
 */
#ifndef HX_STORE_INDEX_INDEX_H
#define HX_STORE_INDEX_INDEX_H

#include <hapax/store.h>

#include "store/index/shard.h"

enum { HX_SHARDS_MAX = 16 };

/*
 * A sweep has met a lapsed claim that no caller took over for its ttl. record is valid during
 * the call. Locks: the shard's.
 */
typedef void hx_index_lapse_fn(const struct hapax_record *record, void *context);

struct hx_index {
	uint64_t hash_key[2];
	struct hx_scope_table *scopes;
	struct hx_profile_table profiles;
	struct hx_elsewhere_users *users; /* NULL: every result is in its record */
	uint64_t bytes_max;               /* 0: none */
	uint64_t keys_max;                /* 0: none */
	enum hapax_evict evict;
	hx_index_lapse_fn *lapse; /* NULL: the sweep settles such claims itself */
	void *lapse_context;
	unsigned shard_bits;
	uint32_t shard_count;
	struct hx_mutex sweep_mutex;
	struct hx_index_walk {
		uint32_t shard;
		uint32_t chunk;
		uint32_t at;
		uint32_t generation;
	} walk;                /* the sweep's position. Locks: sweep_mutex */
	_Atomic uint64_t keys; /* records, counted only under a limit */
	_Atomic uint64_t swept;
	_Atomic uint64_t evicted;
	_Atomic uint64_t token; /* the last one issued */
	struct hx_epoch epoch;
	struct hx_ahead ahead;
	struct hx_shard shards[HX_SHARDS_MAX];
};

struct hx_index_setup {
	struct hx_scope_table *scopes;
	uint64_t bytes_max;
	uint64_t keys_max;
	enum hapax_evict evict;
	uint64_t token; /* tokens begin above this */
	hx_index_lapse_fn *lapse;
	void *lapse_context;
	struct hx_elsewhere_users *users; /* of files; NULL: every result is in its record */
};

/* Reserves address space for twice the machine's memory or bytes_max. */
enum hapax_status hx_index_new(
	const struct hx_index_setup *setup, struct hx_index **ret_index, struct hapax_error *err);
void hx_index_free(struct hx_index *index);

/* A key, ready for lookup. */
struct hx_index_key {
	struct hx_packed_key packed;
	uint64_t hash;
	struct hx_shard *shard;
	uint64_t sequence; /* the table's when it was probed, and */
	uint32_t place;    /* a record that may be the key's; 0: none, or not probed */
};

static inline void hx_index_key_locate(
	struct hx_index *index, struct hx_index_key *key, uint64_t hash)
{
	key->hash = hash;
	key->place = 0;
	/* Shifting by 64 is undefined, so one shard is shifted in two steps. */
	key->shard = &index->shards[hash >> 1 >> (63 - index->shard_bits)];
}

/* With packed set: hash and shard. */
static inline void hx_index_key_finish(struct hx_index *index, struct hx_index_key *key)
{
	hx_index_key_locate(index, key, hx_packed_key_hash(&key->packed, index->hash_key));
}

static inline void hx_index_key_init(
	struct hx_index *index, struct hx_index_key *key, uint32_t scope_id,
	struct hapax_bytes text)
{
	hx_packed_key_init(&key->packed, scope_id, text);
	hx_index_key_finish(index, key);
}

/* The keys of operations, at most HX_SIPHASH_LANES of them, hashed side by side if possible. */
void hx_index_keys_init(
	struct hx_index *index, struct hx_index_key *keys, const struct hapax_op *ops,
	size_t count);

/*
 * Prefetch the memory of a search: first the bucket, later the record. If the record is behind
 * an overflow bucket, probe returns its number, for probe_overflow; otherwise 0. Between enter
 * and leave.
 */
static inline void hx_index_prefetch_bucket(const struct hx_index_key *key)
{
	const struct hx_table *table = &key->shard->table;
	uint64_t count = atomic_load_explicit(&table->bucket_count, memory_order_relaxed);

	__builtin_prefetch(&table->buckets[hx_table_bucket_of(key->hash, count)]);
}

uint32_t hx_index_probe(struct hx_index_key *key);
void hx_index_probe_overflow(struct hx_index_key *key, uint32_t number);

/* Is the probed record still the key's? If not, search. */
static inline bool hx_index_probe_holds(const struct hx_index_key *key)
{
	return key->place != 0 &&
		atomic_load_explicit(&key->shard->table.sequence, memory_order_relaxed) ==
		key->sequence &&
		hx_shard_is_at(key->shard, key->place, &key->packed);
}

/* A planned write, for the limits. */
struct hx_admission {
	struct hx_shard *shard; /* its destination */
	uint32_t place;         /* of the replaced record; 0: none */
	uint32_t keys;          /* number of new keys */
	uint64_t bytes;         /* at most these */
	bool from_reserve;      /* bytes may come from the reserve, since the write ends a claim */
	bool may_evict;         /* in shard, but not the record at place. Locks: the shard's */
};

/*
 * May that be put into the store? HAPAX_ERR_LIMIT: it is full, and no room could be made. Counts
 * the keys in; hx_index_unadmit() counts one out when it is removed, or was not put after all.
 */
enum hapax_status hx_index_admit(
	struct hx_index *index, const struct hx_admission *admission, int64_t now_ms);
void hx_index_unadmit(struct hx_index *index);

/* The same without counting in: evict records that are in the way, as far as possible. */
void hx_index_make_room(
	struct hx_index *index, const struct hx_admission *admission, int64_t now_ms);

/* Does the index have any limit? */
static inline bool hx_index_is_limited(const struct hx_index *index)
{
	return index->keys_max != 0 || index->bytes_max != 0;
}

/* Records in all shards, expired ones included; values may be slightly old. */
uint64_t hx_index_count(struct hx_index *index);

/* Bytes of the records in all shards, and of their results that are elsewhere. */
uint64_t hx_index_live_bytes(struct hx_index *index);

/*
 * The next tokens, of which the first is returned; tokens may stay unused. 0: there are no more.
 * Locks: the record's shard.
 */
uint64_t hx_index_take_tokens(struct hx_index *index, unsigned count);

/* Make tokens continue above this one. */
void hx_index_raise_token(struct hx_index *index, uint64_t token);

/* About this many records will be loaded into the empty index. A hint. */
void hx_index_expect(struct hx_index *index, uint64_t records);

/*
 * Touch the memory that hx_index_expect() asked for. This takes as long as filling it: call it
 * beside the loading, on a separate thread.
 */
void hx_index_populate(struct hx_index *index);

/* Loading is done, and no thread populates any more. */
void hx_index_settle(struct hx_index *index);

/*
 * Put a record from a file, in place of the existing one; with only_if_absent, only if there is
 * none. If elsewhere is not NULL and says so, its result stays in the file. Its token counts as
 * issued. Limits are not checked. HAPAX_ERR_NO_MEMORY: nothing was done. Locks: the key's shard.
 */
enum hapax_status hx_index_load(
	struct hx_index *index, const struct hx_index_key *key, const struct hapax_record *record,
	const struct hx_elsewhere *elsewhere, bool only_if_absent, int64_t now_ms);

/*
 * From now on the result of the record at place is elsewhere. Its bytes are there, and durable.
 * False: no memory, and nothing changed. Locks: the key's shard.
 */
bool hx_index_move_result(
	struct hx_index *index, const struct hx_index_key *key, uint32_t place,
	const struct hx_elsewhere *elsewhere, int64_t now_ms);

/* Remove the record of key, if there is one. Locks: the key's shard. */
void hx_index_unload(struct hx_index *index, const struct hx_index_key *key);

/*
 * See hapax_scan_fn. elsewhere, unless it is NULL, says where the result is: it can be read
 * there until this returns.
 */
typedef int hx_index_scan_fn(
	const struct hapax_record *record, const struct hx_elsewhere *elsewhere, void *context);

/* See hapax_store_scan(). */
void hx_index_scan(
	struct hx_index *index, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	int64_t now_ms, hx_index_scan_fn *each, void *context);

/* A lower bound of the expired records that were not swept yet. */
uint64_t hx_index_count_expired(struct hx_index *index, int64_t now_ms);

void hx_index_stats(struct hx_index *index, struct hapax_stats *stats, int64_t now_ms);

/* See hapax_store_sweep(). */
void hx_index_sweep(struct hx_index *index, struct hapax_sweep *sweep, int64_t now_ms);

#endif
