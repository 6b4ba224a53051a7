/* SPDX-License-Identifier: Apache-2.0 */
#include "base/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "net/block_pool.h"

static void a_take_that_does_not_fit_takes_nothing(void **state)
{
	struct hx_budget budget = {.used = 0};

	(void)state;
	hx_budget_limit(&budget, 100);
	assert_true(hx_budget_take(&budget, 60));
	assert_false(hx_budget_take(&budget, 41));
	assert_int_equal(hx_budget_used(&budget), 60);
	assert_false(hx_budget_is_full(&budget));
	assert_true(hx_budget_take(&budget, 40));
	assert_true(hx_budget_is_full(&budget));
	assert_false(hx_budget_has_room(&budget, 1));
	hx_budget_give(&budget, 100);
	assert_int_equal(hx_budget_used(&budget), 0);
}

static void what_is_there_already_is_noted(void **state)
{
	struct hx_budget budget = {.used = 0};

	(void)state;
	hx_budget_limit(&budget, 100);
	hx_budget_note(&budget, 150);
	assert_true(hx_budget_is_full(&budget));
	assert_false(hx_budget_take(&budget, 1));
	hx_budget_give(&budget, 100);
	assert_true(hx_budget_take(&budget, 1));
	hx_budget_give(&budget, 51);
	assert_int_equal(hx_budget_used(&budget), 0);
}

static void three_quarters_are_full(void **state)
{
	struct hx_budget budget = {.used = 0};

	(void)state;
	assert_false(hx_budget_is_full(&budget));
	assert_false(hx_budget_is_full(NULL));
	hx_budget_limit(&budget, 100);
	hx_budget_note(&budget, 74);
	assert_false(hx_budget_is_full(&budget));
	hx_budget_note(&budget, 1);
	assert_true(hx_budget_is_full(&budget));
	assert_int_equal(hx_budget_share(&budget), 12);
	assert_true(hx_budget_share(NULL) == SIZE_MAX);
	hx_budget_give(&budget, 75);
}

static void a_child_takes_from_its_parent(void **state)
{
	struct hx_budget parent = {.used = 0};
	struct hx_budget one = {.parent = &parent};
	struct hx_budget other = {.parent = &parent};

	(void)state;
	hx_budget_limit(&parent, 100);
	hx_budget_limit(&one, 60);
	hx_budget_limit(&other, 60);
	assert_true(hx_budget_take(&one, 60));
	assert_false(hx_budget_take(&one, 1));
	assert_true(hx_budget_take(&other, 40));
	assert_false(hx_budget_take(&other, 1));
	assert_int_equal(hx_budget_used(&parent), 100);
	assert_true(hx_budget_is_full(&other));
	hx_budget_give(&one, 60);
	assert_int_equal(hx_budget_used(&parent), 40);
	hx_budget_give(&other, 40);
}

static void a_buffer_takes_what_it_has(void **state)
{
	static const char text[4096];
	struct hx_budget budget = {.used = 0};
	struct hapax_buf buf;

	(void)state;
	hx_budget_limit(&budget, 8192);
	hx_buf_init_budget(&buf, 100000, &budget);
	/* Small ones are not counted. */
	assert_int_equal(hx_buf_append(&buf, text, HX_BUF_FREE_MAX), HAPAX_OK);
	assert_int_equal(hx_budget_used(&budget), 0);
	assert_int_equal(hx_buf_append(&buf, text, 4096), HAPAX_OK);
	assert_int_equal(hx_budget_used(&budget), buf.capacity);
	assert_int_equal(hx_buf_append(&buf, text, 4096), HAPAX_ERR_NO_MEMORY);
	assert_int_equal(buf.size, HX_BUF_FREE_MAX + 4096);
	assert_int_equal(hx_budget_used(&budget), buf.capacity);
	hx_buf_done(&buf);
	assert_int_equal(hx_budget_used(&budget), 0);
	assert_ptr_equal(buf.budget, &budget);
	hx_buf_done(&buf);
}

static void a_pool_takes_at_least_what_it_holds(void **state)
{
	struct hx_budget budget = {.used = 0};
	struct hx_block_pool pool;
	struct hx_byte_queue queue;
	size_t noted = 0;

	(void)state;
	hx_block_pool_init(&pool);
	pool.budget = &budget;
	hx_byte_queue_init(&queue, &pool, 1 << 20);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(hx_byte_queue_reserve(&queue, HX_BLOCK_SIZE), HAPAX_OK);
		hx_byte_queue_grow(&queue, HX_BLOCK_SIZE);
		hx_block_pool_note(&pool, &noted, (size_t)i * 1000);
		assert_true(hx_budget_used(&budget) >= pool.held_bytes);
		assert_true(hx_budget_used(&budget) <= pool.held_bytes + 2 * HX_POOL_GRAIN);
	}
	hx_byte_queue_consume(&queue, 40 * HX_BLOCK_SIZE);
	hx_block_pool_note(&pool, &noted, 0);
	assert_true(hx_budget_used(&budget) <= 2 * HX_POOL_GRAIN);
	hx_byte_queue_done(&queue);
	hx_block_pool_done(&pool);
	assert_int_equal(hx_budget_used(&budget), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_take_that_does_not_fit_takes_nothing),
		cmocka_unit_test(what_is_there_already_is_noted),
		cmocka_unit_test(three_quarters_are_full),
		cmocka_unit_test(a_child_takes_from_its_parent),
		cmocka_unit_test(a_buffer_takes_what_it_has),
		cmocka_unit_test(a_pool_takes_at_least_what_it_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
