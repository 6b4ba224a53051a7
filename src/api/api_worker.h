/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_worker.h - a thread for blocking work: scans, figures, files. It does one job at a time.
 *
 * Threads: the reactor's for ask and stop; the worker's for a job's work; the reactor's for its
 * done.
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

/* Embedded in the caller's struct. */
struct hx_api_job {
	hx_api_job_fn *work; /* on the worker's thread; must not touch the rest of the API */
	hx_api_job_fn *done; /* then, on the reactor's thread */
	bool was_refused;    /* for done: the worker is stopping and did not run work */
	struct hx_task task;
	struct hx_job base;
};

struct hx_api_worker {
	struct hx_reactor *reactor;
	struct hx_worker base;
	size_t waiting; /* jobs whose done has not run */
};

void hx_api_worker_init(struct hx_api_worker *worker, struct hx_reactor *reactor);

/* work and done are set. LIMIT: too many jobs wait. NO_MEMORY: there is no thread. */
enum hapax_status hx_api_worker_ask(
	struct hx_api_worker *worker, struct hx_api_job *job, struct hapax_error *err);

/* Refuse all waiting jobs. The current job continues. */
void hx_api_worker_stop(struct hx_api_worker *worker);

#endif
