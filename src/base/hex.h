/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hex.h - bytes as lower-case hexadecimal digits.
 *
 * There is one form only: text that decodes is encoded to the same text again.
 *
 * Threads: any.
 */
#ifndef HX_HEX_H
#define HX_HEX_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>

/* 0 to 15, or -1 when the byte is not one of 0-9a-f. */
static inline int hx_hex_digit(unsigned char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	return -1;
}

/* Writes 2 * size digits and no NUL. */
void hx_hex_encode(const void *data, size_t size, char *out);

/*
 * Writes text.size / 2 bytes. False, with out undefined, when the size is odd or a
 * byte is not one of 0-9a-f. out may be where text is.
 */
bool hx_hex_decode(struct hapax_bytes text, unsigned char *out);

#endif
