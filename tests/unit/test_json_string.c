/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json/json_string.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* A raw string, found valid. */
static struct hx_json_string raw(const char *text)
{
	const unsigned char *begin = (const unsigned char *)text;
	const unsigned char *end = begin + strlen(text);
	const unsigned char *bad;
	const char *reason;
	bool escaped;
	const unsigned char *quote = hx_json_string_scan(begin, end, &escaped, &bad, &reason);

	assert_non_null(quote);
	assert_int_equal(*quote, '"');
	return (struct hx_json_string){begin, (uint32_t)(quote - begin), escaped};
}

static void the_closing_quote_is_found_at_any_length(void **state)
{
	char text[100];

	(void)state;
	for (size_t size = 0; size < 80; size++) {
		unsigned char *copy = malloc(size + 1);

		assert_non_null(copy);
		memset(text, 'x', size);
		text[size] = '"';
		text[size + 1] = '\0';
		memcpy(copy, text, size + 1);
		assert_int_equal(raw(text).size, size);
		/* Without a quote nothing beyond the end is read. */
		assert_ptr_equal(hx_json_skip_plain(copy, copy + size), copy + size);
		free(copy);
	}
}

static void bytes_that_are_not_plain_are_found_at_any_place(void **state)
{
	unsigned char text[48];

	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		for (size_t at = 0; at < sizeof(text); at++) {
			bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
			const unsigned char *found;

			memset(text, 'x', sizeof(text));
			text[at] = (unsigned char)byte;
			found = hx_json_skip_plain(text, text + sizeof(text));
			assert_ptr_equal(found, plain ? text + sizeof(text) : text + at);
		}
	}
}

struct value_case {
	const char *raw;
	const char *value;
	size_t size;
};

static const struct value_case values[] = {
	{"\"", "", 0},
	{"abc\"", "abc", 3},
	{"\\\"\\\\\\/\"", "\"\\/", 3},
	{"\\b\\f\\n\\r\\t\"", "\b\f\n\r\t", 5},
	{"\\u0000\"", "\0", 1},
	{"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac", 6},
	{"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!", 5},
	{"\\uD800\\uDC00\\uDBFF\\uDFFF\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8},
	{"\xc3\xa9\\n\xe2\x82\xac\"", "\xc3\xa9\n\xe2\x82\xac", 6},
	{"\\\\u0041\"", "\\u0041", 6},
};

static void values_are_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct hx_json_string string = raw(values[i].raw);
		unsigned char out[64];

		assert_int_equal(hx_json_string_value(string, out), values[i].size);
		assert_memory_equal(out, values[i].value, values[i].size);
		assert_true(
			hx_json_string_equal(string, hx_bytes(values[i].value, values[i].size)));
		assert_false(
			hx_json_string_equal(
				string, hx_bytes(values[i].value, values[i].size - 1)) &&
			values[i].size > 0);
		assert_int_equal(string.escaped, strchr(values[i].raw, '\\') != NULL);
	}
}

/* In the order of code points, which is neither that of UTF-16 nor that of escapes. */
static const char *const ordered[] = {
	"\"",
	"\\u0000\"",
	"\\t\"",
	" \"",
	"\\\"\"",
	"\\/\"",
	"A\"",
	"AA\"",
	"AAAAAAAA\"",
	"AAAAAAAAA\"",
	"AAAAAAAAB\"",
	"B\"",
	"\\\\\"",
	"a\"",
	"e\xcc\x81\"",
	"\x7f\"",
	"\\u0080\"",
	"\xc3\xa9\"",
	"\\u00ea\"",
	"\xe2\x82\xac\"",
	"\\ud7ff\"",
	"\xee\x80\x80\"",
	"\\uffff\"",
	"\xf0\x90\x80\x80\"",
	"\\ud83d\\ude00\"",
	"\xf4\x8f\xbf\xbf\"",
};

enum { ORDERED_COUNT = sizeof(ordered) / sizeof(ordered[0]) };

static void order_is_that_of_code_points(void **state)
{
	(void)state;
	for (size_t i = 0; i < ORDERED_COUNT; i++) {
		for (size_t j = 0; j < ORDERED_COUNT; j++) {
			int order = hx_json_string_compare(raw(ordered[i]), raw(ordered[j]));

			if (i < j)
				assert_true(order < 0);
			else if (i > j)
				assert_true(order > 0);
			else
				assert_int_equal(order, 0);
		}
	}
}

static void prefixes_never_contradict_the_order(void **state)
{
	(void)state;
	for (size_t i = 0; i + 1 < ORDERED_COUNT; i++) {
		struct hx_json_string a = raw(ordered[i]);
		struct hx_json_string b = raw(ordered[i + 1]);
		const unsigned char *a_end = a.data + strlen((const char *)a.data);
		const unsigned char *b_end = b.data + strlen((const char *)b.data);

		assert_true(hx_json_string_prefix(a, a_end) <= hx_json_string_prefix(b, b_end));
		/* However much of the text follows. */
		assert_int_equal(hx_json_string_prefix(a, a_end), hx_json_string_prefix_slow(a));
	}
}

static void prefixes_do_not_see_what_follows(void **state)
{
	static const unsigned char text[] = "abc\":12345678";
	struct hx_json_string string = {text, 3, false};

	(void)state;
	assert_int_equal(
		hx_json_string_prefix(string, text + sizeof(text) - 1),
		UINT64_C(0x6162630000000003));
	string.size = 0;
	assert_int_equal(hx_json_string_prefix(string, text + sizeof(text) - 1), 0);
}

static void code_points_are_read_in_turn(void **state)
{
	static const char text[] = "a\\u00e9\xc3\xa9\\ud83d\\ude00\xf0\x9f\x98\x80\\n";
	static const uint32_t expected[] = {'a', 0xe9, 0xe9, 0x1f600, 0x1f600, '\n'};
	const unsigned char *at = (const unsigned char *)text;
	const unsigned char *end = at + sizeof(text) - 1;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(hx_json_string_code_point(&at, end), expected[i]);
	assert_ptr_equal(at, end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_closing_quote_is_found_at_any_length),
		cmocka_unit_test(bytes_that_are_not_plain_are_found_at_any_place),
		cmocka_unit_test(values_are_decoded),
		cmocka_unit_test(order_is_that_of_code_points),
		cmocka_unit_test(prefixes_never_contradict_the_order),
		cmocka_unit_test(prefixes_do_not_see_what_follows),
		cmocka_unit_test(code_points_are_read_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
