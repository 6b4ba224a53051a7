/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - converts a row to the fields of a message.
 */
#include "outbox/message.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/macros.h"

/* In the order of output. The last one has no prefix: it is Debezium's. */
enum attribute {
	ATTRIBUTE_SPECVERSION,
	ATTRIBUTE_ID,
	ATTRIBUTE_SOURCE,
	ATTRIBUTE_TYPE,
	ATTRIBUTE_TIME,
	ATTRIBUTE_SUBJECT,
	ATTRIBUTE_PARTITIONKEY,
	ATTRIBUTE_DEBEZIUM_ID,
};

static const char *const names[] = {
	"specversion", "id", "source", "type", "time", "subject", "partitionkey",
};

_Static_assert(
	ATTRIBUTE_DEBEZIUM_ID == HX_COUNT(names) && HX_COUNT(names) < HX_OUTBOX_ATTRIBUTES_MAX,
	"the enum numbers the names, and Debezium's comes last");

void hx_outbox_message_init(
	struct hx_outbox_message *message, const char *prefix, const char *source)
{
	(void)snprintf(message->source, sizeof(message->source), "%s", source);
	message->count = 0;
	for (size_t i = 0; i < HX_COUNT(names); i++) {
		assert(strlen(prefix) + strlen(names[i]) < sizeof(message->names[i]));
		(void)snprintf(
			message->names[i], sizeof(message->names[i]), "%s%s", prefix, names[i]);
	}
	(void)snprintf(message->names[ATTRIBUTE_DEBEZIUM_ID], sizeof(message->names[0]), "id");
	hx_buf_init(&message->scratch, HX_OUTBOX_HEADERS_SIZE_MAX * 2);
}

void hx_outbox_message_done(struct hx_outbox_message *message)
{
	assert(message->count <= HX_OUTBOX_FIELDS_MAX);
	hx_buf_done(&message->scratch);
}

static void put(
	struct hx_outbox_message *message, enum attribute attribute, struct hapax_bytes value)
{
	assert(attribute <= ATTRIBUTE_DEBEZIUM_ID);
	/* Attributes come in the order of their enum, each once. */
	assert(message->count <= (size_t)attribute);
	if (value.size > 0)
		message->fields[message->count++] = (struct hapax_field){
			hapax_bytes_from_text(message->names[attribute]), value};
}

/* Field names are case-insensitive. */
static bool is_taken(const struct hx_outbox_message *message, size_t count, struct hapax_bytes name)
{
	assert(count <= message->count);
	for (size_t i = 0; i < count; i++)
		if (message->fields[i].name.size == name.size &&
		    strncasecmp(message->fields[i].name.data, name.data, name.size) == 0)
			return true;
	return false;
}

bool hx_outbox_message_read(struct hx_outbox_message *message, const struct hx_outbox_row *row)
{
	struct hapax_field headers[HAPAX_OUTBOX_HEADERS_MAX];
	size_t own;
	int count;

	message->count = 0;
	put(message, ATTRIBUTE_SPECVERSION, hapax_bytes_from_text("1.0"));
	put(message, ATTRIBUTE_ID, row->id);
	put(message, ATTRIBUTE_SOURCE,
	    row->source.size > 0 ? row->source : hapax_bytes_from_text(message->source));
	put(message, ATTRIBUTE_TYPE, row->type.size > 0 ? row->type : row->topic);
	hx_clock_format_utc(row->created_ms, message->time);
	put(message, ATTRIBUTE_TIME, hapax_bytes_from_text(message->time));
	put(message, ATTRIBUTE_SUBJECT, row->subject);
	put(message, ATTRIBUTE_PARTITIONKEY, row->ordering_key);
	put(message, ATTRIBUTE_DEBEZIUM_ID, row->id);
	own = message->count;
	assert(own <= HX_OUTBOX_ATTRIBUTES_MAX);
	assert(strlen(message->time) < sizeof(message->time));
	hx_buf_clear(&message->scratch);
	count = hx_outbox_headers_read(
		row->headers, &message->scratch, headers, HAPAX_OUTBOX_HEADERS_MAX);
	if (count < 0)
		return false;
	/* The row decides the attributes; a header cannot override them. */
	for (int i = 0; i < count; i++)
		if (!is_taken(message, own, headers[i].name))
			message->fields[message->count++] = headers[i];
	assert(message->count >= own);
	assert(message->count <= own + (size_t)count);
	assert(message->count <= HX_OUTBOX_FIELDS_MAX);
	return true;
}
