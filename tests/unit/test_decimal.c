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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(is_what_printf_writes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
