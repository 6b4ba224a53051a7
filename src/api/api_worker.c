/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api_worker.h"

#include <string.h>

#include "base/error.h"

/* People and programs that look on; whoever has more of them waiting is told so. */
enum { WAITING_MAX = 64 };

void hx_api_worker_init(struct hx_api_worker *worker, struct hx_reactor *reactor)
{
	memset(worker, 0, sizeof(*worker));
	worker->reactor = reactor;
	hx_mutex_init(&worker->mutex);
	hx_cond_init(&worker->wake);
	hx_event_init(&worker->ended);
}

static struct hx_api_job *next_job(struct hx_api_worker *worker)
{
	struct hx_api_job *job = NULL;

	hx_mutex_lock(&worker->mutex);
	while (worker->first == NULL && !worker->stops)
		hx_cond_wait(&worker->wake, &worker->mutex);
	if (worker->first != NULL && !worker->stops) {
		job = worker->first;
		worker->first = job->next;
	}
	hx_mutex_unlock(&worker->mutex);
	return job;
}

static void work(void *arg)
{
	struct hx_api_worker *worker = arg;
	struct hx_api_job *job;

	while ((job = next_job(worker)) != NULL) {
		job->work(job);
		hx_reactor_post(worker->reactor, &job->task);
	}
	hx_event_set(&worker->ended);
}

static void on_done(struct hx_task *task)
{
	struct hx_api_job *job =
		(struct hx_api_job *)(void *)((char *)task - offsetof(struct hx_api_job, task));
	struct hx_api_worker *worker = task->context;

	worker->waiting--;
	job->done(job);
}

enum hapax_status hx_api_worker_ask(
	struct hx_api_worker *worker, struct hx_api_job *job, struct hapax_error *err)
{
	if (worker->waiting >= WAITING_MAX || worker->stops)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0, "too many requests wait for the store");
	if (!worker->has_thread) {
		enum hapax_status status =
			hx_thread_start(&worker->thread, work, worker, "hapax-api", err);

		if (status != HAPAX_OK)
			return status;
		worker->has_thread = true;
	}
	job->was_refused = false;
	job->task = (struct hx_task){.fn = on_done, .context = worker};
	job->next = NULL;
	worker->waiting++;
	hx_mutex_lock(&worker->mutex);
	if (worker->first == NULL)
		worker->first = job;
	else
		worker->last->next = job;
	worker->last = job;
	hx_cond_signal(&worker->wake);
	hx_mutex_unlock(&worker->mutex);
	return HAPAX_OK;
}

void hx_api_worker_stop(struct hx_api_worker *worker)
{
	struct hx_api_job *job;

	hx_mutex_lock(&worker->mutex);
	job = worker->first;
	worker->first = NULL;
	worker->stops = true;
	hx_cond_signal(&worker->wake);
	hx_mutex_unlock(&worker->mutex);
	while (job != NULL) {
		struct hx_api_job *next = job->next;

		job->was_refused = true;
		worker->waiting--;
		job->done(job);
		job = next;
	}
}

bool hx_api_worker_join(struct hx_api_worker *worker, int64_t deadline_ns)
{
	if (worker->has_thread) {
		if (!hx_event_wait_until_ns(&worker->ended, deadline_ns))
			return false;
		hx_thread_join(&worker->thread);
	}
	hx_mutex_done(&worker->mutex);
	hx_cond_done(&worker->wake);
	return true;
}
