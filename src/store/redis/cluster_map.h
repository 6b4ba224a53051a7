/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_map.h - the reply to CLUSTER SLOTS: which server has which slots.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_STORE_REDIS_CLUSTER_MAP_H
#define HX_STORE_REDIS_CLUSTER_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/bytes.h>

/* As the server says it; nothing is checked. host: data NULL if it is the one that was asked. */
struct hx_redis_range {
	int64_t first;
	int64_t last;
	struct hapax_bytes host;
	int64_t port;
};

/* *rest is one whole reply; *ret_count ranges follow. False: it is not a map. */
bool hx_redis_map_begin(struct hapax_bytes *rest, int64_t *ret_count);
bool hx_redis_map_next(struct hapax_bytes *rest, struct hx_redis_range *ret_range);

#endif
