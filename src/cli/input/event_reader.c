/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_reader.c - read JSON texts as events: structured CloudEvents, or our own envelope, which
 * also holds what brokers deliver beside the data.
 */
#include "cli/input/event_reader.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/base64.h"
#include "wire/date.h"
#include "wire/json/json_tree.h"
#include "wire/media_type.h"

/* Enough nodes for the largest text with a usual number of them. */
static const size_t scratch_max = (size_t)1 << 30;

void hx_event_reader_init(struct hx_event_reader *reader, enum hx_event_form form)
{
	reader->form = form;
	hx_buf_init(&reader->scratch, scratch_max);
	hx_buf_init(&reader->values, scratch_max);
}

void hx_event_reader_done(struct hx_event_reader *reader)
{
	hx_buf_done(&reader->scratch);
	hx_buf_done(&reader->values);
}

static bool is_scalar(const struct hx_json_node *node)
{
	return node->token.type >= HX_JSON_STRING && node->token.type != HX_JSON_NULL;
}

/* Decode a name or string after the other values; there is room. */
static struct hapax_bytes decode(struct hx_event_reader *reader, struct hx_json_string string)
{
	unsigned char *to = reader->values.data + reader->values.size;
	size_t size = hx_json_string_value(string, to);

	reader->values.size += size;
	return hx_bytes(to, size);
}

static struct hapax_bytes scalar_text(
	struct hx_event_reader *reader, const struct hx_json_tree *tree,
	const struct hx_json_node *node)
{
	if (node->token.type == HX_JSON_STRING)
		return decode(reader, hx_json_node_string(tree, node));
	return hx_json_node_text(tree, node);
}

static enum hapax_status add_field(
	struct hx_event_reader *reader, const struct hx_json_tree *tree,
	const struct hx_json_node *node, struct hapax_field *fields, size_t *count,
	struct hapax_error *err)
{
	struct hapax_bytes name = decode(reader, hx_json_node_name(tree, node));

	if (node->token.type == HX_JSON_NULL)
		return HAPAX_OK; /* unset */
	if (!is_scalar(node)) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"'%.*s' must be a string, number or boolean, not an object or "
			"array",
			(int)(name.size < 64 ? name.size : 64), (const char *)name.data);
	}
	if (*count == HX_EVENT_FIELDS_MAX) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "too many fields in the event: the limit is %d",
			HX_EVENT_FIELDS_MAX);
	}
	fields[*count].name = name;
	fields[*count].value = scalar_text(reader, tree, node);
	(*count)++;
	return HAPAX_OK;
}

/* A member of an object that is set: null is a value in JSON, but not in an event. */
static const struct hx_json_node *member(const struct hx_json_tree *tree, struct hapax_bytes name)
{
	const struct hx_json_node *node = hx_json_tree_member(tree, tree->nodes, name);

	return node != NULL && node->token.type == HX_JSON_NULL ? NULL : node;
}

/* Add all members of an object. */
static enum hapax_status add_fields(
	struct hx_event_reader *reader, const struct hx_json_tree *tree,
	const struct hx_json_node *object, struct hapax_field *fields, size_t *count,
	struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	if (object->token.type != HX_JSON_OBJECT)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "attr, header and meta must be objects");
	for (uint32_t i = object->child; status == HAPAX_OK && i != 0; i = tree->nodes[i].next)
		status = add_field(reader, tree, &tree->nodes[i], fields, count, err);
	return status;
}

static enum hapax_status set_base64(
	struct hx_event_reader *reader, const struct hx_json_tree *tree,
	const struct hx_json_node *node, struct hapax_event *event, struct hapax_error *err)
{
	unsigned char *data = reader->values.data + reader->values.size;
	struct hapax_bytes text;

	if (node->token.type != HX_JSON_STRING || event->data.data != NULL) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"'data_base64' must be a string, without 'data' next to it");
	}
	text = decode(reader, hx_json_node_string(tree, node));
	if (!hx_base64_decode(text, data, &text.size))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "'data_base64' is not valid base64");
	event->data = hx_bytes(data, text.size);
	event->data_kind = HAPAX_DATA_BYTES;
	return HAPAX_OK;
}

/* If the content type is not JSON, data is a string that holds the bytes. */
static void apply_content_type(
	struct hx_event_reader *reader, const struct hx_json_tree *tree,
	const struct hx_json_node *data, struct hapax_event *event)
{
	for (size_t i = 0; i < event->attribute_count; i++) {
		if (!hx_bytes_equal(event->attributes[i].name, HX_BYTES_LIT("datacontenttype")))
			continue;
		if (hx_media_type_is_json(event->attributes[i].value)) {
			event->data_kind = HAPAX_DATA_JSON;
		} else if (data != NULL && data->token.type == HX_JSON_STRING) {
			event->data = decode(reader, hx_json_node_string(tree, data));
			event->data_kind = HAPAX_DATA_BYTES;
		}
	}
}

static enum hapax_status read_cloudevent(
	struct hx_event_reader *reader, const struct hx_json_tree *tree, struct hapax_event *event,
	struct hapax_error *err)
{
	const struct hx_json_node *data = member(tree, HX_BYTES_LIT("data"));
	const struct hx_json_node *base64 = member(tree, HX_BYTES_LIT("data_base64"));
	enum hapax_status status = HAPAX_OK;

	if (data != NULL)
		event->data = hx_json_node_text(tree, data);
	if (base64 != NULL)
		status = set_base64(reader, tree, base64, event, err);
	for (uint32_t i = tree->nodes[0].child; status == HAPAX_OK && i != 0;
	     i = tree->nodes[i].next) {
		const struct hx_json_node *node = &tree->nodes[i];

		if (node == data || node == base64)
			continue;
		status = add_field(
			reader, tree, node, reader->attributes, &event->attribute_count, err);
	}
	if (status == HAPAX_OK)
		apply_content_type(reader, tree, data, event);
	return status;
}

static enum hapax_status read_member(
	struct hx_event_reader *reader, const struct hx_json_tree *tree,
	const struct hx_json_node *node, struct hapax_event *event, struct hapax_error *err)
{
	struct hx_json_string name = hx_json_node_name(tree, node);

	if (hx_json_string_equal(name, HX_BYTES_LIT("data"))) {
		if (node->token.type != HX_JSON_NULL)
			event->data = hx_json_node_text(tree, node);
		return HAPAX_OK;
	}
	if (hx_json_string_equal(name, HX_BYTES_LIT("attr")))
		return add_fields(
			reader, tree, node, reader->attributes, &event->attribute_count, err);
	if (hx_json_string_equal(name, HX_BYTES_LIT("header")))
		return add_fields(reader, tree, node, reader->headers, &event->header_count, err);
	if (hx_json_string_equal(name, HX_BYTES_LIT("meta")))
		return add_fields(reader, tree, node, reader->meta, &event->meta_count, err);
	if (hx_json_string_equal(name, HX_BYTES_LIT("time"))) {
		if (node->token.type == HX_JSON_STRING &&
		    hx_date_parse(decode(reader, hx_json_node_string(tree, node)), &event->time_ms))
			return HAPAX_OK;
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "'time' is not an RFC 3339 time");
	}
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"unknown member in the envelope: use data, attr, header, meta "
		"and time");
}

static enum hapax_status read_envelope(
	struct hx_event_reader *reader, const struct hx_json_tree *tree, struct hapax_event *event,
	struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	for (uint32_t i = tree->nodes[0].child; status == HAPAX_OK && i != 0;
	     i = tree->nodes[i].next)
		status = read_member(reader, tree, &tree->nodes[i], event, err);
	return status;
}

/* Use the CloudEvent's own time, unless a better one is known. */
static void take_time(struct hapax_event *event)
{
	for (size_t i = 0; i < event->attribute_count; i++) {
		if (event->time_ms == HAPAX_TIME_UNKNOWN &&
		    hx_bytes_equal(event->attributes[i].name, HX_BYTES_LIT("time")))
			(void)hx_date_parse(event->attributes[i].value, &event->time_ms);
	}
}

enum hapax_status hx_event_reader_read(
	struct hx_event_reader *reader, struct hapax_bytes text, struct hapax_event *ret,
	struct hapax_error *err)
{
	struct hapax_event event = HAPAX_EVENT_INIT;
	struct hx_json_tree tree = {NULL, 0, NULL, 0};
	enum hapax_status status;
	bool is_short;

	event.data = text;
	if (reader->form == HX_EVENT_DOCUMENT) {
		*ret = event;
		return HAPAX_OK;
	}
	event.data = hx_bytes(NULL, 0);
	event.attributes = reader->attributes;
	event.headers = reader->headers;
	event.meta = reader->meta;
	status = hx_json_tree_read_into(&tree, text, &reader->scratch, &is_short, err);
	if (status != HAPAX_OK)
		return status;
	assert(tree.count >= 1);
	if (tree.nodes[0].token.type != HX_JSON_OBJECT)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the event must be a JSON object");
	/* Values are never longer than their encoded form; data may be decoded twice. */
	hx_buf_clear(&reader->values);
	status = hx_buf_reserve(&reader->values, 2 * text.size + 1);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory");
	if (reader->form == HX_EVENT_CLOUDEVENTS)
		status = read_cloudevent(reader, &tree, &event, err);
	else
		status = read_envelope(reader, &tree, &event, err);
	if (status != HAPAX_OK)
		return status;
	take_time(&event);
	*ret = event;
	return HAPAX_OK;
}
