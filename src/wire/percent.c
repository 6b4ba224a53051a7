/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/percent.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/http1_text.h"

bool hx_percent_decode(struct hapax_bytes text, unsigned char *out, size_t *ret)
{
	const unsigned char *data = text.data;
	size_t size = 0;

	for (size_t at = 0; at < text.size; at++) {
		unsigned char byte = data[at];

		if (byte == '%') {
			int high = at + 2 < text.size ? hx_http1_hex(data[at + 1]) : -1;
			int low = at + 2 < text.size ? hx_http1_hex(data[at + 2]) : -1;

			if (high < 0 || low < 0) {
				*ret = at;
				return false;
			}
			byte = (unsigned char)(high << 4 | low);
			at += 2;
		}
		out[size++] = byte;
	}
	*ret = size;
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

bool hx_query_next(
	struct hapax_bytes *query, struct hapax_bytes *ret_name, struct hapax_bytes *ret_value)
{
	const char *data = query->data;
	const char *end, *equals;
	size_t size;

	/* "a=1&&b=2": what is empty is nothing. */
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
	*query = hx_bytes(data + size, query->size - size);
	return true;
}
