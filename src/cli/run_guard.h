/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_guard.h - one run of a key at a time decides to start, on this host.
 *
 * Between looking whether a holder lives and holding a lock of its own, a run can be
 * stopped for any time, its lease end, and another one take over; when it goes on, both
 * start the command. So whoever may be about to start holds a guard, a locked file
 * named after the key, from before it looks until its command holds the lock
 * (run_lock.h). It frees itself when its process dies.
 */
#ifndef HX_CLI_RUN_GUARD_H
#define HX_CLI_RUN_GUARD_H

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "cli/run_lock.h"

struct hx_run_guard {
	int file; /* -1: not held */
	char path[HX_RUN_LOCK_PATH_SIZE];
};

enum hx_run_guard_state {
	HX_RUN_GUARD_TAKEN, /* we hold it */
	HX_RUN_GUARD_BUSY,  /* another process does */
	HX_RUN_GUARD_NONE,  /* it cannot be had here: there is no folder for it */
};

/* Try to take the guard of a key, which parts name together: store, scope and key. */
enum hx_run_guard_state hx_run_guard_take(
	struct hx_run_guard *guard, const struct hx_run_lock_folders *folders,
	const struct hapax_bytes *parts, size_t part_count);

/* Nothing happens when it is not held. */
void hx_run_guard_drop(struct hx_run_guard *guard);

#endif
