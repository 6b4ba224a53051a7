/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_walk.h - scan, stats and sweep of a daemon's ledger. Blocks.
 */
#ifndef HX_STORE_SERVER_SERVER_WALK_H
#define HX_STORE_SERVER_SERVER_WALK_H

#include <hapax/ext/store_ops.h>

#include "store/server/server_client.h"

enum hapax_status hx_server_scan(
	struct hx_server_client *client, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err);

/* ret_capabilities may be NULL. */
enum hapax_status hx_server_stats(
	struct hx_server_client *client, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, unsigned *ret_capabilities, struct hapax_error *err);

enum hapax_status hx_server_sweep(
	struct hx_server_client *client, struct hapax_sweep *sweep, struct hapax_error *err);

#endif
