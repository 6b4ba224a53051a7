/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_canonical.c - walk a tree in order and write it; the lossless dialect.
 *
 * Room is asked for once per value, for the longest text that it can have together
 * with its name, separators and brackets; what writes it does not look again. The
 * walk is compiled twice, once for each dialect: that is what the inlining is for.
 */
#include "wire/json/json_canonical.h"

#include <assert.h>
#include <string.h>

#include "wire/json/json_number.h"

/* What a value can take beside name and text: quotes, separators, number, brackets. */
enum { VALUE_EXTRA = 16 + HX_JSON_NUMBER_TEXT_EXTRA };

#define ALWAYS_INLINE static inline __attribute__((always_inline))

size_t hx_json_canonical_usual(size_t text_size, enum hx_json_dialect dialect)
{
	/* Python adds blanks, and writes three bytes of UTF-8 as six. */
	return (dialect == HX_JSON_PYTHON ? 2 * text_size : text_size) + 512;
}

/*
 * memcpy() for the few bytes that most names and values have. There is room for
 * HX_JSON_NUMBER_TEXT_EXTRA more in to; limit says where reading must end, and but
 * for the last bytes of a text 32 can be read and written whatever the size is.
 */
ALWAYS_INLINE unsigned char *copy_bytes(
	unsigned char *to, const unsigned char *from, size_t size, const unsigned char *limit)
{
	if (size <= 32 && limit - from >= 32)
		memcpy(to, from, 32);
	else if (size > 0)
		memcpy(to, from, size);
	return to + size;
}

/* A control, a quote or a backslash. */
static unsigned char *put_escape(unsigned char *to, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";
	static const char values[] = "\b\f\n\r\t\"\\";
	static const char letters[] = "bfnrt\"\\";
	const char *found = byte == 0 ? NULL : strchr(values, byte);

	*to++ = '\\';
	if (found != NULL) {
		*to++ = (unsigned char)letters[found - values];
		return to;
	}
	assert(byte < 0x20);
	*to++ = 'u';
	*to++ = '0';
	*to++ = '0';
	*to++ = (unsigned char)digits[byte >> 4];
	*to++ = (unsigned char)digits[byte & 15];
	return to;
}

/* Never longer than it came: each escape becomes a shorter one or a character. */
static unsigned char *put_escaped_string(struct hx_json_string string, unsigned char *to)
{
	const unsigned char *at = string.data;
	const unsigned char *end = at + string.size;

	while (at < end) {
		const unsigned char *backslash = memchr(at, '\\', (size_t)(end - at));
		size_t run = (size_t)((backslash == NULL ? end : backslash) - at);
		unsigned char bytes[4];
		size_t size;

		memcpy(to, at, run);
		to += run;
		at += run;
		if (backslash == NULL)
			break;
		size = hx_json_string_step(&at, end, bytes);
		if (size == 1 && (bytes[0] < 0x20 || bytes[0] == '"' || bytes[0] == '\\')) {
			to = put_escape(to, bytes[0]);
			continue;
		}
		for (size_t i = 0; i < size; i++)
			*to++ = bytes[i];
	}
	return to;
}

ALWAYS_INLINE unsigned char *put_lossless_string(
	struct hx_json_string string, unsigned char *to, const unsigned char *limit)
{
	*to++ = '"';
	/* Nothing to escape can stand in a string that has no escapes. */
	if (string.escaped)
		to = put_escaped_string(string, to);
	else
		to = copy_bytes(to, string.data, string.size, limit);
	*to++ = '"';
	return to;
}

unsigned char *hx_json_lossless_number(
	struct hapax_bytes text, unsigned char *to, const char **ret_reason)
{
	struct hx_json_number number;

	if (!hx_json_number_read(text, &number)) {
		*ret_reason = "the exponent is beyond 10^17";
		return NULL;
	}
	return to + hx_json_number_write(&number, to);
}

/*
 * Most numbers are written as they came: integers that are not too long, and
 * fractions, without exponent, that neither begin nor end with 0.
 */
ALWAYS_INLINE bool is_own_text(const unsigned char *text, size_t size, unsigned form)
{
	unsigned char first = text[text[0] == '-'];

	if (size > HX_JSON_PLAIN_DIGITS_MAX || (form & HX_JSON_EXPONENT) != 0)
		return false;
	if (form == 0)
		return first != '0' || size == 1;
	return first != '0' && text[size - 1] != '0';
}

ALWAYS_INLINE unsigned char *put_number(
	bool python, struct hapax_bytes text, unsigned form, unsigned char *to,
	const unsigned char *limit, const char **ret_reason)
{
	if (python && form != 0)
		return hx_json_python_float(text, to);
	if (python)
		return hx_json_python_integer(text, to, ret_reason);
	if (is_own_text(text.data, text.size, form))
		return copy_bytes(to, text.data, text.size, limit);
	return hx_json_lossless_number(text, to, ret_reason);
}

/* Where the walk stands: the open containers, and whether they are kept whole. */
struct walk {
	const struct hx_json_tree *tree;
	bool by_marks;
	uint32_t depth;
	uint32_t open[HX_JSON_DEPTH_MAX];
	bool kept[HX_JSON_DEPTH_MAX];
};

/* From index on, the first node that is written; 0: none. */
ALWAYS_INLINE uint32_t visible(const struct walk *walk, uint32_t index, bool kept)
{
	const struct hx_json_node *nodes = walk->tree->nodes;

	if (!walk->by_marks)
		return index;
	while (index != 0) {
		unsigned marks = nodes[index].token.marks;

		if ((marks & HX_JSON_DROPPED) == 0 &&
		    (kept || (marks & (HX_JSON_KEPT | HX_JSON_PART)) != 0))
			break;
		index = nodes[index].next;
	}
	return index;
}

ALWAYS_INLINE bool is_container(const struct hx_json_node *node)
{
	return node->token.type == HX_JSON_OBJECT || node->token.type == HX_JSON_ARRAY;
}

ALWAYS_INLINE unsigned char *put_separator(bool python, unsigned char *to, unsigned char separator)
{
	*to++ = separator;
	if (python)
		*to++ = ' ';
	return to;
}

ALWAYS_INLINE unsigned char *put_string(
	bool python, struct hx_json_string string, unsigned char *to, const unsigned char *limit)
{
	return python ? hx_json_python_string(string, to) : put_lossless_string(string, to, limit);
}

/* The name of a member, then its value or the bracket that opens it. NULL: refused. */
ALWAYS_INLINE unsigned char *put_node(
	const struct walk *walk, bool python, const struct hx_json_node *node, bool named,
	unsigned char *to, const char **ret_reason)
{
	const unsigned char *limit = walk->tree->data + walk->tree->size;

	if (named && node->token.name != 0) {
		to = put_string(python, hx_json_node_name(walk->tree, node), to, limit);
		to = put_separator(python, to, ':');
	}
	if (node->token.type == HX_JSON_STRING)
		return put_string(python, hx_json_node_string(walk->tree, node), to, limit);
	if (node->token.type == HX_JSON_NUMBER) {
		return put_number(
			python, hx_json_node_text(walk->tree, node), node->token.escaped, to, limit,
			ret_reason);
	}
	if (is_container(node)) {
		*to++ = node->token.type == HX_JSON_OBJECT ? '{' : '[';
		return to;
	}
	assert(node->token.type >= HX_JSON_TRUE);
	return copy_bytes(to, walk->tree->data + node->token.text, node->token.size, limit);
}

/* The most that put_node() and the brackets after it can take. */
ALWAYS_INLINE size_t room_for(const struct walk *walk, bool python, const struct hx_json_node *node)
{
	size_t size = node->token.name_size + (size_t)VALUE_EXTRA + walk->depth;

	if (!is_container(node))
		size += node->token.size;
	return python ? HX_JSON_PYTHON_EXPANSION * size : size;
}

/* Step into a container; the first member or item to write, or 0. */
ALWAYS_INLINE uint32_t enter(struct walk *walk, uint32_t index, bool kept)
{
	const struct hx_json_node *node = &walk->tree->nodes[index];

	assert(walk->depth < HX_JSON_DEPTH_MAX);
	kept = kept || (node->token.marks & HX_JSON_KEPT) != 0;
	walk->open[walk->depth] = index;
	walk->kept[walk->depth] = kept;
	walk->depth++;
	return visible(walk, node->child, kept);
}

/*
 * After the node at index, whose members or items, if any, are written: close what
 * is finished. *ret_next is the next to write, or 0 at the end. There is room for
 * as many brackets as there are levels.
 */
ALWAYS_INLINE unsigned char *leave(
	struct walk *walk, bool python, uint32_t index, unsigned char *to, uint32_t *ret_next)
{
	const struct hx_json_node *nodes = walk->tree->nodes;
	uint32_t next = 0;

	if (is_container(&nodes[index])) { /* an empty one: it was entered for nothing */
		*to++ = nodes[index].token.type == HX_JSON_OBJECT ? '}' : ']';
		walk->depth--;
	}
	while (walk->depth > 0) {
		next = visible(walk, nodes[index].next, walk->kept[walk->depth - 1]);
		if (next != 0) {
			to = put_separator(python, to, ',');
			break;
		}
		walk->depth--;
		index = walk->open[walk->depth];
		*to++ = nodes[index].token.type == HX_JSON_OBJECT ? '}' : ']';
	}
	*ret_next = next;
	return to;
}

__attribute__((cold, noinline)) static enum hapax_status refuse(
	const struct walk *walk, const struct hx_json_node *node, enum hapax_status status,
	const char *reason, struct hapax_error *err)
{
	return hx_json_error(
		err, status, (struct hapax_bytes){walk->tree->data, walk->tree->size},
		node->token.text, "%s", reason);
}

ALWAYS_INLINE enum hapax_status write_all(
	struct walk *walk, bool python, uint32_t root, bool all_kept, struct hx_json_target *out,
	struct hapax_error *err)
{
	uint32_t index = root;
	unsigned char *to = out->data + out->size;
	const unsigned char *limit = out->data + out->capacity;
	const char *reason = NULL;

	do {
		const struct hx_json_node *node = &walk->tree->nodes[index];
		bool kept = walk->depth > 0 ? walk->kept[walk->depth - 1] : all_kept;
		uint32_t child = 0;

		if ((size_t)(limit - to) < room_for(walk, python, node)) {
			out->is_short = true;
			return refuse(
				walk, node, HAPAX_ERR_LIMIT,
				"the canonical text is too long for the scratch memory", err);
		}
		to = put_node(walk, python, node, index != root, to, &reason);
		if (to == NULL)
			return refuse(
				walk, node, python ? HAPAX_ERR_INVALID : HAPAX_ERR_LIMIT, reason,
				err);
		if (is_container(node))
			child = enter(walk, index, kept);
		if (child != 0)
			index = child;
		else
			to = leave(walk, python, index, to, &index);
	} while (index != 0);
	out->size = (size_t)(to - out->data);
	return HAPAX_OK;
}

enum hapax_status hx_json_canonical_write(
	const struct hx_json_tree *tree, const struct hx_json_node *node,
	enum hx_json_dialect dialect, enum hx_json_select select, struct hx_json_target *out,
	struct hapax_error *err)
{
	uint32_t root = (uint32_t)(node - tree->nodes);
	bool all_kept = select != HX_JSON_MARKED;
	struct walk walk;

	walk.tree = tree;
	walk.by_marks = select != HX_JSON_ALL;
	walk.depth = 0;
	if (dialect == HX_JSON_PYTHON)
		return write_all(&walk, true, root, all_kept, out, err);
	return write_all(&walk, false, root, all_kept, out, err);
}

/* As the walk goes: what is dropped, or neither kept nor on the way there, is not seen. */
static bool has_value(
	const struct hx_json_tree *tree, uint32_t index, enum hx_json_select select, bool kept)
{
	const struct hx_json_node *node = &tree->nodes[index];
	unsigned marks = node->token.marks;

	if (select != HX_JSON_ALL && index != 0 &&
	    ((marks & HX_JSON_DROPPED) != 0 ||
	     (!kept && (marks & (HX_JSON_KEPT | HX_JSON_PART)) == 0)))
		return false;
	if (!is_container(node))
		return true;
	kept = kept || (marks & HX_JSON_KEPT) != 0;
	for (uint32_t i = node->child; i != 0; i = tree->nodes[i].next) {
		if (has_value(tree, i, select, kept))
			return true;
	}
	return false;
}

bool hx_json_canonical_has_value(const struct hx_json_tree *tree, enum hx_json_select select)
{
	return has_value(tree, 0, select, select != HX_JSON_MARKED);
}
