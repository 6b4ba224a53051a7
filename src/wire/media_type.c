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

/* ";q=0", ";q=0.0": it is named to be refused. */
static bool is_refused(struct hapax_bytes element)
{
	const char *at = element.data;
	size_t size = element.size;

	for (size_t i = 0; i + 3 < size; i++) {
		if (at[i] != ';')
			continue;
		for (i++; i < size && hx_http1_is_blank((unsigned char)at[i]); i++)
			continue;
		if (i + 2 >= size || (at[i] != 'q' && at[i] != 'Q') || at[i + 1] != '=')
			continue;
		for (i += 2; i < size && (at[i] == '0' || at[i] == '.'); i++)
			continue;
		return i == size || !hx_http1_is_digit((unsigned char)at[i]);
	}
	return false;
}

bool hx_media_type_accepts_json(struct hapax_bytes accept)
{
	struct hapax_bytes element;

	while (hx_http1_list_next(&accept, &element)) {
		struct hapax_bytes type = hx_media_type_essence(element);

		/* Not every +json: a client that asks for a CloudEvent does not want this. */
		if ((hx_http1_text_equal(type, HX_BYTES_LIT("application/json")) ||
		     hx_http1_text_equal(type, HX_BYTES_LIT("text/json"))) &&
		    !is_refused(element))
			return true;
	}
	return false;
}
