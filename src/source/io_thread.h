/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_thread.h - a source with a thread of its own, which goes to the broker and back.
 *
 * The consumer's thread must not wait for a broker. So a courier has a thread with a reactor,
 * where the connections are; messages, acknowledgements and publications change hands here.
 * A message is a parcel: the broker's files embed it, make it, and get it back to free it.
 *
 *  (1) A parcel is in the hands of one thread: the courier's until it is delivered, the
 *      consumer's until it is settled, then the courier's again.
 *  (2) What a lost connection brought is of no use to the broker any more: hx_courier_lost()
 *      begins another generation. Parcels of an older one are revoked, and settling them
 *      tells the broker nothing.
 *
 * Threads: as said at each function.
 */
#ifndef HX_SOURCE_IO_THREAD_H
#define HX_SOURCE_IO_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/ext/source_ops.h>

#include "base/list.h"
#include "base/thread.h"
#include "net/reactor.h"

struct hx_parcel {
	struct hapax_message message; /* first, so that a message is its parcel */
	uint64_t generation;          /* of the connection that brought it */
	bool is_acked;                /* settled: it has taken effect; else it is given back */
	struct hx_parcel *next;       /* in a list of the courier's */
	struct hx_parcel *out_next;   /* with the consumer; its thread's */
	struct hx_parcel *out_back;
};

struct hx_parcels {
	struct hx_parcel *first;
	struct hx_parcel *last;
};

struct hx_parcel *hx_parcels_take(struct hx_parcels *list);

struct hx_publications {
	struct hapax_publication *first;
	struct hapax_publication *last;
};

struct hapax_publication *hx_publications_take(struct hx_publications *list);

/* On the courier's thread. */
struct hx_courier_ops {
	/* The thread runs: connect. */
	void (*begin)(void *context);
	/* Something was settled, or is to be published. */
	void (*work)(void *context);
	/* Nothing is out: say goodbye, then call hx_courier_end(). */
	void (*stop)(void *context);
};

enum { HX_COURIER_TEXT_SIZE = 320 };

struct hx_courier {
	struct hapax_source *source;
	const struct hx_courier_ops *ops;
	void *context;
	struct hx_reactor reactor;
	bool has_reactor;
	struct hx_thread thread;
	bool has_thread;
	struct hx_task begin;
	struct hx_task work;
	struct hx_task stop;

	struct hx_lock lock;
	/* Locks: lock for these. */
	struct hx_parcels arrived;
	struct hx_parcels settled;
	struct hx_publications asked;
	struct hx_publications delivered;
	struct hx_publications refused;
	size_t orders;                   /* given to the courier and not carried out */
	bool is_hurried;                 /* what the broker does not answer is given up */
	char why[HX_COURIER_TEXT_SIZE];  /* of the refused ones */
	char said[HX_COURIER_TEXT_SIZE]; /* "": nothing */
	bool is_fatal;
	uint64_t generation;
	int64_t lag;
	uint64_t failures;
	uint64_t changes;

	/* The consumer's thread. */
	struct hx_parcel *out;
	uint64_t seen_generation;
};

/* courier is zeros. source has its table. On failure nothing is left behind. */
enum hapax_status hx_courier_init(
	struct hx_courier *courier, struct hapax_source *source, const struct hx_courier_ops *ops,
	void *context, struct hapax_error *err);

/* Ends the thread, if there is one: blocks for that. All is the caller's then. Nothing is out. */
void hx_courier_halt(struct hx_courier *courier);

/* It is halted, and nothing is watched or timed any more. Zeros are allowed. */
void hx_courier_done(struct hx_courier *courier);

/* ---- On the consumer's thread: what the functions of a source's table do. */

struct hapax_message *hx_courier_next(struct hx_courier *courier);
void hx_courier_settle(struct hx_courier *courier, struct hapax_message *message, bool is_acked);
void hx_courier_publish(struct hx_courier *courier, struct hapax_publication *publication);
int64_t hx_courier_tick(struct hx_courier *courier);
int hx_courier_drain(struct hx_courier *courier);
void hx_courier_hurry(struct hx_courier *courier);
void hx_courier_stats(struct hx_courier *courier, struct hapax_source_stats *ret_stats);

/* ---- On the courier's thread. */

/* Hand parcels over, of the present generation; list is empty then. */
void hx_courier_deliver(struct hx_courier *courier, struct hx_parcels *list);

/* Settled ones, and what is to be published. Each counts as an order until it is carried out. */
struct hx_parcels hx_courier_take_settled(struct hx_courier *courier);
struct hx_publications hx_courier_take_asked(struct hx_courier *courier);

/* Is nobody to wait for an answer of the broker any more? */
bool hx_courier_is_hurried(struct hx_courier *courier);

/* The broker was told of count settled parcels, or need not be. */
void hx_courier_carried_out(struct hx_courier *courier, size_t count);

/* The broker has it; or it does not, or nobody knows: why. */
void hx_courier_published(
	struct hx_courier *courier, struct hapax_publication *publication, enum hapax_status status,
	const char *why);

/* Something is wrong at the broker; is_fatal: it will not get better. */
void hx_courier_say(struct hx_courier *courier, const char *text, bool is_fatal);

/* The connection is gone. Parcels that nobody has taken come back. */
struct hx_parcels hx_courier_lost(struct hx_courier *courier);

/* Parcels that nobody has taken are given back. */
void hx_courier_recall(struct hx_courier *courier);

/* A connection stands: one more change of what is ours. */
void hx_courier_gained(struct hx_courier *courier);

/* Messages that wait at the broker. */
void hx_courier_set_lag(struct hx_courier *courier, int64_t lag);

/* Goodbye was said: the thread ends. */
void hx_courier_end(struct hx_courier *courier);

#endif
