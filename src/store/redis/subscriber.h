/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscriber.h - a connection over which the server tells that records came to an end.
 *
 * The scripts publish it; see README.md. Every message is announced to those who watch the
 * store. What is said while there is no connection is not heard: whoever waits for a
 * record must also ask now and then.
 *
 * Threads: the I/O thread of the client, but where it says so.
 */
#ifndef HX_STORE_REDIS_SUBSCRIBER_H
#define HX_STORE_REDIS_SUBSCRIBER_H

#include <stdbool.h>

#include "net/redis_connection.h"

struct hx_redis_client;

struct hx_redis_subscriber {
	struct hx_redis_client *client;
	struct hx_redis_connection connection; /* closing it is told to hx_redis_client_stopped() */
	struct hx_task want;
	struct hx_task mute;
	struct hx_event muted;
	bool is_muted;
	size_t next; /* link whose server is tried next */
	bool is_wanted;
};

/* NO_MEMORY: nothing was made. */
enum hapax_status hx_redis_subscriber_init(
	struct hx_redis_subscriber *subscriber, struct hx_redis_client *client);

/* Its connection is closed. Does nothing for zeros. */
void hx_redis_subscriber_done(struct hx_redis_subscriber *subscriber);

/* Somebody watches the store. Threads: any. */
void hx_redis_subscriber_want(struct hx_redis_subscriber *subscriber);

/* Announce nothing any more, from the return of this on. Threads: any; blocks. */
void hx_redis_subscriber_mute(struct hx_redis_subscriber *subscriber);

#endif
