/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - what waits to be sent and what waits for its reply, of one link.
 *
 * Threads: the I/O thread.
 */
#ifndef HX_STORE_REDIS_PIPELINE_H
#define HX_STORE_REDIS_PIPELINE_H

#include "store/redis/link.h"

/* A request has come. */
void hx_redis_pipeline_add(struct hx_redis_link *link, struct hx_redis_request *request);

/* A request that waits and of which nothing was sent goes elsewhere. */
void hx_redis_pipeline_withdraw(struct hx_redis_link *link, struct hx_redis_request *request);

/* A request that is in no list has come to its end: every operation has its answer. */
void hx_redis_request_end(struct hx_redis_client *client, struct hx_redis_request *request);

/* Every operation of request without answer ends with status. */
void hx_redis_request_fail(struct hx_redis_request *request, enum hapax_status status);

/* Send what can be sent; connect if something waits and nobody is connected. */
void hx_redis_pipeline_pump(struct hx_redis_link *link);

/* One whole reply to the first command in flight. False: the stream is of no use any more. */
bool hx_redis_pipeline_take(struct hx_redis_link *link, struct hapax_bytes reply);

/* The most bytes that the next reply can rightly have; 0: none is due. */
size_t hx_redis_pipeline_reply_size_max(struct hx_redis_link *link);

/* The connection is gone: whatever is in flight ends, as link.h says. */
void hx_redis_pipeline_lose(struct hx_redis_link *link);

/* The function of link->deadline. */
void hx_redis_pipeline_deadline(struct hx_timer *timer);

#endif
