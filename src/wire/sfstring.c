/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sfstring.c - the value of a field such as Idempotency-Key: Items of RFC 8941, 3.3.
 */
#include "wire/sfstring.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "wire/http1/http1_text.h"

struct cursor {
	const unsigned char *begin;
	const unsigned char *at;
	const unsigned char *end;
	const char *reason; /* set by what returns false */
};

static bool sfstring_refuse(struct cursor *cursor, const char *reason)
{
	cursor->reason = reason;
	return false;
}

static bool is_at(const struct cursor *cursor, unsigned char byte)
{
	return cursor->at < cursor->end && *cursor->at == byte;
}

static void skip_blanks(struct cursor *cursor)
{
	while (is_at(cursor, ' '))
		cursor->at++;
}

static bool is_lower(unsigned char byte)
{
	return byte >= 'a' && byte <= 'z';
}

static bool is_letter(unsigned char byte)
{
	return is_lower(byte) || (byte >= 'A' && byte <= 'Z');
}

/* Behind the opening quote, up to behind the closing one; out NULL: only checked. */
static bool read_string(struct cursor *cursor, char *out, size_t *ret_size)
{
	size_t size = 0;

	for (; cursor->at < cursor->end && *cursor->at != '"'; cursor->at++) {
		if (*cursor->at == '\\') {
			cursor->at++;
			if (!is_at(cursor, '"') && !is_at(cursor, '\\'))
				return sfstring_refuse(cursor, "only \\\" and \\\\ are escapes");
		}
		if (*cursor->at < 0x20 || *cursor->at > 0x7e)
			return sfstring_refuse(cursor, "not printable ASCII");
		if (out != NULL && size == HX_SFSTRING_MAX)
			return sfstring_refuse(cursor, "it is longer than 255 characters");
		if (out != NULL)
			out[size] = (char)*cursor->at;
		size++;
	}
	if (cursor->at == cursor->end)
		return sfstring_refuse(cursor, "the closing quote is missing");
	cursor->at++;
	*ret_size = size;
	return true;
}

/* Integer, Decimal; of Date (RFC 9651) the part behind the @. */
static bool skip_number(struct cursor *cursor)
{
	size_t digits = 0;
	size_t fraction = 0;

	if (is_at(cursor, '-'))
		cursor->at++;
	for (; cursor->at < cursor->end && hx_http1_is_digit(*cursor->at); cursor->at++)
		digits++;
	if (digits == 0 || digits > 15)
		return sfstring_refuse(cursor, "a number has 1 to 15 digits");
	if (!is_at(cursor, '.'))
		return true;
	cursor->at++;
	for (; cursor->at < cursor->end && hx_http1_is_digit(*cursor->at); cursor->at++)
		fraction++;
	if (fraction == 0 || fraction > 3 || digits > 12)
		return sfstring_refuse(cursor, "a decimal has 1 to 12 and 1 to 3 digits");
	return true;
}

static bool skip_token(struct cursor *cursor)
{
	cursor->at++;
	while (cursor->at < cursor->end &&
	       (hx_http1_is(*cursor->at, HX_HTTP1_TOKEN) || *cursor->at == ':' ||
		*cursor->at == '/'))
		cursor->at++;
	return true;
}

/* The characters are not checked: these bytes are not used. */
static bool skip_bytes(struct cursor *cursor)
{
	cursor->at++;
	while (cursor->at < cursor->end &&
	       (is_letter(*cursor->at) || hx_http1_is_digit(*cursor->at) || *cursor->at == '+' ||
		*cursor->at == '/' || *cursor->at == '='))
		cursor->at++;
	if (!is_at(cursor, ':'))
		return sfstring_refuse(cursor, "the byte sequence should end here");
	cursor->at++;
	return true;
}

static bool skip_boolean(struct cursor *cursor)
{
	cursor->at++;
	if (!is_at(cursor, '0') && !is_at(cursor, '1'))
		return sfstring_refuse(cursor, "a boolean is \?0 or \?1");
	cursor->at++;
	return true;
}

static bool skip_item(struct cursor *cursor)
{
	size_t size;

	if (cursor->at == cursor->end)
		return sfstring_refuse(cursor, "a value is missing");
	switch (*cursor->at) {
	case '"': cursor->at++; return read_string(cursor, NULL, &size);
	case ':': return skip_bytes(cursor);
	case '?': return skip_boolean(cursor);
	case '@': cursor->at++; return skip_number(cursor);
	default: break;
	}
	if (*cursor->at == '-' || hx_http1_is_digit(*cursor->at))
		return skip_number(cursor);
	if (*cursor->at == '*' || is_letter(*cursor->at))
		return skip_token(cursor);
	return sfstring_refuse(cursor, "this is not a value");
}

/* *( ";" *SP key [ "=" value ] ) */
static bool skip_parameters(struct cursor *cursor)
{
	while (is_at(cursor, ';')) {
		cursor->at++;
		skip_blanks(cursor);
		if (cursor->at == cursor->end || (!is_lower(*cursor->at) && *cursor->at != '*'))
			return sfstring_refuse(cursor, "a parameter needs a name");
		while (cursor->at < cursor->end &&
		       (is_lower(*cursor->at) || hx_http1_is_digit(*cursor->at) ||
			memchr("_-.*", *cursor->at, 4) != NULL))
			cursor->at++;
		if (!is_at(cursor, '='))
			continue;
		cursor->at++;
		if (!skip_item(cursor))
			return false;
	}
	return true;
}

static bool read_quoted(struct cursor *cursor, char *out, size_t *ret_size)
{
	cursor->at++;
	if (!read_string(cursor, out, ret_size))
		return false;
	if (*ret_size == 0)
		return sfstring_refuse(cursor, "it is empty");
	if (!skip_parameters(cursor))
		return false;
	if (cursor->at != cursor->end)
		return sfstring_refuse(cursor, "only parameters may follow the string");
	return true;
}

/* The size of the character at the front, if a bare key may contain it; else 0. */
static size_t bare_size(struct cursor *cursor)
{
	struct hapax_bytes rest = {cursor->at, (size_t)(cursor->end - cursor->at)};
	uint32_t code;
	size_t size = hx_utf8_size(rest, &code);

	if (size == 0)
		(void)sfstring_refuse(cursor, "not UTF-8");
	else if (code <= ' ' || hx_utf8_is_control(code))
		(void)sfstring_refuse(
			cursor,
			"a space or control character must be in quotes, or is not "
			"allowed");
	/* It may be two fields, joined by a proxy, or one. In quotes there is no doubt. */
	else if (code == ',')
		(void)sfstring_refuse(cursor, "a value with a comma must be in quotes");
	else
		return size;
	return 0;
}

static bool read_bare(struct cursor *cursor, char *out, size_t *ret_size)
{
	size_t size = 0;

	while (cursor->at < cursor->end) {
		size_t step = bare_size(cursor);

		if (step == 0)
			return false;
		if (size + step > HX_SFSTRING_MAX)
			return sfstring_refuse(cursor, "it is longer than 255 bytes");
		memcpy(out + size, cursor->at, step);
		cursor->at += step;
		size += step;
	}
	*ret_size = size;
	return true;
}

enum hapax_status hx_sfstring_read(
	struct hapax_bytes value, char out[HX_SFSTRING_MAX], size_t *ret_size,
	struct hapax_error *err)
{
	struct hapax_bytes text = hx_http1_trim(value);
	struct cursor cursor = {value.data, text.data, NULL, NULL};
	char key[HX_SFSTRING_MAX];
	size_t size;
	bool good;

	if (text.size == 0)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "byte 0: it is empty");
	cursor.end = cursor.at + text.size;
	if (*cursor.at == '"')
		good = read_quoted(&cursor, key, &size);
	else
		good = read_bare(&cursor, key, &size);
	if (!good)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "byte %zu: %s",
			(size_t)(cursor.at - cursor.begin), cursor.reason);
	memcpy(out, key, size);
	*ret_size = size;
	return HAPAX_OK;
}
