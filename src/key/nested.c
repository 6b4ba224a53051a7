/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nested.c - read JSON texts that are strings of the data.
 */
#include "key/nested.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"

/* The data and its strings, level by level. */
enum { TEXT_FACTOR = 1 + HX_JSON_PATH_NESTED_MAX };

_Static_assert((uint64_t)TEXT_FACTOR *HX_JSON_SIZE_MAX <= UINT32_MAX, "offsets into the text fit");

/* Refuse the string before a step |json; what says what it is. */
static enum hx_key_made nested_refuse(
	enum hx_key_made made, const struct hx_key_path *path, size_t step, const char *what,
	struct hapax_error *err)
{
	size_t size = strlen(path->text) - path->json.steps[step].index;

	(void)hx_error_set(err, HAPAX_ERR_INVALID, 0, "'%.*s' %s", (int)size, path->text, what);
	return made;
}

static enum hx_key_made not_a_string(
	const struct hx_json_node *node, const struct hx_key_path *path, size_t step,
	struct hapax_error *err)
{
	if (node == NULL)
		return nested_refuse(HX_KEY_ABSENT, path, step, "is missing", err);
	if (node->token.type == HX_JSON_NULL)
		return nested_refuse(HX_KEY_ABSENT, path, step, "is null", err);
	return nested_refuse(
		HX_KEY_MISSING, path, step,
		"is not a string; |json reads JSON in a string, so leave it out here", err);
}

static enum hx_key_made no_room(enum hapax_status status, struct hapax_error *err)
{
	(void)hx_error_set(err, status, 0, "out of memory for JSON in a string");
	return HX_KEY_FAILED;
}

/* Copy the data, once, and make room for all strings in it. */
static enum hx_key_made reserve_text(struct hx_key_view *view, struct hapax_error *err)
{
	struct hapax_buf *text = &view->text;
	size_t size = view->event->data.size;
	enum hapax_status status;

	if (text->size > 0)
		return HX_KEY_MADE;
	hx_buf_init_budget(text, TEXT_FACTOR * size, view->scratch->budget);
	status = hx_buf_reserve(text, TEXT_FACTOR * size);
	if (status == HAPAX_OK)
		status = hx_buf_append(text, view->event->data.data, size);
	if (status != HAPAX_OK)
		return no_room(status, err);
	view->tree.data = text->data;
	return HX_KEY_MADE;
}

/* Make the nodes of inner, which lie behind those of the data, nodes of the data. */
static void join_nodes(struct hx_key_view *view, const struct hx_json_tree *inner, uint32_t first)
{
	uint32_t base = (uint32_t)(inner->data - view->text.data);
	struct hx_json_node *nodes = (struct hx_json_node *)(void *)view->scratch->data;

	assert(inner->nodes == nodes + first);
	for (uint32_t i = first; i < first + inner->count; i++) {
		struct hx_json_node *node = &nodes[i];

		node->token.text += base;
		node->token.name += node->token.name != 0 ? base : 0;
		node->next += node->next != 0 ? first : 0;
		node->child += node->child != 0 ? first : 0;
	}
	view->text.size += inner->size;
	view->tree.size = view->text.size;
	view->tree.nodes = nodes;
	view->tree.count = first + inner->count;
	hx_view_keep_nodes(view);
}

/* Read the JSON in the string at index, which becomes its child. */
static enum hx_key_made read_string(
	struct hx_key_view *view, uint32_t index, const struct hx_key_path *path, size_t step,
	struct hapax_error *err)
{
	struct hapax_error why = {HAPAX_OK, 0, ""};
	struct hapax_buf *scratch = view->scratch;
	enum hx_key_made made = reserve_text(view, err);
	/* An even number of nodes ends where names may begin (json_tree.c); one may stay unused. */
	uint32_t first = view->tree.count + view->tree.count % 2;
	struct hx_json_tree inner;
	struct hx_json_string string;
	enum hapax_status status;
	unsigned char *value;
	bool is_short;
	size_t size;

	if (made != HX_KEY_MADE)
		return made;
	string = hx_json_node_string(&view->tree, &view->tree.nodes[index]);
	value = view->text.data + view->text.size;
	assert(string.size <= view->text.capacity - view->text.size);
	size = hx_json_string_value(string, value);
	scratch->size = view->tree.count * sizeof(struct hx_json_node);
	status = hx_buf_reserve(scratch, sizeof(struct hx_json_node));
	if (status != HAPAX_OK)
		return no_room(status, err);
	memset(scratch->data + scratch->size, 0, sizeof(struct hx_json_node));
	scratch->size = first * sizeof(struct hx_json_node);
	status = hx_json_tree_read_behind(&inner, hx_bytes(value, size), scratch, &is_short, &why);
	view->tree.nodes = (struct hx_json_node *)(void *)scratch->data;
	if (status == HAPAX_OK) {
		join_nodes(view, &inner, first);
		view->tree.nodes[index].child = first;
		return HX_KEY_MADE;
	}
	hx_view_keep_nodes(view);
	if (is_short)
		return no_room(status, err);
	(void)hx_error_set(&why, status, 0, "is not JSON: %s", why.message);
	return nested_refuse(HX_KEY_MISSING, path, step, why.message, err);
}

/* The path up to a step. */
static struct hx_json_path head_of(const struct hx_key_path *path, size_t step)
{
	struct hx_json_path head = path->json;

	head.step_count = step;
	return head;
}

enum hx_key_made hx_nested_open(
	struct hx_key_view *view, const struct hx_key_path *path, struct hapax_error *err)
{
	enum hx_key_made made = HX_KEY_MADE;

	assert(view->state == HX_VIEW_READ);
	for (size_t i = 0; i < path->json.step_count && made == HX_KEY_MADE; i++) {
		const struct hx_json_node *node;
		struct hx_json_path head;

		if (path->json.steps[i].kind != HX_JSON_STEP_JSON)
			continue;
		head = head_of(path, i);
		node = hx_json_path_find(&head, &view->tree);
		if (node == NULL || node->token.type != HX_JSON_STRING)
			made = not_a_string(node, path, i, err);
		else if (node->child == 0)
			made = read_string(view, (uint32_t)(node - view->tree.nodes), path, i, err);
	}
	return made;
}

/* The levels of containers in the value at index. */
static size_t levels_of(const struct hx_json_tree *tree, uint32_t index)
{
	const struct hx_json_node *node = &tree->nodes[index];
	size_t most = 0;

	if (node->token.type != HX_JSON_OBJECT && node->token.type != HX_JSON_ARRAY)
		return 0;
	for (uint32_t i = node->child; i != 0; i = tree->nodes[i].next) {
		size_t levels = levels_of(tree, i);

		most = levels > most ? levels : most;
	}
	return most + 1;
}

/* Replace the string at index, depth levels down, by the JSON in it. */
static enum hx_key_made unfold(
	struct hx_key_view *view, uint32_t index, size_t depth, const struct hx_key_path *path,
	size_t step, struct hapax_error *err)
{
	struct hx_json_node *node = &view->tree.nodes[index];
	enum hx_key_made made = HX_KEY_MADE;
	const struct hx_json_node *inner;

	if ((node->token.marks & HX_JSON_OPENED) != 0)
		return HX_KEY_MADE;
	if (node->token.type != HX_JSON_STRING)
		return not_a_string(node, path, step, err);
	if (node->child == 0)
		made = read_string(view, index, path, step, err);
	if (made != HX_KEY_MADE)
		return made;
	node = &view->tree.nodes[index];
	/* The canonical text has one stack for both. */
	if (depth + levels_of(&view->tree, node->child) > HX_JSON_DEPTH_MAX)
		return nested_refuse(
			HX_KEY_MISSING, path, step, "is JSON with too many levels: limit 128", err);
	inner = &view->tree.nodes[node->child];
	node->token.text = inner->token.text;
	node->token.size = inner->token.size;
	node->token.type = inner->token.type;
	node->token.escaped = inner->token.escaped;
	node->token.marks |= HX_JSON_OPENED;
	node->child = inner->child;
	return HX_KEY_MADE;
}

/* Replace what the path up to a step |json chooses. */
static enum hx_key_made unfold_step(
	struct hx_key_view *view, const struct hx_key_path *path, size_t step, size_t depth,
	struct hapax_error *err)
{
	struct hx_json_path head = head_of(path, step);
	uint32_t count = view->tree.count;
	enum hx_key_made result = HX_KEY_MADE;

	if (!hx_json_path_choose(&head, &view->tree))
		result = nested_refuse(HX_KEY_MISSING, path, step, "is missing", err);
	for (uint32_t i = 0; i < count; i++) {
		enum hx_key_made made;

		if ((view->tree.nodes[i].token.marks & HX_JSON_CHOSEN) == 0)
			continue;
		view->tree.nodes[i].token.marks &= (uint8_t)~HX_JSON_CHOSEN;
		if (result == HX_KEY_FAILED)
			continue;
		made = unfold(view, i, depth, path, step, err);
		if (made == HX_KEY_FAILED)
			result = made;
		else if (made != HX_KEY_MADE)
			result = HX_KEY_MISSING;
	}
	return result;
}

enum hx_key_made hx_nested_unfold(
	struct hx_key_view *view, const struct hx_key_path *path, struct hapax_error *err)
{
	enum hx_key_made result = HX_KEY_MADE;
	size_t depth = 0;

	assert(view->state == HX_VIEW_READ);
	if (path->json.nested == 0)
		return HX_KEY_MADE;
	for (size_t i = 0; i < path->json.step_count && result != HX_KEY_FAILED; i++) {
		enum hx_key_made made = HX_KEY_MADE;

		if (path->json.steps[i].kind == HX_JSON_STEP_JSON)
			made = unfold_step(view, path, i, depth, err);
		else
			depth++;
		if (made != HX_KEY_MADE)
			result = made;
	}
	return result;
}
