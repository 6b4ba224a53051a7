/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_worker.h - a thread for what blocks: scans, figures, files. One job after the other.
 *
 * Threads: ask and stop the reactor's; a job's work the worker's, its end the reactor's.
 */
#ifndef HX_API_API_WORKER_H
#define HX_API_API_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/worker.h"
#include "net/reactor.h"

struct hx_api_job;

typedef void hx_api_job_fn(struct hx_api_job *job);

/* Lives inside of what it is for. */
struct hx_api_job {
	hx_api_job_fn *work; /* on the worker's thread; must not touch the rest of the API */
	hx_api_job_fn *done; /* on the reactor's, then */
	bool was_refused;    /* for done: the worker stops, and it was not done */
	struct hx_task task;
	struct hx_job base;
};

struct hx_api_worker {
	struct hx_reactor *reactor;
	struct hx_worker base;
	size_t waiting; /* jobs whose done has not run */
};

void hx_api_worker_init(struct hx_api_worker *worker, struct hx_reactor *reactor);

/* work and done are set. LIMIT: too many wait; NO_MEMORY: there is no thread. */
enum hapax_status hx_api_worker_ask(
	struct hx_api_worker *worker, struct hx_api_job *job, struct hapax_error *err);

/* Do no more: what waits is refused. The job that is being done goes on. */
void hx_api_worker_stop(struct hx_api_worker *worker);

#endif
