/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock_gc.h - remove lock files that dead runs left behind.
 *
 * A file is removed if no process holds it and it is no longer needed. It is needed while the claim
 * that it names exists: it shows that the run died here, so the next run need not wait for the
 * lease. A file of another store is left to that store.
 */
#ifndef HX_CLI_RUN_RUN_LOCK_GC_H
#define HX_CLI_RUN_RUN_LOCK_GC_H

#include <stdint.h>

#include <hapax/store.h>

#include "cli/run/run_folder.h"

/* Remove them; returns how many. store is open and has that URL. */
uint64_t hx_cmd_run_lock_gc(
	const struct hx_cmd_run_folders *folders, struct hapax_store *store, const char *store_url);

#endif
