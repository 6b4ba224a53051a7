/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_tree.h - a whole JSON text as nodes, in memory that the caller lends.
 *
 * One node for each value. Members of an object stand in order of their names'
 * code points, items of an array in their own. Nodes hold offsets into the text,
 * which must stay where it is.
 *
 * Threads: one at a time.
 */
#ifndef HX_JSON_TREE_H
#define HX_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/buf.h"
#include "wire/json/json.h"
#include "wire/json/json_string.h"

/* Marks of a node, set by a path (json_path.h). */
enum hx_json_mark {
	HX_JSON_KEPT = 1 << 0, /* included, with everything below it */
	HX_JSON_PART = 1 << 1, /* something below it is included */
	HX_JSON_DROPPED = 1 << 2,
	HX_JSON_CHOSEN = 1 << 3, /* for the caller */
	HX_JSON_OPENED = 1 << 4, /* it was a string, and is the JSON text that stood in it */
};

struct hx_json_node {
	struct hx_json_token token; /* of a container, size up to its end */
	uint32_t next;              /* the following member or item; 0: none */
	uint32_t child;             /* the first member or item; of a string, its JSON; 0: none */
};

struct hx_json_tree {
	const unsigned char *data;
	size_t size;
	struct hx_json_node *nodes; /* the first is the whole value */
	uint32_t count;
};

/*
 * Enough scratch for any text of this size. Most texts need a tenth of it, so try
 * hx_json_tree_scratch_usual() first.
 */
size_t hx_json_tree_scratch_max(size_t text_size);
size_t hx_json_tree_scratch_usual(size_t text_size);

/*
 * Read text, strictly. scratch, aligned as malloc(3) aligns, holds the nodes for as long as the
 * tree is used. INVALID: not JSON. LIMIT: scratch is too small, or the text too large or too deep;
 * *ret_scratch_short is true for the first only.
 */
enum hapax_status hx_json_tree_read(
	struct hx_json_tree *tree, struct hapax_bytes text, void *scratch, size_t scratch_size,
	bool *ret_scratch_short, struct hapax_error *err);

/*
 * The same with a buffer, which is cleared and grows as far as it takes and may.
 * LIMIT and NO_MEMORY with *ret_scratch_short: that was not far enough.
 */
enum hapax_status hx_json_tree_read_into(
	struct hx_json_tree *tree, struct hapax_bytes text, struct hapax_buf *scratch,
	bool *ret_scratch_short, struct hapax_error *err);

/* The same behind the bytes in the buffer, a multiple of 8. They may move with it. */
enum hapax_status hx_json_tree_read_behind(
	struct hx_json_tree *tree, struct hapax_bytes text, struct hapax_buf *scratch,
	bool *ret_scratch_short, struct hapax_error *err);

/* The string that a node is, or the name that it has. */
static inline struct hx_json_string hx_json_node_string(
	const struct hx_json_tree *tree, const struct hx_json_node *node)
{
	return (struct hx_json_string){
		tree->data + node->token.text, node->token.size, node->token.escaped != 0};
}

static inline struct hx_json_string hx_json_node_name(
	const struct hx_json_tree *tree, const struct hx_json_node *node)
{
	return (struct hx_json_string){
		tree->data + node->token.name, node->token.name_size, node->token.name_escaped};
}

/* The text of a node as it came; of a string, with its quotes. */
static inline struct hapax_bytes hx_json_node_text(
	const struct hx_json_tree *tree, const struct hx_json_node *node)
{
	size_t quote = node->token.type == HX_JSON_STRING;

	return (struct hapax_bytes){
		tree->data + node->token.text - quote, node->token.size + 2 * quote};
}

/* The member of an object with this name, or NULL; also NULL if it is not an object. */
const struct hx_json_node *hx_json_tree_member(
	const struct hx_json_tree *tree, const struct hx_json_node *object,
	struct hapax_bytes name);

/* The item of an array at index, from 0, or NULL; also NULL if it is not an array. */
const struct hx_json_node *hx_json_tree_item(
	const struct hx_json_tree *tree, const struct hx_json_node *array, size_t index);

#endif
