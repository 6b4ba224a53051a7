/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decision.h - reports each decision about a delivery, and the end of each run, to all listeners.
 *
 * Every door and every consumer reports here, once per decision and once per end of a run:
 *
 *	struct hx_decision decision = {.door = HX_DOOR_GATEWAY, .key = key, ...};
 *
 *	hx_decision_tell(&loop->observer, &decision);
 *	...
 *	hx_decision_end(&loop->observer, &decision, &end);
 *
 * The listeners are the metrics, the log (logger_line.h), the feed of the API (feed.h) and the file
 * of decisions (log.decisions). To add one: a bit of enum hx_observer_part, its condition in hx_observer_wants(), its calls in
 * hx_decision_note() and hx_decision_note_end(). A caller never waits for a listener.
 *
 * A door with many decisions in one round counts equal ones together, and fills in a struct
 * hx_decision only if a listener needs it (resp_tally.c).
 *
 * Threads: struct hx_observer one at a time.
 */
#ifndef HX_DECISION_H
#define HX_DECISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/processor.h>
#include <hapax/record.h>
#include <hapax/source.h>
#include <hapax/store.h>

#include "observe/metrics/metrics.h"

struct hx_feed;
struct hx_logger;

/* Who needs the details of a decision. */
enum hx_observer_part {
	HX_OBSERVER_LOG = 1 << 0,
	HX_OBSERVER_FEED = 1 << 1,
	HX_OBSERVER_FILE = 1 << 2, /* it takes every decision */
};

/* Where a thread reports its decisions. NULL: not there. */
struct hx_observer {
	struct hx_cells *cells;
	struct hx_logger *log;
	struct hx_logger *decisions; /* the file of decisions */
	struct hx_feed *feed;
	size_t writer;                   /* index in feed */
	const struct hapax_clock *clock; /* NULL: the system clock; for display */
	bool is_round;                   /* between begin and end of a round */
	uint64_t hushed;                 /* in this round: lines that exceed the rate of the log */
};

enum hx_decision_flag {
	HX_DECISION_WAITED = 1 << 0,      /* it waited for a run in progress */
	HX_DECISION_EVENT_ID = 1 << 1,    /* its key is the event's own id */
	HX_DECISION_UNVERIFIED = 1 << 2,  /* its payload could not be compared */
	HX_DECISION_UNPROTECTED = 1 << 3, /* it runs without a claim; there is no decision */
	HX_DECISION_PASSED = 1 << 4,      /* with UNPROTECTED: it needs no key */
	HX_DECISION_CONTINUED = 1 << 6,   /* a journal decided: the store is unavailable */
	HX_DECISION_MARKED = 1 << 5,      /* with ACQUIRED: it is done at once, no run follows */
};

/* A decision. Texts are borrowed; empty, NULL and 0: unknown. */
struct hx_decision {
	enum hx_door door;
	const char *route;    /* of the gateway or the proxy */
	const char *consumer; /* of a message, like place */
	struct hapax_bytes place;
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
	struct hapax_cause event; /* the delivered one */

	enum hapax_status status; /* not HAPAX_OK: the store did not decide */
	enum hapax_decision decision;
	unsigned flags;     /* enum hx_decision_flag */
	uint32_t attempt;   /* of the key */
	uint64_t token;     /* ACQUIRED: of this claim. Else of the original run */
	int64_t ttl_ms;     /* ACQUIRED: of the key, or HAPAX_TTL_FOREVER */
	int64_t took_ns;    /* from the question to the answer; negative: not measured */
	int64_t expires_ms; /* of the record, or HAPAX_TIME_NEVER; 0: unknown */

	/* Of a duplicate: its original. */
	int64_t first_seen_ms;
	struct hapax_cause original;
	struct hapax_bytes original_place;
	enum hapax_duplicate_cause cause; /* of a message */

	struct hapax_bytes trace_id; /* digits, like span_id */
	struct hapax_bytes span_id;
};

/* The end of a run. */
struct hx_decision_end {
	enum hapax_status status; /* not HAPAX_OK: the outcome is not known to be stored */
	enum hapax_run_outcome outcome;
	unsigned code;          /* of the upstream's response; 0: none */
	int64_t took_ns;        /* of the handler; negative: not measured */
	struct hapax_bytes why; /* it failed */
};

/* Report a decision: counts it, and tells all listeners. */
void hx_decision_tell(struct hx_observer *observer, const struct hx_decision *decision);

/* Report the end of the run that decision began. */
void hx_decision_end(
	struct hx_observer *observer, const struct hx_decision *decision,
	const struct hx_decision_end *end);

/* The same in parts, for rounds. Count several equal decisions or ends of one scope. */
void hx_decision_count(
	struct hx_observer *observer, const struct hx_decision *decision, int64_t count);
void hx_decision_count_end(
	struct hx_observer *observer, const struct hx_decision *decision,
	const struct hx_decision_end *end, int64_t count);

/* Lines of a round above the rate of the log are counted at its end, not one by one. */
void hx_observer_begin_round(struct hx_observer *observer);
void hx_observer_end_round(struct hx_observer *observer);

/*
 * The listeners that need the details of a decision; 0: none. Ask once for each, and pass the
 * answer to note.
 */
unsigned hx_observer_wants(struct hx_observer *observer, enum hapax_decision decision);
void hx_decision_note(
	struct hx_observer *observer, unsigned wants, const struct hx_decision *decision);

/* What an operation is that a client sent to the store through a door. */
enum hx_op_report {
	HX_OP_OTHER,   /* neither of these */
	HX_OP_DECIDED, /* a decision */
	HX_OP_ENDED,   /* the end of the client's run */
};

/* Sort an answered operation: DECIDED sets *ret_decision, ENDED sets *ret_end. */
enum hx_op_report hx_decision_sort_op(
	const struct hapax_op *op, enum hapax_decision *ret_decision,
	struct hx_decision_end *ret_end);

/* The details of an answered operation. Borrowed from op. */
void hx_decision_read_op(
	const struct hapax_op *op, enum hx_door door, enum hapax_decision decision,
	struct hx_decision *ret_decision);

/* Report an end that was counted already. */
void hx_decision_note_end(
	struct hx_observer *observer, const struct hx_decision *decision,
	const struct hx_decision_end *end);

/* Is it a delivery that does not run again: done, or in progress? */
static inline bool hx_decision_is_duplicate(enum hapax_decision decision)
{
	return decision == HAPAX_DECISION_REPLAY || decision == HAPAX_DECISION_IN_PROGRESS;
}

#endif
