/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void bytes_differ_and_stay_inside(void **state)
{
	unsigned char a[66], b[66], zeros[66] = {0};

	(void)state;
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	hx_random_bytes(a + 1, 64);
	hx_random_bytes(b + 1, 64);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, zeros, sizeof(a));
	assert_int_equal(a[0] | a[65] | b[0] | b[65], 0);
	hx_random_bytes(a, 0);
}

static void large_requests_are_filled_to_the_end(void **state)
{
	static unsigned char data[100000];
	size_t zeros = 0;

	(void)state;
	hx_random_bytes(data, sizeof(data));
	for (size_t i = 0; i < sizeof(data); i++)
		zeros += data[i] == 0;
	/* 391 expected; ten standard deviations are 200. */
	assert_in_range(zeros, 191, 591);
	assert_memory_not_equal(data + sizeof(data) - 16, (unsigned char[16]){0}, 16);
}

static void a_seed_repeats_and_zero_restores(void **state)
{
	unsigned char a[37], b[37], c[37];

	(void)state;
	hx_random_seed_for_tests(7);
	hx_random_bytes(a, sizeof(a));
	hx_random_seed_for_tests(7);
	hx_random_bytes(b, sizeof(b));
	hx_random_seed_for_tests(8);
	hx_random_bytes(c, sizeof(c));
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_not_equal(a, c, sizeof(a));
	hx_random_seed_for_tests(0);
	hx_random_bytes(b, sizeof(b));
	hx_random_seed_for_tests(0);
	hx_random_bytes(c, sizeof(c));
	assert_memory_not_equal(b, c, sizeof(b));
}

/* Computed apart, from the published definitions of SplitMix64 and xoshiro256**. */
static void prng_is_the_same_everywhere(void **state)
{
	static const uint64_t expected[] = {
		UINT64_C(0x15780b2e0c2ec716),
		UINT64_C(0x6104d9866d113a7e),
		UINT64_C(0xae17533239e499a1),
		UINT64_C(0xecb8ad4703b360a1),
	};
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 42);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_true(hx_prng_next(&prng) == expected[i]);
}

static void prng_of_seed_zero_works(void **state)
{
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 0);
	assert_true(prng.state[0] | prng.state[1] | prng.state[2] | prng.state[3]);
	assert_true(hx_prng_next(&prng) != hx_prng_next(&prng));
}

static void below_stays_below_and_is_even(void **state)
{
	struct hx_prng prng;
	unsigned counts[3] = {0};

	(void)state;
	hx_prng_seed(&prng, 1);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(hx_prng_below(&prng, 1), 0);
		assert_true(hx_prng_below(&prng, UINT64_MAX) < UINT64_MAX);
	}
	/* Here a plain remainder would fall into the lowest third half of the time. */
	for (int i = 0; i < 30000; i++)
		counts[hx_prng_below(&prng, UINT64_C(3) << 62) >> 62]++;
	for (int i = 0; i < 3; i++)
		assert_in_range(counts[i], 9500, 10500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_differ_and_stay_inside),
		cmocka_unit_test(large_requests_are_filled_to_the_end),
		cmocka_unit_test(a_seed_repeats_and_zero_restores),
		cmocka_unit_test(prng_is_the_same_everywhere),
		cmocka_unit_test(prng_of_seed_zero_works),
		cmocka_unit_test(below_stays_below_and_is_even),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
