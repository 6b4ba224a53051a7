/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_context.h - traceparent and tracestate, as W3C Trace Context has them.
 *
 * Who is asked by somebody who traces is told of which trace and by which span. What is
 * not exactly of that form is no context: a trace of its own begins then, and tracestate,
 * which belongs to the other one, is dropped.
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
	HX_TRACE_SAMPLED = 1 << 0, /* whoever asks keeps its spans */
	HX_TRACE_RANDOM = 1 << 1,  /* the trace id was drawn by lot */
};

/* Neither id is all zeros. */
struct hx_trace_context {
	unsigned char trace_id[HX_TRACE_ID_SIZE];
	unsigned char span_id[HX_SPAN_ID_SIZE];
	unsigned char flags; /* enum hx_trace_flag */
};

/*
 * False: it is none. Of a version that is not known yet what version 00 has is read, and
 * of its flags whether it is sampled.
 */
bool hx_trace_context_read(struct hapax_bytes text, struct hx_trace_context *ret_context);

/* Version 00; without a NUL. */
void hx_trace_context_write(const struct hx_trace_context *context, char out[HX_TRACEPARENT_SIZE]);

/*
 * How many members the value of one field tracestate has, or -1: it is none. The value may
 * be one of several; all of them together have at most HX_TRACESTATE_MEMBERS_MAX.
 */
int hx_trace_context_members(struct hapax_bytes value);

#endif
