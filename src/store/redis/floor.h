/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor.h - tokens of a Cluster that lie above those of the records that were loaded.
 *
 * Each partition has a counter of its own, but a record that comes from another ledger says
 * how far tokens had got there for all keys (`store copy`, `store restored`). So before a
 * record is loaded, the counters of all partitions are raised to its token, unless they
 * were before.
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

/* Must an operation wait until the counters were raised? */
bool hx_redis_floor_is_below(const struct hx_redis_floor *floor, const struct hapax_op *op);

/* Hold a request until they are; then it is dispatched, or fails. */
void hx_redis_floor_hold(struct hx_redis_floor *floor, struct hx_redis_request *request);

#endif
