/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_thread.h - a source with its own thread, which talks to the broker.
 *
 * The consumer's thread must not wait for a broker. An I/O thread therefore runs a reactor with the
 * connections. The two threads exchange messages, acknowledgements and publications here. The
 * broker's source begins with struct hx_io_thread, and its table has the functions below. Its files
 * embed struct hx_io_message, create it, and get it back to free it.
 *
 *  (1) One thread owns a message: the I/O thread until delivery, the consumer until it is settled,
 *      then the I/O thread again.
 *  (2) Messages of a lost connection mean nothing to the broker any more: hx_io_thread_lost()
 *      begins a new generation. Messages of an older one are revoked, and settling them tells the
 *      broker nothing.
 *
 * Threads: see each function.
 */
#ifndef HX_SOURCE_IO_THREAD_H
#define HX_SOURCE_IO_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/ext/source_ops.h>

#include "base/list.h"
#include "base/thread.h"
#include "net/reactor.h"

struct hx_io_message {
	struct hapax_message message;   /* first, so that a message can be cast */
	uint64_t generation;            /* of the connection that delivered it */
	bool is_acked;                  /* settled as done; otherwise given back */
	struct hx_io_message *next;     /* in a list of the I/O thread */
	struct hx_io_message *out_next; /* held by the consumer; for its thread only */
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

/* Tasks on the I/O thread; their context is the broker's source. */
struct hx_io_thread_ops {
	/* The thread has started: connect. */
	void (*begin)(struct hx_task *task);
	/* There are settled messages or publications, or is_paused or is_hurried has changed. */
	void (*work)(struct hx_task *task);
	/* The consumer holds nothing: disconnect, then stop the reactor. */
	void (*stop)(struct hx_task *task);
};

enum { HX_IO_THREAD_TEXT_SIZE = 320 };

struct hx_io_thread {
	struct hapax_source base; /* first, so that a source can be cast */
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
	size_t orders;                     /* given to the I/O thread, not yet carried out */
	char why[HX_IO_THREAD_TEXT_SIZE];  /* why publications were refused */
	char said[HX_IO_THREAD_TEXT_SIZE]; /* "": nothing */
	uint64_t generation;

	/* Written by one thread, read by the other. */
	_Atomic bool is_paused;    /* fetch nothing */
	_Atomic bool is_hurried;   /* do not wait for the broker's answers any more */
	_Atomic int64_t lag;       /* messages that wait at the broker; -1: unknown */
	_Atomic uint64_t failures; /* problems that were reported */
	_Atomic uint64_t changes;  /* how often it has connected */

	/* For the consumer's thread. */
	struct hx_io_message *out;
	uint64_t seen_generation;
};

/* io_thread is zero, the first member of the broker's source. url has no password. */
enum hapax_status hx_io_thread_init(
	struct hx_io_thread *io_thread, const struct hapax_source_ops *source_ops,
	const struct hx_io_thread_ops *ops, const char *url, struct hapax_error *err);

/* Stop the thread, if any; blocks. Then the caller owns everything. The consumer holds nothing. */
void hx_io_thread_halt(struct hx_io_thread *io_thread);

/* The thread is halted, without watches and timers. Zero is allowed. */
void hx_io_thread_done(struct hx_io_thread *io_thread);

/* ---- On the consumer's thread: the functions of a source's table. */

hapax_source_next_fn hx_io_thread_next;
hapax_source_ack_fn hx_io_thread_ack;
hapax_source_give_back_fn hx_io_thread_give_back;
hapax_source_publish_fn hx_io_thread_publish;
hapax_source_tick_fn hx_io_thread_tick;
hapax_source_drain_fn hx_io_thread_drain;
hapax_source_hurry_fn hx_io_thread_hurry;
hapax_source_pause_fn hx_io_thread_pause;
hapax_source_stats_fn hx_io_thread_stats;

/* ---- On the I/O thread. */

/* Deliver messages of the current generation; empties list. */
void hx_io_thread_deliver(struct hx_io_thread *io_thread, struct hx_io_messages *list);

/* Take settled messages, and publications. Each counts as an order until it is carried out. */
struct hx_io_messages hx_io_thread_take_settled(struct hx_io_thread *io_thread);
struct hx_publications hx_io_thread_take_asked(struct hx_io_thread *io_thread);

/* The broker knows of count settled messages, or need not. */
void hx_io_thread_carried_out(struct hx_io_thread *io_thread, size_t count);

/* Report a publication: accepted, or not accepted or unknown, and why. */
void hx_io_thread_published(
	struct hx_io_thread *io_thread, struct hapax_publication *publication,
	enum hapax_status status, const char *why);

/* Report all of list as not accepted or unknown. */
void hx_io_thread_refuse(
	struct hx_io_thread *io_thread, struct hx_publications *list, const char *why);

/* Report a problem at the broker. */
__attribute__((format(printf, 2, 3))) void hx_io_thread_say(
	struct hx_io_thread *io_thread, const char *format, ...);

/* The connection is lost. Returns the messages that the consumer has not taken. */
struct hx_io_messages hx_io_thread_lost(struct hx_io_thread *io_thread);

/* Give back the messages that the consumer has not taken. */
void hx_io_thread_recall(struct hx_io_thread *io_thread);

#endif
