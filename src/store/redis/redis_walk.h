/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_walk.h - operations on the whole ledger: scan, statistics, sweep, counters.
 *
 * Each makes one or more calls that block only the caller's thread. A script reads a bounded
 * number of records, so that the server can serve others in between.
 */
#ifndef HX_STORE_REDIS_REDIS_WALK_H
#define HX_STORE_REDIS_REDIS_WALK_H

#include <hapax/ext/store_ops.h>

#include "store/redis/redis_client.h"

enum hapax_status hx_redis_scan(
	struct hx_redis_client *client, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err);

enum hapax_status hx_redis_stats(
	struct hx_redis_client *client, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err);

enum hapax_status hx_redis_sweep(
	struct hx_redis_client *client, struct hapax_sweep *sweep, struct hapax_error *err);

enum hapax_status hx_redis_count(
	struct hx_redis_client *client, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err);

#endif
