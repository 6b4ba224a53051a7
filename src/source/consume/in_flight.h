/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight.h - a message on its way through a consumer.
 *
 *	QUEUED ─▶ CLAIMING ─▶ RUNNING ─▶ FINISHING ─▶ ack
 *	  ▲          │            │           │
 *	  └─ WAITING ◀┴───────────┴───────────┘          not done: later
 *	             └──────────▶ PUBLISHING ─▶ ack      a dead letter, a diverted duplicate
 *
 * One of the past goes from QUEUED by MARKING to ack, and never runs. A duplicate that is
 * tagged goes from CLAIMING to RUNNING without a claim, and the store hears nothing of it.
 * From QUEUED and WAITING a message may be given back to the broker.
 *
 * Threads: the consumer's, but for what a worker has while RUNNING: work, and what it
 * writes there.
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
	HX_REASON_MALFORMED,  /* it is not the event that it says it is */
	HX_REASON_TOO_LARGE,  /* it does not fit into what is given to one message */
	HX_REASON_NO_KEY,     /* a part of its key is missing */
	HX_REASON_NO_ROUTE,   /* nobody handles its type */
	HX_REASON_MISMATCH,   /* its key was seen with another payload */
	HX_REASON_PARKED,     /* its key waits for a decision */
	HX_REASON_UNREADABLE, /* its key is done, and what is stored for it cannot be read */
	HX_REASON_DEFINITIVE, /* its handler refused it for good */
	HX_REASON_ATTEMPTS,   /* it failed too often */
	HX_REASON_DUPLICATE,  /* it is done: diverted, not a dead letter */
};

enum { HX_PLACE_SIZE = 320, HX_IN_FLIGHT_HEADERS_MAX = HX_ENVELOPE_HEADERS_MAX + 12 };

/* Of the result: "Hapax-Place: TOPIC/PARTITION/OFFSET", behind the handler's own fields. */
#define HX_PLACE_FIELD "Hapax-Place"

/* What every message needs comes first: thousands of them are in hand. */
struct hx_in_flight {
	struct hx_consumer *consumer;
	struct hapax_message *message;
	enum hx_in_flight_state state;
	enum hx_in_flight_reason reason; /* for which it is handed on */
	const struct hx_route *route;
	bool is_tagged;   /* a duplicate that is delivered as one; tag.h */
	bool has_answer;  /* by a function in a transaction; tx_session.h */
	int64_t position; /* up to where its partition is done when it is; -1: nobody asks */

	/* Its line: messages that wait for each other; ordering_queue.h. */
	bool has_ordering_queue;
	uint64_t ordering_queue;
	struct hx_in_flight *ordering_next; /* of another ordering queue in the same bucket */
	struct hx_in_flight *behind;        /* the one that waits for this one */
	struct hx_in_flight *last;          /* of the line, where this one is its first */

	struct hx_in_flight *next; /* in one of the consumer's lists */
	struct hx_in_flight *back;

	struct hapax_key key;
	char place[HX_PLACE_SIZE]; /* topic, partition, offset; for people and causes */
	size_t place_size;

	/* Its run. */
	struct hapax_run *run; /* from RUN to END */
	uint64_t token;
	uint32_t attempt;
	uint32_t failures; /* runs that failed while it is in hand; for those without a key */
	uint32_t delays;   /* in a row, for whatever reason: the next one is longer */
	int64_t due_ms;    /* WAITING */
	enum hapax_run_outcome outcome;
	struct hapax_result result;
	struct hapax_buf result_headers;
	struct hapax_bytes error;

	/* By a function or a command: what it has in hand. */
	struct hapax_call call;

	/* What of it is used stands at its beginning. */
	struct hx_envelope envelope;

	/* By HTTP. */
	struct hx_http_call http;
	bool has_http;
	struct hx_handler *http_handler;
	struct hapax_buf request;  /* its head */
	struct hapax_buf document; /* a structured event */
	struct hapax_buf fields;   /* of the response */
	struct hapax_buf response; /* its body, as far as it is kept */
	unsigned status;
	uint64_t body_size;
	char error_text[HAPAX_ERROR_MESSAGE_SIZE];

	struct hapax_answer answer; /* has_answer: its bytes are in call.body and call.error */
	struct hapax_duplicate duplicate; /* is_tagged: its original lies in target */

	/* Handed on. */
	struct hapax_publication publication;
	struct hapax_field headers[HX_IN_FLIGHT_HEADERS_MAX];
	char reason_text[HAPAX_ERROR_MESSAGE_SIZE];
	char attempt_text[16];
	char target[HX_PLACE_SIZE];
};

/*
 * Its work is about to begin, and has waited: is it still the one to do it? Threads: whoever
 * works on it.
 */
static inline bool hx_in_flight_may_begin(const struct hx_in_flight *in_flight)
{
	return in_flight->run == NULL || hapax_run_may_begin(in_flight->run);
}

/*
 * The work of a message that is RUNNING has ended. result is borrowed until END and may be
 * NULL; error too. Once.
 */
void hx_in_flight_finish(
	struct hx_in_flight *in_flight, enum hapax_run_outcome outcome,
	const struct hapax_result *result, struct hapax_bytes error);

/* What is asked of the processor for it. */
void hx_in_flight_request(
	struct hx_in_flight *in_flight, const struct hapax_run_options *options,
	struct hapax_request *ret_request);

/* Beside the result, where the message stands: that tells a later duplicate's cause. */
void hx_in_flight_keep_place(struct hx_in_flight *in_flight, struct hapax_result *result);

#endif
