/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <openssl/evp.h>

bool hx_sha1(const void *data, size_t size, unsigned char out[HX_SHA1_SIZE])
{
	return EVP_Digest(size == 0 ? "" : data, size, out, NULL, EVP_sha1(), NULL) == 1;
}
