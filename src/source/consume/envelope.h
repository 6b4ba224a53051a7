/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envelope.h - a broker's message, read as an event.
 *
 * A CloudEvent is known by its content type (structured) or by headers with one of the
 * prefixes of the bindings: "ce_" (Kafka), "ce-" (NATS, Knative's RabbitMQ), "cloudEvents:"
 * and "cloudEvents_" (AMQP). Header values are plain text there, not percent-encoded as in
 * HTTP. Anything else is an event without attributes: data, headers, and where it came
 * from. Its data counts as JSON if the content type says so or, without one, if it begins
 * like an object or array: that is how most producers send it.
 *
 * Memory: the envelope points into the message and into its own text; both stay as they
 * are while it is used.
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
	/* More than any producer sets; what is beyond is not read. */
	HX_ENVELOPE_HEADERS_MAX = 128,

	/* What of a message had to be decoded; a message is not larger. */
	HX_ENVELOPE_TEXT_MAX = 64 * 1024 * 1024,

	HX_ENVELOPE_META = 6,
};

/* What every message needs comes first, and is 500 bytes: thousands of them are in hand. */
struct hx_envelope {
	bool is_cloudevent;
	struct hapax_event event;        /* as a key strategy wants it */
	struct hapax_bytes content_type; /* of the data; data NULL: not known */
	struct hapax_bytes type;         /* of the event; empty: it has none */
	size_t field_count;
	struct hapax_field meta[HX_ENVELOPE_META];
	char partition[HX_DECIMAL_SIZE]; /* empty: there is none */
	char time[HX_DECIMAL_SIZE];
	struct hapax_buf values; /* header values, percent-encoded for the reader of events */
	struct hapax_buf text;   /* what that decoded */
	struct hapax_field fields[HX_ENVELOPE_HEADERS_MAX]; /* ce- in place of other prefixes */
	struct hx_cloudevent cloudevent;                    /* when it is one */
};

/* Allocates nothing. */
void hx_envelope_init(struct hx_envelope *envelope);
void hx_envelope_done(struct hx_envelope *envelope);

/*
 * Read message. INVALID: its headers or its JSON are not those of the CloudEvent that it
 * says it is. UNSUPPORTED: a format or charset that is not read. LIMIT: too large.
 */
enum hapax_status hx_envelope_read(
	struct hx_envelope *envelope, const struct hapax_message *message, struct hapax_error *err);

/* A header by name, in either case; data NULL: there is none. */
struct hapax_bytes hx_envelope_header(const struct hx_envelope *envelope, const char *name);

/* The attribute's name behind a prefix of a binding; size 0: it is no attribute. */
struct hapax_bytes hx_envelope_attribute(struct hapax_bytes header_name);

#endif
