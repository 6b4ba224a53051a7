/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api_worker.h"

#include "base/error.h"

/*
 * Listeners and operators only. Above this limit, a request is refused.
 */
enum { WAITING_MAX = 64 };

void hx_api_worker_init(struct hx_api_worker *worker, struct hx_reactor *reactor)
{
	worker->reactor = reactor;
	worker->waiting = 0;
	hx_worker_init(&worker->base, "hapax-api");
}

static void work(struct hx_job *base)
{
	struct hx_api_job *job = HX_CONTAINER(base, struct hx_api_job, base);
	struct hx_api_worker *worker = job->task.context;

	job->work(job);
	hx_reactor_post(worker->reactor, &job->task);
}

static void on_done(struct hx_task *task)
{
	struct hx_api_job *job = HX_CONTAINER(task, struct hx_api_job, task);
	struct hx_api_worker *worker = task->context;

	worker->waiting--;
	job->done(job);
}

enum hapax_status hx_api_worker_ask(
	struct hx_api_worker *worker, struct hx_api_job *job, struct hapax_error *err)
{
	enum hapax_status status;

	if (worker->waiting >= WAITING_MAX || worker->base.is_stopped)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0,
			"too many requests are waiting for the store; retry later");
	job->was_refused = false;
	job->task = (struct hx_task){.fn = on_done, .context = worker};
	job->base.run = work;
	status = hx_worker_post(&worker->base, &job->base, err);
	worker->waiting += status == HAPAX_OK;
	return status;
}

void hx_api_worker_stop(struct hx_api_worker *worker)
{
	struct hx_job *base = hx_worker_stop(&worker->base);

	while (base != NULL) {
		struct hx_api_job *job = HX_CONTAINER(base, struct hx_api_job, base);

		base = base->next;
		job->was_refused = true;
		worker->waiting--;
		job->done(job);
	}
}
