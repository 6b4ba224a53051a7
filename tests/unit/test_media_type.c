/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Content-Type says.
 */
#include "wire/media_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static const struct {
	const char *value;
	const char *essence;
	const char *charset;
	bool valid;
	bool json;
} cases[] = {
	{"", "", "", false, false},
	{";", "", "", false, false},
	{"json", "json", "", false, false},
	{"/json", "/json", "", false, false},
	{"a/", "a/", "", false, false},
	{"a/b/c", "a/b/c", "", false, false},
	{"text/plain", "text/plain", "", true, false},
	{" text/plain ; charset=utf-8", "text/plain", "utf-8", true, false},
	{"a/json", "a/json", "", true, true},
	{"a/b+json", "a/b+json", "", true, true},
	{"a/B+JSON;x", "a/B+JSON", "", true, true},
	{"a/bjson", "a/bjson", "", true, false},
	{"a/+json", "a/+json", "", true, true},
	{"a/json+b", "a/json+b", "", true, false},
	{"a/b;charset=\"x y\"", "a/b", "x y", true, false},
	{"a/b;CharSet=x;charset=y", "a/b", "x", true, false},
	{"a/b;z=\";charset=x\"", "a/b", "", true, false},
	{"a/b;z=\"\\\";charset=x\";charset=y", "a/b", "y", true, false},
	{"a/b;charset", "a/b", "", true, false},
	{"a/b;charset=", "a/b", "", true, false},
	{"a/b;xcharset=y", "a/b", "", true, false},
	{"a/b;;charset=y", "a/b", "y", true, false},
	{"a/b;z=\"\\", "a/b", "", true, false},
};

static void types_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_bytes value = hapax_bytes_from_text(cases[i].value);

		assert_true(hx_bytes_equal(
			hx_media_type_essence(value), hapax_bytes_from_text(cases[i].essence)));
		assert_true(hx_bytes_equal(
			hx_media_type_charset(value), hapax_bytes_from_text(cases[i].charset)));
		assert_int_equal(hx_media_type_is_valid(value), cases[i].valid);
		assert_int_equal(hx_media_type_is_json(value), cases[i].json);
	}
}

static void no_type_at_all_is_none(void **state)
{
	const struct hapax_bytes none = {NULL, 0};

	(void)state;
	assert_int_equal(hx_media_type_essence(none).size, 0);
	assert_int_equal(hx_media_type_charset(none).size, 0);
	assert_false(hx_media_type_is_valid(none));
	assert_false(hx_media_type_is_json(none));
}

static void who_wants_json(void **state)
{
	static const struct {
		const char *accept;
		bool names_json;
	} table[] = {
		{"", false},
		{"*/*", false},
		{"application/*", false},
		{"application/json", true},
		{"APPLICATION/JSON", true},
		{"text/json", true},
		{"text/html, application/json", true},
		{"application/json;q=0.1", true},
		{"application/json; q=0.001", true},
		{"application/json;q=0", false},
		{"application/json; Q=0.000", false},
		{"application/json;q=0, text/json", true},
		{"application/json;charset=utf-8", true},
		{"application/json;charset=utf-8;q=0", false},
		{"application/cloudevents+json", false},
		{"application/jsonx", false},
		{",,;", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(
			hx_media_type_accepts_json(hapax_bytes_from_text(table[i].accept)),
			table[i].names_json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_read),
		cmocka_unit_test(no_type_at_all_is_none),
		cmocka_unit_test(who_wants_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
