/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repr() of doubles as Python prints them: for keys that document C's code made. C1.
 */
#include "wire/json/json_float.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"
#include "support/scale.h"

static const char *repr(const char *text)
{
	static char out[HX_JSON_FLOAT_TEXT_SIZE + 1];
	struct hx_json_number number;
	size_t size;

	assert_true(hx_json_number_read(hx_bytes(text, strlen(text)), &number));
	size = hx_json_float_write(&number, text[0] == '-', (unsigned char *)out);
	assert_in_range(size, 0, HX_JSON_FLOAT_TEXT_SIZE);
	out[size] = '\0';
	return out;
}

/* What Python 3.11 prints. */
static const char *const known[][2] = {
	{"0.0", "0.0"},
	{"-0.0", "-0.0"},
	{"0e5", "0.0"},
	{"1e0", "1.0"},
	{"-1.50", "-1.5"},
	{"100.0", "100.0"},
	{"1e15", "1000000000000000.0"},
	{"1e16", "1e+16"},
	{"123456789012345680.0", "1.2345678901234568e+17"},
	{"9999999999999998.0", "9999999999999998.0"},
	{"0.0001", "0.0001"},
	{"0.00001", "1e-05"},
	{"0.000123", "0.000123"},
	{"1e22", "1e+22"},
	{"1e23", "1e+23"},
	{"1e100", "1e+100"},
	{"1e-100", "1e-100"},
	{"9007199254740993.0", "9007199254740992.0"},
	{"9007199254740993e0", "9007199254740992.0"},
	{"0.1000000000000000055511151231257827", "0.1"},
	{"0.30000000000000004", "0.30000000000000004"},
	{"5e-324", "5e-324"},
	{"4.9406564584124654e-324", "5e-324"},
	{"3e-324", "5e-324"},
	{"2.4703282292062328e-324", "5e-324"},
	{"2.4703282292062327e-324", "0.0"},
	{"2e-324", "0.0"},
	{"-2e-324", "-0.0"},
	{"1e-400", "0.0"},
	{"2.2250738585072014e-308", "2.2250738585072014e-308"},
	{"2.2250738585072011e-308", "2.225073858507201e-308"},
	{"1.7976931348623157e308", "1.7976931348623157e+308"},
	{"1.7976931348623158e308", "1.7976931348623157e+308"},
	/* Powers of two, where the shortest text is not the nearest of its length. */
	{"5.684341886080801486968994140625e-14", "5.684341886080802e-14"},
	{"7.1202363472230444e-307", "7.120236347223045e-307"},
	{"8.2090736025967525e-289", "8.209073602596753e-289"},
	{"9.5367431640625e-7", "9.5367431640625e-07"},
	/* Half way between two doubles: to even. */
	{"9007199254740992.5", "9007199254740992.0"},
	{"9007199254740995.0", "9007199254740996.0"},
	{"1.00000000000000011102230246251565404236316680908203125", "1.0"},
	{"1.00000000000000011102230246251565404236316680908203126", "1.0000000000000002"},
};

static void known_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_string_equal(repr(known[i][0]), known[i][1]);
}

static void beyond_the_largest_double(void **state)
{
	(void)state;
	assert_string_equal(repr("1e309"), "Infinity");
	assert_string_equal(repr("1.7976931348623159e308"), "Infinity");
	assert_string_equal(repr("-1e400"), "-Infinity");
}

/* A digit far behind decides: 800 digits are not enough to see it by themselves. */
static void digits_far_behind_count(void **state)
{
	char text[2000];
	size_t size;

	(void)state;
	size = (size_t)snprintf(text, sizeof(text), "9007199254740993.0%01500d", 0);
	assert_string_equal(repr(text), "9007199254740992.0");
	text[size - 1] = '1';
	assert_string_equal(repr(text), "9007199254740994.0");
}

/* The value comes back, and no shorter text does that. */
static void check_shortest(double value)
{
	char text[64];
	const char *out;
	size_t digits = 0;

	(void)snprintf(text, sizeof(text), "%.40e", value);
	out = repr(text);
	if (strtod(out, NULL) != value)
		fail_msg("%a gave %s", value, out);
	for (const char *at = out; *at != '\0' && *at != 'e'; at++)
		digits += *at >= '0' && *at <= '9';
	assert_in_range(digits, 1, 22);
	for (int shorter = 1; shorter < 17; shorter++) {
		(void)snprintf(text, sizeof(text), "%.*e", shorter - 1, value);
		if (strtod(text, NULL) == value) {
			/* Zeros for the layout aside, it has no more digits than that. */
			size_t leading = strspn(out + (out[0] == '-'), "0.");
			size_t significant = 0;
			size_t zeros = 0;

			for (const char *at = out + (out[0] == '-') + leading;
			     *at != '\0' && *at != 'e'; at++) {
				if (*at == '.')
					continue;
				significant++;
				zeros = *at == '0' ? zeros + 1 : 0;
			}
			assert_true(significant - zeros <= (size_t)shorter);
			return;
		}
	}
}

/* The double that is steps further; value is positive. */
static double neighbor(double value, int64_t steps)
{
	int64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits += steps;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void every_power_of_two(void **state)
{
	(void)state;
	for (int exponent = -1074; exponent < 1024; exponent++) {
		double power = ldexp(1.0, exponent);

		check_shortest(power);
		check_shortest(neighbor(power, 1));
		if (exponent > -1074)
			check_shortest(neighbor(power, -1));
	}
}

static void random_doubles(void **state)
{
	uint64_t count = scale_count(1000000, 30000);
	uint64_t seed = 7;
	struct hx_prng prng;

	(void)state;
	(void)scale_seed(&seed);
	hx_prng_seed(&prng, seed);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t bits = hx_prng_next(&prng);
		double value;

		memcpy(&value, &bits, sizeof(value));
		if (isfinite(value) && value != 0)
			check_shortest(fabs(value));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_numbers),
		cmocka_unit_test(beyond_the_largest_double),
		cmocka_unit_test(digits_far_behind_count),
		cmocka_unit_test(every_power_of_two),
		cmocka_unit_test(random_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
