/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/outage/breaker.h"
#include "store/outage/journal.h"
#include "support/outage_case.h"

static void ignore(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	(void)count;
	(void)context;
}

static void without_trouble_all_goes_to_the_store(void **state)
{
	struct outage_case c;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_false(hx_journal_gave(token));
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	assert_true(outage_case_replays(&c, "a"));
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_ABSENT);
	assert_int_equal(hapax_outage_tick(c.store), HAPAX_TIME_NEVER);
	outage_case_end(&c);
}

/* E13, A6: better twice than lost, and each of them is written down. */
static void what_is_let_through_is_written_down(void **state)
{
	struct outage_case c;
	struct hapax_outage outage;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_true(hx_journal_gave(token));
	assert_int_equal(outage_case_claim(&c, "a", &other), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	assert_true(outage_case_replays(&c, "a"));
	assert_false(outage_case_tell(&c).is_away); /* one failure is not an outage yet */
	assert_int_equal(outage_case_claim(&c, "b", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(outage_case_claim(&c, "c", &token), HAPAX_OUTCOME_ACQUIRED);
	outage = outage_case_tell(&c);
	assert_true(outage.is_away && outage.uses_journal);
	assert_int_equal(outage.outages, 1);
	assert_int_equal(outage.continued, 3);
	outage_case_end(&c);
}

/* An open breaker asks no server: waiting one after the other is what makes outages spread. */
static void store_that_is_away_is_not_asked(void **state)
{
	struct outage_case c;
	uint64_t token;
	size_t total;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	for (int i = 0; i < 3; i++)
		(void)outage_case_claim(&c, i == 0 ? "a" : i == 1 ? "b" : "c", &token);
	total = c.held.total;
	for (int i = 0; i < 100; i++)
		(void)outage_case_claim(&c, i == 0 ? "new" : "a", &token);
	assert_int_equal(c.held.total, total);
	store_case_advance(&c.shared, 200);
	assert_true(hapax_outage_tick(c.store) < HAPAX_TIME_NEVER);
	assert_int_equal(c.held.total, total + 1); /* the try */
	assert_true(outage_case_tell(&c).is_away);
	outage_case_end(&c);
}

/* Who claimed in the outage is found by duplicates that come after it. */
static void run_that_outlasts_the_outage_ends_once(void **state)
{
	struct outage_case c;
	struct hapax_op op;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	op.lease_ms = 60000;
	assert_int_equal(outage_case_ask(&c, &op), HAPAX_OK);
	assert_int_equal(outage_case_claim(&c, "b", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(outage_case_claim(&c, "b", &other), HAPAX_OUTCOME_IN_PROGRESS);
	outage_case_come_back(&c);
	assert_false(outage_case_tell(&c).is_away);
	token = op.token;
	assert_int_equal(outage_case_claim(&c, "a", &other), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(outage_case_claim(&c, "new", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_false(hx_journal_gave(other));
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	assert_true(outage_case_replays(&c, "a"));
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_true(outage_case_replays(&c, "a"));
	outage_case_end(&c);
}

/* The claim was made before, the work is done: its result must not be lost. */
static void result_of_an_earlier_claim_is_kept(void **state)
{
	struct outage_case c;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	assert_int_equal(outage_case_tell(&c).kept_results, 1);
	assert_true(outage_case_replays(&c, "a"));
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_CLAIMED);
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.token, token);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	outage_case_end(&c);
}

/* A duplicate was let through while the first still ran: both ran, and neither is written over. */
static void run_beside_an_earlier_claim_is_counted(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_claim(&c, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_true(hx_journal_gave(other));
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 1);
	assert_int_equal(outage_case_tell(&c).kept_results, 0);
	assert_int_equal(outage_case_complete(&c, "a", other), HAPAX_OK);
	assert_true(outage_case_replays(&c, "a"));
	outage_case_end(&c);
}

/* Its claim is lost in the store: for how long it is kept, and of what, was said here. */
static void kept_result_has_what_its_claim_asked_for(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	outage_case_begin(&c);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	op.fingerprint = case_fingerprint('X');
	op.ttl_ms = 77000;
	assert_int_equal(outage_case_ask(&c, &op), HAPAX_OK);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_complete(&c, "a", op.token), HAPAX_OK);
	op = case_op(&c.shared, HAPAX_OP_FORGET, "a");
	op.flags = HAPAX_OP_FORCE;
	assert_int_equal(case_run(&c.shared, &op), HAPAX_OK);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_DONE);
	/* As much of it as this journal keeps; whole ones are compared in the store. */
	assert_int_equal(c.journal.record.fingerprint_size, HAPAX_FINGERPRINT_SHORT_SIZE);
	assert_memory_equal(
		c.journal.record.fingerprint, case_fingerprint('X'), HAPAX_FINGERPRINT_SHORT_SIZE);
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.ttl_ms, 77000);
	outage_case_end(&c);
}

/* A10: the event of a run in the journal is the event of the store's record. */
static void event_goes_over_to_the_store(void **state)
{
	static const char event[] = "\5\0\0\0\0\0\0\0\0\0\0evt_1";
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	op.cause = (struct hapax_bytes){event, sizeof(event) - 1};
	assert_int_equal(outage_case_ask(&c, &op), HAPAX_OK);
	assert_int_equal(outage_case_complete(&c, "a", op.token), HAPAX_OK);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_DONE);
	assert_true(case_bytes_are(c.journal.record.cause, event, sizeof(event) - 1));
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_true(case_bytes_are(c.shared.record.cause, event, sizeof(event) - 1));
	outage_case_end(&c);
}

/* So many claims were made since that its request is unknown: it is kept all the same. */
static void kept_result_of_a_claim_long_ago(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	for (unsigned i = 0; i < 200000; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "later-%u", i);
		assert_int_equal(outage_case_claim(&c, key, &other), HAPAX_OUTCOME_ACQUIRED);
	}
	outage_case_go_away(&c);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.ttl_ms, 60000); /* the store had not lost it */
	outage_case_end(&c);
}

/* Who runs beside it is told by name, as those are that reconcile finds. */
static void run_beside_an_earlier_claim_is_named(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	assert_int_equal(outage_case_claim(&c, "beside", &token), HAPAX_OUTCOME_ACQUIRED);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_claim(&c, "beside", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(outage_case_complete(&c, "beside", token), HAPAX_OK);
	assert_string_equal(c.twice, "beside");
	outage_case_end(&c);
}

static int only_events(struct hapax_bytes tenant, struct hapax_bytes group, void *context)
{
	(void)tenant;
	(void)context;
	return case_bytes_are(group, "events", 6);
}

static void scopes_that_refuse_are_refused(void **state)
{
	struct outage_case c;
	struct hapax_op ops[3];
	size_t total;

	(void)state;
	outage_case_begin(&c);
	c.options.continues = only_events;
	outage_case_reopen(&c);
	outage_case_go_away(&c);
	for (int i = 0; i < 4; i++) {
		struct hapax_op op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");

		assert_int_equal(outage_case_ask(&c, &op), HAPAX_ERR_UNAVAILABLE);
	}
	total = c.held.total;
	for (int i = 0; i < 3; i++)
		ops[i] = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	ops[1].group = (struct hapax_bytes){"events", 6};
	assert_int_equal(hapax_store_run(c.store, ops, 3, NULL), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(ops[0].status, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(ops[1].status, HAPAX_OK);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[2].status, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(c.held.total, total);
	outage_case_end(&c);
}

/* UNCERTAIN is neither an answer nor a refusal: the same attempt asks again. */
static void lost_answer_is_asked_for_again(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	outage_case_begin(&c);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	c.held.holds = true;
	hapax_store_submit(c.store, &op, 1, (struct hapax_completion){ignore, NULL});
	held_store_lose_answer(&c.held);
	assert_int_equal(c.held.count, 1);
	held_store_pass(&c.held);
	assert_int_equal(op.status, HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_false(hx_journal_gave(op.token));
	c.held.holds = false;
	outage_case_end(&c);
}

/* Its claim may be in the store; it lapses there, and does not count as a second run. */
static void claim_that_stays_unknown_goes_on(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	outage_case_begin(&c);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	c.held.holds = true;
	hapax_store_submit(c.store, &op, 1, (struct hapax_completion){ignore, NULL});
	for (int i = 0; i < 3; i++)
		held_store_lose_answer(&c.held);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_true(hx_journal_gave(op.token));
	c.held.holds = false;
	assert_int_equal(outage_case_complete(&c, "a", op.token), HAPAX_OK);
	outage_case_come_back(&c);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 0);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	outage_case_end(&c);
}

static void unknown_check_stays_unknown(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	outage_case_begin(&c);
	op = case_op(&c.shared, HAPAX_OP_CHECK, "a");
	c.held.holds = true;
	hapax_store_submit(c.store, &op, 1, (struct hapax_completion){ignore, NULL});
	held_store_lose_answer(&c.held);
	assert_int_equal(op.status, HAPAX_ERR_UNCERTAIN);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_ABSENT);
	c.held.holds = false;
	outage_case_end(&c);
}

/* A journal that cannot be written lets nothing through. */
static void without_journal_the_answer_is_no(void **state)
{
	struct outage_case c;
	struct hapax_op op;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	hapax_store_close(c.store);
	c.store = NULL;
	c.journal.options.keys_max = 1;
	store_case_reopen(&c.journal);
	c.options.journal = c.journal.store;
	outage_case_reopen(&c);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "b");
	assert_int_equal(outage_case_ask(&c, &op), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(op.token, 0);
	outage_case_end(&c);
}

/* A token that was not given out here, and one whose key has run again. */
static void result_without_a_claim_is_fenced(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(outage_case_complete(&c, "b", token), HAPAX_ERR_FENCED);
	assert_int_equal(outage_case_complete(&c, "a", token + 1), HAPAX_ERR_FENCED);
	store_case_advance(&c.journal, 1000);
	assert_int_equal(outage_case_claim(&c, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_ERR_FENCED);
	assert_int_equal(outage_case_complete(&c, "a", other), HAPAX_OK);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_ERR_FENCED);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 0);
	outage_case_end(&c);
}

/* Whatever token a caller brings: without a journal it cannot be checked. */
static void without_journal_no_token_is_the_journals(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	outage_case_begin(&c);
	c.options.journal = NULL;
	outage_case_reopen(&c);
	outage_case_go_away(&c);
	for (int i = 0; i < 5; i++) {
		op = case_op_token(&c.shared, HAPAX_OP_COMPLETE, "a", HX_JOURNAL_TOKEN + 7);
		assert_int_equal(outage_case_ask(&c, &op), HAPAX_ERR_UNAVAILABLE);
	}
	outage_case_end(&c);
}

static void store_in_use_is_no_journal(void **state)
{
	struct outage_case c;
	struct hapax_store *store = NULL;
	struct hapax_error err;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	assert_int_equal(case_claim(&c.shared, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	c.options.journal = c.shared.store;
	assert_int_equal(
		hapax_outage_guard(&c.held.base, &c.options, &store, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "not a journal"));
	outage_case_end(&c);
}

/* A store that answers and then goes away again, before the journal is written to it, is still away. */
static void journal_is_written_before_it_is_over(void **state)
{
	static const char *const keys[] = {"a", "b", "c"};
	struct outage_case c;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(outage_case_claim(&c, keys[i], &token), HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(outage_case_complete(&c, keys[i], token), HAPAX_OK);
	}
	assert_true(outage_case_tell(&c).is_away);
	c.held.passes = 1; /* the try */
	c.held.then = HAPAX_ERR_UNAVAILABLE;
	outage_case_come_back(&c);
	assert_true(outage_case_tell(&c).is_away);
	c.held.then = HAPAX_OK;
	outage_case_come_back(&c);
	assert_false(outage_case_tell(&c).is_away);
	for (int i = 0; i < 3; i++)
		assert_int_equal(case_state(&c.shared, keys[i]), HAPAX_STATE_DONE);
	outage_case_end(&c);
}

static void breaker_waits_longer_each_time(void **state)
{
	struct hx_breaker breaker = {
		.failures_max = 2, .backoff_ms_min = 100, .backoff_ms_max = 1000};
	int64_t expected[] = {100, 200, 400, 800, 1000, 1000};
	int64_t now_ms = 5000;

	(void)state;
	assert_false(hx_breaker_fail(&breaker, now_ms, 0));
	hx_breaker_succeed(&breaker);
	assert_false(hx_breaker_fail(&breaker, now_ms, 0));
	assert_true(hx_breaker_fail(&breaker, now_ms, 0));
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_true(breaker.is_open);
		assert_int_equal(breaker.retry_ms - now_ms, expected[i]);
		/* Failures of those that were under way change nothing. */
		assert_false(hx_breaker_fail(&breaker, now_ms, 0));
		assert_int_equal(breaker.retry_ms - now_ms, expected[i]);
		now_ms = breaker.retry_ms;
		assert_false(hx_breaker_fail(&breaker, now_ms, 0));
	}
	for (uint64_t random = 0; random < 5000; random += 7) {
		now_ms = breaker.retry_ms;
		assert_false(hx_breaker_fail(&breaker, now_ms, random));
		assert_in_range(breaker.retry_ms - now_ms, 500, 1000);
	}
	hx_breaker_close(&breaker);
	assert_false(breaker.is_open);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_trouble_all_goes_to_the_store),
		cmocka_unit_test(what_is_let_through_is_written_down),
		cmocka_unit_test(store_that_is_away_is_not_asked),
		cmocka_unit_test(run_that_outlasts_the_outage_ends_once),
		cmocka_unit_test(result_of_an_earlier_claim_is_kept),
		cmocka_unit_test(run_beside_an_earlier_claim_is_counted),
		cmocka_unit_test(kept_result_has_what_its_claim_asked_for),
		cmocka_unit_test(event_goes_over_to_the_store),
		cmocka_unit_test(kept_result_of_a_claim_long_ago),
		cmocka_unit_test(run_beside_an_earlier_claim_is_named),
		cmocka_unit_test(scopes_that_refuse_are_refused),
		cmocka_unit_test(lost_answer_is_asked_for_again),
		cmocka_unit_test(claim_that_stays_unknown_goes_on),
		cmocka_unit_test(unknown_check_stays_unknown),
		cmocka_unit_test(without_journal_the_answer_is_no),
		cmocka_unit_test(result_without_a_claim_is_fenced),
		cmocka_unit_test(without_journal_no_token_is_the_journals),
		cmocka_unit_test(store_in_use_is_no_journal),
		cmocka_unit_test(journal_is_written_before_it_is_over),
		cmocka_unit_test(breaker_waits_longer_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
