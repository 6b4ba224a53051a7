/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by a table: every kind of member, every fault with its place, and records both ways. */
#include "wire/json/json_object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/record/record_json.h"
#include "support/random_record.h"

enum { FIRST = 1 << 0, SECOND = 1 << 1 };

struct inner {
	uint64_t given;
	int64_t number;
};

struct outer {
	uint64_t given;
	struct hapax_bytes text;
	struct hapax_bytes any;
	unsigned char hex[4];
	uint32_t hex_size;
	int64_t number;
	int64_t time_ms;
	int choice;
	bool flag;
	struct inner inner;
};

static const char *const choices[] = {"one", "two", NULL};

static const struct hx_json_field inner_fields[] = {
	{.name = "number",
	 .kind = HX_JSON_FIELD_INTEGER,
	 .uses = FIRST | SECOND,
	 .offset = offsetof(struct inner, number),
	 .max = 9},
	{.name = NULL},
};
static const struct hx_json_section inner_section = {"an inner", inner_fields, 0};

#define AT(member) .uses = FIRST | SECOND, .offset = offsetof(struct outer, member)
static const struct hx_json_field outer_fields[] = {
	{.name = "text",
	 .kind = HX_JSON_FIELD_TEXT,
	 .required = FIRST,
	 AT(text),
	 .min = 1,
	 .max = 8},
	{.name = "any",
	 .kind = HX_JSON_FIELD_BYTES,
	 .flags = HX_JSON_FIELD_CONTROLS,
	 AT(any),
	 .max = 8},
	{.name = "hex",
	 .kind = HX_JSON_FIELD_HEX,
	 .flags = HX_JSON_FIELD_NULLABLE,
	 AT(hex),
	 .size_offset = offsetof(struct outer, hex_size),
	 .min = 2,
	 .max = 4},
	{.name = "number",
	 .kind = HX_JSON_FIELD_INTEGER,
	 .flags = HX_JSON_FIELD_NULLABLE,
	 AT(number),
	 .min = INT64_MIN,
	 .max = INT64_MAX},
	{.name = "time", .kind = HX_JSON_FIELD_TIME, AT(time_ms)},
	{.name = "choice", .kind = HX_JSON_FIELD_CHOICE, AT(choice), .min = 5, .choices = choices},
	{.name = "flag", .kind = HX_JSON_FIELD_BOOLEAN, AT(flag)},
	{.name = "inner", .kind = HX_JSON_FIELD_OBJECT, AT(inner), .section = &inner_section},
	{.name = NULL},
};
#undef AT
static const struct hx_json_section outer_section = {"an outer", outer_fields, 0};

static struct hx_json_reader reader;

static enum hapax_status read(
	const char *text, unsigned use, struct outer *out, struct hapax_error *err)
{
	enum hapax_status status = hx_json_reader_read(&reader, hapax_bytes_from_text(text), err);

	memset(out, 0, sizeof(*out));
	if (status != HAPAX_OK)
		return status;
	return hx_json_object_read(&reader, &reader.tree.nodes[0], &outer_section, use, out, err);
}

static bool is_text(struct hapax_bytes bytes, const char *text)
{
	return hx_bytes_equal(bytes, hapax_bytes_from_text(text));
}

static void every_kind(void **state)
{
	struct hapax_error err;
	struct outer out;

	(void)state;
	assert_int_equal(
		read("{\"text\":\"a\\u00e9\\n\\\"\",\"any_base64\":\"\\u0041P8A\"}", FIRST, &out,
		     &err),
		HAPAX_ERR_INVALID); /* a newline is a control */
	/* A member that takes text only has no form for other bytes. */
	assert_non_null(strstr(err.message, "'text' "));
	assert_null(strstr(err.message, "_base64"));
	assert_int_equal(
		read("{\"text\":\"a\\u00e9\\\"\",\"any_base64\":\"\\u0041P8A\",\"hex\":\"00ff\","
		     "\"number\":-9223372036854775808,\"time\":\"1970-01-01T00:00:01.5Z\","
		     "\"choice\":\"two\",\"flag\":true,\"inner\":{\"number\":9}}",
		     FIRST, &out, &err),
		HAPAX_OK);
	assert_true(is_text(out.text, "a\xc3\xa9\""));
	assert_int_equal(out.any.size, 3);
	assert_memory_equal(out.any.data, "\x00\xff\x00", 3);
	assert_memory_equal(out.hex, "\x00\xff\x00\x00", 4);
	assert_int_equal(out.hex_size, 2);
	assert_true(out.number == INT64_MIN);
	assert_int_equal(out.time_ms, 1500);
	assert_int_equal(out.choice, 6);
	assert_true(out.flag);
	assert_int_equal(out.inner.number, 9);
	assert_true(hx_json_object_has(&outer_section, &out, "any"));
	assert_int_equal(
		read("{\"hex\":null,\"number\":null,\"time\":null}", SECOND, &out, &err), HAPAX_OK);
	assert_false(hx_json_object_has(&outer_section, &out, "hex"));
	assert_true(hx_json_object_has(&outer_section, &out, "number"));
	assert_true(out.number == INT64_MAX && out.time_ms == INT64_MAX);
	assert_int_equal(read("{\"any\":\"\\u0000\"}", SECOND, &out, &err), HAPAX_OK);
	assert_int_equal(out.any.size, 1);
}

static void every_fault(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"[]", "line 1, column 1: an outer must be an object"},
		{"{}", "line 1, column 1: an outer needs the member 'text'"},
		{"{\"text\":\"a\",\n \"chioce\":\"one\"}",
		 "line 2, column 11: an outer has an unknown member 'chioce' (did you mean 'choice'?)"},
		{"{\"text\":\"a\",\"qqqqqqqq\":1}", "an outer has an unknown member 'qqqqqqqq'"},
		{"{\"text\":1}", "'text' must be a string"},
		{"{\"text\":\"\"}", "'text' must be 1 to 8 bytes long, not 0"},
		{"{\"text\":\"123456789\"}", "not 9"},
		{"{\"text\":\"a\",\"any\":\"b\",\"any_base64\":\"AAAA\"}", "exclude each other"},
		{"{\"text\":\"a\",\"any_base64\":\"AAA\"}", "not Base64"},
		{"{\"text\":\"a\",\"any_base64\":1}", "'any_base64' must be a string"},
		{"{\"text\":\"a\",\"any_base64\":\"AAAAAAAAAAAA\"}", "0 to 8 bytes long, not 9"},
		{"{\"text\":\"a\",\"hex\":\"00f\"}", "'hex' must have 8 digits"},
		{"{\"text\":\"a\",\"hex\":\"00FF\"}", "'hex' must have 8 digits"},
		{"{\"text\":\"a\",\"hex\":\"00\"}", "'hex' must have 8 digits"},
		{"{\"text\":\"a\",\"number\":1e3}", "'number' must be a whole number"},
		{"{\"text\":\"a\",\"number\":9223372036854775808}",
		 "'number' must be a whole number"},
		{"{\"text\":\"a\",\"time\":\"soon\"}", "'time' must be a time"},
		{"{\"text\":\"a\",\"choice\":\"three\"}", "'choice' must be one of one, two"},
		{"{\"text\":\"a\",\"choice\":1}", "'choice' must be one of one, two"},
		{"{\"text\":\"a\",\"flag\":1}", "'flag' must be true or false"},
		{"{\"text\":\"a\",\"inner\":{\"number\":10}}",
		 "'number' must be a whole number from 0 to 9"},
		{"{\"text\":\"a\",\"inner\":[]}", "an inner must be an object"},
		{"{\"text\":\"a\",\"flag\":null}", "'flag' must be true or false"},
	};
	struct hapax_error err;
	struct outer out;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read(cases[i].text, FIRST, &out, &err), HAPAX_ERR_INVALID);
		if (strstr(err.message, cases[i].says) == NULL)
			fail_msg(
				"'%s': '%s' is not in '%s'", cases[i].text, cases[i].says,
				err.message);
	}
}

static void records_come_back(void **state)
{
	struct hx_record_json *said = test_calloc(1, sizeof(*said));
	struct hx_prng prng;
	struct hapax_buf out;

	(void)state;
	hx_prng_seed(&prng, 20261116);
	hx_buf_init(&out, 1 << 26);
	for (int i = 0; i < 300; i++) {
		static struct random_record random;
		unsigned char cause[HAPAX_CAUSE_SIZE_MAX];
		struct hapax_record again;
		const char *difference;
		struct hx_json_write json;
		struct hapax_error err;

		random_record_make(&random, &prng, INT64_C(1767225600000));
		hx_buf_clear(&out);
		hx_json_write_init(&json, &out);
		hx_json_write_begin(&json, NULL, '{');
		hx_record_write_json(
			&json, &random.record,
			HX_RECORD_JSON_WITH_RESULT | HX_RECORD_JSON_WITH_SECRETS);
		hx_json_write_end(&json, '}');
		assert_int_equal(json.status, HAPAX_OK);
		assert_int_equal(
			hx_json_reader_read(&reader, hapax_buf_bytes(&out), &err), HAPAX_OK);
		memset(said, 0, sizeof(*said));
		if (hx_json_object_read(
			    &reader, &reader.tree.nodes[0], &hx_record_json_section, FIRST, said,
			    &err) != HAPAX_OK)
			fail_msg("%s", err.message);
		hx_record_from_json(said, cause, &again);
		difference =
			random_record_difference(&random.record, &again, HAPAX_FINGERPRINT_SIZE);
		if (difference != NULL)
			fail_msg("%s differs after %d records", difference, i);
	}
	hx_buf_done(&out);
	test_free(said);
}

static int begin(void **state)
{
	(void)state;
	hx_json_reader_init(&reader, 1 << 26, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hx_json_reader_done(&reader);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),
		cmocka_unit_test(every_fault),
		cmocka_unit_test(records_come_back),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
