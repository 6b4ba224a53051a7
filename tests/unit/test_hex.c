/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

static void round_trip_of_every_byte(void **state)
{
	unsigned char bytes[256], back[256];
	char text[512];

	(void)state;
	for (int i = 0; i < 256; i++)
		bytes[i] = (unsigned char)i;
	hx_hex_encode(bytes, sizeof(bytes), text);
	assert_memory_equal(text, "000102", 6);
	assert_memory_equal(text + 508, "feff", 4);
	assert_true(hx_hex_decode(hx_bytes(text, sizeof(text)), back));
	assert_memory_equal(back, bytes, sizeof(bytes));
}

static void nothing(void **state)
{
	(void)state;
	hx_hex_encode(NULL, 0, NULL);
	assert_true(hx_hex_decode(hx_bytes(NULL, 0), NULL));
}

static void in_place(void **state)
{
	unsigned char text[] = "c0ffee";

	(void)state;
	assert_true(hx_hex_decode(hx_bytes(text, 6), text));
	assert_memory_equal(text, "\xc0\xff\xee", 3);
}

static void refuses_all_but_lower_case_digits(void **state)
{
	unsigned char out[8];

	(void)state;
	assert_false(hx_hex_decode(HX_BYTES_LIT("0"), out));
	assert_false(hx_hex_decode(HX_BYTES_LIT("abc"), out));
	assert_false(hx_hex_decode(HX_BYTES_LIT("0x"), out));
	assert_false(hx_hex_decode(HX_BYTES_LIT("aA"), out));
	assert_false(hx_hex_decode(HX_BYTES_LIT(" 1"), out));
	for (int byte = 0; byte < 256; byte++) {
		unsigned char text[2] = {'0', (unsigned char)byte};
		const char *digit = byte == 0 ? NULL : strchr("0123456789abcdef", byte);

		assert_int_equal(hx_hex_decode(hx_bytes(text, 2), out), digit != NULL);
		text[0] = (unsigned char)byte;
		text[1] = '0';
		assert_int_equal(hx_hex_decode(hx_bytes(text, 2), out), digit != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip_of_every_byte),
		cmocka_unit_test(nothing),
		cmocka_unit_test(in_place),
		cmocka_unit_test(refuses_all_but_lower_case_digits),
	};

	return cmocka_run_group_tests_name("hex", tests, NULL, NULL);
}
