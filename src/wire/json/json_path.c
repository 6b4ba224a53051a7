/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_path.c - parse paths, and follow them through a tree.
 *
 * Following recurses, at most as deep as the tree is, which the tokenizer bounds.
 * With at most one ** no node is looked at more than once for each step.
 */
#include "wire/json/json_path.h"

#include <assert.h>
#include <string.h>

#include "base/decimal.h"
#include "base/error.h"

/* The text being read, and the names so far. */
struct reader {
	struct hx_json_path *path;
	const char *text;
	size_t size;
	size_t at;
	size_t name_count; /* bytes of names in use */
	bool is_pointer;   /* the part being read */
	struct hapax_error *err;
};

static enum hapax_status json_path_refuse(const struct reader *reader, const char *reason)
{
	return hx_error_set(
		reader->err, HAPAX_ERR_INVALID, 0, "path '%.*s', byte %zu: %s", (int)reader->size,
		reader->text, reader->at + 1, reason);
}

/* Digits without a zero in front, as an index; anything else is only a name. */
static bool read_index(const char *text, size_t size, uint32_t *ret)
{
	return hx_decimal_read(text, size, 999999999, ret);
}

static void put_byte(struct reader *reader, char byte)
{
	/* Names are never longer than the text they come from. */
	assert(reader->name_count < sizeof(reader->path->names));
	reader->path->names[reader->name_count++] = byte;
}

/* The step whose name begins at begin in names and ends here. */
static enum hapax_status add_step(struct reader *reader, size_t begin, enum hx_json_step_kind kind)
{
	struct hx_json_path *path = reader->path;
	struct hx_json_step *step = &path->steps[path->step_count];
	size_t size = reader->name_count - begin;

	if (path->step_count == HX_JSON_PATH_STEPS_MAX)
		return json_path_refuse(reader, "too many steps: limit 32");
	*step = (struct hx_json_step){
		.kind = (uint8_t)kind,
		.name = (uint16_t)begin,
		.name_size = (uint16_t)size,
	};
	if (kind == HX_JSON_STEP_NAME)
		step->is_index = read_index(path->names + begin, size, &step->index);
	else if (kind != HX_JSON_STEP_JSON)
		path->is_single = false;
	if (kind == HX_JSON_STEP_BELOW) {
		for (size_t i = 0; i < path->step_count; i++) {
			if (path->steps[i].kind == HX_JSON_STEP_BELOW)
				return json_path_refuse(reader, "** is allowed only once");
		}
	}
	path->step_count++;
	return HAPAX_OK;
}

/* The kind of a step. text is not unescaped: an escaped star is not a star. */
static enum hx_json_step_kind kind_of(const char *text, size_t size)
{
	if (size == 1 && text[0] == '*')
		return HX_JSON_STEP_EACH;
	if (size == 2 && text[0] == '*' && text[1] == '*')
		return HX_JSON_STEP_BELOW;
	return HX_JSON_STEP_NAME;
}

/*
 * End the step that began at from. An unescaped star in it must be the whole step: user* would
 * silently find nothing.
 */
static enum hapax_status end_step(struct reader *reader, size_t begin, size_t from, bool has_star)
{
	enum hx_json_step_kind kind = kind_of(reader->text + from, reader->at - from);

	if (has_star && kind == HX_JSON_STEP_NAME) {
		return json_path_refuse(
			reader,
			reader->is_pointer ? "* must be a whole step; write ~2 for * in a name"
					   : "* must be a whole step; write \\* for * in a name");
	}
	return add_step(reader, begin, kind);
}

/* The end of the text, or of the part before |json. */
static bool is_end(const struct reader *reader)
{
	return reader->at == reader->size || reader->text[reader->at] == '|';
}

static enum hapax_status read_pointer_step(struct reader *reader)
{
	size_t begin = reader->name_count;
	size_t from = reader->at;
	bool has_star = false;

	while (!is_end(reader) && reader->text[reader->at] != '/') {
		char byte = reader->text[reader->at];

		if (byte == '~') {
			reader->at++;
			switch (reader->at < reader->size ? reader->text[reader->at] : '\0') {
			case '0': byte = '~'; break;
			case '1': byte = '/'; break;
			case '2': byte = '*'; break;
			case '3': byte = '|'; break;
			default:
				return json_path_refuse(
					reader, "~ must be followed by 0, 1, 2 or 3");
			}
		} else {
			has_star |= byte == '*';
		}
		put_byte(reader, byte);
		reader->at++;
	}
	return end_step(reader, begin, from, has_star);
}

static enum hapax_status read_pointer(struct reader *reader)
{
	enum hapax_status status = HAPAX_OK;

	while (status == HAPAX_OK && !is_end(reader)) {
		reader->at++; /* the slash */
		status = read_pointer_step(reader);
	}
	return status;
}

/* [0] or [*]; the bracket is at. */
static enum hapax_status read_bracket(struct reader *reader)
{
	const char *inside = reader->text + reader->at + 1;
	const char *close = memchr(inside, ']', reader->size - reader->at - 1);
	size_t begin = reader->name_count;
	size_t size;
	uint32_t index;

	if (close == NULL)
		return json_path_refuse(reader, "[ without ]");
	size = (size_t)(close - inside);
	if (kind_of(inside, size) != HX_JSON_STEP_EACH && !read_index(inside, size, &index))
		return json_path_refuse(reader, "expected an index or * in brackets");
	for (size_t i = 0; i < size; i++)
		put_byte(reader, inside[i]);
	reader->at += size + 2;
	return add_step(reader, begin, kind_of(inside, size));
}

static enum hapax_status read_dotted_step(struct reader *reader)
{
	size_t begin = reader->name_count;
	size_t from = reader->at;
	bool has_star = false;

	while (!is_end(reader)) {
		char byte = reader->text[reader->at];

		if (byte == '.' || byte == '[')
			break;
		if (byte == '\\') {
			reader->at++;
			if (reader->at == reader->size)
				return json_path_refuse(reader, "nothing follows the backslash");
			byte = reader->text[reader->at];
		} else {
			has_star |= byte == '*';
		}
		put_byte(reader, byte);
		reader->at++;
	}
	if (reader->at == from)
		return json_path_refuse(reader, "expected a name");
	return end_step(reader, begin, from, has_star);
}

static enum hapax_status read_dotted(struct reader *reader)
{
	enum hapax_status status = HAPAX_OK;
	bool name_due = reader->text[reader->at] != '[';

	while (status == HAPAX_OK && (!is_end(reader) || name_due)) {
		if (name_due)
			status = read_dotted_step(reader);
		else if (reader->text[reader->at] == '[')
			status = read_bracket(reader);
		else
			return json_path_refuse(reader, "expected a dot or [");
		name_due = status == HAPAX_OK && reader->at < reader->size &&
			reader->text[reader->at] == '.';
		if (name_due)
			reader->at++;
	}
	return status;
}

/* |json; the bar is at. Moves to the first byte of the part after it. */
static enum hapax_status read_json(struct reader *reader)
{
	static const char word[] = "|json";
	const struct hx_json_path *path = reader->path;
	size_t size = sizeof(word) - 1;
	size_t after = reader->at + size;
	enum hapax_status status;

	if (reader->size < after || memcmp(reader->text + reader->at, word, size) != 0 ||
	    (reader->size > after && memchr("./[", reader->text[after], 3) == NULL)) {
		return json_path_refuse(
			reader,
			reader->is_pointer ? "expected |json; write ~3 for | in a name"
					   : "expected |json; write \\| for | in a name");
	}
	if (path->nested == HX_JSON_PATH_NESTED_MAX)
		return json_path_refuse(reader, "too many |json: limit 4");
	for (size_t i = 0; i < path->step_count; i++) {
		if (path->steps[i].kind == HX_JSON_STEP_BELOW)
			return json_path_refuse(reader, "|json is not allowed after **");
	}
	status = add_step(reader, reader->name_count, HX_JSON_STEP_JSON);
	if (status != HAPAX_OK)
		return status;
	reader->path->steps[path->step_count - 1].index = (uint32_t)(reader->size - reader->at);
	reader->path->nested++;
	reader->at = after;
	if (after < reader->size && reader->text[after] == '.') {
		reader->at++;
		if (is_end(reader) || memchr("./[", reader->text[reader->at], 3) != NULL)
			return json_path_refuse(reader, "expected a name");
	}
	return HAPAX_OK;
}

enum hapax_status hx_json_path_parse(
	struct hx_json_path *path, struct hapax_bytes text, struct hapax_error *err)
{
	struct reader reader = {path, text.data, text.size, 0, 0, false, err};
	enum hapax_status status = HAPAX_OK;

	path->step_count = 0;
	path->is_single = true;
	path->nested = 0;
	if (text.size > HX_JSON_PATH_SIZE_MAX) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "path is too long: %zu bytes, limit %d",
			text.size, HX_JSON_PATH_SIZE_MAX);
	}
	while (status == HAPAX_OK && reader.at < reader.size) {
		if (reader.text[reader.at] == '|') {
			status = read_json(&reader);
			continue;
		}
		reader.is_pointer = reader.text[reader.at] == '/';
		status = reader.is_pointer ? read_pointer(&reader) : read_dotted(&reader);
	}
	return status;
}

/* The member or item of node that a step names, or the JSON in it; or NULL. */
static const struct hx_json_node *child_at(
	const struct hx_json_path *path, const struct hx_json_step *step,
	const struct hx_json_tree *tree, const struct hx_json_node *node)
{
	if (step->kind == HX_JSON_STEP_JSON) {
		if ((node->token.marks & HX_JSON_OPENED) != 0)
			return node;
		return node->token.type == HX_JSON_STRING && node->child != 0
			? &tree->nodes[node->child]
			: NULL;
	}
	if (node->token.type == HX_JSON_ARRAY)
		return step->is_index ? hx_json_tree_item(tree, node, step->index) : NULL;
	return hx_json_tree_member(
		tree, node, (struct hapax_bytes){path->names + step->name, step->name_size});
}

const struct hx_json_node *hx_json_path_find(
	const struct hx_json_path *path, const struct hx_json_tree *tree)
{
	const struct hx_json_node *node = tree->nodes;

	assert(path->is_single);
	for (size_t i = 0; i < path->step_count && node != NULL; i++)
		node = child_at(path, &path->steps[i], tree, node);
	return node;
}

static bool is_container(const struct hx_json_node *node)
{
	return node->token.type == HX_JSON_OBJECT || node->token.type == HX_JSON_ARRAY;
}

/*
 * Marks what the path selects from step `at` on, below the node at index, with HX_JSON_KEPT,
 * HX_JSON_DROPPED or HX_JSON_CHOSEN; what is kept also marks its containers. False: it is not there.
 */
static bool mark(
	const struct hx_json_path *path, size_t at, struct hx_json_tree *tree, uint32_t index,
	uint8_t marks)
{
	struct hx_json_node *node = &tree->nodes[index];
	const struct hx_json_step *step = &path->steps[at];
	const struct hx_json_node *child;
	bool found = false;

	if (at == path->step_count) {
		node->token.marks |= marks;
		return true;
	}
	switch ((enum hx_json_step_kind)step->kind) {
	case HX_JSON_STEP_NAME:
		child = child_at(path, step, tree, node);
		found = child != NULL &&
			mark(path, at + 1, tree, (uint32_t)(child - tree->nodes), marks);
		break;
	case HX_JSON_STEP_EACH:
		found = is_container(node);
		for (uint32_t i = node->child; i != 0; i = tree->nodes[i].next)
			found &= mark(path, at + 1, tree, i, marks);
		break;
	case HX_JSON_STEP_JSON:
		found = (node->token.marks & HX_JSON_OPENED) != 0 &&
			mark(path, at + 1, tree, index, marks);
		break;
	case HX_JSON_STEP_BELOW:
		found = mark(path, at + 1, tree, index, marks);
		for (uint32_t i = node->child; i != 0; i = tree->nodes[i].next)
			found |= mark(path, at, tree, i, marks);
		break;
	}
	if (found && marks == HX_JSON_KEPT)
		node->token.marks |= HX_JSON_PART;
	return found;
}

bool hx_json_path_keep(const struct hx_json_path *path, struct hx_json_tree *tree)
{
	return mark(path, 0, tree, 0, HX_JSON_KEPT);
}

void hx_json_path_drop(const struct hx_json_path *path, struct hx_json_tree *tree)
{
	(void)mark(path, 0, tree, 0, HX_JSON_DROPPED);
}

bool hx_json_path_choose(const struct hx_json_path *path, struct hx_json_tree *tree)
{
	return mark(path, 0, tree, 0, HX_JSON_CHOSEN);
}
