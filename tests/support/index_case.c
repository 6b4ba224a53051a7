/* SPDX-License-Identifier: Apache-2.0 */
#include "support/index_case.h"

#include <stdlib.h>
#include <string.h>

void index_case_begin(struct index_case *c, uint64_t keys_max, uint64_t bytes_max)
{
	struct hx_index_setup setup = {
		.scopes = &c->scopes,
		.keys_max = keys_max,
		.bytes_max = bytes_max,
		.evict = HAPAX_EVICT_LRU,
		.token = 100,
	};

	if (hx_scope_table_init(&c->scopes) != HAPAX_OK ||
	    hx_index_new(&setup, &c->index, NULL) != HAPAX_OK || c->index->shard_count != 1)
		abort();
}

void index_case_end(struct index_case *c)
{
	/* Tests of the parts admit without putting, and remove without counting. */
	atomic_store(&c->index->keys, hx_index_count(c->index));
	hx_index_free(c->index);
	hx_scope_table_done(&c->scopes);
}

struct hx_index_key index_case_key(struct index_case *c, const char *text)
{
	struct hx_index_key key;

	hx_index_key_init(c->index, &key, HX_SCOPE_DEFAULT, hapax_bytes_from_text(text));
	/* It points into itself: the bytes of raw keys are the caller's. */
	if (key.packed.encoding != HX_KEY_RAW)
		abort();
	return key;
}

uint32_t index_case_put(struct index_case *c, const char *text, enum hapax_state state, size_t size)
{
	struct hx_index_key key = index_case_key(c, text);
	struct hx_shard *shard = key.shard;
	uint32_t old = index_case_find(c, text);
	char *body = calloc(1, size + 1);
	struct hapax_record record = {
		.state = state,
		.origin = HAPAX_ORIGIN_CLAIM,
		.attempt = 1,
		.token = 1,
		.first_seen_ms = CASE_EPOCH_MS,
		.changed_ms = CASE_EPOCH_MS,
		.lease_ends_ms = state == HAPAX_STATE_CLAIMED ? CASE_EPOCH_MS + 1000 : 0,
		.expires_ms = state == HAPAX_STATE_DONE || state == HAPAX_STATE_FAILED
			? CASE_EPOCH_MS + 60000
			: HAPAX_TIME_NEVER,
		.ttl_ms = 60000,
		.key = hapax_bytes_from_text(text)};
	uint32_t place;

	if (body == NULL)
		abort();
	if (state == HAPAX_STATE_DONE) {
		record.result.kind = HAPAX_RESULT_BYTES;
		record.result.body = (struct hapax_bytes){body, size};
	}
	hx_lock_acquire(&shard->lock);
	if (hx_shard_stage(shard, &record, &key.packed, 1, CASE_EPOCH_MS, &place) != HAPAX_OK)
		abort();
	hx_table_begin(&shard->table);
	hx_shard_publish(shard, key.hash, old, place);
	hx_table_end(&shard->table);
	hx_shard_charge(shard);
	hx_lock_release(&shard->lock);
	if (old == 0 && hx_index_is_limited(c->index))
		atomic_fetch_add(&c->index->keys, 1);
	free(body);
	return place;
}

void index_case_remove(struct index_case *c, const char *text)
{
	struct hx_index_key key = index_case_key(c, text);

	hx_lock_acquire(&key.shard->lock);
	hx_table_begin(&key.shard->table);
	hx_shard_remove(key.shard, key.hash, index_case_find(c, text));
	hx_table_end(&key.shard->table);
	hx_lock_release(&key.shard->lock);
}

uint32_t index_case_find(struct index_case *c, const char *text)
{
	struct hx_index_key key = index_case_key(c, text);

	return hx_shard_find(key.shard, &key.packed, key.hash);
}
