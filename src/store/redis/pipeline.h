/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - what waits to be sent and what waits for its reply, for client.c alone.
 *
 * Threads: the I/O thread.
 */
#ifndef HX_STORE_REDIS_PIPELINE_H
#define HX_STORE_REDIS_PIPELINE_H

#include "store/redis/client.h"

/* A request has come. */
void hx_redis_pipeline_add(struct hx_redis_client *client, struct hx_redis_request *request);

/* Send what can be sent; connect if something waits and nobody is connected. */
void hx_redis_pipeline_pump(struct hx_redis_client *client);

/* One whole reply to the first command in flight. False: the stream is of no use any more. */
bool hx_redis_pipeline_take(struct hx_redis_client *client, struct hapax_bytes reply);

/* The most bytes that the next reply can rightly have. */
size_t hx_redis_pipeline_reply_size_max(struct hx_redis_client *client);

/* The connection is gone: whatever is in flight ends, as client.h says. */
void hx_redis_pipeline_lose(struct hx_redis_client *client);

/* The function of client->deadline. */
void hx_redis_pipeline_deadline(struct hx_timer *timer);

/* In client.c: begin to connect; write client->output to the connection. */
void hx_redis_client_connect(struct hx_redis_client *client);
enum hapax_status hx_redis_client_write(struct hx_redis_client *client);

#endif
