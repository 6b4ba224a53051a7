/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock_gc.h - lock files that runs left behind when they died.
 *
 * A file goes if nobody holds it and it has nothing more to tell. It still tells
 * something while the claim that it names stands: that its run died here, so that the
 * next one need not wait for the lease. Of another store, it is that store's.
 */
#ifndef HX_CLI_RUN_RUN_LOCK_GC_H
#define HX_CLI_RUN_RUN_LOCK_GC_H

#include <stdint.h>

#include <hapax/store.h>

#include "cli/run/run_folder.h"

/* Remove them; how many went. store is open and has that URL. */
uint64_t hx_cmd_run_lock_gc(
	const struct hx_cmd_run_folders *folders, struct hapax_store *store, const char *store_url);

#endif
