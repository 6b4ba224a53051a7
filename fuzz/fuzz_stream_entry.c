/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: entries of a Redis stream as messages (src/source/redis/stream_entry.c), and messages of
 * any broker as events (src/source/consume/envelope.c), with their names and values as headers.
 *
 * The input is an entry as a server sends it: its id, then an array of names and values, of any
 * type. Each header and the data lie in the entry; what becomes of it is an event, or refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "source/consume/envelope.h"
#include "source/redis/redis_private.h"
#include "wire/resp/resp_reply.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { MESSAGE_SIZE_MAX = 1 << 20 };

static void must(int condition)
{
	if (!condition)
		abort();
}

/* Every byte is read: a sanitizer sees one that is not there. */
static volatile unsigned sum;

static void touch(struct hapax_bytes bytes)
{
	const unsigned char *at = bytes.data;

	for (size_t i = 0; i < bytes.size; i++)
		sum += at[i];
}

static void read_envelope(const struct hapax_message *message)
{
	static struct hx_envelope envelope;
	struct hapax_error err = {0};
	struct hapax_cause cause;
	enum hapax_status status;

	hx_envelope_init(&envelope);
	status = hx_envelope_read(&envelope, message, &err);
	must((status == HAPAX_OK) == (err.message[0] == '\0'));
	if (status == HAPAX_OK) {
		cause = hx_envelope_cause(&envelope, message->place);
		touch(cause.id);
		touch(cause.source);
		touch(cause.type);
		touch(envelope.event.data);
		for (size_t i = 0; i < envelope.field_count; i++)
			touch(envelope.fields[i].value);
	}
	hx_envelope_done(&envelope);
}

/* As the reader takes one entry from a reply. */
static void read_entry(struct hx_redis_source *source, struct hapax_bytes rest)
{
	struct hx_redis_entry *entry;
	struct hx_resp_value value;
	struct hapax_bytes id;

	if (!hx_resp_next(&rest, &value) || value.type != HX_RESP_ARRAY || value.integer != 2 ||
	    !hx_resp_next(&rest, &value) || !hx_resp_text(&value, &id) ||
	    !hx_resp_next(&rest, &value) || value.type != HX_RESP_ARRAY || value.integer < 0)
		return;
	entry = hx_redis_entry_take(source);
	must(entry != NULL);
	if (hx_redis_entry_read(source, entry, id, &rest, value.integer)) {
		const struct hapax_message *message = &entry->message_.message;

		touch(message->data);
		for (size_t i = 0; i < message->header_count; i++) {
			touch(message->headers[i].name);
			touch(message->headers[i].value);
		}
		read_envelope(message);
	}
	hx_redis_entry_free(source, entry);
	hx_redis_entry_free_spares(source);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct hx_redis_source source;
	struct hx_resp_scan scan = {0};

	if (size == 0 ||
	    hx_resp_scan(&scan, hx_bytes(data, size), MESSAGE_SIZE_MAX) != HX_RESP_DONE)
		return 0;
	read_entry(&source, hx_bytes(data, scan.size));
	return 0;
}
