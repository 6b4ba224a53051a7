/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight.h - a message on its way through a consumer.
 *
 *	QUEUED ─▶ CLAIMING ─▶ RUNNING ─▶ FINISHING ─▶ ack
 *	  ▲          │            │           │
 *	  └─ WAITING ◀┴───────────┴───────────┘          not done: retry
 *	             └──────────▶ PUBLISHING ─▶ ack      a dead letter, a diverted duplicate
 *
 * A message of the past goes from QUEUED through MARKING to ack, and never runs. A tagged duplicate
 * goes from CLAIMING to RUNNING without a claim, and does not reach the store. From QUEUED and
 * WAITING a message may be given back to the broker.
 *
 * Threads: the consumer's, except work and its contents: they belong to a worker while RUNNING.
 */
#ifndef HX_SOURCE_CONSUME_IN_FLIGHT_H
#define HX_SOURCE_CONSUME_IN_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/ext/source_ops.h>
#include <hapax/source.h>

#include "net/http/http_client.h"
#include "processor/call.h"
#include "source/consume/envelope.h"

struct hx_consumer;
struct hx_handler;
struct hx_route;

enum hx_in_flight_state {
	HX_IN_FLIGHT_FREE = 0,
	HX_IN_FLIGHT_QUEUED,
	HX_IN_FLIGHT_CLAIMING,
	HX_IN_FLIGHT_RUNNING,
	HX_IN_FLIGHT_FINISHING,
	HX_IN_FLIGHT_WAITING,
	HX_IN_FLIGHT_PUBLISHING,
	HX_IN_FLIGHT_MARKING, /* of the past: warm_up.h */
};

/* Why a message is handed on instead of run. */
enum hx_in_flight_reason {
	HX_REASON_NONE = 0,
	HX_REASON_MALFORMED,  /* claims to be an event, but is not a valid one */
	HX_REASON_TOO_LARGE,  /* exceeds the memory of one message */
	HX_REASON_NO_KEY,     /* a part of its key is missing */
	HX_REASON_NO_ROUTE,   /* its type has no handler */
	HX_REASON_MISMATCH,   /* its key was seen with a different payload */
	HX_REASON_PARKED,     /* its key has an unknown outcome */
	HX_REASON_UNREADABLE, /* its key is done, but the stored result cannot be read */
	HX_REASON_DEFINITIVE, /* its handler refused it permanently */
	HX_REASON_ATTEMPTS,   /* it failed too often */
	HX_REASON_DUPLICATE,  /* already done: diverted, not a dead letter */
};

enum { HX_PLACE_SIZE = 320, HX_IN_FLIGHT_HEADERS_MAX = HX_ENVELOPE_HEADERS_MAX + 12 };

/* A field of the result, after the handler's: "Hapax-Place: TOPIC/PARTITION/OFFSET". */
#define HX_PLACE_FIELD "Hapax-Place"

/* The fields that every message needs come first: thousands are in flight. */
struct hx_in_flight {
	struct hx_consumer *consumer;
	struct hapax_message *message;
	enum hx_in_flight_state state;
	enum hx_in_flight_reason reason; /* why it is handed on */
	const struct hx_route *route;
	bool lacks_id;    /* its key is its place, if it has one; identity.h */
	bool is_traced;   /* trace is set */
	bool is_tagged;   /* a duplicate that is delivered as one; tag.c */
	bool has_answer;  /* from a function in a transaction; tx_session.h */
	int64_t position; /* low-water mark of its partition once it is done; -1: not needed */

	/* Its ordering queue; ordering_queue.h. */
	bool has_ordering_queue;
	uint64_t ordering_queue;
	struct hx_in_flight *ordering_next; /* the first of another ordering queue in the bucket */
	struct hx_in_flight *behind;        /* the message that waits for this one */
	struct hx_in_flight *last;          /* the last in the queue, if this is the first */

	struct hx_in_flight *next; /* in one of the consumer's lists */
	struct hx_in_flight *back;

	struct hapax_key key;
	struct hapax_request_key keys[2]; /* while its strategy changes */
	char place[HX_PLACE_SIZE];        /* topic, partition, offset; for messages and causes */
	size_t place_size;

	/* Its run. */
	struct hapax_run *run; /* from RUN to END */
	uint64_t token;
	uint32_t attempt;
	uint32_t failures; /* failed runs while in flight; for messages without a key */
	uint32_t delays;   /* in a row, for any reason: the next one is longer */
	bool is_held;      /* another caller runs it, and this was reported */
	int64_t asked_ns;  /* for reports: when it was claimed */
	int64_t began_ns;  /* and its handler started */
	int64_t took_ns;   /* of the handler */
	int64_t due_ms;    /* WAITING */
	enum hapax_run_outcome outcome;
	struct hapax_result result;
	struct hapax_buf result_headers;
	struct hapax_bytes error;

	/* For a function or a command: its work. */
	struct hapax_call call;

	/* Its used part comes first. */
	struct hx_envelope envelope;

	/* For HTTP. */
	struct hx_http_call http;
	bool has_http;
	struct hx_handler *http_handler;
	struct hapax_buf request;  /* its head */
	struct hapax_buf document; /* a structured event */
	struct hapax_buf fields;   /* of the response */
	struct hapax_buf response; /* its body, as much as is kept */
	unsigned status;           /* of the response; 0: none */
	uint64_t body_size;
	char error_text[HAPAX_ERROR_MESSAGE_SIZE];

	struct hapax_trace trace;   /* if is_traced */
	struct hapax_answer answer; /* if has_answer: its bytes are in call.body and call.error */
	struct hapax_duplicate duplicate; /* if is_tagged: its original is in target */

	/* Handed on. */
	struct hapax_publication publication;
	struct hapax_field headers[HX_IN_FLIGHT_HEADERS_MAX];
	char reason_text[HAPAX_ERROR_MESSAGE_SIZE];
	char attempt_text[16];
	char target[HX_PLACE_SIZE];
};

/* Whether a message that has waited may still begin its work. Threads: the worker's. */
static inline bool hx_in_flight_may_begin(const struct hx_in_flight *in_flight)
{
	return in_flight->run == NULL || hapax_run_may_begin(in_flight->run);
}

/*
 * End the work of a RUNNING message, once. result and error are borrowed until END and may be NULL.
 */
void hx_in_flight_finish(
	struct hx_in_flight *in_flight, enum hapax_run_outcome outcome,
	const struct hapax_result *result, struct hapax_bytes error);

/*
 * A header that continues the trace: traceparent, tracestate or baggage; size 0: none. In a trace
 * that began here, tracestate of the message is that of another one.
 */
struct hapax_bytes hx_in_flight_trace_header(
	const struct hx_in_flight *in_flight, const char *name);

/* Its attributes as an event; borrowed from the message. It was read: it has a route. */
struct hapax_cause hx_in_flight_event(const struct hx_in_flight *in_flight);

/* Make the request to the processor, whose cause is written to space. */
void hx_in_flight_request(
	struct hx_in_flight *in_flight, const struct hapax_run_options *options,
	unsigned char space[HAPAX_CAUSE_SIZE_MAX], struct hapax_request *ret_request);

/* Store the message's place beside the result: it tells the cause of a later duplicate. */
void hx_in_flight_keep_place(struct hx_in_flight *in_flight, struct hapax_result *result);

#endif
