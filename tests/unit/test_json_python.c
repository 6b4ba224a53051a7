/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's json.dumps(x, sort_keys=True), by known answers; tests/cli/test_python.py
 * asks Python itself about a million documents. C1.
 */
#include "wire/json_canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

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
	{"[1,1.0,10e-1,-0,-0.0,1e5,1E400]", NULL},
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

		assert_int_equal(status, dumps[i][1] == NULL ? HAPAX_ERR_INVALID : HAPAX_OK);
		if (dumps[i][1] == NULL)
			continue;
		out[target.size] = '\0';
		assert_string_equal((const char *)out, dumps[i][1]);
	}
}

static void what_python_would_print_as_infinity(void **state)
{
	unsigned char out[1024];
	struct hx_json_target target = {out, 0, sizeof(out), false};
	struct hapax_error err;

	(void)state;
	assert_int_equal(write_text("{\"a\":1e309}", 11, &target, &err), HAPAX_ERR_INVALID);
	assert_string_equal(
		err.message,
		"line 1, column 6: too large for a double: Python would print Infinity, which is not JSON");
	assert_int_equal(
		write_text("1e99999999999999999999", 22, &target, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "Infinity"));
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
		cmocka_unit_test(what_python_would_print_as_infinity),
		cmocka_unit_test(integers_that_python_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
