/* SPDX-License-Identifier: Apache-2.0 */
/*
 * media_type.c - the parts of a Content-Type.
 */
#include "wire/media_type.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/http1/http1_text.h"

struct hapax_bytes hx_media_type_essence(struct hapax_bytes value)
{
	const unsigned char *semicolon =
		value.size == 0 ? NULL : memchr(value.data, ';', value.size);

	if (semicolon != NULL)
		value.size = (size_t)(semicolon - (const unsigned char *)value.data);
	return hx_http1_trim(value);
}

bool hx_media_type_is_valid(struct hapax_bytes value)
{
	struct hapax_bytes essence = hx_media_type_essence(value);
	const unsigned char *at = essence.data;
	const unsigned char *slash = essence.size == 0 ? NULL : memchr(at, '/', essence.size);
	size_t type;

	if (slash == NULL)
		return false;
	type = (size_t)(slash - at);
	return hx_http1_is_token(hx_bytes(at, type)) &&
		hx_http1_is_token(hx_bytes(slash + 1, essence.size - type - 1));
}

bool hx_media_type_is_json(struct hapax_bytes value)
{
	struct hapax_bytes essence = hx_media_type_essence(value);
	const unsigned char *end;

	if (essence.size < 6 || !hx_media_type_is_valid(essence))
		return false;
	end = (const unsigned char *)essence.data + essence.size;
	return (end[-5] == '/' || end[-5] == '+') &&
		hx_http1_text_equal(hx_bytes(end - 4, 4), HX_BYTES_LIT("json"));
}

/* One parameter off the front of rest, which begins behind a semicolon. */
static struct hapax_bytes next_parameter(struct hapax_bytes *rest)
{
	const unsigned char *at = rest->data;
	bool quoted = false;
	size_t size = 0;

	while (size < rest->size && (quoted || at[size] != ';')) {
		if (at[size] == '"')
			quoted = !quoted;
		if (at[size] == '\\' && quoted && size + 1 < rest->size)
			size++;
		size++;
	}
	*rest = size < rest->size ? hx_bytes(at + size + 1, rest->size - size - 1)
				  : hx_bytes(NULL, 0);
	return hx_http1_trim(hx_bytes(at, size));
}

struct hapax_bytes hx_media_type_charset(struct hapax_bytes value)
{
	const struct hapax_bytes name = HX_BYTES_LIT("charset=");
	struct hapax_bytes rest = value;

	(void)next_parameter(&rest);
	while (rest.size > 0) {
		struct hapax_bytes parameter = next_parameter(&rest);
		const unsigned char *at = parameter.data;
		size_t size = parameter.size - name.size;

		if (parameter.size <= name.size ||
		    !hx_http1_text_equal(hx_bytes(at, name.size), name))
			continue;
		at += name.size;
		if (size >= 2 && at[0] == '"' && at[size - 1] == '"')
			return hx_bytes(at + 1, size - 2);
		return hx_bytes(at, size);
	}
	return hx_bytes(NULL, 0);
}

unsigned hx_media_type_weight(struct hapax_bytes element)
{
	const unsigned char *at = element.data;
	unsigned result = 0;
	unsigned scale = 1000;

	for (size_t i = 0; i + 2 < element.size; i++) {
		bool begins = i > 0 && (at[i - 1] == ';' || hx_http1_is_blank(at[i - 1]));

		if (!begins || (at[i] != 'q' && at[i] != 'Q') || at[i + 1] != '=')
			continue;
		for (size_t k = i + 2; k < element.size && scale > 0; k++) {
			if (at[k] == '.')
				continue;
			if (!hx_http1_is_digit(at[k]))
				break;
			result += scale * (unsigned)(at[k] - '0');
			scale /= 10;
		}
		return result > 1000 ? 1000 : result;
	}
	return 1000;
}

bool hx_media_type_accepts_json(struct hapax_bytes accept)
{
	struct hapax_bytes element;

	while (hx_http1_list_next(&accept, &element)) {
		struct hapax_bytes type = hx_media_type_essence(element);

		/* Not every +json: a client that asks for a CloudEvent does not want this. */
		if ((hx_http1_text_equal(type, HX_BYTES_LIT("application/json")) ||
		     hx_http1_text_equal(type, HX_BYTES_LIT("text/json"))) &&
		    hx_media_type_weight(element) > 0)
			return true;
	}
	return false;
}
