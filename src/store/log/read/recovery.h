/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery.h - from the files to the index.
 *
 * Threads: the thread that opens the store.
 */
#ifndef HX_STORE_LOG_READ_RECOVERY_H
#define HX_STORE_LOG_READ_RECOVERY_H

#include "store/log/write/counts.h"
#include "store/log/read/log_walk.h"

struct hx_log_result_files;

struct hx_log_recovery {
	struct hx_log_directory *directory;
	struct hx_index *index;
	struct hx_log_result_files *result_files; /* for results of class segments */
	struct hx_log_counts *counts;
	const struct hapax_store_options *options;
	const struct hx_clock_mark *first_mark; /* where a new store's clock begins; or NULL */
	struct hx_clock_mark *mark;             /* out: the store's clock */
};

/*
 * Fill index and counts, and set *mark. Writes nothing but copies of torn tails. On success
 * *ret_walk says where the log continues; owned: hx_log_walk_result_done().
 */
enum hapax_status hx_log_recover(
	const struct hx_log_recovery *recovery, struct hx_log_walk_result *ret_walk,
	struct hapax_error *err);

/*
 * Remove the segments that the walk found useless. *ret_reuse_id: a log segment that can be
 * reused, or 0. Called after the store has opened.
 */
void hx_log_recover_clean(
	struct hx_log_directory *directory, const struct hx_log_walk_result *walk,
	uint64_t *ret_reuse_id);

#endif
