/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - functions as handlers.
 */
#include "source/handler/workers.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/list.h"

struct hx_intake *hx_intake_of_work(const struct hapax_work *work)
{
	return HX_CONTAINER(work->private_call, struct hx_intake, call);
}

static void prepare(struct hx_intake *intake)
{
	struct hapax_call *call = &intake->call;
	struct hapax_work *work = &call->work;

	if (call->body.size_max == 0)
		hx_buf_init(&call->body, HX_RESULT_SIZE_LIMIT);
	hx_buf_clear(&call->body);
	memset(work, 0, sizeof(*work));
	work->tenant = hx_bytes(intake->key.tenant, intake->key.tenant_size);
	work->group = hx_bytes(intake->key.group, intake->key.group_size);
	work->key = hx_bytes(intake->key.key, intake->key.key_size);
	work->token = intake->token;
	work->attempt = intake->attempt;
	work->event = &intake->envelope.event;
	work->private_call = call;
	work->duplicate = intake->is_tagged ? &intake->duplicate : NULL;
}

/* Threads: a worker's, or the consumer's. */
static void work_on(struct hx_intake *intake)
{
	struct hapax_work *work = &intake->call.work;

	/* It has waited for a worker, and maybe the whole process stood still. */
	if (!hx_intake_may_begin(intake)) {
		intake->outcome = hapax_work_fail(
			work, HAPAX_RUN_TRANSIENT, "its lease was over before it began");
		return;
	}
	intake->outcome = intake->route->fn(work, intake->route->context);
	if ((unsigned)intake->outcome > HAPAX_RUN_AMBIGUOUS)
		intake->outcome = hapax_work_fail(
			work, HAPAX_RUN_AMBIGUOUS, "the handler returned no known outcome");
	if (work->result.body.data == NULL)
		work->result.body = hapax_buf_bytes(&intake->call.body);
}

static void end(struct hx_intake *intake)
{
	const struct hapax_work *work = &intake->call.work;

	hx_intake_finish(intake, intake->outcome, &work->result, work->error);
}

static void start(struct hx_handler *handler, struct hx_intake *intake)
{
	struct hx_workers *workers = (struct hx_workers *)handler;

	prepare(intake);
	if (workers->thread_count == 0) {
		work_on(intake);
		end(intake);
		return;
	}
	hx_mutex_lock(&workers->mutex);
	HX_LIST_ADD(workers, intake, next);
	hx_mutex_unlock(&workers->mutex);
	hx_cond_signal(&workers->cond);
}

static void turn(struct hx_handler *handler)
{
	struct hx_workers *workers = (struct hx_workers *)handler;
	struct hx_intake *ended;

	if (workers->thread_count == 0)
		return;
	hx_mutex_lock(&workers->mutex);
	ended = workers->ended;
	workers->ended = NULL;
	hx_mutex_unlock(&workers->mutex);
	while (ended != NULL) {
		struct hx_intake *intake = ended;

		ended = intake->next;
		end(intake);
	}
}

static void forget(struct hx_handler *handler, struct hx_intake *intake)
{
	(void)handler;
	hx_buf_done(&intake->call.body);
}

static const struct hx_handler_ops ops = {
	.start = start,
	.turn = turn,
	.forget = forget,
};

/* The next one to work on; NULL: there will be none. */
static struct hx_intake *take(struct hx_workers *workers)
{
	struct hx_intake *intake;

	hx_mutex_lock(&workers->mutex);
	while (workers->first == NULL && !workers->is_stopped)
		hx_cond_wait(&workers->cond, &workers->mutex);
	intake = workers->first;
	if (intake != NULL)
		workers->first = intake->next;
	hx_mutex_unlock(&workers->mutex);
	return intake;
}

static void serve(void *arg)
{
	struct hx_workers *workers = arg;
	struct hx_intake *intake;

	while ((intake = take(workers)) != NULL) {
		bool was_empty;

		work_on(intake);
		hx_mutex_lock(&workers->mutex);
		was_empty = workers->ended == NULL;
		intake->next = workers->ended;
		workers->ended = intake;
		hx_mutex_unlock(&workers->mutex);
		if (was_empty)
			workers->wake(workers->wake_context);
	}
}

enum hapax_status hx_workers_init(
	struct hx_workers *workers, size_t count, void (*wake)(void *context), void *wake_context,
	struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	memset(workers, 0, sizeof(*workers));
	workers->base.ops = &ops;
	workers->wake = wake;
	workers->wake_context = wake_context;
	hx_mutex_init(&workers->mutex);
	hx_cond_init(&workers->cond);
	if (count == 0)
		return HAPAX_OK;
	workers->threads = hx_alloc_zero(count, sizeof(*workers->threads));
	if (workers->threads == NULL)
		status = hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "out of memory for threads");
	while (status == HAPAX_OK && workers->thread_count < count) {
		status = hx_thread_start(
			&workers->threads[workers->thread_count], serve, workers, "hapax-worker",
			err);
		if (status == HAPAX_OK)
			workers->thread_count++;
	}
	if (status != HAPAX_OK)
		hx_workers_done(workers);
	return status;
}

void hx_workers_done(struct hx_workers *workers)
{
	if (workers->base.ops == NULL)
		return;
	hx_mutex_lock(&workers->mutex);
	workers->is_stopped = true;
	hx_mutex_unlock(&workers->mutex);
	hx_cond_broadcast(&workers->cond);
	for (size_t i = 0; i < workers->thread_count; i++)
		hx_thread_join(&workers->threads[i]);
	hx_free(workers->threads);
	hx_cond_done(&workers->cond);
	hx_mutex_done(&workers->mutex);
	memset(workers, 0, sizeof(*workers));
}
