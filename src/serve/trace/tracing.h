/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracing.h - a delivery as spans: what it notes on its way, and what it passes on.
 *
 * Without traces.endpoint nothing of it is done: traceparent goes to the upstream as every
 * other field does. With it a span of the call stands there in place of the sender's.
 *
 * The context of a run is kept with its result, as a field Hapax-Traceparent before all
 * others of a response, so that whoever is given that result can tell whose it is. It is
 * for hapax alone: hx_tracing_public() takes it off again.
 *
 * Threads: the loop's.
 */
#ifndef HX_SERVE_TRACE_TRACING_H
#define HX_SERVE_TRACE_TRACING_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/processor.h>

#include "observe/trace.h"
#include "wire/http1/http1.h"
#include "wire/http1/http1_write.h"

struct hx_delivery;

/* Of one event. Times are hx_clock_mono_ns(); 0: not yet. */
struct hx_tracing {
	bool is_on;      /* from begin to end, where there is a collector */
	bool is_sampled; /* else only the context is passed on */
	bool has_parent;
	bool has_original;
	bool drops_state;                     /* tracestate is none, or of another trace */
	const char *name;                     /* of the span around the others */
	char method[HX_HTTP1_METHOD_MAX + 1]; /* of the request */
	struct hx_trace_context context;
	unsigned char parent_id[HX_SPAN_ID_SIZE];
	unsigned char check_id[HX_SPAN_ID_SIZE];
	unsigned char call_id[HX_SPAN_ID_SIZE];
	struct hx_trace_context original;
	int64_t decided_ns;
	int64_t sent_ns;
	int64_t answered_ns;
	const char *decision;
	const char *check_error;
	const char *call_error;
	uint64_t token;
	uint32_t attempt;
	unsigned upstream_status;
};

/* What is called so is about to be claimed: whose trace is it, and is it sampled? */
void hx_tracing_begin(struct hx_delivery *delivery, const char *name);

/* The store has said what becomes of it. */
void hx_tracing_decided(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* Whether a field of the request is written by hx_tracing_write() instead. */
bool hx_tracing_replaces(const struct hx_delivery *delivery, struct hapax_bytes name);

/* The call begins: traceparent and tracestate, if the delivery is traced. */
void hx_tracing_write(struct hx_delivery *delivery, struct hx_http1_writer *writer);

/* The call has ended. */
void hx_tracing_called(struct hx_delivery *delivery);

/* Begin the fields of a response that are kept with the context of this run. */
void hx_tracing_keep(const struct hx_delivery *delivery, struct hapax_buf *fields);

/* Of fields that were kept those that are for others. */
struct hapax_bytes hx_tracing_public(struct hapax_bytes fields);

/* For logs: which trace and which span, in digits; empty: it is not kept anywhere. */
struct hx_tracing_text {
	char trace_id[2 * HX_TRACE_ID_SIZE];
	char span_id[2 * HX_SPAN_ID_SIZE];
	size_t trace_id_size;
	size_t span_id_size;
};
void hx_tracing_text(const struct hx_delivery *delivery, struct hx_tracing_text *ret);

/* It is answered with status; 0: it is one of a batch. */
void hx_tracing_end(struct hx_delivery *delivery, unsigned status);

#endif
