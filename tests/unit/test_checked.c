/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void sizes(void **state)
{
	size_t ret;

	(void)state;
	assert_false(hx_add_size(2, 3, &ret));
	assert_int_equal(ret, 5);
	assert_false(hx_add_size(SIZE_MAX, 0, &ret));
	assert_true(hx_add_size(SIZE_MAX, 1, &ret));
	assert_false(hx_mul_size(SIZE_MAX / 2, 2, &ret));
	assert_int_equal(ret, SIZE_MAX - 1);
	assert_true(hx_mul_size(SIZE_MAX / 2 + 1, 2, &ret));
	assert_false(hx_mul_size(SIZE_MAX, 0, &ret));
}

static void unsigned_numbers(void **state)
{
	uint64_t ret_64;

	(void)state;
	assert_false(hx_add_u64(UINT64_MAX - 1, 1, &ret_64));
	assert_true(hx_add_u64(UINT64_MAX, 1, &ret_64));
	assert_false(hx_mul_u64(UINT32_MAX, UINT32_MAX, &ret_64));
	assert_true(hx_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &ret_64));
}

static void signed_numbers(void **state)
{
	int64_t ret;

	(void)state;
	assert_false(hx_add_i64(INT64_MAX, INT64_MIN, &ret));
	assert_int_equal(ret, -1);
	assert_true(hx_add_i64(INT64_MAX, 1, &ret));
	assert_true(hx_add_i64(INT64_MIN, -1, &ret));
	assert_false(hx_sub_i64(INT64_MIN, -1, &ret));
	assert_true(hx_sub_i64(INT64_MIN, 1, &ret));
	assert_true(hx_sub_i64(0, INT64_MIN, &ret));
	assert_false(hx_mul_i64(INT64_MIN, 1, &ret));
	assert_true(hx_mul_i64(INT64_MIN, -1, &ret));
	assert_true(hx_mul_i64(INT64_MAX, 2, &ret));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(unsigned_numbers),
		cmocka_unit_test(signed_numbers),
	};

	return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}
