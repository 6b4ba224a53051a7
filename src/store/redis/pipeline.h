/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - the requests to send and the commands that wait for a reply, of one link.
 *
 * Threads: the I/O thread.
 */
#ifndef HX_STORE_REDIS_PIPELINE_H
#define HX_STORE_REDIS_PIPELINE_H

#include "store/redis/link.h"

void hx_redis_pipeline_add(struct hx_redis_link *link, struct hx_redis_request *request);

/* Remove a waiting request of which nothing was sent; it goes elsewhere. */
void hx_redis_pipeline_withdraw(struct hx_redis_link *link, struct hx_redis_request *request);

/* End a request that is in no list: every operation has its answer. */
void hx_redis_request_end(struct hx_redis_client *client, struct hx_redis_request *request);

/* End every undecided operation of request with status. */
void hx_redis_request_fail(struct hx_redis_request *request, enum hapax_status status);

/* Send what can be sent; connect if a request waits without a connection. */
void hx_redis_pipeline_pump(struct hx_redis_link *link);

/* Take one whole reply to the first command in flight. False: the stream is unusable. */
bool hx_redis_pipeline_take(struct hx_redis_link *link, struct hapax_bytes reply);

/* The largest valid size of the next reply; 0: none is due. */
size_t hx_redis_pipeline_reply_size_max(struct hx_redis_link *link);

/* The connection is lost: end all commands in flight, as link.h says. */
void hx_redis_pipeline_lose(struct hx_redis_link *link);

/* The function of link->deadline. */
void hx_redis_pipeline_deadline(struct hx_timer *timer);

#endif
