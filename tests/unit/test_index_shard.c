/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/index_case.h"

static void records_are_found_replaced_and_removed(void **state)
{
	struct index_case c;

	(void)state;
	index_case_begin(&c, 1000, 0);
	struct hx_shard *shard = &c.index->shards[0];
	for (int i = 0; i < 500; i++) {
		char key[16];

		snprintf(key, sizeof(key), "key %d", i);
		uint32_t claimed = index_case_put(&c, key, HAPAX_STATE_CLAIMED, 0);
		assert_int_equal(index_case_find(&c, key), claimed);
		uint32_t done = index_case_put(&c, key, HAPAX_STATE_DONE, (size_t)i);
		assert_int_equal(index_case_find(&c, key), done);
		assert_true(hx_packed_is_dead(hx_arena_at(&shard->arena, claimed)));
	}
	assert_int_equal(shard->by_state[HAPAX_STATE_CLAIMED], 0);
	assert_int_equal(shard->by_state[HAPAX_STATE_DONE], 500);
	for (int i = 0; i < 500; i++) {
		char key[16];

		snprintf(key, sizeof(key), "key %d", i);
		index_case_remove(&c, key);
		assert_int_equal(index_case_find(&c, key), 0);
	}
	assert_int_equal(shard->by_state[HAPAX_STATE_DONE], 0);
	assert_int_equal(shard->arena.live_bytes, 0);
	index_case_end(&c);
}

/* What is staged and given up leaves nothing, but the room it took. */
static void staging_can_be_given_up(void **state)
{
	struct index_case c;

	(void)state;
	index_case_begin(&c, 1000, 0);
	struct hx_shard *shard = &c.index->shards[0];
	uint32_t kept = index_case_put(&c, "kept", HAPAX_STATE_DONE, 10);
	uint64_t live = shard->arena.live_bytes;
	struct hx_index_key key = index_case_key(&c, "other");
	struct hapax_record record;
	uint32_t place;

	hx_lock_acquire(&shard->lock);
	hx_shard_unpack(shard, kept, &record);
	assert_int_equal(
		hx_shard_stage(shard, &record, &key.packed, 1, CASE_EPOCH_MS, &place), HAPAX_OK);
	assert_true(shard->arena.live_bytes > live);
	hx_shard_unstage(shard, place);
	hx_lock_release(&shard->lock);
	assert_int_equal(shard->arena.live_bytes, live);
	assert_int_equal(index_case_find(&c, "other"), 0);
	index_case_end(&c);
}

/* Eviction takes what is done, not what is held, and not what it is told to spare. */
static void eviction_spares_what_it_must(void **state)
{
	struct index_case c;
	bool was_expired = true;

	(void)state;
	index_case_begin(&c, 1000, 0);
	struct hx_shard *shard = &c.index->shards[0];
	uint32_t spared = index_case_put(&c, "spared", HAPAX_STATE_DONE, 0);
	index_case_put(&c, "claimed", HAPAX_STATE_CLAIMED, 0);
	index_case_put(&c, "parked", HAPAX_STATE_PARKED, 0);
	index_case_put(&c, "failed", HAPAX_STATE_FAILED, 0);
	index_case_put(&c, "done", HAPAX_STATE_DONE, 0);
	hx_lock_acquire(&shard->lock);
	assert_true(hx_shard_evict(shard, spared, CASE_EPOCH_MS, &was_expired));
	assert_false(was_expired);
	assert_int_equal(index_case_find(&c, "done"), 0);
	assert_false(hx_shard_evict(shard, spared, CASE_EPOCH_MS, &was_expired));
	/* Expired, a failed one goes too; a claim never does. */
	assert_true(hx_shard_evict(shard, spared, CASE_EPOCH_MS + 60000, &was_expired));
	assert_true(was_expired);
	assert_int_equal(index_case_find(&c, "failed"), 0);
	assert_false(hx_shard_evict(shard, spared, CASE_EPOCH_MS + 60000, &was_expired));
	assert_int_equal(index_case_find(&c, "spared"), spared);
	assert_true(hx_shard_evict(shard, 0, CASE_EPOCH_MS, &was_expired));
	hx_lock_release(&shard->lock);
	assert_int_equal(shard->table.slot_count, 2);
	index_case_end(&c);
}

/* Large records too: tidying steps over the room they take, not over their size. */
static void tidying_keeps_what_lives(void **state)
{
	enum { KEYS = 400 };
	struct index_case c;
	char key[16];

	(void)state;
	index_case_begin(&c, 1000, 0);
	struct hx_shard *shard = &c.index->shards[0];
	for (int i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		index_case_put(&c, key, HAPAX_STATE_DONE, i % 2 ? 40000 : 20000);
	}
	/* Of three, two go: a gap in every chunk. */
	for (int i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		if (i % 3 == 0)
			continue;
		index_case_remove(&c, key);
	}
	hx_lock_acquire(&shard->lock);
	for (int i = 0; i < 10000; i++)
		hx_shard_tidy(shard, CASE_EPOCH_MS);
	hx_lock_release(&shard->lock);
	assert_true(
		shard->arena.used_bytes - shard->arena.live_bytes <=
		shard->arena.used_bytes / 4 + HX_SHARD_GAPS_ALLOWED);
	for (int i = 0; i < KEYS; i++) {
		struct hapax_record record;

		snprintf(key, sizeof(key), "key %d", i);
		uint32_t place = index_case_find(&c, key);
		assert_int_equal(place != 0, i % 3 == 0);
		if (place == 0)
			continue;
		hx_shard_unpack(shard, place, &record);
		assert_int_equal(record.result.body.size, i % 2 ? 40000 : 20000);
	}
	index_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_found_replaced_and_removed),
		cmocka_unit_test(staging_can_be_given_up),
		cmocka_unit_test(eviction_spares_what_it_must),
		cmocka_unit_test(tidying_keeps_what_lives),
	};

	return cmocka_run_group_tests_name("index_shard", tests, NULL, NULL);
}
