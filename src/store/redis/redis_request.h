/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_request.h - one submit, or one call, on its way to the server and back.
 */
#ifndef HX_STORE_REDIS_REDIS_REQUEST_H
#define HX_STORE_REDIS_REDIS_REQUEST_H

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
	struct hx_redis_request *follower; /* begun when this one is done */
	unsigned hops;                     /* from server to server, without a pause */
	bool asks; /* says ASKING first: the slot is on its way to the server */
};

#endif
