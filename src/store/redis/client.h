/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - one connection to a Redis server, kept by a thread of its own.
 *
 * Submits are sent as they come, one command for each group, without waiting for the
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
 * Threads: hx_redis_client_submit() and _call() any.
 */
#ifndef HX_STORE_REDIS_CLIENT_H
#define HX_STORE_REDIS_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <hapax/ext/store_ops.h>

#include "net/connection.h"
#include "net/dial.h"
#include "net/resolver.h"
#include "net/tls.h"
#include "store/redis/operation.h"
#include "store/redis/place.h"
#include "store/redis/request.h"
#include "store/redis/session.h"
#include "wire/resp_reply.h"

/* A command that waits for its reply. */
struct hx_redis_unit {
	struct hx_redis_request *request;
	size_t first; /* operations of the request */
	size_t count;
	uint64_t end_bytes; /* of the connection's output, with this command */
	size_t reply_size;  /* as expected */
};

enum { HX_REDIS_UNITS_MAX = 1024 };

enum hx_redis_client_state {
	HX_REDIS_CLIENT_IDLE,    /* not connected, and nobody wants it to be */
	HX_REDIS_CLIENT_WAITING, /* for the next attempt */
	HX_REDIS_CLIENT_DIALLING,
	HX_REDIS_CLIENT_GREETING, /* the session is being set up */
	HX_REDIS_CLIENT_READY,
	HX_REDIS_CLIENT_STOPPED,
};

struct hx_redis_client {
	struct hapax_store *store;
	const struct hx_redis_place *place;
	const struct hapax_store_options *options; /* complete */
	const struct hx_net *net;
	_Atomic uint64_t removed; /* expired records that made room */

	struct hx_redis_request_queue queue;
	struct hx_task arrived;
	struct hx_task stop;
	struct hx_thread thread;
	bool has_thread;
	bool has_queue;
	bool has_reactor;

	/* The first connection decides whether the store opens. */
	struct hx_event opened;
	bool is_opened;
	struct hapax_error open_err;

	/* The I/O thread's. */
	enum hx_redis_client_state state;
	struct hx_reactor reactor;
	struct hx_resolver resolver;
	struct hx_dial dial;
	struct hx_connection connection;
	struct hx_tls_context *tls;
	struct hx_timer retry;
	struct hx_timer deadline;
	unsigned failures; /* attempts to connect, one after the other */
	bool needs_scripts;
	struct hx_redis_session session;
	struct hx_redis_scripts scripts;
	struct hx_redis_encoder encoder;
	struct hapax_buf output;
	struct hx_resp_scan scan;
	struct hx_redis_request *pending; /* has something to send */
	struct hx_redis_request *pending_last;
	struct hx_redis_unit units[HX_REDIS_UNITS_MAX]; /* a ring */
	size_t unit_first;
	size_t unit_count;
	size_t expected_bytes; /* of replies */
	int64_t answered_ns;   /* when the server last answered */
};

/*
 * Connect, and wait for it: at most options->timeout_ms. What client points to must
 * outlive it. On failure nothing is left behind.
 */
enum hapax_status hx_redis_client_open(
	struct hx_redis_client *client, struct hapax_store *store,
	const struct hx_redis_place *place, const struct hapax_store_options *options,
	const struct hx_net *net, struct hapax_error *err);

/* Nothing is in flight. */
void hx_redis_client_close(struct hx_redis_client *client);

/* See hapax_store_submit_fn. */
void hx_redis_client_submit(
	struct hx_redis_client *client, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

/* Send a command and wait for its reply, which goes into reply. */
enum hapax_status hx_redis_client_call(
	struct hx_redis_client *client, struct hapax_bytes command, struct hapax_buf *reply,
	struct hapax_error *err);

/* The time to send along: -1 for the server's own. */
int64_t hx_redis_client_now_ms(const struct hx_redis_client *client);

#endif
