/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_float.c - the shortest digits that read back to the same double.
 *
 * A decimal of at most 15 digits within the normal range is the only one so short that its double
 * stands for: it is its own answer, and no double is ever made. Everything else goes through
 * strtod(3), and then through as many digits as it takes, from 15 on. For a power of two the gap
 * below is half of the gap above, and the shortest decimal may be the second nearest of its length:
 * the larger neighbor is tried, too. Denormals have fewer digits and are tried from one on.
 */
#include "wire/json/json_float.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	EXACT_DIGITS = 15,     /* DBL_DIG */
	SHORTEST_DIGITS = 17,  /* DBL_DECIMAL_DIG: always enough */
	EXACT_POINT_MAX = 300, /* well within the normal range, either way */

	/* A double is decided by its first 767 digits and whether any follow. */
	DECIDING_DIGITS = 800,
};

/* digits, with the point after the first point of them. */
struct decimal {
	char digits[SHORTEST_DIGITS + 1];
	int count;
	int point;
};

static double read_double(const char *text)
{
	/* glibc hands out its own "C" locale here: nothing is allocated. */
	locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double value;

	assert(c_locale != (locale_t)0);
	value = strtod_l(text, NULL, c_locale);
	freelocale(c_locale);
	return value;
}

/* The magnitude of a number that is not zero. */
static double to_double(const struct hx_json_number *number)
{
	char text[DECIDING_DIGITS + 32];
	size_t count = 0;
	int64_t exponent = number->exponent;

	for (size_t i = 0; i < number->span && count < DECIDING_DIGITS; i++) {
		if (number->digits[i] != '.')
			text[count++] = (char)number->digits[i];
	}
	exponent += (int64_t)(number->digit_count - count);
	if (count < number->digit_count) {
		/* The last digit is not 0, so neither is what was cut. */
		text[count++] = '1';
		exponent--;
	}
	(void)snprintf(text + count, sizeof(text) - count, "e%lld", (long long)exponent);
	return read_double(text);
}

/* The nearest decimal of count digits. */
static void nearest(double value, int count, struct decimal *ret)
{
	char text[SHORTEST_DIGITS + 16];
	const char *at = text;
	int digits = 0;

	/* d.ddde+dd, with the decimal point of the locale. */
	(void)snprintf(text, sizeof(text), "%.*e", count - 1, value);
	for (; *at != 'e'; at++) {
		if (*at >= '0' && *at <= '9')
			ret->digits[digits++] = *at;
	}
	assert(digits == count);
	ret->digits[digits] = '\0';
	ret->count = count;
	ret->point = (int)strtol(at + 1, NULL, 10) + 1;
}

/* The next larger decimal of the same length. */
static void increment(struct decimal *decimal)
{
	int i = decimal->count - 1;

	while (i >= 0 && decimal->digits[i] == '9')
		decimal->digits[i--] = '0';
	if (i >= 0) {
		decimal->digits[i]++;
		return;
	}
	decimal->digits[0] = '1';
	decimal->point++;
}

static bool reads_back(const struct decimal *decimal, double value)
{
	char text[SHORTEST_DIGITS + 16];

	(void)snprintf(
		text, sizeof(text), "%se%d", decimal->digits, decimal->point - decimal->count);
	return read_double(text) == value;
}

static bool is_power_of_two(double value)
{
	int exponent;

	return frexp(value, &exponent) == 0.5;
}

static void shortest(double value, struct decimal *ret)
{
	int count = value < DBL_MIN ? 1 : EXACT_DIGITS;

	for (; count < SHORTEST_DIGITS; count++) {
		nearest(value, count, ret);
		if (reads_back(ret, value))
			break;
		if (is_power_of_two(value)) {
			increment(ret);
			if (reads_back(ret, value))
				break;
		}
	}
	if (count == SHORTEST_DIGITS)
		nearest(value, count, ret);
	while (ret->count > 1 && ret->digits[ret->count - 1] == '0')
		ret->digits[--ret->count] = '\0';
}

/* As repr() lays it out: plain from 1e-4 up to 1e16, else with an exponent. */
static size_t lay_out(const struct decimal *decimal, unsigned char *out)
{
	unsigned char *begin = out;
	int count = decimal->count;
	int point = decimal->point;

	if (point <= -4 || point > 16) {
		*out++ = (unsigned char)decimal->digits[0];
		if (count > 1) {
			*out++ = '.';
			memcpy(out, decimal->digits + 1, (size_t)(count - 1));
			out += count - 1;
		}
		out += snprintf((char *)out, 8, "e%+03d", point - 1);
		return (size_t)(out - begin);
	}
	if (point <= 0) {
		*out++ = '0';
		*out++ = '.';
		for (; point < 0; point++)
			*out++ = '0';
		memcpy(out, decimal->digits, (size_t)count);
		return (size_t)(out - begin) + (size_t)count;
	}
	for (int i = 0; i < point; i++)
		*out++ = i < count ? (unsigned char)decimal->digits[i] : '0';
	*out++ = '.';
	if (point >= count)
		*out++ = '0';
	for (int i = point; i < count; i++)
		*out++ = (unsigned char)decimal->digits[i];
	return (size_t)(out - begin);
}

static void exact(const struct hx_json_number *number, struct decimal *ret)
{
	ret->count = 0;
	for (size_t i = 0; i < number->span; i++) {
		if (number->digits[i] != '.')
			ret->digits[ret->count++] = (char)number->digits[i];
	}
	ret->digits[ret->count] = '\0';
	ret->point = ret->count + (int)number->exponent;
}

size_t hx_json_float_infinity(bool negative, unsigned char out[HX_JSON_FLOAT_TEXT_SIZE])
{
	static const char text[] = "-Infinity";
	size_t skip = negative ? 0 : 1;

	memcpy(out, text + skip, sizeof(text) - 1 - skip);
	return sizeof(text) - 1 - skip;
}

size_t hx_json_float_write(
	const struct hx_json_number *number, bool negative,
	unsigned char out[HX_JSON_FLOAT_TEXT_SIZE])
{
	int64_t point = (int64_t)number->digit_count + number->exponent;
	struct decimal decimal = {.digits = "0", .count = 1, .point = 1};
	size_t sign = 0;

	if (number->digit_count > 0 && number->digit_count <= EXACT_DIGITS &&
	    point >= -EXACT_POINT_MAX && point <= EXACT_POINT_MAX) {
		exact(number, &decimal);
	} else if (number->digit_count > 0) {
		double value = to_double(number);

		if (isinf(value))
			return hx_json_float_infinity(negative, out);
		if (value > 0)
			shortest(value, &decimal);
	}
	if (negative) {
		out[0] = '-';
		sign = 1;
	}
	return sign + lay_out(&decimal, out + sign);
}
