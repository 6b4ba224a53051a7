/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_job.h - a slow store request of a command: a walk through keys.
 *
 * A walk blocks, on a shared store for up to its timeout, so no loop runs it. A command begins a
 * job while it is planned. The owner of the session passes it to a thread that may block. That
 * thread calls run until it returns false; then the owner finishes the session. Pieces are small,
 * so that the jobs of several clients take turns.
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

/* Runs one piece. False: it was the last. */
typedef bool hx_resp_job_fn(struct hx_resp_job *job);

struct hx_resp_job {
	hx_resp_job_fn *fn;
	struct hapax_store *store;
	struct hapax_scan what; /* tenant and group are the user's and outlive the job */
	struct hapax_cursor cursor;
	uint64_t scan_id; /* SCAN: the cursor it continues from; 0: a new scan */
	_Atomic unsigned is_dropped;
	bool is_whole; /* it changes data, so drop does not stop it halfway */

	bool has_pattern;
	bool wants_none;          /* TYPE that no key has */
	struct hapax_buf pattern; /* a copy: the client's request is freed by then */

	enum hapax_status status;
	struct hapax_buf found; /* keys for the reply */
	uint64_t count;
	struct hx_resp_batch batch; /* operations of one piece */
};

/* Walks through one scope, count_max records per piece. NULL: no memory. */
struct hx_resp_job *hx_resp_job_new(
	struct hapax_store *store, struct hapax_bytes tenant, struct hapax_bytes group,
	hx_resp_job_fn *fn, size_t count_max);

/* May be NULL. */
void hx_resp_job_free(struct hx_resp_job *job);

/* Blocks. False: it is done, or failed with its status. */
bool hx_resp_job_run(struct hx_resp_job *job);

/* The client is gone: unless is_whole, the running piece is the last. */
void hx_resp_job_drop(struct hx_resp_job *job);

#endif
