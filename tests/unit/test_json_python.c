/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's json.dumps(x, sort_keys=True), by known answers; tests/cli/test_python.py
 * asks Python itself about a million documents. C1.
 */
#include "wire/json/json_canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/json/json_string.h"

/* The file once more, with what looks through text counting how far it looks. */
static size_t looked_at;

static const unsigned char *counted_skip_plain(const unsigned char *at, const unsigned char *end)
{
	const unsigned char *found = hx_json_skip_plain(at, end);

	looked_at += (size_t)(found - at) + 1;
	return found;
}

static void *counted_memchr(const void *data, int byte, size_t size)
{
	const char *found = memchr(data, byte, size);

	looked_at += found == NULL ? size : (size_t)(found - (const char *)data) + 1;
	return (void *)(uintptr_t)found;
}

unsigned char *counted_python_string(struct hx_json_string string, unsigned char *to);
unsigned char *counted_python_integer(
	struct hapax_bytes text, unsigned char *to, const char **ret_reason);
unsigned char *counted_python_float(struct hapax_bytes text, unsigned char *to);

#define hx_json_skip_plain     counted_skip_plain
#define memchr                 counted_memchr
#define hx_json_python_string  counted_python_string
#define hx_json_python_integer counted_python_integer
#define hx_json_python_float   counted_python_float
#include "wire/json/json_python.c" /* NOLINT(bugprone-suspicious-include) */
#undef hx_json_skip_plain
#undef memchr
#undef hx_json_python_string
#undef hx_json_python_integer
#undef hx_json_python_float

static uint64_t scratch[4096];

static enum hapax_status write_text(
	const char *text, size_t size, struct hx_json_target *target, struct hapax_error *err)
{
	struct hx_json_tree tree;
	bool is_short;
	enum hapax_status status = hx_json_tree_read(
		&tree, hx_bytes(text, size), scratch, sizeof(scratch), &is_short, err);

	if (status != HAPAX_OK)
		return status;
	return hx_json_canonical_write(&tree, tree.nodes, HX_JSON_PYTHON, HX_JSON_ALL, target, err);
}

/* Text, and json.dumps(json.loads(text), sort_keys=True) in Python 3.11.2. */
static const char *const dumps[][2] = {
	{"{\"b\":1,\"a\":[1,2]}", "{\"a\": [1, 2], \"b\": 1}"},
	{"[]", "[]"},
	{"{}", "{}"},
	{"[[],{},[1]]", "[[], {}, [1]]"},
	{"[true,false,null]", "[true, false, null]"},
	{"[1E400,-1e309,1e99999999999999999999,-1e99999999999999999999]",
	 "[Infinity, -Infinity, Infinity, -Infinity]"},
	{"[0e99999999999999999999,1.7976931348623158e308]", "[0.0, 1.7976931348623157e+308]"},
	{"[1,1.0,10e-1,-0,-0.0,1e5]", "[1, 1.0, 1.0, 0, -0.0, 100000.0]"},
	{"[9007199254740993,9007199254740993.0]", "[9007199254740993, 9007199254740992.0]"},
	{"123456789012345678901234567890", "123456789012345678901234567890"},
	{"[1e16,1e15,0.0001,0.00001]", "[1e+16, 1000000000000000.0, 0.0001, 1e-05]"},
	{"[1e-400,1e-99999999999999999999,-1e-99999999999999999999]", "[0.0, 0.0, -0.0]"},
	{"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\\u00e9\\u20ac\\ud83d\\ude00\""},
	{"\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"", "\"/\\b\\f\\n\\r\\t\\\"\\\\\""},
	{"\"\\u0000\\u001f\\u007f\"", "\"\\u0000\\u001f\\u007f\""},
	{"\"\x7f\"", "\"\\u007f\""},
	{"\"\\u2028\"", "\"\\u2028\""},
	{"{\"\xf0\x9f\x98\x80\":1,\"\xef\xbf\xbf\":2}", "{\"\\uffff\": 2, \"\\ud83d\\ude00\": 1}"},
};

static void as_python_dumps_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(dumps) / sizeof(dumps[0]); i++) {
		unsigned char out[1024];
		struct hx_json_target target = {out, 0, sizeof(out) - 1, false};
		struct hapax_error err = {HAPAX_OK, 0, ""};
		enum hapax_status status =
			write_text(dumps[i][0], strlen(dumps[i][0]), &target, &err);

		assert_int_equal(status, HAPAX_OK);
		out[target.size] = '\0';
		assert_string_equal((const char *)out, dumps[i][1]);
	}
}

/* Of a string of count units: how many bytes were looked at to write it. */
static size_t work_for(const char *unit, size_t count)
{
	size_t size = strlen(unit) * count;
	unsigned char *text = malloc(size);
	unsigned char *out = malloc(HX_JSON_PYTHON_EXPANSION * size + 2);

	assert_non_null(text);
	assert_non_null(out);
	for (size_t i = 0; i < size; i++)
		text[i] = (unsigned char)unit[i % strlen(unit)];
	looked_at = 0;
	(void)counted_python_string((struct hx_json_string){text, (uint32_t)size, true}, out);
	free(text);
	free(out);
	return looked_at;
}

/* Twice the text is twice the work, whatever is in it: a sender cannot make it stall. */
static void work_grows_with_the_size(void **state)
{
	static const char *const units[] = {
		"\x7f",
		"a\x7f",
		"abcdefgh\x7f",
		"\\n",
		"\xc3\xa9",
		"\x7f\xc3\xa9",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	(void)state;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t once = work_for(units[i], 4096);
		size_t twice = work_for(units[i], 8192);

		assert_in_range(once, 1, 4 * 4096 * strlen(units[i]));
		assert_in_range(twice, once, 2 * once + 16);
	}
}

/* Since 3.10.7 int() stops at 4,300 digits. */
static void integers_that_python_refuses(void **state)
{
	static char text[4302];
	static unsigned char out[65536];
	struct hx_json_target target = {out, 0, sizeof(out), false};
	struct hapax_error err;

	(void)state;
	memset(text, '9', sizeof(text));
	assert_int_equal(write_text(text, 4300, &target, &err), HAPAX_OK);
	assert_int_equal(target.size, 4300);
	assert_memory_equal(out, text, 4300);
	assert_int_equal(write_text(text, 4301, &target, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "4300 digits"));
	text[0] = '-';
	target.size = 0;
	assert_int_equal(write_text(text, 4301, &target, &err), HAPAX_OK);
	assert_int_equal(write_text(text, 4302, &target, &err), HAPAX_ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_python_dumps_it),
		cmocka_unit_test(work_grows_with_the_size),
		cmocka_unit_test(integers_that_python_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
