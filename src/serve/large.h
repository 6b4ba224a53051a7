/* SPDX-License-Identifier: Apache-2.0 */
/*
 * large.h - requests that take too long to read for a loop.
 *
 * A body above HX_LARGE_SIZE_MIN is read, parsed and hashed on a thread of its own, one
 * after the other, so that whatever its size no other event of the loop waits for it.
 *
 *	loop: take up ──▶ reader: read, route, key ──▶ loop: claim ──▶ ...
 *
 * Of the proxy's requests only the fingerprint is made there.
 *
 *  (1) From hx_large_ask() until its task has run, the delivery, its exchange and its
 *      batch are the reader's. Its sender may go away meanwhile, its loop not end.
 *  (2) What is read lies in the large itself; only one at a time has it, apart from the
 *      texts of batches. The loop's account (block_pool.h) has all of them, that of a batch
 *      from before it is read: when too much is held, it is not.
 *
 * Threads: the loop's; what the reader's does is in large.c.
 */
#ifndef HX_SERVE_LARGE_H
#define HX_SERVE_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/key.h>

#include "base/buf.h"
#include "base/thread.h"
#include "net/reactor.h"
#include "wire/cloudevents.h"

/* Two milliseconds of a processor of 2020. */
enum { HX_LARGE_SIZE_MIN = 256 * 1024 };

struct hx_config_route;
struct hx_delivery;

struct hx_large;

/* What takes long, on the reader's thread; scratch is for this one. */
typedef void hx_large_read_fn(struct hx_large *large, struct hapax_buf *scratch);

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
	size_t noted; /* of these, and of the batch's text, in the loop's account */
	const struct hx_config_route *route; /* NULL: none takes it, and there is no key */
	enum hapax_status key_status;
	struct hapax_error key_err;
	int64_t key_ns; /* how long it took to make */
	struct hapax_key key;

	struct hx_task task;
	struct hx_large *next; /* among those that wait */
};

/* The thread that reads. */
struct hx_reader {
	struct hx_mutex mutex;
	struct hx_cond wake;
	/* Locks: mutex for everything below. */
	struct hx_large *first;
	struct hx_large *last;
	bool is_stopped;
	bool has_thread; /* started with the first large event */
	struct hx_thread thread;
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
 * also when the loop holds too much for another batch.
 */
enum hapax_status hx_large_begin(
	struct hx_delivery *delivery, enum hx_cloudevents_mode mode, struct hapax_error *err);

/* Read its event, of a batch the next one; then it is claimed, or the batch is answered. */
void hx_large_ask(struct hx_large *large);

/* With the delivery. NULL is allowed. */
void hx_large_free(struct hx_large *large);

#endif
