/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/bearer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

static void tokens_are_read(void **state)
{
	static const struct {
		const char *value;
		const char *token;
	} cases[] = {
		{"Bearer abc", "abc"},       {"bearer abc", "abc"},
		{"BEARER   abc", "abc"},     {"Bearer aZ09-._~+/", "aZ09-._~+/"},
		{"Bearer YWJj==", "YWJj=="},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_bytes token = {NULL, 0};

		assert_true(hx_bearer_read(hapax_bytes_from_text(cases[i].value), &token));
		assert_true(hx_bytes_equal(token, hapax_bytes_from_text(cases[i].token)));
	}
}

static void the_rest_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"Bearer",
		"Bearer ",
		"Bearer  ",
		"Bearerabc",
		"Basic abc",
		"Bearer a b",
		"Bearer a,b",
		"Bearer a\tb",
		"Bearer =",
		"Bearer a=b",
		"Bearer\tabc",
		"abc",
		"Bearer \"abc\"",
		"Beare abc",
		"Bearer abc ",
		"Bearer a\x80",
	};
	struct hapax_bytes token;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (hx_bearer_read(hapax_bytes_from_text(cases[i]), &token))
			fail_msg("'%s' was taken", cases[i]);
	}
	assert_false(hx_bearer_read(hx_bytes("Bearer a\0b", 10), &token));
	assert_false(hx_bearer_read(hx_bytes(NULL, 0), &token));
}

static void a_token_has_a_limit(void **state)
{
	char value[HX_BEARER_SIZE_MAX + 16];
	struct hapax_bytes token;

	(void)state;
	memset(value, 'a', sizeof(value));
	memcpy(value, "Bearer ", 7);
	assert_true(hx_bearer_read(hx_bytes(value, 7 + HX_BEARER_SIZE_MAX), &token));
	assert_int_equal(token.size, HX_BEARER_SIZE_MAX);
	assert_false(hx_bearer_read(hx_bytes(value, 8 + HX_BEARER_SIZE_MAX), &token));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_read),
		cmocka_unit_test(the_rest_is_refused),
		cmocka_unit_test(a_token_has_a_limit),
	};

	return cmocka_run_group_tests_name("bearer", tests, NULL, NULL);
}
