/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - the spans of one event, for a trace collector.
 *
 * An event is up to three spans of one trace:
 *
 *	process_cloud_event            from its request to its reply; of the proxy process_request
 *	├─ idempotency_check           the question to the store
 *	└─ POST                        the call of the upstream, if it ran here
 *
 * A message of a broker has the same, from its claim to its end, once per attempt; if a command
 * handles it, without the last.
 *
 * The first is a child of the sender's span, if the request names one. For a duplicate it has a
 * link to the process_cloud_event of the original. It is not a child of that span, which may have
 * ended days ago.
 *
 * A note is filled in while an event is processed. It has pointers only to constants, so it can be
 * copied to another thread. Spans are written as OTLP JSON.
 *
 * Threads: one at a time.
 */
#ifndef HX_TRACE_H
#define HX_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "wire/http1/http1.h"
#include "wire/json/json_write.h"
#include "wire/trace_context.h"

enum {
	HX_TRACE_TEXT_SIZE = 256,
	HX_TRACE_SCOPE_SIZE = 2 * HX_SCOPE_PART_SIZE_MAX + 2,

	/* "sha256:" and 16 digits, as in logs. */
	HX_TRACE_KEY_HASH_SIZE = 24,
};

/* Times are nanoseconds since 1970. Texts that are empty are left out. */
struct hx_trace_note {
	const char *name; /* of the span around the others: process_cloud_event */
	bool is_message;  /* of a broker: route is its consumer, method of the call */
	struct hx_trace_context context; /* span_id: that of this one */
	bool has_parent;
	unsigned char parent_id[HX_SPAN_ID_SIZE];
	bool has_original; /* of a duplicate: the original is known */
	struct hx_trace_context original;
	int64_t began_ns;
	int64_t ended_ns;
	unsigned reply_status; /* 0: a batch, which has one reply for all */
	const char *error;     /* error.type; NULL: none */

	bool has_check;
	unsigned char check_id[HX_SPAN_ID_SIZE];
	int64_t asked_ns;
	int64_t decided_ns;
	const char *decision;    /* NULL: the store did not answer */
	const char *check_error; /* error.type; NULL: none */
	uint64_t token;          /* 0: none */
	uint32_t attempt;        /* the same */

	bool has_call;
	unsigned char call_id[HX_SPAN_ID_SIZE];
	int64_t sent_ns;
	int64_t answered_ns;
	unsigned upstream_status; /* 0: no complete response */
	const char *call_error;   /* error.type; NULL: none */
	uint16_t upstream_port;
	char upstream_host[HX_TRACE_TEXT_SIZE];

	char method[HX_HTTP1_METHOD_MAX + 1]; /* of the request, and of the call */
	char event_id[HX_TRACE_TEXT_SIZE];    /* empty: not an event, like the next two */
	char event_source[HX_TRACE_TEXT_SIZE];
	char event_type[HX_TRACE_TEXT_SIZE];
	char route[HX_TRACE_TEXT_SIZE];
	char scope[HX_TRACE_SCOPE_SIZE]; /* tenant/group */
	char key_hash[HX_TRACE_KEY_HASH_SIZE];
};

/* In place of an error's name: the status is its name, as in OpenTelemetry. */
extern const char hx_trace_error_status[];

/* The number of spans. */
unsigned hx_trace_note_spans(const struct hx_trace_note *note);

/* "sha256:..." of a key, which may be a secret. */
void hx_trace_hash_key(struct hapax_bytes key, char out[HX_TRACE_KEY_HASH_SIZE]);

/* ExportTraceServiceRequest: begin, notes, end. json->status says whether it fit. */
void hx_trace_write_begin(struct hx_json_write *json, const char *service_name);
void hx_trace_write_note(struct hx_json_write *json, const struct hx_trace_note *note);
void hx_trace_write_end(struct hx_json_write *json);

#endif
