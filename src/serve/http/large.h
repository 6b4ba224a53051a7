/* SPDX-License-Identifier: Apache-2.0 */
/*
 * large.h - requests that take too long to read on a loop.
 *
 * A body above HX_LARGE_SIZE_MIN is read, parsed and hashed on one of a few threads, so that it
 * never delays other events of the loop. Smaller ones are read there, too, if many arrive in one
 * turn: a client can send hundreds of bodies up to their last byte, and then the last bytes at once.
 *
 *	loop: take up ──▶ reader: read, route, key ──▶ loop: claim ──▶ ...
 *
 * For requests of the proxy, the reader makes the fingerprint; on routes with a strategy, the key.
 *
 *  (1) From hx_large_ask() until its task has run, the reader owns the delivery, its exchange and
 *      its batch. The sender may disconnect meanwhile; the loop must not end.
 *  (2) The data that is read lies in the large itself. Its memory belongs to a place. There are as
 *      many places as readers: one wide, the others narrow (hx_memory_reader_share()). A body has
 *      its place from when it is taken up until it is claimed. A body that does not fit a narrow
 *      place is read again in the wide one, which holds one body at a time. A body that does not
 *      fit there is too large. If the daemon is out of memory, the sender must retry.
 *  (3) A batch is held until its last event. The loop's account (block_pool.h) counts its text
 *      before it is read; if too much is held, it is not read. A batch has a place only while the
 *      key of an event is made.
 *
 * turns.h chooses the next body: each address gets an equal share of the bytes read. No address
 * gets the last free reader, so a slow body does not delay other addresses. An address is the one
 * that the request counts for (origin.h); a trusted one has no such limit.
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

enum {
	/* Two milliseconds on a processor of 2020. */
	HX_LARGE_SIZE_MIN = 256 * 1024,

	/* What a loop reads in one turn. Then bodies above the second size are large, too. */
	HX_LARGE_TURN_MAX = 512 * 1024,
	HX_LARGE_BUSY_SIZE_MIN = 16 * 1024,
};

struct hx_config_route;
struct hx_delivery;

struct hx_large;

/* The slow part, on the reader's thread. */
typedef void hx_large_read_fn(struct hx_large *large);

/* Called after the read, on the loop's thread. */
typedef void hx_large_done_fn(struct hx_large *large);

struct hx_large {
	struct hx_delivery *delivery;
	hx_large_read_fn *read;
	hx_large_done_fn *done;
	enum hx_cloudevents_mode mode;
	bool is_open; /* the body was read; for a batch, all of it was checked */
	enum hapax_status status;
	struct hapax_error err;

	bool has_event; /* false: the batch has no more events */
	struct hx_cloudevent event;
	struct hapax_buf event_text;
	struct hapax_buf body_text;
	size_t noted;                        /* bytes of a batch's text in the loop's account */
	size_t share;                        /* memory of its place */
	bool is_short;                       /* the share was too small */
	const struct hx_config_route *route; /* NULL: no route matches, and there is no key */
	enum hapax_status key_status;
	struct hapax_error key_err;
	int64_t key_ns; /* time spent making the key */
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

/* The index of the wide place. */
enum { HX_READER_WIDE = 0 };

/* The reader threads. */
struct hx_reader {
	uint64_t hash_key[2];
	size_t thread_max; /* number of processors, within these limits */
	struct hx_mutex mutex;
	struct hx_cond wake;
	/* Locks: mutex for everything below. */
	struct hx_turns turns;
	bool is_taken[HX_READERS_MAX]; /* the places for bodies being read */
	bool is_stopped;
	size_t thread_count; /* started when no reader is free */
	struct hx_thread threads[HX_READERS_MAX];
};

void hx_reader_init(struct hx_reader *reader);

/* No delivery may be left. */
void hx_reader_done(struct hx_reader *reader);

/* Whether a reader must read the body; else the loop reads it in this turn, and it is counted. */
bool hx_large_is(struct hx_delivery *delivery);

/*
 * Calls read, then done. With a place, the reader may have the body in one piece, and done ends
 * with hx_large_leave(). After a failure nothing was started.
 */
enum hapax_status hx_large_start(
	struct hx_delivery *delivery, hx_large_read_fn *read, hx_large_done_fn *done,
	bool needs_place, struct hapax_error *err);

/*
 * For read, with a place: the body in one piece, and scratch, with the memory that the body leaves.
 * The caller frees scratch. If that memory is too small (is_short), read is called again in the
 * wide place; there, LIMIT is final.
 */
enum hapax_status hx_large_body(
	struct hx_large *large, struct hapax_bytes *ret_body, struct hapax_buf *scratch,
	struct hapax_error *err);

/* The body's memory is no longer needed: the next body may have its place. */
void hx_large_leave(struct hx_large *large);

/*
 * Takes up a delivery with a large body: one event, or several. As start; also NO_MEMORY if too
 * much is held for another batch, and LIMIT if the body can never fit.
 */
enum hapax_status hx_large_begin(
	struct hx_delivery *delivery, enum hx_cloudevents_mode mode, struct hapax_error *err);

/* Reads its event, or the next one of a batch; then claims it, or answers the batch. */
void hx_large_ask(struct hx_large *large);

/* Freed with the delivery. NULL is allowed. */
void hx_large_free(struct hx_large *large);

#endif
