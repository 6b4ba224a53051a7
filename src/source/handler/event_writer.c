/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_writer.c - writes a message as a CloudEvent over HTTP.
 */
#include "source/handler/event_writer.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "wire/base64.h"
#include "wire/http1/http1_text.h"
#include "wire/json/json.h"
#include "wire/json/json_write.h"

enum { ATTRIBUTES_MADE = 5, SOURCE_SIZE = 700, NAME_SIZE = 3 + HX_CLOUDEVENT_NAME_MAX + 1 };

/* The generated attributes of a message without its own. */
struct made {
	struct hapax_field fields[ATTRIBUTES_MADE];
	size_t count;
	char source[SOURCE_SIZE];
	char time[32];
};

static void make(struct made *made, const struct hx_in_flight *in_flight)
{
	const struct hapax_message *message = in_flight->message;
	struct hapax_bytes id = hx_bytes(in_flight->key.key, in_flight->key.key_size);
	struct hapax_bytes type = in_flight->envelope.type;
	struct hapax_field *fields = made->fields;

	(void)snprintf(
		made->source, sizeof(made->source), "%.*s/%.*s",
		(int)(message->origin.size < 400 ? message->origin.size : 400),
		(const char *)message->origin.data,
		(int)(message->topic.size < 256 ? message->topic.size : 256),
		(const char *)message->topic.data);
	if (id.size == 0)
		id = hapax_bytes_from_text(in_flight->place);
	if (type.size == 0)
		type = HX_BYTES_LIT("dev.hapax.message");
	fields[0] = (struct hapax_field){HX_BYTES_LIT("specversion"), HX_BYTES_LIT("1.0")};
	fields[1] = (struct hapax_field){HX_BYTES_LIT("id"), id};
	fields[2] =
		(struct hapax_field){HX_BYTES_LIT("source"), hapax_bytes_from_text(made->source)};
	fields[3] = (struct hapax_field){HX_BYTES_LIT("type"), type};
	made->count = 4;
	if (message->time_ms == HAPAX_TIME_UNKNOWN)
		return;
	hx_clock_format_utc(message->time_ms, made->time);
	fields[4] = (struct hapax_field){HX_BYTES_LIT("time"), hapax_bytes_from_text(made->time)};
	made->count = ATTRIBUTES_MADE;
}

/* The event's attributes, or the generated ones. */
static const struct hapax_field *attributes_of(
	const struct hx_in_flight *in_flight, struct made *made, size_t *ret_count)
{
	const struct hx_envelope *envelope = &in_flight->envelope;

	if (envelope->is_cloudevent) {
		*ret_count = envelope->cloudevent.attribute_count;
		return envelope->cloudevent.attributes;
	}
	make(made, in_flight);
	*ret_count = made->count;
	return made->fields;
}

static bool has_attribute(const struct hapax_field *fields, size_t count, struct hapax_bytes name)
{
	for (size_t i = 0; i < count; i++) {
		if (hx_bytes_equal(fields[i].name, name))
			return true;
	}
	return false;
}

/* Continue the trace: the producer's trace headers become request headers, too. */
static void write_trace(const struct hx_in_flight *in_flight, struct hx_http1_writer *writer)
{
	static const char *const names[] = {"traceparent", "tracestate", "baggage"};

	for (size_t i = 0; i < HX_COUNT(names); i++) {
		struct hapax_bytes value = hx_in_flight_trace_header(in_flight, names[i]);
		const unsigned char *at = value.data;
		bool is_plain = value.size > 0 && value.size <= 8192;

		for (size_t k = 0; k < value.size && is_plain; k++)
			is_plain = at[k] > ' ' - 1 && at[k] < 0x7f;
		if (is_plain)
			hx_http1_write_field(writer, hapax_bytes_from_text(names[i]), value);
	}
}

static enum hapax_status write_attribute(
	struct hx_http1_writer *writer, const struct hapax_field *field, struct hapax_buf *scratch)
{
	char name[NAME_SIZE];
	enum hapax_status status;

	if (hx_bytes_equal(field->name, HX_BYTES_LIT("datacontenttype")))
		return HAPAX_OK;
	(void)snprintf(
		name, sizeof(name), "ce-%.*s", (int)field->name.size,
		(const char *)field->name.data);
	hx_buf_clear(scratch);
	status = hx_cloudevent_encode(scratch, field->value);
	if (status == HAPAX_OK)
		hx_http1_write_field(writer, hapax_bytes_from_text(name), hapax_buf_bytes(scratch));
	return status;
}

enum hapax_status hx_event_writer_binary(
	struct hx_in_flight *in_flight, struct hx_http1_writer *writer,
	struct hapax_bytes *ret_body)
{
	struct hx_envelope *envelope = &in_flight->envelope;
	struct hapax_bytes content_type = envelope->content_type;
	enum hapax_status status = HAPAX_OK;
	const struct hapax_field *fields;
	struct made made;
	size_t count;

	fields = attributes_of(in_flight, &made, &count);
	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = write_attribute(writer, &fields[i], &in_flight->document);
	if (content_type.size == 0 && envelope->event.data_kind == HAPAX_DATA_JSON &&
	    envelope->event.data.size > 0)
		content_type = HX_BYTES_LIT("application/json");
	if (content_type.size > 0)
		hx_http1_write_field(writer, HX_BYTES_LIT("Content-Type"), content_type);
	write_trace(in_flight, writer);
	*ret_body = envelope->event.data;
	return status;
}

static bool is_json(struct hapax_bytes text)
{
	struct hx_json_token token;
	struct hx_json json;

	if (text.size == 0 || hx_json_init(&json, text, NULL, 0, NULL) != HAPAX_OK)
		return false;
	do {
		if (hx_json_next(&json, &token, NULL) != HAPAX_OK)
			return false;
	} while (token.type != HX_JSON_END);
	return true;
}

/* JSON unchanged, other text as a string if its type is declared, anything else in Base64. */
static enum hapax_status write_data(
	const struct hx_envelope *envelope, struct hx_json_write *json, struct hapax_buf *document)
{
	struct hapax_bytes data = envelope->event.data;
	enum hapax_status status;

	if (data.size == 0)
		return json->status;
	if (envelope->event.data_kind == HAPAX_DATA_JSON && is_json(data)) {
		hx_json_write_name(json, "data");
		return hx_buf_append(document, data.data, data.size);
	}
	if (envelope->content_type.size > 0 && hx_utf8_is_valid(data) &&
	    envelope->event.data_kind != HAPAX_DATA_JSON) {
		hx_json_write_bytes(json, "data", data);
		return json->status;
	}
	hx_json_write_name(json, "data_base64");
	status = hx_buf_append(document, "\"", 1);
	if (status == HAPAX_OK)
		status = hx_base64_append(document, data);
	return status == HAPAX_OK ? hx_buf_append(document, "\"", 1) : status;
}

static enum hapax_status write_object(struct hx_in_flight *in_flight, struct hapax_buf *document)
{
	const struct hx_envelope *envelope = &in_flight->envelope;
	const struct hapax_field *fields;
	struct hx_json_write json;
	char name[NAME_SIZE];
	enum hapax_status status;
	struct made made;
	size_t count;

	fields = attributes_of(in_flight, &made, &count);
	hx_json_write_init(&json, document);
	hx_json_write_begin(&json, NULL, '{');
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(
			name, sizeof(name), "%.*s", (int)fields[i].name.size,
			(const char *)fields[i].name.data);
		hx_json_write_bytes(&json, name, fields[i].value);
	}
	if (envelope->content_type.size > 0 &&
	    !has_attribute(fields, count, HX_BYTES_LIT("datacontenttype")))
		hx_json_write_bytes(&json, "datacontenttype", envelope->content_type);
	status = write_data(envelope, &json, document);
	hx_json_write_end(&json, '}');
	return status == HAPAX_OK ? json.status : status;
}

enum hapax_status hx_event_writer_structured(
	struct hx_in_flight *in_flight, struct hx_http1_writer *writer, struct hapax_buf *document,
	struct hapax_bytes *ret_body)
{
	enum hapax_status status = HAPAX_OK;

	hx_http1_write_field(
		writer, HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT("application/cloudevents+json"));
	write_trace(in_flight, writer);
	*ret_body = in_flight->envelope.is_cloudevent ? in_flight->envelope.cloudevent.text
						      : hx_bytes(NULL, 0);
	if (ret_body->size == 0) {
		hx_buf_clear(document);
		status = write_object(in_flight, document);
		*ret_body = hapax_buf_bytes(document);
	}
	return status;
}
