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

struct hx_in_flight *hx_workers_in_flight(const struct hapax_work *work)
{
	return HX_CONTAINER(work->private_call, struct hx_in_flight, call);
}

static void prepare(struct hx_in_flight *in_flight)
{
	struct hapax_call *call = &in_flight->call;
	struct hapax_work *work = &call->work;

	if (call->body.size_max == 0)
		hx_buf_init(&call->body, HX_RESULT_SIZE_LIMIT);
	hx_buf_clear(&call->body);
	memset(work, 0, sizeof(*work));
	work->tenant = hx_bytes(in_flight->key.tenant, in_flight->key.tenant_size);
	work->group = hx_bytes(in_flight->key.group, in_flight->key.group_size);
	work->key = hx_bytes(in_flight->key.key, in_flight->key.key_size);
	work->token = in_flight->token;
	work->attempt = in_flight->attempt;
	work->event = &in_flight->envelope.event;
	work->private_call = call;
	work->duplicate = in_flight->is_tagged ? &in_flight->duplicate : NULL;
}

/* Threads: a worker's, or the consumer's. */
static void work_on(struct hx_in_flight *in_flight)
{
	struct hapax_work *work = &in_flight->call.work;

	/* The message waited for a worker, and the process may have been stopped. */
	if (!hx_in_flight_may_begin(in_flight)) {
		in_flight->outcome = hapax_work_fail(
			work, HAPAX_RUN_TRANSIENT, "the lease lapsed before the handler started");
		return;
	}
	in_flight->outcome = in_flight->route->fn(work, in_flight->route->context);
	if ((unsigned)in_flight->outcome > HAPAX_RUN_AMBIGUOUS)
		in_flight->outcome = hapax_work_fail(
			work, HAPAX_RUN_AMBIGUOUS, "the handler returned an unknown outcome");
	if (work->result.body.data == NULL)
		work->result.body = hapax_buf_bytes(&in_flight->call.body);
}

static void end(struct hx_in_flight *in_flight)
{
	const struct hapax_work *work = &in_flight->call.work;

	hx_in_flight_finish(in_flight, in_flight->outcome, &work->result, work->error);
}

static void start(struct hx_handler *handler, struct hx_in_flight *in_flight)
{
	struct hx_workers *workers = (struct hx_workers *)handler;

	prepare(in_flight);
	if (workers->thread_count == 0) {
		work_on(in_flight);
		end(in_flight);
		return;
	}
	hx_mutex_lock(&workers->mutex);
	HX_LIST_ADD(workers, in_flight, next);
	hx_mutex_unlock(&workers->mutex);
	hx_cond_signal(&workers->cond);
}

static void turn(struct hx_handler *handler)
{
	struct hx_workers *workers = (struct hx_workers *)handler;
	struct hx_in_flight *ended;

	if (workers->thread_count == 0)
		return;
	hx_mutex_lock(&workers->mutex);
	ended = workers->ended;
	workers->ended = NULL;
	hx_mutex_unlock(&workers->mutex);
	while (ended != NULL) {
		struct hx_in_flight *in_flight = ended;

		ended = in_flight->next;
		end(in_flight);
	}
}

static void forget(struct hx_handler *handler, struct hx_in_flight *in_flight)
{
	(void)handler;
	hx_buf_done(&in_flight->call.body);
}

static const struct hx_handler_ops ops = {
	.start = start,
	.turn = turn,
	.forget = forget,
};

/* The next message to work on; NULL: the workers must end. */
static struct hx_in_flight *workers_take(struct hx_workers *workers)
{
	struct hx_in_flight *in_flight;

	hx_mutex_lock(&workers->mutex);
	while (workers->first == NULL && !workers->is_stopped)
		hx_cond_wait(&workers->cond, &workers->mutex);
	in_flight = workers->first;
	if (in_flight != NULL)
		workers->first = in_flight->next;
	hx_mutex_unlock(&workers->mutex);
	return in_flight;
}

static void serve(void *arg)
{
	struct hx_workers *workers = arg;
	struct hx_in_flight *in_flight;

	while ((in_flight = workers_take(workers)) != NULL) {
		bool was_empty;

		work_on(in_flight);
		hx_mutex_lock(&workers->mutex);
		was_empty = workers->ended == NULL;
		in_flight->next = workers->ended;
		workers->ended = in_flight;
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
		status = hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for threads");
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
