/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct hapax_bytes nothing = {NULL, 0};

static void from_text(void **state)
{
	struct hapax_bytes bytes = hapax_bytes_from_text("key");

	(void)state;
	assert_int_equal(bytes.size, 3);
	assert_memory_equal(bytes.data, "key", 3);
	assert_int_equal(hapax_bytes_from_text("").size, 0);
	assert_int_equal(hapax_bytes_from_text(NULL).size, 0);
	assert_null(hapax_bytes_from_text(NULL).data);
}

static void literals_keep_their_nuls(void **state)
{
	struct hapax_bytes bytes = HX_BYTES_LIT("a\0b");

	(void)state;
	assert_int_equal(bytes.size, 3);
	assert_memory_equal(bytes.data, "a\0b", 3);
	assert_int_equal(HX_BYTES_LIT("").size, 0);
}

static void equality(void **state)
{
	(void)state;
	assert_true(hx_bytes_equal(HX_BYTES_LIT("a\0b"), hx_bytes("a\0b", 3)));
	assert_false(hx_bytes_equal(HX_BYTES_LIT("a\0b"), HX_BYTES_LIT("a\0c")));
	assert_false(hx_bytes_equal(HX_BYTES_LIT("a"), HX_BYTES_LIT("ab")));
	assert_false(hx_bytes_equal(HX_BYTES_LIT("a"), nothing));
	assert_true(hx_bytes_equal(nothing, nothing));
	assert_true(hx_bytes_equal(nothing, HX_BYTES_LIT("")));
}

static void order(void **state)
{
	(void)state;
	assert_true(hx_bytes_compare(HX_BYTES_LIT("a"), HX_BYTES_LIT("b")) < 0);
	assert_true(hx_bytes_compare(HX_BYTES_LIT("b"), HX_BYTES_LIT("a")) > 0);
	assert_true(hx_bytes_compare(HX_BYTES_LIT("a"), HX_BYTES_LIT("aa")) < 0);
	assert_true(hx_bytes_compare(HX_BYTES_LIT("b"), HX_BYTES_LIT("aa")) > 0);
	assert_true(hx_bytes_compare(HX_BYTES_LIT("\xff"), HX_BYTES_LIT("\x01")) > 0);
	assert_true(hx_bytes_compare(nothing, HX_BYTES_LIT("\0")) < 0);
	assert_true(hx_bytes_compare(HX_BYTES_LIT("\0"), nothing) > 0);
	assert_int_equal(hx_bytes_compare(nothing, HX_BYTES_LIT("")), 0);
	assert_int_equal(hx_bytes_compare(HX_BYTES_LIT("ab"), HX_BYTES_LIT("ab")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_text),
		cmocka_unit_test(literals_keep_their_nuls),
		cmocka_unit_test(equality),
		cmocka_unit_test(order),
	};

	return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
