/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/resp/resp_errands.h"

#include "resp/errand.h"

/* Locks: mutex held. */
static void append(struct hx_resp_errands *errands, struct hx_resp_trip *trip)
{
	trip->next = NULL;
	if (errands->last != NULL)
		errands->last->next = trip;
	else
		errands->first = trip;
	errands->last = trip;
}

/* The next one, when there is one; NULL: stop. */
static struct hx_resp_trip *await_trip(struct hx_resp_errands *errands)
{
	struct hx_resp_trip *trip = NULL;

	hx_mutex_lock(&errands->mutex);
	while (!errands->stops && errands->first == NULL)
		hx_cond_wait(&errands->wake, &errands->mutex);
	if (!errands->stops) {
		trip = errands->first;
		errands->first = trip->next;
		if (errands->first == NULL)
			errands->last = NULL;
	}
	hx_mutex_unlock(&errands->mutex);
	return trip;
}

static void keep_running(void *arg)
{
	struct hx_resp_errands *errands = arg;
	struct hx_resp_trip *trip;

	while ((trip = await_trip(errands)) != NULL) {
		if (hx_resp_errand_run(trip->errand)) {
			hx_mutex_lock(&errands->mutex);
			append(errands, trip);
			hx_mutex_unlock(&errands->mutex);
		} else {
			hx_reactor_post(trip->reactor, &trip->done);
		}
	}
	hx_event_set(&errands->ended);
}

enum hapax_status hx_resp_errands_start(struct hx_resp_errands *errands, struct hapax_error *err)
{
	enum hapax_status status;

	hx_mutex_init(&errands->mutex);
	hx_cond_init(&errands->wake);
	hx_event_init(&errands->ended);
	status = hx_thread_start(&errands->thread, keep_running, errands, "hapax-errands", err);
	errands->runs = status == HAPAX_OK;
	return status;
}

void hx_resp_errands_give(struct hx_resp_errands *errands, struct hx_resp_trip *trip)
{
	hx_mutex_lock(&errands->mutex);
	append(errands, trip);
	hx_cond_signal(&errands->wake);
	hx_mutex_unlock(&errands->mutex);
}

bool hx_resp_errands_stop(struct hx_resp_errands *errands, int64_t deadline_ns)
{
	if (!errands->runs)
		return true;
	hx_mutex_lock(&errands->mutex);
	errands->stops = true;
	hx_cond_signal(&errands->wake);
	hx_mutex_unlock(&errands->mutex);
	if (!hx_event_wait_until_ns(&errands->ended, deadline_ns))
		return false;
	hx_thread_join(&errands->thread);
	hx_mutex_done(&errands->mutex);
	hx_cond_done(&errands->wake);
	errands->runs = false;
	return true;
}
