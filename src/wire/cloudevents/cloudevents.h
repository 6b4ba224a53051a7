/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloudevents.h - CloudEvents 1.0.2 as they come by HTTP: binary, structured, batched.
 *
 * One event has the same attributes and data in each form, so that it has one key and
 * one fingerprint: values are decoded, and data is the payload itself. What decides the
 * key must have one reading, so attributes that occur twice are refused, in headers and
 * in JSON alike, as is ce-datacontenttype beside Content-Type.
 *
 * Not refused, although the specification would have it: a source or dataschema that is
 * not a URI. Nothing depends on it, and the event would be lost.
 *
 * Memory: attributes and data point into the message, or into scratch where they had to
 * be decoded; both stay as they are while the event is used. scratch is emptied first.
 *
 * Failures: INVALID deserves 400, UNSUPPORTED 415, LIMIT 413, NO_MEMORY 503. Messages
 * name the field, or line and column.
 *
 * Threads: one at a time.
 */
#ifndef HX_CLOUDEVENTS_H
#define HX_CLOUDEVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>

#include "wire/json/json.h"

enum {
	/* Eight are defined; senders add a handful. */
	HX_CLOUDEVENT_ATTRIBUTES_MAX = 64,

	/* The specification says 20 and leaves room for more. */
	HX_CLOUDEVENT_NAME_MAX = 64,

	/* A batch is answered as a whole, so its events wait for each other. */
	HX_CLOUDEVENTS_BATCH_MAX = 1000,
};

enum hx_cloudevents_mode {
	HX_CLOUDEVENTS_BINARY,     /* attributes in fields, data in the body */
	HX_CLOUDEVENTS_STRUCTURED, /* one JSON object */
	HX_CLOUDEVENTS_BATCHED,    /* a JSON array of them */
};

struct hx_cloudevent {
	/* data of an optional attribute is NULL if it is absent. */
	struct hapax_bytes id;
	struct hapax_bytes source;
	struct hapax_bytes type;
	struct hapax_bytes subject;
	struct hapax_bytes dataschema;
	struct hapax_bytes datacontenttype;
	int64_t time_ms; /* HAPAX_TIME_UNKNOWN: it has none */

	/* Base64 and JSON strings that carry other types are decoded. Empty: there is none. */
	struct hapax_bytes data;
	enum hapax_data_kind data_kind;

	struct hapax_bytes text; /* the JSON object as it came; empty in binary mode */

	/* All of them by name, those above and specversion too. */
	size_t attribute_count;
	struct hapax_field attributes[HX_CLOUDEVENT_ATTRIBUTES_MAX];
};

/*
 * How a message with this Content-Type carries events. UNSUPPORTED: in a format or a
 * charset that is not read here.
 */
enum hapax_status hx_cloudevents_detect(
	struct hapax_bytes content_type, enum hx_cloudevents_mode *ret, struct hapax_error *err);

/*
 * Read an event from the fields of a message; those that do not begin with "ce-" are
 * passed over. Without Content-Type its data is NULL.
 */
enum hapax_status hx_cloudevent_read_binary(
	struct hx_cloudevent *event, const struct hapax_field *fields, size_t count,
	struct hapax_bytes content_type, struct hapax_bytes body, struct hapax_buf *scratch,
	struct hapax_error *err);

/* Read the event that text is. */
enum hapax_status hx_cloudevent_read_structured(
	struct hx_cloudevent *event, struct hapax_bytes text, struct hapax_buf *scratch,
	struct hapax_error *err);

/* Private. */
struct hx_cloudevents_batch {
	struct hx_json json;
	struct hapax_bytes text;
	struct hapax_buf *scratch;
	size_t count;             /* how many events there are */
	size_t next;              /* the index of the next one */
	enum hapax_status status; /* of the last that was read: OK, or NO_MEMORY */
};

/*
 * Check a whole batch, event by event, and count them: an error in the last one is reported before
 * the first one runs. Messages begin with "event N, ", from 0.
 */
enum hapax_status hx_cloudevents_batch_init(
	struct hx_cloudevents_batch *batch, struct hapax_bytes text, size_t count_max,
	struct hapax_buf *scratch, struct hapax_error *err);

/*
 * The next event; false after the last, or if memory is short (see status): then no more events
 * follow. The scratch bytes of the previous event are gone.
 */
bool hx_cloudevents_batch_next(struct hx_cloudevents_batch *batch, struct hx_cloudevent *event);

/* The event as a key strategy wants it, together with the fields of the message. */
struct hapax_event hx_cloudevent_view(
	const struct hx_cloudevent *event, const struct hapax_field *fields, size_t field_count);

/* Append a value as it must stand in a field: percent-encoded (HTTP binding 3.1.3.2). */
enum hapax_status hx_cloudevent_encode(struct hapax_buf *out, struct hapax_bytes value);

#endif
