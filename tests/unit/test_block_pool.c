/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "net/block_pool.h"
#include "support/scale.h"

static enum hapax_status append(struct hx_byte_queue *queue, const void *data, size_t size)
{
	enum hapax_status status = size == 0 ? HAPAX_OK : hx_byte_queue_reserve(queue, size);
	size_t space;

	if (size == 0 || status != HAPAX_OK)
		return status;
	memcpy(hx_byte_queue_space(queue, &space), data, size);
	hx_byte_queue_grow(queue, size);
	return HAPAX_OK;
}

/* Against a plain array: what goes in comes out, in order, and no more than allowed. */
static void queue_keeps_bytes_in_order(void **state)
{
	enum { SIZE_MAX_BYTES = 100000 };
	static unsigned char model[SIZE_MAX_BYTES];
	static unsigned char piece[40000];
	uint64_t rounds = scale_count(200000, 5000);
	uint64_t seed = 1;
	struct hx_block_pool pool;
	struct hx_byte_queue queue;
	struct hx_prng prng;
	size_t held = 0;

	(void)state;
	scale_seed(&seed);
	printf("# seed %llu\n", (unsigned long long)seed);
	hx_prng_seed(&prng, seed);
	hx_block_pool_init(&pool);
	hx_byte_queue_init(&queue, &pool, SIZE_MAX_BYTES);
	for (uint64_t round = 0; round < rounds; round++) {
		size_t most = hx_prng_below(&prng, 10) ? 600 : sizeof(piece);
		size_t size = hx_prng_below(&prng, most);
		enum hapax_status expected =
			held + size > SIZE_MAX_BYTES ? HAPAX_ERR_LIMIT : HAPAX_OK;

		for (size_t i = 0; i < size; i++)
			piece[i] = (unsigned char)hx_prng_next(&prng);
		assert_int_equal(append(&queue, piece, size), expected);
		if (expected == HAPAX_OK) {
			memcpy(model + held, piece, size);
			held += size;
		}
		size = hx_prng_below(&prng, 3) ? hx_prng_below(&prng, held + 1) : held;
		struct hapax_bytes bytes = hx_byte_queue_bytes(&queue);
		assert_int_equal(bytes.size, held);
		if (held)
			assert_memory_equal(bytes.data, model, held);
		hx_byte_queue_consume(&queue, size);
		memmove(model, model + size, held - size);
		held -= size;
		/* Empty holds nothing. */
		if (held == 0)
			assert_null(queue.data);
	}
	hx_byte_queue_done(&queue);
	assert_int_equal(pool.lent_count, 0);
	hx_block_pool_done(&pool);
}

/* A hundred queues that are busy one after the other share one block. */
static void blocks_are_used_again(void **state)
{
	struct hx_block_pool pool;
	struct hx_byte_queue queues[100];
	uint64_t count;

	(void)state;
	hx_block_pool_init(&pool);
	count = hx_alloc_count();
	for (size_t i = 0; i < 100; i++) {
		hx_byte_queue_init(&queues[i], &pool, 1000);
		assert_int_equal(append(&queues[i], "x", 1), HAPAX_OK);
		hx_byte_queue_consume(&queues[i], 1);
	}
	assert_int_equal(hx_alloc_count() - count, 1);
	hx_block_pool_done(&pool);
}

static void kept_memory_stays(void **state)
{
	struct hx_block_pool pool;
	struct hx_byte_queue queue;
	uint64_t count;

	(void)state;
	hx_block_pool_init(&pool);
	hx_byte_queue_init(&queue, &pool, 1000000);
	queue.keep_size = 65536;
	assert_int_equal(hx_byte_queue_reserve(&queue, 65536), HAPAX_OK);
	count = hx_alloc_count();
	for (int i = 0; i < 10; i++) {
		size_t size;

		assert_int_equal(hx_byte_queue_reserve(&queue, 60000), HAPAX_OK);
		assert_non_null(hx_byte_queue_space(&queue, &size));
		assert_true(size >= 60000);
		hx_byte_queue_grow(&queue, 60000);
		hx_byte_queue_consume(&queue, 60000);
	}
	assert_int_equal(hx_alloc_count(), count);
	/* More than that goes back. */
	assert_int_equal(hx_byte_queue_reserve(&queue, 100000), HAPAX_OK);
	hx_byte_queue_grow(&queue, 1);
	hx_byte_queue_consume(&queue, 1);
	assert_null(queue.data);
	hx_byte_queue_done(&queue);
	hx_block_pool_done(&pool);
}

static void no_memory_changes_nothing(void **state)
{
	struct hx_block_pool pool;
	struct hx_byte_queue queue;
	static unsigned char data[40000];

	(void)state;
	hx_block_pool_init(&pool);
	hx_byte_queue_init(&queue, &pool, 1000000);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(append(&queue, "abc", 3), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(append(&queue, "abc", 3), HAPAX_OK);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(append(&queue, data, sizeof(data)), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(hx_byte_queue_size(&queue), 3);
	assert_memory_equal(hx_byte_queue_bytes(&queue).data, "abc", 3);
	assert_int_equal(hx_byte_queue_reserve(&queue, SIZE_MAX), HAPAX_ERR_LIMIT);
	hx_byte_queue_done(&queue);
	hx_block_pool_done(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_keeps_bytes_in_order),
		cmocka_unit_test(blocks_are_used_again),
		cmocka_unit_test(kept_memory_stays),
		cmocka_unit_test(no_memory_changes_nothing),
	};

	return cmocka_run_group_tests_name("block_pool", tests, NULL, NULL);
}
