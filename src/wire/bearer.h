/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bearer.h - the value of Authorization with a bearer token (RFC 6750, 2.1).
 *
 * Threads: any.
 */
#ifndef HX_WIRE_BEARER_H
#define HX_WIRE_BEARER_H

#include <stdbool.h>

#include <hapax/bytes.h>

/* Longer than any token created here; longer ones are refused unread. */
enum { HX_BEARER_SIZE_MAX = 1024 };

/*
 * The token of "Bearer TOKEN", with the word in either case. False: it is another scheme, or not
 * followed by one token of letters, digits and -._~+/ with = at its end. *ret_token points into
 * value.
 */
bool hx_bearer_read(struct hapax_bytes value, struct hapax_bytes *ret_token);

#endif
