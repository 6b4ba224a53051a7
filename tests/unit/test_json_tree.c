/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json/json_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static uint64_t scratch[8192];

static struct hx_json_tree read_ok(const char *text)
{
	struct hx_json_tree tree;
	struct hapax_error err = {HAPAX_OK, 0, ""};
	bool is_short;

	if (hx_json_tree_read(
		    &tree, hx_bytes(text, strlen(text)), scratch, sizeof(scratch), &is_short,
		    &err) != HAPAX_OK)
		fail_msg("%s: %s", text, err.message);
	assert_false(is_short);
	return tree;
}

static void members_stand_in_order_items_do_not_move(void **state)
{
	struct hx_json_tree tree = read_ok("{\"c\":[3,1,2],\"a\":{\"z\":1,\"y\":2},\"b\":null}");
	const struct hx_json_node *node = &tree.nodes[tree.nodes[0].child];
	const char *names = "abc";

	(void)state;
	assert_int_equal(tree.count, 9);
	for (size_t i = 0; i < 3; i++) {
		assert_true(hx_json_string_equal(
			hx_json_node_name(&tree, node), hx_bytes(names + i, 1)));
		if (node->next != 0)
			node = &tree.nodes[node->next];
	}
	for (size_t i = 0; i < 3; i++) {
		struct hapax_bytes text =
			hx_json_node_text(&tree, hx_json_tree_item(&tree, node, i));

		assert_memory_equal(text.data, &"312"[i], 1);
	}
	assert_null(hx_json_tree_item(&tree, node, 3));
}

static void nodes_know_their_text(void **state)
{
	static const char text[] = " [ {\"a\" : [1 , 2]} , \"x\" ] ";
	struct hx_json_tree tree = read_ok(text);
	struct hapax_bytes whole = hx_json_node_text(&tree, tree.nodes);
	const struct hx_json_node *object = hx_json_tree_item(&tree, tree.nodes, 0);
	const struct hx_json_node *array = hx_json_tree_member(&tree, object, HX_BYTES_LIT("a"));
	const struct hx_json_node *string = hx_json_tree_item(&tree, tree.nodes, 1);

	(void)state;
	assert_true(hx_bytes_equal(whole, hx_bytes(text + 1, sizeof(text) - 3)));
	assert_true(hx_bytes_equal(hx_json_node_text(&tree, array), HX_BYTES_LIT("[1 , 2]")));
	assert_true(hx_bytes_equal(hx_json_node_text(&tree, string), HX_BYTES_LIT("\"x\"")));
}

static void members_are_found_by_value_of_their_name(void **state)
{
	struct hx_json_tree tree = read_ok("{\"\\u0061\":1,\"b\\n\":2,\"\":3,\"\xc3\xa9\":4}");

	(void)state;
	assert_non_null(hx_json_tree_member(&tree, tree.nodes, HX_BYTES_LIT("a")));
	assert_non_null(hx_json_tree_member(&tree, tree.nodes, HX_BYTES_LIT("b\n")));
	assert_non_null(hx_json_tree_member(&tree, tree.nodes, HX_BYTES_LIT("")));
	assert_non_null(hx_json_tree_member(&tree, tree.nodes, HX_BYTES_LIT("\xc3\xa9")));
	assert_null(hx_json_tree_member(&tree, tree.nodes, HX_BYTES_LIT("\\u0061")));
	assert_null(hx_json_tree_member(&tree, tree.nodes, HX_BYTES_LIT("A")));
	assert_null(hx_json_tree_item(&tree, tree.nodes, 0));
	assert_null(hx_json_tree_member(
		&tree, hx_json_tree_member(&tree, tree.nodes, HX_BYTES_LIT("a")),
		HX_BYTES_LIT("a")));
}

/* With ever more scratch: too short, too short, ..., read. Never anything else. */
static void scratch_that_is_too_small_is_told_apart(void **state)
{
	static const char text[] = "{\"a\":[1,2,{\"b\":{},\"c\":[[],[]]}],\"d\":\"e\"}";
	bool fits = false;

	(void)state;
	for (size_t size = 0; size <= 1024; size += 8) {
		unsigned char *exact = aligned_alloc(8, size == 0 ? 8 : size);
		struct hx_json_tree tree;
		struct hapax_error err;
		bool is_short;
		enum hapax_status status = hx_json_tree_read(
			&tree, hx_bytes(text, sizeof(text) - 1), exact, size, &is_short, &err);

		assert_true(status == HAPAX_OK || status == HAPAX_ERR_LIMIT);
		assert_int_equal(is_short, status != HAPAX_OK);
		assert_true(!fits || status == HAPAX_OK); /* more never hurts */
		fits = status == HAPAX_OK;
		free(exact);
	}
	assert_true(fits);
}

static void worst_cases_fit_in_what_is_promised(void **state)
{
	char text[2001];

	(void)state;
	for (size_t size = 1; size < sizeof(text); size += 111) {
		static const char *const patterns[] = {
			"1,", "[],", "{},", "\"\",", "[[],", "[", "{\"\":"};

		for (size_t p = 0; p < sizeof(patterns) / sizeof(patterns[0]); p++) {
			size_t scratch_size = hx_json_tree_scratch_max(size);
			void *exact = malloc(scratch_size);
			struct hx_json_tree tree;
			bool is_short;

			text[0] = '[';
			for (size_t i = 1; i < size; i++)
				text[i] = patterns[p][(i - 1) % strlen(patterns[p])];
			(void)hx_json_tree_read(
				&tree, hx_bytes(text, size), exact, scratch_size, &is_short, NULL);
			assert_false(is_short);
			free(exact);
		}
	}
}

/* A long text is looked at first: most need a small part of what any could. */
static void a_long_text_takes_what_it_needs(void **state)
{
	static const struct {
		const char *pattern;
		size_t values;
	} cases[] = {{"1,", 1}, {"\"0123456789abcdef\",", 1}, {"{\"name\":[],\"x\":\"y\"},", 3}};
	static char text[256 * 1024];

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		size_t step = strlen(cases[c].pattern);
		size_t count = (sizeof(text) - 3) / step;
		struct hapax_buf buf;
		struct hx_json_tree tree;
		bool is_short;

		text[0] = '[';
		for (size_t i = 0; i < count; i++)
			memcpy(text + 1 + i * step, cases[c].pattern, step);
		text[count * step] = ']';
		hx_buf_init(&buf, 64 * 1024 * 1024);
		assert_int_equal(
			hx_json_tree_read_into(
				&tree, hx_bytes(text, count * step + 1), &buf, &is_short, NULL),
			HAPAX_OK);
		assert_int_equal(tree.count, 1 + count * cases[c].values);
		/* Nodes and names, and one more for each array that is empty. */
		assert_true(buf.capacity < (tree.count + count + 200) * 52);
		hx_buf_done(&buf);
	}
}

static void what_is_not_json_is_not_short(void **state)
{
	struct hx_json_tree tree;
	struct hapax_error err;
	bool is_short = true;

	(void)state;
	assert_int_equal(
		hx_json_tree_read(
			&tree, HX_BYTES_LIT("[1,]"), scratch, sizeof(scratch), &is_short, &err),
		HAPAX_ERR_INVALID);
	assert_false(is_short);
	assert_int_equal(
		hx_json_tree_read(
			&tree, hx_bytes(NULL, 0), scratch, sizeof(scratch), &is_short, &err),
		HAPAX_ERR_INVALID);
	assert_false(is_short);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_stand_in_order_items_do_not_move),
		cmocka_unit_test(nodes_know_their_text),
		cmocka_unit_test(members_are_found_by_value_of_their_name),
		cmocka_unit_test(scratch_that_is_too_small_is_told_apart),
		cmocka_unit_test(worst_cases_fit_in_what_is_promised),
		cmocka_unit_test(a_long_text_takes_what_it_needs),
		cmocka_unit_test(what_is_not_json_is_not_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
