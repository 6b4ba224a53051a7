/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_number.c - numbers without loss.
 *
 * With the point at position point (digits before it; it may lie outside of them)
 * the text is, in this order:
 *
 *	zero                          0
 *	exponent 0, or above 0
 *	and point at most 21          digits, zeros
 *	point within the digits       digits.digits
 *	point at most 5 before them   0.zeros digits
 *	else                          digits e exponent
 */
#include "wire/json/json_number.h"

#include <assert.h>
#include <string.h>

enum {
	/* Zeros between the point and the first digit that are written out. */
	PLAIN_ZEROS_MAX = 5,
	/* A longer exponent is too large, wherever the point is. */
	EXPONENT_DIGITS_MAX = 18,
};

/*
 * The exponent of the last digit, either way, is below this. The value decides, not
 * the way it is written, so that a canonical text can be read again.
 */
static const int64_t exponent_limit = INT64_C(100000000000000000);

static bool is_digit(unsigned char byte)
{
	return byte >= '0' && byte <= '9';
}

/* The exponent's text after 'e'. */
static bool read_exponent(const unsigned char *at, const unsigned char *end, int64_t *ret)
{
	bool negative = false;
	int64_t value = 0;

	if (*at == '+' || *at == '-')
		negative = *at++ == '-';
	while (at < end && *at == '0')
		at++;
	if (end - at > EXPONENT_DIGITS_MAX)
		return false;
	for (; at < end; at++)
		value = value * 10 + (*at - '0');
	*ret = negative ? -value : value;
	return true;
}

/* The parts of a number's text. */
struct parts {
	const unsigned char *whole;
	const unsigned char *whole_end;
	const unsigned char *fraction; /* fraction_end when there is none */
	const unsigned char *fraction_end;
};

static const unsigned char *past_digits(const unsigned char *at, const unsigned char *end)
{
	while (at < end && is_digit(*at))
		at++;
	return at;
}

static struct parts split(const unsigned char *at, const unsigned char *end)
{
	struct parts parts;

	parts.whole = at;
	parts.whole_end = past_digits(at, end);
	parts.fraction = parts.whole_end;
	parts.fraction_end = parts.whole_end;
	if (parts.whole_end < end && *parts.whole_end == '.') {
		parts.fraction = parts.whole_end + 1;
		parts.fraction_end = past_digits(parts.fraction, end);
	}
	return parts;
}

/* The first digit that is not 0, in the whole part or else in the fraction, or NULL. */
static const unsigned char *first_digit(const struct parts *parts)
{
	for (const unsigned char *at = parts->whole; at < parts->fraction_end; at++) {
		if (*at != '0' && *at != '.')
			return at;
	}
	return NULL;
}

/* Cut zeros from the end; there is a digit that is not 0. */
static const unsigned char *past_last_digit(const struct parts *parts)
{
	const unsigned char *past = parts->fraction_end;

	while (past[-1] == '0' || past[-1] == '.')
		past--;
	return past;
}

bool hx_json_number_read(struct hapax_bytes text, struct hx_json_number *ret)
{
	const unsigned char *at = text.data;
	const unsigned char *end = at + text.size;
	struct parts parts;
	const unsigned char *first;
	const unsigned char *past;
	int64_t exponent = 0;

	assert(text.size > 0);
	*ret = (struct hx_json_number){.digits = at};
	if (*at == '-') {
		ret->negative = true;
		at++;
	}
	parts = split(at, end);
	first = first_digit(&parts);
	if (first == NULL) {
		ret->negative = false; /* zero has no sign */
		return true;
	}
	if (parts.fraction_end < end && !read_exponent(parts.fraction_end + 1, end, &exponent))
		return false;
	past = past_last_digit(&parts);
	if (past > parts.whole_end)
		exponent -= past - parts.fraction;
	else
		exponent += parts.whole_end - past;
	if (exponent <= -exponent_limit || exponent >= exponent_limit)
		return false;
	ret->digits = first;
	ret->span = (size_t)(past - first);
	ret->digit_count = ret->span;
	if (first < parts.whole_end && past > parts.whole_end)
		ret->digit_count--; /* the point */
	ret->exponent = exponent;
	return true;
}

static unsigned char *put_zeros(unsigned char *out, int64_t count)
{
	memset(out, '0', (size_t)count);
	return out + count;
}

/* Digits skip to skip + count of the number. */
static unsigned char *put_digits(
	unsigned char *out, const struct hx_json_number *number, size_t skip, size_t count)
{
	for (size_t i = 0; i < number->span && count > 0; i++) {
		if (number->digits[i] == '.')
			continue;
		if (skip > 0) {
			skip--;
			continue;
		}
		*out++ = number->digits[i];
		count--;
	}
	return out;
}

static unsigned char *put_exponent(unsigned char *out, int64_t exponent)
{
	unsigned char digits[20];
	size_t count = 0;
	uint64_t value = exponent < 0 ? (uint64_t)-exponent : (uint64_t)exponent;

	*out++ = 'e';
	if (exponent < 0)
		*out++ = '-';
	do {
		digits[count++] = (unsigned char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	while (count > 0)
		*out++ = digits[--count];
	return out;
}

size_t hx_json_number_write(const struct hx_json_number *number, unsigned char *out)
{
	unsigned char *begin = out;
	size_t count = number->digit_count;
	int64_t exponent = number->exponent;
	int64_t point = (int64_t)count + exponent;

	if (count == 0) {
		*out = '0';
		return 1;
	}
	if (number->negative)
		*out++ = '-';
	if (exponent == 0 || (exponent > 0 && point <= HX_JSON_PLAIN_DIGITS_MAX)) {
		out = put_digits(out, number, 0, count);
		out = put_zeros(out, exponent);
	} else if (exponent < 0 && point > 0) {
		out = put_digits(out, number, 0, (size_t)point);
		*out++ = '.';
		out = put_digits(out, number, (size_t)point, count - (size_t)point);
	} else if (exponent < 0 && point >= -PLAIN_ZEROS_MAX) {
		*out++ = '0';
		*out++ = '.';
		out = put_zeros(out, -point);
		out = put_digits(out, number, 0, count);
	} else {
		out = put_digits(out, number, 0, count);
		out = put_exponent(out, exponent);
	}
	assert((size_t)(out - begin) <= number->span + HX_JSON_NUMBER_TEXT_EXTRA);
	return (size_t)(out - begin);
}
