/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sfstring.h - the value of a field such as Idempotency-Key.
 *
 * The draft says that it is a String of RFC 8941, in quotes: "8e03978e-…"; parameters may follow
 * and are ignored. Most clients send it bare: 8e03978e-…. Both are the same key. A value that a
 * proxy may have joined from two fields is refused. A string in quotes is ASCII; a bare one may be
 * any UTF-8 without blanks, controls and commas.
 *
 * Threads: any.
 */
#ifndef HX_SFSTRING_H
#define HX_SFSTRING_H

#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

enum {
	/* The limit of Stripe and compatible services. */
	HX_SFSTRING_MAX = 255,
};

/*
 * Write the key, 1 to 255 bytes of UTF-8 without controls, to out, and its size to *ret_size.
 * INVALID: not a key; the message begins with "byte N: ", from 0.
 */
enum hapax_status hx_sfstring_read(
	struct hapax_bytes value, char out[HX_SFSTRING_MAX], size_t *ret_size,
	struct hapax_error *err);

#endif
