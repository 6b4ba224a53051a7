/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer.h - the core of a consumer: messages to claims, claims to runs, runs to acks.
 *
 * It has no thread, no socket and no clock. Its driver calls hx_consumer_turn() when there is input
 * or a timer is due: consumer_loop.c with a reactor, tests on virtual time.
 *
 *  (1) I4: a message is acknowledged only after the processor reports its completion as stored, or
 *      the key as already done, or after the broker accepted it as a dead letter.
 *  (2) Every message from next ends in exactly one ack or give_back.
 *  (3) In each ordering queue only the first message is claimed, run or retried.
 *  (4) A missing answer of the store counts for nothing, and stops the taking of messages.
 *
 * Threads: one at a time.
 */
#ifndef HX_SOURCE_CONSUME_CONSUMER_H
#define HX_SOURCE_CONSUME_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/ext/source_ops.h>
#include <hapax/source.h>

#include "base/buf.h"
#include "base/random.h"
#include "source/handler/handler.h"
#include "source/consume/identity.h"
#include "source/consume/in_flight.h"
#include "source/consume/ordering_queue.h"
#include "source/consume/warm_up.h"

/* A doubly linked list of messages. */
struct hx_in_flight_list {
	struct hx_in_flight *first;
	struct hx_in_flight *last;
	size_t count;
};

struct hx_consumer {
	struct hapax_source *source;
	struct hapax_processor *processor;
	struct hapax_store *store; /* for messages of the past */
	struct hx_handler *handler;
	struct hapax_consumer_options options; /* complete */
	struct hx_route *routes;
	size_t route_count;
	const char *dead_letter;
	const char *divert;
	struct hx_prng prng; /* jitter */
	/* Called if something ended outside of a turn: make one. May be NULL. */
	void (*wake)(void *context);
	void *wake_context;

	struct hx_in_flight *in_flight_list; /* all of them */
	struct hx_ordering_queues ordering_queues;
	struct hx_in_flight_list spare;
	struct hx_in_flight_list ready;     /* QUEUED, the first of their ordering queues */
	struct hx_in_flight_list waiting;   /* WAITING */
	struct hx_in_flight_list finishing; /* to be finished in this turn */
	size_t claimed;                     /* CLAIMING, RUNNING, FINISHING; includes tagged ones */
	size_t running;
	size_t publishing;
	size_t queued; /* QUEUED, whether first or not */

	struct hapax_buf scratch; /* for keys */
	struct hapax_request *requests;
	unsigned char (*causes)[HAPAX_CAUSE_SIZE_MAX]; /* one for each of requests */
	struct hapax_finish *finishes;
	struct hx_warm_up warm_up;

	int64_t now_ms;
	bool is_stopping;
	int64_t stop_at_ms; /* the deadline of the drain */
	bool is_paused;     /* by an operator: nothing begins */
	bool is_halted;     /* a message has no key: nothing begins, what has not begun goes back */
	bool is_reached;    /* the broker, since the last failure */
	bool is_away;       /* the store is unavailable */
	uint32_t away_delays;
	int64_t away_until_ms;
	bool is_failed; /* permanent failure of the store or source */
	struct hapax_error failure;

	struct hapax_consumer_stats stats;
};

/*
 * The caller owns everything that consumer points at, and keeps it: source, processor, store,
 * handler, routes and complete options. The rest of consumer is zero. NO_MEMORY. The processor must
 * report its steps within tick (HAPAX_PROCESSOR_STEPS_IN_TICK), which turn calls.
 */
enum hapax_status hx_consumer_init(
	struct hx_consumer *consumer, uint64_t seed, struct hapax_error *err);

/* No message is in flight. */
void hx_consumer_done(struct hx_consumer *consumer);

/* Do the work due at now_ms. Returns the time of the next turn; now_ms: at once. */
int64_t hx_consumer_turn(struct hx_consumer *consumer, int64_t now_ms);

/* Take no more messages, finish runs, give back the rest, in the following turns. */
void hx_consumer_stop(struct hx_consumer *consumer);

/* Begin nothing until it is resumed; runs in progress finish. */
void hx_consumer_pause(struct hx_consumer *consumer, bool is_paused);

/* Try again after a message without a key. */
void hx_consumer_resume(struct hx_consumer *consumer);

/* After stop: no message is in flight, and the broker has every acknowledgement. */
bool hx_consumer_is_idle(const struct hx_consumer *consumer);

/* The drain timed out: ask runs to stop; they count as ambiguous. */
void hx_consumer_hurry(struct hx_consumer *consumer);

/* For struct hapax_source_hooks: reports of the source. */
void hx_consumer_source_failed(struct hx_consumer *consumer, const char *text, int is_fatal);

/* The source has connected, or got an assignment. */
void hx_consumer_source_reached(struct hx_consumer *consumer);

/* The number of messages taken and not yet acknowledged or given back. */
size_t hx_consumer_in_hand(const struct hx_consumer *consumer);

/* Nothing begins. */
static inline bool hx_consumer_is_held_up(const struct hx_consumer *consumer)
{
	return consumer->is_paused || consumer->is_halted;
}

/* halt.c: the message has no ID, and no strategy says what its key is: report it, or halt. */
void hx_consumer_lacks_id(struct hx_in_flight *in_flight);

/* Report event to the caller; message may be NULL. For the files of the consumer. */
void hx_consumer_tell(
	struct hx_consumer *consumer, const struct hx_in_flight *in_flight,
	struct hapax_consumer_event *event);

/* For reports: how long its claim took. */
int64_t hx_consumer_claim_ns(const struct hx_in_flight *in_flight);

/* Report a decision of the store, or the end of a run. */
void hx_consumer_tell_answer(
	struct hx_in_flight *in_flight, enum hapax_consumer_fact fact,
	const struct hapax_answer *answer);

/* Functions of message lists. */
void hx_in_flight_list_add(struct hx_in_flight_list *list, struct hx_in_flight *in_flight);
void hx_in_flight_list_add_first(struct hx_in_flight_list *list, struct hx_in_flight *in_flight);
void hx_in_flight_list_remove(struct hx_in_flight_list *list, struct hx_in_flight *in_flight);
struct hx_in_flight *hx_in_flight_list_take(struct hx_in_flight_list *list);

/* Start the handler: the message is RUNNING and counted in claimed. */
void hx_consumer_start(struct hx_in_flight *in_flight);

/* settle.c, for consumer.c: decides about a message. */
void hx_settle_answer(struct hx_in_flight *in_flight, const struct hapax_answer *answer);
void hx_settle_ack(struct hx_in_flight *in_flight);
void hx_settle_give_back(struct hx_in_flight *in_flight);
void hx_settle_wait(struct hx_in_flight *in_flight, int64_t delay_ms);
/* Report event and wait, longer after so many delays. */
void hx_settle_retry(
	struct hx_in_flight *in_flight, struct hapax_consumer_event *event, uint32_t delays);
/* "OUTCOME: ERROR", of a failed run. */
void hx_settle_describe(
	char ret_why[HAPAX_ERROR_MESSAGE_SIZE], const char *prefix, enum hapax_run_outcome outcome,
	struct hapax_bytes error);
void hx_settle_hand_on(
	struct hx_in_flight *in_flight, enum hx_in_flight_reason reason, const char *why);
void hx_settle_publish(struct hx_in_flight *in_flight);
void hx_settle_store_answered(struct hx_consumer *consumer);
void hx_settle_store_refused(struct hx_consumer *consumer, enum hapax_status status);

/* The next delay of a message or an unavailable store: doubles each time, with jitter. */
int64_t hx_consumer_delay_ms(struct hx_consumer *consumer, uint32_t delays);

/* tag.c: the store reports a message as done; pass it on, first or again; its handler ended. */
void hx_tag_begin(struct hx_in_flight *in_flight, const struct hapax_consumer_event *event);
void hx_tag_run(struct hx_in_flight *in_flight);
void hx_tag_end(struct hx_in_flight *in_flight);

/* handover.c: headers and target of a message that is handed on. */
void hx_handover_prepare(struct hx_in_flight *in_flight);

/* The reason in one word; NULL: none. */
const char *hx_handover_reason(enum hx_in_flight_reason reason);

#endif
