/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - a row as a CloudEvent in binary mode: its attributes and headers as the fields
 * of a message. Each binding has a prefix of its own; Debezium's "id" stands beside them.
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
	HX_OUTBOX_FIELDS_MAX = HX_OUTBOX_ATTRIBUTES_MAX + HAPAX_OUTBOX_HEADERS_MAX,
};

struct hx_outbox_message {
	char source[HX_OUTBOX_LONG_SIZE_MAX + 1]; /* of rows that have none */
	char names[HX_OUTBOX_ATTRIBUTES_MAX][32];
	char time[32];
	struct hapax_buf scratch;
	struct hapax_field fields[HX_OUTBOX_FIELDS_MAX];
	size_t count;
};

/* Both are copied; what is longer than a source may be is cut. */
void hx_outbox_message_init(
	struct hx_outbox_message *message, const char *prefix, const char *source);
void hx_outbox_message_done(struct hx_outbox_message *message);

/* Fill in the fields of row; they are borrowed until the next call. False: row's headers are none. */
bool hx_outbox_message_read(struct hx_outbox_message *message, const struct hx_outbox_row *row);

#endif
