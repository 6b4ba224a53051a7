/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_stack.h - the store that the daemon uses: the configured one, with its layers.
 *
 * A journal adds a guard (outage.h); a near cache (near.h) stands in front of that.
 */
#ifndef HX_SERVE_DAEMON_STORE_STACK_H
#define HX_SERVE_DAEMON_STORE_STACK_H

#include <stdbool.h>

#include <hapax/store.h>

#include "config/config.h"

struct hx_conditions;
struct hx_logger;

struct hx_store_stack {
	struct hx_config_current *current;
	struct hx_logger *log;
	struct hapax_store *store;
	struct hapax_store *journal; /* NULL, as the next two: none */
	struct hapax_store *guard;
	struct hapax_store *near;
	struct hapax_store *limit; /* key limit of tenants; NULL: none. The topmost */
	uint64_t outages;          /* number of outages already logged */
	int was_away;
	int64_t told_ns; /* when to log the progress of opening again */
};

/*
 * *ret_store is the one to use; bytes_max is its limit, 0 none. Call hx_store_stack_close() also
 * after a failure.
 */
enum hapax_status hx_store_stack_open(
	struct hx_store_stack *stack, const struct hx_config *config, uint64_t bytes_max,
	struct hx_config_current *current, struct hx_logger *log, struct hapax_store **ret_store,
	struct hapax_error *err);

/* Whether the store may fail permanently (HAPAX_ERR_FAILED), so that only a restart helps. */
bool hx_store_stack_can_latch(const struct hx_store_stack *stack);

/*
 * Begins the condition of a store that was away since the last call, if only briefly, and logs what
 * became of its keys when it is back. Call it periodically.
 */
void hx_store_stack_watch(struct hx_store_stack *stack, struct hx_conditions *conditions);

void hx_store_stack_close(struct hx_store_stack *stack);

#endif
