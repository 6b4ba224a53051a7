/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hapax_process.c - the blocking interface of the processor: wraps any function.
 *
 * If the store answers at once, a duplicate of finished work gets its answer without a lock and
 * without a run (direct.c). Otherwise the caller's thread begins the run, sleeps until it is
 * decided, works, finishes, and sleeps until the end. Any thread may report a step. It writes into
 * the call, on the caller's stack, and sets its events. On a store that shares the caller's
 * transaction, all this happens between savepoints (tx.h).
 */
#include "processor/hapax_process.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/thread.h"
#include "processor/direct.h"
#include "processor/processor.h"
#include "processor/tx.h"

/* Copy into buf, which has room. */
static struct hapax_bytes hapax_process_keep(struct hapax_buf *buf, struct hapax_bytes bytes)
{
	size_t place = buf->size;

	assert(bytes.size <= buf->capacity - buf->size);
	if (bytes.size == 0 || hx_buf_append(buf, bytes.data, bytes.size) != HAPAX_OK)
		return hx_bytes(NULL, 0);
	return hx_bytes(buf->data + place, bytes.size);
}

static void leave_out(struct hapax_answer *answer)
{
	answer->owner = hx_bytes(NULL, 0);
	answer->error = hx_bytes(NULL, 0);
	answer->original_cause = hx_bytes(NULL, 0);
	answer->result.omitted_bytes += answer->result.body.size;
	answer->result.headers = hx_bytes(NULL, 0);
	answer->result.body = hx_bytes(NULL, 0);
}

/* The run owns the bytes of answer: copy the ones that fit. */
static void keep_answer(struct hapax_call *call, const struct hapax_answer *answer)
{
	struct hapax_answer *kept = &call->answer;
	size_t size = answer->owner.size + answer->error.size + answer->original_cause.size +
		answer->result.headers.size + answer->result.body.size;

	*kept = *answer;
	if (call->buf == NULL || hx_buf_reserve(call->buf, size) != HAPAX_OK) {
		leave_out(kept);
		return;
	}
	kept->owner = hapax_process_keep(call->buf, answer->owner);
	kept->error = hapax_process_keep(call->buf, answer->error);
	kept->original_cause = hapax_process_keep(call->buf, answer->original_cause);
	kept->result.headers = hapax_process_keep(call->buf, answer->result.headers);
	kept->result.body = hapax_process_keep(call->buf, answer->result.body);
	assert(kept->error.size == answer->error.size);
	assert(kept->result.body.size == answer->result.body.size);
}

static void told(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct hapax_call *call = context;

	/* END is the last step: the caller may be gone after it. */
	assert(!call->is_over);
	switch (step) {
	case HAPAX_STEP_RUN:
		assert(call->run == NULL);
		call->run = run;
		hx_event_set(&call->decided);
		return;
	case HAPAX_STEP_FENCED: atomic_store(&call->is_fenced, true); return;
	case HAPAX_STEP_END:
		assert(call->run == NULL || call->run == run);
		assert(run->state == HX_RUN_ENDED);
		keep_answer(call, answer);
		/* The call may be gone as soon as its event is set. */
		if (call->run != NULL) {
			hx_event_set(&call->ended);
		} else {
			call->is_over = true;
			hx_event_set(&call->decided);
		}
		return;
	case HAPAX_STEP_WAIT:
	case HAPAX_STEP_LAPSED:
	case HAPAX_STEP_OVERDUE:
	case HAPAX_STEP_UNSTORED: return;
	}
}

static void fill_work(struct hapax_call *call, const struct hx_run_origin *origin)
{
	struct hapax_work *work = &call->work;
	const struct hapax_run *run = call->run;

	assert(run->context == call);
	memset(work, 0, sizeof(*work));
	if (run->key_count > 0) {
		work->tenant = run->keys[0].tenant;
		work->group = run->keys[0].group;
		work->key = run->keys[0].key;
	}
	work->token = run->token;
	work->attempt = run->attempt;
	work->event = origin == NULL ? NULL : origin->event;
	work->private_call = call;
}

/* Run the handler and finish with its outcome. */
static void work(
	struct hapax_call *call, const struct hx_run_origin *origin, hapax_handler_fn *handler,
	void *context)
{
	enum hapax_run_outcome outcome;
	struct hapax_error err;

	assert(!call->is_over);
	fill_work(call, origin);
	outcome = hx_tx_handle(call->tx, &call->work, handler, context);
	if ((unsigned)outcome > HAPAX_RUN_AMBIGUOUS)
		outcome = hapax_work_fail(
			&call->work, HAPAX_RUN_AMBIGUOUS,
			"the handler returned an unknown outcome");
	if (call->work.result.body.data == NULL)
		call->work.result.body = hapax_buf_bytes(&call->body);
	if (hapax_run_finish(call->run, outcome, &call->work.result, call->work.error, &err) ==
	    HAPAX_OK)
		return;
	/*
	 * The result, or the error's text, cannot be stored as it is. The work was done: store
	 * that, and the size of the result.
	 */
	memset(&call->work.result, 0, sizeof(call->work.result));
	call->work.error = hx_bytes(NULL, 0);
	assert((unsigned)outcome <= HAPAX_RUN_AMBIGUOUS);
	if (hapax_run_finish(call->run, outcome, NULL, hx_bytes(NULL, 0), &err) != HAPAX_OK)
		assert(false && "a run that was told RUN can be finished");
}

/*
 * This thread woke after its lease lapsed, so another run may hold the key. Release the claim and
 * begin again from the start.
 */
static enum hapax_status start_again(
	struct hapax_call *call, struct hapax_processor *processor,
	const struct hapax_request *request, const struct hx_run_origin *origin,
	struct hapax_error *err)
{
	struct hapax_error unused;

	assert(call->run->context == call);
	assert(!call->is_over);
	if (hapax_run_finish(
		    call->run, HAPAX_RUN_TRANSIENT, NULL,
		    HX_BYTES_LIT("the lease lapsed before the handler started"),
		    &unused) != HAPAX_OK)
		assert(false && "a run that was told RUN can be finished");
	hx_event_wait(&call->ended);
	call->run = NULL;
	call->is_over = false;
	atomic_store(&call->is_fenced, false);
	hx_event_init(&call->decided);
	hx_event_init(&call->ended);
	if (call->buf != NULL)
		hx_buf_clear(call->buf);
	return hx_processor_begin_one(processor, request, origin, NULL, err);
}

/* Wait for step RUN. Begin again if this thread woke too late for it. */
static enum hapax_status wait_for_turn(
	struct hapax_call *call, struct hapax_processor *processor,
	const struct hapax_request *request, const struct hx_run_origin *origin,
	struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	hx_event_wait(&call->decided);
	while (status == HAPAX_OK && !call->is_over && !hapax_run_may_begin(call->run)) {
		status = start_again(call, processor, request, origin, err);
		if (status == HAPAX_OK)
			hx_event_wait(&call->decided);
	}
	/* Exactly one of the two: the run may begin, or it has ended without RUN. */
	assert(status != HAPAX_OK || call->is_over == (call->run == NULL));
	return status;
}

static enum hapax_status describe_failure(const struct hapax_call *call, struct hapax_error *err)
{
	const struct hapax_answer *answer = &call->answer;
	const char *text = "nothing ran";

	assert(answer->status != HAPAX_OK);
	if (answer->outcome == HAPAX_OUTCOME_ACQUIRED) {
		if (call->tx->store != NULL)
			text = "the result could not be stored, so the work was rolled back";
		else if (answer->status == HAPAX_ERR_FENCED)
			text = "the work ran, but its claim was lost; its result was not stored";
		else if (answer->status == HAPAX_ERR_UNCERTAIN)
			text = "the work ran, but it is unknown whether its result was stored";
		else
			text = "the work ran, but its result could not be stored";
	} else if (answer->status == HAPAX_ERR_UNCERTAIN) {
		text = "nothing ran, but the key may be claimed until the lease lapses";
	}
	return hx_error_set(
		err, answer->status, 0, "%s (%s)", text, hapax_status_name(answer->status));
}

static void hand_out(const struct hapax_call *call, struct hapax_answer *answer)
{
	size_t size;

	if (answer == NULL)
		return;
	size = answer->size;
	assert(size >= sizeof(answer->size));
	assert(size <= sizeof(call->answer));
	memcpy(answer, &call->answer, size);
	answer->size = size;
}

static enum hapax_status conclude(
	const struct hapax_call *call, struct hapax_answer *answer, struct hapax_error *err)
{
	const struct hapax_answer *mine = &call->answer;
	bool has_failed = mine->outcome == HAPAX_OUTCOME_ACQUIRED &&
		(mine->run_outcome == HAPAX_RUN_TRANSIENT ||
		 mine->run_outcome == HAPAX_RUN_AMBIGUOUS);

	hand_out(call, answer);
	if (call->tx->failure.status != HAPAX_OK) {
		if (err != NULL)
			*err = call->tx->failure;
		return call->tx->failure.status;
	}
	/* Straight from the handler: without a buffer the answer has no text. */
	if (has_failed && call->work.error.size > 0)
		return hx_error_set(
			err, HAPAX_ERR_HANDLER, 0, "%.*s",
			call->work.error.size < HAPAX_ERROR_MESSAGE_SIZE
				? (int)call->work.error.size
				: HAPAX_ERROR_MESSAGE_SIZE,
			(const char *)call->work.error.data);
	if (has_failed)
		return hx_error_set(err, HAPAX_ERR_HANDLER, 0, "the handler failed");
	return mine->status == HAPAX_OK ? HAPAX_OK : describe_failure(call, err);
}

/* Begin the run, with the early claim if there is one. */
static enum hapax_status start(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, const struct hx_direct *direct, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	assert(request->size == sizeof(*request));
	assert(direct == NULL || direct->claim.op == &direct->op);
	/* A shared transaction has no timers, but steps that wait for a tick need one. */
	if (processor->options.wake == NULL &&
	    (processor->has_lease ||
	     (processor->options.flags & HAPAX_PROCESSOR_STEPS_IN_TICK) != 0))
		status = hx_ticker_start(processor, err);
	if (status == HAPAX_OK)
		status = hx_processor_begin_one(
			processor, request, origin, direct == NULL ? NULL : &direct->claim, err);
	if (status != HAPAX_OK && direct != NULL)
		hx_direct_release(processor, direct);
	return status;
}

enum hapax_status hx_processor_process(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, hapax_handler_fn *handler, void *context,
	struct hapax_answer *answer, struct hapax_buf *buf, struct hapax_error *err)
{
	struct hx_tx tx;
	struct hapax_call call = {.buf = buf, .tx = &tx};
	struct hapax_request mine = HAPAX_REQUEST_INIT;
	enum hx_directly directly = HX_DIRECTLY_NOT;
	struct hx_direct direct;
	enum hapax_status status;

	if (processor == NULL || request == NULL || handler == NULL ||
	    request->size < sizeof(request->size) || request->size > sizeof(mine) ||
	    (answer != NULL &&
	     (answer->size < sizeof(answer->size) || answer->size > sizeof(*answer))))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a processor, a request and an answer of known size, and a handler are "
			"required");
	hx_tx_init(&tx);
	memcpy(&mine, request, request->size);
	mine.size = sizeof(mine);
	mine.step = told;
	mine.context = &call;
	/* Without a buffer, only a caller that wants no answer can claim directly. */
	if (buf != NULL || (answer == NULL && processor->options.decided == NULL))
		directly = hx_direct_claim(processor, &mine, origin, &direct, &call.answer, buf);
	if (directly == HX_DIRECTLY_ANSWERED)
		return conclude(&call, answer, err);
	if (buf != NULL)
		hx_buf_clear(buf);
	/* A direct claim would lie before the savepoint, which could not undo it. */
	assert(directly == HX_DIRECTLY_NOT || processor->has_lease);
	status = hx_tx_begin(&tx, processor->store, err);
	if (status != HAPAX_OK) {
		call.answer = (struct hapax_answer)HAPAX_ANSWER_INIT;
		call.answer.status = status;
		hand_out(&call, answer);
		return status;
	}
	status = start(
		processor, &mine, origin, directly == HX_DIRECTLY_ACQUIRED ? &direct : NULL, err);
	if (status != HAPAX_OK) {
		hx_tx_cancel(&tx);
		return status;
	}
	status = wait_for_turn(&call, processor, &mine, origin, err);
	if (status != HAPAX_OK) {
		hx_tx_cancel(&tx);
		return status;
	}
	hx_buf_init(&call.body, HX_RESULT_SIZE_LIMIT);
	if (!call.is_over) {
		work(&call, origin, handler, context);
		hx_event_wait(&call.ended);
	}
	hx_buf_done(&call.body);
	hx_tx_end(&tx, &call.answer);
	return conclude(&call, answer, err);
}

enum hapax_status hapax_process(
	struct hapax_processor *processor, const struct hapax_request *request,
	hapax_handler_fn *handler, void *context, struct hapax_answer *answer,
	struct hapax_buf *buf, struct hapax_error *err)
{
	return hx_processor_process(processor, request, NULL, handler, context, answer, buf, err);
}

enum hapax_status hapax_work_write(struct hapax_work *work, const void *data, size_t size)
{
	if (work->result.kind == HAPAX_RESULT_NONE)
		work->result.kind = HAPAX_RESULT_BYTES;
	return hx_buf_append(&work->private_call->body, data, size);
}

enum hapax_run_outcome hapax_work_fail(
	struct hapax_work *work, enum hapax_run_outcome outcome, const char *text)
{
	char *error = work->private_call->error;
	int size = snprintf(error, HAPAX_ERROR_MESSAGE_SIZE, "%s", text == NULL ? "" : text);

	if (size >= HAPAX_ERROR_MESSAGE_SIZE)
		size = HAPAX_ERROR_MESSAGE_SIZE - 1;
	work->error = hx_bytes(error, size < 0 ? 0 : (size_t)size);
	assert(work->error.size < HAPAX_ERROR_MESSAGE_SIZE);
	return outcome;
}

int hapax_work_is_fenced(const struct hapax_work *work)
{
	return atomic_load(&work->private_call->is_fenced);
}
