/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_python.c - the dialect of Python's json.dumps().
 *
 * Facts, from Python 3.11: a number without fraction and exponent is an integer of any size and
 * printed as it came, -0 as 0; every other number is a double, printed by repr(), beyond its range
 * as Infinity. Everything outside of blank to tilde is escaped, in lower case, and characters above
 * U+FFFF as two surrogates.
 */
#include "wire/json/json_canonical.h"

#include <assert.h>
#include <string.h>

#include "wire/json/json_float.h"
#include "wire/json/json_number.h"

/* Where int() stops reading, since 3.10.7: its time grows with the square. */
enum { PYTHON_INT_DIGITS_MAX = 4300 };

enum { DEL = 0x7f };

static size_t put_unit(unsigned char *out, uint32_t unit)
{
	static const char digits[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'u';
	out[2] = (unsigned char)digits[unit >> 12 & 15];
	out[3] = (unsigned char)digits[unit >> 8 & 15];
	out[4] = (unsigned char)digits[unit >> 4 & 15];
	out[5] = (unsigned char)digits[unit & 15];
	return 6;
}

static size_t put_code_point(unsigned char out[12], uint32_t code_point)
{
	static const char values[] = "\b\f\n\r\t\"\\";
	static const char letters[] = "bfnrt\"\\";
	const char *found = NULL;

	if (code_point != 0 && code_point < 0x80)
		found = strchr(values, (int)code_point);
	if (found != NULL) {
		out[0] = '\\';
		out[1] = (unsigned char)letters[found - values];
		return 2;
	}
	if (code_point >= 0x20 && code_point < 0x7f) {
		out[0] = (unsigned char)code_point;
		return 1;
	}
	if (code_point < 0x10000)
		return put_unit(out, code_point);
	code_point -= 0x10000;
	put_unit(out, 0xd800 + (code_point >> 10));
	return 6 + put_unit(out + 6, 0xdc00 + (code_point & 0x3ff));
}

static unsigned char *put_plain(
	unsigned char *to, const unsigned char *from, const unsigned char *end)
{
	size_t size = (size_t)(end - from);

	memcpy(to, from, size);
	return to + size;
}

unsigned char *hx_json_python_string(struct hx_json_string string, unsigned char *to)
{
	const unsigned char *at = string.data;
	const unsigned char *end = at + string.size;

	*to++ = '"';
	while (at < end) {
		const unsigned char *plain = hx_json_skip_plain(at, end);
		const unsigned char *del;

		/* DEL is plain in JSON, and escaped by Python. */
		while ((del = memchr(at, DEL, (size_t)(plain - at))) != NULL) {
			to = put_plain(to, at, del);
			to += put_code_point(to, DEL);
			at = del + 1;
		}
		to = put_plain(to, at, plain);
		at = plain;
		if (at < end)
			to += put_code_point(to, hx_json_string_code_point(&at, end));
	}
	*to++ = '"';
	return to;
}

unsigned char *hx_json_python_integer(
	struct hapax_bytes text, unsigned char *to, const char **ret_reason)
{
	const char *digits = text.data;
	bool negative = digits[0] == '-';

	if (text.size - negative > PYTHON_INT_DIGITS_MAX) {
		*ret_reason = "canonical form 'python' limits an integer to 4300 digits";
		return NULL;
	}
	if (negative && digits[1] == '0')
		text = (struct hapax_bytes){"0", 1};
	memcpy(to, text.data, text.size);
	return to + text.size;
}

/* Is a number with a too large exponent negative? */
static bool is_tiny(struct hapax_bytes text)
{
	const char *minus = memrchr(text.data, '-', text.size);

	return minus != NULL && minus != text.data;
}

unsigned char *hx_json_python_float(struct hapax_bytes text, unsigned char *to)
{
	const char *first = text.data;
	struct hx_json_number number;

	assert(text.size > 0);
	if (!hx_json_number_read(text, &number) && !is_tiny(text))
		return to + hx_json_float_infinity(first[0] == '-', to);
	return to + hx_json_float_write(&number, first[0] == '-', to);
}
