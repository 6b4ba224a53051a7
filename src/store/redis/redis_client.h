/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_client.h - connects to a Redis server or the masters of a Cluster: an I/O thread and its
 * links.
 *
 * Threads: hx_redis_client_submit(), _call() and _guarantee() any.
 */
#ifndef HX_STORE_REDIS_REDIS_CLIENT_H
#define HX_STORE_REDIS_REDIS_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <hapax/ext/store_ops.h>

#include "net/resolver.h"
#include "net/redis_place.h"
#include "net/tls/tls.h"
#include "store/redis/link.h"
#include "store/redis/redis_operation.h"
#include "store/redis/redis_request.h"
#include "store/redis/subscriber.h"
#include "store/request_queue.h"

struct hx_redis_cluster;

enum { HX_REDIS_LINKS_MAX = 256 };

struct hx_redis_client {
	struct hapax_store *store;
	const struct hx_redis_place *place;
	const struct hapax_store_options *options; /* complete */
	const struct hx_net *net;
	const struct hapax_clock *clock; /* of a test; NULL: the server's clock */
	int64_t epoch_ms;                /* of that clock, as the ledger keeps it */
	_Atomic uint64_t removed;        /* expired records removed to make room */

	struct hx_request_queue queue; /* of struct hx_redis_request */
	struct hx_task arrived;
	struct hx_task stop;
	struct hx_thread thread;
	bool has_thread;
	bool has_queue;
	bool has_reactor;

	/* The first connections decide whether the store opens. */
	struct hx_event opened;
	bool is_opened;
	bool is_durable; /* at open */
	struct hapax_error open_err;

	struct hx_mutex guarantee_mutex;
	char guarantee[HX_REDIS_GUARANTEE_SIZE]; /* Locks: guarantee_mutex */

	/* Used by the I/O thread only. */
	bool is_stopping;
	bool must_be_durable; /* required, or promised before */
	size_t open_count;    /* connections that must still close */
	struct hx_reactor reactor;
	struct hx_resolver resolver;
	struct hx_tls_context *tls;
	struct hx_redis_scripts scripts;
	struct hx_redis_encoder encoder;
	struct hapax_buf output;
	struct hx_redis_cluster *cluster; /* NULL: one server */
	struct hx_redis_link *links[HX_REDIS_LINKS_MAX];
	size_t link_count;
	struct hx_redis_subscriber subscriber;
};

/*
 * Connect, waiting at most options->timeout_ms. The objects that client points to must outlive
 * it. On failure nothing remains allocated.
 */
enum hapax_status hx_redis_client_open(
	struct hx_redis_client *client, struct hapax_store *store,
	const struct hx_redis_place *place, const struct hapax_store_options *options,
	const struct hx_net *net, struct hapax_error *err);

/* No operation may be in progress. */
void hx_redis_client_close(struct hx_redis_client *client);

/* See hapax_store_submit_fn. */
void hx_redis_client_submit(
	struct hx_redis_client *client, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

/* Send a command to the server of a partition (see redis_place.h) and wait for its reply. */
enum hapax_status hx_redis_client_call(
	struct hx_redis_client *client, unsigned partition, struct hapax_bytes command,
	struct hapax_buf *reply, struct hapax_error *err);

/*
 * The same in two steps, to ask many servers at once. command and reply of call are set; call
 * must not move until the wait ends.
 */
void hx_redis_client_call_begin(
	struct hx_redis_client *client, unsigned partition, struct hx_redis_call *call);
enum hapax_status hx_redis_client_call_wait(struct hx_redis_call *call, struct hapax_error *err);

/* See hapax_store_guarantee(). */
void hx_redis_client_guarantee(struct hx_redis_client *client, char *ret_text, size_t size);

/* The time to send; -1 for the server's clock. */
int64_t hx_redis_client_now_ms(const struct hx_redis_client *client);

/* Add an unconnected link. NULL: no memory, or too many. */
struct hx_redis_link *hx_redis_client_add_link(
	struct hx_redis_client *client, const struct hx_endpoint *endpoint);

/* The store is open, or err says why not. */
void hx_redis_client_opened(struct hx_redis_client *client, const struct hapax_error *err);

/* Reports of link.c. Failed: true to retry. Closed: true if nothing remains to be done. */
void hx_redis_client_link_ready(struct hx_redis_link *link);
bool hx_redis_client_link_failed(struct hx_redis_link *link, const struct hapax_error *err);
bool hx_redis_client_link_closed(struct hx_redis_link *link);

/* While stopping: a connection is closed. */
void hx_redis_client_stopped(struct hx_redis_client *client);

/* Combine the promises of all connected servers. */
void hx_redis_client_judge(struct hx_redis_client *client);

#endif
