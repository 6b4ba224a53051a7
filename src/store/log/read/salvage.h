/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.h - what can still be read of a damaged store, into a new one.
 *
 * Every frame of every segment that fits its CRC counts, wherever it lies; of the
 * versions of a key the one with the highest LSN holds. So a record whose latest
 * version is lost comes back as it was before: that is the loss that is accepted.
 *
 * Everything is read twice: first to find out which version of each key is the last, and
 * what time it was, then to load those. Segments of other stores are left out.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_LOG_READ_SALVAGE_H
#define HX_STORE_LOG_READ_SALVAGE_H

#include <hapax/fsck.h>
#include <hapax/store.h>

#include "store/log/format/directory.h"

struct hx_log_salvage;

/*
 * Read the damaged store in directory. Sets fsck->unread. CORRUPT: nothing tells whose
 * segments these are. directory and fsck outlive it; owned: hx_log_salvage_free().
 */
enum hapax_status hx_log_salvage_new(
	const struct hx_log_directory *directory, struct hapax_fsck *fsck,
	struct hx_log_salvage **ret_salvage, struct hapax_error *err);

void hx_log_salvage_free(struct hx_log_salvage *salvage);

/* The store's clock, as late as it is known, for the new one to go on with; NULL: not known. */
const struct hx_clock_mark *hx_log_salvage_clock(const struct hx_log_salvage *salvage);

/* Load what lives into target, which is new. Sets fsck->salvaged and token. */
enum hapax_status hx_log_salvage_load(
	struct hx_log_salvage *salvage, struct hapax_store *target, struct hapax_error *err);

#endif
