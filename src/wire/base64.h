/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.h - read Base64 (RFC 4648, 4), strictly: with its padding, without blanks, and
 * with zeros where the last character has bits to spare, so that bytes have one text.
 *
 * Threads: any.
 */
#ifndef HX_BASE64_H
#define HX_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>

/*
 * Write the bytes to out, which has room for text.size / 4 * 3; it may be the text
 * itself. False: *ret is the offset of what is wrong, else the number of bytes.
 */
bool hx_base64_decode(struct hapax_bytes text, unsigned char *out, size_t *ret);

#endif
