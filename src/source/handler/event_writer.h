/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_writer.h - writes a message as a CloudEvent over HTTP.
 *
 * A message that is not a CloudEvent becomes one: id is its key (or its place, without a key),
 * source the broker and topic, type its own type or dev.hapax.message. traceparent, tracestate and
 * baggage are passed on from its headers.
 *
 * Threads: one at a time.
 */
#ifndef HX_SOURCE_HANDLER_EVENT_WRITER_H
#define HX_SOURCE_HANDLER_EVENT_WRITER_H

#include "source/consume/in_flight.h"
#include "wire/http1/http1_write.h"

/* Attributes as fields; *ret_body is the data, borrowed from the message. */
enum hapax_status hx_event_writer_binary(
	struct hx_in_flight *in_flight, struct hx_http1_writer *writer,
	struct hapax_bytes *ret_body);

/* Write one JSON object to document; *ret_body is borrowed from it, or from the message. */
enum hapax_status hx_event_writer_structured(
	struct hx_in_flight *in_flight, struct hx_http1_writer *writer, struct hapax_buf *document,
	struct hapax_bytes *ret_body);

#endif
