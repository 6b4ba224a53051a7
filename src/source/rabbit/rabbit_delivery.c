/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_delivery.c - one message, from frames to fields.
 *
 * Properties and headers become fields. Text is not copied again: it points into the encoded
 * properties, which are kept in case the message is handed on. Tables and arrays among the headers
 * are not shown, but are handed on.
 */
#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "source/rabbit/rabbit_private.h"

enum {
	PROPERTIES = 8,
	/* More than an envelope reads, which then reports a message with more as too large. */
	HEADERS_MAX = 256,
	NUMBER_SIZE = 32,
	/* Memory that a spare keeps; a few large messages must not hold theirs forever. */
	SPARE_BYTES_MAX = 16 * 1024,
	SPARE_FIELDS_MAX = 64,
	SPARES_MAX = 4096,
};

/* The last second of the year 9999: a larger value is not a time in seconds. */
static const uint64_t time_s_max = UINT64_C(253402300799);

struct hx_rabbit_delivery *hx_rabbit_delivery_take(struct hx_rabbit_source *source)
{
	struct hx_rabbit_delivery *delivery = source->spare;

	if (delivery != NULL) {
		source->spare = delivery->spare_next;
		source->spare_count--;
	} else {
		delivery = hx_alloc_zero(1, sizeof(*delivery));
		if (delivery == NULL)
			return NULL;
		hx_buf_init(&delivery->bytes, SIZE_MAX / 2);
		hx_buf_init(&delivery->text, (size_t)HEADERS_MAX * NUMBER_SIZE);
	}
	delivery->state = HX_RABBIT_DELIVERY_COMING;
	delivery->is_large = false;
	delivery->returns = 0;
	delivery->raw_size = 0;
	delivery->body_size = 0;
	delivery->size = 0;
	delivery->publication = NULL;
	return delivery;
}

static void destroy(struct hx_rabbit_delivery *delivery)
{
	hx_buf_done(&delivery->bytes);
	hx_buf_done(&delivery->text);
	hx_free(delivery->fields);
	hx_free(delivery);
}

void hx_rabbit_delivery_empty(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	if (source->large == delivery)
		source->large = NULL;
	else
		source->held_bytes -= delivery->bytes.size;
	if (delivery->bytes.capacity > SPARE_BYTES_MAX) {
		hx_buf_done(&delivery->bytes);
		hx_buf_init(&delivery->bytes, SIZE_MAX / 2);
	}
	hx_buf_clear(&delivery->bytes);
}

/* Free the memory of many headers. */
static void drop_fields(struct hx_rabbit_delivery *delivery)
{
	hx_buf_done(&delivery->text);
	hx_buf_init(&delivery->text, (size_t)HEADERS_MAX * NUMBER_SIZE);
	hx_free(delivery->fields);
	delivery->fields = NULL;
	delivery->field_max = 0;
}

void hx_rabbit_delivery_free(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	hx_rabbit_delivery_empty(source, delivery);
	if (source->spare_count >= SPARES_MAX) {
		destroy(delivery);
		return;
	}
	if (delivery->field_max > SPARE_FIELDS_MAX)
		drop_fields(delivery);
	delivery->spare_next = source->spare;
	source->spare = delivery;
	source->spare_count++;
}

void hx_rabbit_delivery_free_spares(struct hx_rabbit_source *source)
{
	while (source->spare != NULL) {
		struct hx_rabbit_delivery *delivery = source->spare;

		source->spare = delivery->spare_next;
		destroy(delivery);
	}
	source->spare_count = 0;
}

/* The same text in the kept copy. */
static struct hapax_bytes kept(
	const struct hx_rabbit_delivery *delivery, amqp_bytes_t raw, amqp_bytes_t text)
{
	size_t offset;

	if (text.len == 0)
		return hx_bytes("", 0);
	offset = (size_t)((const char *)text.bytes - (const char *)raw.bytes);
	assert(offset <= raw.len && text.len <= raw.len - offset);
	return hx_bytes(delivery->bytes.data + offset, text.len);
}

/* Every kind of integer but the largest, which has no sign. */
static int64_t integer_of(const amqp_field_value_t *value)
{
	switch (value->kind) {
	case AMQP_FIELD_KIND_I8: return value->value.i8;
	case AMQP_FIELD_KIND_U8: return value->value.u8;
	case AMQP_FIELD_KIND_I16: return value->value.i16;
	case AMQP_FIELD_KIND_U16: return value->value.u16;
	case AMQP_FIELD_KIND_I32: return value->value.i32;
	case AMQP_FIELD_KIND_U32: return value->value.u32;
	default: return value->value.i64;
	}
}

/* Write a number as text; there is room. */
static struct hapax_bytes written(
	struct hx_rabbit_delivery *delivery, const amqp_field_value_t *value)
{
	char text[NUMBER_SIZE];
	size_t begin = delivery->text.size;
	int size;

	switch (value->kind) {
	case AMQP_FIELD_KIND_BOOLEAN:
		size = snprintf(text, sizeof(text), "%s", value->value.boolean ? "true" : "false");
		break;
	case AMQP_FIELD_KIND_F32:
		size = snprintf(text, sizeof(text), "%.9g", (double)value->value.f32);
		break;
	case AMQP_FIELD_KIND_F64:
		size = snprintf(text, sizeof(text), "%.17g", value->value.f64);
		break;
	case AMQP_FIELD_KIND_U64:
	case AMQP_FIELD_KIND_TIMESTAMP:
		size = snprintf(text, sizeof(text), "%" PRIu64, value->value.u64);
		break;
	default: size = snprintf(text, sizeof(text), "%" PRId64, integer_of(value)); break;
	}
	(void)hx_buf_append(&delivery->text, text, (size_t)size);
	return hx_bytes(delivery->text.data + begin, (size_t)size);
}

#define PROPERTY(name, flag, member)                                                      \
	{                                                                                 \
		name, AMQP_BASIC_##flag##_FLAG, offsetof(amqp_basic_properties_t, member) \
	}

static const struct {
	const char *name;
	amqp_flags_t flag;
	size_t offset; /* of its text */
} rows[] = {
	PROPERTY("content-type", CONTENT_TYPE, content_type),
	PROPERTY("content-encoding", CONTENT_ENCODING, content_encoding),
	PROPERTY("message-id", MESSAGE_ID, message_id),
	/* The type of an event that is not a CloudEvent. */
	PROPERTY("eventType", TYPE, type),
	PROPERTY("correlation-id", CORRELATION_ID, correlation_id),
	PROPERTY("reply-to", REPLY_TO, reply_to),
	PROPERTY("app-id", APP_ID, app_id),
};

_Static_assert(HX_COUNT(rows) <= PROPERTIES, "there is room for all");

/* Before the headers: a property wins over a header of the same name. */
static void add_properties(
	struct hx_rabbit_delivery *delivery, amqp_bytes_t raw,
	const amqp_basic_properties_t *properties)
{
	struct hapax_message *message = &delivery->message_.message;

	for (size_t i = 0; i < HX_COUNT(rows); i++) {
		amqp_bytes_t text;

		if (!(properties->_flags & rows[i].flag))
			continue;
		memcpy(&text, (const char *)properties + rows[i].offset, sizeof(text));
		delivery->fields[message->header_count++] = (struct hapax_field){
			hapax_bytes_from_text(rows[i].name), kept(delivery, raw, text)};
	}
}

static void add_header(
	struct hx_rabbit_delivery *delivery, amqp_bytes_t raw, const amqp_table_entry_t *entry)
{
	struct hapax_message *message = &delivery->message_.message;
	struct hapax_field *field = &delivery->fields[message->header_count];

	switch (entry->value.kind) {
	case AMQP_FIELD_KIND_TABLE:
	case AMQP_FIELD_KIND_ARRAY:
	case AMQP_FIELD_KIND_DECIMAL: return;
	case AMQP_FIELD_KIND_UTF8:
	case AMQP_FIELD_KIND_BYTES:
		field->value = kept(delivery, raw, entry->value.value.bytes);
		break;
	case AMQP_FIELD_KIND_VOID: field->value = hx_bytes("", 0); break;
	default: field->value = written(delivery, &entry->value); break;
	}
	field->name = kept(delivery, raw, entry->key);
	message->header_count++;
}

/* How often a quorum queue got it back; the count is present from the first return. */
static uint64_t returns_of(const amqp_table_entry_t *entry)
{
	static const char name[] = "x-delivery-count";
	const amqp_field_value_t *value = &entry->value;
	int64_t count = 0;

	if (entry->key.len != sizeof(name) - 1 ||
	    memcmp(entry->key.bytes, name, entry->key.len) != 0)
		return 0;
	if (value->kind == AMQP_FIELD_KIND_I64)
		count = value->value.i64;
	else if (value->kind == AMQP_FIELD_KIND_I32)
		count = value->value.i32;
	return count > 0 ? (uint64_t)count : 0;
}

/* Room for count headers and the properties. */
static bool reserve(struct hx_rabbit_delivery *delivery, size_t count)
{
	struct hapax_field *fields;

	hx_buf_clear(&delivery->text);
	if (hx_buf_reserve(&delivery->text, count * NUMBER_SIZE) != HAPAX_OK)
		return false;
	if (PROPERTIES + count <= delivery->field_max)
		return true;
	fields = hx_realloc(delivery->fields, (PROPERTIES + count) * sizeof(*fields));
	if (fields == NULL)
		return false;
	delivery->fields = fields;
	delivery->field_max = PROPERTIES + count;
	return true;
}

bool hx_rabbit_delivery_begin(
	struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery,
	const amqp_frame_t *frame)
{
	const amqp_basic_properties_t *properties = frame->payload.properties.decoded;
	amqp_bytes_t raw = frame->payload.properties.raw;
	struct hapax_message *message = &delivery->message_.message;
	bool has_headers = properties->_flags & AMQP_BASIC_HEADERS_FLAG;
	size_t count = has_headers ? (size_t)properties->headers.num_entries : 0;

	if (count > HEADERS_MAX)
		count = HEADERS_MAX;
	if (!reserve(delivery, count) ||
	    hx_buf_reserve(&delivery->bytes, raw.len + delivery->body_size) != HAPAX_OK)
		return false;
	(void)hx_buf_append(&delivery->bytes, raw.bytes, raw.len);
	delivery->raw_size = raw.len;
	if (source->large != delivery)
		source->held_bytes += raw.len;
	memset(message, 0, sizeof(*message));
	message->headers = delivery->fields;
	add_properties(delivery, raw, properties);
	for (size_t i = 0; i < count; i++) {
		add_header(delivery, raw, &properties->headers.entries[i]);
		delivery->returns += returns_of(&properties->headers.entries[i]);
	}
	message->time_ms = HAPAX_TIME_UNKNOWN;
	if (properties->_flags & AMQP_BASIC_TIMESTAMP_FLAG && properties->timestamp <= time_s_max)
		message->time_ms = (int64_t)properties->timestamp * 1000;
	return true;
}

void hx_rabbit_delivery_finish(struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery)
{
	struct hapax_message *message = &delivery->message_.message;

	message->origin = hapax_bytes_from_text(source->place.origin);
	message->topic = hapax_bytes_from_text(source->place.rabbit.queue);
	message->partition = -1;
	message->flags = (delivery->is_redelivered ? HAPAX_MESSAGE_REDELIVERED : 0) |
		(delivery->is_large ? HAPAX_MESSAGE_TOO_LARGE : 0);
	message->data = hx_bytes(
		delivery->bytes.data + delivery->raw_size,
		delivery->bytes.size - delivery->raw_size);
	delivery->state = HX_RABBIT_DELIVERY_OUT;
}
