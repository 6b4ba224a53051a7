/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor_lease.c - while a run works, and how it ends: leases, max_run, what
 * the store does not take. Requirements: C6, E1, E5, E15.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static void a_lease_is_renewed_at_a_third(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	assert_true(c.wakes > 0);
	assert_int_equal(hapax_processor_tick(c.processor), 300);
	processor_case_pass(&c, 299);
	assert_int_equal(processor_case_stats(&c).renewed, 0);
	processor_case_pass(&c, 1);
	assert_int_equal(processor_case_stats(&c).renewed, 1);
	processor_case_pass(&c, 9000);
	assert_int_equal(processor_case_stats(&c).renewed, 31);
	assert_int_equal(case_claim(&c.store, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	assert_false(call_was_told(&call, HAPAX_STEP_LAPSED));
	call_finish_ok(&call, "");
	assert_int_equal(call.answer.status, HAPAX_OK);
}

static void two_lost_renewals_do_not_lose_the_lease(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	processor_case_pass(&c, 700);
	c.held.away = HAPAX_OK;
	processor_case_pass(&c, 400);
	assert_false(call_was_told(&call, HAPAX_STEP_LAPSED));
	assert_true(processor_case_stats(&c).repeated > 1);
	call_finish_ok(&call, "");
	assert_int_equal(call.answer.status, HAPAX_OK);
}

static void a_lapse_is_told_once_and_a_late_complete_counts(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	processor_case_pass(&c, 3000);
	assert_int_equal(call_told_count(&call, HAPAX_STEP_LAPSED), 1);
	c.held.away = HAPAX_OK;
	/* No other claim took over. */
	call_finish_ok(&call, "late");
	assert_true(call.has_ended);
	assert_int_equal(call.answer.status, HAPAX_OK);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_DONE);
}

static void a_renewal_whose_answer_was_lost_does_not_count(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	c.held.holds = true;
	processor_case_pass(&c, 300);
	assert_int_equal(c.held.count, 1);
	held_store_lose_answer(&c.held);
	c.held.holds = false;
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	processor_case_pass(&c, 599);
	assert_false(call_was_told(&call, HAPAX_STEP_LAPSED));
	processor_case_pass(&c, 1);
	assert_true(call_was_told(&call, HAPAX_STEP_LAPSED));
	c.held.away = HAPAX_OK;
	call_finish_ok(&call, "");
}

/* The store counts from when it applied the claim; we must not count from later. */
static void the_lease_counts_from_before_it_was_asked_for(void **state)
{
	struct call call;

	(void)state;
	c.held.holds = true;
	call_begin(&c, &call, "k", 0);
	store_case_advance(&c.store, 200);
	held_store_pass(&c.held);
	c.held.holds = false;
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	processor_case_pass(&c, 699);
	assert_false(call_was_told(&call, HAPAX_STEP_LAPSED));
	processor_case_pass(&c, 1);
	assert_true(call_was_told(&call, HAPAX_STEP_LAPSED));
	c.held.away = HAPAX_OK;
	call_finish_ok(&call, "");
}

static void a_late_finisher_is_fenced(void **state)
{
	uint64_t token = 0;
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	/* A pause longer than the lease, and another claim takes over. */
	store_case_advance(&c.store, 1000);
	assert_int_equal(case_claim(&c.store, "k", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_true(token > call.answer.token);
	(void)hapax_processor_tick(c.processor);
	assert_int_equal(call_told_count(&call, HAPAX_STEP_FENCED), 1);
	call_finish_ok(&call, "too late");
	assert_true(call.has_ended);
	assert_int_equal(call.answer.status, HAPAX_ERR_FENCED);
	assert_int_equal(call.answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(processor_case_stats(&c).fenced, 1);
	assert_int_equal(case_complete(&c.store, "k", token), HAPAX_OK);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c.store.record.result.body.size, 0);
}

/*
 * A claim is granted, and its answer comes when it is over: the store was slow, or we stood
 * still. No caller runs; asked again by the same id, it holds for a whole lease.
 */
static void a_claim_that_is_over_is_asked_for_again(void **state)
{
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct call call;

	(void)state;
	c.held.holds = true;
	call_begin(&c, &call, "k", 0);
	memcpy(attempt_id, c.held.submits[0].ops[0].attempt_id, sizeof(attempt_id));
	held_store_do(&c.held);
	store_case_advance(&c.store, 900);
	held_store_pass(&c.held);
	assert_false(call_was_told(&call, HAPAX_STEP_RUN));
	assert_int_equal(processor_case_stats(&c).late, 1);
	assert_int_equal(processor_case_stats(&c).running, 0);
	assert_int_equal(c.held.count, 1);
	assert_int_equal(c.held.submits[0].ops[0].type, HAPAX_OP_CLAIM);
	assert_memory_equal(c.held.submits[0].ops[0].attempt_id, attempt_id, sizeof(attempt_id));
	held_store_pass(&c.held);
	assert_int_equal(call_told_count(&call, HAPAX_STEP_RUN), 1);
	assert_int_equal(call.answer.attempt, 1);
	assert_int_equal(processor_case_stats(&c).running, 1);
	assert_false(call_was_told(&call, HAPAX_STEP_LAPSED));
	c.held.holds = false;
	processor_case_pass(&c, 300);
	assert_int_equal(processor_case_stats(&c).renewed, 1);
	call_finish_ok(&call, "");
	assert_int_equal(call.answer.status, HAPAX_OK);
}

/* The same, and another process has run it meanwhile: its result is the answer. */
static void a_claim_that_was_taken_over_does_not_run(void **state)
{
	uint64_t token = 0;
	struct call call;

	(void)state;
	c.held.holds = true;
	call_begin(&c, &call, "k", 0);
	held_store_do(&c.held);
	store_case_advance(&c.store, 900);
	assert_int_equal(case_claim(&c.store, "k", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(&c.store, "k", token), HAPAX_OK);
	c.held.holds = false;
	held_store_pass(&c.held);
	assert_true(call.has_ended);
	assert_false(call_was_told(&call, HAPAX_STEP_RUN));
	assert_int_equal(call.answer.status, HAPAX_OK);
	assert_int_equal(call.answer.outcome, HAPAX_OUTCOME_REPLAY);
}

/* A store that is always slower than the lease is not asked forever. */
static void a_claim_that_is_always_over_ends(void **state)
{
	struct call call;
	unsigned asked = 0;

	(void)state;
	c.held.holds = true;
	call_begin(&c, &call, "k", 0);
	for (; !call.has_ended && asked < 100; asked++) {
		assert_int_equal(c.held.count, 1);
		held_store_do(&c.held);
		store_case_advance(&c.store, 901);
		held_store_pass(&c.held);
	}
	assert_true(asked > 1 && asked < 100);
	assert_false(call_was_told(&call, HAPAX_STEP_RUN));
	assert_int_equal(call.answer.outcome, HAPAX_OUTCOME_NONE);
	assert_int_equal(call.answer.status, HAPAX_ERR_UNCERTAIN);
	assert_int_equal(processor_case_stats(&c).open, 0);
}

/* A caller that waits between the step and the work asks again, and gets the truth. */
static void a_run_may_begin_while_its_lease_lives(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	assert_true(hapax_run_may_begin(call.run));
	store_case_advance(&c.store, 899);
	assert_true(hapax_run_may_begin(call.run));
	store_case_advance(&c.store, 1);
	assert_false(hapax_run_may_begin(call.run));
	/* Renewed, since no other claim took over. */
	(void)hapax_processor_tick(c.processor);
	assert_true(hapax_run_may_begin(call.run));
	call_finish_ok(&call, "");
}

static void a_lapsed_run_that_is_renewed_holds_again(void **state)
{
	struct call call;
	struct call waiter;

	(void)state;
	call_begin(&c, &call, "k", 0);
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	processor_case_pass(&c, 901);
	assert_true(call_was_told(&call, HAPAX_STEP_LAPSED));
	c.held.away = HAPAX_OK;
	processor_case_pass(&c, 400);
	call_begin(&c, &waiter, "k", 5000);
	processor_case_pass(&c, 2000);
	assert_false(waiter.has_ended);
	call_finish_ok(&call, "x");
	assert_string_equal(waiter.body, "x");
}

static void a_run_that_takes_too_long_is_no_longer_renewed(void **state)
{
	struct hapax_run_options options = c.options.run;
	struct call call = {0};
	struct call waiter;

	(void)state;
	options.max_run_ms = 2000;
	call_begin_with(&c, &call, "k", 'A', &options);
	call_begin(&c, &waiter, "k", 10000);
	processor_case_pass(&c, 1999);
	assert_false(call_was_told(&call, HAPAX_STEP_OVERDUE));
	processor_case_pass(&c, 1);
	assert_int_equal(call_told_count(&call, HAPAX_STEP_OVERDUE), 1);
	processor_case_pass(&c, 905);
	/* The one that waits takes over; the first is fenced when it finishes. */
	assert_true(call_was_told(&waiter, HAPAX_STEP_RUN));
	assert_int_equal(waiter.answer.attempt, 2);
	call_finish_ok(&call, "slow");
	assert_int_equal(call.answer.status, HAPAX_ERR_FENCED);
	call_finish_ok(&waiter, "quick");
	assert_int_equal(waiter.answer.status, HAPAX_OK);
	assert_int_equal(processor_case_stats(&c).overdue, 1);
}

static void with_park_it_is_parked_and_its_complete_counts(void **state)
{
	struct hapax_run_options options = c.options.run;
	struct call call = {0};
	struct call waiter;

	(void)state;
	options.max_run_ms = 2000;
	options.on_lapse = HAPAX_ON_LAPSE_PARK;
	call_begin_with(&c, &call, "k", 'A', &options);
	call_begin(&c, &waiter, "k", 10000);
	processor_case_pass(&c, 2001);
	assert_true(call_was_told(&call, HAPAX_STEP_OVERDUE));
	assert_true(waiter.has_ended);
	assert_int_equal(waiter.answer.outcome, HAPAX_OUTCOME_PARKED);
	processor_case_pass(&c, 2000);
	assert_false(call_was_told(&call, HAPAX_STEP_LAPSED));
	call_finish_ok(&call, "after all");
	assert_int_equal(call.answer.status, HAPAX_OK);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_DONE);
}

/* It ends while the park is on its way: both texts stay what they are. */
static void it_may_end_while_it_is_being_parked(void **state)
{
	struct hapax_run_options options = c.options.run;
	struct call call = {0};

	(void)state;
	options.max_run_ms = 100;
	options.on_lapse = HAPAX_ON_LAPSE_PARK;
	call_begin_with(&c, &call, "k", 'A', &options);
	c.held.holds = true;
	processor_case_pass(&c, 101);
	assert_int_equal(c.held.count, 1);
	call_finish_failed(&call, HAPAX_RUN_TRANSIENT, "the bank is closed");
	assert_int_equal(c.held.count, 1);
	assert_true(case_bytes_are(
		c.held.submits[0].ops[0].error, "the run exceeded its maximum time", 33));
	held_store_pass(&c.held);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_PARKED);
	held_store_pass(&c.held);
	assert_true(call.has_ended);
	assert_string_equal(call.error, "the bank is closed");
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_FAILED);
}

static void a_complete_that_is_not_taken_is_repeated(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	call_finish_ok(&call, "receipt");
	assert_int_equal(call_told_count(&call, HAPAX_STEP_UNSTORED), 1);
	processor_case_pass(&c, 500);
	assert_false(call.has_ended);
	c.held.away = HAPAX_OK;
	processor_case_pass(&c, 100);
	assert_true(call.has_ended);
	assert_int_equal(call.answer.status, HAPAX_OK);
	assert_int_equal(call_told_count(&call, HAPAX_STEP_UNSTORED), 1);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_DONE);
}

static void until_the_lease_ends_and_never_as_a_release(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	c.held.away = HAPAX_ERR_LIMIT;
	call_finish_ok(&call, "receipt");
	processor_case_pass(&c, 850);
	assert_false(call.has_ended);
	processor_case_pass(&c, 200);
	assert_true(call.has_ended);
	/* It ran, it is not stored, and it says so (C6). The caller still has its result. */
	assert_int_equal(call.answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(call.answer.run_outcome, HAPAX_RUN_OK);
	assert_int_equal(call.answer.status, HAPAX_ERR_LIMIT);
	assert_string_equal(call.body, "receipt");
	assert_int_equal(processor_case_stats(&c).unstored, 1);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_CLAIMED);
}

static void once_an_answer_was_lost_the_end_is_uncertain(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	c.held.holds = true;
	call_finish_ok(&call, "receipt");
	held_store_lose_answer(&c.held);
	c.held.holds = false;
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	processor_case_pass(&c, 1100);
	assert_true(call.has_ended);
	assert_int_equal(call.answer.status, HAPAX_ERR_UNCERTAIN);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_DONE);
}

static void a_lost_answer_is_settled_by_repeating(void **state)
{
	struct call call;

	(void)state;
	call_begin(&c, &call, "k", 0);
	c.held.holds = true;
	call_finish_ok(&call, "receipt");
	held_store_lose_answer(&c.held);
	c.held.holds = false;
	processor_case_pass(&c, 100);
	assert_true(call.has_ended);
	assert_int_equal(call.answer.status, HAPAX_OK);
}

static void a_claim_is_repeated_with_its_own_attempt_id(void **state)
{
	struct call call;

	(void)state;
	c.held.holds = true;
	call_begin(&c, &call, "k", 0);
	held_store_lose_answer(&c.held); /* it is held, and the caller does not know */
	c.held.holds = false;
	processor_case_pass(&c, 50);
	assert_true(call_was_told(&call, HAPAX_STEP_RUN));
	assert_int_equal(call.answer.attempt, 1);
	call_finish_ok(&call, "");
	assert_int_equal(call.answer.status, HAPAX_OK);
}

static void a_claim_is_not_repeated_for_ever(void **state)
{
	struct call call;
	struct call other;

	(void)state;
	c.held.away = HAPAX_ERR_UNAVAILABLE;
	call_begin(&c, &call, "k", 0);
	processor_case_pass(&c, 900);
	assert_false(call.has_ended);
	processor_case_pass(&c, 700);
	assert_true(call.has_ended);
	assert_int_equal(call.answer.outcome, HAPAX_OUTCOME_NONE);
	assert_int_equal(call.answer.status, HAPAX_ERR_UNAVAILABLE);
	/* Where an answer was lost on the way, it is uncertain whatever came after it. */
	c.held.holds = true;
	call_begin(&c, &other, "q", 0);
	held_store_lose_answer(&c.held);
	c.held.holds = false;
	processor_case_pass(&c, 1600);
	assert_true(other.has_ended);
	assert_int_equal(other.answer.status, HAPAX_ERR_UNCERTAIN);
}

static void a_full_store_is_told_at_once(void **state)
{
	struct call call;

	(void)state;
	c.held.away = HAPAX_ERR_LIMIT;
	call_begin(&c, &call, "k", 0);
	assert_true(call.has_ended);
	assert_int_equal(call.answer.status, HAPAX_ERR_LIMIT);
	assert_int_equal(call.answer.outcome, HAPAX_OUTCOME_NONE);
}

/* A renewal that overtakes a park would undo it. */
static void finish_waits_for_a_renewal_on_its_way(void **state)
{
	struct hapax_run_options options = c.options.run;
	struct call call = {0};

	(void)state;
	options.on_lapse = HAPAX_ON_LAPSE_PARK;
	call_begin_with(&c, &call, "k", 'A', &options);
	c.held.holds = true;
	processor_case_pass(&c, 300);
	assert_int_equal(c.held.count, 1);
	call_finish_failed(&call, HAPAX_RUN_AMBIGUOUS, "lost");
	assert_int_equal(c.held.count, 1);
	held_store_pass(&c.held); /* the renewal; then the park is sent */
	assert_int_equal(c.held.count, 1);
	held_store_pass(&c.held);
	assert_true(call.has_ended);
	assert_int_equal(case_state(&c.store, "k"), HAPAX_STATE_PARKED);
}

static void a_definitive_failure_is_a_result(void **state)
{
	struct call call;
	struct call second;

	(void)state;
	call_begin(&c, &call, "k", 0);
	call_finish_failed(&call, HAPAX_RUN_DEFINITIVE, "");
	assert_int_equal(call.answer.status, HAPAX_OK);
	call_begin(&c, &second, "k", 0);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(second.answer.result.result_class, HAPAX_RESULT_DEFINITIVE);
}

static void what_is_too_large_becomes_a_tombstone(void **state)
{
	struct hapax_run_options options = c.options.run;
	struct call call = {0};
	struct call second;

	(void)state;
	options.result_size_max = 4;
	call_begin_with(&c, &call, "k", 'A', &options);
	call_finish_ok(&call, "12345");
	assert_string_equal(call.body, "12345");
	call_begin(&c, &second, "k", 0);
	assert_int_equal(second.answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(second.answer.result.omitted_bytes, 5);
	assert_string_equal(second.body, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_lease_is_renewed_at_a_third),
		CASE(two_lost_renewals_do_not_lose_the_lease),
		CASE(a_lapse_is_told_once_and_a_late_complete_counts),
		CASE(a_renewal_whose_answer_was_lost_does_not_count),
		CASE(the_lease_counts_from_before_it_was_asked_for),
		CASE(a_late_finisher_is_fenced),
		CASE(a_claim_that_is_over_is_asked_for_again),
		CASE(a_claim_that_was_taken_over_does_not_run),
		CASE(a_claim_that_is_always_over_ends),
		CASE(a_run_may_begin_while_its_lease_lives),
		CASE(a_lapsed_run_that_is_renewed_holds_again),
		CASE(a_run_that_takes_too_long_is_no_longer_renewed),
		CASE(with_park_it_is_parked_and_its_complete_counts),
		CASE(it_may_end_while_it_is_being_parked),
		CASE(a_complete_that_is_not_taken_is_repeated),
		CASE(until_the_lease_ends_and_never_as_a_release),
		CASE(once_an_answer_was_lost_the_end_is_uncertain),
		CASE(a_lost_answer_is_settled_by_repeating),
		CASE(a_claim_is_repeated_with_its_own_attempt_id),
		CASE(a_claim_is_not_repeated_for_ever),
		CASE(a_full_store_is_told_at_once),
		CASE(finish_waits_for_a_renewal_on_its_way),
		CASE(a_definitive_failure_is_a_result),
		CASE(what_is_too_large_becomes_a_tombstone),
	};

	return cmocka_run_group_tests_name("processor_lease", tests, NULL, NULL);
}
