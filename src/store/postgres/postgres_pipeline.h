/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_pipeline.h - requests on one connection, from being taken to being answered.
 *
 * A pipeline takes some requests, turns their operations into transactions one after the
 * other, and completes them. Operations of many requests share a transaction, ordered by
 * key, so that two transactions never wait for each other in a circle; a group is a
 * transaction of its own.
 *
 * A transaction that fails was rolled back. If it held several operations, they are sent
 * again one by one, so that one that cannot go does not take the others with it. When the
 * connection is lost, what was under way is UNCERTAIN (unless it only reads, or the server
 * cannot have seen all of it), and what was not sent yet is UNAVAILABLE.
 *
 * Threads: the I/O thread.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_PIPELINE_H
#define HX_STORE_POSTGRES_POSTGRES_PIPELINE_H

#include <hapax/ext/store_ops.h>

#include "store/postgres/postgres_connection.h"
#include "store/postgres/postgres_operation.h"
#include "store/postgres/postgres_request.h"

enum {
	/* Operations of several requests in one transaction: one sync serves them all. */
	HX_POSTGRES_BATCH_OPS = 256,
};

struct hx_postgres_client;

struct hx_postgres_pipeline {
	struct hx_postgres_connection connection;
	struct hx_postgres_client *client;
	struct hx_postgres_request *requests; /* taken; NULL: it is free */
	struct hapax_op *ops[HX_POSTGRES_OPS_MAX];
	size_t count; /* operations of the transaction, in the order of their keys */
	enum hx_postgres_group kind;
	bool is_split; /* they go one by one: ops[next] is under way */
	size_t next;
	int64_t split_ends_ns; /* those that have not been under way by then never are */
	unsigned repeats;      /* of this transaction, after a deadlock or for more room */
	struct hx_postgres_arguments arguments;
};

enum hapax_status hx_postgres_pipeline_init(
	struct hx_postgres_pipeline *pipeline, struct hx_postgres_client *client);
void hx_postgres_pipeline_done(struct hx_postgres_pipeline *pipeline);

/* IDLE, and free to take something. */
bool hx_postgres_pipeline_is_free(const struct hx_postgres_pipeline *pipeline);

/*
 * Take from the front of *requests what goes into one transaction, and begin. What is
 * taken leaves the list.
 */
void hx_postgres_pipeline_take(
	struct hx_postgres_pipeline *pipeline, struct hx_postgres_request **requests);

/* A transaction has ended; result is owned. */
void hx_postgres_pipeline_answer(struct hx_postgres_pipeline *pipeline, PGresult *result);

/* The connection is closed. */
void hx_postgres_pipeline_lose(struct hx_postgres_pipeline *pipeline);

/* End a request that nobody took. */
void hx_postgres_request_fail(
	struct hx_postgres_client *client, struct hx_postgres_request *request,
	enum hapax_status status);

#endif
