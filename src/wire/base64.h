/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.h - Base64 (RFC 4648, 4), read strictly: with its padding, without blanks, and
 * with zeros where the last character has bits to spare, so that bytes have one text.
 *
 * Threads: any.
 */
#ifndef HX_BASE64_H
#define HX_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

/*
 * Write the bytes to out, which has room for text.size / 4 * 3; it may be the text
 * itself. False: *ret is the offset of what is wrong, else the number of bytes.
 */
bool hx_base64_decode(struct hapax_bytes text, unsigned char *out, size_t *ret);

/* The characters that so many bytes take. */
static inline size_t hx_base64_size(size_t size)
{
	return (size / 3 + (size % 3 != 0)) * 4;
}

/* Write hx_base64_size() characters and no NUL. */
void hx_base64_encode(struct hapax_bytes bytes, char *out);

/* Append the text of bytes to out. LIMIT or NO_MEMORY: nothing was appended. */
enum hapax_status hx_base64_append(struct hapax_buf *out, struct hapax_bytes bytes);

#endif
