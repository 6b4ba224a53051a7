/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/random.h"

/* A4: also as Go writes them. */
static void reads(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{"100ms", 100},
		{"5m", 300000},
		{"24h", 86400000},
		{"7d", 604800000},
		{"1w", 604800000},
		{"1h30m", 5400000},
		{"1w2d3h4m5s6ms", INT64_C(788645006)},
		{"0s", 0},
		{"0ms", 0},
		{"007s", 7000},
		{"90m", 5400000},
		{"1m1ms", 60001},
		{"1.5h", 5400000},
		{"1h30m0.5s", 5400500},
		{"0.25w", 151200000},
		{"2.000s", 2000},
		{"0.001s", 1},
		{"24h0m0s", 86400000},
		{"9223372036854775807ms", INT64_MAX},
		{"15250284452w", INT64_C(15250284452) * 604800000},
		{"15250284452w3d7h12m55s807ms", INT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ms = -1;

		assert_int_equal(
			hx_duration_parse(hapax_bytes_from_text(cases[i].text), &ms, NULL),
			HAPAX_OK);
		assert_int_equal(ms, cases[i].ms);
	}
}

static void refuses(void **state)
{
	/* The text, and the position that the message must name. */
	static const struct {
		const char *text;
		const char *position;
	} cases[] = {
		{"s", "at position 0;"},
		{"-1s", "at position 0;"},
		{"+1s", "at position 0;"},
		{" 1s", "at position 0;"},
		{".5s", "at position 0;"},
		{"30", "at position 2;"},
		{"0", "at position 1;"},
		{"1 s", "at position 1;"},
		{"1s ", "at position 1;"},
		{"1.s", "at position 2;"},
		{"1.5", "at position 3;"},
		{"1.5.5s", "at position 3;"},
		{"1..5s", "at position 2;"},
		{"1.0005s", "at position 2;"},
		{"0.5ms", "at position 2;"},
		{"1.0000000000s", "at position 2;"},
		{"9223372036854775.808s", "at position 17;"},
		{"1h0.123456789m", "at position 4;"},
		{"1S", "at position 1;"},
		{"5M", "at position 1;"},
		{"1y", "at position 1;"},
		{"1us", "at position 1;"},
		{"1sec", "at position 1;"},
		{"1h30", "at position 4;"},
		{"1h30x", "at position 4;"},
		{"30m1h", "at position 4;"},
		{"1h1h", "at position 3;"},
		{"1ms1s", "at position 4;"},
		{"1h,30m", "at position 1;"},
		{"9223372036854775808ms", "at position 0;"},
		{"15250284453w", "at position 0;"},
		{"15250284452w3d7h12m55s808ms", "at position 22;"},
		{"99999999999999999999999999999999999s", "at position 0;"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_error err = {.status = HAPAX_OK};
		int64_t ms = 77;

		assert_int_equal(
			hx_duration_parse(hapax_bytes_from_text(cases[i].text), &ms, &err),
			HAPAX_ERR_INVALID);
		assert_int_equal(err.status, HAPAX_ERR_INVALID);
		assert_non_null(strstr(err.message, cases[i].position));
		assert_int_equal(ms, 77);
	}
}

static void refuses_nothing_nul_and_novels(void **state)
{
	struct hapax_error err;
	char novel[5000];
	int64_t ms = 77;

	(void)state;
	assert_int_equal(hx_duration_parse(hx_bytes(NULL, 0), &ms, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "empty"));
	assert_int_equal(hx_duration_parse(hx_bytes("1s\0", 3), &ms, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hx_duration_parse(hx_bytes("\0", 1), &ms, NULL), HAPAX_ERR_INVALID);
	memset(novel, 'x', sizeof(novel));
	assert_int_equal(
		hx_duration_parse(hx_bytes(novel, sizeof(novel)), &ms, &err), HAPAX_ERR_INVALID);
	assert_true(strlen(err.message) < 170);
	memset(novel, '9', sizeof(novel));
	assert_int_equal(
		hx_duration_parse(hx_bytes(novel, sizeof(novel)), &ms, &err), HAPAX_ERR_INVALID);
	assert_int_equal(ms, 77);
}

/* The size that the caller gave ends the text, not a NUL after it. */
static void reads_only_its_bytes(void **state)
{
	int64_t ms;

	(void)state;
	assert_int_equal(hx_duration_parse(hx_bytes("1ms", 2), &ms, NULL), HAPAX_OK);
	assert_int_equal(ms, 60000);
}

static void writes_the_shortest(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "0s"},
		{1, "1ms"},
		{1000, "1s"},
		{1500, "1500ms"},
		{90000, "90s"},
		{5400000, "90m"},
		{86400000, "1d"},
		{604800000, "1w"},
		{691200000, "8d"},
		{604800001, "1w1ms"},
		{INT64_MAX, "9223372036854775807ms"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[HX_DURATION_TEXT_SIZE];

		hx_duration_format(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void what_is_written_reads_the_same(void **state)
{
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 1);
	for (int i = 0; i < 20000; i++) {
		int64_t ms = (int64_t)(hx_prng_next(&prng) >> (1 + hx_prng_below(&prng, 63)));
		char text[HX_DURATION_TEXT_SIZE];
		int64_t back;

		if (i % 2 == 0)
			ms -= ms % 1000;
		hx_duration_format(ms, text);
		assert_int_equal(
			hx_duration_parse(hapax_bytes_from_text(text), &back, NULL), HAPAX_OK);
		assert_int_equal(back, ms);
	}
}

static void spans_have_two_units_at_most(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{INT64_MIN, "<1s"},
		{999, "<1s"},
		{1000, "1s"},
		{59999, "59s"},
		{60000, "1m"},
		{200 * 1000, "3m20s"},
		{INT64_C(3600) * 1000, "1h"},
		{INT64_C(3659) * 1000, "1h"},
		{INT64_C(122) * 3600 * 1000, "5d2h"},
		{INT64_C(21) * 86400 * 1000, "21d"},
		{INT64_MAX, "106751991167d7h"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[HX_DURATION_TEXT_SIZE];

		hx_duration_span(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void logs_have_two_units_down_to_ms(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "0ms"},       {-5, "0ms"},          {350, "350ms"},
		{1000, "1s"},     {14250, "14s250ms"},  {83640000, "23h14m"},
		{86400000, "1d"}, {601200000, "6d23h"}, {INT64_MAX, "106751991167d7h"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[HX_DURATION_TEXT_SIZE];

		hx_duration_two_units(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_nothing_nul_and_novels),
		cmocka_unit_test(reads_only_its_bytes),
		cmocka_unit_test(writes_the_shortest),
		cmocka_unit_test(what_is_written_reads_the_same),
		cmocka_unit_test(spans_have_two_units_at_most),
		cmocka_unit_test(logs_have_two_units_down_to_ms),
	};

	return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
