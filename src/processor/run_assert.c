/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_assert.c - what holds for a run between two events.
 */
#include <assert.h>

#include "processor/processor.h"
#include "processor/run.h"

/* A run without keys asks nothing, and nothing ends its work. */
static void assert_unprotected(const struct hapax_run *run)
{
	assert(run->state == HX_RUN_RUNNING || run->state == HX_RUN_ENDED);
	assert(!run->is_asking);
	assert(!run->is_listed);
	assert(run->timer.place == 0);
	assert(run->lease_ends_ms == HAPAX_TIME_NEVER);
}

static void assert_waiting(const struct hapax_run *run)
{
	const struct hx_key_queue *queue;

	assert(run->wait_index < run->key_count);
	queue = run->keys[run->wait_index].queue;
	assert(!run->is_asking);
	assert(!run->is_listed);
	assert(run->has_waited);
	assert(!run->has_left);
	/* A waiter is neither of the two that it waits for. */
	assert(queue->holder != run);
	assert(queue->scout != run);
	assert((run->wait_back == NULL) == (queue->first == run));
	assert((run->wait_next == NULL) == (queue->last == run));
}

/* The claim is not held yet: nothing can have happened to its lease. */
static void assert_claiming(const struct hapax_run *run)
{
	assert(run->question == HAPAX_OP_CLAIM);
	assert(!run->is_lapsed);
	assert(!run->is_fenced);
	assert(!run->is_overdue);
	assert(run->keys[0].queue->holder != run);
}

static void assert_held(const struct hapax_run *run)
{
	assert(run->keys[0].queue->scout != run);
	/* A run that has left gives its claim back instead of running. */
	assert(!run->has_left || run->state == HX_RUN_FINISHING);
	assert(!run->is_parked || run->is_overdue);
	/* A fenced run asks nothing more about its lease. */
	assert(!run->is_fenced || run->renew_at_ms == HAPAX_TIME_NEVER);
	if (run->is_side_question) {
		assert(run->question == HAPAX_OP_RENEW || run->question == HAPAX_OP_PARK);
		assert(run->is_asking || run->is_listed);
	}
}

void hx_run_assert(const struct hapax_run *run)
{
	assert(run->key_count <= run->key_capacity);
	assert(run->sequence <= run->processor->sequence);
	assert(run->timer.context == run);
	/* (1): one question at a time, which is listed first and then in progress. */
	assert(!run->is_asking || !run->is_listed);
	/* (2): the function that lists a step makes sure that it is reported. */
	assert(run->steps == 0 || run->is_telling);
	if (run->key_count == 0) {
		assert_unprotected(run);
		return;
	}
	assert(run->options.lease_ms > 0);
	switch (run->state) {
	case HX_RUN_CLAIMING: assert_claiming(run); return;
	case HX_RUN_WAITING: assert_waiting(run); return;
	case HX_RUN_RUNNING:
	case HX_RUN_FINISHING: assert_held(run); return;
	case HX_RUN_ENDED: break;
	}
	assert(run->state == HX_RUN_ENDED);
	assert(!run->is_asking);
	assert(!run->is_listed);
	assert(run->timer.place == 0);
	assert(run->keys[0].queue == NULL);
}
