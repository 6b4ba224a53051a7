/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish.c - from the end of the work to the end of the run.
 *
 *	outcome of the run                    operation
 *	ok, definitive                        complete
 *	transient                             release
 *	ambiguous, on_lapse retry             release
 *	ambiguous, on_lapse park              park
 *
 * A refused operation is repeated until the lease lapses by our clock; the same token makes that
 * harmless. A complete never becomes a release: the work was done. Once an answer was lost, only a
 * success settles it; otherwise the run ends as UNCERTAIN.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "processor/processor.h"
#include "processor/steps.h"

static enum hapax_op_type question_of(const struct hapax_run *run)
{
	assert(run->state == HX_RUN_FINISHING);
	assert(run->key_count > 0);
	switch (run->answer.run_outcome) {
	case HAPAX_RUN_OK:
	case HAPAX_RUN_DEFINITIVE: return HAPAX_OP_COMPLETE;
	case HAPAX_RUN_TRANSIENT: break;
	case HAPAX_RUN_AMBIGUOUS:
		if (run->options.on_lapse == HAPAX_ON_LAPSE_PARK)
			return HAPAX_OP_PARK;
		break;
	}
	return HAPAX_OP_RELEASE;
}

void hx_finish_ask(struct hx_pump *pump, struct hapax_run *run)
{
	assert(run->key_count > 0);
	/* Only a run that left goes from CLAIMING to FINISHING. */
	assert(run->state == HX_RUN_RUNNING || run->state == HX_RUN_FINISHING || run->has_left);
	assert(run->state != HX_RUN_WAITING);
	assert(run->state != HX_RUN_ENDED);
	run->state = HX_RUN_FINISHING;
	hx_run_arm(run);
	/*
	 * A renewal in progress could arrive after a park and undo it. Wait for its answer, which
	 * leads back here.
	 */
	if (run->is_asking || run->is_listed)
		return;
	assert(!run->is_side_question);
	run->question = question_of(run);
	run->is_uncertain = false;
	run->repeats = 0;
	hx_pump_ask(pump, run);
	hx_run_assert(run);
}

void hx_finish_give_back(struct hx_pump *pump, struct hapax_run *run)
{
	static const char why[] = "the caller did not wait for it";

	assert(run->has_left);
	/* The work has not begun, and does not begin any more. */
	assert((run->steps & hx_step_bit(HAPAX_STEP_RUN)) == 0);
	run->answer.run_outcome = HAPAX_RUN_TRANSIENT;
	hx_buf_clear(&run->error);
	(void)hx_buf_append(&run->error, why, sizeof(why) - 1);
	hx_finish_ask(pump, run);
}

void hx_run_end(struct hx_pump *pump, struct hapax_run *run, enum hapax_status status)
{
	struct hapax_processor *processor = run->processor;

	assert(run->state != HX_RUN_ENDED);
	assert(!run->is_asking);
	assert(!run->is_listed);
	assert(run->wait_back == NULL);
	assert(run->wait_next == NULL);
	run->state = HX_RUN_ENDED;
	run->answer.status = status;
	hx_run_arm(run);
	for (size_t i = 0; i < run->key_count; i++) {
		assert(run->keys[i].queue->holder != run);
		assert(run->keys[i].queue->scout != run);
		hx_key_queues_quit(&processor->queues, &processor->timers, &run->keys[i]);
	}
	hx_pump_tell(pump, run, HAPAX_STEP_END);
	assert(run->steps == hx_step_bit(HAPAX_STEP_END));
	assert(run->timer.place == 0);
}

static void end(
	struct hx_pump *pump, struct hapax_run *run, enum hx_parting parting,
	enum hapax_status status)
{
	assert(run->state == HX_RUN_FINISHING);
	/* The key is free or settled only if the store said so. */
	assert(status == HAPAX_OK || parting == HX_PARTING_LOST);
	status = hx_final_status(run, status);
	hx_claim_part(pump, run, parting);
	if (run->has_left) {
		run->answer.outcome = HAPAX_OUTCOME_IN_PROGRESS;
		run->answer.token = 0;
		memset(run->answer.attempt_id, 0, sizeof(run->answer.attempt_id));
		status = HAPAX_OK;
	}
	if (status == HAPAX_ERR_FENCED && !run->is_fenced)
		run->processor->stats.fenced++;
	run->processor->stats.unstored += status != HAPAX_OK;
	hx_run_end(pump, run, status);
}

void hx_finish_answered(
	struct hx_pump *pump, struct hapax_run *run, struct hx_verdict verdict,
	const struct hapax_op *op)
{
	int64_t now_ms;

	assert(run->state == HX_RUN_FINISHING);
	assert(!run->is_asking);
	assert(!run->is_side_question);
	assert(verdict.index < run->key_count);
	/* A result never becomes a release (C6): repetitions ask the same. */
	assert(run->question == question_of(run));
	if (verdict.status == HAPAX_OK) {
		run->answer.expires_ms = op->expires_ms;
		end(pump, run,
		    run->question == HAPAX_OP_RELEASE ? HX_PARTING_FREE : HX_PARTING_SETTLED,
		    HAPAX_OK);
		return;
	}
	now_ms = hx_processor_now(run->processor);
	/* A full store may have room later, and a result is worth waiting for. */
	if ((hx_claim_is_worth_repeating(verdict.status) || verdict.status == HAPAX_ERR_LIMIT) &&
	    run->processor->has_lease && now_ms < run->lease_ends_ms) {
		run->repeat_at_ms = now_ms + hx_claim_repeat_after(run, run->options.lease_ms / 10);
		if (!run->is_unstored && !run->has_left)
			hx_pump_tell(pump, run, HAPAX_STEP_UNSTORED);
		run->is_unstored = true;
		hx_run_arm(run);
		return;
	}
	end(pump, run, HX_PARTING_LOST, verdict.status);
}

void hx_finish_due(struct hx_pump *pump, struct hapax_run *run)
{
	assert(run->state == HX_RUN_FINISHING);
	assert(run->timer.place == 0);
	if (!run->is_asking && !run->is_listed)
		hx_pump_ask(pump, run);
}

/* Copy the part of the result that may be stored. */
static void take_result(struct hapax_run *run, const struct hapax_result *result)
{
	memset(&run->result, 0, sizeof(run->result));
	if (result != NULL)
		run->result = *result;
	run->result.result_class = run->answer.run_outcome == HAPAX_RUN_DEFINITIVE
		? HAPAX_RESULT_DEFINITIVE
		: HAPAX_RESULT_OK;
	/* The caller gets the whole result at the end, duplicates the stored part. */
	run->answer.result = run->result;
	if (run->options.result_size_max != 0 &&
	    run->result.body.size > run->options.result_size_max) {
		run->result.omitted_bytes = run->result.body.size;
		run->result.body = hx_bytes(NULL, 0);
	}
	assert(run->result.omitted_bytes == 0 || run->result.body.size == 0);
	assert(run->result.body.size <= run->answer.result.body.size);
}

static bool is_done(enum hapax_run_outcome outcome)
{
	return outcome == HAPAX_RUN_OK || outcome == HAPAX_RUN_DEFINITIVE;
}

static void finish(struct hx_pump *pump, const struct hapax_finish *finish)
{
	struct hapax_run *run = finish->run;
	struct hapax_bytes error = finish->error;

	assert(run->state == HX_RUN_RUNNING);
	assert(!run->is_named);
	assert(run->processor->stats.running > 0);
	run->answer.run_outcome = finish->outcome;
	run->processor->stats.running--;
	if (is_done(finish->outcome)) {
		take_result(run, finish->result);
	} else {
		hx_buf_clear(&run->error);
		if (error.size > HX_ERROR_TEXT_SIZE_MAX)
			error.size = HX_ERROR_TEXT_SIZE_MAX;
		/* A failure without its text is still a failure. */
		(void)hx_buf_append(&run->error, error.data, error.size);
		run->answer.error = hapax_buf_bytes(&run->error);
	}
	if (run->key_count == 0)
		hx_run_end(pump, run, HAPAX_OK);
	else
		hx_finish_ask(pump, run);
	assert(run->state == (run->key_count == 0 ? HX_RUN_ENDED : HX_RUN_FINISHING));
}

static bool result_is_valid(const struct hapax_result *result)
{
	return result == NULL ||
		((unsigned)result->kind <= HAPAX_RESULT_EXEC &&
		 result->headers.size <= HX_RESULT_HEADERS_SIZE_MAX &&
		 (result->headers.size == 0 || result->headers.data != NULL) &&
		 (result->body.size == 0 || result->body.data != NULL) &&
		 (result->omitted_bytes == 0 || result->body.size == 0));
}

/* Locks: the mutex is held. */
static const char *what_is_wrong(
	const struct hapax_processor *processor, const struct hapax_finish *finish)
{
	if (finish->run == NULL || finish->run->processor != processor)
		return "it is not a run of this processor";
	if (finish->run->state != HX_RUN_RUNNING ||
	    (finish->run->steps & hx_step_bit(HAPAX_STEP_RUN)))
		return "it has not begun, or has already ended";
	if (finish->run->is_named)
		return "it is named twice";
	if ((unsigned)finish->outcome > HAPAX_RUN_AMBIGUOUS)
		return "its outcome is unknown to this version";
	if (is_done(finish->outcome) && !result_is_valid(finish->result))
		return "its result is malformed, or its headers are longer than 64 KiB";
	if (finish->error.size > 0 && finish->error.data == NULL)
		return "its error needs a text";
	return NULL;
}

enum hapax_status hapax_run_finish_all(
	struct hapax_processor *processor, const struct hapax_finish *finishes, size_t count,
	struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	struct hx_pump pump;
	size_t named = 0;

	if (processor == NULL || (finishes == NULL && count != 0))
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a processor and runs are required");
	hx_pump_enter(&pump, processor);
	for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
		const char *wrong = what_is_wrong(processor, &finishes[i]);

		if (wrong != NULL)
			status = hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "run %zu: %s; nothing changed", i,
				wrong);
		else
			finishes[named++].run->is_named = true;
	}
	assert((status == HAPAX_OK) == (named == count));
	for (size_t i = 0; i < named; i++)
		finishes[i].run->is_named = false;
	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		finish(&pump, &finishes[i]);
	hx_pump_leave(&pump);
	return status;
}

enum hapax_status hapax_run_finish(
	struct hapax_run *run, enum hapax_run_outcome outcome, const struct hapax_result *result,
	struct hapax_bytes error, struct hapax_error *err)
{
	struct hapax_finish finish = {run, outcome, result, error};

	if (run == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a run is required");
	return hapax_run_finish_all(run->processor, &finish, 1, err);
}
