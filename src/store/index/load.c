/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - filling the index from files, before anybody uses it.
 */
#include "store/index/index.h"

/* A mark has a short form, which most records of most stores are. */
static bool stage_mark(
	struct hx_shard *shard, const struct hx_index_key *key, const struct hapax_record *record,
	int64_t now_ms, uint32_t *ret_place)
{
	struct hx_packed_mark mark = {
		.fingerprint = record->fingerprint_size != 0 ? record->fingerprint : NULL,
		.expires_ms = record->expires_ms,
		.token = record->token,
	};

	if (record->state != HAPAX_STATE_DONE || record->origin != HAPAX_ORIGIN_CHECK ||
	    record->on_lapse != HAPAX_ON_LAPSE_RETRY || record->attempt != 1 ||
	    record->result.kind != HAPAX_RESULT_NONE || record->ttl_ms == HAPAX_TTL_FOREVER ||
	    record->first_seen_ms != record->changed_ms || record->expires_ms == HAPAX_TIME_NEVER ||
	    record->changed_ms != record->expires_ms - record->ttl_ms)
		return false;
	mark.profile_id = hx_shard_profile(shard, key->packed.scope_id, record->ttl_ms);
	if (mark.profile_id == HX_PROFILE_NONE ||
	    hx_profile_get(shard->profiles, mark.profile_id)->ttl_ms != record->ttl_ms)
		return false;
	*ret_place = hx_shard_stage_mark(shard, &key->packed, &mark, now_ms);
	return *ret_place != 0;
}

static void raise_token(struct hx_index *index, uint64_t token)
{
	if (token > atomic_load_explicit(&index->token, memory_order_relaxed))
		atomic_store_explicit(&index->token, token, memory_order_relaxed);
}

enum hapax_status hx_index_load(
	struct hx_index *index, const struct hx_index_key *key, const struct hapax_record *record,
	bool only_if_absent, int64_t now_ms)
{
	struct hx_shard *shard = key->shard;
	enum hapax_status status = HAPAX_OK;
	uint32_t old, place;

	hx_lock_acquire(&shard->lock);
	old = hx_shard_find(shard, &key->packed, key->hash);
	if (old == 0 || !only_if_absent) {
		if (!stage_mark(shard, key, record, now_ms, &place))
			status = hx_shard_stage(shard, record, &key->packed, 1, now_ms, &place);
		if (status == HAPAX_OK) {
			hx_table_begin(&shard->table);
			hx_shard_publish(shard, key->hash, old, place);
			hx_table_end(&shard->table);
			hx_shard_tidy(shard, now_ms);
			hx_shard_charge(shard);
			raise_token(index, record->token);
			if (old == 0 && hx_index_is_limited(index))
				atomic_fetch_add_explicit(&index->keys, 1, memory_order_relaxed);
		}
	}
	hx_lock_release(&shard->lock);
	return status;
}

void hx_index_unload(struct hx_index *index, const struct hx_index_key *key)
{
	struct hx_shard *shard = key->shard;
	uint32_t place;

	hx_lock_acquire(&shard->lock);
	place = hx_shard_find(shard, &key->packed, key->hash);
	if (place != 0) {
		hx_table_begin(&shard->table);
		hx_shard_remove(shard, key->hash, place);
		hx_table_end(&shard->table);
		hx_shard_charge(shard);
		hx_index_unadmit(index);
	}
	hx_lock_release(&shard->lock);
}
