/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hmac.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/hex.h"

/* RFC 4231, cases 1, 2 and 6; and nothing at all. */
static const struct {
	unsigned char fill; /* of the key; 0: key is its text */
	size_t size;
	const char *key;
	const char *message;
	const char *digest;
} vectors[] = {
	{0x0b, 20, NULL, "Hi There",
	 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
	{0, 4, "Jefe", "what do ya want for nothing?",
	 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	{0xaa, 131, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
	 "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	{0, 0, "", "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
};

static void published_vectors_in_any_parts(void **state)
{
	unsigned char digest[HX_SHA256_SIZE];
	char text[2 * HX_SHA256_SIZE + 1] = "";
	unsigned char key[256];

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		size_t size = strlen(vectors[i].message);

		memset(key, vectors[i].fill, sizeof(key));
		if (vectors[i].key != NULL)
			memcpy(key, vectors[i].key, vectors[i].size);
		for (size_t cut = 0; cut <= size; cut++) {
			const struct hapax_bytes parts[] = {
				hx_bytes(vectors[i].message, cut),
				hx_bytes(vectors[i].message + cut, size - cut)};

			hx_hmac_sha256(hx_bytes(key, vectors[i].size), parts, 2, digest);
			hx_hex_encode(digest, HX_SHA256_SIZE, text);
			assert_string_equal(text, vectors[i].digest);
		}
	}
}

/* RFC 2202, cases 1, 2 and 6. */
static void published_vectors_of_sha1(void **state)
{
	static const char *const digests[] = {
		"b617318655057264e28bc0b6fb378c8ef146be00",
		"effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
		"aa4ae5e15272d00e95705637ce8a3b55ed402112",
	};
	unsigned char digest[HX_SHA1_SIZE];
	char text[2 * HX_SHA1_SIZE + 1] = "";
	unsigned char key[256];

	(void)state;
	for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++) {
		/* The longest key of that document is shorter. */
		size_t size = i == 2 ? 80 : vectors[i].size;

		memset(key, vectors[i].fill, sizeof(key));
		if (vectors[i].key != NULL)
			memcpy(key, vectors[i].key, size);
		assert_true(hx_hmac_sha1(
			hx_bytes(key, size), hapax_bytes_from_text(vectors[i].message), digest));
		hx_hex_encode(digest, HX_SHA1_SIZE, text);
		assert_string_equal(text, digests[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors_in_any_parts),
		cmocka_unit_test(published_vectors_of_sha1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
