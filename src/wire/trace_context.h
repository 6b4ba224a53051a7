/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_context.h - traceparent and tracestate of W3C Trace Context.
 *
 * A caller that traces sends the IDs of its trace and span. Text of any other form is not a
 * context: a new trace begins, and tracestate, which belongs to the other one, is dropped.
 *
 * Threads: any.
 */
#ifndef HX_TRACE_CONTEXT_H
#define HX_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/bytes.h>

enum {
	HX_TRACE_ID_SIZE = 16,
	HX_SPAN_ID_SIZE = 8,

	/* "00-", 32 digits, "-", 16 digits, "-", 2 digits */
	HX_TRACEPARENT_SIZE = 55,

	HX_TRACESTATE_MEMBERS_MAX = 32,
};

enum hx_trace_flag {
	HX_TRACE_SAMPLED = 1 << 0, /* the caller keeps its spans */
	HX_TRACE_RANDOM = 1 << 1,  /* the trace ID is random */
};

/* Neither id is all zeros. */
struct hx_trace_context {
	unsigned char trace_id[HX_TRACE_ID_SIZE];
	unsigned char span_id[HX_SPAN_ID_SIZE];
	unsigned char flags; /* enum hx_trace_flag */
};

/*
 * False: not a context. An unknown version is read like version 00, but only its sampled flag is
 * used.
 */
bool hx_trace_context_read(struct hapax_bytes text, struct hx_trace_context *ret_context);

/* Version 00; without a NUL. */
void hx_trace_context_write(const struct hx_trace_context *context, char out[HX_TRACEPARENT_SIZE]);

/*
 * The number of members in one tracestate field, or -1: invalid. There may be several fields; all
 * of them together have at most HX_TRACESTATE_MEMBERS_MAX.
 */
int hx_trace_context_members(struct hapax_bytes value);

#endif
