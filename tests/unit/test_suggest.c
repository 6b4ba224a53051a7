/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *suggest(const char *word)
{
	static const char *const words[] = {
		"ttl", "types", "lease", "on_lapse", "on_mismatch", "max_connections"};
	struct hx_suggest suggest;

	hx_suggest_init(&suggest, word);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hx_suggest_consider(&suggest, words[i]);
	return suggest.best;
}

static void slips_of_a_hand_are_understood(void **state)
{
	(void)state;
	assert_string_equal(suggest("tll"), "ttl");
	assert_string_equal(suggest("tpyes"), "types");
	assert_string_equal(suggest("leas"), "lease");
	assert_string_equal(suggest("leasse"), "lease");
	assert_string_equal(suggest("on_mismtach"), "on_mismatch");
	assert_string_equal(suggest("max_conections"), "max_connections");
}

static void what_is_far_is_not_suggested(void **state)
{
	(void)state;
	assert_null(suggest("zzz"));
	assert_null(suggest("x"));
	/* Half of a short word is not a slip: tcsh is not bash. */
	assert_null(suggest("tpls"));
	assert_null(suggest(""));
	assert_null(suggest("a_word_that_is_longer_than_any_of_those_that_there_are"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slips_of_a_hand_are_understood),
		cmocka_unit_test(what_is_far_is_not_suggested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
