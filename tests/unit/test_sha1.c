/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hex.h"
#include "base/sha1.h"

static void check(const char *text, size_t size, const char *expected)
{
	unsigned char digest[HX_SHA1_SIZE];
	char digits[2 * HX_SHA1_SIZE];

	assert_true(hx_sha1(text, size, digest));
	hx_hex_encode(digest, sizeof(digest), digits);
	assert_memory_equal(digits, expected, sizeof(digits));
}

/* FIPS 180-4's example, and nothing. */
static void known_digests(void **state)
{
	(void)state;
	check("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	check(NULL, 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
