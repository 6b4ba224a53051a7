/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envelope.h - reads a broker's message as an event.
 *
 * A CloudEvent has its content type (structured), is one JSON object with specversion, id, source and
 * type (some producers omit the content type), or has headers with a prefix of one of the bindings:
 * "ce_" (Kafka), "ce-" (NATS, Knative's RabbitMQ), "cloudEvents:" and "cloudEvents_" (AMQP). Header
 * values are plain text there, not percent-encoded as in HTTP. Any other message is an event
 * without attributes: data, headers, and its place. Its data is JSON if the content type says so.
 * Without a content type, it is JSON if it begins like an object or array: most producers send it
 * so.
 *
 * Memory: the envelope points into the message and into its own text; both must stay unchanged
 * while it is used.
 *
 * Threads: one at a time.
 */
#ifndef HX_SOURCE_CONSUME_ENVELOPE_H
#define HX_SOURCE_CONSUME_ENVELOPE_H

#include <stdbool.h>

#include <hapax/ext/source_ops.h>

#include "base/buf.h"
#include "base/decimal.h"
#include "wire/cloudevents/cloudevents.h"

enum {
	/* More than any producer sets; further headers are ignored. */
	HX_ENVELOPE_HEADERS_MAX = 128,

	/* Decoded text; a message is not larger. */
	HX_ENVELOPE_TEXT_MAX = 64 * 1024 * 1024,

	HX_ENVELOPE_META = 6,
};

/* The fields that every message needs come first, in 500 bytes: thousands are in flight. */
struct hx_envelope {
	bool is_cloudevent;
	struct hapax_event event;        /* input of key strategies */
	struct hapax_bytes content_type; /* of the data; data NULL: unknown */
	struct hapax_bytes type;         /* of the event; empty: none */
	size_t field_count;
	struct hapax_field meta[HX_ENVELOPE_META];
	char partition[HX_DECIMAL_SIZE]; /* empty: none */
	char time[HX_DECIMAL_SIZE];
	struct hapax_buf values; /* header values, percent-encoded for the event reader */
	struct hapax_buf text;   /* its decoded text */
	struct hapax_field fields[HX_ENVELOPE_HEADERS_MAX]; /* ce- in place of other prefixes */
	struct hx_cloudevent cloudevent;                    /* if is_cloudevent */
};

/* Allocates nothing. */
void hx_envelope_init(struct hx_envelope *envelope);
void hx_envelope_done(struct hx_envelope *envelope);

/*
 * Read message. INVALID: its headers or JSON are not a valid CloudEvent, although it claims to be
 * one. UNSUPPORTED: unknown format or charset. LIMIT: too large.
 */
enum hapax_status hx_envelope_read(
	struct hx_envelope *envelope, const struct hapax_message *message, struct hapax_error *err);

/*
 * Its attributes as an event, for reports and the record: those of the CloudEvent, or the message's
 * own id header, type and time. place: the message's, its id if it has no other; may be empty.
 */
struct hapax_cause hx_envelope_cause(const struct hx_envelope *envelope, struct hapax_bytes place);

/* A header by name, case-insensitive; data NULL: none. */
struct hapax_bytes hx_envelope_header(const struct hx_envelope *envelope, const char *name);

/* The attribute's name after a binding's prefix; size 0: not an attribute. */
struct hapax_bytes hx_envelope_attribute(struct hapax_bytes header_name);

#endif
