/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - converts a row to a CloudEvent in binary mode.
 *
 * The attributes and headers of the row become fields of the message. Each binding has its own
 * prefix; Debezium's "id" comes in addition, and so do headers by hx_outbox_message_add().
 *
 * Threads: one at a time.
 */
#ifndef HX_OUTBOX_MESSAGE_H
#define HX_OUTBOX_MESSAGE_H

#include <hapax/key.h>

#include "base/buf.h"
#include "outbox/outbox.h"

enum {
	HX_OUTBOX_ATTRIBUTES_MAX = 9,
	HX_OUTBOX_MORE_MAX = 7, /* RabbitMQ takes 64 fields */
	HX_OUTBOX_FIELDS_MAX =
		HX_OUTBOX_ATTRIBUTES_MAX + HX_OUTBOX_MORE_MAX + HAPAX_OUTBOX_HEADERS_MAX,
};

/* A header of all messages, with the value of a column. */
struct hx_outbox_header {
	char name[32];
	unsigned column; /* in message.c */
};

struct hx_outbox_message {
	char source[HX_OUTBOX_LONG_SIZE_MAX + 1]; /* for rows without one */
	char names[HX_OUTBOX_ATTRIBUTES_MAX][32];
	struct hx_outbox_header more[HX_OUTBOX_MORE_MAX];
	size_t more_count;
	char time[32];
	struct hapax_buf scratch;
	struct hapax_field fields[HX_OUTBOX_FIELDS_MAX];
	size_t count;
};

/* Copies both; cuts a source that is too long. */
void hx_outbox_message_init(
	struct hx_outbox_message *message, const char *prefix, const char *source);
void hx_outbox_message_done(struct hx_outbox_message *message);

/*
 * Add headers to all messages: "eventId=id,aggregateId=ordering_key". INVALID says what is wrong
 * with the text.
 */
enum hapax_status hx_outbox_message_add(
	struct hx_outbox_message *message, const char *headers, struct hapax_error *err);

/* Fill in the fields of row, borrowed until the next call. False: invalid headers in row. */
bool hx_outbox_message_read(struct hx_outbox_message *message, const struct hx_outbox_row *row);

#endif
