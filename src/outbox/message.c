/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - converts a row to the fields of a message.
 */
#include "outbox/message.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/macros.h"
#include "wire/http1/http1_text.h"

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

/* The columns that a header may have. */
enum column {
	COLUMN_ID,
	COLUMN_TOPIC,
	COLUMN_ORDERING_KEY,
	COLUMN_TYPE,
	COLUMN_SOURCE,
	COLUMN_SUBJECT,
	COLUMNS,
};

static const char *const columns[COLUMNS] = {
	"id", "topic", "ordering_key", "type", "source", "subject",
};

_Static_assert(
	ATTRIBUTE_DEBEZIUM_ID == HX_COUNT(names) && HX_COUNT(names) < HX_OUTBOX_ATTRIBUTES_MAX,
	"the enum numbers the names, and Debezium's comes last");

void hx_outbox_message_init(
	struct hx_outbox_message *message, const char *prefix, const char *source)
{
	(void)snprintf(message->source, sizeof(message->source), "%s", source);
	message->count = 0;
	message->more_count = 0;
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

/* Field names are case-insensitive, and some belong to a protocol. */
static bool is_reserved(const struct hx_outbox_message *message, const char *name)
{
	static const char *const others[] = {
		"host",       "content-length",    "content-type",
		"connection", "transfer-encoding", "expect",
		"te",         "upgrade",           "keep-alive",
		"data",
	};

	for (size_t i = 0; i <= ATTRIBUTE_DEBEZIUM_ID; i++)
		if (strcasecmp(name, message->names[i]) == 0)
			return true;
	for (size_t i = 0; i < HX_COUNT(others); i++)
		if (strcasecmp(name, others[i]) == 0)
			return true;
	for (size_t i = 0; i < message->more_count; i++)
		if (strcasecmp(name, message->more[i].name) == 0)
			return true;
	return false;
}

/* One NAME=COLUMN of size bytes. */
static enum hapax_status add_header(
	struct hx_outbox_message *message, const char *text, size_t size, struct hapax_error *err)
{
	struct hx_outbox_header *header = &message->more[message->more_count];
	const char *equals = memchr(text, '=', size);
	size_t name_size = equals == NULL ? size : (size_t)(equals - text);
	struct hapax_bytes column;

	if (equals == NULL || name_size >= sizeof(header->name) ||
	    !hx_http1_is_token((struct hapax_bytes){text, name_size}))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"header '%.*s' is not NAME=COLUMN with a name of 1 to %zu letters",
			(int)(size < 60 ? size : 60), text, sizeof(header->name) - 1);
	if (message->more_count == HX_OUTBOX_MORE_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a relay adds at most %d headers",
			HX_OUTBOX_MORE_MAX);
	(void)snprintf(header->name, sizeof(header->name), "%.*s", (int)name_size, text);
	if (is_reserved(message, header->name))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"header '%s' is reserved, or given twice; use another name", header->name);
	column = (struct hapax_bytes){equals + 1, size - name_size - 1};
	for (header->column = 0; header->column < COLUMNS; header->column++)
		if (hx_bytes_equal(column, hapax_bytes_from_text(columns[header->column])))
			break;
	if (header->column == COLUMNS)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"header '%s' has no known column; use id, topic, ordering_key, type, "
			"source or subject",
			header->name);
	message->more_count++;
	return HAPAX_OK;
}

enum hapax_status hx_outbox_message_add(
	struct hx_outbox_message *message, const char *headers, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	while (*headers != '\0' && status == HAPAX_OK) {
		size_t size = strcspn(headers, ",");

		status = add_header(message, headers, size, err);
		headers += size;
		headers += strspn(headers, ", ");
	}
	assert(message->more_count <= HX_OUTBOX_MORE_MAX);
	return status;
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

/* The headers of all messages. A column without a value gives none. */
static void put_more(struct hx_outbox_message *message, const struct hapax_bytes values[COLUMNS])
{
	for (size_t i = 0; i < message->more_count; i++) {
		const struct hx_outbox_header *header = &message->more[i];

		assert(header->column < COLUMNS);
		if (values[header->column].size > 0)
			message->fields[message->count++] = (struct hapax_field){
				hapax_bytes_from_text(header->name), values[header->column]};
	}
}

bool hx_outbox_message_read(struct hx_outbox_message *message, const struct hx_outbox_row *row)
{
	const struct hapax_bytes values[COLUMNS] = {
		[COLUMN_ID] = row->id,
		[COLUMN_TOPIC] = row->topic,
		[COLUMN_ORDERING_KEY] = row->ordering_key,
		[COLUMN_TYPE] = row->type.size > 0 ? row->type : row->topic,
		[COLUMN_SOURCE] =
			row->source.size > 0 ? row->source : hapax_bytes_from_text(message->source),
		[COLUMN_SUBJECT] = row->subject,
	};
	struct hapax_field headers[HAPAX_OUTBOX_HEADERS_MAX];
	size_t own;
	int count;

	message->count = 0;
	put(message, ATTRIBUTE_SPECVERSION, hapax_bytes_from_text("1.0"));
	put(message, ATTRIBUTE_ID, row->id);
	put(message, ATTRIBUTE_SOURCE, values[COLUMN_SOURCE]);
	put(message, ATTRIBUTE_TYPE, values[COLUMN_TYPE]);
	hx_clock_format_utc(row->created_ms, message->time);
	put(message, ATTRIBUTE_TIME, hapax_bytes_from_text(message->time));
	put(message, ATTRIBUTE_SUBJECT, row->subject);
	put(message, ATTRIBUTE_PARTITIONKEY, row->ordering_key);
	put(message, ATTRIBUTE_DEBEZIUM_ID, row->id);
	assert(message->count <= HX_OUTBOX_ATTRIBUTES_MAX);
	put_more(message, values);
	own = message->count;
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
