/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the JSON tokenizer (src/wire/json/json.c, json_next.h, json_string.c,
 * json_name.c) and the tree (json_tree.c).
 *
 * A text is read token by token, with and without its names, and as a tree: all must
 * agree on whether it is JSON, and on the number of values. Tokens lie within the
 * text, containers close in the order in which they opened, and what is refused has
 * a place.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/json/json.h"
#include "wire/json/json_tree.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { INPUT_MAX = 4096, NAMES = INPUT_MAX };

static void must(int condition)
{
	if (!condition)
		abort();
}

/* "line L, column C: " */
static void check_place(struct hapax_bytes text, const struct hapax_error *err)
{
	const char *message = err->message;
	char *rest;
	unsigned long line;
	unsigned long column;

	must(strncmp(message, "line ", 5) == 0);
	line = strtoul(message + 5, &rest, 10);
	must(strncmp(rest, ", column ", 9) == 0);
	column = strtoul(rest + 9, &rest, 10);
	must(strncmp(rest, ": ", 2) == 0);
	must(line >= 1 && column >= 1 && line + column <= text.size + 2);
}

static void check_token(struct hapax_bytes text, const struct hx_json_token *token)
{
	const unsigned char *data = text.data;

	must((size_t)token->text + token->size <= text.size);
	must((size_t)token->name + token->name_size <= text.size);
	if (token->name != 0)
		must(data[token->name - 1] == '"' && data[token->name + token->name_size] == '"');
	if (token->type == HX_JSON_STRING)
		must(data[token->text - 1] == '"' && data[token->text + token->size] == '"');
	must(token->marks == 0);
}

/* The number of values, or -1 when the text is refused. */
static long count_values(
	struct hapax_bytes text, struct hx_json_name *names, struct hapax_error *err)
{
	struct hx_json_token token;
	struct hx_json json;
	long count = 0;
	long depth = 0;

	if (hx_json_init(&json, text, names, NAMES, err) != HAPAX_OK)
		return -1;
	for (;;) {
		if (hx_json_next(&json, &token, err) != HAPAX_OK)
			return -1;
		check_token(text, &token);
		if (token.type == HX_JSON_END)
			break;
		if (token.type == HX_JSON_OBJECT_END || token.type == HX_JSON_ARRAY_END)
			depth--;
		else
			count++;
		if (token.type == HX_JSON_OBJECT || token.type == HX_JSON_ARRAY)
			depth++;
		must(depth >= 0 && depth <= HX_JSON_DEPTH_MAX && depth == (long)json.depth);
	}
	must(depth == 0);
	return count;
}

/* Members in order, none twice; every node has its place. */
static void check_tree(const struct hx_json_tree *tree)
{
	uint32_t linked = 1;

	for (uint32_t i = 0; i < tree->count; i++) {
		const struct hx_json_node *parent = &tree->nodes[i];
		const struct hx_json_node *last = NULL;

		for (uint32_t at = parent->child; at != 0; at = tree->nodes[at].next) {
			const struct hx_json_node *node = &tree->nodes[at];

			must(at > i && at < tree->count);
			must((node->token.name != 0) == (parent->token.type == HX_JSON_OBJECT));
			if (last != NULL && node->token.name != 0)
				must(hx_json_string_compare(
					     hx_json_node_name(tree, last),
					     hx_json_node_name(tree, node)) < 0);
			must(node->token.text + node->token.size <=
			     parent->token.text + parent->token.size);
			last = node;
			linked++;
		}
	}
	must(linked == tree->count);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct hx_json_name names[NAMES];
	static uint64_t scratch[INPUT_MAX * 8];
	struct hapax_bytes text = hx_bytes(data, size);
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_error tree_err = {HAPAX_OK, 0, ""};
	struct hx_json_tree tree;
	enum hapax_status status;
	long with;
	long without;
	bool is_short;

	if (size > INPUT_MAX)
		return 0;
	with = count_values(text, names, &err);
	if (with < 0)
		check_place(text, &err);
	without = count_values(text, NULL, NULL);
	must(with < 0 || with == without);
	must(with >= 0 || without < 0 || strstr(err.message, "occurs twice") != NULL);
	must(hx_json_tree_scratch_max(size) <= sizeof(scratch));
	status = hx_json_tree_read(
		&tree, text, scratch, hx_json_tree_scratch_max(size), &is_short, &tree_err);
	must(!is_short);
	must((status == HAPAX_OK) == (with >= 0));
	if (status != HAPAX_OK) {
		must(strcmp(err.message, tree_err.message) == 0 && err.status == status);
		return 0;
	}
	must(tree.count == with);
	check_tree(&tree);
	return 0;
}
