/* SPDX-License-Identifier: Apache-2.0 */
/*
 * large.h - requests that take too long to read for a loop.
 *
 * A body above HX_LARGE_SIZE_MIN is read, parsed and hashed on one of a few threads, so that
 * whatever its size no other event of the loop waits for it.
 *
 *	loop: take up ──▶ reader: read, route, key ──▶ loop: claim ──▶ ...
 *
 * Of the proxy's requests only the fingerprint is made there.
 *
 *  (1) From hx_large_ask() until its task has run, the delivery, its exchange and its
 *      batch are the reader's. Its sender may go away meanwhile, its loop not end.
 *  (2) What is read lies in the large itself. Memory for it is of a place, of which there are
 *      as many as readers: one wide, the others narrow (hx_memory_reader_share()). A body
 *      has its place from when it is taken up until it is claimed, and one whose narrow
 *      place was too small is read again in the wide one, which is one body at a time. What
 *      does not fit there is too large; a daemon that is full says try again.
 *  (3) A batch is held until its last event: the loop's account (block_pool.h) has its text
 *      from before it is read: when too much is held, it is not. It has a place only while
 *      the key of an event is made.
 *
 * Whose body is next is turns.h's to say: each address has its part of what is read, byte for
 * byte. No address has the last free reader, so that a body which takes long does not hold up others.
 * An address is whom the request counts for (origin.h); one that is trusted has no such limit.
 *
 * Threads: the loop's; what the reader's does is in large.c.
 */
#ifndef HX_SERVE_HTTP_LARGE_H
#define HX_SERVE_HTTP_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/key.h>

#include "base/buf.h"
#include "base/thread.h"
#include "net/reactor.h"
#include "serve/http/turns.h"
#include "wire/cloudevents/cloudevents.h"

/* Two milliseconds of a processor of 2020. */
enum { HX_LARGE_SIZE_MIN = 256 * 1024 };

struct hx_config_route;
struct hx_delivery;

struct hx_large;

/* What takes long, on the reader's thread. */
typedef void hx_large_read_fn(struct hx_large *large);

/* It was read: on the loop's thread. */
typedef void hx_large_done_fn(struct hx_large *large);

struct hx_large {
	struct hx_delivery *delivery;
	hx_large_read_fn *read;
	hx_large_done_fn *done;
	enum hx_cloudevents_mode mode;
	bool is_open; /* the body was read; of a batch, all of it was checked */
	enum hapax_status status;
	struct hapax_error err;

	bool has_event; /* false: the batch has no more */
	struct hx_cloudevent event;
	struct hapax_buf event_text;
	struct hapax_buf body_text;
	size_t noted;                        /* of a batch's text, in the loop's account */
	size_t share;                        /* what its place has */
	bool is_short;                       /* and that was too little */
	const struct hx_config_route *route; /* NULL: none takes it, and there is no key */
	enum hapax_status key_status;
	struct hapax_error key_err;
	int64_t key_ns; /* how long it took to make */
	struct hapax_key key;

	struct hx_task task;
	/* Locks: the reader's mutex, from hx_large_ask() on. */
	struct hx_turn turn;
	bool is_trusted;
	bool needs_place;
	bool needs_wide;
	bool has_place;
	size_t place;
};

enum { HX_READERS_MIN = 2, HX_READERS_MAX = 4 };

/* The place that is wide. */
enum { HX_READER_WIDE = 0 };

/* The threads that read. */
struct hx_reader {
	uint64_t hash_key[2];
	size_t thread_max; /* as many as there are processors, within these limits */
	struct hx_mutex mutex;
	struct hx_cond wake;
	/* Locks: mutex for everything below. */
	struct hx_turns turns;
	bool is_taken[HX_READERS_MAX]; /* the places for what is read */
	bool is_stopped;
	size_t thread_count; /* started when there is nobody to read */
	struct hx_thread threads[HX_READERS_MAX];
};

void hx_reader_init(struct hx_reader *reader);

/* No delivery is left. */
void hx_reader_done(struct hx_reader *reader);

/* Have read called, then done. On failure nothing was done. */
enum hapax_status hx_large_start(
	struct hx_delivery *delivery, hx_large_read_fn *read, hx_large_done_fn *done,
	struct hapax_error *err);

/*
 * Take up a delivery that is an event, or several, with a large body. As start; NO_MEMORY
 * also when too much is held for another batch, LIMIT when the body never fits.
 */
enum hapax_status hx_large_begin(
	struct hx_delivery *delivery, enum hx_cloudevents_mode mode, struct hapax_error *err);

/* Read its event, of a batch the next one; then it is claimed, or the batch is answered. */
void hx_large_ask(struct hx_large *large);

/* With the delivery. NULL is allowed. */
void hx_large_free(struct hx_large *large);

#endif
