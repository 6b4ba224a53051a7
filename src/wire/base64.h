/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.h - Base64 (RFC 4648, 4), read strictly: with padding, without blanks, and with unused
 * bits zero, so that the same bytes always have the same text.
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
 * Decode text to out, which has room for text.size / 4 * 3 bytes and may be the text itself. *ret
 * is the number of bytes. False: *ret is the offset of the error.
 */
bool hx_base64_decode(struct hapax_bytes text, unsigned char *out, size_t *ret);

/* The number of characters for size bytes. */
static inline size_t hx_base64_size(size_t size)
{
	return (size / 3 + (size % 3 != 0)) * 4;
}

/* Write hx_base64_size() characters, without a NUL. */
void hx_base64_encode(struct hapax_bytes bytes, char *out);

/* Append the text of bytes to out. LIMIT or NO_MEMORY: nothing was appended. */
enum hapax_status hx_base64_append(struct hapax_buf *out, struct hapax_bytes bytes);

#endif
