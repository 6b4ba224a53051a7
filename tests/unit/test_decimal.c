/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"

static void is_what_printf_writes(void **state)
{
	static const int64_t values[] = {
		0, 1, -1, 9, 10, 99, 100, -100, 1234567890123, INT32_MIN, INT64_MAX, INT64_MIN};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char out[HX_DECIMAL_SIZE];
		char wanted[32];
		int size = snprintf(wanted, sizeof(wanted), "%" PRId64, values[i]);

		assert_int_equal(hx_decimal_write(out, values[i]), size);
		assert_string_equal(out, wanted);
	}
}

static void reads_digits_up_to_a_limit(void **state)
{
	static const struct {
		const char *text;
		uint32_t max;
		bool is_read;
		uint32_t value;
	} cases[] = {
		{"0", 0, true, 0},
		{"1", 0, false, 0},
		{"65535", UINT16_MAX, true, UINT16_MAX},
		{"65536", UINT16_MAX, false, 0},
		{"4294967295", UINT32_MAX, true, UINT32_MAX},
		{"4294967296", UINT32_MAX, false, 0},
		{"18446744073709551617", UINT32_MAX, false, 0},
		{"", 9, false, 0},
		{"00", 9, false, 0},
		{"07", 9, false, 0},
		{"+1", 9, false, 0},
		{"-1", 9, false, 0},
		{" 1", 9, false, 0},
		{"1a", 99, false, 0},
		{"1/", 99, false, 0},
		{"1:", 99, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t value = 7;

		assert_int_equal(
			hx_decimal_read(cases[i].text, strlen(cases[i].text), cases[i].max, &value),
			cases[i].is_read);
		assert_int_equal(value, cases[i].is_read ? cases[i].value : 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_what_printf_writes),
		cmocka_unit_test(reads_digits_up_to_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
