/* SPDX-License-Identifier: Apache-2.0 */
#include "base/worker.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

void hx_worker_init(struct hx_worker *worker, const char *name)
{
	assert(name != NULL);
	memset(worker, 0, sizeof(*worker));
	worker->name = name;
	hx_mutex_init(&worker->mutex);
	hx_cond_init(&worker->wake);
	hx_event_init(&worker->ended);
}

/* Locks: mutex held. */
static void assert_queue(const struct hx_worker *worker)
{
	assert((worker->queued == 0) == (worker->queue.first == NULL));
	assert(worker->queued == 0 || (worker->has_thread && !worker->is_stopped));
}

/* The next one; NULL: stop. */
static struct hx_job *await_job(struct hx_worker *worker)
{
	struct hx_job *job;

	hx_mutex_lock(&worker->mutex);
	while (worker->queue.first == NULL && !worker->is_stopped)
		hx_cond_wait(&worker->wake, &worker->mutex);
	assert_queue(worker);
	HX_LIST_TAKE(&worker->queue, job, next);
	worker->queued -= job != NULL;
	hx_mutex_unlock(&worker->mutex);
	return job;
}

static void run_jobs(void *arg)
{
	struct hx_worker *worker = arg;
	struct hx_job *job;

	while ((job = await_job(worker)) != NULL)
		job->run(job);
	hx_event_set(&worker->ended);
}

/* Locks: mutex held. */
static enum hapax_status start_thread(struct hx_worker *worker, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	if (worker->is_stopped)
		return hx_error_set(err, HAPAX_ERR_LIMIT, 0, "%s has stopped", worker->name);
	if (!worker->has_thread)
		status = hx_thread_start(&worker->thread, run_jobs, worker, worker->name, err);
	worker->has_thread = status == HAPAX_OK;
	return status;
}

enum hapax_status hx_worker_start(struct hx_worker *worker, struct hapax_error *err)
{
	enum hapax_status status;

	hx_mutex_lock(&worker->mutex);
	status = start_thread(worker, err);
	hx_mutex_unlock(&worker->mutex);
	return status;
}

enum hapax_status hx_worker_post(
	struct hx_worker *worker, struct hx_job *job, struct hapax_error *err)
{
	enum hapax_status status;

	assert(job->run != NULL);
	hx_mutex_lock(&worker->mutex);
	status = start_thread(worker, err);
	if (status == HAPAX_OK) {
		HX_LIST_ADD(&worker->queue, job, next);
		worker->queued++;
		hx_cond_signal(&worker->wake);
	}
	assert_queue(worker);
	hx_mutex_unlock(&worker->mutex);
	return status;
}

size_t hx_worker_queued(struct hx_worker *worker)
{
	size_t queued;

	hx_mutex_lock(&worker->mutex);
	queued = worker->queued;
	hx_mutex_unlock(&worker->mutex);
	return queued;
}

bool hx_worker_is_stopped(struct hx_worker *worker)
{
	bool is_stopped;

	hx_mutex_lock(&worker->mutex);
	is_stopped = worker->is_stopped;
	hx_mutex_unlock(&worker->mutex);
	return is_stopped;
}

struct hx_job *hx_worker_stop(struct hx_worker *worker)
{
	struct hx_job *jobs;

	if (worker->name == NULL)
		return NULL;
	hx_mutex_lock(&worker->mutex);
	assert_queue(worker);
	HX_LIST_TAKE_ALL(&worker->queue, jobs);
	worker->queued = 0;
	worker->is_stopped = true;
	hx_cond_signal(&worker->wake);
	hx_mutex_unlock(&worker->mutex);
	return jobs;
}

bool hx_worker_join(struct hx_worker *worker, int64_t deadline_ns)
{
	if (worker->name == NULL)
		return true;
	assert(worker->is_stopped);
	if (worker->has_thread) {
		if (!hx_event_wait_until_ns(&worker->ended, deadline_ns))
			return false;
		hx_thread_join(&worker->thread);
	}
	hx_cond_done(&worker->wake);
	hx_mutex_done(&worker->mutex);
	worker->name = NULL;
	return true;
}
