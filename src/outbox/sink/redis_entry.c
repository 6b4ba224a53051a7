/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/sink/redis_entry.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "wire/resp/resp.h"

struct hapax_bytes hx_redis_entry_stream(
	const struct hx_redis_target *target, const struct hx_outbox_row *row)
{
	return target->stream[0] == '\0' ? row->topic : hapax_bytes_from_text(target->stream);
}

static bool name_is(struct hapax_bytes name, const char *text)
{
	return name.size == strlen(text) && strncasecmp(name.data, text, name.size) == 0;
}

static enum hapax_status put_field(
	struct hapax_buf *head, struct hapax_bytes name, struct hapax_bytes value)
{
	size_t size = head->size;
	enum hapax_status status = hx_resp_put_bulk(head, name);

	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(head, value);
	assert(status != HAPAX_OK || head->size > size + name.size + value.size);
	return status;
}

/* The command up to the fields. */
static enum hapax_status put_command(
	const struct hx_redis_target *target, const struct hx_outbox_row *row, size_t field_count,
	struct hapax_buf *head)
{
	size_t count = 3u + (target->creates ? 0u : 1u) + (target->length_max > 0 ? 3u : 0u);
	enum hapax_status status = hx_resp_put_array(head, count + 2 * field_count);

	assert(field_count <= HX_OUTBOX_FIELDS_MAX + 2);
	if (status == HAPAX_OK)
		status = hx_resp_put_text(head, "XADD");
	if (status == HAPAX_OK)
		status = hx_resp_put_bulk(head, hx_redis_entry_stream(target, row));
	if (status == HAPAX_OK && !target->creates)
		status = hx_resp_put_text(head, "NOMKSTREAM");
	if (status == HAPAX_OK && target->length_max > 0)
		status = hx_resp_put_text(head, "MAXLEN");
	if (status == HAPAX_OK && target->length_max > 0)
		status = hx_resp_put_text(head, "~");
	if (status == HAPAX_OK && target->length_max > 0)
		status = hx_resp_put_bulk_integer(head, target->length_max);
	return status == HAPAX_OK ? hx_resp_put_text(head, "*") : status;
}

bool hx_redis_entry_write(
	const struct hx_redis_target *target, struct hx_sink *sink, struct hx_outbox_row *row,
	struct hapax_buf *head)
{
	const struct hx_outbox_message *message = &sink->message;
	size_t skipped = HX_OUTBOX_FIELDS_MAX; /* a header that repeats the row's content type */
	size_t count;
	enum hapax_status status;

	hx_buf_clear(head);
	if (!hx_sink_read(sink, row))
		return false;
	for (size_t i = 0; i < message->count; i++) {
		if (name_is(message->fields[i].name, "data")) {
			hx_sink_decide(
				row, HX_OUTBOX_REFUSED,
				"its header 'data' has the name of the payload field");
			return false;
		}
		if (row->content_type.size > 0 && name_is(message->fields[i].name, "content-type"))
			skipped = i;
	}
	count = message->count - (skipped < message->count) + (row->content_type.size > 0) + 1;
	/* The server counts the fields: one more or less would take in the next command. */
	assert(count > message->count - (skipped < message->count));
	assert(skipped >= message->count || row->content_type.size > 0);
	status = put_command(target, row, count, head);
	for (size_t i = 0; i < message->count && status == HAPAX_OK; i++)
		if (i != skipped)
			status = put_field(head, message->fields[i].name, message->fields[i].value);
	if (status == HAPAX_OK && row->content_type.size > 0)
		status = put_field(head, HX_BYTES_LIT("content-type"), row->content_type);
	if (status == HAPAX_OK)
		status = hx_resp_put_text(head, "data");
	if (status == HAPAX_OK)
		status = hx_buf_printf(head, "$%zu\r\n", row->payload.size);
	if (status == HAPAX_OK)
		return true;
	hx_sink_decide(
		row, HX_OUTBOX_REFUSED, "its headers are too long: limit %d bytes",
		HX_REDIS_ENTRY_SIZE_MAX);
	return false;
}
