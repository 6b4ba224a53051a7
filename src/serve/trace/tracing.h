/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracing.h - records a delivery as spans, and passes its context on.
 *
 * Without traces.endpoint tracing is off: traceparent goes to the upstream like every other field.
 * With it, a span of the call replaces the sender's.
 *
 * The context of a run is stored with its result, as a field Hapax-Traceparent before all others of
 * a response, so that a replay can be linked to its run. Only hapax reads it: hx_tracing_public()
 * removes it.
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
struct hx_exporter;
struct hx_prng;

/* For one event. */
struct hx_tracing {
	bool is_on;                /* from begin to end, if there is a collector */
	bool is_sampled;           /* false: only the context is passed on */
	bool drops_state;          /* tracestate is absent, or of another trace */
	struct hx_trace_note note; /* so far; until the end, its times are hx_clock_mono_ns() */
};

/* For tracing.c and message_trace.c. Draws the ids, unless it has a parent. Returns: it is sampled. */
bool hx_tracing_draw(struct hx_trace_note *note, struct hx_prng *prng, uint64_t billionths);

/* The same: what the store has decided. */
void hx_tracing_check(struct hx_trace_note *note, const struct hapax_answer *answer);

/* The same: exports a note whose times are hx_clock_mono_ns(). */
void hx_tracing_export(struct hx_exporter *exporter, struct hx_trace_note *note);

/* The event is about to be claimed: finds its trace, and whether it is sampled. */
void hx_tracing_begin(struct hx_delivery *delivery, const char *name);

/* The store has decided. */
void hx_tracing_decided(struct hx_delivery *delivery, const struct hapax_answer *answer);

/* Whether hx_tracing_write() replaces this field of the request. */
bool hx_tracing_replaces(const struct hx_delivery *delivery, struct hapax_bytes name);

/* The call begins: writes traceparent and tracestate, if the delivery is traced. */
void hx_tracing_write(struct hx_delivery *delivery, struct hx_http1_writer *writer);

/* The call has ended. */
void hx_tracing_called(struct hx_delivery *delivery);

/* Begins the stored fields of a response with the context of this run. */
void hx_tracing_keep(const struct hx_delivery *delivery, struct hapax_buf *fields);

/* The stored fields without the private one. */
struct hapax_bytes hx_tracing_public(struct hapax_bytes fields);

/* For logs: trace and span in digits; empty: not exported. */
struct hx_tracing_text {
	char trace_id[2 * HX_TRACE_ID_SIZE];
	char span_id[2 * HX_SPAN_ID_SIZE];
	size_t trace_id_size;
	size_t span_id_size;
};
void hx_tracing_text(const struct hx_delivery *delivery, struct hx_tracing_text *ret);

/* The delivery was answered with status; 0: part of a batch. */
void hx_tracing_end(struct hx_delivery *delivery, unsigned status);

#endif
