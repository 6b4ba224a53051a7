/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_queue.h - the queue of requests for the I/O thread of a store.
 *
 * The store defines its request: a struct of a fixed size that is copied in. Requests come from
 * a pool that grows in blocks and never shrinks, so a busy store allocates nothing per submit. A
 * taken request belongs to the taker until it is given back.
 *
 * Threads: push, borrow and give_back any; take and wait the I/O thread.
 */
#ifndef HX_STORE_REQUEST_QUEUE_H
#define HX_STORE_REQUEST_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/error.h>

#include "base/thread.h"

struct hx_request_slot;
struct hx_request_block;

struct hx_request_queue {
	size_t request_size;
	struct hx_mutex mutex;
	struct hx_cond wake;
	/* Locks: mutex for everything below. */
	struct hx_request_slot *first;
	struct hx_request_slot *last;
	struct hx_request_slot *free;
	struct hx_request_block *blocks;
	size_t request_count; /* in all blocks */
	bool is_waiting;      /* the I/O thread sleeps */
	bool is_stopped;
};

/* HAPAX_ERR_NO_MEMORY: nothing was created. */
enum hapax_status hx_request_queue_init(struct hx_request_queue *queue, size_t request_size);

/* The queue must be empty, and every taken or borrowed request given back. */
void hx_request_queue_done(struct hx_request_queue *queue);

/* Append a copy of request. NO_MEMORY, or LIMIT with a million in use: it was not appended. */
enum hapax_status hx_request_queue_push(struct hx_request_queue *queue, const void *request);

/*
 * Take all queued requests; returns the first. hx_request_queue_next() returns the others, in
 * order. NULL: none.
 */
void *hx_request_queue_take(struct hx_request_queue *queue);

/* The request behind a taken one; NULL: it was the last. */
void *hx_request_queue_next(const void *request);

/* Like take, but sleeps while the queue is empty. NULL: the queue was stopped and is empty. */
void *hx_request_queue_wait(struct hx_request_queue *queue);

/* Make wait return NULL once the queue is empty. */
void hx_request_queue_stop(struct hx_request_queue *queue);

/* A request that is in no queue, all zeros. NULL: no memory, or a million in use. */
void *hx_request_queue_borrow(struct hx_request_queue *queue);

/* Return a taken or borrowed request to the pool. */
void hx_request_queue_give_back(struct hx_request_queue *queue, void *request);

#endif
