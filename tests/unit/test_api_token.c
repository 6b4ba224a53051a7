/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/api_token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

static void what_is_written_has_the_form(void **state)
{
	unsigned char secret[HX_API_TOKEN_SECRET_SIZE];
	char token[HX_API_TOKEN_SIZE + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(secret); i++)
		secret[i] = (unsigned char)(0xa0 + i);
	memset(token, 'x', sizeof(token));
	hx_api_token_write(secret, token);
	assert_memory_equal(token, "hapax_a0a1a2", 12);
	assert_int_equal(token[HX_API_TOKEN_SIZE], 'x');
	assert_true(hx_api_token_has_form(hx_bytes(token, HX_API_TOKEN_SIZE)));
	/* A part of it, and more than it. */
	for (size_t size = 0; size < HX_API_TOKEN_SIZE; size++)
		assert_false(hx_api_token_has_form(hx_bytes(token, size)));
	token[HX_API_TOKEN_SIZE] = '0';
	assert_false(hx_api_token_has_form(hx_bytes(token, HX_API_TOKEN_SIZE + 1)));
	/* Any other byte anywhere. */
	for (size_t i = 0; i < HX_API_TOKEN_SIZE; i++) {
		char kept = token[i];

		for (const char *wrong = "gAF_ /:@`\n"; *wrong != '\0'; wrong++) {
			token[i] = *wrong;
			assert_int_equal(
				hx_api_token_has_form(hx_bytes(token, HX_API_TOKEN_SIZE)),
				token[i] == kept);
		}
		token[i] = kept;
	}
	assert_false(hx_api_token_has_form(hx_bytes(NULL, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_has_the_form),
	};

	return cmocka_run_group_tests_name("api_token", tests, NULL, NULL);
}
