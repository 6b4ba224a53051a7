/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - the store's way to one Redis server: a connection, and what is on its way over it.
 *
 * Requests are sent as they come, one command for each group, without waiting for the
 * answers to those before. When the connection is lost,
 *
 *  (1) a command whose last byte had not been given to the kernel was not done: the
 *      server never saw it whole;
 *  (2) of any other command without answer nobody knows: UNCERTAIN, unless it only
 *      reads;
 *  (3) what was not sent yet waits for the next connection, until its deadline.
 *
 * Nothing is ever sent a second time unless the server said that it did nothing.
 *
 * Threads: the I/O thread of the client.
 */
#ifndef HX_STORE_REDIS_LINK_H
#define HX_STORE_REDIS_LINK_H

#include <stdbool.h>

#include "net/redis_connection.h"
#include "store/redis/redis_request.h"
#include "store/redis/redis_session.h"

struct hx_redis_client;

/* A command that waits for its reply, or the part of a command that one request has in it. */
struct hx_redis_unit {
	struct hx_redis_request *request; /* NULL: a reply that says nothing, to ASKING */
	size_t first;                     /* operations of the request */
	size_t count;
	uint64_t end_bytes; /* of the connection's output, with this command */
	size_t reply_size;  /* as expected */
	bool is_usual;      /* an operation with a script of its own: see redis_operation.h */
	bool is_joined;     /* in the command, and the reply, of the unit before it */
};

enum { HX_REDIS_BATCH_OPS_MAX = 32 };

/* Usual operations that will share a command. Their units are the last ones. */
struct hx_redis_batch {
	struct hapax_op *ops[HX_REDIS_BATCH_OPS_MAX];
	size_t count;
	size_t size; /* of the command, roughly */
	unsigned partition;
};

enum { HX_REDIS_UNITS_MAX = 1024 };

struct hx_redis_link {
	struct hx_redis_client *client;
	struct hx_endpoint endpoint;
	struct hx_redis_connection connection;
	struct hx_timer deadline;
	bool needs_scripts;
	struct hx_redis_session session;
	struct hx_redis_request *pending; /* has something to send */
	struct hx_redis_request *pending_last;
	struct hx_redis_unit units[HX_REDIS_UNITS_MAX]; /* a ring */
	size_t unit_first;
	size_t unit_count;
	size_t expected_bytes;       /* of replies */
	struct hx_redis_batch batch; /* empty but while commands are made */
	int64_t answered_ns;         /* when the server last answered */
};

/* link is all zeros. NO_MEMORY: nothing was made. */
enum hapax_status hx_redis_link_init(
	struct hx_redis_link *link, struct hx_redis_client *client,
	const struct hx_endpoint *endpoint);

/* Its connection is closed, or the reactor has stopped. */
void hx_redis_link_done(struct hx_redis_link *link);

/* Begin to connect; it is CLOSED. */
void hx_redis_link_connect(struct hx_redis_link *link);

/* Write what is in the client's output buffer to the connection. */
enum hapax_status hx_redis_link_write(struct hx_redis_link *link);

#endif
