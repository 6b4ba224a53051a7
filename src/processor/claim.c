/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.c - start a run and claim its key: send the claim, wait in the queue, retry.
 *
 * Only the store decides. A run that gets IN_PROGRESS and may wait joins the key's queue. It claims
 * again, with a new attempt_id, after one of these events:
 *
 *	holder                        runs that claim again    possible result
 *	completed or parked           all waiters              REPLAY, PARKED
 *	released                      the oldest waiter        ACQUIRED, IN_PROGRESS
 *	was fenced or lapsed          the oldest waiter        any
 *	holds and renews              none
 *	is in another process         the oldest, on a timer   any
 *
 * The holder can change between a claim and its answer. The queue's turns detect this, and the
 * claim is sent again.
 *
 * The lease can lapse between a claim and step RUN, if the store was slow or the process was
 * stopped. RUN is then not reported; the claim is sent again with the same attempt_id.
 */
#include <assert.h>
#include <string.h>

#include "base/backoff.h"
#include "base/bytes.h"
#include "base/error.h"
#include "processor/processor.h"
#include "processor/steps.h"

bool hx_claim_is_worth_repeating(enum hapax_status status)
{
	return status == HAPAX_ERR_UNAVAILABLE || status == HAPAX_ERR_UNCERTAIN ||
		status == HAPAX_ERR_NO_MEMORY;
}

int64_t hx_claim_repeat_after(struct hapax_run *run, int64_t bound_ms)
{
	enum { FIRST_MS = 10 };

	/* Only an answered question is repeated, and with the attempt_id that it had. */
	assert(!run->is_asking);
	assert(!run->is_listed);
	run->processor->stats.repeated++;
	return hx_backoff(
		FIRST_MS, bound_ms > 0 ? bound_ms : 1, run->repeats++,
		hx_processor_random(run->processor));
}

static void claim_ask(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	const struct hapax_processor_options *options = &run->processor->options;

	assert(run->key_count > 0);
	assert(run->state == HX_RUN_CLAIMING || run->state == HX_RUN_WAITING);
	/* It has stepped out of the queue in which it waited. */
	assert(run->wait_back == NULL);
	assert(run->wait_next == NULL);
	hx_processor_attempt_id(run->processor, run->attempt_id);
	run->state = HX_RUN_CLAIMING;
	run->question = HAPAX_OP_CLAIM;
	run->is_uncertain = false;
	run->is_bare = false;
	run->is_late = false;
	run->repeats = 0;
	/* Its bytes lie in the record's buffer, which the claim overwrites. */
	run->answer.original_cause = hx_bytes(NULL, 0);
	run->give_up_at_ms = hx_time_after(now_ms, options->timeout_ms);
	hx_pump_ask(pump, run);
	hx_run_arm(run);
	/* The answer comes, and needs no timer. */
	assert(run->timer.place == 0);
}

/* Take the run out of the queue and let it claim. */
static void wake(struct hx_pump *pump, struct hx_key_queue *queue, struct hapax_run *run)
{
	assert(run->state == HX_RUN_WAITING);
	assert(run->keys[run->wait_index].queue == queue);
	assert(run->processor->stats.waiting > 0);
	hx_key_queue_step_out(queue, run);
	run->processor->stats.waiting--;
	claim_ask(pump, run, hx_processor_now(run->processor));
}

/* Let the oldest waiter claim. */
static void wake_one(struct hx_pump *pump, struct hx_key_queue *queue)
{
	struct hapax_run *run = queue->first;

	if (run == NULL || queue->scout != NULL)
		return;
	assert(run->sequence <= queue->last->sequence);
	hx_timer_clear(&pump->processor->timers, &queue->timer);
	queue->scout = run;
	wake(pump, queue, run);
	hx_key_queue_assert(queue);
}

/* Let all waiters claim. */
static void wake_all(struct hx_pump *pump, struct hx_key_queue *queue)
{
	hx_timer_clear(&pump->processor->timers, &queue->timer);
	while (queue->first != NULL) {
		pump->processor->stats.woken++;
		wake(pump, queue, queue->first);
	}
	assert(queue->last == NULL);
}

/* No run of this process holds the key: claim again at that time if there are waiters. */
static void watch(struct hx_pump *pump, struct hx_key_queue *queue, int64_t at_ms)
{
	if (queue->first == NULL || queue->holder != NULL || queue->scout != NULL)
		return;
	if (queue->timer.place == 0 || at_ms < queue->timer.at)
		hx_timer_set(&pump->processor->timers, &queue->timer, at_ms);
	assert(queue->timer.at <= at_ms);
}

void hx_key_queue_due(struct hx_pump *pump, struct hx_key_queue *queue)
{
	assert(queue->timer.place == 0);
	assert(queue->members->run->processor == pump->processor);
	if (queue->holder != NULL || queue->scout != NULL || queue->first == NULL)
		return;
	pump->processor->stats.polled++;
	wake_one(pump, queue);
}

/* When to claim again a key that another process holds. */
static int64_t next_look(const struct hapax_processor *processor, int64_t lease_left_ms)
{
	int64_t span_ms = processor->options.poll_ms;

	/* One more than is left: the store's milliseconds and ours do not end together. */
	if (lease_left_ms > 0 && lease_left_ms < span_ms)
		span_ms = lease_left_ms + 1;
	/* Looking again at once would be a busy loop. */
	assert(span_ms > 0);
	assert(span_ms <= processor->options.poll_ms);
	return hx_time_after(hx_processor_now(processor), span_ms);
}

void hx_claim_part(struct hx_pump *pump, struct hapax_run *run, enum hx_parting parting)
{
	assert(run->key_count > 0);
	assert(run->state == HX_RUN_RUNNING || run->state == HX_RUN_FINISHING);
	for (size_t i = 0; i < run->key_count; i++) {
		struct hx_key_queue *queue = run->keys[i].queue;

		if (queue->holder == run)
			queue->holder = NULL;
		queue->turns++;
		if (parting == HX_PARTING_SETTLED) {
			wake_all(pump, queue);
		} else if (parting == HX_PARTING_FREE) {
			pump->processor->stats.woken +=
				queue->first != NULL && queue->scout == NULL;
			wake_one(pump, queue);
		} else {
			watch(pump, queue, hx_time_after(hx_processor_now(run->processor), 1));
		}
		/* A settled key leaves no waiter; otherwise the waiters have a scout or timer. */
		assert(parting != HX_PARTING_SETTLED || queue->first == NULL);
		assert(queue->first == NULL || queue->holder != NULL || queue->scout != NULL ||
		       queue->timer.place != 0);
		hx_key_queue_assert(queue);
	}
}

/*
 * The scout of a queue has its answer. Waiters in any queue other than the one that decided have
 * learned nothing and send the next scout.
 */
static void return_scout(
	struct hx_pump *pump, struct hapax_run *run, const struct hx_key_queue *decided)
{
	for (size_t i = 0; i < run->key_count; i++) {
		struct hx_key_queue *queue = run->keys[i].queue;

		if (queue->scout != run)
			continue;
		assert(run->state == HX_RUN_CLAIMING);
		queue->scout = NULL;
		if (queue != decided)
			wake_one(pump, queue);
	}
}

static void note_holder(struct hapax_run *run, struct hapax_bytes owner)
{
	size_t size = owner.size < sizeof(run->holder) ? owner.size : sizeof(run->holder);

	if (size > 0)
		memcpy(run->holder, owner.data, size);
	run->answer.owner = hx_bytes(run->holder, size);
}

/* Copy the holder's event into the buffer of the record, which no claim uses meanwhile. */
static void note_cause(struct hapax_run *run, struct hapax_bytes cause)
{
	struct hapax_buf *buf = &run->keys[0].buf;

	hx_buf_clear(buf);
	if (cause.size != 0 && hx_buf_append(buf, cause.data, cause.size) == HAPAX_OK)
		run->answer.original_cause = hapax_buf_bytes(buf);
}

/* Copy the part of the store's answer that the caller may see. */
static void note(struct hapax_run *run, const struct hapax_op *op, size_t index)
{
	struct hapax_answer *answer = &run->answer;
	const struct hx_run_key *key = &run->keys[index];

	assert(index < run->key_count);
	assert(key->index < run->key_count);
	assert(key->run == run);
	answer->outcome = op->outcome;
	answer->token = op->token;
	memset(answer->attempt_id, 0, sizeof(answer->attempt_id));
	answer->attempt = op->attempt;
	answer->key_index = key->index;
	answer->first_seen_ms = op->first_seen_ms;
	answer->expires_ms = op->expires_ms;
	answer->lease_left_ms = op->lease_left_ms;
	note_holder(run, key->record.owner);
	answer->error = key->record.error;
	answer->original_cause = key->record.cause;
	answer->original_token = 0;
	memset(&answer->result, 0, sizeof(answer->result));
	answer->flags &= ~(
		unsigned)(HAPAX_ANSWER_UNVERIFIED | HAPAX_ANSWER_MISMATCH | HAPAX_ANSWER_CONTINUED);
	if (op->unverified)
		answer->flags |= HAPAX_ANSWER_UNVERIFIED;
	if (op->continued)
		answer->flags |= HAPAX_ANSWER_CONTINUED;
}

static void failed(struct hx_pump *pump, struct hapax_run *run, enum hapax_status status);

static void acquired(struct hx_pump *pump, struct hapax_run *run)
{
	assert(run->answer.outcome == HAPAX_OUTCOME_ACQUIRED);
	/* A step of an earlier claim would be reported with the token of this one. */
	assert((run->steps & hx_step_bit(HAPAX_STEP_RUN)) == 0);
	run->token = run->answer.token;
	run->attempt = run->answer.attempt;
	memcpy(run->answer.attempt_id, run->attempt_id, sizeof(run->attempt_id));
	run->answer.owner = hx_bytes(NULL, 0);
	run->answer.error = hx_bytes(NULL, 0);
	run->answer.original_cause = hx_bytes(NULL, 0);
	for (size_t i = 0; i < run->key_count; i++) {
		struct hx_key_queue *queue = run->keys[i].queue;

		if (queue->scout == run)
			queue->scout = NULL;
		queue->holder = run;
		hx_timer_clear(&pump->processor->timers, &queue->timer);
	}
	hx_lease_begin(run);
	if (run->has_left) {
		hx_finish_give_back(pump, run);
		return;
	}
	run->state = HX_RUN_RUNNING;
	pump->processor->stats.running++;
	hx_run_arm(run);
	hx_pump_tell(pump, run, HAPAX_STEP_RUN);
	hx_run_assert(run);
}

/*
 * Repeat the claim with the same attempt_id. If the run still holds it, the lease starts again;
 * otherwise the answer says how things stand. Repeats are bounded: a store may always be slower
 * than the lease.
 */
static void ask_again(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	assert(run->state == HX_RUN_RUNNING);
	assert(!run->has_left);
	assert(pump->processor->stats.running > 0);
	hx_claim_part(pump, run, HX_PARTING_LOST);
	pump->processor->stats.running--;
	pump->processor->stats.late++;
	run->state = HX_RUN_CLAIMING;
	run->question = HAPAX_OP_CLAIM;
	run->is_bare = false;
	/* The store granted it, and may count it as live; no caller gets a token for it. */
	run->is_uncertain = true;
	run->answer.token = 0;
	memset(run->answer.attempt_id, 0, sizeof(run->answer.attempt_id));
	if (!run->is_late)
		run->give_up_at_ms = hx_time_after(now_ms, run->processor->options.timeout_ms);
	run->is_late = true;
	if (now_ms >= run->give_up_at_ms) {
		failed(pump, run, HAPAX_ERR_UNAVAILABLE);
		return;
	}
	hx_pump_ask(pump, run);
	hx_run_arm(run);
}

bool hx_claim_is_good(struct hx_pump *pump, struct hapax_run *run)
{
	int64_t now_ms;

	assert(run->state == HX_RUN_RUNNING);
	assert(!run->is_asking);
	assert(!run->is_listed);
	/* The step was taken from the list and is not reported yet. */
	assert(run->is_telling);
	assert((run->steps & hx_step_bit(HAPAX_STEP_RUN)) == 0);
	if (!run->processor->has_lease || run->key_count == 0)
		return true;
	now_ms = hx_processor_now(run->processor);
	if (!hx_lease_lives(run, now_ms)) {
		ask_again(pump, run, now_ms);
		return false;
	}
	/* The timer fired while the run waited for its step. */
	if (run->timer.place == 0)
		hx_run_arm(run);
	return true;
}

static void stand_in_line(struct hx_pump *pump, struct hapax_run *run, size_t index)
{
	struct hx_key_queue *queue = run->keys[index].queue;

	assert(index < run->key_count);
	assert(run->state == HX_RUN_CLAIMING);
	assert(run->answer.outcome == HAPAX_OUTCOME_IN_PROGRESS);
	run->state = HX_RUN_WAITING;
	run->wait_index = index;
	hx_key_queue_wait(queue, run);
	run->processor->stats.waiting++;
	hx_run_arm(run);
	if (!run->has_waited) {
		run->has_waited = true;
		run->answer.flags |= HAPAX_ANSWER_WAITED;
		run->processor->stats.attached++;
		hx_pump_tell(pump, run, HAPAX_STEP_WAIT);
	}
	watch(pump, queue, next_look(run->processor, run->answer.lease_left_ms));
	hx_run_assert(run);
	hx_key_queue_assert(queue);
}

static void in_progress(struct hx_pump *pump, struct hapax_run *run, size_t index)
{
	struct hx_key_queue *queue = run->keys[index].queue;
	int64_t now_ms = hx_processor_now(run->processor);
	bool may_wait = !run->has_left && now_ms < run->wait_ends_ms;

	/* The turns of a queue only rise. */
	assert(run->keys[index].turns_seen <= queue->turns);
	run->answer.outcome = HAPAX_OUTCOME_IN_PROGRESS;
	if (may_wait && queue->turns != run->keys[index].turns_seen) {
		/* It remains the scout of its queue. */
		claim_ask(pump, run, now_ms);
		return;
	}
	return_scout(pump, run, queue);
	if (may_wait) {
		stand_in_line(pump, run, index);
	} else {
		watch(pump, queue, next_look(run->processor, run->answer.lease_left_ms));
		hx_run_end(pump, run, HAPAX_OK);
	}
}

/* The key is done or parked; this settles all waiters, too. */
static void settled(struct hx_pump *pump, struct hapax_run *run, size_t index)
{
	struct hx_key_queue *queue = run->keys[index].queue;

	assert(queue->holder != run);
	/* A bare claim has no result to replay. */
	assert(!run->is_bare || run->answer.outcome == HAPAX_OUTCOME_PARKED);
	if (run->answer.outcome == HAPAX_OUTCOME_REPLAY) {
		run->answer.result = run->keys[index].record.result;
		run->answer.original_token = run->keys[index].record.token;
	}
	return_scout(pump, run, queue);
	wake_all(pump, queue);
	hx_run_end(pump, run, HAPAX_OK);
}

/* The key is done, for all waiters, too; only its result cannot be read. */
static void unreadable(struct hx_pump *pump, struct hapax_run *run, size_t index)
{
	struct hx_key_queue *queue = run->keys[index].queue;

	assert(run->is_bare);
	assert(run->answer.outcome == HAPAX_OUTCOME_REPLAY);
	run->answer.outcome = HAPAX_OUTCOME_NONE;
	run->answer.flags |= HAPAX_ANSWER_UNREADABLE;
	return_scout(pump, run, queue);
	wake_all(pump, queue);
	hx_run_end(pump, run, HAPAX_ERR_CORRUPT);
}

static void mismatched(struct hx_pump *pump, struct hapax_run *run, size_t index)
{
	enum hapax_state state = run->keys[index].record.state;

	assert(run->answer.outcome == HAPAX_OUTCOME_MISMATCH);
	if (run->options.on_mismatch == HAPAX_ON_MISMATCH_REJECT) {
		/* A caller must not see the owner, error and event of a different payload. */
		run->answer.owner = hx_bytes(NULL, 0);
		run->answer.error = hx_bytes(NULL, 0);
		run->answer.original_cause = hx_bytes(NULL, 0);
	} else {
		run->answer.flags |= HAPAX_ANSWER_MISMATCH;
		if (state == HAPAX_STATE_CLAIMED) {
			in_progress(pump, run, index);
			return;
		}
		run->answer.outcome =
			state == HAPAX_STATE_PARKED ? HAPAX_OUTCOME_PARKED : HAPAX_OUTCOME_REPLAY;
		if (state == HAPAX_STATE_DONE)
			run->answer.original_token = run->keys[index].record.token;
	}
	return_scout(pump, run, NULL);
	hx_run_end(pump, run, HAPAX_OK);
}

/*
 * The stored result cannot be read. Repeat the claim without asking for the result: the store then
 * says whether the key is done, unless it is damaged as a whole.
 */
static void ask_bare(struct hx_pump *pump, struct hapax_run *run)
{
	assert(!run->is_bare);
	assert(run->state == HX_RUN_CLAIMING);
	for (size_t i = 0; i < run->key_count; i++)
		memset(&run->keys[i].record, 0, sizeof(run->keys[i].record));
	run->is_bare = true;
	hx_pump_ask(pump, run);
	hx_run_arm(run);
}

static void failed(struct hx_pump *pump, struct hapax_run *run, enum hapax_status status)
{
	int64_t now_ms = hx_processor_now(run->processor);

	assert(status != HAPAX_OK);
	assert(run->state == HX_RUN_CLAIMING);
	assert(!run->is_asking);
	if (status == HAPAX_ERR_CORRUPT && !run->is_bare && !run->has_left) {
		ask_bare(pump, run);
		return;
	}
	if (!run->has_left && hx_claim_is_worth_repeating(status) && now_ms < run->give_up_at_ms &&
	    run->processor->has_lease) {
		run->repeat_at_ms =
			now_ms + hx_claim_repeat_after(run, run->processor->options.timeout_ms / 4);
		hx_run_arm(run);
		return;
	}
	for (size_t i = 0; i < run->key_count; i++) {
		struct hx_key_queue *queue = run->keys[i].queue;

		if (queue->scout == run)
			queue->scout = NULL;
		watch(pump, queue, next_look(run->processor, 0));
	}
	if (run->has_left && !run->is_uncertain)
		status = HAPAX_OK;
	else
		run->answer.outcome = HAPAX_OUTCOME_NONE;
	hx_run_end(pump, run, hx_final_status(run, status));
}

void hx_claim_answered(
	struct hx_pump *pump, struct hapax_run *run, struct hx_verdict verdict,
	const struct hapax_op *op)
{
	assert(run->state == HX_RUN_CLAIMING);
	assert(!run->is_asking);
	assert(verdict.index < run->key_count);
	assert(verdict.status != HAPAX_OK || verdict.outcome == op->outcome);
	if (verdict.status != HAPAX_OK) {
		failed(pump, run, verdict.status);
		return;
	}
	/* Only the record says whether the run of the other payload is done. */
	if (run->is_bare && verdict.outcome == HAPAX_OUTCOME_MISMATCH &&
	    run->options.on_mismatch != HAPAX_ON_MISMATCH_REJECT) {
		failed(pump, run, HAPAX_ERR_CORRUPT);
		return;
	}
	note(run, op, verdict.index);
	if (run->is_bare && verdict.outcome == HAPAX_OUTCOME_REPLAY) {
		unreadable(pump, run, verdict.index);
		return;
	}
	switch (verdict.outcome) {
	case HAPAX_OUTCOME_ACQUIRED: acquired(pump, run); return;
	case HAPAX_OUTCOME_IN_PROGRESS: in_progress(pump, run, verdict.index); return;
	case HAPAX_OUTCOME_REPLAY:
	case HAPAX_OUTCOME_PARKED: settled(pump, run, verdict.index); return;
	case HAPAX_OUTCOME_MISMATCH: mismatched(pump, run, verdict.index); return;
	case HAPAX_OUTCOME_NONE:
	case HAPAX_OUTCOME_APPLIED:
	case HAPAX_OUTCOME_FOUND:
	case HAPAX_OUTCOME_ABSENT:
	case HAPAX_OUTCOME_BUSY:
	case HAPAX_OUTCOME_NOT_MET:
	case HAPAX_OUTCOME_SKIPPED: break;
	}
	assert(false && "the store did not answer a claim");
}

static bool is_same_payload(const struct hx_run_key *a, const struct hx_run_key *b)
{
	/* Both are in the queue of one key. */
	assert(a->queue == b->queue);
	assert(a->run != b->run);
	return !a->has_fingerprint || !b->has_fingerprint ||
		memcmp(a->fingerprint, b->fingerprint, sizeof(a->fingerprint)) == 0;
}

/* Wait for a run of this process without asking the store, if possible. */
static bool claim_attach(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	struct hx_key_queue *queue = run->keys[0].queue;
	const struct hapax_run *holder = queue->holder;
	struct hapax_answer *answer = &run->answer;

	/* Comparing payloads takes more than a look if either side has several keys. */
	if (holder == NULL || holder->key_count != 1 || run->key_count != 1 ||
	    now_ms >= run->wait_ends_ms || !is_same_payload(&run->keys[0], &holder->keys[0]))
		return false;
	assert(holder->state == HX_RUN_RUNNING || holder->state == HX_RUN_FINISHING);
	answer->outcome = HAPAX_OUTCOME_IN_PROGRESS;
	answer->attempt = holder->attempt;
	answer->first_seen_ms = holder->answer.first_seen_ms;
	note_holder(run, holder->owner);
	note_cause(run, holder->cause);
	if (holder->lease_ends_ms > now_ms)
		answer->lease_left_ms = holder->lease_ends_ms - now_ms;
	stand_in_line(pump, run, 0);
	return true;
}

static void stop_waiting(struct hx_pump *pump, struct hapax_run *run)
{
	assert(run->state == HX_RUN_WAITING);
	assert(run->wait_index < run->key_count);
	assert(run->processor->stats.waiting > 0);
	hx_key_queue_step_out(run->keys[run->wait_index].queue, run);
	run->processor->stats.waiting--;
	hx_run_end(pump, run, HAPAX_OK);
}

void hx_claim_due(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	assert(run->state == HX_RUN_CLAIMING || run->state == HX_RUN_WAITING);
	/* A run that has an answer to come has no timer. */
	assert(!run->is_asking);
	assert(run->timer.place == 0);
	if (run->state == HX_RUN_WAITING && now_ms >= run->wait_ends_ms)
		stop_waiting(pump, run);
	else if (run->state == HX_RUN_CLAIMING && now_ms >= run->repeat_at_ms && !run->is_listed)
		hx_pump_ask(pump, run);
	else
		hx_run_arm(run);
}

static void claim_leave(struct hx_pump *pump, struct hapax_run *run)
{
	if (run->state == HX_RUN_WAITING) {
		stop_waiting(pump, run);
	} else if (run->state == HX_RUN_CLAIMING) {
		run->has_left = true;
		/* The store has no operation of this run: it waits to repeat its claim. */
		if (!run->is_asking && !run->is_listed)
			failed(pump, run, HAPAX_ERR_UNAVAILABLE);
	} else if (
		run->state == HX_RUN_RUNNING && (run->steps & hx_step_bit(HAPAX_STEP_RUN)) != 0) {
		/* It has the claim, but RUN is not reported yet: drop that step. */
		assert(run->is_telling);
		assert(run->processor->stats.running > 0);
		run->has_left = true;
		run->steps = 0;
		run->processor->stats.running--;
		hx_finish_give_back(pump, run);
	}
}

static void set_off(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms)
{
	assert(run->processor == pump->processor);
	assert(run->state == HX_RUN_CLAIMING);
	assert(run->sequence <= pump->processor->sequence);
	if (run->key_count == 0) {
		run->state = HX_RUN_RUNNING;
		run->attempt = 1;
		run->answer.attempt = 1;
		run->answer.outcome = HAPAX_OUTCOME_ACQUIRED;
		run->answer.flags |= HAPAX_ANSWER_UNPROTECTED;
		pump->processor->stats.running++;
		hx_pump_tell(pump, run, HAPAX_STEP_RUN);
		return;
	}
	run->wait_ends_ms = hx_time_after(now_ms, run->options.wait_ms);
	if (!claim_attach(pump, run, now_ms))
		claim_ask(pump, run, now_ms);
	assert(run->is_listed == (run->state == HX_RUN_CLAIMING));
}

/* Start with the early claim. No run can have waited for this answer: the run holds the key. */
static void take_over(
	struct hx_pump *pump, struct hapax_run *run, const struct hx_early_claim *claim)
{
	struct hx_verdict verdict = {HAPAX_OK, HAPAX_OUTCOME_ACQUIRED, 0};

	assert(run->key_count == 1);
	assert(claim->op->type == HAPAX_OP_CLAIM);
	assert(claim->op->status == HAPAX_OK);
	assert(claim->op->outcome == HAPAX_OUTCOME_ACQUIRED);
	run->state = HX_RUN_CLAIMING;
	run->question = HAPAX_OP_CLAIM;
	run->sent_ms = claim->sent_ms;
	memcpy(run->attempt_id, claim->op->attempt_id, sizeof(run->attempt_id));
	hx_claim_answered(pump, run, verdict, claim->op);
	assert(run->state == HX_RUN_RUNNING);
	assert(run->token == claim->op->token);
	assert(run->keys[0].queue->holder == run);
}

static enum hapax_status begin(
	struct hapax_processor *processor, const struct hapax_request *requests, size_t count,
	const struct hx_run_origin *origin, const struct hx_early_claim *claim,
	struct hapax_error *err)
{
	enum hapax_status status;
	struct hapax_run *list;
	struct hx_pump pump;
	int64_t now_ms;

	if (processor == NULL || (requests == NULL && count != 0))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a processor and requests are required");
	/* An early claim belongs to one request. */
	assert(claim == NULL || count == 1);
	now_ms = hx_processor_now(processor);
	hx_pump_enter(&pump, processor);
	status = hx_runs_prepare(processor, requests, count, origin, &list, err);
	while (status == HAPAX_OK && list != NULL) {
		struct hapax_run *run = list;

		list = run->list_next;
		if (claim != NULL)
			take_over(&pump, run, claim);
		else
			set_off(&pump, run, now_ms);
	}
	hx_pump_leave(&pump);
	return status;
}

enum hapax_status hapax_processor_begin(
	struct hapax_processor *processor, const struct hapax_request *requests, size_t count,
	struct hapax_error *err)
{
	return begin(processor, requests, count, NULL, NULL, err);
}

enum hapax_status hx_processor_begin_one(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, const struct hx_early_claim *claim,
	struct hapax_error *err)
{
	return begin(processor, request, 1, origin, claim, err);
}

void hapax_run_leave(struct hapax_run *run)
{
	struct hx_pump pump;

	hx_pump_enter(&pump, run->processor);
	claim_leave(&pump, run);
	hx_pump_leave(&pump);
}

void hapax_processor_leave(
	struct hapax_processor *processor, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key, const void *context)
{
	const struct hx_run_key wanted = {
		.tenant = hx_run_name(tenant), .group = hx_run_name(group), .key = key};
	struct hx_run_key *member;
	struct hx_key_queue *queue;
	struct hx_pump pump;

	hx_pump_enter(&pump, processor);
	queue = hx_key_queues_find(&processor->queues, &wanted);
	member = queue == NULL ? NULL : queue->members;
	while (member != NULL && (member->run->context != context || !member->run->has_waited))
		member = member->member_next;
	if (member != NULL) {
		assert(member->queue == queue);
		assert(member->run->processor == processor);
		claim_leave(&pump, member->run);
	}
	hx_pump_leave(&pump);
}
