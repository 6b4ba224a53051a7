/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envelope.c - reads a broker's message as an event.
 */
#include "source/consume/envelope.h"

#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/decimal.h"
#include "base/error.h"
#include "wire/http1/http1_text.h"
#include "wire/media_type.h"

enum { NAME_SIZE_MAX = 3 + HX_CLOUDEVENT_NAME_MAX };

static const struct hapax_bytes prefixes[] = {
	HX_BYTES_LIT("ce_"),
	HX_BYTES_LIT("ce-"),
	HX_BYTES_LIT("cloudEvents:"),
	HX_BYTES_LIT("cloudEvents_"),
};

void hx_envelope_init(struct hx_envelope *envelope)
{
	memset(envelope, 0, sizeof(*envelope));
	hx_buf_init(&envelope->values, HX_ENVELOPE_TEXT_MAX);
	hx_buf_init(&envelope->text, HX_ENVELOPE_TEXT_MAX);
}

void hx_envelope_done(struct hx_envelope *envelope)
{
	hx_buf_done(&envelope->values);
	hx_buf_done(&envelope->text);
}

struct hapax_bytes hx_envelope_attribute(struct hapax_bytes name)
{
	for (size_t i = 0; i < HX_COUNT(prefixes); i++) {
		if (name.size > prefixes[i].size &&
		    strncasecmp(name.data, prefixes[i].data, prefixes[i].size) == 0)
			return hx_bytes(
				(const char *)name.data + prefixes[i].size,
				name.size - prefixes[i].size);
	}
	return hx_bytes(NULL, 0);
}

struct hapax_bytes hx_envelope_header(const struct hx_envelope *envelope, const char *name)
{
	struct hapax_bytes wanted = hapax_bytes_from_text(name);

	for (size_t i = 0; i < envelope->field_count; i++) {
		if (hx_http1_text_equal(envelope->fields[i].name, wanted))
			return envelope->fields[i].value;
	}
	return hx_bytes(NULL, 0);
}

/* Headers that name a message, not its key: a message that is sent again has another id. */
static struct hapax_bytes message_id(const struct hx_envelope *envelope)
{
	static const char *const names[] = {"message-id", "eventId", "Nats-Msg-Id", "id"};
	struct hapax_bytes id = {NULL, 0};

	for (size_t i = 0; i < HX_COUNT(names) && id.size == 0; i++)
		id = hx_envelope_header(envelope, names[i]);
	return id;
}

struct hapax_cause hx_envelope_cause(const struct hx_envelope *envelope, struct hapax_bytes place)
{
	int64_t time_ms = envelope->event.time_ms;
	struct hapax_cause cause = {
		.type = envelope->type,
		.time_ms = time_ms == HAPAX_TIME_UNKNOWN ? 0 : time_ms,
	};

	if (envelope->is_cloudevent) {
		cause.id = envelope->cloudevent.id;
		cause.source = envelope->cloudevent.source;
	} else {
		cause.id = message_id(envelope);
		if (cause.id.size == 0)
			cause.id = place;
	}
	return cause;
}

/* The event reader decodes values as in HTTP: encode the ones that it would change. */
static bool needs_encoding(struct hapax_bytes value)
{
	return value.size > 0 &&
		(*(const char *)value.data == '"' || memchr(value.data, '%', value.size) != NULL);
}

/* The room for all rewritten names and values: encoding triples a byte. */
static size_t room_needed(const struct hapax_message *message, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++) {
		if (hx_envelope_attribute(message->headers[i].name).size > 0)
			size += 3 + message->headers[i].name.size +
				3 * message->headers[i].value.size;
	}
	return size;
}

/* Append to values, which has room, so that earlier pointers stay valid. */
static struct hapax_bytes put(struct hapax_buf *values, struct hapax_bytes value, bool encodes)
{
	size_t begin = values->size;

	if (encodes)
		(void)hx_cloudevent_encode(values, value);
	else
		(void)hx_buf_append(values, value.data, value.size);
	return hx_bytes(values->data + begin, values->size - begin);
}

/* "ce_id" becomes "ce-id"; others stay. datacontenttype is in content-type here. */
static void take_field(struct hx_envelope *envelope, const struct hapax_field *header)
{
	struct hapax_bytes attribute = hx_envelope_attribute(header->name);
	struct hapax_field *field = &envelope->fields[envelope->field_count];

	*field = *header;
	if (field->value.data == NULL)
		field->value = hx_bytes("", 0);
	if (attribute.size > 0) {
		size_t begin = envelope->values.size;

		if (hx_http1_text_equal(attribute, HX_BYTES_LIT("datacontenttype"))) {
			envelope->content_type = field->value;
			return;
		}
		(void)hx_buf_append(&envelope->values, "ce-", 3);
		(void)put(&envelope->values, attribute, false);
		field->name = hx_bytes(envelope->values.data + begin, 3 + attribute.size);
		if (needs_encoding(field->value))
			field->value = put(&envelope->values, field->value, true);
		envelope->is_cloudevent = true;
	}
	envelope->field_count++;
}

static enum hapax_status take_fields(
	struct hx_envelope *envelope, const struct hapax_message *message, struct hapax_error *err)
{
	size_t count = message->header_count;
	struct hapax_bytes content_type;

	if (count > HX_ENVELOPE_HEADERS_MAX)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0, "the message has too many headers: %zu, limit %d",
			count, HX_ENVELOPE_HEADERS_MAX);
	hx_buf_clear(&envelope->values);
	if (hx_buf_reserve(&envelope->values, room_needed(message, count)) != HAPAX_OK)
		return hx_error_set(err, HAPAX_ERR_LIMIT, 0, "the headers are too long");
	envelope->field_count = 0;
	envelope->is_cloudevent = false;
	envelope->content_type = hx_bytes(NULL, 0);
	for (size_t i = 0; i < count; i++)
		take_field(envelope, &message->headers[i]);
	content_type = hx_envelope_header(envelope, "content-type");
	if (content_type.data != NULL && content_type.size > 0)
		envelope->content_type = content_type;
	return HAPAX_OK;
}

static void add_meta(
	struct hx_envelope *envelope, struct hapax_bytes name, struct hapax_bytes value)
{
	envelope->meta[envelope->event.meta_count++] = (struct hapax_field){name, value};
}

static void take_meta(struct hx_envelope *envelope, const struct hapax_message *message)
{
	struct hapax_event *event = &envelope->event;
	size_t time_size;

	event->meta = envelope->meta;
	event->meta_count = 0;
	add_meta(envelope, HX_BYTES_LIT("topic"), message->topic);
	envelope->partition[0] = '\0';
	if (message->partition >= 0) {
		size_t size = hx_decimal_write(envelope->partition, message->partition);

		add_meta(envelope, HX_BYTES_LIT("partition"), hx_bytes(envelope->partition, size));
	}
	if (message->place.size > 0)
		add_meta(envelope, HX_BYTES_LIT("offset"), message->place);
	if (message->key.data != NULL)
		add_meta(envelope, HX_BYTES_LIT("key"), message->key);
	add_meta(envelope, HX_BYTES_LIT("origin"), message->origin);
	time_size = hx_decimal_write(envelope->time, message->time_ms);
	add_meta(envelope, HX_BYTES_LIT("time"), hx_bytes(envelope->time, time_size));
	if (event->time_ms == HAPAX_TIME_UNKNOWN)
		event->time_ms = message->time_ms;
}

static bool looks_like_json(struct hapax_bytes data)
{
	const char *at = data.data;

	for (size_t i = 0; i < data.size; i++) {
		if (at[i] != ' ' && at[i] != '\t' && at[i] != '\n' && at[i] != '\r')
			return at[i] == '{' || at[i] == '[';
	}
	return false;
}

/* Not a CloudEvent. Document D's projector has the type in its own header. */
static void read_plain(struct hx_envelope *envelope, const struct hapax_message *message)
{
	struct hapax_event *event = &envelope->event;

	*event = (struct hapax_event)HAPAX_EVENT_INIT;
	event->data = message->data;
	event->data_kind =
		(envelope->content_type.size > 0 ? hx_media_type_is_json(envelope->content_type)
						 : looks_like_json(message->data))
		? HAPAX_DATA_JSON
		: HAPAX_DATA_BYTES;
	event->headers = envelope->fields;
	event->header_count = envelope->field_count;
	envelope->type = hx_envelope_header(envelope, "eventType");
}

/*
 * A structured event without the content type of one. Version 1 of Python's SDK sends them so: its
 * content-type is that of the data, or missing.
 */
static bool is_bare_event(struct hx_envelope *envelope, struct hapax_bytes data)
{
	static const struct hapax_bytes name = HX_BYTES_LIT("\"specversion\"");

	return !envelope->is_cloudevent && looks_like_json(data) &&
		memmem(data.data, data.size, name.data, name.size) != NULL &&
		hx_cloudevent_read_structured(&envelope->cloudevent, data, &envelope->text, NULL) ==
		HAPAX_OK;
}

enum hapax_status hx_envelope_read(
	struct hx_envelope *envelope, const struct hapax_message *message, struct hapax_error *err)
{
	enum hx_cloudevents_mode mode = HX_CLOUDEVENTS_BINARY;
	enum hapax_status status = take_fields(envelope, message, err);
	bool is_bare;

	if (status == HAPAX_OK && envelope->content_type.size > 0) {
		status = hx_cloudevents_detect(envelope->content_type, &mode, err);
		/* Only a message that claims to be a CloudEvent must have a supported format. */
		if (status == HAPAX_ERR_UNSUPPORTED && !envelope->is_cloudevent &&
		    strncasecmp(
			    envelope->content_type.data, "application/cloudevents",
			    envelope->content_type.size < 23 ? envelope->content_type.size : 23) !=
			    0)
			status = HAPAX_OK;
	}
	if (status != HAPAX_OK)
		return status;
	if (mode == HX_CLOUDEVENTS_BATCHED)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"a message must not contain a batch of events");
	is_bare = mode == HX_CLOUDEVENTS_BINARY && is_bare_event(envelope, message->data);
	if (mode == HX_CLOUDEVENTS_STRUCTURED)
		status = hx_cloudevent_read_structured(
			&envelope->cloudevent, message->data, &envelope->text, err);
	else if (envelope->is_cloudevent)
		status = hx_cloudevent_read_binary(
			&envelope->cloudevent, envelope->fields, envelope->field_count,
			envelope->content_type, message->data, &envelope->text, err);
	if (status != HAPAX_OK)
		return status;
	envelope->is_cloudevent =
		envelope->is_cloudevent || is_bare || mode == HX_CLOUDEVENTS_STRUCTURED;
	if (envelope->is_cloudevent) {
		envelope->event = hx_cloudevent_view(
			&envelope->cloudevent, envelope->fields, envelope->field_count);
		envelope->type = envelope->cloudevent.type;
		if (!is_bare || envelope->cloudevent.datacontenttype.size > 0)
			envelope->content_type = envelope->cloudevent.datacontenttype;
	} else {
		read_plain(envelope, message);
	}
	take_meta(envelope, message);
	return HAPAX_OK;
}
