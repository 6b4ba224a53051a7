/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/outage.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "store/outage/breaker.h"
#include "store/outage/journal.h"
#include "support/held_store.h"
#include "support/store_case.h"

/* A store that can go away, its journal, and the guarded store that is used. */
struct outage_case {
	struct store_case shared;  /* the store itself: what other nodes see */
	struct store_case journal; /* this node's */
	struct held_store held;    /* the way to the store */
	struct hapax_outage_options options;
	struct hapax_store *store;
	char twice[64];
};

static void note(const struct hapax_record *record, enum hapax_reconciled verdict, void *context)
{
	struct outage_case *c = context;

	if (verdict == HAPAX_RECONCILED_TWICE && record->key.size < sizeof(c->twice))
		memcpy(c->twice, record->key.data, record->key.size);
}

static void begin(struct outage_case *c)
{
	memset(c, 0, sizeof(*c));
	store_case_begin(&c->shared, "memory:");
	store_case_begin(&c->journal, "memory:");
	held_store_init(&c->held, c->shared.store, &c->shared.clock.clock);
	c->options = (struct hapax_outage_options)HAPAX_OUTAGE_OPTIONS_INIT;
	c->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	c->options.clock = &c->shared.clock.clock;
	c->options.journal = c->journal.store;
	c->options.each = note;
	c->options.each_context = c;
	assert_int_equal(hapax_outage_guard(&c->held.base, &c->options, &c->store, NULL), HAPAX_OK);
}

static void end(struct outage_case *c)
{
	hapax_store_close(c->store);
	held_store_done(&c->held);
	store_case_done(&c->journal);
	store_case_done(&c->shared);
}

static struct hapax_outage tell(struct outage_case *c)
{
	struct hapax_outage outage = HAPAX_OUTAGE_INIT;

	assert_int_equal(hapax_outage_tell(c->store, &outage, NULL), HAPAX_OK);
	return outage;
}

/* Through the guarded store; case_run() would ask the store itself. */
static enum hapax_status ask(struct outage_case *c, struct hapax_op *op)
{
	return hapax_store_run(c->store, op, 1, NULL);
}

static enum hapax_outcome claim(struct outage_case *c, const char *key, uint64_t *ret_token)
{
	struct hapax_op op = case_op(&c->shared, HAPAX_OP_CLAIM, key);

	(void)ask(c, &op);
	*ret_token = op.token;
	return op.outcome;
}

static enum hapax_status complete(struct outage_case *c, const char *key, uint64_t token)
{
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES,
		.body = {"paid", 4},
	};
	struct hapax_op op = case_op_token(&c->shared, HAPAX_OP_COMPLETE, key, token);

	op.result = &result;
	return ask(c, &op);
}

/* What somebody who asks the guarded store for a key that is done gets to see. */
static void assert_replays(struct outage_case *c, const char *key)
{
	struct hapax_op op = case_op(&c->shared, HAPAX_OP_CLAIM, key);

	op.record = &c->shared.record;
	op.buf = c->shared.buf;
	assert_int_equal(ask(c, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	assert_true(case_bytes_are(op.record->result.body, "paid", 4));
}

static void go_away(struct outage_case *c)
{
	c->held.away = HAPAX_ERR_UNAVAILABLE;
}

/* The store is back, and the time of the next try has come. */
static void come_back(struct outage_case *c)
{
	c->held.away = HAPAX_OK;
	store_case_advance(&c->shared, 20000);
	(void)hapax_outage_tick(c->store);
}

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
	begin(&c);
	assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_false(hx_journal_gave(token));
	assert_int_equal(complete(&c, "a", token), HAPAX_OK);
	assert_replays(&c, "a");
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_ABSENT);
	assert_int_equal(hapax_outage_tick(c.store), HAPAX_TIME_NEVER);
	end(&c);
}

/* E13, A6: better twice than lost, and each of them is written down. */
static void what_is_let_through_is_written_down(void **state)
{
	struct outage_case c;
	struct hapax_outage outage;
	uint64_t token;
	uint64_t other;

	(void)state;
	begin(&c);
	go_away(&c);
	assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_true(hx_journal_gave(token));
	assert_int_equal(claim(&c, "a", &other), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(complete(&c, "a", token), HAPAX_OK);
	assert_replays(&c, "a");
	assert_false(tell(&c).is_away); /* one failure is not an outage yet */
	assert_int_equal(claim(&c, "b", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(claim(&c, "c", &token), HAPAX_OUTCOME_ACQUIRED);
	outage = tell(&c);
	assert_true(outage.is_away && outage.uses_journal);
	assert_int_equal(outage.outages, 1);
	assert_int_equal(outage.continued, 3);
	end(&c);
}

/* An open breaker asks nobody: waiting one after the other is what makes outages spread. */
static void store_that_is_away_is_not_asked(void **state)
{
	struct outage_case c;
	uint64_t token;
	size_t total;

	(void)state;
	begin(&c);
	go_away(&c);
	for (int i = 0; i < 3; i++)
		(void)claim(&c, i == 0 ? "a" : i == 1 ? "b" : "c", &token);
	total = c.held.total;
	for (int i = 0; i < 100; i++)
		(void)claim(&c, i == 0 ? "new" : "a", &token);
	assert_int_equal(c.held.total, total);
	store_case_advance(&c.shared, 200);
	assert_true(hapax_outage_tick(c.store) < HAPAX_TIME_NEVER);
	assert_int_equal(c.held.total, total + 1); /* the try */
	assert_true(tell(&c).is_away);
	end(&c);
}

static void journal_is_written_to_the_store_that_is_back(void **state)
{
	struct outage_case c;
	struct hapax_outage outage;
	uint64_t token;

	(void)state;
	begin(&c);
	go_away(&c);
	for (int i = 0; i < 4; i++)
		(void)claim(&c, "a", &token);
	assert_int_equal(claim(&c, "b", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(complete(&c, "b", token), HAPAX_OK);
	come_back(&c);
	assert_int_equal(case_state(&c.shared, "b"), HAPAX_STATE_DONE);
	assert_true(case_bytes_are(c.shared.record.result.body, "paid", 4));
	assert_int_equal(case_state(&c.journal, "b"), HAPAX_STATE_ABSENT);
	outage = tell(&c);
	assert_false(outage.is_away);
	assert_true(outage.uses_journal); /* "a" runs still */
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_TWICE], 0);
	assert_replays(&c, "b");
	end(&c);
}

/* Who claimed in the outage is found by duplicates that come after it. */
static void run_that_outlasts_the_outage_ends_once(void **state)
{
	struct outage_case c;
	struct hapax_op op;
	uint64_t token;
	uint64_t other;

	(void)state;
	begin(&c);
	go_away(&c);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	op.lease_ms = 60000;
	assert_int_equal(ask(&c, &op), HAPAX_OK);
	assert_int_equal(claim(&c, "b", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(claim(&c, "b", &other), HAPAX_OUTCOME_IN_PROGRESS);
	come_back(&c);
	assert_false(tell(&c).is_away);
	token = op.token;
	assert_int_equal(claim(&c, "a", &other), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(claim(&c, "new", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_false(hx_journal_gave(other));
	assert_int_equal(complete(&c, "a", token), HAPAX_OK);
	assert_replays(&c, "a");
	come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_replays(&c, "a");
	end(&c);
}

static void what_ran_elsewhere_too_is_reported(void **state)
{
	struct outage_case c;
	struct hapax_outage outage;
	uint64_t token;

	(void)state;
	begin(&c);
	go_away(&c);
	assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(complete(&c, "a", token), HAPAX_OK);
	/* Another node reaches the store. */
	assert_int_equal(case_claim(&c.shared, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(&c.shared, "a", token), HAPAX_OK);
	come_back(&c);
	outage = tell(&c);
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_TWICE], 1);
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_KEPT], 0);
	assert_string_equal(c.twice, "a");
	assert_false(outage.uses_journal);
	end(&c);
}

/* The claim was made before, the work is done: its result must not be lost. */
static void result_of_an_earlier_claim_is_kept(void **state)
{
	struct outage_case c;
	uint64_t token;

	(void)state;
	begin(&c);
	assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	go_away(&c);
	assert_int_equal(complete(&c, "a", token), HAPAX_OK);
	assert_int_equal(tell(&c).kept_results, 1);
	assert_replays(&c, "a");
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_CLAIMED);
	come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.token, token);
	assert_int_equal(tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	end(&c);
}

static void result_whose_claim_was_taken_over_ran_twice(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	begin(&c);
	assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	go_away(&c);
	assert_int_equal(complete(&c, "a", token), HAPAX_OK);
	store_case_advance(&c.shared, 2000);
	assert_int_equal(case_claim(&c.shared, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(&c.shared, "a", other), HAPAX_OK);
	come_back(&c);
	assert_int_equal(tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 1);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.token, other);
	end(&c);
}

/* Whoever took it over failed: the success of the first is what there is, and it counts. */
static void result_outlives_a_takeover_that_failed(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	begin(&c);
	assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	go_away(&c);
	assert_int_equal(complete(&c, "a", token), HAPAX_OK);
	store_case_advance(&c.shared, 2000);
	assert_int_equal(case_claim(&c.shared, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_release(&c.shared, "a", other), HAPAX_OK);
	come_back(&c);
	assert_int_equal(tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_replays(&c, "a");
	end(&c);
}

/* A duplicate was let through while the first still ran: both ran, and neither is written over. */
static void run_beside_an_earlier_claim_is_counted(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	begin(&c);
	assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	go_away(&c);
	assert_int_equal(claim(&c, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_true(hx_journal_gave(other));
	assert_int_equal(complete(&c, "a", token), HAPAX_OK);
	assert_int_equal(tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 1);
	assert_int_equal(tell(&c).kept_results, 0);
	assert_int_equal(complete(&c, "a", other), HAPAX_OK);
	assert_replays(&c, "a");
	end(&c);
}

/* A store that is back and full keeps nothing new; that is no outage. */
static void what_the_store_refuses_waits(void **state)
{
	struct outage_case c;
	struct hapax_outage outage;
	uint64_t token;

	(void)state;
	begin(&c);
	go_away(&c);
	for (int i = 0; i < 3; i++) {
		const char *key = i == 0 ? "a" : i == 1 ? "b" : "c";

		assert_int_equal(claim(&c, key, &token), HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(complete(&c, key, token), HAPAX_OK);
	}
	c.held.away = HAPAX_OK;
	c.held.passes = 1; /* the probe */
	c.held.then = HAPAX_ERR_LIMIT;
	for (int i = 0; i < 5; i++) {
		store_case_advance(&c.shared, 20000);
		(void)hapax_outage_tick(c.store);
	}
	outage = tell(&c);
	assert_false(outage.is_away);
	assert_true(outage.uses_journal);
	assert_replays(&c, "b");
	end(&c);
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
	begin(&c);
	hapax_store_close(c.store);
	c.options.continues = only_events;
	assert_int_equal(hapax_outage_guard(&c.held.base, &c.options, &c.store, NULL), HAPAX_OK);
	go_away(&c);
	for (int i = 0; i < 4; i++) {
		struct hapax_op op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");

		assert_int_equal(ask(&c, &op), HAPAX_ERR_UNAVAILABLE);
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
	end(&c);
}

/* UNCERTAIN is no answer and no refusal: the same attempt asks again. */
static void lost_answer_is_asked_for_again(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
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
	end(&c);
}

/* Its claim may be in the store; it lapses there, and is no second run. */
static void claim_that_stays_unknown_goes_on(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	c.held.holds = true;
	hapax_store_submit(c.store, &op, 1, (struct hapax_completion){ignore, NULL});
	for (int i = 0; i < 3; i++)
		held_store_lose_answer(&c.held);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_true(hx_journal_gave(op.token));
	c.held.holds = false;
	assert_int_equal(complete(&c, "a", op.token), HAPAX_OK);
	come_back(&c);
	assert_int_equal(tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_int_equal(tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 0);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	end(&c);
}

static void unknown_check_stays_unknown(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	op = case_op(&c.shared, HAPAX_OP_CHECK, "a");
	c.held.holds = true;
	hapax_store_submit(c.store, &op, 1, (struct hapax_completion){ignore, NULL});
	held_store_lose_answer(&c.held);
	assert_int_equal(op.status, HAPAX_ERR_UNCERTAIN);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_ABSENT);
	c.held.holds = false;
	end(&c);
}

static void marks_are_reconciled_too(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	begin(&c);
	go_away(&c);
	for (int i = 0; i < 2; i++) {
		op = case_op(&c.shared, HAPAX_OP_CHECK, i == 0 ? "a" : "b");
		assert_int_equal(ask(&c, &op), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(ask(&c, &op), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	}
	op = case_op(&c.shared, HAPAX_OP_CHECK, "b");
	assert_int_equal(case_run(&c.shared, &op), HAPAX_OK);
	come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.origin, HAPAX_ORIGIN_CHECK);
	assert_int_equal(tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_int_equal(tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 1);
	end(&c);
}

/* A journal that cannot be written lets nothing through. */
static void without_journal_the_answer_is_no(void **state)
{
	struct outage_case c;
	struct hapax_op op;
	uint64_t token;

	(void)state;
	begin(&c);
	hapax_store_close(c.store);
	c.journal.options.keys_max = 1;
	store_case_reopen(&c.journal);
	c.options.journal = c.journal.store;
	assert_int_equal(hapax_outage_guard(&c.held.base, &c.options, &c.store, NULL), HAPAX_OK);
	go_away(&c);
	assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "b");
	assert_int_equal(ask(&c, &op), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(op.token, 0);
	end(&c);
}

/* A step of reconcile may end at any point, and be repeated. */
static void reconcile_may_be_cut_anywhere(void **state)
{
	struct outage_case c;
	unsigned cuts = 0;

	(void)state;
	for (unsigned steps = 0; steps < 8; steps++) {
		struct hapax_reconcile work = HAPAX_RECONCILE_INIT;
		struct hapax_outage outage;
		uint64_t token;

		begin(&c);
		go_away(&c);
		assert_int_equal(claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(complete(&c, "a", token), HAPAX_OK);
		c.held.away = HAPAX_OK;
		c.held.passes = steps; /* then it is gone again */
		c.held.then = steps % 2 == 0 ? HAPAX_ERR_UNAVAILABLE : HAPAX_ERR_UNCERTAIN;
		cuts += hapax_journal_reconcile(c.journal.store, &c.held.base, &work, NULL) !=
			HAPAX_OK;
		c.held.then = HAPAX_OK;
		store_case_advance(&c.shared, 35000); /* a claim that was cut lapses */
		come_back(&c);
		outage = tell(&c);
		assert_int_equal(outage.reconciled[HAPAX_RECONCILED_TWICE], 0);
		assert_int_equal(work.counts[HAPAX_RECONCILED_TWICE], 0);
		assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
		assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_ABSENT);
		end(&c);
	}
	assert_true(cuts >= 2);
}

static void store_in_use_is_no_journal(void **state)
{
	struct outage_case c;
	struct hapax_store *store = NULL;
	struct hapax_error err;
	uint64_t token;

	(void)state;
	begin(&c);
	assert_int_equal(case_claim(&c.shared, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	c.options.journal = c.shared.store;
	assert_int_equal(
		hapax_outage_guard(&c.held.base, &c.options, &store, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "no journal"));
	end(&c);
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
		assert_false(hx_breaker_is_due(&breaker, breaker.retry_ms - 1));
		assert_true(hx_breaker_is_due(&breaker, breaker.retry_ms));
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
		cmocka_unit_test(journal_is_written_to_the_store_that_is_back),
		cmocka_unit_test(run_that_outlasts_the_outage_ends_once),
		cmocka_unit_test(what_ran_elsewhere_too_is_reported),
		cmocka_unit_test(result_of_an_earlier_claim_is_kept),
		cmocka_unit_test(result_whose_claim_was_taken_over_ran_twice),
		cmocka_unit_test(result_outlives_a_takeover_that_failed),
		cmocka_unit_test(run_beside_an_earlier_claim_is_counted),
		cmocka_unit_test(what_the_store_refuses_waits),
		cmocka_unit_test(scopes_that_refuse_are_refused),
		cmocka_unit_test(lost_answer_is_asked_for_again),
		cmocka_unit_test(claim_that_stays_unknown_goes_on),
		cmocka_unit_test(unknown_check_stays_unknown),
		cmocka_unit_test(marks_are_reconciled_too),
		cmocka_unit_test(without_journal_the_answer_is_no),
		cmocka_unit_test(reconcile_may_be_cut_anywhere),
		cmocka_unit_test(store_in_use_is_no_journal),
		cmocka_unit_test(breaker_waits_longer_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
