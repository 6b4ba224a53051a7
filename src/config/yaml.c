/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c - read a YAML text as a tree, from libyaml's events.
 *
 * Events, not libyaml's documents: they can be counted as they arrive, and the tree is in our
 * memory.
 */
#include "config/yaml.h"

#include <assert.h>
#include <string.h>
#include <yaml.h>

#include "base/bytes.h"

struct anchor {
	const char *name;
	const struct hx_yaml_node *node;
};

/* An open map or list. */
struct level {
	struct hx_yaml_node *node;
	const struct hx_yaml_node *key; /* of a map: waits for its value */
};

struct reader {
	yaml_parser_t parser;
	struct hx_config_arena *arena;
	struct hx_faults *faults;
	const char *name;
	struct level levels[HX_YAML_DEPTH_MAX];
	size_t depth;
	struct anchor anchors[HX_YAML_ANCHORS_MAX];
	size_t anchor_count;
	size_t node_count;
	unsigned document_count;
	const struct hx_yaml_node *root;
};

static struct hx_place place_of(const struct reader *reader, yaml_mark_t mark)
{
	/* The file size bounds both. */
	return (struct hx_place){
		.name = reader->name,
		.line = (uint32_t)mark.line + 1,
		.column = (uint32_t)mark.column + 1};
}

static bool yaml_refuse(
	struct reader *reader, enum hapax_status status, yaml_mark_t mark, const char *text)
{
	struct hx_place place = place_of(reader, mark);

	hx_fault(reader->faults, status, &place, "%s", text);
	return false;
}

static bool no_memory(struct reader *reader, yaml_mark_t mark)
{
	return yaml_refuse(reader, HAPAX_ERR_NO_MEMORY, mark, "not enough memory for this file");
}

const struct hx_yaml_node *hx_yaml_member(const struct hx_yaml_node *map, const char *name)
{
	assert(map->kind == HX_YAML_MAP);
	for (const struct hx_yaml_entry *entry = map->first; entry != NULL; entry = entry->next) {
		if (hx_bytes_equal(entry->key->text, hapax_bytes_from_text(name)))
			return entry->value;
	}
	return NULL;
}

bool hx_yaml_is_null(const struct hx_yaml_node *node)
{
	static const char *const names[] = {"", "~", "null", "Null", "NULL"};

	if (node->kind != HX_YAML_SCALAR || !node->is_plain)
		return false;
	for (size_t i = 0; i < HX_COUNT(names); i++) {
		if (hx_bytes_equal(node->text, hapax_bytes_from_text(names[i])))
			return true;
	}
	return false;
}

static bool add_key(
	struct reader *reader, struct level *level, const struct hx_yaml_node *node,
	yaml_mark_t mark)
{
	struct hx_place place = place_of(reader, mark);

	if (node->kind != HX_YAML_SCALAR)
		return yaml_refuse(reader, HAPAX_ERR_INVALID, mark, "a key must be a name");
	if (hx_yaml_member(level->node, node->text.data) != NULL) {
		hx_fault(
			reader->faults, HAPAX_ERR_INVALID, &place, "key '%.64s' occurs twice",
			(const char *)node->text.data);
		return false;
	}
	level->key = node;
	return true;
}

/* Make the node the root, or the next item, key or value of the open level. */
static bool add(struct reader *reader, const struct hx_yaml_node *node, yaml_mark_t mark)
{
	struct level *level = reader->depth == 0 ? NULL : &reader->levels[reader->depth - 1];
	struct hx_yaml_entry *entry;

	if (level == NULL) {
		reader->root = node;
		return true;
	}
	if (level->node->kind == HX_YAML_MAP && level->key == NULL) {
		return add_key(reader, level, node, mark);
	}
	entry = hx_config_arena_alloc(reader->arena, 1, sizeof(*entry));
	if (entry == NULL)
		return no_memory(reader, mark);
	entry->key = level->key;
	entry->value = node;
	if (level->node->last == NULL)
		level->node->first = entry;
	else
		level->node->last->next = entry;
	level->node->last = entry;
	level->node->count++;
	level->key = NULL;
	return true;
}

static struct hx_yaml_node *new_node(
	struct reader *reader, enum hx_yaml_kind kind, yaml_mark_t mark)
{
	struct hx_yaml_node *node;

	if (reader->node_count++ == HX_YAML_NODES_MAX) {
		(void)yaml_refuse(reader, HAPAX_ERR_LIMIT, mark, "too many values in this file");
		return NULL;
	}
	node = hx_config_arena_alloc(reader->arena, 1, sizeof(*node));
	if (node == NULL) {
		(void)no_memory(reader, mark);
		return NULL;
	}
	node->kind = kind;
	node->place = place_of(reader, mark);
	return node;
}

static bool set_anchor(
	struct reader *reader, const yaml_char_t *name, const struct hx_yaml_node *node,
	yaml_mark_t mark)
{
	struct anchor *anchor;

	if (name == NULL)
		return true;
	if (reader->anchor_count == HX_YAML_ANCHORS_MAX)
		return yaml_refuse(reader, HAPAX_ERR_LIMIT, mark, "too many anchors: limit 100");
	anchor = &reader->anchors[reader->anchor_count];
	anchor->name =
		hx_config_arena_text(reader->arena, hapax_bytes_from_text((const char *)name));
	anchor->node = node;
	if (anchor->name == NULL)
		return no_memory(reader, mark);
	reader->anchor_count++;
	return true;
}

/* Use the last anchor of that name, but not of a map or list that contains the alias. */
static bool take_alias(struct reader *reader, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;

	for (size_t i = reader->anchor_count; i > 0; i--) {
		const struct anchor *anchor = &reader->anchors[i - 1];

		if (strcmp(anchor->name, name) != 0)
			continue;
		for (size_t k = 0; k < reader->depth; k++) {
			if (reader->levels[k].node == anchor->node)
				return yaml_refuse(
					reader, HAPAX_ERR_INVALID, event->start_mark,
					"an alias must not refer to a value that contains it");
		}
		/* It counts as a node: their number bounds the work of reading a tree. */
		if (reader->node_count++ >= HX_YAML_NODES_MAX)
			return yaml_refuse(
				reader, HAPAX_ERR_LIMIT, event->start_mark,
				"too many values in this file");
		return add(reader, anchor->node, event->start_mark);
	}
	return yaml_refuse(
		reader, HAPAX_ERR_INVALID, event->start_mark,
		"an alias refers to an unknown anchor");
}

static bool refuse_tag(struct reader *reader, const yaml_char_t *tag, yaml_mark_t mark)
{
	return tag == NULL ||
		yaml_refuse(reader, HAPAX_ERR_INVALID, mark, "tags (!name) are not supported");
}

static bool take_scalar(struct reader *reader, const yaml_event_t *event)
{
	struct hapax_bytes text = hx_bytes(event->data.scalar.value, event->data.scalar.length);
	struct hx_yaml_node *node;
	const char *copy;

	if (!refuse_tag(reader, event->data.scalar.tag, event->start_mark))
		return false;
	if (memchr(event->data.scalar.value, '\0', text.size) != NULL)
		return yaml_refuse(
			reader, HAPAX_ERR_INVALID, event->start_mark, "a value contains a NUL");
	node = new_node(reader, HX_YAML_SCALAR, event->start_mark);
	if (node == NULL)
		return false;
	copy = hx_config_arena_text(reader->arena, text);
	if (copy == NULL)
		return no_memory(reader, event->start_mark);
	node->text = hx_bytes(copy, text.size);
	node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	return set_anchor(reader, event->data.scalar.anchor, node, event->start_mark) &&
		add(reader, node, event->start_mark);
}

/* Open a map or a list: both have the same fields under different names. */
static bool open_level(
	struct reader *reader, enum hx_yaml_kind kind, const yaml_char_t *anchor,
	const yaml_char_t *tag, yaml_mark_t mark)
{
	struct hx_yaml_node *node;

	if (!refuse_tag(reader, tag, mark))
		return false;
	if (reader->depth == HX_YAML_DEPTH_MAX)
		return yaml_refuse(reader, HAPAX_ERR_LIMIT, mark, "too many levels of nesting");
	node = new_node(reader, kind, mark);
	if (node == NULL || !set_anchor(reader, anchor, node, mark) || !add(reader, node, mark))
		return false;
	reader->levels[reader->depth++] = (struct level){.node = node};
	return true;
}

static bool yaml_take(struct reader *reader, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT: return take_scalar(reader, event);
	case YAML_ALIAS_EVENT: return take_alias(reader, event);
	case YAML_MAPPING_START_EVENT:
		return open_level(
			reader, HX_YAML_MAP, event->data.mapping_start.anchor,
			event->data.mapping_start.tag, event->start_mark);
	case YAML_SEQUENCE_START_EVENT:
		return open_level(
			reader, HX_YAML_LIST, event->data.sequence_start.anchor,
			event->data.sequence_start.tag, event->start_mark);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT: reader->depth--; return true;
	case YAML_DOCUMENT_START_EVENT:
		if (reader->document_count++ > 0)
			return yaml_refuse(
				reader, HAPAX_ERR_INVALID, event->start_mark,
				"only one document is allowed; remove the second '---'");
		return true;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT: break;
	}
	return true;
}

/* Both problems come from a value such as memory: whose colon ends a word. */
static bool is_stray_colon(const char *problem)
{
	return strcmp(problem, "found unexpected ':'") == 0 ||
		strcmp(problem, "mapping values are not allowed in this context") == 0;
}

/* Report libyaml's message; of its two places, use that of the problem. */
static void refuse_syntax(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	yaml_mark_t mark = parser->problem_mark;
	const char *problem = parser->problem == NULL ? "this is not valid YAML" : parser->problem;

	if (parser->error == YAML_MEMORY_ERROR) {
		(void)no_memory(reader, parser->mark);
		return;
	}
	/* The reader knows only offsets; its mark is the scanner's position. */
	if (parser->error == YAML_READER_ERROR)
		mark = parser->mark;
	if (is_stray_colon(problem))
		problem = "unexpected ':'; if it belongs to a value, quote the value, as in "
			  "url: \"memory:\"";
	(void)yaml_refuse(reader, HAPAX_ERR_INVALID, mark, problem);
}

static bool read_events(struct reader *reader)
{
	bool is_last = false;

	while (!is_last) {
		yaml_event_t event;
		bool is_fine;

		if (!yaml_parser_parse(&reader->parser, &event)) {
			refuse_syntax(reader);
			return false;
		}
		is_fine = yaml_take(reader, &event);
		is_last = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
		if (!is_fine)
			return false;
	}
	return true;
}

const struct hx_yaml_node *hx_yaml_read(
	struct hapax_bytes text, const char *name, struct hx_config_arena *arena,
	struct hx_faults *faults)
{
	struct hx_place begin = {.name = name, .line = 1, .column = 1};
	struct reader reader = {.arena = arena, .faults = faults, .name = name};
	bool is_fine;

	if (text.size > HX_YAML_SIZE_MAX) {
		hx_fault(faults, HAPAX_ERR_LIMIT, &begin, "the file is too large: limit 1 MiB");
		return NULL;
	}
	if (!yaml_parser_initialize(&reader.parser)) {
		hx_fault(faults, HAPAX_ERR_NO_MEMORY, &begin, "not enough memory to read the file");
		return NULL;
	}
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser, text.data, text.size);
	is_fine = read_events(&reader);
	yaml_parser_delete(&reader.parser);
	return is_fine ? reader.root : NULL;
}
