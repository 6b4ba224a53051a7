/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_reply.c - parse replies of a Redis server.
 *
 * Streamed values ("$?", "*?") are refused: no server sends them unasked, and their size is
 * unlimited.
 */
#include "wire/resp/resp_reply.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

/* Find the line that begins at `at`; *ret_end is the position of its CRLF. */
static enum hx_resp_result find_line(
	struct hapax_bytes input, size_t at, size_t size_max, size_t *ret_end, const char **ret_why)
{
	const unsigned char *data = input.data;
	const unsigned char *end;

	if (at >= input.size)
		return HX_RESP_MORE;
	end = memchr(data + at, '\r', input.size - at);
	if (end == NULL || (size_t)(end - data) + 1 == input.size) {
		size_t size = end == NULL ? input.size - at : (size_t)(end - data) - at;

		if (memchr(data + at, '\n', size) != NULL) {
			*ret_why = "a line ends without CR";
			return HX_RESP_BAD;
		}
		if (size <= size_max)
			return HX_RESP_MORE;
		*ret_why = "a line is too long";
		return HX_RESP_BAD;
	}
	*ret_end = (size_t)(end - data);
	if (end[1] != '\n' || memchr(data + at, '\n', *ret_end - at) != NULL) {
		*ret_why = "a line ends without CR and LF";
		return HX_RESP_BAD;
	}
	if (*ret_end - at > size_max) {
		*ret_why = "a line is too long";
		return HX_RESP_BAD;
	}
	return HX_RESP_DONE;
}

static bool has_length(enum hx_resp_type type)
{
	return type == HX_RESP_BULK || type == HX_RESP_BULK_ERROR || type == HX_RESP_VERBATIM;
}

static bool is_aggregate(enum hx_resp_type type)
{
	return type == HX_RESP_ARRAY || type == HX_RESP_MAP || type == HX_RESP_SET ||
		type == HX_RESP_ATTRIBUTE || type == HX_RESP_PUSH;
}

static bool is_line(enum hx_resp_type type)
{
	return type == HX_RESP_SIMPLE || type == HX_RESP_ERROR || type == HX_RESP_DOUBLE ||
		type == HX_RESP_BIG_NUMBER;
}

/* A length or count; -1 only for types that RESP2 uses it for, as null. */
static bool read_count(struct hapax_bytes line, bool may_be_null, int64_t *ret_count)
{
	return hx_resp_parse_integer(line, ret_count) &&
		(*ret_count >= 0 || (may_be_null && *ret_count == -1));
}

static enum hx_resp_result bad(const char **ret_why, const char *why)
{
	*ret_why = why;
	return HX_RESP_BAD;
}

/* The body of a bulk string, after the line that ends at end. */
static enum hx_resp_result read_bulk(
	struct hapax_bytes input, size_t end, size_t size_max, struct hx_resp_value *value,
	size_t *ret_size, const char **ret_why)
{
	const char *data = input.data;
	size_t begin = end + 2;
	uint64_t size = (uint64_t)value->integer;

	if (size > size_max || begin > size_max - (size_t)size)
		return bad(ret_why, "a string is too long");
	if (input.size < begin + size + 2) {
		/* The part of the line end that has arrived must be correct. */
		if (input.size == begin + size + 1 && data[begin + size] != '\r')
			return bad(ret_why, "a string does not end correctly");
		return HX_RESP_MORE;
	}
	if (memcmp(data + begin + size, "\r\n", 2) != 0)
		return bad(ret_why, "a string does not end correctly");
	if (value->type == HX_RESP_VERBATIM && (size < 4 || data[begin + 3] != ':'))
		return bad(ret_why, "a verbatim string has no format");
	value->text = hx_bytes(data + begin, size);
	*ret_size = begin + size + 2;
	return HX_RESP_DONE;
}

/* Read one value or head at `at`. *ret_size: the position of the next one. */
static enum hx_resp_result read_value(
	struct hapax_bytes input, size_t at, size_t size_max, struct hx_resp_value *value,
	size_t *ret_size, const char **ret_why)
{
	const char *data = input.data;
	struct hapax_bytes line;
	size_t end = 0;
	enum hx_resp_result result;
	bool is_text;

	if (at >= input.size)
		return HX_RESP_MORE;
	value->type = (enum hx_resp_type)data[at];
	value->integer = 0;
	value->text = hx_bytes(NULL, 0);
	is_text = is_line(value->type);
	if (!is_text && !has_length(value->type) && !is_aggregate(value->type) &&
	    value->type != HX_RESP_INTEGER && value->type != HX_RESP_NULL &&
	    value->type != HX_RESP_BOOLEAN)
		return bad(ret_why, "unknown type of value");
	result = find_line(
		input, at + 1, is_text ? HX_RESP_LINE_SIZE_MAX : HX_RESP_NUMBER_SIZE_MAX, &end,
		ret_why);
	if (result != HX_RESP_DONE)
		return result;
	line = hx_bytes(data + at + 1, end - at - 1);
	*ret_size = end + 2;
	if (is_text) {
		value->text = line;
		return HX_RESP_DONE;
	}
	switch (value->type) {
	case HX_RESP_INTEGER:
		if (!hx_resp_parse_integer(line, &value->integer))
			return bad(ret_why, "an integer is malformed");
		return HX_RESP_DONE;
	case HX_RESP_NULL:
		return line.size == 0 ? HX_RESP_DONE : bad(ret_why, "a null is malformed");
	case HX_RESP_BOOLEAN:
		value->integer = line.size == 1 && *(const char *)line.data == 't';
		if (line.size != 1 || (!value->integer && *(const char *)line.data != 'f'))
			return bad(ret_why, "a boolean is malformed");
		return HX_RESP_DONE;
	default: break;
	}
	if (!read_count(
		    line, value->type == HX_RESP_BULK || value->type == HX_RESP_ARRAY,
		    &value->integer) ||
	    value->integer > INT64_MAX / 2)
		return bad(ret_why, "a length is malformed");
	if (value->integer < 0) {
		value->type = HX_RESP_NULL;
		value->integer = 0;
		return HX_RESP_DONE;
	}
	if (has_length(value->type))
		return read_bulk(input, end, size_max, value, ret_size, ret_why);
	if (value->type == HX_RESP_MAP || value->type == HX_RESP_ATTRIBUTE)
		value->integer *= 2;
	return HX_RESP_DONE;
}

/* Enter a value that contains others. */
static enum hx_resp_result enter(
	struct hx_resp_scan *scan, const struct hx_resp_value *value, size_t size_max)
{
	/* Each value takes at least three bytes: more values cannot fit. */
	if ((uint64_t)value->integer > size_max / 3)
		return bad(&scan->why, "too many values");
	if (value->integer == 0 && value->type != HX_RESP_ATTRIBUTE)
		return HX_RESP_DONE;
	if (scan->depth == HX_RESP_DEPTH_MAX)
		return bad(&scan->why, "values are nested too deeply");
	scan->left[scan->depth++] = (uint64_t)value->integer;
	return HX_RESP_DONE;
}

enum hx_resp_result hx_resp_scan(
	struct hx_resp_scan *scan, struct hapax_bytes input, size_t size_max)
{
	assert(scan->size <= input.size);
	if (scan->depth == 0 && scan->size == 0)
		scan->left[scan->depth++] = 1;
	while (scan->depth > 0) {
		uint64_t *left = &scan->left[scan->depth - 1];
		struct hx_resp_value value;
		size_t end = 0;
		enum hx_resp_result result;

		if (*left == 0) {
			scan->depth--;
			continue;
		}
		result = read_value(input, scan->size, size_max, &value, &end, &scan->why);
		if (result == HX_RESP_MORE && input.size > size_max)
			return bad(&scan->why, "the message is too long");
		if (result != HX_RESP_DONE)
			return result;
		scan->size = end;
		if (scan->size > size_max)
			return bad(&scan->why, "the message is too long");
		/* An attribute precedes a value and does not count as one. */
		*left -= value.type != HX_RESP_ATTRIBUTE;
		if (is_aggregate(value.type) && enter(scan, &value, size_max) != HX_RESP_DONE)
			return HX_RESP_BAD;
	}
	return HX_RESP_DONE;
}

bool hx_resp_next(struct hapax_bytes *rest, struct hx_resp_value *ret_value)
{
	const char *why;
	size_t size;

	for (;;) {
		if (rest->size == 0 ||
		    read_value(*rest, 0, SIZE_MAX, ret_value, &size, &why) != HX_RESP_DONE)
			return false;
		*rest = hx_bytes((const char *)rest->data + size, rest->size - size);
		if (ret_value->type != HX_RESP_ATTRIBUTE)
			return true;
		hx_resp_skip(rest, ret_value);
	}
}

void hx_resp_skip(struct hapax_bytes *rest, const struct hx_resp_value *value)
{
	uint64_t left = is_aggregate(value->type) ? (uint64_t)value->integer : 0;
	struct hx_resp_value inner;

	for (; left > 0 && hx_resp_next(rest, &inner); left--) {
		if (is_aggregate(inner.type))
			left += (uint64_t)inner.integer;
	}
}

bool hx_resp_is_error(const struct hx_resp_value *value, const char *code)
{
	size_t size = strlen(code);

	if (value->type != HX_RESP_ERROR && value->type != HX_RESP_BULK_ERROR)
		return false;
	return value->text.size >= size && memcmp(value->text.data, code, size) == 0 &&
		(value->text.size == size || ((const char *)value->text.data)[size] == ' ');
}

bool hx_resp_text(const struct hx_resp_value *value, struct hapax_bytes *ret_text)
{
	switch (value->type) {
	case HX_RESP_BULK:
	case HX_RESP_SIMPLE: *ret_text = value->text; return true;
	case HX_RESP_VERBATIM:
		*ret_text = hx_bytes((const char *)value->text.data + 4, value->text.size - 4);
		return true;
	default: return false;
	}
}

bool hx_resp_integer(const struct hx_resp_value *value, int64_t *ret_integer)
{
	struct hapax_bytes text;

	if (value->type == HX_RESP_INTEGER) {
		*ret_integer = value->integer;
		return true;
	}
	return hx_resp_text(value, &text) && hx_resp_parse_integer(text, ret_integer);
}

bool hx_resp_next_text(struct hapax_bytes *rest, struct hapax_bytes *ret_text)
{
	struct hx_resp_value value;

	return hx_resp_next(rest, &value) && hx_resp_text(&value, ret_text);
}

bool hx_resp_next_integer(struct hapax_bytes *rest, int64_t *ret_integer)
{
	struct hx_resp_value value;

	return hx_resp_next(rest, &value) && hx_resp_integer(&value, ret_integer);
}
