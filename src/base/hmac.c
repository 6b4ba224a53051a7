/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hmac.c - HMAC with SHA-256 and SHA-1.
 *
 * SHA-256 with the functions of libcrypto that sha256.c uses for bytes at hand, for the same reason: they
 * keep their state on the stack and cannot fail, so that no caller has to decide what an
 * unsigned line or an unchecked signature would mean.
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "base/hmac.h"

#include <assert.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <string.h>

enum { BLOCK_SIZE = SHA256_CBLOCK };

_Static_assert((int)HX_HMAC_KEY_SIZE == (int)BLOCK_SIZE, "a key fills a block");

static void begin(SHA256_CTX *context, const unsigned char key[BLOCK_SIZE], unsigned char pad)
{
	unsigned char block[BLOCK_SIZE];
	int ok;

	for (size_t i = 0; i < BLOCK_SIZE; i++)
		block[i] = key[i] ^ pad;
	ok = SHA256_Init(context) & SHA256_Update(context, block, BLOCK_SIZE);
	assert(ok == 1);
	OPENSSL_cleanse(block, sizeof(block));
}

void hx_hmac_key(struct hapax_bytes key, unsigned char out[HX_HMAC_KEY_SIZE])
{
	memset(out, 0, HX_HMAC_KEY_SIZE);
	if (key.size > HX_HMAC_KEY_SIZE)
		hx_sha256(key.data, key.size, out);
	else if (key.size > 0)
		memcpy(out, key.data, key.size);
}

void hx_hmac_sha256(
	struct hapax_bytes key, const struct hapax_bytes *parts, size_t part_count,
	unsigned char out[HX_SHA256_SIZE])
{
	unsigned char block[BLOCK_SIZE];
	SHA256_CTX context;
	int ok = 1;

	hx_hmac_key(key, block);
	begin(&context, block, 0x36);
	for (size_t i = 0; i < part_count; i++)
		ok &= SHA256_Update(&context, parts[i].data, parts[i].size);
	ok &= SHA256_Final(out, &context);
	begin(&context, block, 0x5c);
	ok &= SHA256_Update(&context, out, HX_SHA256_SIZE);
	ok &= SHA256_Final(out, &context);
	assert(ok == 1);
	OPENSSL_cleanse(block, sizeof(block));
}

bool hx_hmac_sha1(struct hapax_bytes key, struct hapax_bytes data, unsigned char out[HX_SHA1_SIZE])
{
	if (key.size > INT_MAX)
		return false;
	return HMAC(EVP_sha1(), key.size == 0 ? "" : key.data, (int)key.size, data.data, data.size,
		    out, NULL) != NULL;
}
