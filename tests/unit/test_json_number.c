/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers: 1 = 1.0 = 10e-1, -0 = 0, 2^53 and its neighbors, 400 digits, 1e400,
 * denormals. C1.
 */
#include "wire/json/json_number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"
#include "support/scale.h"

/* Write the one text of a number; it is as large as it may be, and not larger. */
static const char *canonical(const char *text)
{
	static char out[2048];
	struct hx_json_number number;
	size_t size = strlen(text);
	unsigned char *exact;
	size_t written;

	assert_true(hx_json_number_read(hx_bytes(text, size), &number));
	exact = malloc(number.span + HX_JSON_NUMBER_TEXT_EXTRA);
	assert_non_null(exact);
	written = hx_json_number_write(&number, exact);
	assert_in_range(written, 1, sizeof(out) - 1);
	memcpy(out, exact, written);
	out[written] = '\0';
	free(exact);
	return out;
}

/* Each line is one value, however it is written; lines differ (C1). */
static const char *const same[][8] = {
	{"0", "-0", "0.0", "-0.0", "0e5", "0E-400", "0.000e99999999999999999999", NULL},
	{"1", "1.0", "10e-1", "1e0", "1E+0", "0.1e1", "100e-2", NULL},
	{"-1", "-1.0", "-10e-1", "-0.1e1", NULL},
	{"10", "1e1", "1.0e1", "100e-1", "0.01e3", NULL},
	{"1000", "1e3", "1000.000", "10.00E2", NULL},
	{"12.5", "12.50", "125e-1", "0.125e2", "1.25E+1", NULL},
	{"0.5", "5e-1", "0.50", "0.05e1", NULL},
	{"0.000001", "1e-6", "0.0000010", NULL},
	{"1e-7", "0.0000001", "10e-8", NULL},
	{"9007199254740991", "9007199254740991.0", "9.007199254740991e15", NULL},
	{"9007199254740992", "9007199254740992.000", NULL},
	{"9007199254740993", "9.007199254740993E15", NULL},
	{"-9007199254740993", "-9007199254740993e0", NULL},
	{"18446744073709551615", "1.8446744073709551615e19", NULL},
	{"18446744073709551616", NULL},
	{"100000000000000000000", "1e20", "10e19", NULL},
	{"1e21", "1000000000000000000000", "0.1e22", NULL},
	{"1e400", "10e399", "0.1e401", "1E+400", "1e0400", NULL},
	{"1e401", NULL},
	{"-1e400", NULL},
	{"1e-400", "0.1e-399", NULL},
	{"5e-324", "50e-325", NULL},
	{"49406564584124654e-340", "4.9406564584124654e-324", NULL},
	{"22250738585072014e-324", "2.2250738585072014e-308", NULL},
	{"22250738585072011e-324", "2.2250738585072011e-308", NULL},
	{"17976931348623157e292", "1.7976931348623157e308", NULL},
	{"0.1", "0.10", "1e-1", NULL},
	{"0.1000000000000000055511151231257827", NULL},
	{"1e99999999999999999", "1E+99999999999999999", NULL},
	{"1e-99999999999999999", NULL},
	{"12345678901234567890123.5", "123456789012345678901235e-1", NULL},
};

enum { SAME_COUNT = sizeof(same) / sizeof(same[0]) };

static void a_value_has_one_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAME_COUNT; i++) {
		for (size_t j = 0; same[i][j] != NULL; j++) {
			if (same[i][j][0] != '\0' && strcmp(canonical(same[i][j]), same[i][0]) != 0)
				fail_msg(
					"%s: %s, not %s", same[i][j], canonical(same[i][j]),
					same[i][0]);
		}
	}
}

/* Every way to write one value, against every way to write another. */
static void texts_of_different_values_differ(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAME_COUNT; i++) {
		for (size_t a = 0; same[i][a] != NULL; a++) {
			char first[2048];

			(void)snprintf(first, sizeof(first), "%s", canonical(same[i][a]));
			for (size_t j = i + 1; j < SAME_COUNT; j++) {
				for (size_t b = 0; same[j][b] != NULL; b++)
					assert_string_not_equal(canonical(same[j][b]), first);
			}
		}
	}
}

/* 400 digits, each of which counts. */
static void long_integers_keep_every_digit(void **state)
{
	char text[402];
	char other[402];

	(void)state;
	memset(text, '7', 400);
	text[400] = '\0';
	assert_string_equal(canonical(text), text);
	for (size_t i = 0; i < 400; i++) {
		memcpy(other, text, sizeof(text));
		other[i] = '8';
		assert_string_equal(canonical(other), other);
	}
	/* With a zero behind, it is ten times as much and not the same. */
	text[399] = '0';
	other[0] = '\0';
	(void)snprintf(other, sizeof(other), "%.399se1", text);
	assert_string_equal(canonical(text), other);
}

static void exponents_beyond_all_measure_are_refused(void **state)
{
	static const char *const texts[] = {
		"1e100000000000000000", "1e-100000000000000000",  "-5E+999999999999999999999999",
		"10e99999999999999999", "0.1e100000000000000001", "0.1e-99999999999999999"};
	struct hx_json_number number;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_false(hx_json_number_read(hx_bytes(texts[i], strlen(texts[i])), &number));
		assert_int_equal(number.digit_count, 0);
	}
	/* The value counts, not its text: zeros in front, and where the point stands. */
	assert_string_equal(canonical("0.01e100000000000000001"), "1e99999999999999999");
	assert_string_equal(canonical("100e-100000000000000001"), "1e-99999999999999999");
	assert_string_equal(canonical("1e000000000000000000000000000005"), "100000");
	assert_string_equal(canonical("0e100000000000000000000"), "0");
}

/*
 * Digits and exponent drawn at random and written in ways that differ: one text.
 * The text is its own canonical form.
 */
static void ways_to_write_it_do_not_matter(void **state)
{
	uint64_t count = scale_count(2000000, 50000);
	uint64_t seed = 1;
	struct hx_prng prng;

	(void)state;
	(void)scale_seed(&seed);
	hx_prng_seed(&prng, seed);
	for (uint64_t i = 0; i < count; i++) {
		int64_t digits = (int64_t)(hx_prng_next(&prng) >> (11 + hx_prng_below(&prng, 50)));
		int exponent = (int)hx_prng_below(&prng, 60) - 30;
		int zeros = (int)hx_prng_below(&prng, 6);
		char ways[4][128];
		char first[128];

		(void)snprintf(ways[0], sizeof(ways[0]), "%llde%d", (long long)digits, exponent);
		(void)snprintf(
			ways[1], sizeof(ways[1]), "%lld.%0*de%d", (long long)digits, zeros + 1, 0,
			exponent);
		(void)snprintf(
			ways[2], sizeof(ways[2]), "%lld%0*dE%d", (long long)digits, zeros, 0,
			exponent - (zeros == 0 ? 1 : zeros));
		(void)snprintf(
			ways[3], sizeof(ways[3]), "0.%0*d%llde%+d", zeros + 1, 0, (long long)digits,
			exponent + zeros + 1 + snprintf(NULL, 0, "%lld", (long long)digits));
		if (digits == 0)
			continue; /* zero with zeros in front of it is not a JSON number */
		(void)snprintf(first, sizeof(first), "%s", canonical(ways[0]));
		for (size_t way = 1; way < 4; way++) {
			if (strcmp(canonical(ways[way]), first) != 0)
				fail_msg(
					"seed %llu: %s and %s", (unsigned long long)seed, ways[0],
					ways[way]);
		}
		assert_string_equal(canonical(first), first);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_has_one_text),
		cmocka_unit_test(texts_of_different_values_differ),
		cmocka_unit_test(long_integers_keep_every_digit),
		cmocka_unit_test(exponents_beyond_all_measure_are_refused),
		cmocka_unit_test(ways_to_write_it_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
