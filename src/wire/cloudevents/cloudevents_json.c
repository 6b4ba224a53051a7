/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloudevents_json.c - events in JSON, one or many (JSON format 1.0.2).
 *
 * Tokens are read once, without a tree. Duplicate names are detected at the event's own level.
 * Within data, the parser of data must detect them; the fingerprint of such data is that of its
 * bytes.
 */
#include "wire/cloudevents/cloudevents.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "wire/base64.h"
#include "wire/cloudevents/cloudevents_attribute.h"
#include "wire/json/json_string.h"
#include "wire/media_type.h"

/* Attributes that are null also take a place, so that duplicates are detected. */
enum { NAMES_MAX = HX_CLOUDEVENT_ATTRIBUTES_MAX + 8 };

struct reader {
	struct hx_json *json;
	struct hapax_bytes text; /* the whole text, for positions */
	struct hapax_buf *scratch;
	struct hx_cloudevent *event;
	struct hx_json_token data;   /* name 0: none */
	struct hx_json_token base64; /* likewise */
	size_t data_end;             /* of a container */
	size_t name_count;
	struct hapax_bytes names[NAMES_MAX];
};

static enum hapax_status cloudevents_json_refuse(
	const struct reader *reader, size_t offset, struct hapax_bytes name, const char *reason,
	struct hapax_error *err)
{
	return hx_json_error(
		err, HAPAX_ERR_INVALID, reader->text, offset, "'%.*s': %s",
		(int)(name.size < HX_CLOUDEVENT_NAME_MAX ? name.size : HX_CLOUDEVENT_NAME_MAX),
		(const char *)name.data, reason);
}

static const unsigned char *text_at(const struct reader *reader, size_t offset)
{
	return (const unsigned char *)reader->text.data + offset;
}

/*
 * The value of a string: in place, or decoded in scratch. The first string that needs scratch
 * reserves the size of the whole text, since decoding never makes it longer. So scratch does not
 * move after that.
 */
static enum hapax_status take_string(
	struct reader *reader, size_t offset, size_t size, bool escaped, struct hapax_bytes *ret,
	struct hapax_error *err)
{
	struct hx_json_string string = {text_at(reader, offset), (uint32_t)size, escaped};
	enum hapax_status status;

	if (!escaped) {
		*ret = hx_bytes(string.data, size);
		return HAPAX_OK;
	}
	status = reader->scratch->size > 0 ? HAPAX_OK
					   : hx_buf_reserve(reader->scratch, reader->text.size);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "the decoded event is too long");
	assert(reader->scratch->capacity - reader->scratch->size >= size);
	*ret = hx_bytes(reader->scratch->data + reader->scratch->size, 0);
	ret->size = hx_json_string_value(string, reader->scratch->data + reader->scratch->size);
	reader->scratch->size += ret->size;
	return HAPAX_OK;
}

/* Integers of CloudEvents have 32 bits and one canonical text. */
static const char *take_integer(struct hapax_bytes text, struct hapax_bytes *ret)
{
	const unsigned char *at = text.data;
	bool negative = at[0] == '-';
	uint64_t value = 0;

	if (text.size > 11)
		return "a number must be between -2147483648 and 2147483647";
	for (size_t i = negative; i < text.size; i++)
		value = value * 10 + (uint64_t)(at[i] - '0');
	if (value > (uint64_t)INT32_MAX + negative)
		return "a number must be between -2147483648 and 2147483647";
	*ret = value == 0 ? HX_BYTES_LIT("0") : text;
	return NULL;
}

static enum hapax_status read_attribute(
	struct reader *reader, const struct hx_json_token *token, struct hapax_bytes name,
	struct hapax_error *err)
{
	const char *reason = hx_cloudevent_check_name(name);
	struct hapax_bytes value = hx_bytes(text_at(reader, token->text), token->size);
	enum hapax_status status = HAPAX_OK;

	if (reason != NULL || token->type == HX_JSON_NULL)
		return reason == NULL
			? HAPAX_OK
			: cloudevents_json_refuse(reader, token->name, name, reason, err);
	if (token->type == HX_JSON_STRING)
		status = take_string(
			reader, token->text, token->size, token->escaped != 0, &value, err);
	else if (hx_cloudevent_is_defined(name))
		reason = "it must be a string";
	else if (token->type == HX_JSON_NUMBER && token->escaped == 0)
		reason = take_integer(value, &value);
	else if (token->type != HX_JSON_TRUE && token->type != HX_JSON_FALSE)
		reason = "an attribute must be a string, an integer or a boolean";
	if (status != HAPAX_OK)
		return status;
	if (reason == NULL)
		reason = hx_cloudevent_add(reader->event, name, value);
	return reason == NULL ? HAPAX_OK
			      : cloudevents_json_refuse(reader, token->text, name, reason, err);
}

/* Skip the container that token opens. */
static enum hapax_status skip(
	struct reader *reader, const struct hx_json_token *token, size_t *ret_end,
	struct hapax_error *err)
{
	struct hx_json_token next = *token;
	size_t depth = 0;

	*ret_end = 0;
	do {
		enum hapax_status status;

		depth += next.type == HX_JSON_OBJECT || next.type == HX_JSON_ARRAY;
		depth -= next.type == HX_JSON_OBJECT_END || next.type == HX_JSON_ARRAY_END;
		*ret_end = (size_t)next.text + next.size;
		if (depth == 0)
			return HAPAX_OK;
		status = hx_json_next(reader->json, &next, err);
		if (status != HAPAX_OK)
			return status;
	} while (true);
}

static enum hapax_status note_name(
	struct reader *reader, const struct hx_json_token *token, struct hapax_bytes name,
	struct hapax_error *err)
{
	for (size_t i = 0; i < reader->name_count; i++) {
		if (hx_bytes_equal(reader->names[i], name))
			return cloudevents_json_refuse(
				reader, token->name, name, "the member occurs twice", err);
	}
	if (reader->name_count == NAMES_MAX)
		return cloudevents_json_refuse(
			reader, token->name, name, "too many attributes", err);
	reader->names[reader->name_count++] = name;
	return HAPAX_OK;
}

static enum hapax_status read_member(
	struct reader *reader, const struct hx_json_token *token, struct hapax_error *err)
{
	struct hapax_bytes name = {NULL, 0};
	enum hapax_status status =
		take_string(reader, token->name, token->name_size, token->name_escaped, &name, err);

	if (status == HAPAX_OK)
		status = note_name(reader, token, name, err);
	if (status != HAPAX_OK)
		return status;
	if (hx_bytes_equal(name, HX_BYTES_LIT("data"))) {
		reader->data = *token;
		return skip(reader, token, &reader->data_end, err);
	}
	if (!hx_bytes_equal(name, HX_BYTES_LIT("data_base64")))
		return read_attribute(reader, token, name, err);
	if (token->type == HX_JSON_NULL)
		return HAPAX_OK;
	if (token->type != HX_JSON_STRING)
		return cloudevents_json_refuse(
			reader, token->text, name, "it must be a string", err);
	reader->base64 = *token;
	return HAPAX_OK;
}

static enum hapax_status take_base64(struct reader *reader, struct hapax_error *err)
{
	const struct hx_json_token *token = &reader->base64;
	struct hx_cloudevent *event = reader->event;
	enum hapax_status status;
	struct hapax_bytes text;
	unsigned char *out;
	size_t size;

	/* Treat it as escaped: the bytes need memory in any case. */
	status = take_string(reader, token->text, token->size, true, &text, err);
	if (status != HAPAX_OK)
		return status;
	if (token->size == 0)
		text = hx_bytes("", 0);
	out = reader->scratch->data + (reader->scratch->size - text.size);
	if (!hx_base64_decode(text, out, &size))
		return cloudevents_json_refuse(
			reader, token->text + (token->escaped != 0 ? 0 : size),
			HX_BYTES_LIT("data_base64"), "it is not Base64", err);
	reader->scratch->size -= text.size - size;
	event->data = hx_bytes(out, size);
	if (hx_media_type_is_json(event->datacontenttype))
		event->data_kind = HAPAX_DATA_JSON;
	return HAPAX_OK;
}

static enum hapax_status take_data(struct reader *reader, struct hapax_error *err)
{
	const struct hx_json_token *token = &reader->data;
	struct hx_cloudevent *event = reader->event;
	size_t quote = token->type == HX_JSON_STRING;

	if (reader->base64.name != 0) {
		if (token->name != 0)
			return cloudevents_json_refuse(
				reader, reader->base64.name, HX_BYTES_LIT("data_base64"),
				"it must not occur together with 'data'", err);
		return take_base64(reader, err);
	}
	if (token->name == 0)
		return HAPAX_OK;
	if (event->datacontenttype.data == NULL || hx_media_type_is_json(event->datacontenttype))
		event->data_kind = HAPAX_DATA_JSON;
	else if (token->type == HX_JSON_STRING)
		return take_string(
			reader, token->text, token->size, token->escaped != 0, &event->data, err);
	event->data = hx_bytes(
		text_at(reader, token->text - quote), reader->data_end - token->text + 2 * quote);
	return HAPAX_OK;
}

/* Read one event; begin is the last token read. */
static enum hapax_status read_event(
	struct reader *reader, const struct hx_json_token *begin, struct hapax_error *err)
{
	struct hx_json_token token;
	enum hapax_status status;
	const char *missing;

	hx_cloudevent_begin(reader->event);
	hx_buf_clear(reader->scratch);
	if (begin->type != HX_JSON_OBJECT)
		return hx_json_error(
			err, HAPAX_ERR_INVALID, reader->text, begin->text,
			"an event must be a JSON object");
	for (;;) {
		status = hx_json_next(reader->json, &token, err);
		if (status != HAPAX_OK)
			return status;
		if (token.type == HX_JSON_OBJECT_END)
			break;
		status = read_member(reader, &token, err);
		if (status != HAPAX_OK)
			return status;
	}
	missing = hx_cloudevent_missing(reader->event);
	if (missing != NULL)
		return hx_json_error(
			err, HAPAX_ERR_INVALID, reader->text, begin->text, "'%s' is missing",
			missing);
	reader->event->text =
		hx_bytes(text_at(reader, begin->text), (size_t)token.text + 1 - begin->text);
	return take_data(reader, err);
}

enum hapax_status hx_cloudevent_read_structured(
	struct hx_cloudevent *event, struct hapax_bytes text, struct hapax_buf *scratch,
	struct hapax_error *err)
{
	struct hx_json json;
	struct reader reader = {.json = &json, .text = text, .scratch = scratch, .event = event};
	struct hx_json_token token;
	enum hapax_status status = hx_json_init(&json, text, NULL, 0, err);

	if (status == HAPAX_OK)
		status = hx_json_next(&json, &token, err);
	if (status == HAPAX_OK)
		status = read_event(&reader, &token, err);
	if (status == HAPAX_OK)
		status = hx_json_next(&json, &token, err);
	assert(status != HAPAX_OK || token.type == HX_JSON_END);
	return status;
}

/* Move to the first event. */
static enum hapax_status batch_begin(struct hx_cloudevents_batch *batch, struct hapax_error *err)
{
	struct hx_json_token token;
	enum hapax_status status = hx_json_init(&batch->json, batch->text, NULL, 0, err);

	batch->next = 0;
	if (status == HAPAX_OK)
		status = hx_json_next(&batch->json, &token, err);
	if (status == HAPAX_OK && token.type != HX_JSON_ARRAY)
		return hx_json_error(
			err, HAPAX_ERR_INVALID, batch->text, token.text,
			"a batch must be a JSON array");
	return status;
}

/* *ret_last: the array ended instead. */
static enum hapax_status batch_read(
	struct hx_cloudevents_batch *batch, struct hx_cloudevent *event, bool *ret_last,
	struct hapax_error *err)
{
	struct reader reader = {
		.json = &batch->json,
		.text = batch->text,
		.scratch = batch->scratch,
		.event = event};
	struct hx_json_token token = {0};
	enum hapax_status status = hx_json_next(&batch->json, &token, err);

	*ret_last = status == HAPAX_OK && token.type == HX_JSON_ARRAY_END;
	if (status != HAPAX_OK)
		return status;
	return *ret_last ? hx_json_next(&batch->json, &token, err)
			 : read_event(&reader, &token, err);
}

enum hapax_status hx_cloudevents_batch_init(
	struct hx_cloudevents_batch *batch, struct hapax_bytes text, size_t count_max,
	struct hapax_buf *scratch, struct hapax_error *err)
{
	struct hx_cloudevent event;
	struct hapax_error why = {HAPAX_OK, 0, ""};
	enum hapax_status status;
	bool last = false;
	size_t count = 0;

	batch->text = text;
	batch->scratch = scratch;
	batch->count = 0;
	batch->status = HAPAX_OK;
	status = batch_begin(batch, err);
	if (status != HAPAX_OK)
		return status;
	for (;;) {
		status = batch_read(batch, &event, &last, &why);
		if (status != HAPAX_OK)
			return hx_error_set(err, status, 0, "event %zu, %s", count, why.message);
		if (last)
			break;
		if (count++ == count_max)
			return hx_error_set(
				err, HAPAX_ERR_LIMIT, 0, "too many events in the batch: limit %zu",
				count_max);
	}
	batch->count = count;
	return batch_begin(batch, err);
}

bool hx_cloudevents_batch_next(struct hx_cloudevents_batch *batch, struct hx_cloudevent *event)
{
	bool last = true;

	if (batch->next == batch->count || batch->status != HAPAX_OK)
		return false;
	batch->status = batch_read(batch, event, &last, NULL);
	/* The same text was read before: it can only run out of memory now. */
	if (batch->status != HAPAX_OK)
		return false;
	assert(!last);
	batch->next++;
	return true;
}
