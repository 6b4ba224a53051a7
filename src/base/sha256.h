/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 by libcrypto: fingerprints and content keys.
 *
 * hx_sha256() is for bytes in one piece. struct hx_sha256 takes them piece by piece; keep it, since
 * begin starts over without allocating.
 *
 * Threads: hx_sha256() any; a struct hx_sha256 one at a time.
 */
#ifndef HX_SHA256_H
#define HX_SHA256_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/error.h>

enum { HX_SHA256_SIZE = 32 };

struct hx_sha256 {
	void *context; /* EVP_MD_CTX; NULL before init and after done */
};

/* Allocates once and begins the first digest. NO_MEMORY. */
enum hapax_status hx_sha256_init(struct hx_sha256 *sha);

/* Works on a struct of zeros, and twice. */
void hx_sha256_done(struct hx_sha256 *sha);

/* Drop the input so far and begin again. hx_sha256_final() does it by itself. */
void hx_sha256_reset(struct hx_sha256 *sha);

/* data may be NULL when size is 0. */
void hx_sha256_update(struct hx_sha256 *sha, const void *data, size_t size);

/* Write the digest and begin the next one. */
void hx_sha256_final(struct hx_sha256 *sha, unsigned char out[HX_SHA256_SIZE]);

/* The digest of data, which may be NULL when size is 0. */
void hx_sha256(const void *data, size_t size, unsigned char out[HX_SHA256_SIZE]);

/* For digests of secrets: takes constant time. */
bool hx_sha256_equal(const unsigned char a[HX_SHA256_SIZE], const unsigned char b[HX_SHA256_SIZE]);

#endif
