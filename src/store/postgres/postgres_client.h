/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_client.h - a pool of connections to a PostgreSQL server, run by its own thread.
 *
 * When a connection becomes free, all waiting operations go into its next transaction. The busier
 * the store, the more operations share a commit. A connection is added when all others are busy.
 *
 * Threads: hx_postgres_client_submit(), _call() and _guarantee() any.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_CLIENT_H
#define HX_STORE_POSTGRES_POSTGRES_CLIENT_H

#include <hapax/ext/store_ops.h>

#include "store/postgres/postgres_pipeline.h"
#include "store/postgres/postgres_listener.h"
#include "store/request_queue.h"

struct hx_postgres_client {
	struct hapax_store *store;
	const struct hx_postgres_place *place;
	const struct hapax_store_options *options; /* complete */
	struct hx_request_queue queue;             /* of struct hx_postgres_request */
	struct hx_task arrived;
	struct hx_task stop;
	struct hx_thread thread;
	bool has_thread;
	bool has_queue;
	bool has_reactor;
	struct hx_mutex guarantee_mutex;
	char guarantee[HX_POSTGRES_GUARANTEE_SIZE]; /* Locks: guarantee_mutex */

	/* The first connection decides whether the store opens. */
	struct hx_event opened;
	bool is_opened;
	struct hapax_error open_err;

	/* Used by the I/O thread only. */
	bool is_stopped;
	bool is_pumping;
	struct hx_reactor reactor;
	struct hx_timer retry;    /* when to connect again */
	struct hx_timer deadline; /* of the first waiting request */
	unsigned failures;        /* failed attempts to connect in a row */
	struct hx_postgres_session session;
	struct hx_postgres_request *pending;
	struct hx_postgres_pipeline *pipelines;
	unsigned pipeline_count;
	unsigned pipelines_made;
	struct hx_postgres_listener listener;
};

/*
 * Connect, waiting at most options->timeout_ms. The objects that client points to must outlive
 * it. On failure nothing remains allocated.
 */
enum hapax_status hx_postgres_client_open(
	struct hx_postgres_client *client, struct hapax_store *store,
	const struct hx_postgres_place *place, const struct hapax_store_options *options,
	struct hapax_error *err);

/* No operation may be in progress. */
void hx_postgres_client_close(struct hx_postgres_client *client);

/* See hapax_store_submit_fn. */
void hx_postgres_client_submit(
	struct hx_postgres_client *client, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

/* Run a statement and wait for its rows. A server error is returned. Owned: call->result. */
enum hapax_status hx_postgres_client_call(
	struct hx_postgres_client *client, struct hx_postgres_call *call, struct hapax_error *err);

/* See hapax_store_guarantee(). */
void hx_postgres_client_guarantee(struct hx_postgres_client *client, char *ret_text, size_t size);

#endif
