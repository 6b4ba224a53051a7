/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/record.h>

#include "base/alloc.h"
#include "base/random.h"
#include "processor/run_timer.h"
#include "support/scale.h"

enum { COUNT = 200 };

static void equal_moments_come_in_the_order_of_arming(void **state)
{
	struct hx_timers timers = {0};
	struct hx_timer list[5] = {{0}};

	(void)state;
	assert_int_equal(hx_timers_next(&timers), HAPAX_TIME_NEVER);
	for (size_t i = 0; i < 5; i++) {
		assert_true(hx_timers_reserve(&timers));
		hx_timers_set(&timers, &list[i], 7);
	}
	hx_timers_set(&timers, &list[0], 7); /* armed anew: now the last */
	assert_null(hx_timers_due(&timers, 6));
	for (size_t i = 1; i < 5; i++)
		assert_ptr_equal(hx_timers_due(&timers, 7), &list[i]);
	assert_ptr_equal(hx_timers_due(&timers, 7), &list[0]);
	assert_null(hx_timers_due(&timers, INT64_MAX));
	hx_timers_done(&timers);
}

/* Against a list that is searched from end to end. */
static void the_first_is_always_the_first(void **state)
{
	struct hx_timers timers = {0};
	struct hx_timer list[COUNT] = {{0}};
	struct hx_prng prng;
	uint64_t rounds = scale_count(1000000, 20000);

	(void)state;
	hx_prng_seed(&prng, 4);
	for (size_t i = 0; i < COUNT; i++)
		assert_true(hx_timers_reserve(&timers));
	for (uint64_t round = 0; round < rounds; round++) {
		struct hx_timer *timer = &list[hx_prng_below(&prng, COUNT)];
		int64_t first = HAPAX_TIME_NEVER;

		if (hx_prng_below(&prng, 3) == 0)
			hx_timers_clear(&timers, timer);
		else
			hx_timers_set(&timers, timer, (int64_t)hx_prng_below(&prng, 1000));
		for (size_t i = 0; i < COUNT; i++) {
			if (list[i].place != 0 && list[i].at_ms < first)
				first = list[i].at_ms;
		}
		assert_int_equal(hx_timers_next(&timers), first);
		if (hx_prng_below(&prng, 4) == 0 && first != HAPAX_TIME_NEVER) {
			timer = hx_timers_due(&timers, first);
			assert_non_null(timer);
			assert_int_equal(timer->at_ms, first);
			assert_int_equal(timer->place, 0);
		}
	}
	hx_timers_done(&timers);
}

static void without_memory_nothing_is_reserved(void **state)
{
	struct hx_timers timers = {0};

	(void)state;
	hx_alloc_fail_at(1, 0);
	assert_false(hx_timers_reserve(&timers));
	hx_alloc_fail_at(0, 0);
	assert_true(hx_timers_reserve(&timers));
	hx_timers_done(&timers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_moments_come_in_the_order_of_arming),
		cmocka_unit_test(the_first_is_always_the_first),
		cmocka_unit_test(without_memory_nothing_is_reserved),
	};

	return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
