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

static void put_field(
	struct hx_resp_words *command, struct hapax_bytes name, struct hapax_bytes value)
{
	size_t size = command->buf->size;

	hx_resp_word(command, name);
	hx_resp_word(command, value);
	assert(command->status != HAPAX_OK || command->buf->size > size + name.size + value.size);
}

/* The command up to the fields. */
static void put_command(
	const struct hx_redis_target *target, const struct hx_outbox_row *row, size_t field_count,
	struct hapax_buf *head, struct hx_resp_words *command)
{
	size_t count = 3u + (target->creates ? 0u : 1u) + (target->length_max > 0 ? 3u : 0u);

	assert(field_count <= HX_OUTBOX_FIELDS_MAX + 2);
	hx_resp_words_begin(command, head, count + 2 * field_count);
	hx_resp_word_text(command, "XADD");
	hx_resp_word(command, hx_redis_entry_stream(target, row));
	if (!target->creates)
		hx_resp_word_text(command, "NOMKSTREAM");
	if (target->length_max > 0) {
		hx_resp_word_text(command, "MAXLEN");
		hx_resp_word_text(command, "~");
		hx_resp_word_integer(command, target->length_max);
	}
	hx_resp_word_text(command, "*");
}

bool hx_redis_entry_write(
	const struct hx_redis_target *target, struct hx_sink *sink, struct hx_outbox_row *row,
	struct hapax_buf *head)
{
	const struct hx_outbox_message *message = &sink->message;
	size_t skipped = HX_OUTBOX_FIELDS_MAX; /* a header that repeats the row's content type */
	struct hx_resp_words command;
	size_t count;

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
	put_command(target, row, count, head, &command);
	for (size_t i = 0; i < message->count; i++)
		if (i != skipped)
			put_field(&command, message->fields[i].name, message->fields[i].value);
	if (row->content_type.size > 0)
		put_field(&command, HX_BYTES_LIT("content-type"), row->content_type);
	hx_resp_word_text(&command, "data");
	if (command.status == HAPAX_OK &&
	    hx_buf_printf(head, "$%zu\r\n", row->payload.size) == HAPAX_OK)
		return true;
	hx_sink_decide(
		row, HX_OUTBOX_REFUSED, "its headers are too long: limit %d bytes",
		HX_REDIS_ENTRY_SIZE_MAX);
	return false;
}
