/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/bearer.h"

#include <stddef.h>

#include "base/bytes.h"
#include "wire/http1/http1_text.h"

static bool is_token_byte(unsigned char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' ||
		byte == '~' || byte == '+' || byte == '/';
}

/* token68 of RFC 9110, 11.2. */
static bool is_token(struct hapax_bytes text)
{
	const unsigned char *at = text.data;
	const unsigned char *end = at + text.size;
	const unsigned char *begin = at;

	while (at < end && is_token_byte(*at))
		at++;
	if (at == begin)
		return false;
	while (at < end && *at == '=')
		at++;
	return at == end;
}

bool hx_bearer_read(struct hapax_bytes value, struct hapax_bytes *ret_token)
{
	static const struct hapax_bytes scheme = HX_BYTES_LIT("Bearer");
	const unsigned char *data = value.data;
	size_t at = scheme.size;

	if (value.size <= scheme.size || value.size > HX_BEARER_SIZE_MAX + 16 ||
	    !hx_http1_text_equal(hx_bytes(data, scheme.size), scheme) || data[at] != ' ')
		return false;
	while (at < value.size && data[at] == ' ')
		at++;
	if (value.size - at > HX_BEARER_SIZE_MAX || !is_token(hx_bytes(data + at, value.size - at)))
		return false;
	*ret_token = hx_bytes(data + at, value.size - at);
	return true;
}
