/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - turns the questions of runs into operations, and routes the answers back.
 *
 * The operations of a run with several keys form one group, all or nothing. If memory for a batch
 * runs out, its runs get that error: nothing was done.
 */
#include "processor/batch.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "processor/processor.h"
#include "processor/steps.h"

enum { KEPT_OPS_MAX = 4096 };

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

void hx_batches_free(struct hapax_processor *processor)
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

/*
 * Combine the answers of a group: uncertain if any part is, else the first error, else the first
 * MISMATCH, else the first obstacle.
 */
static struct hx_verdict judge(const struct hapax_op *ops, size_t count)
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
		else if (verdict.outcome == HAPAX_OUTCOME_MISMATCH)
			continue;
		else if (
			outcome == HAPAX_OUTCOME_MISMATCH ||
			(outcome != HAPAX_OUTCOME_SKIPPED && !is_obstacle(verdict.outcome)))
			verdict = (struct hx_verdict){HAPAX_OK, outcome, i};
	}
	assert(verdict.status != HAPAX_OK || verdict.outcome == ops[verdict.index].outcome);
	return verdict;
}

static void answered(
	struct hx_pump *pump, struct hapax_run *run, const struct hapax_op *ops, size_t count)
{
	struct hx_verdict verdict = judge(ops, count);
	const struct hapax_op *op = &ops[verdict.index];

	assert(run->is_asking);
	assert(!run->is_listed);
	assert(op->type == run->question);
	run->is_asking = false;
	if (verdict.status == HAPAX_ERR_UNCERTAIN)
		run->is_uncertain = true;
	if (op->type == HAPAX_OP_CLAIM)
		hx_claim_answered(pump, run, verdict, op);
	else if (run->is_side_question)
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

void hx_batch_submit(struct hapax_processor *processor, struct hapax_run *list)
{
	while (list != NULL) {
		struct hapax_run *rest;
		struct hx_batch *batch;
		struct hx_pump pump;
		int64_t now_ms = hx_processor_now(processor);
		size_t count;

		hx_pump_enter(&pump, processor);
		rest = cut(list, &count);
		batch = take_batch(processor);
		if (batch == NULL || !make_room(batch, count)) {
			if (batch != NULL)
				give_batch(batch);
			batch_refuse(&pump, list, HAPAX_ERR_NO_MEMORY);
			batch = NULL;
		} else {
			batch->count = 0;
			for (; list != NULL; list = list->list_next)
				fill_run(batch, list, now_ms);
			assert(batch->count == count);
		}
		hx_pump_leave(&pump);
		list = rest;
		if (batch != NULL)
			hapax_store_submit(
				processor->store, batch->ops, batch->count,
				(struct hapax_completion){completed, batch});
	}
}
