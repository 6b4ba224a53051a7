/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_object.c - a JSON object into a struct, by a table of its members.
 */
#include "wire/json/json_object.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/hex.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "wire/base64.h"
#include "wire/date.h"

enum { NAME_SIZE = 64, HEX_SIZE_MAX = 32 };

static const char base64_suffix[] = "_base64";

void hx_json_reader_init(
	struct hx_json_reader *reader, size_t scratch_max, struct hx_budget *budget)
{
	memset(reader, 0, sizeof(*reader));
	hx_buf_init_budget(&reader->scratch, scratch_max, budget);
	hx_buf_init_budget(&reader->strings, HX_JSON_SIZE_MAX, budget);
}

void hx_json_reader_done(struct hx_json_reader *reader)
{
	hx_buf_done(&reader->scratch);
	hx_buf_done(&reader->strings);
}

enum hapax_status hx_json_reader_read(
	struct hx_json_reader *reader, struct hapax_bytes text, struct hapax_error *err)
{
	bool is_short;
	enum hapax_status status;

	hx_buf_clear(&reader->strings);
	status = hx_json_tree_read_into(&reader->tree, text, &reader->scratch, &is_short, err);
	if (status == HAPAX_OK)
		status = hx_buf_reserve(&reader->strings, text.size);
	return status;
}

__attribute__((format(printf, 4, 5))) static enum hapax_status fault(
	const struct hx_json_reader *reader, const struct hx_json_node *node,
	struct hapax_error *err, const char *format, ...)
{
	char why[HAPAX_ERROR_MESSAGE_SIZE];
	size_t quote = node->token.type == HX_JSON_STRING;
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	return hx_json_error(
		err, HAPAX_ERR_INVALID, hx_bytes(reader->tree.data, reader->tree.size),
		node->token.text - quote, "%s", why);
}

/* The value of a string; room for all of them was reserved. */
static struct hapax_bytes string_value(
	struct hx_json_reader *reader, const struct hx_json_node *node)
{
	struct hx_json_string string = hx_json_node_string(&reader->tree, node);
	unsigned char *at;

	if (!string.escaped)
		return hx_bytes(string.data, string.size);
	assert(reader->strings.capacity - reader->strings.size >= string.size);
	at = reader->strings.data + reader->strings.size;
	string.size = (uint32_t)hx_json_string_value(string, at);
	reader->strings.size += string.size;
	return hx_bytes(at, string.size);
}

static void name_text(
	const struct hx_json_reader *reader, const struct hx_json_node *node, char out[NAME_SIZE])
{
	struct hx_json_string name = hx_json_node_name(&reader->tree, node);
	size_t size = name.size < NAME_SIZE - 1 ? name.size : NAME_SIZE - 1;

	memcpy(out, name.data, size);
	out[size] = '\0';
}

static enum hapax_status wrong_type(
	const struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, const char *wanted, struct hapax_error *err)
{
	return fault(reader, node, err, "'%s' must be %s", field->name, wanted);
}

static enum hapax_status read_text(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, struct hapax_bytes *out, struct hapax_error *err)
{
	char why[HX_UTF8_FAULT_SIZE];
	struct hapax_bytes value;

	if (node->token.type != HX_JSON_STRING)
		return wrong_type(reader, node, field, "a string", err);
	value = string_value(reader, node);
	if (value.size < (size_t)field->min || value.size > (size_t)field->max)
		return fault(
			reader, node, err,
			"'%s' must be %" PRId64 " to %" PRId64 " bytes long, not %zu", field->name,
			field->min, field->max, value.size);
	if (!(field->flags & HX_JSON_FIELD_CONTROLS) && value.size > 0 &&
	    hx_utf8_fault(value, (size_t)field->max, why)) {
		if (field->kind != HX_JSON_FIELD_BYTES)
			return fault(reader, node, err, "'%s' %s", field->name, why);
		return fault(
			reader, node, err, "'%s' %s; '%s%s' accepts any bytes", field->name, why,
			field->name, base64_suffix);
	}
	*out = value;
	return HAPAX_OK;
}

static enum hapax_status read_base64(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, struct hapax_bytes *out, struct hapax_error *err)
{
	struct hapax_bytes text;
	unsigned char *at;
	size_t size;

	if (node->token.type != HX_JSON_STRING)
		return fault(reader, node, err, "'%s_base64' must be a string", field->name);
	text = string_value(reader, node);
	/* What had escapes stands there already, and is decoded in its place. */
	at = reader->strings.data + reader->strings.size;
	if (hx_json_node_string(&reader->tree, node).escaped)
		at -= text.size;
	if (!hx_base64_decode(text, at, &size))
		return fault(
			reader, node, err, "'%s_base64' is not Base64 at offset %zu", field->name,
			size);
	if (size < (size_t)field->min || size > (size_t)field->max)
		return fault(
			reader, node, err,
			"'%s_base64' must be %" PRId64 " to %" PRId64 " bytes long, not %zu",
			field->name, field->min, field->max, size);
	if (at == reader->strings.data + reader->strings.size)
		reader->strings.size += size;
	*out = hx_bytes(at, size);
	return HAPAX_OK;
}

static enum hapax_status read_hex(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, unsigned char *out, struct hapax_error *err)
{
	unsigned char bytes[HEX_SIZE_MAX] = {0};
	struct hapax_bytes text;

	assert(field->max <= HEX_SIZE_MAX);
	if (node->token.type != HX_JSON_STRING)
		return wrong_type(reader, node, field, "a string", err);
	text = string_value(reader, node);
	if (text.size % 2 != 0 || text.size / 2 < (size_t)field->min ||
	    text.size / 2 > (size_t)field->max || !hx_hex_decode(text, bytes))
		return fault(
			reader, node, err, "'%s' must have %" PRId64 " digits of 0-9a-f",
			field->name, 2 * field->max);
	memcpy(out, bytes, (size_t)field->max);
	if (field->size_offset != 0) {
		uint32_t size = (uint32_t)(text.size / 2);

		memcpy(out - field->offset + field->size_offset, &size, sizeof(size));
	}
	return HAPAX_OK;
}

static bool parse_integer(struct hapax_bytes text, int64_t *ret)
{
	const char *at = text.data;
	const char *end = at + text.size;
	bool is_negative = text.size > 0 && at[0] == '-';
	int64_t value = 0;

	for (at += is_negative; at < end; at++) {
		if (*at < '0' || *at > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, *at - '0', &value))
			return false;
	}
	return is_negative ? (*ret = value, true) : !__builtin_sub_overflow(0, value, ret);
}

static enum hapax_status read_integer(
	const struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, int64_t *out, struct hapax_error *err)
{
	int64_t value;

	if (node->token.type == HX_JSON_NULL && (field->flags & HX_JSON_FIELD_NULLABLE)) {
		*out = INT64_MAX;
		return HAPAX_OK;
	}
	if (node->token.type != HX_JSON_NUMBER)
		return wrong_type(reader, node, field, "a whole number", err);
	if (node->token.escaped != 0 ||
	    !parse_integer(hx_json_node_text(&reader->tree, node), &value) || value < field->min ||
	    value > field->max)
		return fault(
			reader, node, err,
			"'%s' must be a whole number from %" PRId64 " to %" PRId64, field->name,
			field->min, field->max);
	*out = value;
	return HAPAX_OK;
}

static enum hapax_status read_time(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, int64_t *out, struct hapax_error *err)
{
	if (node->token.type == HX_JSON_NULL) {
		*out = INT64_MAX;
		return HAPAX_OK;
	}
	if (node->token.type != HX_JSON_STRING || !hx_date_parse(string_value(reader, node), out))
		return wrong_type(reader, node, field, "a time such as 2026-11-15T20:22:15Z", err);
	return HAPAX_OK;
}

static enum hapax_status read_choice(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, int *out, struct hapax_error *err)
{
	char known[128] = "";
	size_t size = 0;

	for (int i = 0; field->choices[i] != NULL; i++) {
		if (node->token.type == HX_JSON_STRING &&
		    hx_json_string_equal(
			    hx_json_node_string(&reader->tree, node),
			    hapax_bytes_from_text(field->choices[i]))) {
			*out = (int)field->min + i;
			return HAPAX_OK;
		}
		if (size < sizeof(known))
			size += (size_t)snprintf(
				known + size, sizeof(known) - size, "%s%s", i > 0 ? ", " : "",
				field->choices[i]);
	}
	return fault(reader, node, err, "'%s' must be one of %s", field->name, known);
}

static enum hapax_status read_bytes(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, bool is_base64, struct hapax_bytes *out,
	struct hapax_error *err)
{
	enum hapax_status status = is_base64 ? read_base64(reader, node, field, out, err)
					     : read_text(reader, node, field, out, err);

	if (status != HAPAX_OK || !(field->flags & HX_JSON_FIELD_UTF8) || out->size == 0)
		return status;
	if (!hx_utf8_is_valid(*out) || memchr(out->data, '\0', out->size) != NULL)
		return fault(
			reader, node, err, "'%s%s' must be UTF-8 without NUL", field->name,
			is_base64 ? base64_suffix : "");
	return HAPAX_OK;
}

static enum hapax_status read_field(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_field *field, bool is_base64, unsigned use, unsigned char *out,
	struct hapax_error *err)
{
	void *at = out + field->offset;

	switch (field->kind) {
	case HX_JSON_FIELD_TEXT: return read_text(reader, node, field, at, err);
	case HX_JSON_FIELD_BYTES: return read_bytes(reader, node, field, is_base64, at, err);
	case HX_JSON_FIELD_HEX: return read_hex(reader, node, field, at, err);
	case HX_JSON_FIELD_INTEGER: return read_integer(reader, node, field, at, err);
	case HX_JSON_FIELD_TIME: return read_time(reader, node, field, at, err);
	case HX_JSON_FIELD_CHOICE: return read_choice(reader, node, field, at, err);
	case HX_JSON_FIELD_OBJECT:
		return hx_json_object_read(reader, node, field->section, use, at, err);
	case HX_JSON_FIELD_BOOLEAN: break;
	}
	if (node->token.type != HX_JSON_TRUE && node->token.type != HX_JSON_FALSE)
		return wrong_type(reader, node, field, "true or false", err);
	*(bool *)at = node->token.type == HX_JSON_TRUE;
	return HAPAX_OK;
}

/* The row of a member, or NULL. */
static const struct hx_json_field *find_field(
	const struct hx_json_section *section, unsigned use, struct hx_json_string name,
	bool *ret_is_base64)
{
	for (const struct hx_json_field *field = section->fields; field->name != NULL; field++) {
		size_t size = strlen(field->name);

		if (!(field->uses & use))
			continue;
		*ret_is_base64 = false;
		if (hx_json_string_equal(name, hx_bytes(field->name, size)))
			return field;
		*ret_is_base64 = true;
		if (field->kind == HX_JSON_FIELD_BYTES && !name.escaped &&
		    name.size == size + sizeof(base64_suffix) - 1 &&
		    memcmp(name.data, field->name, size) == 0 &&
		    memcmp(name.data + size, base64_suffix, sizeof(base64_suffix) - 1) == 0)
			return field;
	}
	return NULL;
}

static enum hapax_status refuse_unknown(
	const struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_section *section, unsigned use, struct hapax_error *err)
{
	struct hx_suggest suggest;
	char name[NAME_SIZE];

	name_text(reader, node, name);
	hx_suggest_init(&suggest, name);
	for (const struct hx_json_field *field = section->fields; field->name != NULL; field++) {
		if (field->uses & use)
			hx_suggest_consider(&suggest, field->name);
	}
	if (suggest.best != NULL)
		return fault(
			reader, node, err, "%s has an unknown member '%s' (did you mean '%s'?)",
			section->name, name, suggest.best);
	return fault(reader, node, err, "%s has an unknown member '%s'", section->name, name);
}

static enum hapax_status check_required(
	const struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_section *section, unsigned use, uint64_t given,
	struct hapax_error *err)
{
	for (size_t i = 0; section->fields[i].name != NULL; i++) {
		const struct hx_json_field *field = &section->fields[i];

		if ((field->uses & field->required & use) != 0 && !(given >> i & 1))
			return fault(
				reader, node, err, "%s needs the member '%s'", section->name,
				field->name);
	}
	return HAPAX_OK;
}

enum hapax_status hx_json_object_read(
	struct hx_json_reader *reader, const struct hx_json_node *node,
	const struct hx_json_section *section, unsigned use, void *out, struct hapax_error *err)
{
	struct hx_json_tree *tree = &reader->tree;
	uint64_t given = 0;
	enum hapax_status status = HAPAX_OK;

	if (node->token.type != HX_JSON_OBJECT)
		return fault(reader, node, err, "%s must be an object", section->name);
	for (uint32_t at = node->child; at != 0 && status == HAPAX_OK; at = tree->nodes[at].next) {
		const struct hx_json_node *member = &tree->nodes[at];
		bool is_base64 = false;
		const struct hx_json_field *field =
			find_field(section, use, hx_json_node_name(tree, member), &is_base64);
		uint64_t bit;

		if (field == NULL)
			return refuse_unknown(reader, member, section, use, err);
		bit = UINT64_C(1) << (field - section->fields);
		if (given & bit)
			return fault(
				reader, member, err, "'%s' and '%s_base64' exclude each other",
				field->name, field->name);
		/* Null says that there is none. */
		if (member->token.type == HX_JSON_NULL && (field->flags & HX_JSON_FIELD_NULLABLE) &&
		    field->kind != HX_JSON_FIELD_INTEGER)
			continue;
		given |= bit;
		status = read_field(reader, member, field, is_base64, use, out, err);
	}
	if (status == HAPAX_OK)
		status = check_required(reader, node, section, use, given, err);
	memcpy((unsigned char *)out + section->given_offset, &given, sizeof(given));
	return status;
}

bool hx_json_object_has(const struct hx_json_section *section, const void *out, const char *name)
{
	uint64_t given;

	memcpy(&given, (const unsigned char *)out + section->given_offset, sizeof(given));
	for (size_t i = 0; section->fields[i].name != NULL; i++) {
		if (strcmp(section->fields[i].name, name) == 0)
			return given >> i & 1;
	}
	return false;
}
