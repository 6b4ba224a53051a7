/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.h - copy the readable part of a damaged store into a new one.
 *
 * Every frame of every segment that matches its CRC counts, wherever it lies. The version of a
 * key with the highest LSN holds. So a record whose latest version is lost returns in its
 * previous state: that is the accepted loss.
 *
 * Everything is read twice: first to find the last version of each key and the latest time, then
 * to load those versions. Segments of other stores are left out.
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
 * Read the damaged store in directory. Sets fsck->unread. CORRUPT: the owner of the segments is
 * unknown. directory and fsck outlive it; owned: hx_log_salvage_free().
 */
enum hapax_status hx_log_salvage_new(
	const struct hx_log_directory *directory, struct hapax_fsck *fsck,
	struct hx_log_salvage **ret_salvage, struct hapax_error *err);

void hx_log_salvage_free(struct hx_log_salvage *salvage);

/* The latest known time of the store's clock, for the new one to continue; NULL: unknown. */
const struct hx_clock_mark *hx_log_salvage_clock(const struct hx_log_salvage *salvage);

/* Load the live records into target, which is new. Sets fsck->salvaged and token. */
enum hapax_status hx_log_salvage_load(
	struct hx_log_salvage *salvage, struct hapax_store *target, struct hapax_error *err);

#endif
