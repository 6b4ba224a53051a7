/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.c - Base64 to bytes, and back.
 */
#include "wire/base64.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/checked.h"

/* The six bits of a character, or -1. */
static int sextet(unsigned char byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return byte - 'A';
	if (byte >= 'a' && byte <= 'z')
		return byte - 'a' + 26;
	if (byte >= '0' && byte <= '9')
		return byte - '0' + 52;
	if (byte == '+')
		return 62;
	return byte == '/' ? 63 : -1;
}

/* The last characters, of which count are not padding; 2 or 3 of them. */
static bool decode_rest(const unsigned char *at, size_t count, unsigned char *out, size_t *ret_bad)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < count; i++) {
		int value = sextet(at[i]);

		*ret_bad = i;
		if (value < 0)
			return false;
		bits |= (uint32_t)value << (18 - 6 * i);
	}
	/* Bits behind the last byte would be a second text for the same bytes. */
	if ((bits & (count == 2 ? 0xffffU : 0xffU)) != 0)
		return false;
	for (size_t i = 0; i + 1 < count; i++)
		out[i] = (unsigned char)(bits >> (16 - 8 * i));
	return true;
}

bool hx_base64_decode(struct hapax_bytes text, unsigned char *out, size_t *ret)
{
	const unsigned char *at = text.data;
	size_t padding = 0;
	size_t whole;
	size_t made = 0;

	if (text.size % 4 != 0) {
		*ret = text.size;
		return false;
	}
	if (text.size > 0)
		padding = at[text.size - 1] != '=' ? 0 : at[text.size - 2] != '=' ? 1 : 2;
	whole = text.size / 4 - (padding > 0);
	for (size_t i = 0; i < whole; i++) {
		uint32_t bits = 0;

		for (size_t k = 0; k < 4; k++) {
			int value = sextet(at[4 * i + k]);

			if (value < 0) {
				*ret = 4 * i + k;
				return false;
			}
			bits = bits << 6 | (uint32_t)value;
		}
		out[made++] = (unsigned char)(bits >> 16);
		out[made++] = (unsigned char)(bits >> 8);
		out[made++] = (unsigned char)bits;
	}
	if (padding > 0) {
		size_t bad;

		if (!decode_rest(at + 4 * whole, 4 - padding, out + made, &bad)) {
			*ret = 4 * whole + bad;
			return false;
		}
		made += 3 - padding;
	}
	*ret = made;
	return true;
}

enum hapax_status hx_base64_append(struct hapax_buf *out, struct hapax_bytes bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = bytes.data;
	enum hapax_status status;
	unsigned char *to;
	size_t size;

	if (hx_add_size(bytes.size, 2, &size) || hx_mul_size(size / 3, 4, &size))
		return HAPAX_ERR_LIMIT;
	status = hx_buf_reserve(out, size);
	if (status != HAPAX_OK)
		return status;
	to = out->data + out->size;
	for (size_t i = 0; i < bytes.size; i += 3) {
		size_t left = bytes.size - i;
		unsigned group = (unsigned)at[i] << 16 | (left > 1 ? (unsigned)at[i + 1] << 8 : 0) |
			(left > 2 ? at[i + 2] : 0U);

		*to++ = (unsigned char)digits[group >> 18];
		*to++ = (unsigned char)digits[group >> 12 & 63];
		*to++ = left > 1 ? (unsigned char)digits[group >> 6 & 63] : '=';
		*to++ = left > 2 ? (unsigned char)digits[group & 63] : '=';
	}
	out->size += size;
	return HAPAX_OK;
}
