/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - routes operations to the servers of a Redis Cluster.
 *
 * Every operation of a submit travels alone, to the master of its partition. The submit completes
 * when all are answered. If a server is not the right one (MOVED, ASK) or not ready (TRYAGAIN,
 * CLUSTERDOWN), nothing was done. The operation is then resent, elsewhere or later, until its
 * deadline. When a link is lost or silent, or a server answers MOVED, the client asks for the map
 * again and reroutes waiting operations.
 *
 * Threads: the I/O thread, but for hx_redis_cluster_found().
 */
#ifndef HX_STORE_REDIS_CLUSTER_H
#define HX_STORE_REDIS_CLUSTER_H

#include "store/redis/redis_client.h"

/* NO_MEMORY: nothing was created. */
enum hapax_status hx_redis_cluster_new(struct hx_redis_client *client);

/* Does nothing if there is none. */
void hx_redis_cluster_free(struct hx_redis_client *client);

/*
 * After the first connections: find the ledger, or create it; read the epoch of a test clock.
 * Blocks; called by the opening thread.
 */
enum hapax_status hx_redis_cluster_found(struct hx_redis_client *client, struct hapax_error *err);

void hx_redis_cluster_add(struct hx_redis_client *client, struct hx_redis_request *request);

/* Send a call or a single operation to the server of its partition, or let it wait for one. */
void hx_redis_cluster_dispatch(struct hx_redis_client *client, struct hx_redis_request *request);

void hx_redis_cluster_pump(struct hx_redis_client *client);

/* A request with a parent has ended. */
void hx_redis_cluster_child_done(struct hx_redis_client *client, struct hx_redis_request *child);

/* The server at link did nothing, according to reply: see hx_redis_error_is_elsewhere(). */
void hx_redis_cluster_redirect(
	struct hx_redis_link *link, struct hx_redis_request *request, struct hapax_bytes reply);

/* Reports of link.c: see hx_redis_client_link_ready() and the following. */
void hx_redis_cluster_ready(struct hx_redis_client *client, struct hx_redis_link *link);
bool hx_redis_cluster_failed(
	struct hx_redis_client *client, struct hx_redis_link *link, const struct hapax_error *err);
void hx_redis_cluster_lost(struct hx_redis_client *client);

#endif
