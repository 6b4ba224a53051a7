/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/pump.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "processor/batch.h"
#include "processor/processor.h"
#include "processor/run.h"
#include "processor/steps.h"

/* The innermost pump that this thread is in. */
static _Thread_local struct hx_pump *current;

static struct hx_pump *outer_of(const struct hapax_processor *processor)
{
	struct hx_pump *pump = current;

	while (pump != NULL && pump->processor != processor)
		pump = pump->outer;
	return pump;
}

void hx_pump_enter(struct hx_pump *pump, struct hapax_processor *processor)
{
	*pump = (struct hx_pump){.processor = processor, .outer = current};
	pump->target = outer_of(processor);
	if (pump->target == NULL) {
		pump->target = pump;
		current = pump;
	}
	assert(pump->target->processor == processor);
	hx_mutex_lock(&processor->mutex);
	processor->pumps++;
}

void hx_pump_ask(struct hx_pump *pump, struct hapax_run *run)
{
	struct hx_pump *target = pump->target;

	assert(run->processor == target->processor);
	assert(!run->is_listed);
	assert(!run->is_asking);
	assert(run->key_count > 0);
	assert(run->state != HX_RUN_ENDED);
	run->is_listed = true;
	HX_LIST_ADD(&target->list, run, list_next);
}

static void list_for_tick(struct hapax_processor *processor, struct hapax_run *run)
{
	assert(run->is_telling);
	HX_LIST_ADD(&processor->tell, run, tell_next);
	processor->is_wake_due = true;
}

void hx_pump_tell(struct hx_pump *pump, struct hapax_run *run, enum hapax_step step)
{
	struct hx_pump *target = pump->target;

	assert(run->processor == target->processor);
	/* END is the last step: nothing comes after it. */
	assert((run->steps & hx_step_bit(HAPAX_STEP_END)) == 0);
	assert((step == HAPAX_STEP_END) == (run->state == HX_RUN_ENDED));
	assert(step != HAPAX_STEP_WAIT || run->state == HX_RUN_WAITING);
	assert(step != HAPAX_STEP_RUN || run->state == HX_RUN_RUNNING);
	/* RUN and END make earlier steps about waiting and loss obsolete. */
	if (step == HAPAX_STEP_END)
		run->steps = 0;
	if (step == HAPAX_STEP_RUN)
		run->steps &= ~hx_step_bit(HAPAX_STEP_WAIT);
	run->steps |= hx_step_bit(step);
	if (run->is_telling)
		return;
	run->is_telling = true;
	if (pump->processor->options.flags & HAPAX_PROCESSOR_STEPS_IN_TICK) {
		list_for_tick(pump->processor, run);
		return;
	}
	HX_LIST_ADD(&target->tell, run, tell_next);
}

/* Remove and return the first pending step, or 0. */
static enum hapax_step take_step(struct hapax_run *run)
{
	for (enum hapax_step step = HAPAX_STEP_WAIT; step <= HAPAX_STEP_END; step++) {
		if (run->steps & hx_step_bit(step)) {
			run->steps &= ~hx_step_bit(step);
			return step;
		}
	}
	return 0;
}

static bool is_decision(enum hapax_step step, const struct hapax_answer *answer)
{
	return step == HAPAX_STEP_RUN ||
		(step == HAPAX_STEP_END && answer->outcome != HAPAX_OUTCOME_ACQUIRED);
}

static void report_decision(const struct hapax_run *run, const struct hapax_answer *answer)
{
	const struct hapax_processor_options *options = &run->processor->options;
	struct hapax_decided decided = {.answer = answer};

	if (run->key_count > 0) {
		decided.tenant = run->keys[0].tenant;
		decided.group = run->keys[0].group;
		decided.key = run->keys[0].key;
	}
	if (run->origin != NULL) {
		decided.shadow = run->origin->shadow;
		decided.event = run->origin->event;
	}
	options->decided(&decided, options->decided_context);
}

/*
 * Locks: the mutex is held, but not during the step. The run may continue meanwhile and claim
 * again. A step before END therefore carries a copy of the one text it needs, and no other.
 */
static void tell_step(struct hapax_run *run, enum hapax_step step)
{
	struct hapax_processor *processor = run->processor;
	struct hapax_answer answer = run->answer;
	unsigned char holder[HX_OWNER_SIZE_MAX];

	assert(run->is_telling);
	assert((run->steps & hx_step_bit(step)) == 0);
	if (step != HAPAX_STEP_END) {
		assert(answer.owner.size <= sizeof(holder));
		memset(&answer.result, 0, sizeof(answer.result));
		answer.error = hx_bytes(NULL, 0);
		memcpy(holder, run->holder, answer.owner.size);
		answer.owner.data = holder;
	}
	hx_mutex_unlock(&processor->mutex);
	if (processor->options.decided != NULL && is_decision(step, &answer))
		report_decision(run, &answer);
	run->step(run, step, &answer, run->context);
	hx_mutex_lock(&processor->mutex);
}

static void tell(struct hx_pump *pump, struct hapax_run *run)
{
	enum hapax_step step;

	assert(run->is_telling);
	while ((step = take_step(run)) != 0) {
		/* The step waited, whatever the reason; a lapsed lease does not permit a run. */
		if (step == HAPAX_STEP_RUN && !hx_claim_is_good(pump, run))
			continue;
		tell_step(run, step);
		if (step == HAPAX_STEP_END) {
			assert(run->state == HX_RUN_ENDED);
			hx_run_give(run);
			return;
		}
	}
	/* Its last step would have freed it. */
	assert(run->state != HX_RUN_ENDED);
	run->is_telling = false;
}

void hx_pump_tell_waiting(struct hx_pump *pump)
{
	struct hapax_processor *processor = pump->processor;

	while (processor->tell.first != NULL) {
		struct hapax_run *run = processor->tell.first;

		assert(run->processor == processor);
		processor->tell.first = run->tell_next;
		tell(pump, run);
	}
}

/* Questions first: the steps that they cause are then reported together. */
static void work_off(struct hx_pump *pump)
{
	struct hapax_processor *processor = pump->processor;

	for (;;) {
		struct hapax_run *run;

		if (pump->list.first != NULL) {
			run = pump->list.first;
			pump->list.first = NULL;
			hx_mutex_unlock(&processor->mutex);
			hx_batch_submit(processor, run);
			hx_mutex_lock(&processor->mutex);
		} else if (pump->tell.first != NULL) {
			run = pump->tell.first;
			pump->tell.first = run->tell_next;
			tell(pump, run);
		} else {
			return;
		}
	}
}

void hx_pump_leave(struct hx_pump *pump)
{
	struct hapax_processor *processor = pump->processor;
	bool wakes;

	if (pump->target == pump) {
		work_off(pump);
		assert(current == pump);
		assert(pump->list.first == NULL);
		assert(pump->tell.first == NULL);
		current = pump->outer;
	}
	if (hx_timer_heap_next(&processor->timers) < processor->tick_at_ms)
		processor->is_wake_due = true;
	wakes = processor->is_wake_due && !processor->is_ticking;
	if (wakes) {
		/* One wake-up is enough until the tick comes. */
		processor->is_wake_due = false;
		processor->tick_at_ms = INT64_MIN;
	}
	if (wakes)
		hx_processor_wake(processor);
	assert(processor->pumps > 0);
	processor->pumps--;
	if (processor->pumps == 0)
		hx_cond_broadcast(&processor->idle);
	hx_mutex_unlock(&processor->mutex);
}
