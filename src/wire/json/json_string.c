/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_string.c - strings: find their end, decode, compare.
 */
#include "wire/json/json_string.h"

#include <assert.h>
#include <string.h>

#include "base/utf8.h"

static size_t utf8_size(const unsigned char *at, const unsigned char *end, uint32_t *ret_code)
{
	return hx_utf8_size((struct hapax_bytes){at, (size_t)(end - at)}, ret_code);
}

static int hex_digit(unsigned char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

/* The four digits at at, or -1. */
static int32_t hex_unit(const unsigned char *at, const unsigned char *end)
{
	int32_t unit = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(at[i]);

		if (digit < 0)
			return -1;
		unit = unit * 16 + digit;
	}
	return unit;
}

static bool is_high_surrogate(int32_t unit)
{
	return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low_surrogate(int32_t unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* How long the escape at at is, which is a backslash; 0: it is not valid. */
static size_t escape_size(
	const unsigned char *at, const unsigned char *end, const char **ret_reason)
{
	int32_t unit;

	if (end - at < 2) {
		*ret_reason = "the string does not end";
		return 0;
	}
	if (at[1] != 'u') {
		*ret_reason = "invalid escape in a string";
		return memchr("\"\\/bfnrt", at[1], 8) != NULL ? 2 : 0;
	}
	unit = hex_unit(at + 2, end);
	if (unit < 0) {
		*ret_reason = "\\u needs four hexadecimal digits";
		return 0;
	}
	*ret_reason = "an unpaired surrogate";
	if (is_low_surrogate(unit))
		return 0;
	if (!is_high_surrogate(unit))
		return 6;
	if (end - at < 12 || at[6] != '\\' || at[7] != 'u' ||
	    !is_low_surrogate(hex_unit(at + 8, end)))
		return 0;
	return 12;
}

const unsigned char *hx_json_string_scan(
	const unsigned char *at, const unsigned char *end, bool *ret_escaped,
	const unsigned char **ret_at, const char **ret_reason)
{
	*ret_escaped = false;
	for (;;) {
		uint32_t code;
		size_t size;

		at = hx_json_skip_plain(at, end);
		if (at < end && *at == '"')
			return at;
		*ret_at = at;
		if (at == end) {
			*ret_reason = "the string does not end";
			return NULL;
		}
		if (*at < 0x20) {
			*ret_reason = "a control character in a string must be escaped";
			return NULL;
		}
		if (*at == '\\') {
			*ret_escaped = true;
			size = escape_size(at, end, ret_reason);
		} else {
			*ret_reason = "not UTF-8";
			size = utf8_size(at, end, &code);
		}
		if (size == 0)
			return NULL;
		at += size;
	}
}

static uint32_t escape_code_point(const unsigned char **at, const unsigned char *end)
{
	static const char letters[] = "bfnrt";
	static const char values[] = "\b\f\n\r\t";
	unsigned char letter = (*at)[1];
	uint32_t unit;

	if (letter != 'u') {
		const char *found = memchr(letters, letter, sizeof(letters) - 1);

		*at += 2;
		return found == NULL ? letter : (unsigned char)values[found - letters];
	}
	unit = (uint32_t)hex_unit(*at + 2, end);
	*at += 6;
	if (is_high_surrogate((int32_t)unit)) {
		uint32_t low = (uint32_t)hex_unit(*at + 2, end);

		*at += 6;
		unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
	}
	return unit;
}

uint32_t hx_json_string_code_point(const unsigned char **at, const unsigned char *end)
{
	uint32_t code_point;
	size_t size;

	assert(*at < end);
	if (**at == '\\') {
		code_point = escape_code_point(at, end);
		assert(*at <= end);
		return code_point;
	}
	if (**at < 0x80)
		return *(*at)++;
	size = utf8_size(*at, end, &code_point);
	assert(size != 0);
	*at += size;
	return code_point;
}

static size_t encode_utf8(uint32_t code_point, unsigned char out[4])
{
	if (code_point < 0x80) {
		out[0] = (unsigned char)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		out[0] = (unsigned char)(0xc0 | code_point >> 6);
		out[1] = (unsigned char)(0x80 | (code_point & 0x3f));
		return 2;
	}
	if (code_point < 0x10000) {
		out[0] = (unsigned char)(0xe0 | code_point >> 12);
		out[1] = (unsigned char)(0x80 | (code_point >> 6 & 0x3f));
		out[2] = (unsigned char)(0x80 | (code_point & 0x3f));
		return 3;
	}
	assert(code_point <= 0x10ffff);
	out[0] = (unsigned char)(0xf0 | code_point >> 18);
	out[1] = (unsigned char)(0x80 | (code_point >> 12 & 0x3f));
	out[2] = (unsigned char)(0x80 | (code_point >> 6 & 0x3f));
	out[3] = (unsigned char)(0x80 | (code_point & 0x3f));
	return 4;
}

size_t hx_json_string_step(const unsigned char **at, const unsigned char *end, unsigned char out[4])
{
	assert(*at < end);
	if (**at != '\\') {
		/* UTF-8 already: a byte is as good as a character, and cheaper. */
		out[0] = *(*at)++;
		return 1;
	}
	return encode_utf8(escape_code_point(at, end), out);
}

size_t hx_json_string_value(struct hx_json_string string, unsigned char *out)
{
	const unsigned char *at = string.data;
	const unsigned char *end = string.data + string.size;
	unsigned char *begin = out;

	if (!string.escaped) {
		if (string.size > 0)
			memcpy(out, string.data, string.size);
		return string.size;
	}
	while (at < end) {
		unsigned char bytes[4];
		size_t size = hx_json_string_step(&at, end, bytes);

		memcpy(out, bytes, size);
		out += size;
	}
	assert((size_t)(out - begin) <= string.size);
	return (size_t)(out - begin);
}

/* The bytes of a value one by one. */
struct cursor {
	const unsigned char *at;
	const unsigned char *end;
	unsigned char bytes[4];
	size_t size;
	size_t next;
};

/* -1 at the end. */
static int cursor_next(struct cursor *cursor)
{
	if (cursor->next == cursor->size) {
		if (cursor->at == cursor->end)
			return -1;
		cursor->size = hx_json_string_step(&cursor->at, cursor->end, cursor->bytes);
		cursor->next = 0;
	}
	return cursor->bytes[cursor->next++];
}

static int compare_escaped(struct hx_json_string a, struct hx_json_string b)
{
	struct cursor left = {a.data, a.data + a.size, {0}, 0, 0};
	struct cursor right = {b.data, b.data + b.size, {0}, 0, 0};

	for (;;) {
		int x = cursor_next(&left);
		int y = cursor_next(&right);

		if (x != y)
			return x < y ? -1 : 1;
		if (x < 0)
			return 0;
	}
}

int hx_json_string_compare(struct hx_json_string a, struct hx_json_string b)
{
	size_t common = a.size < b.size ? a.size : b.size;
	int order;

	if (a.escaped || b.escaped)
		return compare_escaped(a, b);
	order = common == 0 ? 0 : memcmp(a.data, b.data, common);
	if (order != 0)
		return order;
	return (a.size > b.size) - (a.size < b.size);
}

bool hx_json_string_equal(struct hx_json_string string, struct hapax_bytes value)
{
	struct cursor cursor = {string.data, string.data + string.size, {0}, 0, 0};
	const unsigned char *bytes = value.data;

	if (!string.escaped) {
		return string.size == value.size &&
			(value.size == 0 || memcmp(string.data, bytes, value.size) == 0);
	}
	for (size_t i = 0; i < value.size; i++) {
		if (cursor_next(&cursor) != bytes[i])
			return false;
	}
	return cursor_next(&cursor) < 0;
}

uint64_t hx_json_string_piece_slow(struct hx_json_string string, uint32_t *place)
{
	const unsigned char *at = string.data + (*place >> 2);
	const unsigned char *end = string.data + string.size;
	/* Of an escape, what the piece before has. */
	uint32_t skip = *place & 3;
	uint64_t piece = 0;
	unsigned count = 0;

	for (; !string.escaped && at < end && count < HX_JSON_PIECE_SIZE; count++)
		piece |= (uint64_t)*at++ << (56 - 8 * count);
	while (at < end && count < HX_JSON_PIECE_SIZE) {
		const unsigned char *begin = at;
		unsigned char bytes[4];
		size_t size = hx_json_string_step(&at, end, bytes);

		for (; skip < size && count < HX_JSON_PIECE_SIZE; count++)
			piece |= (uint64_t)bytes[skip++] << (56 - 8 * count);
		if (skip < size)
			at = begin;
		else
			skip = 0;
	}
	*place = (uint32_t)(at - string.data) << 2 | skip;
	return piece | count;
}
