/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - one submit, or one call, on its way to the server and back.
 *
 * Requests come from a pool that grows in blocks and is kept, so a busy store
 * allocates nothing per submit.
 *
 * Threads: push and give_back from any; take from the I/O thread.
 */
#ifndef HX_STORE_REDIS_REQUEST_H
#define HX_STORE_REDIS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "base/thread.h"

/* A command of which somebody waits for the reply. */
struct hx_redis_call {
	struct hapax_bytes command; /* whole */
	struct hapax_buf *reply;    /* the whole message; cleared first */
	enum hapax_status status;   /* of the journey; an error reply is a reply */
	struct hx_event done;
	/* NULL: somebody waits for done. Otherwise it runs on the I/O thread. */
	void (*fn)(struct hx_redis_call *call, void *context);
	void *context;
};

struct hx_redis_request {
	struct hx_redis_request *next;
	/* Either a call or operations. */
	struct hx_redis_call *call;
	struct hapax_op *ops;
	size_t count; /* 1 for a call */
	struct hapax_completion completion;
	int64_t deadline_ns;
	int partition; /* of a call, or of the only operation in a Cluster */

	/* The I/O thread's. */
	size_t sent;       /* operations that were handed to the connection */
	size_t in_flight;  /* commands that wait for their reply */
	size_t again_from; /* operations to be sent again, for want of scripts; SIZE_MAX: none */
	bool is_barred;    /* nothing more is sent until all that is in flight is answered */
	bool is_overtaken; /* something behind again_from took effect */
	bool is_uncertain; /* an answer got lost */
	bool is_pending;   /* in the list of those that have something to send */

	/* In a Cluster; see cluster.c. */
	struct hx_redis_request *parent;   /* the submit that this operation is part of */
	struct hx_redis_request *follower; /* is sent when this one is answered */
	unsigned hops;                     /* from server to server, without a pause */
	bool asks; /* says ASKING first: the slot is on its way to the server */
};

struct hx_redis_request_block;

struct hx_redis_request_queue {
	struct hx_mutex mutex;
	/* Locks: mutex for everything below. */
	struct hx_redis_request *first;
	struct hx_redis_request *last;
	struct hx_redis_request *free;
	struct hx_redis_request_block *blocks;
	size_t request_count; /* in all blocks */
};

/* HAPAX_ERR_NO_MEMORY: nothing was made. */
enum hapax_status hx_redis_request_queue_init(struct hx_redis_request_queue *queue);
void hx_redis_request_queue_done(struct hx_redis_request_queue *queue);

/* Append a copy of request. NO_MEMORY, or LIMIT with a million in the queue. */
enum hapax_status hx_redis_request_push(
	struct hx_redis_request_queue *queue, const struct hx_redis_request *request);

/* One that is in no queue, all zeros. NULL: no memory, or a million in use. */
struct hx_redis_request *hx_redis_request_borrow(struct hx_redis_request_queue *queue);

/* Take all that wait, in order; NULL: none. */
struct hx_redis_request *hx_redis_request_take(struct hx_redis_request_queue *queue);

void hx_redis_request_give_back(
	struct hx_redis_request_queue *queue, struct hx_redis_request *request);

#endif
