/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_job.h - what a command wants from the store that takes its time: a walk through keys.
 *
 * A walk blocks, on a store that others share for as long as its timeout says, so no loop
 * makes it. A command begins a job while it is planned; whoever has the session takes
 * it to a thread that may block, calls run until there is no more to do, and finishes the
 * session then. Pieces are small, so that the jobs of several clients take turns.
 *
 * Threads: one at a time, but for hx_resp_job_drop(): any.
 */
#ifndef HX_RESP_RESP_JOB_H
#define HX_RESP_RESP_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "resp/resp_batch.h"

struct hx_resp_job;

/* One piece. False: that was the last. */
typedef bool hx_resp_job_fn(struct hx_resp_job *job);

struct hx_resp_job {
	hx_resp_job_fn *fn;
	struct hapax_store *store;
	struct hapax_scan what; /* its tenant and group are the user's, and outlive it */
	struct hapax_cursor cursor;
	uint64_t scan_id; /* of SCAN: the number that it goes on from; 0: it begins */
	_Atomic unsigned is_dropped;
	bool is_whole; /* it changes something: nobody drops it half done */

	bool has_pattern;
	bool wants_none;          /* TYPE of something that there is not */
	struct hapax_buf pattern; /* a copy: what the client sent is gone by then */

	enum hapax_status status;
	struct hapax_buf found; /* keys to be told */
	uint64_t count;
	struct hx_resp_batch batch; /* operations of a piece */
};

/* NULL: no memory. It walks through one scope, count_max records in a piece. */
struct hx_resp_job *hx_resp_job_new(
	struct hapax_store *store, struct hapax_bytes tenant, struct hapax_bytes group,
	hx_resp_job_fn *fn, size_t count_max);

/* May be NULL. */
void hx_resp_job_free(struct hx_resp_job *job);

/* Blocks. False: it is done, or failed as its status says. */
bool hx_resp_job_run(struct hx_resp_job *job);

/* Nobody waits for it any more: unless it is whole, the piece that is being run is the last. */
void hx_resp_job_drop(struct hx_resp_job *job);

#endif
