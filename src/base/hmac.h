/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hmac.h - HMAC (RFC 2104): a digest that only holders of a key can make. With SHA-256; with SHA-1
 * only for senders that use nothing newer, whose HMAC is not known to be broken.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_HMAC_H
#define HX_HMAC_H

#include <stdbool.h>

#include <hapax/bytes.h>

#include "base/sha1.h"
#include "base/sha256.h"

/* A key of any size in this many bytes is the same key. */
enum { HX_HMAC_KEY_SIZE = 64 };

void hx_hmac_key(struct hapax_bytes key, unsigned char out[HX_HMAC_KEY_SIZE]);

/* Of the parts as if they stood in one piece. Cannot fail. */
void hx_hmac_sha256(
	struct hapax_bytes key, const struct hapax_bytes *parts, size_t part_count,
	unsigned char out[HX_SHA256_SIZE]);

/* False: SHA-1 is not available on this machine, or out of memory. */
bool hx_hmac_sha1(struct hapax_bytes key, struct hapax_bytes data, unsigned char out[HX_SHA1_SIZE]);

#endif
