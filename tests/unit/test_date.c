/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/random.h"

static const char *format(const char *text, int64_t ms)
{
	static char out[HX_DATE_TEXT_MAX + 1];
	struct hapax_bytes bytes = hx_bytes(text, strlen(text));

	assert_int_equal(hx_date_check(bytes, NULL), HAPAX_OK);
	out[hx_date_format(bytes, ms, out)] = '\0';
	return out;
}

static void known_times(void **state)
{
	(void)state;
	assert_string_equal(format("%Y-%m-%d", 0), "1970-01-01");
	assert_string_equal(format("%F %T", 0), "1970-01-01 00:00:00");
	assert_string_equal(format("%F %T", -1), "1969-12-31 23:59:59");
	assert_string_equal(format("%j", INT64_C(951782400000)), "060"); /* 2000-02-29 */
	assert_string_equal(format("%F", INT64_C(951782400000)), "2000-02-29");
	assert_string_equal(format("%Y%m%dT%H", INT64_C(1794687735123)), "20261114T20");
	assert_string_equal(format("100%%", 0), "100%");
}

/* Around each New Year the ISO year and week differ from the calendar's. */
static void iso_weeks(void **state)
{
	int64_t day = INT64_C(86400000);

	(void)state;
	assert_string_equal(format("%G-W%V-%u", 0), "1970-W01-4");
	assert_string_equal(format("%G-W%V-%u", -4 * day), "1969-W52-7");
	assert_string_equal(
		format("%G-W%V-%u", INT64_C(1609459200000)), "2020-W53-5"); /* 2021-01-01 */
	assert_string_equal(
		format("%G-W%V-%u", INT64_C(1609718400000)), "2021-W01-1"); /* 2021-01-04 */
}

/* The C library agrees. */
static void random_times(void **state)
{
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 3);
	for (int i = 0; i < 20000; i++) {
		/* Years 1 to 9998. */
		int64_t seconds = INT64_C(-62000000000) +
			(int64_t)hx_prng_below(&prng, UINT64_C(315000000000));
		time_t t = (time_t)seconds;
		char expected[64];
		struct tm tm;

		assert_non_null(gmtime_r(&t, &tm));
		(void)snprintf(
			expected, sizeof(expected), "%04d-%02d-%02d %02d:%02d:%02d %03d %d",
			tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
			tm.tm_sec, tm.tm_yday + 1, tm.tm_wday == 0 ? 7 : tm.tm_wday);
		assert_string_equal(format("%F %T %j %u", seconds * 1000), expected);
	}
}

static void beyond_the_calendar_there_is_no_text(void **state)
{
	(void)state;
	assert_string_equal(format("%F", INT64_MIN), "");
	assert_string_equal(format("%F", INT64_MAX), "");
	assert_string_equal(format("%F", INT64_C(-62135596800000) - 1), "");
	assert_string_equal(format("%F", INT64_C(253402300800000)), "");
}

static void formats_that_are_none(void **state)
{
	static const char *const texts[] = {"", "%", "%x", "%Y-%", "%E", "%s", "%-d", "%z"};
	char longest[HX_DATE_TEXT_MAX + 2];
	struct hapax_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(
			hx_date_check(hx_bytes(texts[i], strlen(texts[i])), &err),
			HAPAX_ERR_INVALID);
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(hx_date_check(hx_bytes(longest, HX_DATE_TEXT_MAX), &err), HAPAX_OK);
	assert_int_equal(
		hx_date_check(hx_bytes(longest, HX_DATE_TEXT_MAX + 1), &err), HAPAX_ERR_INVALID);
}

static const struct {
	const char *text;
	int64_t ms; /* INT64_MIN: refused */
} times[] = {
	{"1970-01-01T00:00:00Z", 0},
	{"1970-01-01t00:00:00z", 0},
	{"1970-01-01 00:00:00Z", 0},
	{"1970-01-01T01:00:00+01:00", 0},
	{"1969-12-31T19:00:00-05:00", 0},
	{"1970-01-01T00:00:00.5Z", 500},
	{"1970-01-01T00:00:00.123456789Z", 123},
	{"1969-12-31T23:59:59.999Z", -1},
	{"2000-02-29T00:00:00Z", INT64_C(951782400000)},
	{"2026-11-15T20:22:15.123Z", INT64_C(1794774135123)},
	{"2016-12-31T23:59:60Z", INT64_C(1483228800000)},
	{"", INT64_MIN},
	{"1970-01-01", INT64_MIN},
	{"1970-01-01T00:00:00", INT64_MIN},
	{"1970-01-01T00:00Z", INT64_MIN},
	{"1970-01-01T00:00:00.Z", INT64_MIN},
	{"1970-01-01T00:00:00+0100", INT64_MIN},
	{"1970-01-01T24:00:00Z", INT64_MIN},
	{"1970-13-01T00:00:00Z", INT64_MIN},
	{"1970-00-01T00:00:00Z", INT64_MIN},
	{"1970-01-00T00:00:00Z", INT64_MIN},
	{"1970-04-31T00:00:00Z", INT64_MIN},
	{"2000-02-30T00:00:00Z", INT64_MIN},
	{"1970-01-01T00:60:00Z", INT64_MIN},
	{"1970-01-01T00:00:00,000Z", INT64_MIN},
	{"+970-01-01T00:00:00Z", INT64_MIN},
	{"1970-02-29T00:00:00Z", INT64_MIN},
	{"1900-02-29T00:00:00Z", INT64_MIN},
	{"70-01-01T00:00:00Z", INT64_MIN},
	{"1970-01-01T00:00:00Z ", INT64_MIN},
	{" 1970-01-01T00:00:00Z", INT64_MIN},
	{"1970-1-1T00:00:00Z", INT64_MIN},
	{"0000-01-01T00:00:00Z", INT64_MIN},
};

static void times_as_events_have_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		int64_t ms = INT64_MIN;
		bool ok = hx_date_parse(hx_bytes(times[i].text, strlen(times[i].text)), &ms);

		if (ok != (times[i].ms != INT64_MIN))
			fail_msg("'%s'", times[i].text);
		if (ok)
			assert_int_equal(ms, times[i].ms);
	}
}

static void times_survive_a_round_trip(void **state)
{
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 11);
	for (int i = 0; i < 20000; i++) {
		int64_t ms = (INT64_C(-62000000000) +
			      (int64_t)hx_prng_below(&prng, UINT64_C(315000000000))) *
			1000;
		char text[HX_DATE_TEXT_MAX + 2];
		int64_t back;

		(void)snprintf(text, sizeof(text), "%sZ", format("%FT%T", ms));
		assert_true(hx_date_parse(hx_bytes(text, strlen(text)), &back));
		assert_int_equal(back, ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_times),
		cmocka_unit_test(iso_weeks),
		cmocka_unit_test(random_times),
		cmocka_unit_test(beyond_the_calendar_there_is_no_text),
		cmocka_unit_test(formats_that_are_none),
		cmocka_unit_test(times_as_events_have_them),
		cmocka_unit_test(times_survive_a_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
