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
#include "wire/base64.h"
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

static void into_out(void *context, const void *data, size_t size)
{
	assert_int_equal(hx_buf_append(context, data, size), HAPAX_OK);
}

/* Controls, a joiner that hides, one beyond the first plane, and bytes that are not UTF-8. */
#define MIXED "a\"\\\n\t\b\r\x7f\xc2\x85\xe2\x80\x8b\xf3\xa0\x80\x81\xc3\xa9"

static void people_get_one_document_a_line_and_nothing_that_hides(void **state)
{
	struct hx_json_write json;

	(void)state;
	hx_json_write_init_sink(&json, into_out, &out);
	for (int i = 0; i < 2; i++) {
		hx_json_write_begin(&json, NULL, '{');
		hx_json_write_text(&json, "t", MIXED);
		hx_json_write_any(&json, "a", hx_bytes("\x01", 1));
		hx_json_write_body(&json, "b", hx_bytes("\x00\xff", 2));
		hx_json_write_begin(&json, "l", '[');
		hx_json_write_any(&json, NULL, hx_bytes("\xff", 1));
		hx_json_write_end(&json, ']');
		hx_json_write_end(&json, '}');
		expect("{\"t\":\"a\\\"\\\\\\n\\t\\u0008\\u000d\\u007f\\u0085\\u200b\\udb40\\udc01\xc3\xa9\","
		       "\"a\":\"\\u0001\",\"b_base64\":\"AP8=\",\"l\":[\"/w==\"]}\n");
		hx_buf_clear(&out);
	}
}

static void programs_get_what_is_not_text_as_base64(void **state)
{
	struct hx_json_write json;

	(void)state;
	hx_json_write_init(&json, &out);
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_text(&json, "t", MIXED);
	hx_json_write_any(&json, "a", hx_bytes("a\n", 2));
	hx_json_write_body(&json, "b", hx_bytes("a\n", 2));
	hx_json_write_body(&json, "c", hx_bytes("\x01", 1));
	hx_json_write_null(&json, "n");
	hx_json_write_time(&json, "never", INT64_MAX);
	hx_json_write_hex(&json, "h", "\x01\xfe", 2);
	hx_json_write_end(&json, '}');
	expect("{\"t\":\"a\\\"\\\\\\n\\t\\b\\r\\u007f\\u0085\xe2\x80\x8b\xf3\xa0\x80\x81\xc3\xa9\","
	       "\"a_base64\":\"YQo=\",\"b\":\"a\\n\",\"c_base64\":\"AQ==\",\"n\":null,"
	       "\"never\":null,\"h\":\"01fe\"}");
}

/* More than is encoded at once. */
static void a_long_body_is_one_base64(void **state)
{
	static unsigned char data[10000];
	static char text[16384];
	struct hx_json_write json;
	struct hapax_buf large;

	(void)state;
	memset(data, 0xff, sizeof(data));
	hx_buf_init(&large, 1 << 16);
	hx_json_write_init(&json, &large);
	hx_json_write_body(&json, "b", hx_bytes(data, sizeof(data)));
	hx_base64_encode(hx_bytes(data, sizeof(data)), text);
	assert_int_equal(large.size, hx_base64_size(sizeof(data)) + strlen("\"b_base64\":\"\""));
	assert_memory_equal(
		large.data + strlen("\"b_base64\":\""), text, hx_base64_size(sizeof(data)));
	hx_buf_done(&large);
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

static void json_is_taken_as_it_is(void **state)
{
	struct hx_json_write json;

	(void)state;
	hx_json_write_init(&json, &out);
	hx_json_write_begin(&json, NULL, '[');
	hx_json_write_raw(&json, NULL, hapax_bytes_from_text("{\"a\":[1]}"));
	hx_json_write_begin(&json, NULL, '{');
	hx_json_write_boolean(&json, "b", true);
	hx_json_write_raw(&json, "c", hapax_bytes_from_text("null"));
	hx_json_write_end(&json, '}');
	hx_json_write_end(&json, ']');
	assert_int_equal(json.status, HAPAX_OK);
	expect("[{\"a\":[1]},{\"b\":true,\"c\":null}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_document_of_everything, init, done),
		cmocka_unit_test_setup_teardown(
			numbers_have_no_digits_that_are_not_needed, init, done),
		cmocka_unit_test_setup_teardown(
			people_get_one_document_a_line_and_nothing_that_hides, init, done),
		cmocka_unit_test_setup_teardown(
			programs_get_what_is_not_text_as_base64, init, done),
		cmocka_unit_test(a_long_body_is_one_base64),
		cmocka_unit_test_setup_teardown(a_full_buffer_is_remembered, init, done),
		cmocka_unit_test_setup_teardown(what_is_written_is_json, init, done),
		cmocka_unit_test_setup_teardown(json_is_taken_as_it_is, init, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
