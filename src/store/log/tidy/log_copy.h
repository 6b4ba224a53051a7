/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_copy.h - copy the live records of a segment into class segments, by expiry.
 *
 * Threads: one at a time, beside the leader.
 */
#ifndef HX_STORE_LOG_TIDY_LOG_COPY_H
#define HX_STORE_LOG_TIDY_LOG_COPY_H

#include "store/log/tidy/class_writer.h"
#include "store/log/log_private.h"

struct hx_log_copy {
	struct hx_log *log;
	int64_t now_ms;
	uint64_t next_class_id;
	/* REMOVEs below this are useless to every class segment that stays. */
	uint64_t useless_lsn;
	struct hx_log_class_writer
		writers[HX_LOG_KIND_COUNT]; /* by kind; that of the log is not used */
	/*
	 * PUT entries of live claims, which go to the head of the log. As in the file, but with
	 * the store's scope number.
	 */
	struct hapax_buf held;
};

void hx_log_copy_init(struct hx_log_copy *copy, struct hx_log *log, uint64_t next_class_id);
void hx_log_copy_done(struct hx_log_copy *copy);

/*
 * Read a whole segment, to end (0: to its seal). CORRUPT: it has changed since it was written;
 * others: as hx_log_class_writer_put().
 */
enum hapax_status hx_log_copy_segment(
	struct hx_log_copy *copy, enum hx_log_kind kind, uint64_t id, uint64_t end,
	struct hapax_error *err);

/* Is the record in the index the one that entry put? */
bool hx_log_copy_is_live(
	struct hx_log *log, const struct hx_index_key *key, const struct hapax_record *record);

/*
 * Is that the record at place? Its result may be elsewhere. In the epoch, or under the shard's
 * lock.
 */
bool hx_log_copy_is_at(struct hx_shard *shard, uint32_t place, const struct hapax_record *record);

#endif
