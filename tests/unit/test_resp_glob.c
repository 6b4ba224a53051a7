/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of names, as Redis has them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "resp/resp_command.h"
#include "support/scale.h"

static bool matches(const char *pattern, const char *text, bool ignores_case)
{
	return hx_resp_glob(
		hapax_bytes_from_text(pattern), hapax_bytes_from_text(text), ignores_case);
}

/* Each was put to redis-server 7.0.15: KEYS of a database with that key alone. */
static void as_redis(void **state)
{
	static const struct {
		const char *pattern;
		const char *text;
		bool is_match;
	} cases[] = {
		{"", "", true},
		{"*", "", true},
		{"*", "anything", true},
		{"**", "a", true},
		{"?", "", false},
		{"h?llo", "hello", true},
		{"h?llo", "hllo", false},
		{"h*llo", "heeeello", true},
		{"h*llo*", "hllo world", true},
		{"h[ae]llo", "hallo", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true},
		{"h[^e]llo", "hello", false},
		{"h[a-b]llo", "hbllo", true},
		{"h[b-a]llo", "hbllo", true},
		{"h[a-b]llo", "hcllo", false},
		{"[a-", "a", true},
		{"[abc", "c", true},
		{"[]x", "]x", false},
		{"a\\*c", "a*c", true},
		{"a\\*c", "abc", false},
		{"[\\]]", "]", true},
		{"key:*:x*", "key:1:y:x9", true},
		{"key:*:x*", "key:1:y", false},
		{"*a*b*c", "aXbXc", true},
		{"*a*b*c", "aXcXb", false},
		{"abc", "ABC", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (matches(cases[i].pattern, cases[i].text, false) != cases[i].is_match)
			fail_msg("'%s' on '%s'", cases[i].pattern, cases[i].text);
	}
	assert_true(matches("ABC*[X-Z]", "abcdy", true));
	assert_false(matches("ABC*[X-Z]", "abcdw", true));
}

/* Stars by trying everything, which is easy to believe. */
static bool reference(const char *pattern, const char *text)
{
	if (*pattern == '\0')
		return *text == '\0';
	if (*pattern == '*')
		return reference(pattern + 1, text) ||
			(*text != '\0' && reference(pattern, text + 1));
	return *text != '\0' && (*pattern == '?' || *pattern == *text) &&
		reference(pattern + 1, text + 1);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void fill(uint64_t *seed, const char *letters, char text[9])
{
	size_t size = next_random(seed) % 9;

	for (size_t i = 0; i < size; i++)
		text[i] = letters[next_random(seed) % strlen(letters)];
	text[size] = '\0';
}

static void random_patterns(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15u;
	uint64_t count = scale_count(10000000, 100000);

	(void)state;
	(void)scale_seed(&seed);
	printf("# HAPAX_TEST_SEED=%llu\n", (unsigned long long)seed);
	for (uint64_t i = 0; i < count; i++) {
		char pattern[9];
		char text[9];

		fill(&seed, "ab*?*", pattern);
		fill(&seed, "ab", text);
		if (matches(pattern, text, false) != reference(pattern, text))
			fail_msg("'%s' on '%s'", pattern, text);
	}
}

/* A star is not tried by a star: no pattern makes the server count to infinity. */
static void many_stars(void **state)
{
	char pattern[2049];
	char text[1025];

	(void)state;
	for (size_t i = 0; i < 1024; i++) {
		pattern[2 * i] = '*';
		pattern[2 * i + 1] = 'a';
		text[i] = 'a';
	}
	pattern[2047] = 'b';
	pattern[2048] = text[1024] = '\0';
	assert_false(matches(pattern, text, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_redis),
		cmocka_unit_test(random_patterns),
		cmocka_unit_test(many_stars),
	};

	return cmocka_run_group_tests_name("resp_glob", tests, NULL, NULL);
}
