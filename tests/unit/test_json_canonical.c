/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One text for each value: what does not matter is gone, what matters stays. C1.
 * The table of Unicode: escapes, combining characters, above U+FFFF, order.
 */
#include "wire/json/json_canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static uint64_t scratch[1 << 16];

static enum hapax_status write_text(
	struct hapax_bytes text, enum hx_json_dialect dialect, struct hx_json_target *target,
	struct hapax_error *err)
{
	struct hx_json_tree tree;
	bool is_short;
	enum hapax_status status =
		hx_json_tree_read(&tree, text, scratch, sizeof(scratch), &is_short, err);

	if (status != HAPAX_OK)
		return status;
	return hx_json_canonical_write(&tree, tree.nodes, dialect, HX_JSON_ALL, target, err);
}

static const char *canonical(const char *text)
{
	static unsigned char out[8192];
	struct hx_json_target target = {out, 0, sizeof(out) - 1, false};
	struct hapax_error err = {HAPAX_OK, 0, ""};

	if (write_text(hx_bytes(text, strlen(text)), HX_JSON_LOSSLESS, &target, &err) != HAPAX_OK)
		fail_msg("%s: %s", text, err.message);
	out[target.size] = '\0';
	return (const char *)out;
}

/* Texts, and the canonical one; texts that share it are one value. */
static const char *const same[][2] = {
	{"{}", "{}"},
	{" { } ", "{}"},
	{"[ ]", "[]"},
	{"[[],{},[{}]]", "[[],{},[{}]]"},
	{"{\"a\":{},\"b\":[]}", "{\"a\":{},\"b\":[]}"},
	{"{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
	{"{\"a\" : [ 1 , 2 ] ,\n\"b\":\tnull}", "{\"a\":[1,2],\"b\":null}"},
	{"{\"b\":{\"d\":1,\"c\":2},\"a\":[{\"f\":3,\"e\":4}]}",
	 "{\"a\":[{\"e\":4,\"f\":3}],\"b\":{\"c\":2,\"d\":1}}"},
	{"[1.0,10e-1,1,-0,0.0,1e3,1E400]", "[1,1,1,0,0,1000,1e400]"},
	{"[true,false,null]", "[true,false,null]"},
	{"\"\"", "\"\""},
	{"\"abc\"", "\"abc\""},
	{"[\"\\u0061\",\"\\/\",\"/\"]", "[\"a\",\"/\",\"/\"]"},
	{"\"\\u000A\\n\\u0022\\u005c\"", "\"\\n\\n\\\"\\\\\""},
	{"\"\\u0000\\u001F\\b\\f\\r\\t\"", "\"\\u0000\\u001f\\b\\f\\r\\t\""},
	{"\"\\u007f\"", "\"\x7f\""},
	{"\"\\u00e9\"", "\"\xc3\xa9\""},
	{"\"\xc3\xa9\"", "\"\xc3\xa9\""},
	{"\"\\u20ac\\u2028\"", "\"\xe2\x82\xac\xe2\x80\xa8\""},
	{"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
	{"\"\\uD83D\\uDE00\"", "\"\xf0\x9f\x98\x80\""},
	{"\"\xf0\x9f\x98\x80\"", "\"\xf0\x9f\x98\x80\""},
	{"\"e\\u0301\"", "\"e\xcc\x81\""},
	{"{\"\\u0062\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
	{"{\"a\":1,\"\":2}", "{\"\":2,\"a\":1}"},
	/* By code point: U+E000 and U+FFFF before U+1F600, which UTF-16 would put first. */
	{"{\"\xf0\x9f\x98\x80\":1,\"\xef\xbf\xbf\":2,\"\xee\x80\x80\":3,\"z\":4}",
	 "{\"z\":4,\"\xee\x80\x80\":3,\"\xef\xbf\xbf\":2,\"\xf0\x9f\x98\x80\":1}"},
	{"{\"\\ud83d\\ude00\":1,\"\\ue000\":3}", "{\"\xee\x80\x80\":3,\"\xf0\x9f\x98\x80\":1}"},
	{"{\"\xc3\xa9\":1,\"e\xcc\x81\":2,\"e\":3,\"f\":4}",
	 "{\"e\":3,\"e\xcc\x81\":2,\"f\":4,\"\xc3\xa9\":1}"},
	{"{\"a\\u0000\":1,\"a\":2}", "{\"a\":2,\"a\\u0000\":1}"},
	{"{\"10\":1,\"9\":2,\"1\":3}", "{\"1\":3,\"10\":1,\"9\":2}"},
	{"{\"aaaaaaaab\":1,\"aaaaaaaaa\":2,\"aaaaaaaa\":3}",
	 "{\"aaaaaaaa\":3,\"aaaaaaaaa\":2,\"aaaaaaaab\":1}"},
};

enum { SAME_COUNT = sizeof(same) / sizeof(same[0]) };

static void what_does_not_matter_is_gone(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAME_COUNT; i++)
		assert_string_equal(canonical(same[i][0]), same[i][1]);
}

static void a_canonical_text_is_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAME_COUNT; i++)
		assert_string_equal(canonical(same[i][1]), same[i][1]);
}

/* Texts whose values differ, though some readers take them for one. C1, peers.md 2-4. */
static const char *const different[][2] = {
	{"9007199254740993", "9007199254740992"},
	{"9007199254740993.0", "9007199254740992.0"},
	{"0.1", "0.1000000000000000055"},
	{"1e400", "1e401"},
	{"1e400", "2e400"},
	{"1e-400", "0"},
	{"5e-324", "3e-324"},
	{"18446744073709551616", "18446744073709551617"},
	{"1", "\"1\""},
	{"1.5", "\"1.5\""},
	{"1", "true"},
	{"0", "false"},
	{"0", "null"},
	{"\"\"", "null"},
	{"[]", "{}"},
	{"[1]", "1"},
	{"[1,2]", "[2,1]"},
	{"[1,null]", "[1]"},
	{"{\"a\":null}", "{}"},
	{"{\"a\":\"b\",\"c\":\"d\"}", "{\"a\":\"d\",\"c\":\"b\"}"},
	{"{\"a\":{\"b\":1}}", "{\"a\":1,\"b\":1}"},
	{"[\"a\",\"b\"]", "[\"a\\\",\\\"b\"]"},
	{"[[1],2]", "[1,[2]]"},
	{"\"\xc3\xa9\"", "\"e\xcc\x81\""},
	{"\"a\"", "\"A\""},
	{"\"a\"", "\"a \""},
	{"\"a\"", "\"a\\u0000\""},
	{"\"\\n\"", "\"\\\\n\""},
	{"{\"1\":1}", "{\"01\":1}"},
	{"\"\\ufeff\"", "\"\""},
	{"\"\\u2028\"", "\"\\n\""},
};

static void what_matters_stays(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(different) / sizeof(different[0]); i++) {
		char first[256];

		(void)snprintf(first, sizeof(first), "%s", canonical(different[i][0]));
		assert_string_not_equal(first, canonical(different[i][1]));
	}
}

/* With ever more room: too short, too short, ..., written; nothing beyond the end. */
static void room_that_is_too_small_is_told(void **state)
{
	static const char text[] =
		"{\"b\":[1e20,1.50,\"\\n\xc3\xa9\"],\"a\":{\"x\":{}},\"c\":[[[]]]}";

	(void)state;
	for (int dialect = HX_JSON_LOSSLESS; dialect <= HX_JSON_PYTHON; dialect++) {
		bool fits = false;

		for (size_t room = 0; room < 2048; room++) {
			struct hx_json_target target = {
				malloc(room == 0 ? 1 : room), 0, room, false};
			struct hapax_error err;
			enum hapax_status status = write_text(
				hx_bytes(text, sizeof(text) - 1), (enum hx_json_dialect)dialect,
				&target, &err);

			assert_int_equal(
				status, fits || !target.is_short ? HAPAX_OK : HAPAX_ERR_LIMIT);
			fits = status == HAPAX_OK;
			assert_in_range(target.size, 0, room);
			free(target.data);
		}
		assert_true(fits);
	}
}

/* Reading ahead for speed stops at the end of the text. */
static void nothing_beyond_the_text_is_read(void **state)
{
	(void)state;
	for (size_t size = 2; size < 80; size++) {
		char *exact = malloc(size);
		unsigned char out[512];
		struct hx_json_target target = {out, 0, sizeof(out), false};

		assert_non_null(exact);
		memset(exact, '1', size);
		assert_int_equal(
			write_text(hx_bytes(exact, size), HX_JSON_LOSSLESS, &target, NULL),
			HAPAX_OK);
		target.size = 0;
		exact[0] = '"';
		exact[size - 1] = '"';
		assert_int_equal(
			write_text(hx_bytes(exact, size), HX_JSON_LOSSLESS, &target, NULL),
			HAPAX_OK);
		assert_memory_equal(out, exact, size);
		assert_int_equal(target.size, size);
		free(exact);
	}
}

static void text_is_appended(void **state)
{
	unsigned char out[256] = "ab";
	struct hx_json_target target = {out, 2, sizeof(out), false};

	(void)state;
	assert_int_equal(
		write_text(HX_BYTES_LIT("[1]"), HX_JSON_LOSSLESS, &target, NULL), HAPAX_OK);
	assert_int_equal(target.size, 5);
	assert_memory_equal(out, "ab[1]", 5);
}

static void deep_and_wide(void **state)
{
	static char text[65536];
	static unsigned char out[1 << 17];
	struct hx_json_target target = {out, 0, sizeof(out), false};
	size_t size = 0;

	(void)state;
	for (int i = 0; i < HX_JSON_DEPTH_MAX - 1; i++) {
		const char *open = i % 2 == 0 ? "[" : "{\"a\":";

		memcpy(text + size, open, strlen(open));
		size += strlen(open);
	}
	memcpy(text + size, "{\"z\":0", 6);
	size += 6;
	for (int i = 0; i < 3000; i++)
		size += (size_t)snprintf(text + size, sizeof(text) - size, ",\"k%d\":%d", i, i);
	text[size++] = '}';
	for (int i = HX_JSON_DEPTH_MAX - 2; i >= 0; i--)
		text[size++] = i % 2 == 0 ? ']' : '}';
	assert_int_equal(
		write_text(hx_bytes(text, size), HX_JSON_LOSSLESS, &target, NULL), HAPAX_OK);
	assert_int_equal(target.size, size); /* nothing to leave out: only the order changed */
}

static void exponents_beyond_all_measure_are_a_limit(void **state)
{
	unsigned char out[256];
	struct hx_json_target target = {out, 0, sizeof(out), false};
	struct hapax_error err;

	(void)state;
	assert_int_equal(
		write_text(
			HX_BYTES_LIT("{\"a\":\n 1e999999999999999999}"), HX_JSON_LOSSLESS, &target,
			&err),
		HAPAX_ERR_LIMIT);
	assert_false(target.is_short);
	assert_string_equal(err.message, "line 2, column 2: the exponent is beyond 10^17");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_matter_is_gone),
		cmocka_unit_test(a_canonical_text_is_its_own),
		cmocka_unit_test(what_matters_stays),
		cmocka_unit_test(room_that_is_too_small_is_told),
		cmocka_unit_test(nothing_beyond_the_text_is_read),
		cmocka_unit_test(text_is_appended),
		cmocka_unit_test(deep_and_wide),
		cmocka_unit_test(exponents_beyond_all_measure_are_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
