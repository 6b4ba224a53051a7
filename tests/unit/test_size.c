/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/random.h"

static void reads(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"0", 0},
		{"512", 512},
		{"512B", 512},
		{"64KiB", 65536},
		{"10MB", 10000000},
		{"10KB", 10000},
		{"10kB", 10000},
		{"1GiB", UINT64_C(1) << 30},
		{"2GB", UINT64_C(2000000000)},
		{"3TiB", UINT64_C(3) << 40},
		{"3TB", UINT64_C(3000000000000)},
		{"16383PiB", UINT64_C(16383) << 50},
		{"18PB", UINT64_C(18000000000000000)},
		{"18446744073709551615", UINT64_MAX},
		{"007", 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = 77;

		assert_int_equal(
			hx_size_parse(hapax_bytes_from_text(cases[i].text), &bytes, NULL),
			HAPAX_OK);
		assert_true(bytes == cases[i].bytes);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *text;
		const char *position;
	} cases[] = {
		{"KiB", "at position 0;"},
		{"-1", "at position 0;"},
		{"+1", "at position 0;"},
		{" 1", "at position 0;"},
		{"1 ", "at position 1;"},
		{"1 KiB", "at position 1;"},
		{"1.5GiB", "at position 1;"},
		{"64K", "at position 2;"},
		{"64k", "at position 2;"},
		{"64kib", "at position 2;"},
		{"64KIB", "at position 2;"},
		{"64mb", "at position 2;"},
		{"1KiB1KiB", "at position 1;"},
		{"0x10", "at position 1;"},
		{"18446744073709551616", "at position 0;"},
		{"184467440737095516160", "at position 0;"},
		{"16384PiB", "at position 0;"},
		{"18447PB", "at position 0;"},
		{"99999999999999999999999999KiB", "at position 0;"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_error err = {.status = HAPAX_OK};
		uint64_t bytes = 77;

		assert_int_equal(
			hx_size_parse(hapax_bytes_from_text(cases[i].text), &bytes, &err),
			HAPAX_ERR_INVALID);
		assert_int_equal(err.status, HAPAX_ERR_INVALID);
		assert_non_null(strstr(err.message, cases[i].position));
		assert_int_equal(bytes, 77);
	}
}

static void refuses_nothing_and_nul(void **state)
{
	struct hapax_error err;
	uint64_t bytes = 77;

	(void)state;
	assert_int_equal(hx_size_parse(hx_bytes(NULL, 0), &bytes, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "empty"));
	assert_int_equal(hx_size_parse(hx_bytes("1\0", 2), &bytes, &err), HAPAX_ERR_INVALID);
	assert_int_equal(bytes, 77);
	assert_int_equal(hx_size_parse(hx_bytes("123", 2), &bytes, &err), HAPAX_OK);
	assert_int_equal(bytes, 12);
}

static void writes_the_shortest(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0"},
		{1, "1"},
		{512, "512"},
		{1000, "1KB"},
		{1024, "1KiB"},
		{1025, "1025"},
		{65536, "64KiB"},
		{262144, "256KiB"},
		{10000000, "10MB"},
		{UINT64_C(1) << 30, "1GiB"},
		{UINT64_C(1) << 40, "1TiB"},
		{UINT64_MAX, "18446744073709551615"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[HX_SIZE_TEXT_SIZE];

		hx_size_format(cases[i].bytes, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void what_is_written_reads_the_same(void **state)
{
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 1);
	for (int i = 0; i < 20000; i++) {
		uint64_t shift = hx_prng_below(&prng, 64);
		uint64_t bytes = hx_prng_next(&prng) >> shift << (i % 3 == 0 ? shift / 2 : 0);
		char text[HX_SIZE_TEXT_SIZE];
		uint64_t back;

		hx_size_format(bytes, text);
		assert_int_equal(hx_size_parse(hapax_bytes_from_text(text), &back, NULL), HAPAX_OK);
		assert_true(back == bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_nothing_and_nul),
		cmocka_unit_test(writes_the_shortest),
		cmocka_unit_test(what_is_written_reads_the_same),
	};

	return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
