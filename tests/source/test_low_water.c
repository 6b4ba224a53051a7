/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "source/consume/low_water.h"

static size_t length(const struct hx_mark *mark)
{
	size_t count = 0;

	for (; mark != NULL; mark = mark->next)
		count++;
	return count;
}

static void goes_up_to_the_first_gap(void **state)
{
	struct hx_low_water water;
	struct hx_mark marks[4];

	(void)state;
	hx_low_water_init(&water);
	assert_int_equal(water.next, -1);
	for (int i = 0; i < 4; i++)
		hx_low_water_add(&water, &marks[i], 100 + i);
	assert_int_equal(water.next, 100);
	assert_null(hx_low_water_done(&water, &marks[1]));
	assert_null(hx_low_water_done(&water, &marks[3]));
	assert_int_equal(water.next, 100);
	assert_int_equal(length(hx_low_water_done(&water, &marks[0])), 2);
	assert_int_equal(water.next, 102);
	assert_int_equal(length(hx_low_water_done(&water, &marks[2])), 2);
	assert_int_equal(water.next, 104);
	assert_int_equal(water.count, 0);
}

/* What was compacted away leaves a gap in the offsets, and none in what is done. */
static void passes_over_offsets_that_are_not_there(void **state)
{
	struct hx_low_water water;
	struct hx_mark marks[2];

	(void)state;
	hx_low_water_init(&water);
	hx_low_water_add(&water, &marks[0], 5);
	hx_low_water_add(&water, &marks[1], 900);
	assert_non_null(hx_low_water_done(&water, &marks[0]));
	assert_int_equal(water.next, 6);
	assert_non_null(hx_low_water_done(&water, &marks[1]));
	assert_int_equal(water.next, 901);
	hx_low_water_add(&water, &marks[0], 2000);
	assert_int_equal(water.next, 2000);
}

/* Against the definition: everything below next is done, and what is at next is not. */
static void agrees_with_its_definition(void **state)
{
	enum { COUNT = 200 };
	static struct hx_mark marks[COUNT];
	struct hx_low_water water;
	struct hx_prng prng;
	size_t added = 0, freed = 0;
	int done[COUNT] = {0};

	(void)state;
	hx_prng_seed(&prng, 7);
	hx_low_water_init(&water);
	while (freed < COUNT) {
		size_t pick = hx_prng_below(&prng, COUNT);
		size_t expected = 0;

		if (added < COUNT && hx_prng_below(&prng, 2) == 0) {
			hx_low_water_add(&water, &marks[added], (int64_t)added);
			added++;
		}
		if (pick < added && !done[pick]) {
			int64_t with = hx_low_water_with(&water, &marks[pick]);

			done[pick] = 1;
			freed += length(hx_low_water_done(&water, &marks[pick]));
			assert_int_equal(with, water.next);
		}
		while (expected < added && done[expected])
			expected++;
		if (added > 0)
			assert_int_equal(water.next, (int64_t)expected);
		assert_int_equal(freed, expected);
	}
	assert_null(hx_low_water_take(&water));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_up_to_the_first_gap),
		cmocka_unit_test(passes_over_offsets_that_are_not_there),
		cmocka_unit_test(agrees_with_its_definition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
