/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - a thread that runs jobs, one after the other, in the order of their posts.
 *
 * A job is embedded in its owner, so posting allocates nothing. While its run function is called it
 * is in no queue: run may post it again or free it. The job itself reports its completion (a task
 * on a reactor, an event). The owner limits the number of waiting jobs, with hx_worker_queued().
 *
 *	hx_worker_init(&worker, "hapax-resolver");
 *	status = hx_worker_post(&worker, &lookup->job, err);	starts the thread, too
 *	...
 *	for (job = hx_worker_stop(&worker); job != NULL; job = next)
 *		next = job->next, refuse(job);
 *	if (!hx_worker_join(&worker, deadline_ns))
 *		leak what the job that still runs uses
 *
 * A worker of zeros, which was never initialized, may be stopped and joined.
 *
 * Threads: post and queued any; init, stop and join one.
 */
#ifndef HX_WORKER_H
#define HX_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/list.h"
#include "base/macros.h"
#include "base/thread.h"

struct hx_job;

typedef void hx_job_fn(struct hx_job *job);

struct hx_job {
	hx_job_fn *run; /* on the worker's thread */
	struct hx_job *next;
};

struct hx_worker {
	const char *name; /* NULL: zeros */
	struct hx_thread thread;
	struct hx_mutex mutex;
	struct hx_cond wake;
	struct hx_event ended;
	/* Locks: mutex for everything below. */
	HX_LIST(struct hx_job) queue;
	size_t queued;
	bool has_thread;
	bool is_stopped;
};

/* name is the thread's, cut to 15 bytes, and must outlive the worker. Starts no thread. */
void hx_worker_init(struct hx_worker *worker, const char *name);

/*
 * Start the thread unless it runs: for a caller that must know of a failure before the first job.
 * LIMIT or NO_MEMORY, as for hx_thread_start().
 */
enum hapax_status hx_worker_start(struct hx_worker *worker, struct hapax_error *err);

/*
 * Run job->run(job) on the thread, after all waiting jobs. Fails only like hx_worker_start(), or
 * with LIMIT after stop; the job then does not run and stays with the caller.
 */
enum hapax_status hx_worker_post(
	struct hx_worker *worker, struct hx_job *job, struct hapax_error *err);

/* The number of waiting jobs, without the current one. */
size_t hx_worker_queued(struct hx_worker *worker);

/* For a long job: has its worker been stopped? Threads: any. */
bool hx_worker_is_stopped(struct hx_worker *worker);

/*
 * Run no more jobs. Returns the waiting ones, linked by next: they will not run and belong to the
 * caller. The current one continues. Idempotent.
 */
struct hx_job *hx_worker_stop(struct hx_worker *worker);

/*
 * Wait for the thread, after stop, and free the worker's memory. False: a job still runs at
 * deadline_ns; the worker must not move, and may be joined again.
 */
bool hx_worker_join(struct hx_worker *worker, int64_t deadline_ns);

#endif
