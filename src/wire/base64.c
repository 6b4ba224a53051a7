/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.c - decode and encode Base64.
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

/* Decode the last group; count, 2 or 3, characters of it are not padding. */
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
	/* Nonzero unused bits would be a second text for the same bytes. */
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

void hx_base64_encode(struct hapax_bytes bytes, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
	enum { PADDING = 64 };
	const unsigned char *data = bytes.data;

	for (size_t at = 0; at < bytes.size; at += 3) {
		size_t left = bytes.size - at;
		uint32_t word = (uint32_t)data[at] << 16;

		if (left > 1)
			word |= (uint32_t)data[at + 1] << 8;
		if (left > 2)
			word |= data[at + 2];
		*out++ = digits[word >> 18];
		*out++ = digits[word >> 12 & 63];
		*out++ = digits[left > 1 ? word >> 6 & 63 : PADDING];
		*out++ = digits[left > 2 ? word & 63 : PADDING];
	}
}

enum hapax_status hx_base64_append(struct hapax_buf *out, struct hapax_bytes bytes)
{
	enum hapax_status status;

	if (bytes.size > SIZE_MAX / 2)
		return HAPAX_ERR_LIMIT;
	status = hx_buf_reserve(out, hx_base64_size(bytes.size));
	/* The data of an empty buffer may be NULL. */
	if (status != HAPAX_OK || bytes.size == 0)
		return status;
	hx_base64_encode(bytes, (char *)out->data + out->size);
	out->size += hx_base64_size(bytes.size);
	return HAPAX_OK;
}
