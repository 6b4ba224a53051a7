/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tree.c - tokens into nodes.
 *
 * Scratch is shared out once: nodes first, then the names of open objects. Every
 * name belongs to a node, so with as many of the one as of the other the nodes run
 * out first or together.
 */
#include "wire/json/json_tree.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "wire/json/json_next.h"

/* The growth of scratch when the usual size was not enough. */
enum { GROWTH = 4 };

/* For a longer text, memory matters more than the time of one pass over it. */
enum { LOOKED_AT_MIN = 64 * 1024 };

enum { ENTRY_SIZE = sizeof(struct hx_json_node) + sizeof(struct hx_json_name) };

_Static_assert(sizeof(struct hx_json_node) == 28, "no holes: a node is most of the scratch");
_Static_assert(sizeof(struct hx_json_name) == 24, "no holes");

/*
 * A value every two bytes, as in [1,1,1]; brackets that are not closed, which are
 * values of one byte each; and room for the end.
 */
size_t hx_json_tree_scratch_max(size_t text_size)
{
	return (text_size / 2 + HX_JSON_DEPTH_MAX + 4) * ENTRY_SIZE + sizeof(uint64_t);
}

size_t hx_json_tree_scratch_usual(size_t text_size)
{
	return (text_size / 8 + 16) * ENTRY_SIZE + sizeof(uint64_t);
}

/*
 * The same for a text that is long enough to look at it first: each value is the first one, or
 * follows what opens a container or a comma. What stands in strings is counted, too.
 */
static size_t scratch_enough(struct hapax_bytes text)
{
	const unsigned char *at = text.data;
	size_t count = 0;

	for (size_t i = 0; i < text.size; i++)
		count += at[i] == ',' || at[i] == '[' || at[i] == '{';
	return (count + HX_JSON_DEPTH_MAX + 4) * ENTRY_SIZE + sizeof(uint64_t);
}

/* Members in the order of their names. Nothing moves when they stood so already. */
static void link_sorted(
	struct hx_json *json, struct hx_json_node *nodes, struct hx_json_node *object)
{
	size_t count;
	const struct hx_json_name *names = hx_json_closed_names(json, &count);

	if (count < 2 || names[count - 1].ordered != 0)
		return;
	object->child = names[0].tag;
	for (size_t i = 1; i < count; i++)
		nodes[names[i - 1].tag].next = names[i].tag;
	nodes[names[count - 1].tag].next = 0;
}

/* The position of a container whose members or items are being read. */
struct level {
	uint32_t parent;
	uint32_t last; /* what was read last in it; 0: nothing yet */
};

/*
 * Read to the end. Each token is read into the node that it would become. The
 * outermost value has no parent; it is node 0, and linking it to itself does no
 * harm, because 0 means none.
 */
static enum hapax_status read_nodes(
	struct hx_json *json, struct hx_json_tree *tree, uint32_t node_max, bool *ret_short,
	struct hapax_error *err)
{
	struct hx_json_node *nodes = tree->nodes;
	struct level levels[HX_JSON_DEPTH_MAX + 1];
	struct level now = {0, 0};
	uint32_t count = 0;

	for (;;) {
		struct hx_json_node *node = &nodes[count];
		enum hapax_status status;

		if (count == node_max) {
			*ret_short = true;
			return hx_error_set(
				err, HAPAX_ERR_LIMIT, 0, "the scratch memory is too small");
		}
		status = hx_json_next_inline(json, &node->token, err);
		if (status != HAPAX_OK) {
			*ret_short =
				status == HAPAX_ERR_LIMIT && json->name_count == json->name_max;
			return status;
		}
		if (node->token.type == HX_JSON_END)
			break;
		if (node->token.type == HX_JSON_OBJECT_END ||
		    node->token.type == HX_JSON_ARRAY_END) {
			struct hx_json_node *closed = &nodes[now.parent];

			closed->token.size = node->token.text + 1 - closed->token.text;
			if (node->token.type == HX_JSON_OBJECT_END)
				link_sorted(json, nodes, closed);
			now = levels[json->depth];
			continue;
		}
		node->next = 0;
		node->child = 0;
		if (node->token.name != 0)
			hx_json_tag_name(json, count);
		if (now.last != 0)
			nodes[now.last].next = count;
		else
			nodes[now.parent].child = count;
		now.last = count;
		if (node->token.type == HX_JSON_OBJECT || node->token.type == HX_JSON_ARRAY) {
			/* The tokenizer is one level down already. */
			levels[json->depth - 1] = now;
			now = (struct level){count, 0};
		}
		count++;
	}
	tree->count = count;
	return HAPAX_OK;
}

enum hapax_status hx_json_tree_read(
	struct hx_json_tree *tree, struct hapax_bytes text, void *scratch, size_t scratch_size,
	bool *ret_scratch_short, struct hapax_error *err)
{
	struct hx_json json;
	size_t entries = scratch_size / ENTRY_SIZE;
	size_t name_offset;
	enum hapax_status status;

	/* Names hold 64 bits: an even number of 28-byte nodes keeps them aligned. */
	entries -= entries % 2;
	if (entries > UINT32_MAX)
		entries = UINT32_MAX - 1;
	name_offset = entries * sizeof(struct hx_json_node);
	assert(scratch_size == 0 || (uintptr_t)scratch % sizeof(uint64_t) == 0);
	*ret_scratch_short = entries == 0;
	if (entries == 0)
		return hx_error_set(err, HAPAX_ERR_LIMIT, 0, "the scratch memory is too small");
	tree->data = text.data;
	tree->size = text.size;
	tree->nodes = scratch;
	tree->count = 0;
	status = hx_json_init(
		&json, text,
		(struct hx_json_name *)(void *)((unsigned char *)scratch + name_offset), entries,
		err);
	if (status != HAPAX_OK)
		return status;
	return read_nodes(&json, tree, (uint32_t)entries, ret_scratch_short, err);
}

enum hapax_status hx_json_tree_read_behind(
	struct hx_json_tree *tree, struct hapax_bytes text, struct hapax_buf *scratch,
	bool *ret_scratch_short, struct hapax_error *err)
{
	size_t max = hx_json_tree_scratch_max(text.size);
	size_t want = text.size < LOOKED_AT_MIN ? hx_json_tree_scratch_usual(text.size)
						: scratch_enough(text);
	enum hapax_status status;

	for (;;) {
		size_t room;

		*ret_scratch_short = true;
		if (want > scratch->size_max - scratch->size)
			want = scratch->size_max - scratch->size;
		status = hx_buf_reserve(scratch, want);
		if (status != HAPAX_OK)
			return hx_error_set(
				err, status, 0, "out of scratch memory (%zu bytes)", want);
		room = scratch->capacity - scratch->size;
		status = hx_json_tree_read(
			tree, text, scratch->data + scratch->size, room, ret_scratch_short, err);
		if (!*ret_scratch_short || room >= max || scratch->capacity >= scratch->size_max)
			return status;
		want = room * GROWTH;
	}
}

enum hapax_status hx_json_tree_read_into(
	struct hx_json_tree *tree, struct hapax_bytes text, struct hapax_buf *scratch,
	bool *ret_scratch_short, struct hapax_error *err)
{
	hx_buf_clear(scratch);
	return hx_json_tree_read_behind(tree, text, scratch, ret_scratch_short, err);
}

const struct hx_json_node *hx_json_tree_member(
	const struct hx_json_tree *tree, const struct hx_json_node *object, struct hapax_bytes name)
{
	if (object->token.type != HX_JSON_OBJECT)
		return NULL;
	for (uint32_t at = object->child; at != 0; at = tree->nodes[at].next) {
		if (hx_json_string_equal(hx_json_node_name(tree, &tree->nodes[at]), name))
			return &tree->nodes[at];
	}
	return NULL;
}

const struct hx_json_node *hx_json_tree_item(
	const struct hx_json_tree *tree, const struct hx_json_node *array, size_t index)
{
	uint32_t at = array->child;

	if (array->token.type != HX_JSON_ARRAY)
		return NULL;
	while (at != 0 && index > 0) {
		at = tree->nodes[at].next;
		index--;
	}
	return at == 0 ? NULL : &tree->nodes[at];
}
