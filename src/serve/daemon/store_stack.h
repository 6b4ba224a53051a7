/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_stack.h - the store that the daemon uses: the one of its config, with what
 * stands before it.
 *
 * A journal makes a guard (outage.h) of it, a near cache (near.h) stands in front of that.
 */
#ifndef HX_SERVE_DAEMON_STORE_STACK_H
#define HX_SERVE_DAEMON_STORE_STACK_H

#include <stdbool.h>

#include <hapax/store.h>

#include "config/config.h"

struct hx_logger;

struct hx_store_stack {
	struct hx_config_current *current;
	struct hx_logger *log;
	struct hapax_store *store;
	struct hapax_store *journal; /* NULL, as the next two: there is none */
	struct hapax_store *guard;
	struct hapax_store *near;
	struct hapax_store *limit; /* of keys of a tenant; NULL: none. The uppermost */
	uint64_t outages;          /* that were logged */
	int was_away;
	int64_t told_ns; /* when to say again how far opening has come */
};

/* *ret_store is the one to use; bytes_max is its limit, 0 none. After a failure hx_store_stack_close() is due, too. */
enum hapax_status hx_store_stack_open(
	struct hx_store_stack *stack, const struct hx_config *config, uint64_t bytes_max,
	struct hx_config_current *current, struct hx_logger *log, struct hapax_store **ret_store,
	struct hapax_error *err);

/* Whether the store may fail for good (HAPAX_ERR_FAILED), so that only a new start helps. */
bool hx_store_stack_can_latch(const struct hx_store_stack *stack);

/* Say in the log when the store went away or came back. Now and then. */
void hx_store_stack_watch(struct hx_store_stack *stack);

void hx_store_stack_close(struct hx_store_stack *stack);

#endif
