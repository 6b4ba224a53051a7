/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.c - while a run works: renew the lease, detect its loss, enforce max_run.
 *
 * The lease is renewed after a third of its length, not near its end. Two renewals may fail before
 * it lapses, and a paused process learns that it was fenced while it can still stop. A renewal
 * whose answer was lost counts as failed. A run lapses by its own clock before it does by the
 * store's. A lapsed run may still renew if no other run took over.
 */
#include <assert.h>

#include "processor/processor.h"
#include "processor/steps.h"

enum { RENEWALS_PER_LEASE = 3 };

static int64_t span_to_renewal(const struct hapax_run *run)
{
	int64_t span_ms = run->options.lease_ms / RENEWALS_PER_LEASE;

	assert(run->options.lease_ms > 0);
	return span_ms < 1 ? 1 : span_ms;
}

void hx_lease_begin(struct hapax_run *run)
{
	if (!run->processor->has_lease)
		return;
	run->lease_ends_ms = hx_time_after(run->sent_ms, run->options.lease_ms);
	run->renew_at_ms = hx_time_after(run->sent_ms, span_to_renewal(run));
	run->overdue_at_ms = hx_time_after(run->sent_ms, run->options.max_run_ms);
	assert(run->renew_at_ms <= run->lease_ends_ms);
	assert(run->sent_ms < run->lease_ends_ms);
	assert(run->sent_ms < run->overdue_at_ms);
}

bool hx_lease_lives(const struct hapax_run *run, int64_t now_ms)
{
	return !run->processor->has_lease || run->key_count == 0 ||
		(now_ms < run->lease_ends_ms && !run->is_lapsed && !run->is_fenced &&
		 !run->is_overdue);
}

int hapax_run_may_begin(struct hapax_run *run)
{
	struct hapax_processor *processor = run->processor;
	bool lives;

	hx_mutex_lock(&processor->mutex);
	lives = hx_lease_lives(run, hx_processor_now(processor));
	hx_mutex_unlock(&processor->mutex);
	return lives;
}

static void hold_again(struct hx_pump *pump, struct hapax_run *run)
{
	assert(run->is_lapsed);
	assert(!run->is_fenced);
	assert(!run->is_parked);
	run->is_lapsed = false;
	for (size_t i = 0; i < run->key_count; i++) {
		struct hx_key_queue *queue = run->keys[i].queue;

		if (queue->holder != NULL)
			continue;
		queue->holder = run;
		hx_timer_clear(&pump->processor->timers, &queue->timer);
		hx_key_queue_assert(queue);
	}
}

static void renewed(struct hx_pump *pump, struct hapax_run *run)
{
	assert(run->question == HAPAX_OP_RENEW);
	/* The renewal was sent after the claim: the lease does not get shorter. */
	assert(hx_time_after(run->sent_ms, run->options.lease_ms) >= run->lease_ends_ms);
	run->processor->stats.renewed++;
	run->repeats = 0;
	run->lease_ends_ms = hx_time_after(run->sent_ms, run->options.lease_ms);
	if (!run->is_overdue)
		run->renew_at_ms = hx_time_after(run->sent_ms, span_to_renewal(run));
	if (run->is_lapsed)
		hold_again(pump, run);
}

static void parked(struct hx_pump *pump, struct hapax_run *run)
{
	assert(run->is_overdue);
	assert(run->options.on_lapse == HAPAX_ON_LAPSE_PARK);
	run->is_parked = true;
	run->renew_at_ms = HAPAX_TIME_NEVER;
	hx_claim_part(pump, run, HX_PARTING_SETTLED);
}

static void fenced(struct hx_pump *pump, struct hapax_run *run)
{
	assert(!run->is_fenced);
	assert(!run->is_parked);
	run->is_fenced = true;
	run->renew_at_ms = HAPAX_TIME_NEVER;
	run->processor->stats.fenced++;
	hx_claim_part(pump, run, HX_PARTING_LOST);
	if (run->state == HX_RUN_RUNNING)
		hx_pump_tell(pump, run, HAPAX_STEP_FENCED);
}

static void not_renewed(struct hapax_run *run)
{
	int64_t now_ms = hx_processor_now(run->processor);

	assert(!run->is_fenced);
	/* Overdue while the renewal was in progress: nothing is left to ask. */
	if (run->is_overdue && run->options.on_lapse != HAPAX_ON_LAPSE_PARK)
		return;
	run->renew_at_ms = now_ms + hx_claim_repeat_after(run, run->options.lease_ms / 10);
}

void hx_lease_answered(struct hx_pump *pump, struct hapax_run *run, struct hx_verdict verdict)
{
	assert(run->state == HX_RUN_RUNNING || run->state == HX_RUN_FINISHING);
	assert(run->question == HAPAX_OP_RENEW || run->question == HAPAX_OP_PARK);
	assert(run->is_side_question);
	assert(!run->is_asking);
	run->is_side_question = false;
	if (verdict.status == HAPAX_ERR_FENCED)
		fenced(pump, run);
	else if (verdict.status != HAPAX_OK)
		not_renewed(run);
	else if (run->question == HAPAX_OP_PARK)
		parked(pump, run);
	else
		renewed(pump, run);
	/* The work ended during the renewal. */
	if (run->state == HX_RUN_FINISHING)
		hx_finish_ask(pump, run);
	else
		hx_run_arm(run);
	hx_run_assert(run);
}

static void overdue(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	assert(!run->is_overdue);
	assert(now_ms >= run->overdue_at_ms);
	run->is_overdue = true;
	run->processor->stats.overdue++;
	run->renew_at_ms = HAPAX_TIME_NEVER;
	if (run->options.on_lapse == HAPAX_ON_LAPSE_PARK)
		run->renew_at_ms = now_ms;
	hx_pump_tell(pump, run, HAPAX_STEP_OVERDUE);
}

static void lapsed(struct hx_pump *pump, struct hapax_run *run)
{
	assert(run->processor->has_lease);
	assert(!run->is_lapsed);
	assert(!run->is_fenced);
	run->is_lapsed = true;
	run->processor->stats.lapsed++;
	hx_claim_part(pump, run, HX_PARTING_LOST);
	hx_pump_tell(pump, run, HAPAX_STEP_LAPSED);
}

void hx_lease_due(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	assert(run->state == HX_RUN_RUNNING);
	assert(run->key_count > 0);
	assert(run->timer.place == 0);
	/* The work has not started; hx_claim_is_good() checks the lease before it does. */
	if (run->steps & hx_step_bit(HAPAX_STEP_RUN))
		return;
	if (!run->is_overdue && !run->is_fenced && now_ms >= run->overdue_at_ms)
		overdue(pump, run, now_ms);
	if (!run->is_lapsed && !run->is_fenced && !run->is_parked && now_ms >= run->lease_ends_ms)
		lapsed(pump, run);
	if (!run->is_asking && !run->is_listed && now_ms >= run->renew_at_ms) {
		run->question = run->is_overdue ? HAPAX_OP_PARK : HAPAX_OP_RENEW;
		run->is_side_question = true;
		hx_pump_ask(pump, run);
	}
	hx_run_arm(run);
	hx_run_assert(run);
}
