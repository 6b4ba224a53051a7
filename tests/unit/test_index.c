/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "support/index_case.h"

static enum hapax_status admit(struct index_case *c, struct hx_admission admission)
{
	enum hapax_status status;

	admission.shard = &c->index->shards[0];
	hx_lock_acquire(&admission.shard->lock);
	status = hx_index_admit(c->index, &admission, CASE_EPOCH_MS);
	hx_lock_release(&admission.shard->lock);
	return status;
}

static void keys_are_counted_in_and_out(void **state)
{
	struct index_case c;

	(void)state;
	index_case_begin(&c, 3, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(admit(&c, (struct hx_admission){.keys = 1}), HAPAX_OK);
	assert_int_equal(admit(&c, (struct hx_admission){.keys = 1}), HAPAX_ERR_LIMIT);
	/* A change is not a new key, and a refusal is not counted. */
	assert_int_equal(admit(&c, (struct hx_admission){.keys = 0}), HAPAX_OK);
	hx_index_unadmit(c.index);
	assert_int_equal(admit(&c, (struct hx_admission){.keys = 1}), HAPAX_OK);
	assert_int_equal(atomic_load(&c.index->keys), 3);
	index_case_end(&c);
}

/* The size of what comes counts, less what goes; the reserve is for what ends claims. */
static void bytes_are_asked_before_they_come(void **state)
{
	struct index_case c;

	(void)state;
	index_case_begin(&c, 0, 8 << 20);
	uint64_t room = (8 << 20) / 4 * 3;
	uint64_t empty = atomic_load(&c.index->shards[0].charged_bytes);
	uint32_t old = index_case_put(&c, "large", HAPAX_STATE_DONE, 500000);
	uint64_t used = atomic_load(&c.index->shards[0].charged_bytes);

	/* Two chunks, as that is what it takes. */
	assert_in_range(used - empty, 2 * HX_CHUNK_SIZE, 2 * HX_CHUNK_SIZE + 4096);
	uint64_t left = room - room / 12 - used;
	assert_int_equal(admit(&c, (struct hx_admission){.bytes = left}), HAPAX_OK);
	assert_int_equal(admit(&c, (struct hx_admission){.bytes = left + 1}), HAPAX_ERR_LIMIT);
	assert_int_equal(
		admit(&c, (struct hx_admission){.bytes = left + room / 12, .from_reserve = true}),
		HAPAX_OK);
	assert_int_equal(
		admit(&c, (struct hx_admission){.bytes = left + 2 * HX_CHUNK_SIZE, .place = old}),
		HAPAX_OK);
	index_case_end(&c);
}

/* Room is made for new keys and for changes; in vain for what would never fit. */
static void room_is_made_by_eviction(void **state)
{
	struct index_case c;
	char key[16];

	(void)state;
	index_case_begin(&c, 0, 8 << 20);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		index_case_put(&c, key, HAPAX_STATE_DONE, 100000);
	}
	uint64_t used = atomic_load(&c.index->shards[0].charged_bytes);
	assert_int_equal(
		admit(&c, (struct hx_admission){.bytes = 7 << 20, .may_evict = true}),
		HAPAX_ERR_LIMIT);
	assert_int_equal(atomic_load(&c.index->evicted), 0);
	assert_int_equal(
		admit(&c, (struct hx_admission){.bytes = 3 << 20, .may_evict = true}), HAPAX_OK);
	assert_true(atomic_load(&c.index->evicted) > 5);
	assert_true(atomic_load(&c.index->shards[0].charged_bytes) < used);
	/* For a group, without counting it in. */
	uint64_t keys = atomic_load(&c.index->keys);
	hx_lock_acquire(&c.index->shards[0].lock);
	hx_index_make_room(
		c.index,
		&(struct hx_admission){
			.shard = &c.index->shards[0],
			.keys = 2,
			.bytes = 1 << 20,
			.may_evict = true},
		CASE_EPOCH_MS);
	hx_lock_release(&c.index->shards[0].lock);
	assert_true(atomic_load(&c.index->keys) <= keys);
	index_case_end(&c);
}

static void tokens_end_before_their_bits(void **state)
{
	struct index_case c;

	(void)state;
	index_case_begin(&c, 10, 0);
	assert_int_equal(hx_index_take_tokens(c.index, 3), 101);
	assert_int_equal(hx_index_take_tokens(c.index, 1), 104);
	atomic_store(&c.index->token, HX_TOKEN_MAX - 1);
	assert_int_equal(hx_index_take_tokens(c.index, 2), 0);
	assert_int_equal(hx_index_take_tokens(c.index, 1), 0);
	assert_int_equal(atomic_load(&c.index->token), HX_TOKEN_MAX);
	index_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_counted_in_and_out),
		cmocka_unit_test(bytes_are_asked_before_they_come),
		cmocka_unit_test(room_is_made_by_eviction),
		cmocka_unit_test(tokens_end_before_their_bits),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
