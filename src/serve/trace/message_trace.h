/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message_trace.h - records the messages of a consumer as spans, and passes their context on.
 *
 * A run is one event of observe/trace.h, from its claim to its end; each attempt is its own. It is a
 * child of the span that the header traceparent of its message names. Its handler gets the context
 * of the call, a command that of the run. A duplicate has a link to the run.
 *
 * Threads: the consumer's.
 */
#ifndef HX_SERVE_TRACE_MESSAGE_TRACE_H
#define HX_SERVE_TRACE_MESSAGE_TRACE_H

#include <hapax/source.h>

#include "base/random.h"
#include "net/address.h"

struct hx_exporter;

struct hx_message_trace {
	struct hx_exporter *exporter; /* NULL: off */
	uint64_t sample_billionths;
	struct hx_prng prng;
	const char *consumer;
	bool has_call; /* the handler is a service, at endpoint */
	struct hx_endpoint endpoint;
};

/* to: the URL of the service; "": the handler is a command. consumer is borrowed. */
void hx_message_trace_init(
	struct hx_message_trace *trace, struct hx_exporter *exporter, const char *consumer,
	const char *to, uint64_t sample_billionths);

/* A run begins. Returns whether it is traced, as hapax_consumer_trace_fn. */
int hx_message_trace_begin(
	struct hx_message_trace *trace, struct hapax_bytes traceparent,
	struct hapax_trace *ret_trace);

/* The store has decided, or a run has ended: DUPLICATE, DECIDED, ENDED. */
void hx_message_trace_tell(
	struct hx_message_trace *trace, const struct hapax_consumer_event *event);

#endif
