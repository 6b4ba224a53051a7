/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hapax/ext/store_ops.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/outage/journal.h"
#include "support/outage_case.h"

static void journal_is_written_to_the_store_that_is_back(void **state)
{
	unsigned char space[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_cause event = {.id = hapax_bytes_from_text("e-1")};
	struct outage_case c;
	struct hapax_outage outage;
	struct hapax_op op;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	for (int i = 0; i < 4; i++)
		(void)outage_case_claim(&c, "a", &token);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "b");
	op.cause = hapax_cause_write(&event, space);
	assert_int_equal(outage_case_ask(&c, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(outage_case_complete(&c, "b", op.token), HAPAX_OK);
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "b"), HAPAX_STATE_DONE);
	assert_true(case_bytes_are(c.shared.record.result.body, "paid", 4));
	assert_int_equal(hapax_cause_read(c.shared.record.cause, &event), 1);
	assert_true(case_bytes_are(event.id, "e-1", 3));
	assert_int_equal(case_state(&c.journal, "b"), HAPAX_STATE_ABSENT);
	outage = outage_case_tell(&c);
	assert_false(outage.is_away);
	assert_true(outage.uses_journal); /* "a" runs still */
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_TWICE], 0);
	assert_true(outage_case_replays(&c, "b"));
	outage_case_end(&c);
}

static void what_ran_elsewhere_too_is_reported(void **state)
{
	struct outage_case c;
	struct hapax_outage outage;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	/* Another node reaches the store. */
	assert_int_equal(case_claim(&c.shared, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(&c.shared, "a", token), HAPAX_OK);
	outage_case_come_back(&c);
	outage = outage_case_tell(&c);
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_TWICE], 1);
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_KEPT], 0);
	assert_string_equal(c.twice, "a");
	assert_false(outage.uses_journal);
	outage_case_end(&c);
}

static void result_whose_claim_was_taken_over_ran_twice(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	store_case_advance(&c.shared, 2000);
	assert_int_equal(case_claim(&c.shared, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(&c.shared, "a", other), HAPAX_OK);
	outage_case_come_back(&c);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 1);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.token, other);
	outage_case_end(&c);
}

/* The run that took over failed: the success of the first is what there is, and it counts. */
static void result_outlives_a_takeover_that_failed(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	store_case_advance(&c.shared, 2000);
	assert_int_equal(case_claim(&c.shared, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_release(&c.shared, "a", other), HAPAX_OK);
	outage_case_come_back(&c);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_true(outage_case_replays(&c, "a"));
	outage_case_end(&c);
}

/* A store that is available and full keeps nothing new; that is not an outage. */
static void what_the_store_refuses_waits(void **state)
{
	struct outage_case c;
	struct hapax_outage outage;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	for (int i = 0; i < 3; i++) {
		const char *key = i == 0 ? "a" : i == 1 ? "b" : "c";

		assert_int_equal(outage_case_claim(&c, key, &token), HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(outage_case_complete(&c, key, token), HAPAX_OK);
	}
	c.held.away = HAPAX_OK;
	c.held.passes = 1; /* the probe */
	c.held.then = HAPAX_ERR_LIMIT;
	for (int i = 0; i < 5; i++) {
		store_case_advance(&c.shared, 20000);
		(void)hapax_outage_tick(c.store);
	}
	outage = outage_case_tell(&c);
	assert_false(outage.is_away);
	assert_true(outage.uses_journal);
	assert_true(outage_case_replays(&c, "b"));
	outage_case_end(&c);
}

static void marks_are_reconciled_too(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	for (int i = 0; i < 2; i++) {
		op = case_op(&c.shared, HAPAX_OP_CHECK, i == 0 ? "a" : "b");
		assert_int_equal(outage_case_ask(&c, &op), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(outage_case_ask(&c, &op), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	}
	op = case_op(&c.shared, HAPAX_OP_CHECK, "b");
	assert_int_equal(case_run(&c.shared, &op), HAPAX_OK);
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 1);
	outage_case_end(&c);
}

enum { CUT_KEYS = 3 };

/* What a journal holds that reconcile is cut over: runs, marks, results of earlier claims. */
static void let_through(struct outage_case *c, enum hapax_op_type type, bool is_earlier)
{
	uint64_t tokens[CUT_KEYS];

	if (!is_earlier)
		outage_case_go_away(c);
	for (unsigned i = 0; i < CUT_KEYS; i++) {
		char key[2] = {(char)('a' + i), '\0'};
		struct hapax_op op = case_op(&c->shared, type, key);

		assert_int_equal(outage_case_ask(c, &op), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		tokens[i] = op.token;
	}
	outage_case_go_away(c);
	for (unsigned i = 0; i < CUT_KEYS && type == HAPAX_OP_CLAIM; i++) {
		char key[2] = {(char)('a' + i), '\0'};

		assert_int_equal(outage_case_complete(c, key, tokens[i]), HAPAX_OK);
	}
}

static void assert_settled_once(struct outage_case *c, const struct hapax_reconcile *work)
{
	struct hapax_outage outage = outage_case_tell(c);

	assert_int_equal(work->counts[HAPAX_RECONCILED_TWICE], 0);
	assert_int_equal(outage.reconciled[HAPAX_RECONCILED_TWICE], 0);
	assert_int_equal(
		work->counts[HAPAX_RECONCILED_KEPT] + outage.reconciled[HAPAX_RECONCILED_KEPT],
		CUT_KEYS);
	for (unsigned i = 0; i < CUT_KEYS; i++) {
		char key[2] = {(char)('a' + i), '\0'};

		assert_int_equal(case_state(&c->shared, key), HAPAX_STATE_DONE);
		assert_int_equal(case_state(&c->journal, key), HAPAX_STATE_ABSENT);
	}
	assert_false(outage.uses_journal);
}

/* False: it was not cut. */
static bool cut_after(
	unsigned steps, enum hapax_status status, enum hapax_op_type type, bool is_earlier)
{
	struct outage_case c;
	struct hapax_reconcile work = HAPAX_RECONCILE_INIT;
	bool is_cut;

	outage_case_begin(&c);
	let_through(&c, type, is_earlier);
	c.held.away = HAPAX_OK;
	c.held.passes = steps; /* then it is gone again */
	c.held.then = status;
	is_cut = hapax_journal_reconcile(c.journal.store, &c.held.base, &work, NULL) != HAPAX_OK;
	c.held.then = HAPAX_OK;
	store_case_advance(&c.shared, 35000); /* a claim that was cut lapses */
	outage_case_come_back(&c);
	assert_settled_once(&c, &work);
	outage_case_end(&c);
	return is_cut;
}

/* A step of reconcile may end at any point, and be repeated: nothing ran twice by that. */
static void reconcile_may_be_cut_anywhere(void **state)
{
	const enum hapax_status statuses[] = {HAPAX_ERR_UNAVAILABLE, HAPAX_ERR_UNCERTAIN};

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		enum hapax_status status = statuses[i % 2];
		enum hapax_op_type type = i / 2 == 1 ? HAPAX_OP_CHECK : HAPAX_OP_CLAIM;
		unsigned steps = 0;

		while (cut_after(steps, status, type, i / 2 == 2))
			steps++;
		assert_true(steps >= (i / 2 == 2 ? 1 : 2));
	}
}

/* The same where the journal is what fails: a step of it may be lost. */
static void reconcile_may_lose_its_journal(void **state)
{
	(void)state;
	for (uint64_t nth = 1, failures = 1; failures != 0; nth++) {
		struct outage_case c;
		struct hapax_reconcile work = HAPAX_RECONCILE_INIT;

		outage_case_begin(&c);
		let_through(&c, HAPAX_OP_CLAIM, false);
		c.held.away = HAPAX_OK;
		hx_alloc_fail_at(nth, 0);
		failures = hapax_journal_reconcile(c.journal.store, &c.held.base, &work, NULL) !=
			HAPAX_OK;
		hx_alloc_fail_at(0, 0);
		store_case_advance(&c.shared, 35000);
		outage_case_come_back(&c);
		assert_settled_once(&c, &work);
		outage_case_end(&c);
		assert_true(failures != 0 || nth > 3);
	}
}

/* One round trip serves many, or an hour's journal would take hours. */
static void reconcile_asks_for_many_at_once(void **state)
{
	enum { RUNS = 700, MARKS = 300 };
	struct outage_case c;
	struct hapax_op op;
	uint64_t token;
	size_t total;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	for (unsigned i = 0; i < RUNS + MARKS; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "key-%u", i);
		if (i < RUNS) {
			assert_int_equal(
				outage_case_claim(&c, key, &token), HAPAX_OUTCOME_ACQUIRED);
			assert_int_equal(outage_case_complete(&c, key, token), HAPAX_OK);
		} else {
			op = case_op(&c.shared, HAPAX_OP_CHECK, key);
			assert_int_equal(outage_case_ask(&c, &op), HAPAX_OK);
		}
		/* Every tenth ran elsewhere, too. */
		op = case_op(&c.shared, HAPAX_OP_CHECK, key);
		if (i % 10 == 0)
			assert_int_equal(case_run(&c.shared, &op), HAPAX_OK);
	}
	total = c.held.total;
	outage_case_come_back(&c);
	assert_int_equal(
		outage_case_tell(&c).reconciled[HAPAX_RECONCILED_KEPT], (RUNS + MARKS) / 10 * 9);
	assert_int_equal(
		outage_case_tell(&c).reconciled[HAPAX_RECONCILED_TWICE], (RUNS + MARKS) / 10);
	assert_false(outage_case_tell(&c).uses_journal);
	/* The probe, and for each of four batches the claims and the completions. */
	assert_true(c.held.total - total <= 1 + 4 * 2);
	outage_case_end(&c);
}

/* A process that died holds its claims in the journal: they end with their lease. */
static void claim_that_lapsed_leaves_the_journal(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	outage_case_come_back(&c);
	assert_true(outage_case_tell(&c).uses_journal);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_CLAIMED);
	store_case_advance(&c.journal, 1000);
	outage_case_come_back(&c);
	assert_false(outage_case_tell(&c).uses_journal);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_FAILED], 1);
	assert_int_equal(outage_case_claim(&c, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_false(hx_journal_gave(other));
	outage_case_end(&c);
}

static void claim_that_lapsed_and_parks_waits_for_a_person(void **state)
{
	struct outage_case c;
	struct hapax_op op;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	op = case_op(&c.shared, HAPAX_OP_CLAIM, "a");
	op.on_lapse = HAPAX_ON_LAPSE_PARK;
	assert_int_equal(outage_case_ask(&c, &op), HAPAX_OK);
	store_case_advance(&c.journal, 1000);
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_PARKED);
	assert_true(outage_case_tell(&c).uses_journal);
	assert_int_equal(outage_case_complete(&c, "a", op.token), HAPAX_OK);
	store_case_advance(&c.journal, 1);
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	outage_case_end(&c);
}

/* A store before another one, where something happens between two operations. */
struct sly_store {
	struct hapax_store base;
	struct hapax_store_ops ops;
	struct hapax_store *inner;
	struct outage_case *c;
	enum hapax_op_type type; /* next to which it happens, once */
	void (*before)(struct sly_store *sly);
	void (*after)(struct sly_store *sly, const struct hapax_op *op);
	const char *damaged; /* key of a record that a scan cannot read, or NULL */
	bool sticks;         /* ... nor gets past */
};

/* A scan as it is handed on, up to a record that cannot be read. */
struct sly_walk {
	const char *damaged;
	hapax_scan_fn *each;
	void *context;
	bool is_over;
};

static int sly_hand_out(const struct hapax_record *record, void *context)
{
	struct sly_walk *walk = context;

	walk->is_over = case_bytes_are(record->key, walk->damaged, strlen(walk->damaged));
	return walk->is_over || walk->each(record, walk->context) != 0;
}

static void sly_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct sly_store *sly = (struct sly_store *)store;
	bool is_time = ops[0].type == sly->type;

	if (is_time)
		sly->type = 0;
	if (is_time && sly->before != NULL)
		sly->before(sly);
	(void)hapax_store_run(sly->inner, ops, count, NULL);
	if (is_time && sly->after != NULL)
		sly->after(sly, &ops[0]);
	hapax_store_complete(store, ops, count, completion);
}

static enum hapax_status sly_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct sly_store *sly = (struct sly_store *)store;
	struct sly_walk walk = {sly->damaged, each, context, false};
	struct hapax_cursor begin = *cursor;
	enum hapax_status status;

	if (sly->damaged == NULL)
		return hapax_store_scan(sly->inner, scan, cursor, each, context, err);
	status = hapax_store_scan(sly->inner, scan, cursor, sly_hand_out, &walk, err);
	if (!walk.is_over)
		return status;
	if (sly->sticks)
		*cursor = begin;
	return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "'%s' is damaged", sly->damaged);
}

static enum hapax_status sly_stats(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	return hapax_store_stats(((struct sly_store *)store)->inner, stats, each, context, err);
}

static enum hapax_status sly_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err)
{
	return hapax_store_sweep(((struct sly_store *)store)->inner, sweep, err);
}

static void sly_close(struct hapax_store *store)
{
	hapax_store_detach(store);
}

static void begin_sly(struct sly_store *sly, struct outage_case *c, struct store_case *inner)
{
	*sly = (struct sly_store){
		.inner = inner->store,
		.c = c,
		.ops =
			{
				.version = HAPAX_STORE_OPS_VERSION,
				.name = "sly",
				.submit = sly_submit,
				.scan = sly_scan,
				.stats = sly_stats,
				.sweep = sly_sweep,
				.close = sly_close,
			},
	};
	assert_int_equal(
		hapax_store_attach(&sly->base, &sly->ops, "sly:", &inner->options, NULL), HAPAX_OK);
}

static void complete_late(struct sly_store *sly, const struct hapax_op *op)
{
	assert_int_equal(outage_case_complete(sly->c, "a", op->token), HAPAX_OK);
}

/* The holder of a lapsed claim comes to its end while that is settled: nothing is lost. */
static void result_in_the_last_moment_is_kept(void **state)
{
	struct outage_case c;
	struct sly_store sly;
	struct hapax_reconcile work = HAPAX_RECONCILE_INIT;
	uint64_t token;

	(void)state;
	outage_case_begin(&c);
	outage_case_go_away(&c);
	assert_int_equal(outage_case_claim(&c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(&c.journal, 1000);
	begin_sly(&sly, &c, &c.journal);
	sly.type = HAPAX_OP_RELEASE;
	sly.after = complete_late;
	assert_int_equal(hapax_journal_reconcile(&sly.base, c.shared.store, &work, NULL), HAPAX_OK);
	assert_int_equal(sly.type, 0);
	assert_int_equal(work.counts[HAPAX_RECONCILED_FAILED], 0);
	assert_int_equal(case_state(&c.journal, "a"), HAPAX_STATE_DONE);
	assert_int_equal(hapax_journal_reconcile(&sly.base, c.shared.store, &work, NULL), HAPAX_OK);
	assert_int_equal(work.counts[HAPAX_RECONCILED_KEPT], 1);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_true(case_bytes_are(c.shared.record.result.body, "paid", 4));
	hapax_store_close(&sly.base);
	outage_case_end(&c);
}

static void reconcile_beside(struct sly_store *sly)
{
	struct hapax_reconcile work = HAPAX_RECONCILE_INIT;

	assert_int_equal(
		hapax_journal_reconcile(sly->c->journal.store, sly->inner, &work, NULL), HAPAX_OK);
	assert_int_equal(work.counts[HAPAX_RECONCILED_KEPT], CUT_KEYS);
}

/* A node and a command settle one journal: what the other wrote does not count as a run. */
static void two_may_settle_one_journal(void **state)
{
	(void)state;
	for (int is_earlier = 0; is_earlier < 2; is_earlier++) {
		struct outage_case c;
		struct sly_store sly;
		struct hapax_reconcile work = HAPAX_RECONCILE_INIT;

		outage_case_begin(&c);
		let_through(&c, HAPAX_OP_CLAIM, is_earlier != 0);
		begin_sly(&sly, &c, &c.shared);
		sly.type = is_earlier != 0 ? HAPAX_OP_COMPLETE : HAPAX_OP_CLAIM;
		sly.before = reconcile_beside;
		assert_int_equal(
			hapax_journal_reconcile(c.journal.store, &sly.base, &work, NULL), HAPAX_OK);
		assert_int_equal(sly.type, 0);
		for (size_t i = 0; i < HAPAX_RECONCILED_COUNT; i++)
			assert_int_equal(work.counts[i], 0); /* the other has counted */
		hapax_store_close(&sly.base);
		outage_case_end(&c);
	}
}

/* As far as the other has come with "a" when it is forgotten last. */
static void reconcile_half(struct sly_store *sly)
{
	struct store_case *journal = &sly->c->journal;
	uint64_t token;
	struct hapax_op op;

	assert_int_equal(case_claim(&sly->c->shared, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_state(journal, "a"), HAPAX_STATE_DONE);
	op = case_op(journal, HAPAX_OP_LOAD, "a");
	journal->record.token = token;
	op.load = &journal->record;
	assert_int_equal(hapax_store_run(journal->store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(case_complete(&sly->c->shared, "a", token), HAPAX_OK);
}

static void half_of_another_is_no_second_run(void **state)
{
	struct outage_case c;
	struct sly_store sly;
	struct hapax_reconcile work = HAPAX_RECONCILE_INIT;

	(void)state;
	outage_case_begin(&c);
	let_through(&c, HAPAX_OP_CLAIM, false);
	begin_sly(&sly, &c, &c.shared);
	sly.type = HAPAX_OP_CLAIM;
	sly.before = reconcile_half;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			hapax_journal_reconcile(c.journal.store, &sly.base, &work, NULL), HAPAX_OK);
	assert_int_equal(sly.type, 0);
	assert_int_equal(work.counts[HAPAX_RECONCILED_KEPT], CUT_KEYS);
	assert_int_equal(work.counts[HAPAX_RECONCILED_TWICE], 0);
	hapax_store_close(&sly.base);
	outage_case_end(&c);
}

/* A run whose claim lapsed, and was taken out of the journal. */
static uint64_t begin_late_run(struct outage_case *c)
{
	uint64_t token;

	outage_case_begin(c);
	outage_case_go_away(c);
	assert_int_equal(outage_case_claim(c, "a", &token), HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(&c->journal, 1000);
	outage_case_come_back(c);
	assert_int_equal(case_state(&c->journal, "a"), HAPAX_STATE_ABSENT);
	assert_false(outage_case_tell(c).uses_journal);
	return token;
}

/* No other run since: the work is done, and counts. */
/* In whatever order they are handed out, some stand before it or behind it, or both. */
static void damaged_record_does_not_hold_up_the_rest(void **state)
{
	(void)state;
	for (unsigned damaged = 0; damaged < CUT_KEYS; damaged++) {
		const char key[2] = {(char)('a' + damaged), '\0'};
		struct hapax_reconcile work = HAPAX_RECONCILE_INIT;
		struct hapax_error err;
		struct outage_case c;
		struct sly_store sly;

		outage_case_begin(&c);
		let_through(&c, HAPAX_OP_CLAIM, false);
		c.held.away = HAPAX_OK;
		begin_sly(&sly, &c, &c.journal);
		sly.damaged = key;
		assert_int_equal(
			hapax_journal_reconcile(&sly.base, &c.held.base, &work, &err),
			HAPAX_ERR_CORRUPT);
		assert_int_equal(err.status, HAPAX_ERR_CORRUPT);
		assert_non_null(strstr(err.message, "is damaged"));
		assert_int_equal(work.counts[HAPAX_RECONCILED_KEPT], CUT_KEYS - 1);
		assert_int_equal(work.counts[HAPAX_RECONCILED_LATER], 1);
		for (unsigned i = 0; i < CUT_KEYS; i++) {
			const char one[2] = {(char)('a' + i), '\0'};

			assert_int_equal(
				case_state(&c.shared, one),
				i == damaged ? HAPAX_STATE_ABSENT : HAPAX_STATE_DONE);
			assert_int_equal(
				case_state(&c.journal, one),
				i == damaged ? HAPAX_STATE_DONE : HAPAX_STATE_ABSENT);
		}
		/* A scan that does not get past it comes to an end, too. */
		sly.sticks = true;
		assert_int_equal(
			hapax_journal_reconcile(&sly.base, &c.held.base, &work, NULL),
			HAPAX_ERR_CORRUPT);
		assert_int_equal(work.counts[HAPAX_RECONCILED_LATER], 1);
		hapax_store_close(&sly.base);
		outage_case_end(&c);
	}
}

/* A damaged journal is not an outage of the store. */
static void damaged_record_does_not_keep_the_store_away(void **state)
{
	struct outage_case c;
	struct sly_store sly;

	(void)state;
	outage_case_begin(&c);
	begin_sly(&sly, &c, &c.journal);
	c.options.journal = &sly.base;
	outage_case_reopen(&c);
	let_through(&c, HAPAX_OP_CLAIM, false);
	sly.damaged = "b";
	outage_case_come_back(&c);
	assert_false(outage_case_tell(&c).is_away);
	assert_true(outage_case_tell(&c).uses_journal);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_KEPT], CUT_KEYS - 1);
	sly.damaged = NULL;
	store_case_advance(&c.shared, 20000);
	(void)hapax_outage_tick(c.store);
	assert_false(outage_case_tell(&c).uses_journal);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_KEPT], CUT_KEYS);
	c.options.journal = c.journal.store;
	outage_case_reopen(&c);
	hapax_store_close(&sly.base);
	outage_case_end(&c);
}

static void late_result_is_kept(void **state)
{
	struct outage_case c;
	uint64_t token;

	(void)state;
	token = begin_late_run(&c);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	assert_true(outage_case_replays(&c, "a"));
	outage_case_come_back(&c);
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.ttl_ms, 60000);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_KEPT], 1);
	assert_false(outage_case_tell(&c).uses_journal);
	outage_case_end(&c);
}

static void late_result_beside_another_is_counted(void **state)
{
	struct outage_case c;
	uint64_t token;
	uint64_t other;

	(void)state;
	token = begin_late_run(&c);
	assert_int_equal(outage_case_claim(&c, "a", &other), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(outage_case_complete(&c, "a", other), HAPAX_OK);
	assert_int_equal(outage_case_complete(&c, "a", token), HAPAX_OK);
	outage_case_come_back(&c);
	assert_int_equal(outage_case_tell(&c).reconciled[HAPAX_RECONCILED_TWICE], 1);
	assert_string_equal(c.twice, "a");
	assert_int_equal(case_state(&c.shared, "a"), HAPAX_STATE_DONE);
	assert_int_equal(c.shared.record.token, other);
	outage_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(journal_is_written_to_the_store_that_is_back),
		cmocka_unit_test(what_ran_elsewhere_too_is_reported),
		cmocka_unit_test(result_whose_claim_was_taken_over_ran_twice),
		cmocka_unit_test(result_outlives_a_takeover_that_failed),
		cmocka_unit_test(what_the_store_refuses_waits),
		cmocka_unit_test(marks_are_reconciled_too),
		cmocka_unit_test(reconcile_may_be_cut_anywhere),
		cmocka_unit_test(reconcile_may_lose_its_journal),
		cmocka_unit_test(reconcile_asks_for_many_at_once),
		cmocka_unit_test(claim_that_lapsed_leaves_the_journal),
		cmocka_unit_test(claim_that_lapsed_and_parks_waits_for_a_person),
		cmocka_unit_test(result_in_the_last_moment_is_kept),
		cmocka_unit_test(two_may_settle_one_journal),
		cmocka_unit_test(half_of_another_is_no_second_run),
		cmocka_unit_test(damaged_record_does_not_hold_up_the_rest),
		cmocka_unit_test(damaged_record_does_not_keep_the_store_away),
		cmocka_unit_test(late_result_is_kept),
		cmocka_unit_test(late_result_beside_another_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
