/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idempotency-Key: as the draft has it, as clients send it, and what is neither.
 */
#include "wire/sfstring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

struct sfstring_case {
	const char *value;
	const char *key; /* NULL: refused */
	size_t offset;   /* and where */
};

/* clang-format off */
static const struct sfstring_case cases[] = {
	/* quoted */
	{"\"8e03978e-40d5-43e8-bc93-6894a57f9324\"", "8e03978e-40d5-43e8-bc93-6894a57f9324", 0},
	{"\"a\"", "a", 0},
	{"\" \"", " ", 0},
	{"\"a b,c;d\"", "a b,c;d", 0},
	{"\"a\\\"b\"", "a\"b", 0},
	{"\"a\\\\b\"", "a\\b", 0},
	{"\"~!\"", "~!", 0},
	{" \t\"a\"\t ", "a", 0},
	{"\"\"", NULL, 2},
	{"\"", NULL, 1},
	{"\"a", NULL, 2},
	{"\"a\\\"", NULL, 4},
	{"\"a\\b\"", NULL, 3},
	{"\"a\\", NULL, 3},
	{"\"a\tb\"", NULL, 2},
	{"\"a\x7f\"", NULL, 2},
	{"\"\xc3\xa9\"", NULL, 1},
	{"\"a\"b", NULL, 3},
	{"\"a\" b", NULL, 3},
	{"\"a\", \"b\"", NULL, 3},
	{"\"a\",\"b\"", NULL, 3},
	{"\"a\"\"b\"", NULL, 3},
	/* parameters */
	{"\"a\";b", "a", 0},
	{"\"a\"; b", "a", 0},
	{"\"a\";b=1;c=-1.5;d=tok/en:x;e=\"s\\\"t\";f=?0;g=:YWI=:;h=*;i=@1659578233", "a", 0},
	{"\"a\";*b_-.*9=?1", "a", 0},
	{"\"a\";b=123456789012345", "a", 0},
	{"\"a\";b=123456789012.123", "a", 0},
	{"\"a\";", NULL, 4},
	{"\"a\";B", NULL, 4},
	{"\"a\";1", NULL, 4},
	{"\"a\" ;b", NULL, 3},
	{"\"a\";b=", NULL, 6},
	{"\"a\";b= 1", NULL, 6},
	{"\"a\";b=\xc3", NULL, 6},
	{"\"a\";b=(", NULL, 6},
	{"\"a\";b=-", NULL, 7},
	{"\"a\";b=1.", NULL, 8},
	{"\"a\";b=1.1234", NULL, 12},
	{"\"a\";b=1234567890123456", NULL, 22},
	{"\"a\";b=1234567890123.1", NULL, 21},
	{"\"a\";b=?2", NULL, 7},
	{"\"a\";b=:YWI=", NULL, 11},
	{"\"a\";b=:Y WI=:", NULL, 8},
	{"\"a\";b=\"c", NULL, 8},
	{"\"a\";b=\"c\\d\"", NULL, 9},
	{"\"a\";b=1x", NULL, 7},
	{"\"a\";b, \"c\"", NULL, 5},
	/* bare */
	{"8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324", 0},
	{"stripe-node-retry-0b7bd3d2-e6d4-4fb8-a7c0-2ec6dfd3bb7e", "stripe-node-retry-0b7bd3d2-e6d4-4fb8-a7c0-2ec6dfd3bb7e", 0},
	{"a", "a", 0},
	{" a ", "a", 0},
	{"a;b=c", "a;b=c", 0},
	{"a\"b", "a\"b", 0},
	{"a\\b", "a\\b", 0},
	{":YWI=:", ":YWI=:", 0},
	{"?1", "?1", 0},
	{"'a'", "'a'", 0},
	{"~", "~", 0},
	{"!", "!", 0},
	{"", NULL, 0},
	{" ", NULL, 0},
	{"a b", NULL, 1},
	{"a\tb", NULL, 1},
	{"a,b", NULL, 1},
	{"a, b", NULL, 1},
	{",", NULL, 0},
	{"a\x7f", NULL, 1},
	{"a\x01", NULL, 1},
	{"caf\xc3\xa9", "caf\xc3\xa9", 0},
	{"\xe2\x82\xac-17", "\xe2\x82\xac-17", 0},
	{"caf\xe9", NULL, 3},
	{"a\xc3", NULL, 1},
	{"a\xc2\x85", NULL, 1},
	{"a\xc0\xaf", NULL, 1},
	{" a b", NULL, 2},
};
/* clang-format on */

enum { CASE_COUNT = sizeof(cases) / sizeof(cases[0]) };

static enum hapax_status read_text(
	const char *value, char out[HX_SFSTRING_MAX], size_t *ret_size, struct hapax_error *err)
{
	size_t size = strlen(value);
	char *copy = malloc(size + 1);
	enum hapax_status status;

	assert_non_null(copy);
	memcpy(copy + 1, value, size);
	status = hx_sfstring_read(hx_bytes(copy + 1, size), out, ret_size, err);
	free(copy);
	return status;
}

static void keys_are_read_or_refused_with_a_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASE_COUNT; i++) {
		struct hapax_error err = {HAPAX_OK, 0, ""};
		char out[HX_SFSTRING_MAX];
		char place[32];
		size_t size = 99;
		enum hapax_status status = read_text(cases[i].value, out, &size, &err);

		if (cases[i].key != NULL) {
			if (status != HAPAX_OK)
				fail_msg("'%s': %s", cases[i].value, err.message);
			assert_true(hx_bytes_equal(
				hx_bytes(out, size), hapax_bytes_from_text(cases[i].key)));
			continue;
		}
		(void)snprintf(place, sizeof(place), "byte %zu: ", cases[i].offset);
		if (status != HAPAX_ERR_INVALID || strncmp(err.message, place, strlen(place)) != 0)
			fail_msg("'%s': wanted %s, got %s", cases[i].value, place, err.message);
		assert_int_equal(size, 99);
	}
}

static void keys_have_at_most_255_characters(void **state)
{
	char value[300];
	char out[HX_SFSTRING_MAX];
	size_t size;

	(void)state;
	memset(value, 'x', sizeof(value));
	for (size_t quoted = 0; quoted < 2; quoted++) {
		for (size_t extra = 0; extra < 2; extra++) {
			size_t count = HX_SFSTRING_MAX + extra;
			char text[300];

			(void)snprintf(
				text, sizeof(text), "%s%.*s%s", quoted ? "\"" : "", (int)count,
				value, quoted ? "\"" : "");
			assert_int_equal(
				read_text(text, out, &size, NULL),
				extra == 0 ? HAPAX_OK : HAPAX_ERR_INVALID);
		}
	}
	assert_int_equal(size, HX_SFSTRING_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_read_or_refused_with_a_place),
		cmocka_unit_test(keys_have_at_most_255_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
