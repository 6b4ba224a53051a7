/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of labels: the same number for the same value, for every caller; others beyond the limit.
 */
#include "observe/metrics/label_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/thread.h"
#include "support/scale.h"

static uint32_t number(struct hx_label_table *table, const char *first, const char *second)
{
	return hx_label_table_number(
		table, hapax_bytes_from_text(first), hapax_bytes_from_text(second));
}

static void values_are_numbered_as_they_are_met(void **state)
{
	struct hx_label_table table;
	const struct hx_label_entry *entry;

	(void)state;
	assert_int_equal(hx_label_table_init(&table, 10), HAPAX_OK);
	assert_int_equal(number(&table, "a", "b"), 1);
	assert_int_equal(number(&table, "ab", ""), 2);
	assert_int_equal(number(&table, "", "ab"), 3);
	assert_int_equal(number(&table, "a", "b"), 1);
	assert_int_equal(number(&table, "", ""), 4);
	assert_int_equal(hx_label_table_count(&table), 4);
	entry = hx_label_table_entry(&table, 1);
	assert_int_equal(entry->first_size, 1);
	assert_int_equal(entry->second_size, 1);
	assert_memory_equal(entry->text, "ab", 2);
	hx_label_table_done(&table);
}

/* Whatever was asked for last, the answer is the same. */
static void a_hint_changes_no_number(void **state)
{
	static const char *const values[][2] = {
		{"a", "b"}, {"ab", ""}, {"", "ab"}, {"", ""}, {"a", "c"}};
	enum { COUNT = sizeof(values) / sizeof(values[0]) };
	struct hx_label_table table;

	(void)state;
	assert_int_equal(hx_label_table_init(&table, 10), HAPAX_OK);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(number(&table, values[i][0], values[i][1]), i + 1);
	for (uint32_t hint = 0; hint <= COUNT; hint++) {
		for (uint32_t i = 0; i < COUNT; i++)
			assert_int_equal(
				hx_label_table_number_near(
					&table, hint, hapax_bytes_from_text(values[i][0]),
					hapax_bytes_from_text(values[i][1])),
				i + 1);
	}
	hx_label_table_done(&table);
}

static void beyond_the_limit_all_are_others(void **state)
{
	struct hx_label_table table;
	char text[32];

	(void)state;
	assert_int_equal(hx_label_table_init(&table, 100), HAPAX_OK);
	for (unsigned i = 1; i <= 1000; i++) {
		(void)snprintf(text, sizeof(text), "value-%u", i);
		assert_int_equal(number(&table, text, ""), i <= 100 ? i : 0);
	}
	for (unsigned i = 1; i <= 100; i++) {
		(void)snprintf(text, sizeof(text), "value-%u", i);
		assert_int_equal(number(&table, text, ""), i);
	}
	assert_int_equal(hx_label_table_count(&table), 100);
	hx_label_table_done(&table);
}

static void long_values_are_told_apart_by_their_beginning(void **state)
{
	struct hx_label_table table;
	char text[4000];

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(hx_label_table_init(&table, 10), HAPAX_OK);
	assert_int_equal(
		hx_label_table_number(&table, hx_bytes(text, 4000), hx_bytes(text, 4000)), 1);
	assert_int_equal(
		hx_label_table_number(&table, hx_bytes(text, 300), hx_bytes(text, 300)), 1);
	assert_int_equal(
		hx_label_table_number(&table, hx_bytes(text, 255), hx_bytes(text, 300)), 2);
	hx_label_table_done(&table);
}

static void without_memory_a_value_is_one_of_the_others(void **state)
{
	struct hx_label_table table;

	(void)state;
	for (uint64_t nth = 1; nth <= 2; nth++) {
		hx_alloc_fail_at(nth, 0);
		assert_int_equal(hx_label_table_init(&table, 10), HAPAX_ERR_NO_MEMORY);
	}
	hx_alloc_fail_at(0, 0);
	assert_int_equal(hx_label_table_init(&table, 10), HAPAX_OK);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(number(&table, "a", ""), 0);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(number(&table, "a", ""), 1);
	hx_label_table_done(&table);
}

enum { THREADS = 4, VALUES = 600 };

struct crowd {
	struct hx_label_table table;
	_Atomic uint32_t numbers[VALUES]; /* the first that any thread got */
};

static void number_all(void *arg)
{
	struct crowd *crowd = arg;
	char text[32];

	for (unsigned i = 0; i < VALUES; i++) {
		uint32_t before = 0, mine;

		(void)snprintf(text, sizeof(text), "%u", i);
		mine = number(&crowd->table, text, "g");
		if (mine == 0 ||
		    (!atomic_compare_exchange_strong(&crowd->numbers[i], &before, mine) &&
		     before != mine))
			abort();
	}
}

static void all_threads_get_the_same_numbers(void **state)
{
	uint64_t rounds = scale_count(20000, 1500);
	double begin = scale_seconds();

	(void)state;
	for (uint64_t round = 0; round < rounds; round++) {
		struct hx_thread threads[THREADS];
		struct crowd crowd = {.numbers = {0}};

		assert_int_equal(hx_label_table_init(&crowd.table, VALUES), HAPAX_OK);
		for (size_t i = 0; i < THREADS; i++)
			assert_int_equal(
				hx_thread_start(&threads[i], number_all, &crowd, "labels", NULL),
				HAPAX_OK);
		for (size_t i = 0; i < THREADS; i++)
			hx_thread_join(&threads[i]);
		assert_int_equal(hx_label_table_count(&crowd.table), VALUES);
		hx_label_table_done(&crowd.table);
	}
	scale_report("labels: rounds of 4 threads", rounds, scale_seconds() - begin, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_numbered_as_they_are_met),
		cmocka_unit_test(a_hint_changes_no_number),
		cmocka_unit_test(beyond_the_limit_all_are_others),
		cmocka_unit_test(long_values_are_told_apart_by_their_beginning),
		cmocka_unit_test(without_memory_a_value_is_one_of_the_others),
		cmocka_unit_test(all_threads_get_the_same_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
