/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_pipeline.h - takes requests, runs them on one connection, and answers them.
 *
 * A pipeline turns the operations of its requests into transactions, one after the other.
 * Operations of many requests share a transaction, ordered by key, so that transactions never
 * deadlock with each other. A group is a transaction of its own.
 *
 * A failed transaction was rolled back. If it held several operations, they are resent one by
 * one, so that one failing operation does not fail the others. When the connection is lost,
 * operations in progress are UNCERTAIN, unless they only read or the server cannot have seen all
 * of the transaction. Unsent operations are UNAVAILABLE.
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
	/* Operations of several requests share a transaction: one sync serves them all. */
	HX_POSTGRES_BATCH_OPS = 256,
};

struct hx_postgres_client;

struct hx_postgres_pipeline {
	struct hx_postgres_connection connection;
	struct hx_postgres_client *client;
	struct hx_postgres_request *requests; /* taken; NULL: the pipeline is free */
	struct hapax_op *ops[HX_POSTGRES_OPS_MAX];
	size_t count; /* operations of the transaction, ordered by key */
	enum hx_postgres_group kind;
	bool is_split; /* they go one by one: ops[next] is in progress */
	size_t next;
	int64_t split_ends_ns; /* operations not sent by then are not sent */
	unsigned repeats;      /* of this transaction, after a deadlock or for more room */
	struct hx_postgres_arguments arguments;
};

enum hapax_status hx_postgres_pipeline_init(
	struct hx_postgres_pipeline *pipeline, struct hx_postgres_client *client);
void hx_postgres_pipeline_done(struct hx_postgres_pipeline *pipeline);

/* The connection is IDLE and the pipeline can take requests. */
bool hx_postgres_pipeline_is_free(const struct hx_postgres_pipeline *pipeline);

/* Take the front of *requests that fits one transaction, off the list, and begin. */
void hx_postgres_pipeline_take(
	struct hx_postgres_pipeline *pipeline, struct hx_postgres_request **requests);

/* A transaction has ended. Owned: result. */
void hx_postgres_pipeline_answer(struct hx_postgres_pipeline *pipeline, PGresult *result);

/* The connection is closed. */
void hx_postgres_pipeline_lose(struct hx_postgres_pipeline *pipeline);

/* End a request that no pipeline took. */
void hx_postgres_request_fail(
	struct hx_postgres_client *client, struct hx_postgres_request *request,
	enum hapax_status status);

#endif
