/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscriber.h - a connection on which the server reports the ends of records.
 *
 * The scripts publish them; see README.md. Every message is announced to the store's watchers.
 * Messages are lost while there is no connection, so waiters must also ask on a timer.
 *
 * Threads: the I/O thread of the client, except as noted.
 */
#ifndef HX_STORE_REDIS_SUBSCRIBER_H
#define HX_STORE_REDIS_SUBSCRIBER_H

#include <stdbool.h>

#include "net/redis_connection.h"

struct hx_redis_client;

struct hx_redis_subscriber {
	struct hx_redis_client *client;
	struct hx_redis_connection
		connection; /* hx_redis_client_stopped() is called when it closes */
	struct hx_task want;
	struct hx_task mute;
	struct hx_event muted;
	bool is_muted;
	size_t next; /* link whose server is tried next */
	bool is_wanted;
};

/* NO_MEMORY: nothing was created. */
enum hapax_status hx_redis_subscriber_init(
	struct hx_redis_subscriber *subscriber, struct hx_redis_client *client);

/* Its connection is closed. Does nothing for zeros. */
void hx_redis_subscriber_done(struct hx_redis_subscriber *subscriber);

/* The store has a watcher. Threads: any. */
void hx_redis_subscriber_want(struct hx_redis_subscriber *subscriber);

/* Announce nothing after this returns. Threads: any; blocks. */
void hx_redis_subscriber_mute(struct hx_redis_subscriber *subscriber);

#endif
