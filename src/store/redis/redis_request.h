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

/* A command whose caller waits for the reply. */
struct hx_redis_call {
	struct hapax_bytes command; /* complete */
	struct hapax_buf *reply;    /* the whole message; cleared first */
	enum hapax_status status;   /* of the transfer; an error reply is a reply */
	struct hx_event done;
	/* NULL: a caller waits for done. Otherwise it runs on the I/O thread. */
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

	/* Used by the I/O thread only. */
	size_t sent;       /* operations handed to the connection */
	size_t in_flight;  /* commands that wait for their reply */
	size_t again_from; /* operations to resend, for lack of scripts; SIZE_MAX: none */
	bool is_barred;    /* send nothing until all commands in flight are answered */
	bool is_overtaken; /* an operation after again_from took effect */
	bool is_uncertain; /* an answer was lost */
	bool is_pending;   /* in the list of requests to send */

	/* In a Cluster; see cluster.c. */
	struct hx_redis_request *parent;   /* the submit that this operation is part of */
	struct hx_redis_request *follower; /* begun when this one is done */
	unsigned hops;                     /* redirects in a row */
	bool asks; /* sends ASKING first: the slot is moving to the server */
};

#endif
