/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.c - turns the questions of runs into operations, routes the answers back, and reports steps.
 *
 * The operations of a run with several keys form one group, all or nothing. If memory for a batch
 * runs out, its runs get that error: nothing was done.
 */
#include "processor/pump.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "processor/processor.h"
#include "processor/run.h"
#include "processor/steps.h"

enum { KEPT_OPS_MAX = 4096 };

/* Operations of several runs, in progress at the store. */
struct hx_batch {
	struct hapax_processor *processor;
	struct hapax_op *ops;
	size_t count;
	size_t capacity;
	struct hx_batch *next;     /* in the free list */
	struct hx_batch *all_next; /* in the list of all batches */
};

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
		const struct hx_run_key *first = hx_run_first_key(run);

		decided.tenant = first->tenant;
		decided.group = first->group;
		decided.key = first->key;
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
		answer.original_cause = hx_bytes(NULL, 0);
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

static struct hx_batch *take_batch(struct hapax_processor *processor)
{
	struct hx_batch *batch = processor->batches;

	if (batch != NULL) {
		processor->batches = batch->next;
		assert(batch->processor == processor);
		assert(batch->capacity <= KEPT_OPS_MAX);
		return batch;
	}
	batch = hx_alloc_zero(1, sizeof(*batch));
	if (batch == NULL)
		return NULL;
	batch->processor = processor;
	batch->all_next = processor->all_batches;
	processor->all_batches = batch;
	return batch;
}

static void give_batch(struct hx_batch *batch)
{
	assert((batch->ops == NULL) == (batch->capacity == 0));
	/* A batch that is given twice would serve two submits at once. */
	assert(batch != batch->processor->batches);
	/* A large batch is rare; do not keep it for the next submit. */
	if (batch->capacity > KEPT_OPS_MAX) {
		hx_free(batch->ops);
		batch->ops = NULL;
		batch->capacity = 0;
	}
	batch->next = batch->processor->batches;
	batch->processor->batches = batch;
}

static bool make_room(struct hx_batch *batch, size_t count)
{
	size_t capacity = batch->capacity == 0 ? 1 : batch->capacity;
	struct hapax_op *ops;

	assert(count > 0);
	assert(count <= HX_SUBMIT_OPS_MAX);
	if (count <= batch->capacity)
		return true;
	while (capacity < count)
		capacity *= 2;
	ops = hx_realloc(batch->ops, capacity * sizeof(*ops));
	if (ops == NULL)
		return false;
	batch->ops = ops;
	batch->capacity = capacity;
	return true;
}

void hx_pump_batches_free(struct hapax_processor *processor)
{
	while (processor->all_batches != NULL) {
		struct hx_batch *batch = processor->all_batches;

		assert(batch->processor == processor);
		processor->all_batches = batch->all_next;
		hx_free(batch->ops);
		hx_free(batch);
	}
	processor->batches = NULL;
}

static void fill_claim(struct hapax_op *op, struct hx_run_key *key)
{
	struct hapax_run *run = key->run;

	assert(run->state == HX_RUN_CLAIMING);
	assert(!run->is_side_question);
	/* The run joined its queues before it asks: it misses no turn of them. */
	assert(key->queue != NULL);
	op->fingerprint = key->has_fingerprint ? key->fingerprint : NULL;
	op->attempt_id = run->attempt_id;
	op->owner = run->owner;
	op->cause = run->cause;
	op->lease_ms = run->options.lease_ms;
	op->ttl_ms = run->options.ttl_ms;
	op->on_lapse = run->options.on_lapse;
	if (!run->is_bare) {
		op->record = &key->record;
		op->buf = &key->buf;
	}
	key->turns_seen = key->queue->turns;
}

static void fill_op(struct hapax_op *op, struct hx_run_key *key)
{
	struct hapax_run *run = key->run;

	assert(key >= run->keys);
	assert(key < run->keys + run->key_count);
	assert(run->question != HAPAX_OP_RENEW || run->is_side_question);
	assert(run->question != HAPAX_OP_COMPLETE || run->state == HX_RUN_FINISHING);
	memset(op, 0, sizeof(*op));
	op->type = run->question;
	op->context = run;
	op->tenant = key->tenant;
	op->group = key->group;
	op->key = key->key;
	op->token = run->token;
	if (run->question == HAPAX_OP_CLAIM)
		fill_claim(op, key);
	else if (run->question == HAPAX_OP_RENEW)
		op->lease_ms = run->options.lease_ms;
	else if (run->question == HAPAX_OP_COMPLETE)
		op->result = &run->result;
	else if (run->is_side_question)
		/* Not run->error: the run may end and change it during this operation. */
		op->error = HX_BYTES_LIT("the run exceeded its maximum time");
	else
		op->error = hapax_buf_bytes(&run->error);
}

static void fill_run(struct hx_batch *batch, struct hapax_run *run, int64_t now_ms)
{
	assert(run->is_listed);
	assert(!run->is_asking);
	assert(batch->count + run->key_count <= batch->capacity);
	for (size_t i = 0; i < run->key_count; i++) {
		struct hapax_op *op = &batch->ops[batch->count++];

		fill_op(op, &run->keys[i]);
		if (run->key_count == 1)
			break;
		if (i == 0)
			op->flags |= HAPAX_OP_ALL_OR_NOTHING;
		if (i + 1 < run->key_count)
			op->flags |= HAPAX_OP_LINKED;
	}
	run->is_listed = false;
	run->is_asking = true;
	run->repeat_at_ms = HAPAX_TIME_NEVER;
	/* Taken before sending, so that our lease ends no later than the store's. */
	run->sent_ms = now_ms;
	hx_run_arm(run);
}

/* Whether this outcome alone decides a group. */
static bool is_obstacle(enum hapax_outcome outcome)
{
	return outcome != HAPAX_OUTCOME_ACQUIRED && outcome != HAPAX_OUTCOME_APPLIED &&
		outcome != HAPAX_OUTCOME_SKIPPED;
}

/* The weight of an outcome in a group: work that is done is never done again or waited for. */
static int weight_of(enum hapax_outcome outcome)
{
	if (outcome == HAPAX_OUTCOME_MISMATCH)
		return 3;
	if (outcome == HAPAX_OUTCOME_REPLAY)
		return 2;
	return is_obstacle(outcome) ? 1 : 0;
}

/* Does the answer for key a decide rather than that for key b? SKIPPED never does. */
static bool outweighs(const struct hapax_run *run, const struct hapax_op *ops, size_t a, size_t b)
{
	int difference = weight_of(ops[a].outcome) - weight_of(ops[b].outcome);

	if (ops[a].outcome == HAPAX_OUTCOME_SKIPPED || ops[b].outcome == HAPAX_OUTCOME_SKIPPED)
		return ops[b].outcome == HAPAX_OUTCOME_SKIPPED;
	return difference > 0 || (difference == 0 && run->keys[a].index < run->keys[b].index);
}

/*
 * Combine the answers of a group: uncertain if any part is, else the first error, else the answer
 * that outweighs the others.
 */
static struct hx_verdict judge(
	const struct hapax_run *run, const struct hapax_op *ops, size_t count)
{
	struct hx_verdict verdict = {HAPAX_OK, ops[0].outcome, 0};

	assert(count > 0);
	for (size_t i = 0; i < count; i++) {
		enum hapax_outcome outcome = ops[i].outcome;

		if (ops[i].status == HAPAX_ERR_UNCERTAIN)
			return (struct hx_verdict){HAPAX_ERR_UNCERTAIN, HAPAX_OUTCOME_NONE, i};
		if (verdict.status != HAPAX_OK)
			continue;
		if (ops[i].status != HAPAX_OK)
			verdict = (struct hx_verdict){ops[i].status, HAPAX_OUTCOME_NONE, i};
		else if (i != verdict.index && outweighs(run, ops, i, verdict.index))
			verdict = (struct hx_verdict){HAPAX_OK, outcome, i};
	}
	assert(verdict.status != HAPAX_OK || verdict.outcome == ops[verdict.index].outcome);
	return verdict;
}

/* Do the keys of a claim that was not granted belong together? */
static void note_difference(struct hapax_run *run, const struct hapax_op *ops, size_t count)
{
	uint64_t token = 0;

	run->answer.flags &= ~(unsigned)(HAPAX_ANSWER_PARTLY | HAPAX_ANSWER_SPLIT);
	for (size_t i = 0; i < count; i++) {
		uint64_t other = run->keys[i].record.token;

		/* A refused operation has outcome NONE, and no record. */
		if (ops[i].outcome == HAPAX_OUTCOME_SKIPPED) {
			run->answer.flags |= HAPAX_ANSWER_PARTLY;
			continue;
		}
		if (ops[i].status != HAPAX_OK || !is_obstacle(ops[i].outcome) || run->is_bare)
			continue;
		/* 0: the store returned no record. */
		if (token != 0 && other != 0 && other != token)
			run->answer.flags |= HAPAX_ANSWER_SPLIT;
		if (other != 0)
			token = other;
	}
}

static void answered(
	struct hx_pump *pump, struct hapax_run *run, const struct hapax_op *ops, size_t count)
{
	struct hx_verdict verdict = judge(run, ops, count);
	const struct hapax_op *op = &ops[verdict.index];

	assert(run->is_asking);
	assert(!run->is_listed);
	assert(op->type == run->question);
	run->is_asking = false;
	if (verdict.status == HAPAX_ERR_UNCERTAIN)
		run->is_uncertain = true;
	if (op->type == HAPAX_OP_CLAIM) {
		note_difference(run, ops, count);
		hx_claim_answered(pump, run, verdict, op);
	} else if (run->is_side_question)
		hx_lease_answered(pump, run, verdict);
	else
		hx_finish_answered(pump, run, verdict, op);
}

static void completed(struct hapax_op *ops, size_t count, void *context)
{
	struct hx_batch *batch = context;
	struct hx_pump pump;

	assert(ops == batch->ops);
	assert(count == batch->count);
	hx_pump_enter(&pump, batch->processor);
	for (size_t i = 0; i < count;) {
		struct hapax_run *run = ops[i].context;
		size_t key_count = run->key_count;

		/* The operations of a run lie side by side. */
		assert(run->processor == batch->processor);
		assert(i + key_count <= count);
		answered(&pump, run, &ops[i], key_count);
		i += key_count;
	}
	give_batch(batch);
	hx_pump_leave(&pump);
}

/* Answer each run as if the store had returned this status. */
static void batch_refuse(struct hx_pump *pump, struct hapax_run *list, enum hapax_status status)
{
	assert(status != HAPAX_OK);
	while (list != NULL) {
		struct hapax_run *run = list;
		struct hapax_op op = {.type = run->question, .status = status};

		assert(run->is_listed);
		assert(!run->is_asking);
		list = run->list_next;
		run->is_listed = false;
		run->is_asking = true;
		run->sent_ms = hx_processor_now(run->processor);
		answered(pump, run, &op, 1);
	}
}

/* Cut off as many runs as fit into one submit, at least one; *ret_count: their operations. */
static struct hapax_run *cut(struct hapax_run *list, size_t *ret_count)
{
	struct hapax_run *last = list;
	struct hapax_run *rest;

	*ret_count = list->key_count;
	assert(*ret_count > 0);
	while (last->list_next != NULL &&
	       *ret_count + last->list_next->key_count <= HX_SUBMIT_OPS_MAX) {
		last = last->list_next;
		*ret_count += last->key_count;
	}
	rest = last->list_next;
	last->list_next = NULL;
	assert(*ret_count <= HX_SUBMIT_OPS_MAX);
	return rest;
}

/* NULL: no memory. */
static struct hx_batch *fill_batch(
	struct hapax_processor *processor, struct hapax_run *list, size_t count)
{
	int64_t now_ms = hx_processor_now(processor);
	struct hx_batch *batch = take_batch(processor);

	if (batch == NULL)
		return NULL;
	batch->count = 0;
	if (!make_room(batch, count)) {
		give_batch(batch);
		return NULL;
	}
	for (; list != NULL; list = list->list_next)
		fill_run(batch, list, now_ms);
	assert(batch->count == count);
	return batch;
}

/*
 * Submit the questions of the runs in the list (list_next), in one submit or several. Locks: the
 * mutex is held, but not while the store is called.
 */
static void submit(struct hx_pump *pump, struct hapax_run *list)
{
	struct hapax_processor *processor = pump->processor;

	while (list != NULL) {
		size_t count;
		struct hapax_run *rest = cut(list, &count);
		struct hx_batch *batch = fill_batch(processor, list, count);

		if (batch == NULL) {
			batch_refuse(pump, list, HAPAX_ERR_NO_MEMORY);
		} else {
			hx_mutex_unlock(&processor->mutex);
			hapax_store_submit(
				processor->store, batch->ops, batch->count,
				(struct hapax_completion){completed, batch});
			hx_mutex_lock(&processor->mutex);
		}
		list = rest;
	}
}

/* Questions first: the steps that they cause are then reported together. */
static void work_off(struct hx_pump *pump)
{
	for (;;) {
		struct hapax_run *run;

		if (pump->list.first != NULL) {
			run = pump->list.first;
			pump->list.first = NULL;
			submit(pump, run);
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
