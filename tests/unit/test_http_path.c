/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as the loosest reader takes them, and those that are refused whatever it does.
 */
#include "wire/http1/http_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

static void the_loosest_form(void **state)
{
	static const char *const pairs[][2] = {
		{"/", "/"},
		{"*", "*"},
		{"/a/b", "/a/b"},
		{"/a/", "/a/"},
		{"/.a/b.", "/.a/b."},
		{"/a/...", "/a/..."},
		{"/.well-known/x", "/.well-known/x"},
		{"/a//b", "/a/b"},
		{"//", "/"},
		{"/a%2Fb", "/a/b"},
		{"/a%2fb/", "/a/b"},
		{"/a%5Cb", "/a/b"},
		{"/a%255cb", "/a/b"},
		{"/a%25252Fb", "/a/b"},
		{"/a;v=1/b;w", "/a/b"},
		{"/a/;/b", "/a/b"},
		{"/a%3Bv/b", "/a/b"},
		{"/%61", "/a"},
		{"/a%20b", "/a b"},
		{"/a%20/b", "/a/b"},
		{"/100%25", "/100%"},
		{"/100%25zz", "/100%zz"},
		{"/%C3%A4", "/\xc3\xa4"},
		{"/%C0", "/\xc0"},
		{"/%E0%A0%80", "/\xe0\xa0\x80"},
		{"/%F0%9F%98%80", "/\xf0\x9f\x98\x80"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char space[HX_HTTP1_LINE_MAX];
		const char *fault = "unset";
		struct hapax_bytes found =
			hx_http_path_loosest(hapax_bytes_from_text(pairs[i][0]), space, &fault);

		if (fault != NULL)
			fail_msg("%s: %s", pairs[i][0], fault);
		if (!hx_bytes_equal(found, hapax_bytes_from_text(pairs[i][1])))
			fail_msg(
				"%s: %.*s", pairs[i][0], (int)found.size, (const char *)found.data);
	}
}

static void what_is_refused(void **state)
{
	static const char *const dots[] = {
		"/..",
		"/.",
		"/a/../b",
		"/a/.",
		"/./a",
		"/a/%2e%2E/b",
		"/%2e/a",
		"/v1/..%2fadmin",
		"/v1/..%2Fadmin",
		"/v1/..%5cadmin",
		"/v1/..;/admin",
		"/v1/..;a=b/admin",
		"/v1/.;/admin",
		"/v1/%2e%2e%2fadmin",
		"/v1/%252e%252e%252fadmin",
		"/v1/..%252fadmin",
		"/v1/%25252e%25252e/admin",
		"/v1/%252%65%252%65/admin",
		"/v1/..%3b/admin",
		"/v1/..%253b/admin",
		"/v1/x%2f..%2f..%2fadmin",
		"/v1/..%20/admin",
		"/v1/%20../admin",
		"/v1/x%5c..%5cadmin",
		"/v1//../admin",
		"/v1/.%2e;x/admin",
		"/v1/a;/../b",
	};
	static const char *const controls[] = {
		"/v1/..%00/admin", "/%00", "/a%0a", "/a%0D%0Ab", "/%7f", "/%2500", "/a%1f",
	};
	static const char *const overlong[] = {
		"/v1/%c0%ae%c0%ae/admin", "/v1/..%c0%afadmin",  "/v1/..%c1%9cadmin",
		"/v1/%e0%80%ae/x",        "/v1/%f0%80%80%ae/x", "/v1/%25c0%25ae/x",
	};
	static const char *const percents[] = {
		"/%", "/a%2", "/%zz", "/%u002e%u002e/x", "/%%32e",
	};
	static const struct {
		const char *const *paths;
		size_t count;
		const char *word;
	} kinds[] = {
		{dots, sizeof(dots) / sizeof(dots[0]), "'..'"},
		{controls, sizeof(controls) / sizeof(controls[0]), "control"},
		{overlong, sizeof(overlong) / sizeof(overlong[0]), "overlong encoding"},
		{percents, sizeof(percents) / sizeof(percents[0]), "percent sign"},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		for (size_t i = 0; i < kinds[k].count; i++) {
			char space[HX_HTTP1_LINE_MAX];
			const char *fault = NULL;

			(void)hx_http_path_loosest(
				hapax_bytes_from_text(kinds[k].paths[i]), space, &fault);
			if (fault == NULL || strstr(fault, kinds[k].word) == NULL)
				fail_msg(
					"%s: %s", kinds[k].paths[i],
					fault == NULL ? "taken" : fault);
		}
	}
}

/* As deep as a line is long: it takes no longer than any other. */
static void an_encoding_of_an_encoding(void **state)
{
	static char path[HX_HTTP1_LINE_MAX];
	static char space[HX_HTTP1_LINE_MAX];
	size_t size = 0;
	const char *fault;

	(void)state;
	memcpy(path, "/%", 2);
	for (size = 2; size + 10 < sizeof(path); size += 2)
		memcpy(path + size, "25", 2);
	memcpy(path + size, "2e%2e/a", 7);
	(void)hx_http_path_loosest(hx_bytes(path, size + 7), space, &fault);
	assert_non_null(fault);
	assert_non_null(strstr(fault, "'..'"));
}

static void a_target_is_split_at_its_first_question_mark(void **state)
{
	static const char *const rows[][3] = {
		{"", "", ""},          {"/a", "/a", ""}, {"/a?", "/a", ""}, {"/a?b=1", "/a", "b=1"},
		{"/?a?b", "/", "a?b"}, {"*", "*", ""},
	};

	(void)state;
	for (size_t i = 0; i < HX_COUNT(rows); i++) {
		struct hapax_bytes query;
		struct hapax_bytes path =
			hx_http_path_split(hapax_bytes_from_text(rows[i][0]), &query);

		assert_true(hx_bytes_equal(path, hapax_bytes_from_text(rows[i][1])));
		assert_true(hx_bytes_equal(query, hapax_bytes_from_text(rows[i][2])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loosest_form),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(an_encoding_of_an_encoding),
		cmocka_unit_test(a_target_is_split_at_its_first_question_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
