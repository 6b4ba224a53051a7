/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_private.h - the internals of a log store, only for the files of this folder.
 */
#ifndef HX_STORE_LOG_LOG_PRIVATE_H
#define HX_STORE_LOG_LOG_PRIVATE_H

#include <hapax/ext/store_ops.h>

#include "base/buf.h"
#include "store/clock_mark.h"
#include "store/index/work.h"
#include "store/log/write/counts.h"
#include "store/log/write/queue.h"
#include "store/log/tidy/result_files.h"
#include "store/log/write/writer.h"
#include "store/request_queue.h"

struct hx_log {
	struct hapax_store base;
	struct hx_log_directory directory;
	struct hx_index *index;
	struct hx_log_result_files result_files; /* for results that are not in memory */
	const struct hx_clock_mark *first_mark;  /* during open: a new store's clock, or NULL */
	struct hx_clock_mark mark;               /* set at open */
	struct hx_log_counts counts;
	struct hx_log_writer writer; /* the leader's */
	struct hx_log_queue queue;
	_Atomic uint32_t was_read; /* a caller beside the leader was answered since the last tick */
	bool is_open;              /* a clean close has a frame to write */
	bool was_closed;           /* it was closed before, or is new */

	struct hx_mutex sweep_mutex; /* one sweep or pass at a time */
	uint64_t held_bytes;         /* of claims, in the segment that was last copied out */
	struct hapax_buf lapsed;     /* keys of claims that a sweep must settle */

	/* The keeper: spares, passes, marks (keeper.c). */
	struct hx_mutex keeper_mutex;
	struct hx_cond keeper_wake;
	struct hx_thread keeper;
	bool keeper_runs;
	bool keeper_stops; /* Locks: keeper_mutex, for this and all that follows */
	bool keeper_is_called;
	uint64_t pass_failures;        /* failed passes since the last success */
	struct hapax_error pass_error; /* of the last failed pass */
	uint64_t damages;              /* results that could not be read, since open */
	struct hapax_error damage;     /* the last unreadable result */

	/* The thread that reads results for submits with a completion (fetch.c). */
	struct hx_request_queue fetches;
	struct hx_thread fetcher;
	bool fetcher_runs;
};

static inline int64_t hx_log_now(const struct hx_log *log)
{
	return hx_clock_mark_now(&log->mark, log->writer.clock);
}

/* The common part of the operations that are decided now. */
struct hx_work_context hx_log_context(struct hx_log *log);

/* See hx_log_lead_fn; context is the struct hx_log. */
hx_log_lead_fn hx_log_lead;

/*
 * Answer operations from the front that write nothing and read only durable state. Returns how
 * many.
 */
size_t hx_log_read(struct hx_log *log, struct hapax_op *ops, size_t count);

/*
 * Read the results that operations were promised and whose records in memory hold only the
 * place.
 */
void hx_log_fetch(struct hx_log *log, struct hapax_op *ops, size_t count);

/*
 * The same before a submit is completed. True: a thread reads them and completes the submit. False:
 * all have theirs, or are refused; the caller completes it.
 */
bool hx_log_fetch_later(
	struct hx_log *log, struct hapax_op *ops, size_t count, struct hapax_completion completion);

/* End a submit, as hapax_store_complete() does, once its operations have their results. */
void hx_log_complete(
	struct hx_log *log, struct hapax_op *ops, size_t count, struct hapax_completion completion);

/* hx_log_result_files_read(), and note damage. */
enum hapax_status hx_log_fetch_bytes(
	struct hx_log *log, const struct hx_elsewhere *elsewhere, void *data, size_t size,
	struct hapax_error *err);

/* stats and sweep report damage until the store is reopened, which checks everything. */
void hx_log_note_damage(struct hx_log *log, const struct hapax_error *err);

/* The number of damaged results; err, which may be NULL, describes the last one. */
uint64_t hx_log_fetch_damages(struct hx_log *log, struct hapax_error *err);

enum hapax_status hx_log_fetcher_start(struct hx_log *log, struct hapax_error *err);

/* Read and complete everything that was requested. */
void hx_log_fetcher_stop(struct hx_log *log);

/* Write a frame with these flags, and the counters that are not in the log. */
enum hapax_status hx_log_mark_frame(struct hx_log *log, uint32_t flags);

/* OK: everything written in unsafe mode is durable. FAILED: latched. */
enum hapax_status hx_log_sync(struct hx_log *log);

/* See hapax_store_sweep_fn. */
hapax_store_sweep_fn hx_log_sweep;

/* See hapax_store_files_fn. */
hapax_store_files_fn hx_log_files;

/* See hx_index_lapse_fn; context is the struct hx_log. */
hx_index_lapse_fn hx_log_lapse;

/* A round of passes covers the segments that existed when it began. Zeros begin one. */
struct hx_log_round {
	uint64_t until_id;  /* the last log segment */
	uint64_t until_lsn; /* class segments that were created below it */
};

/*
 * Let records leave their large results in the class segment that holds them. The segment is
 * verified once more. CORRUPT, UNAVAILABLE, NO_MEMORY: results that were not moved stay in
 * place.
 */
enum hapax_status hx_log_evict_results(
	struct hx_log *log, const struct hx_log_manifest_item *item, struct hapax_error *err);

/* One step of tidying the files; see pass.c. *ret_more: call again. */
enum hapax_status hx_log_pass(
	struct hx_log *log, struct hx_log_round *round, bool *ret_more, struct hapax_error *err);

enum hapax_status hx_log_keeper_start(struct hx_log *log, struct hapax_error *err);
void hx_log_keeper_stop(struct hx_log *log);

/* How many passes failed in a row; err, which may be NULL, says why the last one did. */
uint64_t hx_log_keeper_failures(struct hx_log *log, struct hapax_error *err);

/* Wake the keeper: there is work. Threads: any; cheap. */
void hx_log_keeper_call(struct hx_log *log);

#endif
