/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - the path to one Redis server: a connection, and the commands in flight on it.
 *
 * Requests are sent as they arrive, one command for each group, without waiting for earlier
 * answers. When the connection is lost,
 *
 *  (1) a command whose last byte the kernel did not accept was not done: the server never saw it
 *      whole;
 *  (2) any other command without an answer is UNCERTAIN, unless it only reads;
 *  (3) unsent requests wait for the next connection, until their deadline.
 *
 * A command is resent only if the server answered that it did nothing.
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

/* A command that waits for its reply, or one request's part of such a command. */
struct hx_redis_unit {
	struct hx_redis_request *request; /* NULL: an empty reply, to ASKING */
	size_t first;                     /* operations of the request */
	size_t count;
	uint64_t end_bytes; /* of the connection's output, including this command */
	size_t reply_size;  /* as expected */
	bool is_usual;      /* an operation with its own script: see redis_operation.h */
	bool is_joined;     /* shares the command and reply of the previous unit */
};

enum { HX_REDIS_BATCH_OPS_MAX = 32 };

/* Usual operations that will share a command. Their units are the last ones. */
struct hx_redis_batch {
	struct hapax_op *ops[HX_REDIS_BATCH_OPS_MAX];
	size_t count;
	size_t size; /* approximate size of the command */
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
	struct hx_redis_batch batch; /* empty except while commands are built */
	int64_t answered_ns;         /* when the server last answered */
};

/* link is all zeros. NO_MEMORY: nothing was created. */
enum hapax_status hx_redis_link_init(
	struct hx_redis_link *link, struct hx_redis_client *client,
	const struct hx_endpoint *endpoint);

/* Its connection is closed, or the reactor has stopped. */
void hx_redis_link_done(struct hx_redis_link *link);

/* Begin to connect; the link must be CLOSED. */
void hx_redis_link_connect(struct hx_redis_link *link);

/* Write the client's output buffer to the connection. */
enum hapax_status hx_redis_link_write(struct hx_redis_link *link);

#endif
