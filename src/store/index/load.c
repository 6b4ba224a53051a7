/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - fill the index from files before its first use; later, leave results in files.
 */
#include "store/index/index.h"

#include <assert.h>

#include "base/alloc.h"

/* The minimum size of a record: a mark with a UUID. */
enum { RECORD_BYTES_MIN = 28 };

/* A result of no kind may still have a body: a record of another store says what it wants. */
static bool has_nothing(const struct hapax_result *result)
{
	return result->kind == HAPAX_RESULT_NONE && result->result_class == HAPAX_RESULT_OK &&
		result->status == 0 && result->omitted_bytes == 0 && hx_result_bytes(result) == 0;
}

/* A mark has a short form, and most records of most stores are marks. */
static bool stage_mark(
	struct hx_shard *shard, const struct hx_index_key *key, const struct hapax_record *record,
	int64_t now_ms, uint32_t *ret_place)
{
	struct hx_packed_mark mark = {
		.fingerprint = record->fingerprint_size != 0 ? record->fingerprint : NULL,
		.expires_ms = record->expires_ms,
		.token = record->token,
	};
	int64_t changed_ms;

	if (record->state != HAPAX_STATE_DONE || record->origin != HAPAX_ORIGIN_CHECK ||
	    record->on_lapse != HAPAX_ON_LAPSE_RETRY || record->attempt != 1 ||
	    !has_nothing(&record->result) || record->ttl_ms == HAPAX_TTL_FOREVER ||
	    record->first_seen_ms != record->changed_ms || record->expires_ms == HAPAX_TIME_NEVER ||
	    __builtin_sub_overflow(record->expires_ms, record->ttl_ms, &changed_ms) ||
	    record->changed_ms != changed_ms)
		return false;
	mark.profile_id = hx_shard_profile(shard, key->packed.scope_id, record->ttl_ms);
	if (mark.profile_id == HX_PROFILE_NONE ||
	    hx_profile_get(shard->profiles, mark.profile_id)->ttl_ms != record->ttl_ms)
		return false;
	/* The short form has no room for these: a record that has one is not a mark. */
	assert(record->owner.size == 0);
	assert(record->lease_ends_ms == 0);
	assert(record->result.body.size == 0);
	*ret_place = hx_shard_stage_mark(shard, &key->packed, &mark, now_ms);
	return *ret_place != 0;
}

void hx_index_expect(struct hx_index *index, uint64_t records)
{
	uint64_t share = records / index->shard_count;

	for (uint32_t i = 0; i < index->shard_count; i++) {
		struct hx_shard *shard = &index->shards[i];

		hx_table_expect(&shard->table, share);
		shard->expected_bytes = hx_arena_expect(&shard->arena, share * RECORD_BYTES_MIN);
		shard->expected_table_bytes = shard->table.buckets_committed;
		assert(shard->expected_bytes <= shard->arena.memory_bytes);
		hx_table_assert(&shard->table);
	}
}

/* In steps: concurrent loading also needs the memory of the other shards. */
static void populate_step(unsigned char *memory, uint64_t at, uint64_t end)
{
	assert(at % HX_PAGES_HUGE_SIZE == 0);
	if (at < end)
		hx_alloc_pages_populate(
			memory + at, end - at < HX_PAGES_HUGE_SIZE ? end - at : HX_PAGES_HUGE_SIZE);
}

void hx_index_populate(struct hx_index *index)
{
	bool goes_on = true;

	for (uint32_t i = 0; i < index->shard_count; i++) {
		struct hx_shard *shard = &index->shards[i];

		for (uint64_t at = 0; at < shard->expected_table_bytes; at += HX_PAGES_HUGE_SIZE)
			populate_step(
				(unsigned char *)shard->table.buckets, at,
				shard->expected_table_bytes);
	}
	/* The first chunks are on small pages, which does not matter. */
	for (uint64_t at = HX_PAGES_HUGE_SIZE; goes_on; at += HX_PAGES_HUGE_SIZE) {
		goes_on = false;
		for (uint32_t i = 0; i < index->shard_count; i++) {
			struct hx_shard *shard = &index->shards[i];

			populate_step(shard->arena.memory, at, shard->expected_bytes);
			goes_on = goes_on || at < shard->expected_bytes;
		}
	}
}

void hx_index_settle(struct hx_index *index)
{
	for (uint32_t i = 0; i < index->shard_count; i++)
		hx_arena_settle(&index->shards[i].arena);
}

enum hapax_status hx_index_load(
	struct hx_index *index, const struct hx_index_key *key, const struct hapax_record *record,
	const struct hx_elsewhere *elsewhere, bool only_if_absent, int64_t now_ms)
{
	struct hx_shard *shard = key->shard;
	enum hapax_status status = HAPAX_OK;
	uint64_t slots = shard->table.slot_count;
	uint32_t old, place;

	assert(hx_shard_is_locked(shard));
	old = hx_shard_find(shard, &key->packed, key->hash);
	if (old == 0 || !only_if_absent) {
		if (!stage_mark(shard, key, record, now_ms, &place))
			status = hx_shard_stage_elsewhere(
				shard, record, elsewhere, &key->packed, 1, now_ms, &place);
		if (status == HAPAX_OK) {
			hx_table_begin(&shard->table);
			hx_shard_publish(shard, key->hash, old, place);
			hx_table_end(&shard->table);
			assert(shard->table.slot_count == slots + (old == 0));
			hx_shard_tidy(shard, now_ms);
			hx_shard_charge(shard);
			hx_index_raise_token(index, record->token);
			if (old == 0 && hx_index_is_limited(index))
				atomic_fetch_add_explicit(&index->keys, 1, memory_order_relaxed);
		}
	}
	return status;
}

bool hx_index_move_result(
	struct hx_index *index, const struct hx_index_key *key, uint32_t place,
	const struct hx_elsewhere *elsewhere, int64_t now_ms)
{
	struct hx_shard *shard = key->shard;
	struct hapax_record record;
	uint32_t moved;

	assert(index->users != NULL);
	(void)index;
	assert(elsewhere->file != 0);
	hx_shard_unpack(shard, place, &record);
	assert(record.state == HAPAX_STATE_DONE);
	assert(hx_result_bytes(&record.result) > HX_RESULT_IN_MEMORY_MAX);
	if (hx_shard_stage_elsewhere(shard, &record, elsewhere, &key->packed, 0, now_ms, &moved) !=
	    HAPAX_OK)
		return false;
	hx_packed_raise_use(
		hx_arena_at(&shard->arena, moved),
		hx_packed_use(hx_arena_at(&shard->arena, place)));
	hx_table_begin(&shard->table);
	hx_shard_publish(shard, key->hash, place, moved);
	hx_table_end(&shard->table);
	assert(shard->elsewhere_bytes >= hx_result_bytes(&record.result));
	hx_shard_tidy(shard, now_ms);
	hx_shard_charge(shard);
	hx_shard_assert(shard);
	return true;
}

void hx_index_unload(struct hx_index *index, const struct hx_index_key *key)
{
	struct hx_shard *shard = key->shard;
	uint32_t place;

	assert(hx_shard_is_locked(shard));
	place = hx_shard_find(shard, &key->packed, key->hash);
	if (place != 0) {
		hx_table_begin(&shard->table);
		hx_shard_remove(shard, key->hash, place);
		hx_table_end(&shard->table);
		hx_shard_charge(shard);
		hx_index_unadmit(index);
	}
}
