/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - which server of a Redis Cluster an operation goes to.
 *
 * Every operation of a submit travels by itself, to the master of its partition; they are
 * put together again when all are answered. When a server says that it is not the right
 * one (MOVED, ASK) or not now (TRYAGAIN, CLUSTERDOWN), nothing was done, and the operation
 * is sent again, elsewhere or later, until its deadline. When a link is lost or silent, or a
 * server says MOVED, the map of the Cluster is asked for again, and what waits goes where
 * it says.
 *
 * Threads: the I/O thread, but for hx_redis_cluster_found().
 */
#ifndef HX_STORE_REDIS_CLUSTER_H
#define HX_STORE_REDIS_CLUSTER_H

#include "store/redis/redis_client.h"

/* NO_MEMORY: nothing was made. */
enum hapax_status hx_redis_cluster_new(struct hx_redis_client *client);

/* Does nothing if there is none. */
void hx_redis_cluster_free(struct hx_redis_client *client);

/*
 * After the first connections: see that a ledger is there, or make one; read the epoch of
 * a test's clock. Blocks; by the thread that opens.
 */
enum hapax_status hx_redis_cluster_found(struct hx_redis_client *client, struct hapax_error *err);

/* A request has come. */
void hx_redis_cluster_add(struct hx_redis_client *client, struct hx_redis_request *request);

/* Send a call or a single operation to the server of its partition, or let it wait for one. */
void hx_redis_cluster_dispatch(struct hx_redis_client *client, struct hx_redis_request *request);

/* Send what can be sent. */
void hx_redis_cluster_pump(struct hx_redis_client *client);

/* A request with a parent has come to its end. */
void hx_redis_cluster_child_done(struct hx_redis_client *client, struct hx_redis_request *child);

/* The server at link said with reply that it did nothing: see hx_redis_error_is_elsewhere(). */
void hx_redis_cluster_redirect(
	struct hx_redis_link *link, struct hx_redis_request *request, struct hapax_bytes reply);

/* What link.c reports: see hx_redis_client_link_ready() and so on. */
void hx_redis_cluster_ready(struct hx_redis_client *client, struct hx_redis_link *link);
bool hx_redis_cluster_failed(
	struct hx_redis_client *client, struct hx_redis_link *link, const struct hapax_error *err);
void hx_redis_cluster_lost(struct hx_redis_client *client);

#endif
