/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - checks an event before it becomes a row; writes and reads its headers as JSON.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "outbox/outbox.h"
#include "wire/json/json.h"
#include "wire/json/json_string.h"
#include "wire/json/json_write.h"

static enum hapax_status check_text(
	const char *name, struct hapax_bytes text, size_t size_max, struct hapax_error *err)
{
	if (text.size > size_max)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the %s of the event is too long: %zu bytes, limit %zu", name, text.size,
			size_max);
	if (text.size > 0 &&
	    (memchr(text.data, '\0', text.size) != NULL || !hx_utf8_is_valid(text)))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the %s of the event is not UTF-8", name);
	return HAPAX_OK;
}

enum hapax_status hx_outbox_event_check(
	const struct hapax_outbox_event *event, struct hapax_error *err)
{
	const struct {
		const char *name;
		struct hapax_bytes text;
		size_t size_max;
	} texts[] = {
		{"topic", event->topic, HX_OUTBOX_TEXT_SIZE_MAX},
		{"id", event->id, HX_OUTBOX_TEXT_SIZE_MAX},
		{"type", event->type, HX_OUTBOX_TEXT_SIZE_MAX},
		{"content type", event->content_type, HX_OUTBOX_TEXT_SIZE_MAX},
		{"ordering key", event->ordering_key, HX_OUTBOX_LONG_SIZE_MAX},
		{"source", event->source, HX_OUTBOX_LONG_SIZE_MAX},
		{"subject", event->subject, HX_OUTBOX_LONG_SIZE_MAX},
	};

	if (event->topic.size == 0)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "an event needs a topic");
	for (size_t i = 0; i < HX_COUNT(texts); i++) {
		enum hapax_status status =
			check_text(texts[i].name, texts[i].text, texts[i].size_max, err);

		if (status != HAPAX_OK)
			return status;
	}
	if (event->payload.size > HX_OUTBOX_PAYLOAD_SIZE_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the payload is too large: %zu bytes, limit %d; store it elsewhere, and "
			"send a reference",
			event->payload.size, HX_OUTBOX_PAYLOAD_SIZE_MAX);
	if (event->header_count > HAPAX_OUTBOX_HEADERS_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the event has too many headers: %zu, limit %d",
			event->header_count, HAPAX_OUTBOX_HEADERS_MAX);
	return HAPAX_OK;
}

const char *hx_outbox_row_fault(const struct hx_outbox_row *row)
{
	if (row->topic.size == 0 || row->topic.size > HX_OUTBOX_TEXT_SIZE_MAX)
		return "its topic must be 1 to 255 bytes long";
	if (row->id.size == 0 || row->id.size > HX_OUTBOX_TEXT_SIZE_MAX)
		return "its id must be 1 to 255 bytes long";
	if (row->type.size > HX_OUTBOX_TEXT_SIZE_MAX ||
	    row->content_type.size > HX_OUTBOX_TEXT_SIZE_MAX)
		return "its type and content type must be at most 255 bytes long";
	if (row->ordering_key.size > HX_OUTBOX_LONG_SIZE_MAX ||
	    row->source.size > HX_OUTBOX_LONG_SIZE_MAX ||
	    row->subject.size > HX_OUTBOX_LONG_SIZE_MAX)
		return "its ordering key, source and subject must be at most 1,024 bytes long";
	if (row->payload.data == NULL || row->payload.size > HX_OUTBOX_PAYLOAD_SIZE_MAX)
		return "its payload is larger than 16 MiB; store it elsewhere, and send a reference";
	return NULL;
}

_Static_assert(
	HX_OUTBOX_TEXT_SIZE_MAX == 255 && HX_OUTBOX_LONG_SIZE_MAX == 1024 &&
		HX_OUTBOX_PAYLOAD_SIZE_MAX == 16 << 20,
	"they stand in these messages");

enum hapax_status hx_outbox_headers_write(
	const struct hapax_outbox_event *event, struct hapax_buf *buf, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	size_t plain = 1; /* bytes that are written if nothing is escaped */

	assert(event->header_count <= HAPAX_OUTBOX_HEADERS_MAX);
	hx_buf_clear(buf);
	for (size_t i = 0; i < event->header_count && status == HAPAX_OK; i++) {
		const struct hapax_field *header = &event->headers[i];

		status = check_text("header", header->name, HX_OUTBOX_TEXT_SIZE_MAX, err);
		if (status == HAPAX_OK)
			status = check_text(
				"header", header->value, HX_OUTBOX_HEADERS_SIZE_MAX, err);
		if (status != HAPAX_OK)
			return status;
		if (header->name.size == 0)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "a header of the event has no name");
		status = hx_buf_append_byte(buf, i == 0 ? '{' : ',');
		if (status == HAPAX_OK)
			status = hx_json_write_string(buf, header->name);
		if (status == HAPAX_OK)
			status = hx_buf_append_byte(buf, ':');
		if (status == HAPAX_OK)
			status = hx_json_write_string(buf, header->value);
		plain += sizeof("{\"\":\"\"") - 1 + header->name.size + header->value.size;
	}
	if (status == HAPAX_OK && event->header_count > 0)
		status = hx_buf_append_byte(buf, '}');
	if (status == HAPAX_OK) {
		assert((buf->size == 0) == (event->header_count == 0));
		assert(buf->size == 0 || buf->size >= plain);
		assert(buf->size == 0 || buf->data[buf->size - 1] == '}');
		return HAPAX_OK;
	}
	return hx_error_set(
		err, status == HAPAX_ERR_LIMIT ? HAPAX_ERR_INVALID : status, 0,
		"the headers of the event are too long: limit %d bytes in total",
		HX_OUTBOX_HEADERS_SIZE_MAX);
}

/* The value of a string in json. False: no room. */
static bool read_text(
	struct hapax_bytes json, uint32_t offset, uint32_t size, bool is_escaped,
	struct hapax_buf *scratch, struct hapax_bytes *ret)
{
	const unsigned char *data = (const unsigned char *)json.data + offset;
	struct hx_json_string string = {data, size, is_escaped};

	/* The reader of JSON points into the text. */
	assert(offset <= json.size);
	assert(size <= json.size - offset);
	*ret = (struct hapax_bytes){data, size};
	if (!is_escaped)
		return true;
	/* Decoding never makes it longer. scratch does not grow, so earlier values stay valid. */
	if (scratch->capacity - scratch->size < size)
		return false;
	ret->data = scratch->data + scratch->size;
	ret->size = hx_json_string_value(string, scratch->data + scratch->size);
	scratch->size += ret->size;
	assert(ret->size <= size);
	assert(scratch->size <= scratch->capacity);
	return true;
}

int hx_outbox_headers_read(
	struct hapax_bytes text, struct hapax_buf *scratch, struct hapax_field *ret_fields,
	size_t count_max)
{
	struct hx_json json;
	struct hx_json_token token;
	size_t count = 0;

	if (text.size == 0)
		return 0;
	if (hx_buf_reserve(scratch, text.size) != HAPAX_OK ||
	    hx_json_init(&json, text, NULL, 0, NULL) != HAPAX_OK ||
	    hx_json_next(&json, &token, NULL) != HAPAX_OK || token.type != HX_JSON_OBJECT)
		return -1;
	for (;;) {
		if (hx_json_next(&json, &token, NULL) != HAPAX_OK)
			return -1;
		if (token.type == HX_JSON_OBJECT_END)
			break;
		if (count == count_max || token.type == HX_JSON_OBJECT ||
		    token.type == HX_JSON_ARRAY || token.type == HX_JSON_NULL)
			return -1;
		if (!read_text(
			    text, token.name, token.name_size, token.name_escaped, scratch,
			    &ret_fields[count].name) ||
		    !read_text(
			    text, token.text, token.size,
			    token.type == HX_JSON_STRING && token.escaped, scratch,
			    &ret_fields[count].value))
			return -1;
		count++;
	}
	assert(count <= count_max);
	return hx_json_next(&json, &token, NULL) == HAPAX_OK && token.type == HX_JSON_END
		? (int)count
		: -1;
}
