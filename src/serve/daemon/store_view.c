/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/store_view.h"

#include <assert.h>

#include "base/clock.h"
#include "serve/daemon/store_stack.h"

/* The journal is local, and reports its state first. */
static void ask_journal(struct hx_store_view *view)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status;

	if (view->stack->journal == NULL)
		return;
	status = hapax_store_stats(view->stack->journal, &stats, NULL, NULL, NULL);
	hx_mutex_lock(&view->mutex);
	view->facts.has_journal = true;
	view->facts.journal_status = status;
	if (status == HAPAX_OK)
		view->facts.journal_records = stats.keys;
	hx_mutex_unlock(&view->mutex);
}

/* Returns whether it answered; *ret_now_ms is then the time by its clock. */
static bool ask_store(struct hx_store_view *view, uint64_t number, int64_t *ret_now_ms)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_error err = {.status = HAPAX_OK};
	struct hx_store_facts *facts = &view->facts;
	enum hapax_status status = hapax_store_stats(view->store, &stats, NULL, NULL, &err);

	hx_mutex_lock(&view->mutex);
	if (status == HAPAX_OK) {
		facts->has_stats = true;
		facts->stats = stats;
		facts->stats_ns = facts->asked_ns;
	}
	facts->status = status;
	facts->error = err;
	facts->answered = number;
	facts->answered_ns = hx_clock_mono_ns();
	facts->took_ns = facts->answered_ns - facts->asked_ns;
	facts->asked_ns = INT64_MAX;
	hx_mutex_unlock(&view->mutex);
	*ret_now_ms = stats.now_ms;
	return status == HAPAX_OK;
}

static void ask_all(struct hx_job *job)
{
	struct hx_store_view *view = HX_CONTAINER(job, struct hx_store_view, question);
	uint64_t number;
	int64_t now_ms;

	hx_mutex_lock(&view->mutex);
	number = ++view->begun;
	assert(view->begun == view->wanted);
	view->facts.asked_ns = hx_clock_mono_ns();
	hx_mutex_unlock(&view->mutex);
	ask_journal(view);
	if (ask_store(view, number, &now_ms))
		hx_tenant_keys_look(&view->keys, view->store, now_ms);
	view->told(view->context);
}

enum hapax_status hx_store_view_start(
	struct hx_store_view *view, const struct hx_store_stack *stack, struct hapax_store *store,
	void (*told)(void *context), void *context, struct hapax_error *err)
{
	view->stack = stack;
	view->store = store;
	view->told = told;
	view->context = context;
	view->facts.asked_ns = INT64_MAX;
	hx_mutex_init(&view->mutex);
	hx_tenant_keys_init(&view->keys);
	view->question.run = ask_all;
	hx_worker_init(&view->worker, "hapax-view");
	return hx_worker_start(&view->worker, err);
}

uint64_t hx_store_view_ask(struct hx_store_view *view)
{
	uint64_t number;

	hx_mutex_lock(&view->mutex);
	number = view->begun + 1;
	/* Unless it is already queued for another caller. */
	if (view->wanted != number)
		(void)hx_worker_post(&view->worker, &view->question, NULL);
	view->wanted = number;
	hx_mutex_unlock(&view->mutex);
	return number;
}

void hx_store_view_look(struct hx_store_view *view, struct hx_store_facts *ret_facts)
{
	struct hapax_outage outage = HAPAX_OUTAGE_INIT;

	hx_mutex_lock(&view->mutex);
	*ret_facts = view->facts;
	hx_mutex_unlock(&view->mutex);
	ret_facts->has_outage = view->stack->guard != NULL &&
		hapax_outage_tell(view->stack->guard, &outage, NULL) == HAPAX_OK;
	ret_facts->outage = outage;
}

bool hx_store_view_stop(struct hx_store_view *view, int64_t deadline_ns)
{
	if (view->worker.name == NULL)
		return true;
	(void)hx_worker_stop(&view->worker);
	if (!hx_worker_join(&view->worker, deadline_ns))
		return false;
	hx_mutex_done(&view->mutex);
	hx_tenant_keys_done(&view->keys);
	return true;
}
