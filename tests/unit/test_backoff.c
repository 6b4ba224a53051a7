/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"

static void the_wait_doubles_from_first_to_last(void **state)
{
	static const int64_t spans[] = {10, 20, 40, 80, 160, 320, 640, 1000, 1000};

	(void)state;
	for (unsigned i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		assert_int_equal(hx_backoff(10, 1000, i, 0), spans[i]);
	assert_int_equal(hx_backoff(10, 10, 0, 0), 10);
	assert_int_equal(hx_backoff(10, 10, 5, 0), 10);
	/* A setting may have its last below its first. */
	assert_int_equal(hx_backoff(500, 80, 0, 0), 80);
}

static void any_count_of_failures_is_bounded(void **state)
{
	static const uint64_t counts[] = {61, 62, 63, 64, 65, UINT32_MAX, UINT64_MAX};

	(void)state;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		assert_int_equal(hx_backoff(10, 1000, counts[i], 0), 1000);
		assert_true(hx_backoff(1, INT64_MAX, counts[i], UINT64_MAX) > 0);
	}
	assert_true(hx_backoff(1, INT64_MAX, 62, 0) == INT64_C(1) << 62);
	assert_true(hx_backoff(INT64_MAX, INT64_MAX, 0, 0) == INT64_MAX);
}

/* Both ends come up, nothing outside of them, and the middle is where a fair draw has it. */
static void the_wait_is_random_between_half_and_whole(void **state)
{
	struct hx_prng prng;
	int64_t sum = 0, least = INT64_MAX, most = 0;

	(void)state;
	hx_prng_seed(&prng, 1);
	for (int i = 0; i < 100000; i++) {
		int64_t wait = hx_backoff(10, 1000, 3, hx_prng_next(&prng));

		sum += wait;
		least = wait < least ? wait : least;
		most = wait > most ? wait : most;
	}
	assert_int_equal(least, 40);
	assert_int_equal(most, 80);
	assert_in_range(sum / 1000, 5950, 6050);
}

static void the_smallest_spans_are_never_zero(void **state)
{
	(void)state;
	for (uint64_t random = 0; random < 10; random++) {
		assert_int_equal(hx_backoff(1, 1, 0, random), 1);
		assert_in_range(hx_backoff(2, 2, 0, random), 1, 2);
		assert_in_range(hx_backoff(3, 3, 0, random), 2, 3);
	}
}

static void the_same_random_number_gives_the_same_wait(void **state)
{
	struct hx_prng prng, again;

	(void)state;
	hx_prng_seed(&prng, 7);
	hx_prng_seed(&again, 7);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(
			hx_backoff(100, 5000000, i, hx_prng_next(&prng)),
			hx_backoff(100, 5000000, i, hx_prng_next(&again)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wait_doubles_from_first_to_last),
		cmocka_unit_test(any_count_of_failures_is_bounded),
		cmocka_unit_test(the_wait_is_random_between_half_and_whole),
		cmocka_unit_test(the_smallest_spans_are_never_zero),
		cmocka_unit_test(the_same_random_number_gives_the_same_wait),
	};

	return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
