/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/json/json.h"

static struct hapax_buf out;

static int init(void **state)
{
	(void)state;
	hx_buf_init(&out, 4096);
	return 0;
}

static int done(void **state)
{
	(void)state;
	hx_buf_done(&out);
	return 0;
}

static void expect(const char *text)
{
	assert_int_equal(out.size, strlen(text));
	assert_memory_equal(out.data, text, out.size);
}

static void write_all(struct hx_json_write *json)
{
	hx_json_write_init(json, &out);
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_text(json, "text", "a\"b\\c\n\t\x01\x7f");
	hx_json_write_bytes(json, "bytes", hx_bytes("\xc3\xa9\xff\xc2\x85", 5));
	hx_json_write_unsigned(json, "u", UINT64_MAX);
	hx_json_write_signed(json, "s", INT64_MIN);
	hx_json_write_boolean(json, "b", false);
	hx_json_write_begin(json, "list", '[');
	hx_json_write_end(json, ']');
	hx_json_write_begin(json, "list2", '[');
	hx_json_write_text(json, NULL, "");
	hx_json_write_begin(json, NULL, '{');
	hx_json_write_end(json, '}');
	hx_json_write_end(json, ']');
	hx_json_write_end(json, '}');
}

static void a_document_of_everything(void **state)
{
	struct hx_json_write json;

	(void)state;
	write_all(&json);
	assert_int_equal(json.status, HAPAX_OK);
	expect("{\"text\":\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\","
	       "\"bytes\":\"\xc3\xa9\xef\xbf\xbd\\u0085\","
	       "\"u\":18446744073709551615,\"s\":-9223372036854775808,\"b\":false,"
	       "\"list\":[],\"list2\":[\"\",{}]}");
}

static void numbers_have_no_digits_that_are_not_needed(void **state)
{
	static const struct {
		double value;
		unsigned digits;
		const char *text;
	} cases[] = {
		{0, 4, "0"},
		{1, 4, "1"},
		{0.0025, 6, "0.0025"},
		{0.5, 0, "0"},
		{45.2, 4, "45.2"},
		{-0.00001, 4, "0"},
		{-1.5, 4, "-1.5"},
		{100, 0, "100"},
		{1e15, 2, "1000000000000000"},
		{1.0 / 3, 6, "0.333333"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_json_write json;

		hx_buf_clear(&out);
		hx_json_write_init(&json, &out);
		hx_json_write_number(&json, NULL, cases[i].value, cases[i].digits);
		expect(cases[i].text);
	}
}

/* However little room there is: it is remembered, and nothing is written past it. */
static void a_full_buffer_is_remembered(void **state)
{
	struct hx_json_write json;
	size_t whole;

	(void)state;
	write_all(&json);
	whole = out.size;
	for (size_t size = 0; size < whole; size++) {
		hx_buf_done(&out);
		hx_buf_init(&out, size);
		write_all(&json);
		assert_int_equal(json.status, HAPAX_ERR_LIMIT);
		assert_true(out.size <= size);
	}
	hx_buf_done(&out);
	hx_buf_init(&out, whole);
	write_all(&json);
	assert_int_equal(json.status, HAPAX_OK);
}

static void what_is_written_is_json(void **state)
{
	struct hx_json_write json;
	struct hx_json reader;
	struct hx_json_token token;

	(void)state;
	write_all(&json);
	assert_int_equal(
		hx_json_init(&reader, hx_bytes(out.data, out.size), NULL, 0, NULL), HAPAX_OK);
	do {
		assert_int_equal(hx_json_next(&reader, &token, NULL), HAPAX_OK);
	} while (token.type != HX_JSON_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_document_of_everything, init, done),
		cmocka_unit_test_setup_teardown(
			numbers_have_no_digits_that_are_not_needed, init, done),
		cmocka_unit_test_setup_teardown(a_full_buffer_is_remembered, init, done),
		cmocka_unit_test_setup_teardown(what_is_written_is_json, init, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
