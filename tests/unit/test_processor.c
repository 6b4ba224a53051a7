/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor.c - the contract of the core: input, steps in ticks, memory that runs out.
 * Batches and several keys: test_processor_batch.c. Requirements: C2, C4, C7, D7.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/processor_case.h"

static struct processor_case c;

static int begin(void **state)
{
	(void)state;
	processor_case_begin(&c);
	return 0;
}

static int end(void **state)
{
	(void)state;
	processor_case_done(&c);
	return 0;
}

static void it_runs_once_and_is_replayed(void **state)
{
	struct call first;
	struct call second;

	(void)state;
	call_begin(&c, &first, "k", 0);
	assert_int_equal(first.step_count, 1);
	assert_int_equal(first.answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(first.answer.attempt, 1);
	assert_int_equal(hapax_run_token(first.run), first.answer.token);
	assert_int_equal(hapax_run_attempt(first.run), 1);
	assert_true(case_bytes_are(hapax_run_key(first.run), "k", 1));
	call_finish_ok(&first, "receipt");
	assert_true(first.has_ended);
	assert_int_equal(first.answer.expires_ms, CASE_EPOCH_MS + 60000);
	call_begin(&c, &second, "k", 0);
	assert_int_equal(second.step_count, 1);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_string_equal(second.body, "receipt");
	assert_int_equal(second.answer.first_seen_ms, CASE_EPOCH_MS);
	assert_int_equal(second.answer.attempt, 1);
	assert_int_equal(processor_case_stats(&c).open, 0);
}

static void who_acquires_is_told_the_name_of_its_claim(void **state)
{
	static const unsigned char none[HAPAX_ATTEMPT_ID_SIZE];
	struct call first;
	struct call second;
	const struct hapax_record *record = &c.store.record;

	(void)state;
	call_begin(&c, &first, "k", 0);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_CLAIMED);
	assert_memory_not_equal(record->attempt_id, none, sizeof(none));
	assert_memory_equal(first.answer.attempt_id, record->attempt_id, sizeof(none));
	/* With it the claim could be taken: it is for the holder alone. */
	call_begin(&c, &second, "k", 0);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_memory_equal(second.answer.attempt_id, none, sizeof(none));
	call_finish_ok(&first, "receipt");
	call_begin(&c, &second, "k", 0);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_memory_equal(second.answer.attempt_id, none, sizeof(none));
}

/* That it is done is known by a second question, which asks for nothing else. */
static void what_is_done_and_cannot_be_read_is_told_so(void **state)
{
	struct call first;
	struct call second;
	struct hapax_op op;

	(void)state;
	call_begin(&c, &first, "k", 0);
	call_finish_ok(&first, "receipt");
	c.held.damaged = "k";
	for (int i = 0; i < 2; i++) {
		c.held.is_unknown = i == 1;
		call_begin(&c, &second, "k", 0);
		assert_true(second.has_ended);
		assert_int_equal(second.step_count, 1);
		assert_int_equal(second.answer.status, HAPAX_ERR_CORRUPT);
		assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_NONE);
		assert_int_equal(
			second.answer.flags & HAPAX_ANSWER_UNREADABLE,
			i == 0 ? HAPAX_ANSWER_UNREADABLE : 0);
	}
	/* What is not done any more runs. */
	c.held.is_unknown = false;
	op = case_op(&c.store, HAPAX_OP_FORGET, "k");
	assert_int_equal(case_run(&c.store, &op), HAPAX_OK);
	call_begin(&c, &second, "k", 0);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	call_finish_ok(&second, "receipt");
	c.held.damaged = NULL;
	call_begin(&c, &second, "k", 0);
	assert_string_equal(second.body, "receipt");
	assert_int_equal(processor_case_stats(&c).open, 0);
}

static void without_fingerprint_it_is_unverified(void **state)
{
	struct call first = {0};
	struct call second;

	(void)state;
	call_begin_with(&c, &first, "k", 0, NULL);
	call_finish_ok(&first, "");
	call_begin(&c, &second, "k", 0);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_true(second.answer.flags & HAPAX_ANSWER_UNVERIFIED);
}

static void scopes_are_apart(void **state)
{
	struct call calls[3] = {{0}};
	struct hapax_request requests[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		requests[i] = call_request(&calls[i], "k");
	requests[1].tenant = hapax_bytes_from_text("t");
	requests[2].group = hapax_bytes_from_text("t");
	assert_int_equal(hapax_processor_begin(c.processor, requests, 3, NULL), HAPAX_OK);
	for (size_t i = 0; i < 3; i++) {
		assert_true(call_was_told(&calls[i], HAPAX_STEP_RUN));
		call_finish_ok(&calls[i], "");
	}
}

static void empty_scope_is_default(void **state)
{
	struct call calls[2] = {{0}};
	struct hapax_run_options options = c.options.run;
	struct hapax_request request = call_request(&calls[0], "k");

	(void)state;
	options.wait_ms = 1000;
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_OK);
	request = call_request(&calls[1], "k");
	request.tenant = hapax_bytes_from_text("default");
	request.group = hapax_bytes_from_text("default");
	request.options = &options;
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_OK);
	assert_true(call_was_told(&calls[1], HAPAX_STEP_WAIT));
	call_finish_ok(&calls[0], "");
	assert_true(calls[1].has_ended);
}

static void disabled_runs_everything_and_asks_nothing(void **state)
{
	struct hapax_run_options options = c.options.run;
	struct call calls[2] = {{0}};

	(void)state;
	options.is_disabled = 1; /* D7 */
	for (size_t i = 0; i < 2; i++) {
		call_begin_with(&c, &calls[i], "k", 'A', &options);
		assert_true(call_was_told(&calls[i], HAPAX_STEP_RUN));
		assert_true(calls[i].answer.flags & HAPAX_ANSWER_UNPROTECTED);
		assert_int_equal(calls[i].answer.token, 0);
		call_finish_ok(&calls[i], "x");
		assert_int_equal(calls[i].answer.status, HAPAX_OK);
	}
	assert_int_equal(c.held.total, 0);
}

static void bad_requests_are_refused_and_nothing_is_begun(void **state)
{
	static char long_key[1025];
	struct call calls[2] = {{0}};
	struct hapax_request requests[2];
	struct hapax_error err;

	(void)state;
	memset(long_key, 'x', sizeof(long_key));
	for (int bad = 0; bad < 7; bad++) {
		struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;

		for (size_t i = 0; i < 2; i++)
			requests[i] = call_request(&calls[i], "k");
		switch (bad) {
		case 0: requests[1].key.size = 0; break;
		case 1: requests[1].key = (struct hapax_bytes){long_key, sizeof(long_key)}; break;
		case 2: requests[1].step = NULL; break;
		case 3: requests[1].tenant = (struct hapax_bytes){long_key, 129}; break;
		case 4: requests[1].key_count = 2; break;
		case 5:
			options.lease_ms = -1;
			requests[1].options = &options;
			break;
		case 6: requests[1].size = 8; break;
		default: break;
		}
		assert_int_equal(
			hapax_processor_begin(c.processor, requests, 2, &err), HAPAX_ERR_INVALID);
		assert_true(strlen(err.message) > 10);
		assert_int_equal(processor_case_stats(&c).open, 0);
		assert_int_equal(c.held.total, 0);
		assert_int_equal(calls[0].step_count, 0);
	}
	assert_int_equal(hapax_processor_begin(NULL, requests, 1, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_processor_begin(c.processor, NULL, 1, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_processor_begin(c.processor, NULL, 0, &err), HAPAX_OK);
}

static void bad_options_are_refused(void **state)
{
	struct hapax_processor *processor = NULL;
	struct hapax_error err;

	(void)state;
	for (int bad = 0; bad < 7; bad++) {
		struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;

		switch (bad) {
		case 0: options.size = 4; break;
		case 1: options.size = sizeof(options) + 8; break;
		case 2: options.poll_ms = -1; break;
		case 3: options.run.ttl_ms = -5; break;
		case 4: options.run.lease_ms = INT64_C(8) * 24 * 3600 * 1000; break;
		case 5: options.run.result_size_max = UINT64_C(17) << 20; break;
		case 6: options.run.on_lapse = (enum hapax_on_lapse)7; break;
		default: break;
		}
		assert_int_equal(
			hapax_processor_new(&c.held.base, &options, &processor, &err),
			HAPAX_ERR_INVALID);
		assert_null(processor);
	}
	assert_int_equal(hapax_processor_new(NULL, NULL, &processor, &err), HAPAX_ERR_INVALID);
	hapax_processor_free(NULL);
}

static void a_missing_capability_is_found_at_construction(void **state)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_processor *processor = NULL;
	struct hapax_error err;

	(void)state;
	options.needs = HAPAX_STORE_DURABLE;
	assert_int_equal(
		hapax_processor_new(&c.held.base, &options, &processor, &err),
		HAPAX_ERR_UNSUPPORTED);
	assert_null(processor);
	assert_non_null(strstr(err.message, "held:"));
}

static void texts_for_people_are_cut(void **state)
{
	static char text[4096];
	struct call call = {0};
	struct hapax_request request = call_request(&call, "k");

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	request.owner = hapax_bytes_from_text(text);
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_OK);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_CLAIMED);
	assert_int_equal(c.store.record.owner.size, 128);
	call_finish_failed(&call, HAPAX_RUN_TRANSIENT, text);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_FAILED);
	assert_int_equal(c.store.record.error.size, 1024);
}

/* Two processors on one thread: what one tells sets the other off, and back. */
struct relay {
	struct hapax_processor *other;
	struct hapax_run *first;
	bool has_ended;
};

static void relay_second(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct relay *relay = context;
	struct hapax_bytes none = {NULL, 0};

	(void)answer;
	if (step == HAPAX_STEP_RUN)
		assert_int_equal(hapax_run_finish(run, HAPAX_RUN_OK, NULL, none, NULL), HAPAX_OK);
	else if (step == HAPAX_STEP_END)
		assert_int_equal(
			hapax_run_finish(relay->first, HAPAX_RUN_OK, NULL, none, NULL), HAPAX_OK);
}

static void relay_first(
	struct hapax_run *run, enum hapax_step step, const struct hapax_answer *answer,
	void *context)
{
	struct relay *relay = context;
	struct hapax_request request = HAPAX_REQUEST_INIT;

	(void)answer;
	relay->has_ended = step == HAPAX_STEP_END;
	if (step != HAPAX_STEP_RUN)
		return;
	relay->first = run;
	request.key = hapax_bytes_from_text("second");
	request.step = relay_second;
	request.context = relay;
	assert_int_equal(hapax_processor_begin(relay->other, &request, 1, NULL), HAPAX_OK);
}

static void two_processors_on_one_thread(void **state)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct relay relay = {0};

	(void)state;
	assert_int_equal(
		hapax_processor_new(&c.held.base, &c.options, &relay.other, NULL), HAPAX_OK);
	request.key = hapax_bytes_from_text("first");
	request.step = relay_first;
	request.context = &relay;
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_OK);
	assert_true(relay.has_ended);
	assert_int_equal(case_state(&c.store, "first"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(&c.store, "second"), HAPAX_STATE_DONE);
	hapax_processor_free(relay.other);
}

static void only_what_runs_can_be_finished_and_once(void **state)
{
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES};
	struct hapax_bytes none = {NULL, 0};
	struct hapax_finish finishes[2];
	struct call waiting;
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	call_begin(&c, &waiting, "k", 1000);
	assert_int_equal(
		hapax_run_finish(waiting.run, HAPAX_RUN_OK, NULL, none, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_run_finish(NULL, HAPAX_RUN_OK, NULL, none, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_run_finish(call.run, (enum hapax_run_outcome)9, NULL, none, NULL),
		HAPAX_ERR_INVALID);
	result.headers.size = 5;
	assert_int_equal(
		hapax_run_finish(call.run, HAPAX_RUN_OK, &result, none, NULL), HAPAX_ERR_INVALID);
	finishes[0] = (struct hapax_finish){call.run, HAPAX_RUN_OK, NULL, none};
	finishes[1] = finishes[0];
	assert_int_equal(hapax_run_finish_all(c.processor, finishes, 2, NULL), HAPAX_ERR_INVALID);
	assert_false(call.has_ended);
	c.held.holds = true;
	assert_int_equal(hapax_run_finish_all(c.processor, finishes, 1, NULL), HAPAX_OK);
	assert_int_equal(hapax_run_finish_all(c.processor, finishes, 1, NULL), HAPAX_ERR_INVALID);
	c.held.holds = false;
	held_store_pass(&c.held);
	assert_true(call.has_ended && waiting.has_ended);
}

/* A request that is larger than ours is from a library that knows more. */
static void a_request_from_the_future_is_refused(void **state)
{
	struct call call = {0};
	struct hapax_request request = call_request(&call, "k");

	(void)state;
	request.size = sizeof(request) + 8;
	assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_ERR_INVALID);
}

static void steps_in_tick_come_with_the_tick(void **state)
{
	struct call first;
	struct call second;
	unsigned wakes;

	(void)state;
	hapax_processor_free(c.processor);
	c.options.flags = HAPAX_PROCESSOR_STEPS_IN_TICK;
	processor_case_open(&c);
	call_begin(&c, &first, "k", 0);
	assert_int_equal(first.step_count, 0);
	wakes = c.wakes;
	assert_true(wakes > 0);
	(void)hapax_processor_tick(c.processor);
	assert_true(call_was_told(&first, HAPAX_STEP_RUN));
	call_begin(&c, &second, "k", 1000);
	call_finish_ok(&first, "x");
	assert_false(first.has_ended || second.has_ended);
	assert_true(c.wakes > wakes);
	(void)hapax_processor_tick(c.processor);
	assert_true(first.has_ended && second.has_ended);
	assert_string_equal(second.body, "x");
	assert_int_equal(hapax_processor_tick(c.processor), HAPAX_TIME_NEVER);
}

/* What is due at once is due now: the computation of a sleep must not overflow. */
static void a_tick_that_was_cut_short_is_due_now(void **state)
{
	enum { COUNT = 40 };
	static struct call calls[COUNT];
	int64_t now_ms = atomic_load(&c.store.clock.boot_ms);
	unsigned cut_short = 0;

	(void)state;
	hapax_processor_free(c.processor);
	c.options.flags = HAPAX_PROCESSOR_STEPS_IN_TICK;
	processor_case_open(&c);
	memset(calls, 0, sizeof(calls));
	for (size_t i = 0; i < COUNT; i++) {
		struct hapax_request request = call_request(&calls[i], "k");
		struct hapax_run_options options = c.options.run;

		/* Each run fails at once, and its end sets off the next. */
		calls[i].finishes = true;
		calls[i].outcome = HAPAX_RUN_TRANSIENT;
		options.wait_ms = 60000;
		request.options = &options;
		assert_int_equal(hapax_processor_begin(c.processor, &request, 1, NULL), HAPAX_OK);
	}
	for (int ticks = 0; processor_case_stats(&c).open > 0; ticks++) {
		int64_t next_ms = hapax_processor_tick(c.processor);

		assert_true(ticks < 10 * COUNT);
		assert_true(next_ms >= now_ms);
		cut_short += next_ms == now_ms;
	}
	assert_true(cut_short > 0);
}

/* It has the claim, and has not been told yet. */
static void leaving_before_the_step_is_told_gives_the_claim_back(void **state)
{
	struct call first;
	struct call second;
	struct call third;

	(void)state;
	hapax_processor_free(c.processor);
	c.options.flags = HAPAX_PROCESSOR_STEPS_IN_TICK;
	processor_case_open(&c);
	call_begin(&c, &first, "k", 0);
	(void)hapax_processor_tick(c.processor);
	call_begin(&c, &second, "k", 5000);
	call_begin(&c, &third, "k", 5000);
	(void)hapax_processor_tick(c.processor);
	call_finish_failed(&first, HAPAX_RUN_TRANSIENT, "");
	hapax_run_leave(second.run);
	(void)hapax_processor_tick(c.processor);
	assert_false(call_was_told(&second, HAPAX_STEP_RUN));
	assert_true(second.has_ended);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_true(call_was_told(&third, HAPAX_STEP_RUN));
	call_finish_ok(&third, "");
	(void)hapax_processor_tick(c.processor);
}

static void ticks_are_asked_for_once(void **state)
{
	struct call calls[5];

	(void)state;
	call_begin(&c, &calls[0], "a", 0);
	assert_int_equal(c.wakes, 1);
	call_begin(&c, &calls[1], "b", 0);
	assert_int_equal(c.wakes, 1);
	(void)hapax_processor_tick(c.processor);
	/* The next one is due later than what is known to be due. */
	store_case_advance(&c.store, 10);
	call_begin(&c, &calls[2], "c", 0);
	assert_int_equal(c.wakes, 1);
	/* One with a shorter lease is due sooner. */
	c.options.run.lease_ms = 30;
	call_begin(&c, &calls[3], "d", 0);
	assert_int_equal(c.wakes, 2);
	for (size_t i = 0; i < 4; i++)
		call_finish_ok(&calls[i], "");
}

struct decisions {
	unsigned count;
	enum hapax_outcome last;
	char key[16];
};

static void decided(const struct hapax_decided *what, void *context)
{
	struct decisions *decisions = context;

	decisions->count++;
	decisions->last = what->answer->outcome;
	snprintf(
		decisions->key, sizeof(decisions->key), "%.*s", (int)what->key.size,
		(const char *)what->key.data);
	assert_null(what->shadow);
	assert_null(what->event);
}

static void every_decision_is_reported_once(void **state)
{
	struct decisions decisions = {0};
	struct call call;

	(void)state;
	hapax_processor_free(c.processor);
	c.options.decided = decided;
	c.options.decided_context = &decisions;
	processor_case_open(&c);
	call_begin(&c, &call, "k", 0);
	assert_int_equal(decisions.count, 1);
	assert_int_equal(decisions.last, HAPAX_OUTCOME_ACQUIRED);
	assert_string_equal(decisions.key, "k");
	call_finish_ok(&call, "");
	assert_int_equal(decisions.count, 1);
	call_begin(&c, &call, "k", 0);
	assert_int_equal(decisions.count, 2);
	assert_int_equal(decisions.last, HAPAX_OUTCOME_REPLAY);
}

/* Two callers of one key, with every allocation failing in turn: no crash, no leak, no loss. */
static bool survive(uint64_t nth)
{
	struct call first = {0};
	struct call second = {0};
	struct hapax_request request = call_request(&first, "k");
	struct hapax_run_options options = c.options.run;
	bool ended;

	options.wait_ms = 3000;
	request.options = &options;
	hx_alloc_fail_at(nth, 0);
	if (hapax_processor_begin(c.processor, &request, 1, NULL) != HAPAX_OK)
		first.has_ended = true;
	processor_case_pass(&c, 50);
	request.context = &second;
	if (hapax_processor_begin(c.processor, &request, 1, NULL) != HAPAX_OK)
		second.has_ended = true;
	if (call_was_told(&first, HAPAX_STEP_RUN) && !first.has_ended)
		call_finish_ok(&first, "receipt");
	processor_case_pass(&c, 50);
	if (call_was_told(&second, HAPAX_STEP_RUN) && !second.has_ended)
		call_finish_ok(&second, "receipt");
	hx_alloc_fail_at(0, 0);
	processor_case_pass(&c, 4000);
	ended = first.has_ended && second.has_ended;
	if (call_was_told(&first, HAPAX_STEP_RUN) && call_was_told(&second, HAPAX_STEP_RUN))
		ended = false;
	return ended;
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	for (uint64_t nth = 1; nth < 60; nth++) {
		int64_t live;

		processor_case_done(&c);
		live = hx_alloc_live();
		processor_case_begin(&c);
		assert_true(survive(nth));
		assert_int_equal(processor_case_stats(&c).open, 0);
		processor_case_done(&c);
		assert_int_equal(hx_alloc_live(), live);
		processor_case_begin(&c);
	}
}

/* After the first rounds nothing is allocated per request. */
static void requests_allocate_nothing(void **state)
{
	struct call call;
	uint64_t before;

	(void)state;
	for (int i = 0; i < 3; i++) {
		call_begin(&c, &call, "k", 0);
		call_finish_failed(&call, HAPAX_RUN_TRANSIENT, "some error");
	}
	before = hx_alloc_count();
	for (int i = 0; i < 100; i++) {
		call_begin(&c, &call, "k", 0);
		call_finish_failed(&call, HAPAX_RUN_TRANSIENT, "some error");
	}
	assert_int_equal(hx_alloc_count(), before);
}

/* What a crowd needed is given back when it has gone, but for what the next one will need. */
static void a_crowd_that_has_gone_leaves_little_behind(void **state)
{
	enum { COUNT = 20000 };
	struct call *calls = calloc(COUNT, sizeof(*calls));
	struct hapax_run_options options = c.options.run;
	static char keys[COUNT][12];
	int64_t live;

	(void)state;
	assert_non_null(calls);
	options.wait_ms = 5000;
	for (int round = 0; round < 2; round++) {
		memset(calls, 0, COUNT * sizeof(*calls));
		for (size_t i = 0; i < COUNT; i++) {
			snprintf(keys[i], sizeof(keys[i]), "%zu", i);
			call_begin_with(&c, &calls[i], keys[i], 'A', &options);
		}
		live = hx_alloc_live();
		for (size_t i = 0; i < COUNT; i++)
			call_finish_failed(&calls[i], HAPAX_RUN_TRANSIENT, "");
		/* Each had at least itself, its key, its text and its queue. */
		assert_true(hx_alloc_live() < live - 4 * (COUNT - 5000));
		assert_int_equal(hapax_processor_tick(c.processor), HAPAX_TIME_NEVER);
	}
	free(calls);
}

static void names_are_those_of_the_glossary(void **state)
{
	(void)state;
	assert_string_equal(hapax_run_outcome_name(HAPAX_RUN_OK), "ok");
	assert_string_equal(hapax_run_outcome_name(HAPAX_RUN_DEFINITIVE), "definitive");
	assert_string_equal(hapax_run_outcome_name(HAPAX_RUN_TRANSIENT), "transient");
	assert_string_equal(hapax_run_outcome_name(HAPAX_RUN_AMBIGUOUS), "ambiguous");
	assert_string_equal(hapax_on_mismatch_name(HAPAX_ON_MISMATCH_REJECT), "reject");
	assert_string_equal(hapax_run_outcome_name((enum hapax_run_outcome)9), "unknown");
	assert_string_equal(hapax_on_mismatch_name(HAPAX_ON_MISMATCH_DUPLICATE), "duplicate");
	assert_string_equal(hapax_on_mismatch_name((enum hapax_on_mismatch)9), "unknown");
	assert_string_equal(hapax_step_name(HAPAX_STEP_WAIT), "wait");
	assert_string_equal(hapax_step_name(HAPAX_STEP_END), "end");
	assert_string_equal(hapax_step_name((enum hapax_step)0), "unknown");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_runs_once_and_is_replayed),
		CASE(who_acquires_is_told_the_name_of_its_claim),
		CASE(what_is_done_and_cannot_be_read_is_told_so),
		CASE(without_fingerprint_it_is_unverified),
		CASE(scopes_are_apart),
		CASE(empty_scope_is_default),
		CASE(disabled_runs_everything_and_asks_nothing),
		CASE(bad_requests_are_refused_and_nothing_is_begun),
		CASE(bad_options_are_refused),
		CASE(a_missing_capability_is_found_at_construction),
		CASE(texts_for_people_are_cut),
		CASE(two_processors_on_one_thread),
		CASE(only_what_runs_can_be_finished_and_once),
		CASE(a_request_from_the_future_is_refused),
		CASE(steps_in_tick_come_with_the_tick),
		CASE(a_tick_that_was_cut_short_is_due_now),
		CASE(leaving_before_the_step_is_told_gives_the_claim_back),
		CASE(ticks_are_asked_for_once),
		CASE(every_decision_is_reported_once),
		CASE(every_allocation_may_fail),
		CASE(requests_allocate_nothing),
		CASE(a_crowd_that_has_gone_leaves_little_behind),
		CASE(names_are_those_of_the_glossary),
	};

	return cmocka_run_group_tests_name("processor", tests, NULL, NULL);
}
