/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_entry.c - converts an entry of a stream to a message.
 *
 * CloudEvents has no binding for streams. Producers use one of these forms:
 *
 *	specversion, id, source, type and others as fields, and data     a CloudEvent
 *	the same with a prefix of another binding (ce_id, ce-id), and data    a CloudEvent
 *	content-type: application/cloudevents+json, and data             a structured one
 *	anything else                                   an object of all fields, as JSON
 *
 * In the last form a field "id" belongs to the object, not the message: it is not a header.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/utf8.h"
#include "source/consume/envelope.h"
#include "source/redis/redis_private.h"
#include "wire/base64.h"
#include "wire/http1/http1_text.h"
#include "wire/json/json_write.h"
#include "wire/resp/resp.h"

enum {
	SPARE_BYTES_MAX = 64 * 1024,
	SPARES_MAX = 1024,
	/* More than an envelope reads, which then reports an entry with more as too large. */
	HEADERS_MAX = 256,
	PREFIX_SIZE = 3,
};

struct hx_redis_entry *hx_redis_entry_take(struct hx_redis_source *source)
{
	struct hx_redis_entry *entry = source->spare;

	if (entry != NULL) {
		source->spare = entry->spare_next;
		source->spare_count--;
		return entry;
	}
	entry = hx_alloc_zero(1, sizeof(*entry));
	if (entry != NULL) {
		hx_buf_init(&entry->raw, SIZE_MAX / 2);
		hx_buf_init(&entry->text, SIZE_MAX / 2);
	}
	return entry;
}

static void destroy(struct hx_redis_entry *entry)
{
	hx_buf_done(&entry->raw);
	hx_buf_done(&entry->text);
	hx_free(entry->fields);
	hx_free(entry);
}

void hx_redis_entry_free(struct hx_redis_source *source, struct hx_redis_entry *entry)
{
	if (source->spare_count >= SPARES_MAX ||
	    entry->raw.capacity + entry->text.capacity > SPARE_BYTES_MAX) {
		destroy(entry);
		return;
	}
	hx_buf_clear(&entry->raw);
	hx_buf_clear(&entry->text);
	entry->is_aside = false;
	entry->spare_next = source->spare;
	source->spare = entry;
	source->spare_count++;
}

void hx_redis_entry_free_spares(struct hx_redis_source *source)
{
	while (source->spare != NULL) {
		struct hx_redis_entry *entry = source->spare;

		source->spare = entry->spare_next;
		destroy(entry);
	}
	source->spare_count = 0;
}

/* Copy names and values to raw, and point fields at them. */
static bool copy_fields(struct hx_redis_entry *entry, struct hapax_bytes *rest, int64_t count)
{
	struct hapax_bytes before = *rest;
	size_t fields_max;
	const char *from;

	entry->raw_count = 0;
	/* The fields as received, the same as headers, and one more. */
	fields_max = 2 * ((size_t)count / 2) + 1;
	if (fields_max > entry->field_max) {
		struct hapax_field *fields =
			hx_realloc(entry->fields, fields_max * sizeof(*fields));

		if (fields == NULL)
			return false;
		entry->fields = fields;
		entry->field_max = fields_max;
	}
	for (int64_t i = 0; i + 1 < count; i += 2) {
		struct hx_resp_value name, value;
		struct hapax_field *field = &entry->fields[entry->raw_count++];

		(void)hx_resp_next(rest, &name);
		(void)hx_resp_next(rest, &value);
		*field = (struct hapax_field){hx_bytes("", 0), hx_bytes("", 0)};
		(void)hx_resp_text(&name, &field->name);
		(void)hx_resp_text(&value, &field->value);
	}
	/* Copy all bytes at once, then move the pointers. */
	from = before.data;
	if (hx_buf_append(&entry->raw, from, before.size - rest->size) != HAPAX_OK)
		return false;
	for (size_t i = 0; i < entry->raw_count; i++) {
		struct hapax_field *field = &entry->fields[i];

		if (field->name.size > 0)
			field->name.data =
				entry->raw.data + ((const char *)field->name.data - from);
		if (field->value.size > 0)
			field->value.data =
				entry->raw.data + ((const char *)field->value.data - from);
	}
	return true;
}

static const struct hapax_field *find(const struct hx_redis_entry *entry, const char *name)
{
	struct hapax_bytes wanted = hapax_bytes_from_text(name);

	for (size_t i = 0; i < entry->raw_count; i++) {
		if (hx_bytes_equal(entry->fields[i].name, wanted))
			return &entry->fields[i];
	}
	return NULL;
}

static bool has_bare_attributes(const struct hx_redis_entry *entry)
{
	return find(entry, "specversion") != NULL && find(entry, "id") != NULL &&
		find(entry, "source") != NULL && find(entry, "type") != NULL;
}

/* Whether a prefix or the content type marks it as an event. */
static bool is_named_event(const struct hx_redis_entry *entry)
{
	for (size_t i = 0; i < entry->raw_count; i++) {
		const struct hapax_field *field = &entry->fields[i];

		if (hx_envelope_attribute(field->name).size > 0)
			return true;
		if (hx_http1_text_equal(field->name, HX_BYTES_LIT("content-type")) &&
		    field->value.size >= 23 &&
		    strncasecmp(field->value.data, "application/cloudevents", 23) == 0)
			return true;
	}
	return false;
}

static bool is_attribute_name(struct hapax_bytes name)
{
	const char *at = name.data;

	for (size_t i = 0; i < name.size; i++) {
		if ((at[i] < 'a' || at[i] > 'z') && (at[i] < '0' || at[i] > '9'))
			return false;
	}
	return name.size > 0;
}

static bool is_ours(struct hapax_bytes name)
{
	return name.size > 6 && strncasecmp(name.data, "hapax-", 6) == 0;
}

static struct hapax_field *add_header(struct hx_redis_entry *entry)
{
	struct hapax_message *message = &entry->message_.message;

	return &entry->fields[entry->raw_count + message->header_count++];
}

/* All fields but data become headers; bare attributes get a prefix. */
static bool make_event(struct hx_redis_entry *entry, bool is_bare)
{
	struct hapax_message *message = &entry->message_.message;
	const struct hapax_field *data = find(entry, "data");
	size_t size = 0;

	for (size_t i = 0; i < entry->raw_count; i++)
		size += PREFIX_SIZE + entry->fields[i].name.size;
	if (hx_buf_reserve(&entry->text, size) != HAPAX_OK)
		return false;
	for (size_t i = 0; i < entry->raw_count && message->header_count < HEADERS_MAX; i++) {
		const struct hapax_field *field = &entry->fields[i];
		struct hapax_field *header;

		if (field == data)
			continue;
		header = add_header(entry);
		*header = *field;
		if (!is_bare || !is_attribute_name(field->name))
			continue;
		header->name = hx_bytes(
			entry->text.data + entry->text.size, PREFIX_SIZE + field->name.size);
		(void)hx_buf_append(&entry->text, "ce_", PREFIX_SIZE);
		(void)hx_buf_append(&entry->text, field->name.data, field->name.size);
	}
	message->data = data == NULL ? hx_bytes("", 0) : data->value;
	return true;
}

/* A value that is not text becomes Base64, under a name that says so, as in CloudEvents. */
static enum hapax_status write_member(struct hapax_buf *out, const struct hapax_field *field)
{
	bool is_text = hx_utf8_is_valid(field->value);
	enum hapax_status status = hx_json_write_string(out, field->name);

	if (status == HAPAX_OK && !is_text) {
		out->size--;
		status = hx_buf_append(out, "_base64\"", 8);
	}
	if (status == HAPAX_OK)
		status = hx_buf_append(out, ":", 1);
	if (status == HAPAX_OK && is_text)
		return hx_json_write_string(out, field->value);
	if (status == HAPAX_OK)
		status = hx_buf_append(out, "\"", 1);
	if (status == HAPAX_OK)
		status = hx_base64_append(out, field->value);
	return status == HAPAX_OK ? hx_buf_append(out, "\"", 1) : status;
}

/* One object of all fields, without the fields added to a dead letter. */
static bool make_object(struct hx_redis_entry *entry)
{
	struct hapax_message *message = &entry->message_.message;
	enum hapax_status status = hx_buf_append(&entry->text, "{", 1);
	bool is_first = true;

	*add_header(entry) = (struct hapax_field){
		HX_BYTES_LIT("content-type"), HX_BYTES_LIT("application/json")};
	for (size_t i = 0; i < entry->raw_count && status == HAPAX_OK; i++) {
		const struct hapax_field *field = &entry->fields[i];

		if (!hx_http1_text_equal(field->name, HX_BYTES_LIT("id")) &&
		    !hx_http1_text_equal(field->name, HX_BYTES_LIT("content-type")) &&
		    message->header_count < HEADERS_MAX)
			*add_header(entry) = *field;
		if (is_ours(field->name))
			continue;
		if (!is_first)
			status = hx_buf_append(&entry->text, ",", 1);
		is_first = false;
		if (status == HAPAX_OK)
			status = write_member(&entry->text, field);
	}
	if (status == HAPAX_OK)
		status = hx_buf_append(&entry->text, "}", 1);
	message->data = hapax_buf_bytes(&entry->text);
	return status == HAPAX_OK;
}

/* The first half of an id is the time it was added, unless the producer chose the id. */
static int64_t time_of(struct hapax_bytes id)
{
	const char *dash = memchr(id.data, '-', id.size);
	int64_t ms;

	if (dash == NULL ||
	    !hx_resp_parse_integer(
		    hx_bytes(id.data, (size_t)(dash - (const char *)id.data)), &ms) ||
	    ms <= 0 || ms > INT64_C(253402300799000))
		return HAPAX_TIME_UNKNOWN;
	return ms;
}

void hx_redis_entry_name(
	struct hx_redis_source *source, struct hx_redis_entry *entry, struct hapax_bytes id)
{
	struct hapax_message *message = &entry->message_.message;

	memset(message, 0, sizeof(*message));
	(void)snprintf(
		entry->id, sizeof(entry->id), "%.*s", (int)(id.size < 47 ? id.size : 47),
		(const char *)id.data);
	entry->raw_count = 0;
	message->origin = hapax_bytes_from_text(source->place.origin);
	message->topic = hapax_bytes_from_text(source->place.stream);
	message->partition = -1;
	message->place = hapax_bytes_from_text(entry->id);
	message->time_ms = time_of(message->place);
}

bool hx_redis_entry_read(
	struct hx_redis_source *source, struct hx_redis_entry *entry, struct hapax_bytes id,
	struct hapax_bytes *fields, int64_t count)
{
	bool is_bare;

	hx_redis_entry_name(source, entry, id);
	if (!copy_fields(entry, fields, count))
		return false;
	entry->message_.message.headers = entry->fields + entry->raw_count;
	is_bare = has_bare_attributes(entry);
	return is_bare || is_named_event(entry) ? make_event(entry, is_bare) : make_object(entry);
}
