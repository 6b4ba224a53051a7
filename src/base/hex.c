/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hex.c - bytes as lower-case hexadecimal digits.
 */
#include "base/hex.h"

void hx_hex_encode(const void *data, size_t size, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
}

bool hx_hex_decode(struct hapax_bytes text, unsigned char *out)
{
	const unsigned char *digits = text.data;

	if (text.size % 2 != 0)
		return false;
	for (size_t i = 0; i < text.size / 2; i++) {
		int high = hx_hex_digit(digits[2 * i]);
		int low = hx_hex_digit(digits[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}
