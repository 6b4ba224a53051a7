/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp.c - write the Redis protocol; parse numbers.
 */
#include "wire/resp/resp.h"

#include <string.h>

#include "base/bytes.h"

enum { HEADER_SIZE_MAX = 1 + 20 + 2 };

/* Write the digits of value before end; returns their start. */
static char *format_integer(int64_t value, char *end)
{
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		*--end = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest != 0);
	if (value < 0)
		*--end = '-';
	return end;
}

/* Write a type byte, a number and a line end; reserve room for follows more bytes. */
static enum hapax_status put_header(
	struct hapax_buf *buf, char type, int64_t number, size_t follows)
{
	char text[HEADER_SIZE_MAX];
	char *end = text + sizeof(text);
	char *begin;
	enum hapax_status status;

	*--end = '\n';
	*--end = '\r';
	begin = format_integer(number, end);
	*--begin = type;
	status = hx_buf_reserve(buf, (size_t)(text + sizeof(text) - begin) + follows);
	if (status == HAPAX_OK)
		status = hx_buf_append(buf, begin, (size_t)(text + sizeof(text) - begin));
	return status;
}

static enum hapax_status put_line(struct hapax_buf *buf, char type, const char *text, size_t size)
{
	enum hapax_status status = hx_buf_reserve(buf, size + 3);
	unsigned char *at;

	if (status != HAPAX_OK)
		return status;
	at = buf->data + buf->size;
	*at++ = (unsigned char)type;
	for (size_t i = 0; i < size; i++)
		*at++ = text[i] == '\r' || text[i] == '\n' ? ' ' : (unsigned char)text[i];
	*at++ = '\r';
	*at = '\n';
	buf->size += size + 3;
	return HAPAX_OK;
}

enum hapax_status hx_resp_put_simple(struct hapax_buf *buf, const char *text)
{
	return put_line(buf, HX_RESP_SIMPLE, text, strlen(text));
}

enum hapax_status hx_resp_put_error(struct hapax_buf *buf, const char *text)
{
	return put_line(buf, HX_RESP_ERROR, text, strlen(text));
}

enum hapax_status hx_resp_put_integer(struct hapax_buf *buf, int64_t value)
{
	return put_header(buf, HX_RESP_INTEGER, value, 0);
}

enum hapax_status hx_resp_put_bulk(struct hapax_buf *buf, struct hapax_bytes bytes)
{
	enum hapax_status status;

	if (bytes.size > INT64_MAX - 64)
		return HAPAX_ERR_LIMIT;
	status = put_header(buf, HX_RESP_BULK, (int64_t)bytes.size, bytes.size + 2);
	if (status != HAPAX_OK)
		return status;
	(void)hx_buf_append(buf, bytes.data, bytes.size);
	return hx_buf_append(buf, "\r\n", 2);
}

enum hapax_status hx_resp_put_text(struct hapax_buf *buf, const char *text)
{
	return hx_resp_put_bulk(buf, hx_bytes(text, strlen(text)));
}

enum hapax_status hx_resp_put_bulk_integer(struct hapax_buf *buf, int64_t value)
{
	char text[HX_RESP_NUMBER_SIZE_MAX];
	char *begin = format_integer(value, text + sizeof(text));

	return hx_resp_put_bulk(buf, hx_bytes(begin, (size_t)(text + sizeof(text) - begin)));
}

enum hapax_status hx_resp_put_null(struct hapax_buf *buf, int protocol)
{
	return protocol == 3 ? hx_buf_append(buf, "_\r\n", 3) : hx_buf_append(buf, "$-1\r\n", 5);
}

enum hapax_status hx_resp_put_verbatim(struct hapax_buf *buf, struct hapax_bytes text, int protocol)
{
	enum hapax_status status;

	if (protocol != 3)
		return hx_resp_put_bulk(buf, text);
	if (text.size > INT64_MAX - 64)
		return HAPAX_ERR_LIMIT;
	status = put_header(buf, HX_RESP_VERBATIM, (int64_t)text.size + 4, text.size + 6);
	if (status != HAPAX_OK)
		return status;
	(void)hx_buf_append(buf, "txt:", 4);
	(void)hx_buf_append(buf, text.data, text.size);
	return hx_buf_append(buf, "\r\n", 2);
}

enum hapax_status hx_resp_put_array(struct hapax_buf *buf, size_t count)
{
	return put_header(buf, HX_RESP_ARRAY, (int64_t)count, 0);
}

enum hapax_status hx_resp_put_map(struct hapax_buf *buf, size_t count, int protocol)
{
	if (protocol == 3)
		return put_header(buf, HX_RESP_MAP, (int64_t)count, 0);
	return hx_resp_put_array(buf, 2 * count);
}

enum hapax_status hx_resp_put_set(struct hapax_buf *buf, size_t count, int protocol)
{
	return put_header(buf, protocol == 3 ? HX_RESP_SET : HX_RESP_ARRAY, (int64_t)count, 0);
}

bool hx_resp_parse_integer(struct hapax_bytes text, int64_t *ret_value)
{
	const char *at = text.data;
	bool is_negative = text.size > 0 && at[0] == '-';
	size_t size = text.size - is_negative;
	uint64_t limit = (uint64_t)INT64_MAX + is_negative;
	uint64_t value = 0;

	/* Not for an empty text, whose data may be NULL. */
	if (is_negative)
		at++;
	if (size == 0 || size > 19 || (at[0] == '0' && (size > 1 || is_negative)))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (at[i] < '0' || at[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(at[i] - '0');
	}
	if (value > limit)
		return false;
	*ret_value = is_negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}
