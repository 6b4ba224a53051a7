/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/percent.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/http1/http1_text.h"

/* The byte at *at, decoded; *at moves to its last character. -1: malformed percent sign. */
static int next_byte(struct hapax_bytes text, size_t *at)
{
	const unsigned char *data = text.data;
	int high, low;

	if (data[*at] != '%')
		return data[*at];
	high = text.size - *at > 2 ? hx_http1_hex(data[*at + 1]) : -1;
	low = text.size - *at > 2 ? hx_http1_hex(data[*at + 2]) : -1;
	if (high < 0 || low < 0)
		return -1;
	*at += 2;
	return high << 4 | low;
}

bool hx_percent_decode(struct hapax_bytes text, unsigned char *out, size_t *ret)
{
	size_t size = 0;

	for (size_t at = 0; at < text.size; at++) {
		int byte = next_byte(text, &at);

		if (byte < 0) {
			*ret = at;
			return false;
		}
		out[size++] = (unsigned char)byte;
	}
	*ret = size;
	return true;
}

bool hx_percent_decode_text(const char *text, size_t size, char *out, size_t out_size)
{
	size_t held = 0;

	for (size_t at = 0; at < size; at++) {
		int byte = next_byte(hx_bytes(text, size), &at);

		if (byte <= 0 || held + 1 >= out_size)
			return false;
		out[held++] = (char)byte;
	}
	out[held] = '\0';
	return true;
}

static bool is_unreserved(unsigned char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' ||
		byte == '~';
}

enum hapax_status hx_percent_encode(struct hapax_buf *out, struct hapax_bytes bytes)
{
	static const char digits[] = "0123456789ABCDEF";
	const unsigned char *data = bytes.data;
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < bytes.size && status == HAPAX_OK; i++) {
		const char three[3] = {'%', digits[data[i] >> 4], digits[data[i] & 15]};

		status = is_unreserved(data[i]) ? hx_buf_append_byte(out, data[i])
						: hx_buf_append(out, three, sizeof(three));
	}
	return status;
}

size_t hx_percent_normalize(struct hapax_bytes path, char *out)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *data = path.data;
	size_t size = 0;

	for (size_t at = 0; at < path.size; at++) {
		bool is_encoded = data[at] == '%';
		int byte = next_byte(path, &at);

		if (!is_encoded || byte < 0) {
			out[size++] = data[at];
		} else if (is_unreserved((unsigned char)byte)) {
			out[size++] = (char)byte;
		} else {
			out[size++] = '%';
			out[size++] = digits[byte >> 4];
			out[size++] = digits[byte & 15];
		}
	}
	return size;
}

bool hx_percent_query_next(
	struct hapax_bytes *query, struct hapax_bytes *ret_name, struct hapax_bytes *ret_value)
{
	const char *data = query->data;
	const char *end, *equals;
	size_t size;

	/* "a=1&&b=2": skip empty members. */
	while (query->size > 0 && data[0] == '&') {
		data++;
		*query = hx_bytes(data, query->size - 1);
	}
	if (query->size == 0)
		return false;
	end = memchr(data, '&', query->size);
	size = end == NULL ? query->size : (size_t)(end - data);
	equals = memchr(data, '=', size);
	*ret_name = hx_bytes(data, equals == NULL ? size : (size_t)(equals - data));
	*ret_value = equals == NULL ? hx_bytes(NULL, 0)
				    : hx_bytes(equals + 1, (size_t)(data + size - equals - 1));
	/* Skip the separator: a caller may decode the value in place and put a NUL there. */
	if (end != NULL)
		size++;
	*query = hx_bytes(data + size, query->size - size);
	return true;
}
