/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/timer_heap.h"
#include "support/scale.h"

enum { TIMERS = 200 };

struct run {
	struct hx_timer_heap heap;
	struct hx_timer timers[TIMERS];
	int64_t last_ns;
	unsigned ran;
	bool wrong;
};

static void note(struct hx_timer *timer)
{
	struct run *run = timer->context;

	run->wrong = run->wrong || hx_timer_is_set(timer) || timer->at < run->last_ns;
	run->last_ns = timer->at;
	run->ran++;
}

/* Against a plain list: set, move and clear at random, then time passes. */
static void timers_run_in_order(void **state)
{
	struct run run = {.last_ns = INT64_MIN};
	uint64_t seed = 1;
	uint64_t rounds = scale_count(20000, 500);
	struct hx_prng prng;

	(void)state;
	scale_seed(&seed);
	printf("# seed %llu\n", (unsigned long long)seed);
	hx_prng_seed(&prng, seed);
	hx_timer_heap_init(&run.heap);
	for (size_t i = 0; i < TIMERS; i++)
		assert_int_equal(
			hx_timer_introduce(&run.heap, &run.timers[i], note, &run), HAPAX_OK);
	for (uint64_t round = 0; round < rounds; round++) {
		int64_t now_ns = (int64_t)hx_prng_below(&prng, 1000);
		int64_t next_ns = INT64_MAX;
		unsigned due = 0;

		for (int i = 0; i < 100; i++) {
			struct hx_timer *timer = &run.timers[hx_prng_below(&prng, TIMERS)];

			if (hx_prng_below(&prng, 3) == 0)
				hx_timer_clear(&run.heap, timer);
			else
				hx_timer_set(&run.heap, timer, (int64_t)hx_prng_below(&prng, 1000));
		}
		for (size_t i = 0; i < TIMERS; i++) {
			if (!hx_timer_is_set(&run.timers[i]))
				continue;
			due += run.timers[i].at <= now_ns;
			if (run.timers[i].at < next_ns)
				next_ns = run.timers[i].at;
		}
		assert_int_equal(hx_timer_heap_next(&run.heap), next_ns);
		run.ran = 0;
		run.last_ns = INT64_MIN;
		hx_timer_heap_run(&run.heap, now_ns);
		assert_int_equal(run.ran, due);
		assert_false(run.wrong);
	}
	for (size_t i = 0; i < TIMERS; i++)
		hx_timer_retire(&run.heap, &run.timers[i]);
	hx_timer_heap_done(&run.heap);
}

struct again {
	struct hx_timer_heap heap;
	struct hx_timer timer;
	unsigned ran;
};

static void set_again(struct hx_timer *timer)
{
	struct again *again = timer->context;

	again->ran++;
	hx_timer_set(&again->heap, timer, timer->at);
}

static void timer_that_sets_itself_waits(void **state)
{
	struct again again = {.ran = 0};

	(void)state;
	hx_timer_heap_init(&again.heap);
	assert_int_equal(
		hx_timer_introduce(&again.heap, &again.timer, set_again, &again), HAPAX_OK);
	hx_timer_set(&again.heap, &again.timer, 5);
	hx_timer_heap_run(&again.heap, 4);
	assert_int_equal(again.ran, 0);
	hx_timer_heap_run(&again.heap, 5);
	assert_int_equal(again.ran, 1);
	hx_timer_heap_run(&again.heap, 5);
	assert_int_equal(again.ran, 2);
	hx_timer_retire(&again.heap, &again.timer);
	hx_timer_retire(&again.heap, &again.timer);
	hx_timer_heap_done(&again.heap);
}

/* Room is made when a timer is introduced; setting one never asks for memory. */
static void no_memory_is_met_early(void **state)
{
	struct run run = {.last_ns = INT64_MIN};
	uint64_t count;

	(void)state;
	hx_timer_heap_init(&run.heap);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(
		hx_timer_introduce(&run.heap, &run.timers[0], note, &run), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	for (size_t i = 0; i < TIMERS; i++)
		assert_int_equal(
			hx_timer_introduce(&run.heap, &run.timers[i], note, &run), HAPAX_OK);
	count = hx_alloc_count();
	for (size_t i = 0; i < TIMERS; i++)
		hx_timer_set(&run.heap, &run.timers[i], (int64_t)(i * 7919 % TIMERS));
	assert_int_equal(hx_alloc_count(), count);
	for (size_t i = 0; i < TIMERS; i++)
		hx_timer_retire(&run.heap, &run.timers[i]);
	hx_timer_heap_done(&run.heap);
}

static void equal_moments_come_in_the_order_of_arming(void **state)
{
	struct hx_timer_heap timers = {0};
	struct hx_timer list[5] = {{0}};

	(void)state;
	assert_int_equal(hx_timer_heap_next(&timers), INT64_MAX);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(hx_timer_heap_reserve(&timers), HAPAX_OK);
		hx_timer_set(&timers, &list[i], 7);
	}
	hx_timer_set(&timers, &list[0], 7); /* armed again: now the last */
	assert_null(hx_timer_heap_take(&timers, 6));
	for (size_t i = 1; i < 5; i++)
		assert_ptr_equal(hx_timer_heap_take(&timers, 7), &list[i]);
	assert_ptr_equal(hx_timer_heap_take(&timers, 7), &list[0]);
	assert_null(hx_timer_heap_take(&timers, INT64_MAX));
	hx_timer_heap_done(&timers);
}

/* Against a list that is searched from end to end. */
static void the_first_is_always_the_first(void **state)
{
	struct hx_timer_heap timers = {0};
	struct hx_timer list[TIMERS] = {{0}};
	struct hx_prng prng;
	uint64_t rounds = scale_count(1000000, 20000);

	(void)state;
	hx_prng_seed(&prng, 4);
	for (size_t i = 0; i < TIMERS; i++)
		assert_int_equal(hx_timer_heap_reserve(&timers), HAPAX_OK);
	for (uint64_t round = 0; round < rounds; round++) {
		struct hx_timer *timer = &list[hx_prng_below(&prng, TIMERS)];
		int64_t first = INT64_MAX;

		if (hx_prng_below(&prng, 3) == 0)
			hx_timer_clear(&timers, timer);
		else
			hx_timer_set(&timers, timer, (int64_t)hx_prng_below(&prng, 1000));
		for (size_t i = 0; i < TIMERS; i++) {
			if (list[i].place != 0 && list[i].at < first)
				first = list[i].at;
		}
		assert_int_equal(hx_timer_heap_next(&timers), first);
		if (hx_prng_below(&prng, 4) == 0 && first != INT64_MAX) {
			timer = hx_timer_heap_take(&timers, first);
			assert_non_null(timer);
			assert_int_equal(timer->at, first);
			assert_int_equal(timer->place, 0);
		}
	}
	for (size_t i = 0; i < TIMERS; i++)
		hx_timer_clear(&timers, &list[i]);
	hx_timer_heap_done(&timers);
}

static void without_memory_nothing_is_reserved(void **state)
{
	struct hx_timer_heap timers = {0};

	(void)state;
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_timer_heap_reserve(&timers), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(hx_timer_heap_reserve(&timers), HAPAX_OK);
	hx_timer_heap_done(&timers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_run_in_order),
		cmocka_unit_test(timer_that_sets_itself_waits),
		cmocka_unit_test(no_memory_is_met_early),
		cmocka_unit_test(equal_moments_come_in_the_order_of_arming),
		cmocka_unit_test(the_first_is_always_the_first),
		cmocka_unit_test(without_memory_nothing_is_reserved),
	};

	return cmocka_run_group_tests_name("timer_heap", tests, NULL, NULL);
}
