/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The numbers are promises of DESIGN and of the documentation; a change is a decision. */
static void defaults_lie_below_their_limits(void **state)
{
	(void)state;
	assert_true(HX_RESULT_SIZE_DEFAULT <= HX_RESULT_SIZE_LIMIT);
	assert_true(HX_RESULT_HEADERS_SIZE_MAX <= HX_RESULT_SIZE_LIMIT);
	assert_true(HX_LEASE_MS_DEFAULT <= HX_LEASE_MS_MAX);
	assert_true(HX_TTL_MS_DEFAULT <= HX_TTL_MS_MAX);
	assert_true(HX_COUNTED_SCOPES_MAX <= HX_SCOPES_MAX);
}

static void times_are_what_they_say(void **state)
{
	(void)state;
	assert_int_equal(HX_TTL_MS_DEFAULT, INT64_C(86400000));
	assert_int_equal(HX_TTL_MS_MAX, INT64_C(3155760000000));
	assert_int_equal(HX_LEASE_MS_DEFAULT, 30000);
	assert_int_equal(HX_LEASE_MS_MAX, INT64_C(604800000));
	assert_int_equal(HX_CLOCK_STEP_MS_DEFAULT, INT64_C(604800000));
	/* Now, for some ten thousand years, plus the longest TTL stays in 48 bits. */
	assert_true(INT64_C(1794774135123) + HX_TTL_MS_MAX < INT64_C(1) << 48);
}

static void tokens_survive_javascript(void **state)
{
	double as_double = (double)HX_TOKEN_MAX;

	(void)state;
	assert_true((uint64_t)as_double == HX_TOKEN_MAX);
	/* One further, neighbors already collide. */
	assert_true((double)(HX_TOKEN_MAX + 1) == (double)(HX_TOKEN_MAX + 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_lie_below_their_limits),
		cmocka_unit_test(times_are_what_they_say),
		cmocka_unit_test(tokens_survive_javascript),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
