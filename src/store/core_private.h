/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_private.h - the internals of struct hx_store_core, only for the files next to store.c.
 * Backends use core.h.
 */
#ifndef HX_STORE_CORE_PRIVATE_H
#define HX_STORE_CORE_PRIVATE_H

#include "base/thread.h"
#include "store/clock_mark.h"
#include "store/core.h"
#include "store/counter_book.h"

struct hx_store_core {
	char *url;
	struct hapax_store_options options;
	struct hx_scope_table scopes;
	struct hx_clock_mark mark; /* from the open: the clock of stores that keep none */

	struct hx_mutex flush_mutex; /* guards book, and lets one flush run at a time */
	struct hx_counter_book book; /* for stores without count */
	_Atomic uint32_t is_dirty;   /* a decision was counted since the last flush */

	struct hx_mutex watch_mutex;
	struct hapax_watcher *watchers; /* Locks: watch_mutex */

	/* The housekeeper; see housekeeper.c. */
	struct hx_mutex keeper_mutex;
	struct hx_cond keeper_wake;
	struct hx_thread keeper;
	bool keeper_runs;
	bool keeper_stops; /* Locks: keeper_mutex */
	_Atomic uint64_t sweeps;
	_Atomic uint64_t sweep_ns;
	_Atomic uint64_t sweep_failures;
};

/* Start and stop the thread that sweeps and flushes. Stop is safe when none was started. */
enum hapax_status hx_housekeeper_start(struct hapax_store *store, struct hapax_error *err);
void hx_housekeeper_stop(struct hapax_store *store);

/* Add the housekeeper's counters to stats. */
void hx_housekeeper_report(const struct hapax_store *store, struct hapax_stats *stats);

#endif
