/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/hex.h"
#include "base/random.h"

/* FIPS 180-4 examples, and the empty message. */
static const struct {
	const char *message;
	const char *digest;
} vectors[] = {
	{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
	 "lmnopqrsmnopqrstnopqrstu",
	 "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

static const char million_digest[] =
	"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

static void assert_digest(const unsigned char digest[HX_SHA256_SIZE], const char *expected)
{
	char text[2 * HX_SHA256_SIZE + 1] = "";

	hx_hex_encode(digest, HX_SHA256_SIZE, text);
	assert_string_equal(text, expected);
}

static void published_vectors(void **state)
{
	unsigned char digest[HX_SHA256_SIZE];
	struct hx_sha256 sha;

	(void)state;
	assert_int_equal(hx_sha256_init(&sha), HAPAX_OK);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		hx_sha256(vectors[i].message, strlen(vectors[i].message), digest);
		assert_digest(digest, vectors[i].digest);
		hx_sha256_update(&sha, vectors[i].message, strlen(vectors[i].message));
		hx_sha256_final(&sha, digest);
		assert_digest(digest, vectors[i].digest);
	}
	hx_sha256_done(&sha);
}

static void a_million_letters_in_pieces(void **state)
{
	unsigned char digest[HX_SHA256_SIZE];
	char letters[1000];
	struct hx_sha256 sha;

	(void)state;
	memset(letters, 'a', sizeof(letters));
	assert_int_equal(hx_sha256_init(&sha), HAPAX_OK);
	for (int i = 0; i < 1000; i++)
		hx_sha256_update(&sha, letters, sizeof(letters));
	hx_sha256_final(&sha, digest);
	assert_digest(digest, million_digest);
	hx_sha256_done(&sha);
}

static void pieces_make_the_whole(void **state)
{
	unsigned char data[300], whole[HX_SHA256_SIZE], pieces[HX_SHA256_SIZE];
	struct hx_sha256 sha;

	(void)state;
	hx_random_bytes(data, sizeof(data));
	assert_int_equal(hx_sha256_init(&sha), HAPAX_OK);
	for (size_t cut = 0; cut <= sizeof(data); cut++) {
		hx_sha256(data, sizeof(data), whole);
		hx_sha256_update(&sha, data, cut);
		hx_sha256_update(&sha, NULL, 0);
		hx_sha256_update(&sha, data + cut, sizeof(data) - cut);
		hx_sha256_final(&sha, pieces);
		assert_memory_equal(whole, pieces, sizeof(whole));
	}
	hx_sha256_done(&sha);
}

static void reset_forgets(void **state)
{
	unsigned char digest[HX_SHA256_SIZE];
	struct hx_sha256 sha;

	(void)state;
	assert_int_equal(hx_sha256_init(&sha), HAPAX_OK);
	hx_sha256_update(&sha, "not this", 8);
	hx_sha256_reset(&sha);
	hx_sha256_update(&sha, "abc", 3);
	hx_sha256_final(&sha, digest);
	assert_digest(digest, vectors[1].digest);
	/* Without update it is the digest of nothing, not of what came before. */
	hx_sha256_final(&sha, digest);
	assert_digest(digest, vectors[0].digest);
	hx_sha256_done(&sha);
}

static void done_of_nothing(void **state)
{
	struct hx_sha256 sha = {NULL};

	(void)state;
	hx_sha256_done(&sha);
	assert_int_equal(hx_sha256_init(&sha), HAPAX_OK);
	hx_sha256_done(&sha);
	hx_sha256_done(&sha);
}

static void nothing_has_a_digest(void **state)
{
	unsigned char digest[HX_SHA256_SIZE];

	(void)state;
	hx_sha256(NULL, 0, digest);
	assert_digest(digest, vectors[0].digest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),
		cmocka_unit_test(a_million_letters_in_pieces),
		cmocka_unit_test(pieces_make_the_whole),
		cmocka_unit_test(reset_forgets),
		cmocka_unit_test(done_of_nothing),
		cmocka_unit_test(nothing_has_a_digest),
	};

	return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
