/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - submits on their way to the I/O thread.
 *
 * Requests come from a pool that grows in blocks and is kept, so a busy store
 * allocates nothing per submit.
 *
 * Threads: push from any; take and give_back from the I/O thread.
 */
#ifndef HX_STORE_SQLITE_QUEUE_H
#define HX_STORE_SQLITE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/thread.h"
#include "store/sqlite/request.h"

struct hx_sqlite_queue_block;

struct hx_sqlite_queue {
	struct hx_mutex mutex;
	struct hx_cond wake;
	/* Locks: mutex for everything below. */
	struct hx_sqlite_request *first;
	struct hx_sqlite_request *last;
	struct hx_sqlite_request *free;
	struct hx_sqlite_queue_block *blocks;
	size_t request_count; /* in all blocks */
	bool is_waiting;      /* the I/O thread sleeps */
	bool is_stopped;
};

/* HAPAX_ERR_NO_MEMORY: nothing was made. */
enum hapax_status hx_sqlite_queue_init(struct hx_sqlite_queue *queue);
void hx_sqlite_queue_done(struct hx_sqlite_queue *queue);

/*
 * Append a submit. HAPAX_ERR_NO_MEMORY or, with a million in the queue,
 * HAPAX_ERR_LIMIT: it was not appended.
 */
enum hapax_status hx_sqlite_queue_push(
	struct hx_sqlite_queue *queue, struct hapax_op *ops, size_t count,
	struct hapax_completion completion, int64_t deadline_ns);

/*
 * Take submits from the front, together at most ops_max operations, or one submit
 * that is larger. Blocks while there are none; NULL when the queue was stopped and
 * is empty.
 */
struct hx_sqlite_request *hx_sqlite_queue_take(struct hx_sqlite_queue *queue, size_t ops_max);

/* Return what was taken to the pool. */
void hx_sqlite_queue_give_back(struct hx_sqlite_queue *queue, struct hx_sqlite_request *requests);

/* Let take return NULL once the queue is empty. */
void hx_sqlite_queue_stop(struct hx_sqlite_queue *queue);

#endif
