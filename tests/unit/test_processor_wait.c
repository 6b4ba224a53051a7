/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor_wait.c - who waits, who is woken, and in which order. Requirements: B6,
 * C3, C5, A5, D4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static void duplicates_wait_and_get_the_result(void **state)
{
	struct call first;
	struct call others[5];

	(void)state;
	call_begin(&c, &first, "k", 0);
	assert_true(call_was_told(&first, HAPAX_STEP_RUN));
	for (size_t i = 0; i < 5; i++) {
		call_begin(&c, &others[i], "k", 5000);
		assert_int_equal(others[i].step_count, 1);
		assert_int_equal(others[i].steps[0], HAPAX_STEP_WAIT);
		assert_int_equal(others[i].answer.token, 0);
		assert_string_equal(others[i].owner, "test");
		assert_true(others[i].answer.lease_left_ms > 0);
	}
	assert_int_equal(processor_case_stats(&c).waiting, 5);
	call_finish_ok(&first, "receipt");
	assert_true(first.has_ended);
	for (size_t i = 0; i < 5; i++) {
		assert_true(others[i].has_ended);
		assert_int_equal(others[i].answer.outcome, HAPAX_OUTCOME_REPLAY);
		assert_true(hapax_answer_was_replay(&others[i].answer));
		assert_int_equal(others[i].answer.token, 0);
		assert_int_equal(others[i].answer.original_token, first.answer.token);
		assert_true(others[i].answer.flags & HAPAX_ANSWER_WAITED);
		assert_string_equal(others[i].body, "receipt");
	}
	/* Woken, not polled: no waiter asked because time had passed. */
	assert_int_equal(processor_case_stats(&c).woken, 5);
	assert_int_equal(processor_case_stats(&c).polled, 0);
}

static void all_that_are_woken_ask_in_one_submit(void **state)
{
	struct call first;
	struct call others[20];
	size_t before;

	(void)state;
	call_begin(&c, &first, "k", 0);
	for (size_t i = 0; i < 20; i++)
		call_begin(&c, &others[i], "k", 5000);
	before = c.held.total;
	call_finish_ok(&first, "receipt");
	assert_int_equal(c.held.total, before + 2);
	for (size_t i = 0; i < 20; i++)
		assert_true(others[i].has_ended);
}

static void without_a_wait_it_is_told_in_progress(void **state)
{
	struct call first;
	struct call second;

	(void)state;
	call_begin(&c, &first, "k", 0);
	call_begin(&c, &second, "k", 0);
	assert_true(second.has_ended);
	assert_int_equal(second.answer.status, HAPAX_OK);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(second.answer.lease_left_ms, 900);
	assert_string_equal(second.owner, "test");
	call_finish_ok(&first, "");
}

static void a_wait_ends_in_time(void **state)
{
	struct call first;
	struct call second;

	(void)state;
	call_begin(&c, &first, "k", 0);
	call_begin(&c, &second, "k", 500);
	processor_case_pass(&c, 499);
	assert_false(second.has_ended);
	processor_case_pass(&c, 1);
	assert_true(second.has_ended);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	call_finish_ok(&first, "");
	assert_int_equal(processor_case_stats(&c).open, 0);
}

static void a_failure_lets_the_oldest_run_next(void **state)
{
	struct call first;
	struct call second;
	struct call third;

	(void)state;
	call_begin(&c, &first, "k", 0);
	call_begin(&c, &second, "k", 5000);
	call_begin(&c, &third, "k", 5000);
	call_finish_failed(&first, HAPAX_RUN_TRANSIENT, "no route to bank");
	/* The error reaches its own caller and no other. */
	assert_true(first.has_ended);
	assert_int_equal(first.answer.status, HAPAX_OK);
	assert_int_equal(first.answer.run_outcome, HAPAX_RUN_TRANSIENT);
	assert_string_equal(first.error, "no route to bank");
	assert_true(call_was_told(&second, HAPAX_STEP_RUN));
	assert_int_equal(second.answer.attempt, 2);
	assert_true(second.answer.token > first.answer.token);
	assert_false(call_was_told(&third, HAPAX_STEP_RUN));
	call_finish_ok(&second, "paid");
	assert_string_equal(third.body, "paid");
	assert_int_equal(processor_case_stats(&c).polled, 0);
}

static void if_the_oldest_has_left_the_next_runs(void **state)
{
	struct call first;
	struct call second;
	struct call third;

	(void)state;
	call_begin(&c, &first, "k", 0);
	call_begin(&c, &second, "k", 5000);
	call_begin(&c, &third, "k", 5000);
	hapax_run_leave(second.run);
	assert_true(second.has_ended);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	call_finish_failed(&first, HAPAX_RUN_TRANSIENT, "");
	assert_true(call_was_told(&third, HAPAX_STEP_RUN));
	call_finish_ok(&third, "");
}

/* By key and context: a caller that does not wait is not touched. */
static void a_request_leaves_by_its_name(void **state)
{
	static const struct hapax_bytes none = {NULL, 0};
	struct hapax_bytes key = hapax_bytes_from_text("k");
	struct call first;
	struct call second;
	struct call third;

	(void)state;
	call_begin(&c, &first, "k", 0);
	call_begin(&c, &second, "k", 5000);
	call_begin(&c, &third, "k", 5000);
	hapax_processor_leave(c.processor, none, none, key, &first);
	hapax_processor_leave(c.processor, none, none, key, &c);
	hapax_processor_leave(c.processor, none, none, hapax_bytes_from_text("l"), &second);
	hapax_processor_leave(c.processor, hapax_bytes_from_text("t"), none, key, &second);
	assert_false(first.has_ended || second.has_ended || third.has_ended);
	hapax_processor_leave(c.processor, none, hapax_bytes_from_text("default"), key, &second);
	assert_true(second.has_ended);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	hapax_processor_leave(c.processor, none, none, key, &second);
	call_finish_failed(&first, HAPAX_RUN_TRANSIENT, "");
	assert_true(call_was_told(&third, HAPAX_STEP_RUN));
	/* It runs: there is nothing to leave any more. */
	hapax_processor_leave(c.processor, none, none, key, &third);
	assert_false(third.has_ended);
	call_finish_ok(&third, "");
}

static void whoever_leaves_while_it_asks_gives_the_claim_back(void **state)
{
	struct call first;
	struct call second;
	struct call third;

	(void)state;
	call_begin(&c, &first, "k", 0);
	call_begin(&c, &second, "k", 5000);
	call_begin(&c, &third, "k", 5000);
	c.held.holds = true;
	call_finish_failed(&first, HAPAX_RUN_TRANSIENT, "");
	held_store_pass(&c.held); /* release; the second asks */
	hapax_run_leave(second.run);
	assert_false(second.has_ended);
	held_store_pass(&c.held); /* its claim, too late */
	assert_false(call_was_told(&second, HAPAX_STEP_RUN));
	held_store_pass(&c.held); /* given back; the third asks */
	assert_true(second.has_ended);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(second.answer.status, HAPAX_OK);
	c.held.holds = false;
	held_store_pass(&c.held);
	assert_true(call_was_told(&third, HAPAX_STEP_RUN));
	call_finish_ok(&third, "");
}

static void a_park_wakes_all(void **state)
{
	struct hapax_run_options options = c.options.run;
	struct call first = {0};
	struct call others[3];

	(void)state;
	options.on_lapse = HAPAX_ON_LAPSE_PARK;
	call_begin_with(&c, &first, "k", 'A', &options);
	for (size_t i = 0; i < 3; i++)
		call_begin(&c, &others[i], "k", 5000);
	call_finish_failed(&first, HAPAX_RUN_AMBIGUOUS, "the answer was lost");
	assert_int_equal(first.answer.run_outcome, HAPAX_RUN_AMBIGUOUS);
	for (size_t i = 0; i < 3; i++) {
		assert_true(others[i].has_ended);
		assert_int_equal(others[i].answer.outcome, HAPAX_OUTCOME_PARKED);
		assert_string_equal(others[i].error, "the answer was lost");
	}
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_PARKED);
	/* Resolved by hand: the next one runs. */
	assert_int_equal(case_release(&c.store, "k", first.answer.token), HAPAX_OK);
	call_begin(&c, &others[0], "k", 0);
	assert_true(call_was_told(&others[0], HAPAX_STEP_RUN));
	call_finish_ok(&others[0], "");
}

/* The answer "in progress" and the end of the run that it speaks of may cross. */
static void no_wake_up_is_lost_between_question_and_answer(void **state)
{
	struct call first;
	struct call second;

	(void)state;
	call_begin(&c, &first, "k", 0);
	c.held.holds = true;
	call_begin(&c, &second, "k", 5000);
	/* It attached without asking. One with a fingerprint that must be compared asks. */
	assert_int_equal(c.held.count, 0);
	call_finish_ok(&first, "receipt");
	held_store_pass(&c.held); /* complete */
	held_store_pass(&c.held); /* the waiter's claim */
	assert_true(second.has_ended);
	assert_string_equal(second.body, "receipt");
}

static void a_claim_that_crosses_the_end_of_a_run_is_sent_again(void **state)
{
	struct call first;
	struct call second;
	struct held_submit claim;

	(void)state;
	c.held.holds = true;
	call_begin(&c, &first, "k", 0);
	call_begin(&c, &second, "k", 5000); /* the first is not known to hold it yet */
	assert_int_equal(c.held.count, 2);
	held_store_pass(&c.held);
	assert_true(call_was_told(&first, HAPAX_STEP_RUN));
	/* The second's claim is done now, and its answer comes after the complete. */
	claim = c.held.submits[0];
	c.held.count = 0;
	(void)hapax_store_run(c.held.inner, claim.ops, claim.count, NULL);
	assert_int_equal(claim.ops[0].outcome, HAPAX_OUTCOME_IN_PROGRESS);
	call_finish_ok(&first, "receipt");
	held_store_pass(&c.held);
	assert_true(first.has_ended);
	hapax_store_complete(&c.held.base, claim.ops, claim.count, claim.completion);
	assert_false(call_was_told(&second, HAPAX_STEP_WAIT));
	assert_int_equal(c.held.count, 1);
	held_store_pass(&c.held);
	assert_true(second.has_ended);
	assert_string_equal(second.body, "receipt");
}

static void another_process_is_asked_about_now_and_then(void **state)
{
	uint64_t token = 0;
	struct call waiters[3];

	(void)state;
	assert_int_equal(case_claim(&c.store, "k", &token), HAPAX_OUTCOME_ACQUIRED);
	for (size_t i = 0; i < 3; i++)
		call_begin(&c, &waiters[i], "k", 5000);
	processor_case_pass(&c, 350);
	/* One of them asks for all. */
	assert_int_equal(processor_case_stats(&c).polled, 3);
	assert_int_equal(case_complete(&c.store, "k", token), HAPAX_OK);
	processor_case_pass(&c, 101);
	for (size_t i = 0; i < 3; i++) {
		assert_true(waiters[i].has_ended);
		assert_int_equal(waiters[i].answer.outcome, HAPAX_OUTCOME_REPLAY);
	}
}

static void the_end_of_a_foreign_lease_wakes_one(void **state)
{
	struct call waiters[3];

	(void)state;
	assert_int_equal(case_claim(&c.store, "k", NULL), HAPAX_OUTCOME_ACQUIRED); /* 1 s */
	for (size_t i = 0; i < 3; i++)
		call_begin(&c, &waiters[i], "k", 5000);
	processor_case_pass(&c, 999);
	assert_false(call_was_told(&waiters[0], HAPAX_STEP_RUN));
	processor_case_pass(&c, 3);
	assert_true(call_was_told(&waiters[0], HAPAX_STEP_RUN));
	assert_int_equal(waiters[0].answer.attempt, 2);
	assert_false(call_was_told(&waiters[1], HAPAX_STEP_RUN));
	call_finish_ok(&waiters[0], "x");
	assert_true(waiters[1].has_ended && waiters[2].has_ended);
}

static void order_is_by_age_even_for_who_asked_in_vain(void **state)
{
	uint64_t token = 0;
	struct call waiters[3];

	(void)state;
	assert_int_equal(case_claim(&c.store, "k", &token), HAPAX_OUTCOME_ACQUIRED);
	for (size_t i = 0; i < 3; i++)
		call_begin(&c, &waiters[i], "k", 5000);
	processor_case_pass(&c, 250);
	assert_int_equal(case_release(&c.store, "k", token), HAPAX_OK);
	processor_case_pass(&c, 101);
	for (size_t i = 0; i < 3; i++) {
		assert_true(call_was_told(&waiters[i], HAPAX_STEP_RUN));
		if (i < 2)
			assert_false(call_was_told(&waiters[i + 1], HAPAX_STEP_RUN));
		call_finish_failed(&waiters[i], HAPAX_RUN_TRANSIENT, "");
	}
	assert_int_equal(processor_case_stats(&c).open, 0);
}

/* Each is set off by the one before: that must not be one frame on top of the other. */
static void a_long_chain_of_failures_needs_no_deep_stack(void **state)
{
	enum { COUNT = 20000 };
	struct call *calls = calloc(COUNT, sizeof(*calls));
	struct hapax_run_options options = c.options.run;
	struct call first;

	(void)state;
	assert_non_null(calls);
	options.wait_ms = 5000;
	call_begin(&c, &first, "k", 0);
	for (size_t i = 0; i < COUNT; i++) {
		calls[i].finishes = true;
		calls[i].outcome = HAPAX_RUN_TRANSIENT;
		call_begin_with(&c, &calls[i], "k", 'A', &options);
	}
	call_finish_failed(&first, HAPAX_RUN_TRANSIENT, "");
	for (size_t i = 0; i < COUNT; i++) {
		assert_true(calls[i].has_ended);
		assert_int_equal(calls[i].answer.attempt, i + 2);
	}
	free(calls);
}

static void another_payload_is_told_and_does_not_wait(void **state)
{
	struct call first;
	struct call second = {0};
	struct hapax_run_options options = c.options.run;

	(void)state;
	options.wait_ms = 5000;
	call_begin(&c, &first, "k", 0);
	call_begin_with(&c, &second, "k", 'B', &options);
	assert_true(second.has_ended);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_MISMATCH);
	assert_string_equal(second.owner, "");
	call_finish_ok(&first, "receipt");
	memset(&second, 0, sizeof(second));
	call_begin_with(&c, &second, "k", 'B', &options);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_MISMATCH);
	assert_string_equal(second.body, "");
}

static void on_mismatch_duplicate_waits_and_gets_no_result(void **state)
{
	struct call first;
	struct call second = {0};
	struct hapax_run_options options = c.options.run;

	(void)state;
	options.wait_ms = 5000;
	options.on_mismatch = HAPAX_ON_MISMATCH_DUPLICATE;
	call_begin(&c, &first, "k", 0);
	call_begin_with(&c, &second, "k", 'B', &options);
	assert_false(second.has_ended);
	call_finish_ok(&first, "receipt");
	assert_true(second.has_ended);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_true(second.answer.flags & HAPAX_ANSWER_MISMATCH);
	assert_string_equal(second.body, "");
	assert_int_equal(second.answer.result.kind, HAPAX_RESULT_NONE);
}

/* It must neither spin nor wait longer than it asked for. */
static void on_mismatch_duplicate_of_a_lapsed_claim(void **state)
{
	struct hapax_op op = case_op(&c.store, HAPAX_OP_CLAIM, "k");
	struct hapax_run_options options = c.options.run;
	struct call second = {0};

	(void)state;
	op.fingerprint = case_fingerprint('A');
	assert_int_equal(case_run(&c.store, &op), HAPAX_OK);
	store_case_advance(&c.store, 2000);
	options.wait_ms = 1000;
	options.on_mismatch = HAPAX_ON_MISMATCH_DUPLICATE;
	call_begin_with(&c, &second, "k", 'B', &options);
	assert_false(second.has_ended);
	processor_case_pass(&c, 1000);
	assert_true(second.has_ended);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_true(processor_case_stats(&c).polled <= 10);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(duplicates_wait_and_get_the_result),
		CASE(all_that_are_woken_ask_in_one_submit),
		CASE(without_a_wait_it_is_told_in_progress),
		CASE(a_wait_ends_in_time),
		CASE(a_failure_lets_the_oldest_run_next),
		CASE(if_the_oldest_has_left_the_next_runs),
		CASE(a_request_leaves_by_its_name),
		CASE(whoever_leaves_while_it_asks_gives_the_claim_back),
		CASE(a_park_wakes_all),
		CASE(no_wake_up_is_lost_between_question_and_answer),
		CASE(a_claim_that_crosses_the_end_of_a_run_is_sent_again),
		CASE(another_process_is_asked_about_now_and_then),
		CASE(the_end_of_a_foreign_lease_wakes_one),
		CASE(order_is_by_age_even_for_who_asked_in_vain),
		CASE(a_long_chain_of_failures_needs_no_deep_stack),
		CASE(another_payload_is_told_and_does_not_wait),
		CASE(on_mismatch_duplicate_waits_and_gets_no_result),
		CASE(on_mismatch_duplicate_of_a_lapsed_claim),
	};

	return cmocka_run_group_tests_name("processor_wait", tests, NULL, NULL);
}
