/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer.h - the core of a consumer: messages to claims, claims to runs, runs to acks.
 *
 * It has no thread, no socket and no clock of its own: whoever drives it calls
 * hx_consumer_turn() when something has come or is due. consumer_loop.c does so with a reactor,
 * tests do it on virtual time.
 *
 *  (1) I4: ack is called for a message only after the processor said that its completion is
 *      stored, that it is done already, or after the broker took it as a dead letter.
 *  (2) Every message that next gave ends in exactly one ack or give_back.
 *  (3) Of messages in one ordering queue only the first is claimed, run or tried again.
 *  (4) What the store does not answer counts for nothing, and stops the taking of more.
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

/* A list of messages, linked both ways. */
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
	/* Something ended outside of a turn: there is one to make. May be NULL. */
	void (*wake)(void *context);
	void *wake_context;

	struct hx_in_flight *in_flight_list; /* all of them */
	struct hx_ordering_queues ordering_queues;
	struct hx_in_flight_list spare;
	struct hx_in_flight_list ready;     /* QUEUED, the first of their ordering queues */
	struct hx_in_flight_list waiting;   /* WAITING */
	struct hx_in_flight_list finishing; /* to be finished in this turn */
	size_t claimed;                     /* CLAIMING, RUNNING, FINISHING; tagged ones, too */
	size_t running;
	size_t publishing;
	size_t queued; /* QUEUED, whether first or not */

	struct hapax_buf scratch; /* of keys */
	struct hapax_request *requests;
	struct hapax_finish *finishes;
	struct hx_warm_up warm_up;

	int64_t now_ms;
	bool is_stopping;
	int64_t stop_at_ms; /* when the drain is over */
	bool is_away;       /* the store refuses */
	uint32_t away_delays;
	int64_t away_until_ms;
	bool is_failed; /* the store, or the source, for good */
	struct hapax_error failure;

	struct hapax_consumer_stats stats;
};

/*
 * Everything that consumer points at is the caller's and stays: source, processor, store, handler,
 * routes, options, which are complete. consumer is zeros but for these. NO_MEMORY. The
 * processor tells its steps within tick (HAPAX_PROCESSOR_STEPS_IN_TICK), which turn calls.
 */
enum hapax_status hx_consumer_init(
	struct hx_consumer *consumer, uint64_t seed, struct hapax_error *err);

/* Nothing is in hand. */
void hx_consumer_done(struct hx_consumer *consumer);

/* Do what is to do at now_ms. Returns when to come again; now_ms: at once. */
int64_t hx_consumer_turn(struct hx_consumer *consumer, int64_t now_ms);

/* Take no more, finish what runs, give back the rest: by turns. */
void hx_consumer_stop(struct hx_consumer *consumer);

/* After stop: is nothing in hand any more, and does the broker know? */
bool hx_consumer_is_idle(const struct hx_consumer *consumer);

/* The drain took too long: what runs is asked to stop, and counts as ambiguous. */
void hx_consumer_hurry(struct hx_consumer *consumer);

/* What a source says of itself (struct hapax_source_hooks). */
void hx_consumer_source_failed(struct hx_consumer *consumer, const char *text, int is_fatal);

/* How many messages were taken and not acknowledged or given back. */
size_t hx_consumer_in_hand(const struct hx_consumer *consumer);

/* Tell whoever wants to know; message may be NULL. For the files of the consumer. */
void hx_consumer_tell(
	struct hx_consumer *consumer, const struct hx_in_flight *in_flight,
	struct hapax_consumer_event *event);

/* Of lists of messages. */
void hx_in_flight_list_add(struct hx_in_flight_list *list, struct hx_in_flight *in_flight);
void hx_in_flight_list_add_first(struct hx_in_flight_list *list, struct hx_in_flight *in_flight);
void hx_in_flight_list_remove(struct hx_in_flight_list *list, struct hx_in_flight *in_flight);
struct hx_in_flight *hx_in_flight_list_take(struct hx_in_flight_list *list);

/* Its handler begins: it is RUNNING, and claimed counts it. */
void hx_consumer_start(struct hx_in_flight *in_flight);

/* settle.c: what becomes of a message, for consumer.c. */
void hx_settle_answer(struct hx_in_flight *in_flight, const struct hapax_answer *answer);
void hx_settle_ack(struct hx_in_flight *in_flight);
void hx_settle_give_back(struct hx_in_flight *in_flight);
void hx_settle_wait(struct hx_in_flight *in_flight, int64_t delay_ms);
void hx_settle_hand_on(
	struct hx_in_flight *in_flight, enum hx_in_flight_reason reason, const char *why);
void hx_settle_publish(struct hx_in_flight *in_flight);
void hx_settle_store_answered(struct hx_consumer *consumer);
void hx_settle_store_refused(struct hx_consumer *consumer, enum hapax_status status);

/* The next delay of a message, or of a store that is away: doubled each time, with jitter. */
int64_t hx_consumer_delay_ms(struct hx_consumer *consumer, uint32_t delays);

/* handover.c: headers of a message that is handed on, and where it goes. */
void hx_handover_prepare(struct hx_in_flight *in_flight);

#endif
