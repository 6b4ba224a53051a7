/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.h - what can still be read of a damaged store, into a new one.
 *
 * Every frame of every segment that fits its CRC counts, wherever it lies; of the
 * versions of a key the one with the highest LSN holds. So a record whose latest
 * version is lost comes back as it was before: that is the loss that is accepted.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_LOG_SALVAGE_H
#define HX_STORE_LOG_SALVAGE_H

#include <hapax/fsck.h>
#include <hapax/store.h>

#include "store/log/directory.h"

/*
 * Read the damaged store in directory and write what it holds into target, which is
 * new. Sets fsck->salvaged and unread.
 */
enum hapax_status hx_log_salvage(
	const struct hx_log_directory *directory, struct hapax_store *target,
	struct hapax_fsck *fsck, struct hapax_error *err);

#endif
