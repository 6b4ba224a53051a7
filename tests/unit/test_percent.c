/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of URLs: what is encoded is decoded to the same; queries member by member. */
#include "wire/percent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

static void every_byte_comes_back(void **state)
{
	unsigned char bytes[256], again[3 * 256];
	struct hapax_buf text;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	hx_buf_init(&text, 4096);
	assert_int_equal(hx_percent_encode(&text, hx_bytes(bytes, sizeof(bytes))), HAPAX_OK);
	for (size_t i = 0; i < text.size; i++)
		assert_true(text.data[i] > ' ' && text.data[i] < 0x7f && text.data[i] != '/');
	assert_true(hx_percent_decode(hapax_buf_bytes(&text), again, &size));
	assert_int_equal(size, sizeof(bytes));
	assert_memory_equal(again, bytes, size);
	hx_buf_done(&text);
}

static void what_is_cut_off_is_refused(void **state)
{
	static const struct {
		const char *text;
		size_t offset;
	} cases[] = {{"%", 0}, {"a%4", 1}, {"ab%zz", 2}, {"%4g", 0}, {"%41%", 3}};
	unsigned char out[8];
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_false(hx_percent_decode(hapax_bytes_from_text(cases[i].text), out, &size));
		assert_int_equal(size, cases[i].offset);
	}
	assert_true(hx_percent_decode(HX_BYTES_LIT("+%2b%2B"), out, &size));
	assert_int_equal(size, 3);
	assert_memory_equal(out, "+++", 3);
}

static void queries_member_by_member(void **state)
{
	struct hapax_bytes query = HX_BYTES_LIT("&a=1&&b&c==&=d&");
	static const char *const expected[][2] = {{"a", "1"}, {"b", ""}, {"c", "="}, {"", "d"}};
	struct hapax_bytes name, value;
	size_t count = 0;

	(void)state;
	while (hx_percent_query_next(&query, &name, &value)) {
		assert_true(count < 4);
		assert_true(hx_bytes_equal(name, hapax_bytes_from_text(expected[count][0])));
		assert_true(hx_bytes_equal(value, hapax_bytes_from_text(expected[count][1])));
		count++;
	}
	assert_int_equal(count, 4);
}

static void texts_have_no_nul_and_an_end(void **state)
{
	char out[4];

	(void)state;
	assert_true(hx_percent_decode_text("a%2Fb", 5, out, sizeof(out)));
	assert_string_equal(out, "a/b");
	assert_true(hx_percent_decode_text("", 0, out, sizeof(out)));
	assert_string_equal(out, "");
	assert_false(hx_percent_decode_text("abcd", 4, out, sizeof(out)));
	assert_false(hx_percent_decode_text("%00", 3, out, sizeof(out)));
	assert_false(hx_percent_decode_text("%4", 2, out, sizeof(out)));
	assert_false(hx_percent_decode_text("%4g", 3, out, sizeof(out)));
}

static void a_path_has_one_form(void **state)
{
	static const char *const paths[][2] = {
		{"/v1/charges", "/v1/charges"},
		{"/v1/%63harges%2f%7E%2d%5f%2E%30", "/v1/charges%2F~-_.0"},
		{"/%e4%C3%A4%25", "/%E4%C3%A4%25"},
		{"/%4", "/%4"},
		{"/%zz%", "/%zz%"},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char text[64];
		size_t size;

		(void)snprintf(text, sizeof(text), "%s", paths[i][0]);
		size = hx_percent_normalize(hapax_bytes_from_text(text), text);
		assert_true(
			hx_bytes_equal(hx_bytes(text, size), hapax_bytes_from_text(paths[i][1])));
		/* It is its own. */
		assert_int_equal(hx_percent_normalize(hx_bytes(text, size), text), size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_has_one_form),
		cmocka_unit_test(texts_have_no_nul_and_an_end),
		cmocka_unit_test(every_byte_comes_back),
		cmocka_unit_test(what_is_cut_off_is_refused),
		cmocka_unit_test(queries_member_by_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
