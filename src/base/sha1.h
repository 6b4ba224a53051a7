/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha1.h - SHA-1, only because clients of Redis name scripts by it. Nothing is secured
 * with it; see hmac.h for the one exception.
 *
 * Threads: any.
 */
#ifndef HX_SHA1_H
#define HX_SHA1_H

#include <stdbool.h>
#include <stddef.h>

enum { HX_SHA1_SIZE = 20 };

/* data may be NULL when size is 0. False: not available on this machine, or out of memory. */
bool hx_sha1(const void *data, size_t size, unsigned char out[HX_SHA1_SIZE]);

#endif
