/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor.h - keeps the tokens of a Cluster above those of loaded records.
 *
 * Each partition has its own counter. A record from another ledger (`store copy`, `store
 * restored`) shows how far that ledger's tokens had got for all keys. Before a record is loaded,
 * the counters of all partitions are therefore raised to its token, if they are lower.
 *
 * Threads: the I/O thread.
 */
#ifndef HX_STORE_REDIS_FLOOR_H
#define HX_STORE_REDIS_FLOOR_H

#include "store/redis/redis_client.h"

struct hx_redis_floor;

/* NULL: no memory. */
struct hx_redis_floor *hx_redis_floor_new(struct hx_redis_client *client);
void hx_redis_floor_free(struct hx_redis_floor *floor);

/* Must an operation wait until the counters are raised? */
bool hx_redis_floor_is_below(const struct hx_redis_floor *floor, const struct hapax_op *op);

/* Hold a request until then; it is then dispatched, or fails. */
void hx_redis_floor_hold(struct hx_redis_floor *floor, struct hx_redis_request *request);

#endif
