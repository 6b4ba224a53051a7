/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_thread.h - a source with a thread of its own, which goes to the broker and back.
 *
 * The consumer's thread must not wait for a broker. So an I/O thread has a reactor,
 * where the connections are; messages, acknowledgements and publications change hands here.
 * A message is a message: the broker's files embed it, make it, and get it back to free it.
 *
 *  (1) A message is in the hands of one thread: the I/O thread's until it is delivered, the
 *      consumer's until it is settled, then the I/O thread's again.
 *  (2) What a lost connection brought is of no use to the broker any more: hx_io_thread_lost()
 *      begins another generation. Messages of an older one are revoked, and settling them
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

struct hx_io_message {
	struct hapax_message message;   /* first, so that a message is its message */
	uint64_t generation;            /* of the connection that brought it */
	bool is_acked;                  /* settled: it has taken effect; else it is given back */
	struct hx_io_message *next;     /* in a list of the I/O thread's */
	struct hx_io_message *out_next; /* with the consumer; its thread's */
	struct hx_io_message *out_back;
};

struct hx_io_messages {
	struct hx_io_message *first;
	struct hx_io_message *last;
};

struct hx_io_message *hx_io_messages_take(struct hx_io_messages *list);

struct hx_publications {
	struct hapax_publication *first;
	struct hapax_publication *last;
};

struct hapax_publication *hx_publications_take(struct hx_publications *list);

/* On the I/O thread. */
struct hx_io_thread_ops {
	/* The thread runs: connect. */
	void (*begin)(void *context);
	/* Something was settled, or is to be published. */
	void (*work)(void *context);
	/* Nothing is out: say goodbye, then call hx_io_thread_end(). */
	void (*stop)(void *context);
};

enum { HX_IO_THREAD_TEXT_SIZE = 320 };

struct hx_io_thread {
	struct hapax_source *source;
	const struct hx_io_thread_ops *ops;
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
	struct hx_io_messages arrived;
	struct hx_io_messages settled;
	struct hx_publications asked;
	struct hx_publications delivered;
	struct hx_publications refused;
	size_t orders;                     /* given to the I/O thread and not carried out */
	bool is_hurried;                   /* what the broker does not answer is given up */
	char why[HX_IO_THREAD_TEXT_SIZE];  /* of the refused ones */
	char said[HX_IO_THREAD_TEXT_SIZE]; /* "": nothing */
	bool is_fatal;
	uint64_t generation;
	int64_t lag;
	uint64_t failures;
	uint64_t changes;

	/* The consumer's thread. */
	struct hx_io_message *out;
	uint64_t seen_generation;
};

/* io_thread is zeros. source has its table. On failure nothing is left behind. */
enum hapax_status hx_io_thread_init(
	struct hx_io_thread *io_thread, struct hapax_source *source,
	const struct hx_io_thread_ops *ops, void *context, struct hapax_error *err);

/* Ends the thread, if there is one: blocks for that. All is the caller's then. Nothing is out. */
void hx_io_thread_halt(struct hx_io_thread *io_thread);

/* It is halted, and nothing is watched or timed any more. Zeros are allowed. */
void hx_io_thread_done(struct hx_io_thread *io_thread);

/* ---- On the consumer's thread: what the functions of a source's table do. */

struct hapax_message *hx_io_thread_next(struct hx_io_thread *io_thread);
void hx_io_thread_settle(
	struct hx_io_thread *io_thread, struct hapax_message *message, bool is_acked);
void hx_io_thread_publish(struct hx_io_thread *io_thread, struct hapax_publication *publication);
int64_t hx_io_thread_tick(struct hx_io_thread *io_thread);
int hx_io_thread_drain(struct hx_io_thread *io_thread);
void hx_io_thread_hurry(struct hx_io_thread *io_thread);
void hx_io_thread_stats(struct hx_io_thread *io_thread, struct hapax_source_stats *ret_stats);

/* ---- On the I/O thread. */

/* Hand messages over, of the present generation; list is empty then. */
void hx_io_thread_deliver(struct hx_io_thread *io_thread, struct hx_io_messages *list);

/* Settled ones, and what is to be published. Each counts as an order until it is carried out. */
struct hx_io_messages hx_io_thread_take_settled(struct hx_io_thread *io_thread);
struct hx_publications hx_io_thread_take_asked(struct hx_io_thread *io_thread);

/* Is nobody to wait for an answer of the broker any more? */
bool hx_io_thread_is_hurried(struct hx_io_thread *io_thread);

/* The broker was told of count settled messages, or need not be. */
void hx_io_thread_carried_out(struct hx_io_thread *io_thread, size_t count);

/* The broker has it; or it does not, or nobody knows: why. */
void hx_io_thread_published(
	struct hx_io_thread *io_thread, struct hapax_publication *publication,
	enum hapax_status status, const char *why);

/* Something is wrong at the broker; is_fatal: it will not get better. */
void hx_io_thread_say(struct hx_io_thread *io_thread, const char *text, bool is_fatal);

/* The connection is gone. Messages that nobody has taken come back. */
struct hx_io_messages hx_io_thread_lost(struct hx_io_thread *io_thread);

/* Messages that nobody has taken are given back. */
void hx_io_thread_recall(struct hx_io_thread *io_thread);

/* A connection stands: one more change of what is ours. */
void hx_io_thread_gained(struct hx_io_thread *io_thread);

/* Messages that wait at the broker. */
void hx_io_thread_set_lag(struct hx_io_thread *io_thread, int64_t lag);

/* Goodbye was said: the thread ends. */
void hx_io_thread_end(struct hx_io_thread *io_thread);

#endif
