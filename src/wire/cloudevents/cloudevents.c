/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloudevents.c - common parts of all forms of an event: mode and attributes.
 */
#include "wire/cloudevents/cloudevents.h"

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "wire/cloudevents/cloudevents_attribute.h"
#include "wire/date.h"
#include "wire/http1/http1_text.h"
#include "wire/media_type.h"
#include "base/utf8.h"

enum { SHOWN_MAX = 80 };

static bool begins_with(struct hapax_bytes text, struct hapax_bytes prefix)
{
	return text.size >= prefix.size &&
		hx_http1_text_equal(hx_bytes(text.data, prefix.size), prefix);
}

static bool is_utf8_charset(struct hapax_bytes charset)
{
	return charset.size == 0 || hx_http1_text_equal(charset, HX_BYTES_LIT("utf-8")) ||
		hx_http1_text_equal(charset, HX_BYTES_LIT("us-ascii"));
}

enum hapax_status hx_cloudevents_detect(
	struct hapax_bytes content_type, enum hx_cloudevents_mode *ret, struct hapax_error *err)
{
	struct hapax_bytes type = hx_media_type_essence(content_type);
	struct hapax_bytes charset = hx_media_type_charset(content_type);
	enum hx_cloudevents_mode mode = HX_CLOUDEVENTS_STRUCTURED;

	if (!begins_with(type, HX_BYTES_LIT("application/cloudevents"))) {
		*ret = HX_CLOUDEVENTS_BINARY;
		return HAPAX_OK;
	}
	if (begins_with(type, HX_BYTES_LIT("application/cloudevents-batch")))
		mode = HX_CLOUDEVENTS_BATCHED;
	if (!hx_http1_text_equal(type, HX_BYTES_LIT("application/cloudevents+json")) &&
	    !hx_http1_text_equal(type, HX_BYTES_LIT("application/cloudevents-batch+json")))
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"header 'Content-Type': unsupported format '%.*s'; use "
			"application/cloudevents+json",
			(int)(type.size < SHOWN_MAX ? type.size : SHOWN_MAX),
			(const char *)type.data);
	if (!is_utf8_charset(charset))
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"header 'Content-Type': JSON must be UTF-8, not '%.*s'",
			(int)(charset.size < SHOWN_MAX ? charset.size : SHOWN_MAX),
			(const char *)charset.data);
	*ret = mode;
	return HAPAX_OK;
}

void hx_cloudevent_begin(struct hx_cloudevent *event)
{
	const struct hapax_bytes none = {NULL, 0};

	event->id = event->source = event->type = event->subject = none;
	event->dataschema = event->datacontenttype = event->data = event->text = none;
	event->time_ms = HAPAX_TIME_UNKNOWN;
	event->data_kind = HAPAX_DATA_BYTES;
	event->attribute_count = 0;
}

const char *hx_cloudevent_check_name(struct hapax_bytes name)
{
	const unsigned char *at = name.data;

	if (name.size == 0)
		return "an attribute needs a name";
	if (name.size > HX_CLOUDEVENT_NAME_MAX)
		return "the name of an attribute is too long";
	for (size_t i = 0; i < name.size; i++) {
		if (!(at[i] >= 'a' && at[i] <= 'z') && !hx_http1_is_digit(at[i]))
			return "names of attributes must be lower-case letters and digits";
	}
	if (hx_bytes_equal(name, HX_BYTES_LIT("data")))
		return "'data' cannot be the name of an attribute";
	return NULL;
}

/* A String of CloudEvents: no control characters, no noncharacters. */
static const char *check_text(struct hapax_bytes value)
{
	const unsigned char *at = value.data;
	const unsigned char *end = at + value.size;

	while (at < end) {
		uint32_t code;
		size_t size;

		if (end - at >= 8 && hx_ascii_is_printable8(at)) {
			at += 8;
			continue;
		}
		if (*at >= 0x20 && *at < 0x7f) {
			at++;
			continue;
		}
		size = hx_utf8_size(hx_bytes(at, (size_t)(end - at)), &code);
		if (size == 0)
			return "it is not UTF-8";
		if (hx_utf8_is_control(code))
			return "it has a control character";
		if ((code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef))
			return "it has a code point that is not a character";
		at += size;
	}
	return NULL;
}

/* The attributes that CloudEvents defines, with their rules. */
static const struct {
	struct hapax_bytes name;
	size_t place; /* in struct hx_cloudevent; 0: only in the list */
} defined[] = {
	{HX_BYTES_LIT("id"), offsetof(struct hx_cloudevent, id) + 1},
	{HX_BYTES_LIT("source"), offsetof(struct hx_cloudevent, source) + 1},
	{HX_BYTES_LIT("type"), offsetof(struct hx_cloudevent, type) + 1},
	{HX_BYTES_LIT("subject"), offsetof(struct hx_cloudevent, subject) + 1},
	{HX_BYTES_LIT("dataschema"), offsetof(struct hx_cloudevent, dataschema) + 1},
	{HX_BYTES_LIT("datacontenttype"), offsetof(struct hx_cloudevent, datacontenttype) + 1},
	{HX_BYTES_LIT("specversion"), 0},
	{HX_BYTES_LIT("time"), 0},
};

enum { DEFINED_COUNT = HX_COUNT(defined) };

static size_t find_defined(struct hapax_bytes name)
{
	size_t index = 0;

	/* Compare sizes first: most names differ in size, and memcmp(3) is expensive. */
	while (index < DEFINED_COUNT &&
	       (name.size != defined[index].name.size ||
		memcmp(name.data, defined[index].name.data, name.size) != 0))
		index++;
	return index;
}

const struct hapax_bytes *hx_cloudevent_defined_name(struct hapax_bytes in_either_case)
{
	for (size_t i = 0; i < DEFINED_COUNT; i++) {
		if (hx_http1_text_equal(in_either_case, defined[i].name))
			return &defined[i].name;
	}
	return NULL;
}

bool hx_cloudevent_is_defined(struct hapax_bytes name)
{
	return find_defined(name) < DEFINED_COUNT;
}

static const char *check_defined(
	struct hx_cloudevent *event, size_t index, struct hapax_bytes value)
{
	struct hapax_bytes name = defined[index].name;

	if (value.size == 0)
		return "it must not be empty";
	if (defined[index].place != 0)
		memcpy((char *)event + defined[index].place - 1, &value, sizeof(value));
	if (hx_bytes_equal(name, HX_BYTES_LIT("specversion")) &&
	    !hx_bytes_equal(value, HX_BYTES_LIT("1.0")))
		return "only '1.0' is supported";
	if (hx_bytes_equal(name, HX_BYTES_LIT("time")) && !hx_date_parse(value, &event->time_ms))
		return "it is not a time (RFC 3339)";
	if (hx_bytes_equal(name, HX_BYTES_LIT("datacontenttype")) && !hx_media_type_is_valid(value))
		return "it is not a media type";
	return NULL;
}

const char *hx_cloudevent_add(
	struct hx_cloudevent *event, struct hapax_bytes name, struct hapax_bytes value)
{
	size_t index = find_defined(name);
	const char *reason = check_text(value);

	if (reason != NULL)
		return reason;
	for (size_t i = 0; i < event->attribute_count; i++) {
		if (hx_bytes_equal(event->attributes[i].name, name))
			return "the attribute occurs twice";
	}
	if (event->attribute_count == HX_CLOUDEVENT_ATTRIBUTES_MAX)
		return "too many attributes";
	event->attributes[event->attribute_count++] = (struct hapax_field){name, value};
	return index < DEFINED_COUNT ? check_defined(event, index, value) : NULL;
}

const char *hx_cloudevent_missing(const struct hx_cloudevent *event)
{
	static const struct hapax_bytes version = HX_BYTES_LIT("specversion");

	if (event->id.data == NULL)
		return "id";
	if (event->source.data == NULL)
		return "source";
	if (event->type.data == NULL)
		return "type";
	for (size_t i = 0; i < event->attribute_count; i++) {
		if (hx_bytes_equal(event->attributes[i].name, version))
			return NULL;
	}
	return "specversion";
}

struct hapax_event hx_cloudevent_view(
	const struct hx_cloudevent *event, const struct hapax_field *fields, size_t field_count)
{
	struct hapax_event view = HAPAX_EVENT_INIT;

	view.data = event->data;
	view.data_kind = event->data_kind;
	view.attributes = event->attributes;
	view.attribute_count = event->attribute_count;
	view.headers = fields;
	view.header_count = field_count;
	view.time_ms = event->time_ms;
	return view;
}

enum hapax_status hx_cloudevent_encode(struct hapax_buf *out, struct hapax_bytes value)
{
	static const char hex[] = "0123456789ABCDEF";
	const unsigned char *at = value.data;
	enum hapax_status status = hx_buf_reserve(out, value.size);

	for (size_t i = 0; i < value.size && status == HAPAX_OK; i++) {
		char triplet[3] = {'%', hex[at[i] >> 4], hex[at[i] & 0xf]};

		if (at[i] > 0x20 && at[i] < 0x7f && at[i] != '"' && at[i] != '%')
			status = hx_buf_append_byte(out, at[i]);
		else
			status = hx_buf_append(out, triplet, 3);
	}
	return status;
}
