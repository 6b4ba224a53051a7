/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 8259, text by text: what is JSON, what is not, and where that shows. C1.
 */
#include "wire/json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#include "json_texts.h"

enum {
	ACCEPTED_COUNT = sizeof(accepted) / sizeof(accepted[0]),
	REFUSED_COUNT = sizeof(refused) / sizeof(refused[0]),
	NAME_COUNT = 256,
};

/*
 * Read to the end. The text lies at the end of its own allocation, so that a
 * sanitizer sees a read beyond it.
 */
static enum hapax_status read_all(struct text text, size_t *ret_tokens, struct hapax_error *err)
{
	char *copy = malloc(text.size + 1);
	char *data = copy + 1; /* no alignment to rely on */
	struct hx_json_name names[NAME_COUNT];
	struct hx_json_token token = {.type = HX_JSON_NULL};
	struct hx_json json;
	enum hapax_status status;

	assert_non_null(copy);
	memcpy(data, text.data, text.size);
	*ret_tokens = 0;
	status = hx_json_init(&json, hx_bytes(data, text.size), names, NAME_COUNT, err);
	while (status == HAPAX_OK) {
		status = hx_json_next(&json, &token, err);
		if (status != HAPAX_OK || token.type == HX_JSON_END)
			break;
		(*ret_tokens)++;
		assert_in_range(token.text + token.size, 0, text.size);
		assert_in_range(token.name + token.name_size, 0, text.size);
	}
	free(copy);
	return status;
}

static void there_are_at_least_300_texts(void **state)
{
	(void)state;
	assert_true(ACCEPTED_COUNT + REFUSED_COUNT >= 300);
}

static void what_is_json_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ACCEPTED_COUNT; i++) {
		struct hapax_error err = {HAPAX_OK, 0, ""};
		size_t tokens;

		if (read_all(accepted[i], &tokens, &err) != HAPAX_OK)
			fail_msg("text %zu, '%s': %s", i, accepted[i].data, err.message);
		assert_true(tokens >= 1);
	}
}

static void what_is_not_is_refused_where_it_shows(void **state)
{
	(void)state;
	for (size_t i = 0; i < REFUSED_COUNT; i++) {
		struct hapax_error err = {HAPAX_OK, 0, ""};
		char expected[HAPAX_ERROR_MESSAGE_SIZE];
		size_t tokens;
		enum hapax_status status = read_all(refused[i].text, &tokens, &err);

		if (status == HAPAX_OK)
			fail_msg("text %zu, '%s' was read", i, refused[i].text.data);
		(void)snprintf(
			expected, sizeof(expected), "line %zu, column %zu: %s", refused[i].line,
			refused[i].column, refused[i].reason);
		assert_string_equal(err.message, expected);
		assert_int_equal(err.status, status);
		assert_int_equal(
			status,
			strstr(err.message, "deeper") != NULL ? HAPAX_ERR_LIMIT
							      : HAPAX_ERR_INVALID);
	}
}

/* Whatever is cut off, what remains is not JSON, except for numbers. */
static void every_beginning_is_refused(void **state)
{
	static const char text[] =
		"{\"a\":[true,false,null,\"x\\n\\u00e9\\ud83d\\ude00\xc3\xa9\"],\"b\":{}}";

	(void)state;
	for (size_t size = 0; size < sizeof(text) - 1; size++) {
		struct hapax_error err;
		size_t tokens;

		assert_int_equal(
			read_all((struct text){text, size}, &tokens, &err), HAPAX_ERR_INVALID);
	}
}

/* No byte in place of another makes it read beyond the end or loop. */
static void every_byte_everywhere(void **state)
{
	static const char text[] = "{\"a\":[1.5e3,\"\\u00e9\xc3\xa9\"],\"b\":null}";
	char changed[sizeof(text)];

	(void)state;
	for (size_t at = 0; at < sizeof(text) - 1; at++) {
		for (int byte = 0; byte < 256; byte++) {
			struct hapax_error err;
			size_t tokens;

			memcpy(changed, text, sizeof(text));
			changed[at] = (char)byte;
			(void)read_all((struct text){changed, sizeof(text) - 1}, &tokens, &err);
		}
	}
}

struct expected_token {
	enum hx_json_type type;
	const char *name;
	const char *text;
};

static void tokens_point_into_the_text(void **state)
{
	static const char text[] = " { \"a\" : [ 1.5, \"x\\n\" ], \"b\\u0041\":true } ";
	static const struct expected_token expected[] = {
		{HX_JSON_OBJECT, "", "{"},     {HX_JSON_ARRAY, "a", "["},
		{HX_JSON_NUMBER, "", "1.5"},   {HX_JSON_STRING, "", "x\\n"},
		{HX_JSON_ARRAY_END, "", "]"},  {HX_JSON_TRUE, "b\\u0041", "true"},
		{HX_JSON_OBJECT_END, "", "}"}, {HX_JSON_END, "", ""},
	};
	struct hx_json_name names[4];
	struct hx_json json;
	struct hx_json_token token;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, hx_bytes(text, sizeof(text) - 1), names, 4, NULL), HAPAX_OK);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(hx_json_next(&json, &token, NULL), HAPAX_OK);
		assert_int_equal(token.type, expected[i].type);
		assert_int_equal(token.size, strlen(expected[i].text));
		assert_memory_equal(text + token.text, expected[i].text, token.size);
		assert_int_equal(token.name_size, strlen(expected[i].name));
		assert_memory_equal(text + token.name, expected[i].name, token.name_size);
	}
	/* Once at the end it stays there. */
	assert_int_equal(hx_json_next(&json, &token, NULL), HAPAX_OK);
	assert_int_equal(token.type, HX_JSON_END);
}

static void flags_tell_escapes_and_fractions(void **state)
{
	static const char text[] = "[\"a\",\"\\n\",1,1.5,1e5,-7,{\"x\":0},{\"\\n\":0}]";
	struct hx_json_name names[4];
	struct hx_json_token tokens[16];
	struct hx_json json;
	size_t count = 0;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, hx_bytes(text, sizeof(text) - 1), names, 4, NULL), HAPAX_OK);
	do
		assert_int_equal(hx_json_next(&json, &tokens[count], NULL), HAPAX_OK);
	while (tokens[count++].type != HX_JSON_END);
	assert_false(tokens[1].escaped);
	assert_true(tokens[2].escaped);
	assert_false(tokens[3].escaped);
	assert_true(tokens[4].escaped);
	assert_true(tokens[5].escaped);
	assert_false(tokens[6].escaped);
	assert_false(tokens[8].name_escaped);
	assert_true(tokens[11].name_escaped);
}

static void closed_names_stand_in_order(void **state)
{
	static const char text[] = "{\"b\":{\"z\":1,\"y\":2},\"a\":3}";
	struct hx_json_name names[4];
	struct hx_json_name *closed;
	struct hx_json_token token;
	struct hx_json json;
	uint32_t tag = 0;
	size_t count;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, hx_bytes(text, sizeof(text) - 1), names, 4, NULL), HAPAX_OK);
	do {
		assert_int_equal(hx_json_next(&json, &token, NULL), HAPAX_OK);
		if (token.name != 0)
			hx_json_tag_name(&json, ++tag); /* b 1, z 2, y 3, a 4 */
		if (token.type != HX_JSON_OBJECT_END)
			continue;
		closed = hx_json_closed_names(&json, &count);
		assert_int_equal(count, 2);
		assert_int_equal(closed[0].tag, json.depth == 1 ? 3 : 4);
		assert_int_equal(closed[1].tag, json.depth == 1 ? 2 : 1);
	} while (token.type != HX_JSON_END);
}

static void without_names_members_may_repeat(void **state)
{
	struct hx_json_token token;
	struct hx_json json;
	size_t count;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, HX_BYTES_LIT("{\"a\":1,\"a\":2}"), NULL, 0, NULL), HAPAX_OK);
	do
		assert_int_equal(hx_json_next(&json, &token, NULL), HAPAX_OK);
	while (token.type != HX_JSON_END);
	assert_null(hx_json_closed_names(&json, &count));
}

static void too_many_names_are_a_limit(void **state)
{
	struct hapax_error err;
	struct hx_json_name names[2];
	struct hx_json_token token;
	struct hx_json json;
	enum hapax_status status;

	(void)state;
	/* Closed objects give their names back: only open ones count. */
	status = hx_json_init(
		&json, HX_BYTES_LIT("[{\"a\":1,\"b\":2},{\"c\":3,\"d\":4}]"), names, 2, &err);
	do {
		assert_int_equal(status, HAPAX_OK);
		status = hx_json_next(&json, &token, &err);
	} while (status == HAPAX_OK && token.type != HX_JSON_END);
	assert_int_equal(status, HAPAX_OK);
	status = hx_json_init(&json, HX_BYTES_LIT("{\"a\":1,\"b\":{\"c\":3}}"), names, 2, &err);
	while (status == HAPAX_OK)
		status = hx_json_next(&json, &token, &err);
	assert_int_equal(status, HAPAX_ERR_LIMIT);
	assert_string_equal(err.message, "line 1, column 13: too many member names: limit 2");
}

static void nesting_is_a_limit(void **state)
{
	char text[2 * HX_JSON_DEPTH_MAX + 2];
	struct hapax_error err;
	size_t tokens;

	(void)state;
	memset(text, '[', HX_JSON_DEPTH_MAX);
	memset(text + HX_JSON_DEPTH_MAX, ']', HX_JSON_DEPTH_MAX);
	assert_int_equal(
		read_all((struct text){text, 2 * (size_t)HX_JSON_DEPTH_MAX}, &tokens, &err),
		HAPAX_OK);
	assert_int_equal(tokens, 2 * HX_JSON_DEPTH_MAX);
	memset(text, '[', HX_JSON_DEPTH_MAX + 1);
	assert_int_equal(
		read_all((struct text){text, HX_JSON_DEPTH_MAX + 1}, &tokens, &err),
		HAPAX_ERR_LIMIT);
	assert_string_equal(err.message, "line 1, column 129: nested deeper than 128 levels");
}

static void objects_and_arrays_are_kept_apart_at_every_depth(void **state)
{
	char text[6 * HX_JSON_DEPTH_MAX + 1];
	size_t tokens;

	(void)state;
	/* [{"a":[{"a":... with a bracket of the wrong kind at each level in turn. */
	for (int wrong = -1; wrong < HX_JSON_DEPTH_MAX; wrong++) {
		struct hapax_error err;
		size_t size = 0;

		for (int i = 0; i < HX_JSON_DEPTH_MAX; i++) {
			const char *open = i % 2 == 0 ? "[" : "{\"a\":";

			memcpy(text + size, open, strlen(open));
			size += strlen(open);
		}
		text[size++] = '1';
		for (int i = HX_JSON_DEPTH_MAX - 1; i >= 0; i--)
			text[size++] = ((i % 2 == 0) != (i == wrong)) ? ']' : '}';
		assert_int_equal(
			read_all((struct text){text, size}, &tokens, &err),
			wrong < 0 ? HAPAX_OK : HAPAX_ERR_INVALID);
	}
}

static void size_is_a_limit(void **state)
{
	struct hapax_error err;
	struct hx_json json;

	(void)state;
	assert_int_equal(
		hx_json_init(&json, hx_bytes("", (size_t)HX_JSON_SIZE_MAX + 1), NULL, 0, &err),
		HAPAX_ERR_LIMIT);
	assert_non_null(strstr(err.message, "67108865 bytes"));
}

static void places_count_lines_and_characters(void **state)
{
	static const char text[] = "a\xc3\xa9"
				   "b\nc\xf0\x9f\x98\x80"
				   "d\r\ne";
	static const size_t places[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 3}, {1, 4},
					   {2, 1}, {2, 2}, {2, 3}, {2, 3}, {2, 3},
					   {2, 3}, {2, 4}, {2, 5}, {3, 1}, {3, 2}};

	(void)state;
	for (size_t i = 0; i <= sizeof(text) - 1; i++) {
		size_t line;
		size_t column;

		hx_json_place(hx_bytes(text, sizeof(text) - 1), i, &line, &column);
		assert_int_equal(line, places[i][0]);
		assert_int_equal(column, places[i][1]);
	}
}

static void long_names_in_messages_are_cut_between_characters(void **state)
{
	char text[512];
	struct hapax_error err;
	size_t tokens;
	int size;

	(void)state;
	/* 63 letters, then characters of two bytes: the 64th byte is the first of one. */
	size = snprintf(
		text, sizeof(text), "{\"%063d\xc3\xa9\xc3\xa9\":1,\"%063d\xc3\xa9\xc3\xa9\":2}", 0,
		0);
	assert_int_equal(
		read_all((struct text){text, (size_t)size}, &tokens, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "000\" occurs twice"));
}

/* Long before the end: what is behind it is not looked at. */
static void many_names_twice_are_refused_early(void **state)
{
	enum { NAMES = 5000, ROOM = 16 };
	static struct hx_json_name names[NAMES];
	static char text[NAMES * ROOM + 16];
	struct hx_json json;
	struct hx_json_token token;
	struct hapax_error err;
	enum hapax_status status;
	size_t size = 0;
	size_t read = 0;

	(void)state;
	for (int i = 0; i < NAMES; i++)
		size += (size_t)snprintf(
			text + size, ROOM, "%s\"n%d\":0", i == 0 ? "{" : ",",
			i < NAMES / 10 ? NAMES - i : NAMES - 7);
	text[size++] = '@';
	assert_int_equal(hx_json_init(&json, hx_bytes(text, size), names, NAMES, &err), HAPAX_OK);
	while ((status = hx_json_next(&json, &token, &err)) == HAPAX_OK)
		read++;
	assert_int_equal(status, HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "occurs twice"));
	assert_true(read < 4 * NAMES / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_at_least_300_texts),
		cmocka_unit_test(what_is_json_is_read),
		cmocka_unit_test(what_is_not_is_refused_where_it_shows),
		cmocka_unit_test(every_beginning_is_refused),
		cmocka_unit_test(every_byte_everywhere),
		cmocka_unit_test(tokens_point_into_the_text),
		cmocka_unit_test(flags_tell_escapes_and_fractions),
		cmocka_unit_test(closed_names_stand_in_order),
		cmocka_unit_test(without_names_members_may_repeat),
		cmocka_unit_test(too_many_names_are_a_limit),
		cmocka_unit_test(nesting_is_a_limit),
		cmocka_unit_test(objects_and_arrays_are_kept_apart_at_every_depth),
		cmocka_unit_test(size_is_a_limit),
		cmocka_unit_test(places_count_lines_and_characters),
		cmocka_unit_test(long_names_in_messages_are_cut_between_characters),
		cmocka_unit_test(many_names_twice_are_refused_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
