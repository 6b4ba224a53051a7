/* SPDX-License-Identifier: Apache-2.0 */
#include "store/counter_book.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { HOUR_MS = 3600000, ROWS_MAX = 100000 };

static const uint64_t ones[HAPAX_DECISION_COUNT] = {1, [HAPAX_DECISION_FENCED] = 2};

static void add(struct hx_counter_book *book, int64_t hour, uint32_t scope_id)
{
	assert_int_equal(hx_counter_book_add(book, hour * HOUR_MS, scope_id, ones), HAPAX_OK);
}

static void rows_are_sorted_and_added_up(void **state)
{
	struct hx_counter_book book;

	(void)state;
	hx_counter_book_init(&book);
	for (uint32_t i = 0; i < 300; i++)
		add(&book, (i * 7) % 10, (i * 11) % 3);
	assert_int_equal(book.count, 30);
	for (size_t i = 0; i < book.count; i++) {
		assert_int_equal(book.rows[i].hour_ms, (int64_t)(i / 3) * HOUR_MS);
		assert_int_equal(book.rows[i].scope_id, i % 3);
		assert_int_equal(book.rows[i].counts[0], 10);
		assert_int_equal(book.rows[i].counts[HAPAX_DECISION_FENCED], 20);
	}
	hx_counter_book_done(&book);
}

/* When it is full, the oldest hour goes as a whole. */
static void full_book_drops_its_oldest_hour(void **state)
{
	struct hx_counter_book book;

	(void)state;
	hx_counter_book_init(&book);
	for (uint32_t i = 0; i < ROWS_MAX; i++)
		add(&book, i / 50000, i % 50000);
	assert_int_equal(book.count, ROWS_MAX);
	add(&book, 2, 0);
	assert_int_equal(book.count, ROWS_MAX / 2 + 1);
	assert_int_equal(book.rows[0].hour_ms, HOUR_MS);
	hx_counter_book_done(&book);
}

static void failed_allocation_adds_nothing(void **state)
{
	struct hx_counter_book book;

	(void)state;
	hx_counter_book_init(&book);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_counter_book_add(&book, 0, 0, ones), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(book.count, 0);
	add(&book, 0, 0);
	assert_int_equal(book.count, 1);
	hx_counter_book_done(&book);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sorted_and_added_up),
		cmocka_unit_test(full_book_drops_its_oldest_hour),
		cmocka_unit_test(failed_allocation_adds_nothing),
	};

	return cmocka_run_group_tests_name("counter_book", tests, NULL, NULL);
}
