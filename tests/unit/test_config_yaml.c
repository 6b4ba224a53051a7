/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as a tree: what is read, what is refused, and where.
 */
#include "config/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

enum { TEXT_MAX = 2 * 1024 * 1024 };

static struct hx_config_arena arena;
static struct hapax_error err;

static const struct hx_yaml_node *read_text(const char *text)
{
	struct hx_faults faults = {.err = &err};
	const struct hx_yaml_node *tree;

	hx_config_arena_done(&arena);
	err.message[0] = '\0';
	tree = hx_yaml_read(hapax_bytes_from_text(text), "a.yaml", &arena, &faults);
	assert_true((tree == NULL) == (faults.count > 0) || (tree == NULL && faults.count == 0));
	return tree;
}

static int done(void **state)
{
	(void)state;
	hx_config_arena_done(&arena);
	return 0;
}

static void maps_lists_and_places(void **state)
{
	const struct hx_yaml_node *tree = read_text("a: 1\n"
						    "b:\n"
						    "  - x\n"
						    "  - {k: 'on', n: ~}\n"
						    "\"c d\": |\n"
						    "  text\n");
	const struct hx_yaml_node *list, *map;

	(void)state;
	assert_non_null(tree);
	assert_int_equal(tree->kind, HX_YAML_MAP);
	assert_int_equal(tree->count, 3);
	list = hx_yaml_member(tree, "b");
	assert_int_equal(list->kind, HX_YAML_LIST);
	assert_int_equal(list->count, 2);
	assert_int_equal(list->first->value->place.line, 3);
	assert_int_equal(list->first->value->place.column, 5);
	map = list->last->value;
	assert_string_equal(hx_yaml_member(map, "k")->text.data, "on");
	assert_false(hx_yaml_member(map, "k")->is_plain);
	assert_true(hx_yaml_is_null(hx_yaml_member(map, "n")));
	assert_false(hx_yaml_is_null(hx_yaml_member(map, "k")));
	assert_string_equal(hx_yaml_member(tree, "c d")->text.data, "text\n");
	assert_null(hx_yaml_member(tree, "d"));
}

static void an_empty_text_is_no_tree(void **state)
{
	(void)state;
	assert_null(read_text(""));
	assert_string_equal(err.message, "");
	assert_null(read_text("# only a comment\n"));
	assert_string_equal(err.message, "");
}

static void an_alias_is_the_same_node(void **state)
{
	const struct hx_yaml_node *tree = read_text("a: &x {k: 1}\nb: *x\nc: &x 2\nd: *x\n");

	(void)state;
	assert_non_null(tree);
	assert_ptr_equal(hx_yaml_member(tree, "a"), hx_yaml_member(tree, "b"));
	assert_ptr_equal(hx_yaml_member(tree, "c"), hx_yaml_member(tree, "d"));
}

static void what_is_refused_has_its_place(void **state)
{
	static const struct {
		const char *text;
		const char *message;
	} cases[] = {
		{"a: 1\na: 2\n", "a.yaml:2:1: key 'a' occurs twice"},
		{"x: {a: 1, 'a': 2}\n", "a.yaml:1:11: key 'a' occurs twice"},
		{"k: &n a\na: 1\n*n : 2\n", "a.yaml:3:1: key 'a' occurs twice"},
		{"a: !!str 1\n", "a.yaml:1:4: tags (!name) are not supported"},
		{"a: !x {}\n", "a.yaml:1:4: tags (!name) are not supported"},
		{"a: *b\n", "a.yaml:1:4: an alias refers to an unknown anchor"},
		{"a: &a [*a]\n", "a.yaml:1:8: an alias must not refer to a value that contains it"},
		{"a: &a {b: [c, *a]}\n",
		 "a.yaml:1:15: an alias must not refer to a value that contains it"},
		{"[a]: 1\n", "a.yaml:1:1: a key must be a name"},
		{"a: 1\n---\nb: 2\n",
		 "a.yaml:2:1: only one document is allowed; remove the second '---'"},
		{"a: [1\n", "a.yaml:2:1: did not find expected ',' or ']'"},
		{"a: b: c\n",
		 "a.yaml:1:5: unexpected ':'; if it belongs to a value, quote the value"},
		{"a: {url: memory:}\n",
		 "a.yaml:1:16: unexpected ':'; if it belongs to a value, quote"},
		{"\tb: 1\n", "a.yaml:1:1: found character that cannot start any token"},
		{"a: \"\\0\"\n", "a.yaml:1:4: a value contains a NUL"},
		{"a: \xff\n", "a.yaml:"},
		{"a: \"\x01\"\n", "a.yaml:"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_null(read_text(cases[i].text));
		if (strncmp(err.message, cases[i].message, strlen(cases[i].message)) != 0)
			fail_msg("%s: %s", cases[i].text, err.message);
	}
}

/* count times piece between begin and end. */
static const struct hx_yaml_node *read_many(
	const char *begin, const char *piece, size_t count, const char *end)
{
	const struct hx_yaml_node *tree;
	struct hapax_buf text;

	hx_buf_init(&text, TEXT_MAX);
	assert_int_equal(hx_buf_append(&text, begin, strlen(begin)), HAPAX_OK);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(hx_buf_append(&text, piece, strlen(piece)), HAPAX_OK);
	assert_int_equal(hx_buf_append(&text, end, strlen(end) + 1), HAPAX_OK);
	tree = read_text((const char *)text.data);
	hx_buf_done(&text);
	return tree;
}

static void everything_has_a_limit(void **state)
{
	char laughs[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
	size_t used = strlen(laughs);

	(void)state;
	/* A billion laughs: 30 levels of ten each are as many nodes as are written. */
	for (int i = 1; i < 30; i++)
		used += (size_t)snprintf(
			laughs + used, sizeof(laughs) - used,
			"a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
			i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_non_null(read_text(laughs));
	assert_true(arena.used < 1024 * 1024);

	assert_null(read_many("a: ", "[", HX_YAML_DEPTH_MAX, ""));
	assert_non_null(strstr(err.message, "too many levels of nesting"));
	assert_null(read_many("a: [", "x,", HX_YAML_NODES_MAX, "]"));
	assert_non_null(strstr(err.message, "too many values in this file"));
	assert_null(read_many("a: &a x\nb: [", "*a,", HX_YAML_NODES_MAX, "]"));
	assert_non_null(strstr(err.message, "too many values in this file"));
	assert_null(read_many("a: [", "&a x,", HX_YAML_ANCHORS_MAX + 1, "]"));
	assert_non_null(strstr(err.message, "too many anchors: limit 100"));
	assert_null(read_many("a: '", "x", HX_YAML_SIZE_MAX, "'"));
	assert_non_null(strstr(err.message, "too large: limit 1 MiB"));
	assert_null(read_many("", "[", 100000, ""));
	assert_null(read_many("", "- ", 100000, ""));
	assert_null(read_many("", "{a: ", 100000, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(maps_lists_and_places, done),
		cmocka_unit_test_teardown(an_empty_text_is_no_tree, done),
		cmocka_unit_test_teardown(an_alias_is_the_same_node, done),
		cmocka_unit_test_teardown(what_is_refused_has_its_place, done),
		cmocka_unit_test_teardown(everything_has_a_limit, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
