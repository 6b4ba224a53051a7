/* SPDX-License-Identifier: Apache-2.0 */
/* cases_stats.c - what the store says of its content and decisions; the sweep. */
#include "conformance/cases.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/scale.h"
#include "support/virtual_clock.h"

enum { HOUR = 3600 * 1000 };

static void stats_count_records_by_state(void **state)
{
	struct store_case *c = *state;
	struct hapax_stats stats = case_stats(c);

	assert_int_equal(stats.keys, 0);
	assert_int_equal(stats.now_ms, CASE_EPOCH_MS);
	must_claim(c, "a");
	must_claim(c, "b");
	assert_int_equal(case_park(c, "p", must_claim(c, "p")), HAPAX_OK);
	assert_int_equal(case_release(c, "f", must_claim(c, "f")), HAPAX_OK);
	for (int i = 0; i < 5; i++) {
		char key[16];

		snprintf(key, sizeof(key), "d%d", i);
		assert_int_equal(case_complete(c, key, must_claim(c, key)), HAPAX_OK);
	}
	stats = case_stats(c);
	assert_int_equal(stats.keys, 9);
	assert_int_equal(stats.claimed, 2);
	assert_int_equal(stats.parked, 1);
	assert_int_equal(stats.failed, 1);
	assert_int_equal(stats.done, 5);
	assert_int_equal(stats.expired, 0);
	assert_int_equal(stats.swept, 0);
	assert_true(stats.bytes > 0);

	store_case_advance(c, 60000);
	stats = case_stats(c);
	assert_int_equal(stats.claimed, 2);
	assert_true(stats.expired <= 6);
	struct hapax_sweep swept = case_sweep(c);
	stats = case_stats(c);
	assert_int_equal(stats.keys, 3);
	assert_int_equal(swept.remaining, 3);
	assert_int_equal(stats.done + stats.failed + stats.expired, 0);
	assert_int_equal(stats.swept, 6);
	assert_int_equal(swept.removed, 6);
}

/* The rows that a call of stats hands out. */
struct rows {
	struct {
		char scope[64];
		int64_t hour_ms;
		uint64_t counts[HAPAX_DECISION_COUNT];
	} row[16];
	size_t count;
	size_t stop_after;
};

static int keep_row(const struct hapax_counters *counters, void *context)
{
	struct rows *rows = context;

	assert_true(rows->count < 16);
	snprintf(
		rows->row[rows->count].scope, sizeof(rows->row[0].scope), "%.*s/%.*s",
		(int)counters->tenant.size, (const char *)counters->tenant.data,
		(int)counters->group.size, (const char *)counters->group.data);
	rows->row[rows->count].hour_ms = counters->hour_ms;
	memcpy(rows->row[rows->count].counts, counters->counts, sizeof(counters->counts));
	rows->count++;
	return rows->stop_after && rows->count >= rows->stop_after;
}

static struct hapax_stats read_rows(struct store_case *c, struct rows *rows)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	rows->count = 0;
	assert_int_equal(hapax_store_stats(c->store, &stats, keep_row, rows, NULL), HAPAX_OK);
	return stats;
}

/* Sum of one decision over the rows of one scope and hour. */
static uint64_t sum_of(
	const struct rows *rows, const char *scope, int64_t hour_ms, enum hapax_decision decision)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(rows->row[i].scope, scope) == 0 && rows->row[i].hour_ms == hour_ms)
			sum += rows->row[i].counts[decision];
	return sum;
}

/* One of each decision. */
static void decide_everything(struct store_case *c)
{
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");

	op.fingerprint = case_fingerprint('A');
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	uint64_t token = op.token;
	struct hapax_op again = op;
	must_run(c, &again, HAPAX_OUTCOME_ACQUIRED);
	op = case_op(c, HAPAX_OP_CLAIM, "k");
	must_run(c, &op, HAPAX_OUTCOME_IN_PROGRESS);
	op.fingerprint = case_fingerprint('B');
	must_run(c, &op, HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(case_complete(c, "k", token + 1000), HAPAX_ERR_FENCED);
	assert_int_equal(case_park(c, "k", token), HAPAX_OK);
	op.fingerprint = case_fingerprint('A');
	must_run(c, &op, HAPAX_OUTCOME_PARKED);
	assert_int_equal(case_release(c, "k", token), HAPAX_OK);
	op = case_op(c, HAPAX_OP_CHECK, "k");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	must_run(c, &op, HAPAX_OUTCOME_REPLAY);
	op = case_op(c, HAPAX_OP_FORGET, "k");
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(case_complete(c, "c", must_claim(c, "c")), HAPAX_OK);
	op = case_op(c, HAPAX_OP_FORGET, "c");
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
}

static const uint64_t decided[HAPAX_DECISION_COUNT] = {
	[HAPAX_DECISION_ACQUIRED] = 4,    [HAPAX_DECISION_REPLAY] = 1,
	[HAPAX_DECISION_IN_PROGRESS] = 1, [HAPAX_DECISION_MISMATCH] = 1,
	[HAPAX_DECISION_PARKED] = 1,      [HAPAX_DECISION_FENCED] = 1,
	[HAPAX_DECISION_COMPLETED] = 1,   [HAPAX_DECISION_RELEASED] = 1,
	[HAPAX_DECISION_UNVERIFIED] = 2,  [HAPAX_DECISION_LIMIT] = 0,
	[HAPAX_DECISION_FORGOTTEN] = 2,
};

/* E1, E3: decisions are counted by scope and hour. */
static void decisions_are_counted(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");
	struct rows rows = {.count = 0};

	decide_everything(c);
	struct hapax_stats stats = read_rows(c, &rows);
	for (unsigned i = 0; i < HAPAX_DECISION_COUNT; i++) {
		assert_int_equal(stats.counts[i], decided[i]);
		assert_int_equal(
			sum_of(&rows, "default/default", CASE_EPOCH_MS, (enum hapax_decision)i),
			decided[i]);
	}
	/* Another scope, another hour. */
	store_case_advance(c, HOUR);
	op.tenant = hapax_bytes_from_text("acme");
	op.group = hapax_bytes_from_text("billing");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	must_run(c, &op, HAPAX_OUTCOME_REPLAY);
	stats = read_rows(c, &rows);
	assert_int_equal(rows.count, 2);
	assert_int_equal(
		sum_of(&rows, "acme/billing", CASE_EPOCH_MS + HOUR, HAPAX_DECISION_REPLAY), 1);
	assert_int_equal(sum_of(&rows, "acme/billing", CASE_EPOCH_MS, HAPAX_DECISION_REPLAY), 0);
	assert_int_equal(
		stats.counts[HAPAX_DECISION_ACQUIRED], decided[HAPAX_DECISION_ACQUIRED] + 1);
	/* A callback that stops is not called again; the sums are whole. */
	rows.stop_after = 1;
	stats = read_rows(c, &rows);
	assert_int_equal(rows.count, 1);
	assert_int_equal(
		stats.counts[HAPAX_DECISION_ACQUIRED], decided[HAPAX_DECISION_ACQUIRED] + 1);
}

/* A durable store keeps its counters over a clean close. */
static void counters_survive_a_clean_close(void **state)
{
	struct store_case *c = *state;
	struct rows rows = {.count = 0};

	decide_everything(c);
	store_case_reopen(c);
	decide_everything(c);
	struct hapax_stats stats = read_rows(c, &rows);
	for (unsigned i = 0; i < HAPAX_DECISION_COUNT; i++)
		assert_int_equal(stats.counts[i], 2 * decided[i]);
	assert_int_equal(rows.count, 1);
}

/* I8, E3: a machine whose wall clock is wrong does not lose what it counted. */
static void counters_do_not_need_the_wall_clock(void **state)
{
	struct store_case *c = *state;
	static const int64_t walls[] = {
		0, CASE_EPOCH_MS - INT64_C(400) * 24 * HOUR,
		CASE_EPOCH_MS + INT64_C(400) * 24 * HOUR};

	for (size_t i = 0; i < sizeof(walls) / sizeof(walls[0]); i++) {
		struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");

		hx_virtual_clock_set_wall(&c->clock, walls[i]);
		must_run(c, &op, i == 0 ? HAPAX_OUTCOME_ACQUIRED : HAPAX_OUTCOME_REPLAY);
		assert_int_equal(case_stats(c).counts[HAPAX_DECISION_ACQUIRED], 1);
		assert_int_equal(case_stats(c).counts[HAPAX_DECISION_REPLAY], i);
	}
}

static void bad_stats_are_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_error err = {0};

	assert_int_equal(hapax_store_stats(c->store, NULL, NULL, NULL, &err), HAPAX_ERR_INVALID);
	stats.size = 0;
	assert_int_equal(hapax_store_stats(c->store, &stats, NULL, NULL, &err), HAPAX_ERR_INVALID);
	assert_true(err.message[0] != '\0');
	sweep.size = 1;
	assert_int_equal(hapax_store_sweep(c->store, &sweep, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_store_sweep(c->store, NULL, &err), HAPAX_ERR_INVALID);
	/* A caller that was built with fewer members gets those it knows. */
	stats = (struct hapax_stats)HAPAX_STATS_INIT;
	stats.size = offsetof(struct hapax_stats, claimed);
	stats.claimed = 4711;
	assert_int_equal(hapax_store_stats(c->store, &stats, NULL, NULL, &err), HAPAX_OK);
	assert_int_equal(stats.now_ms, CASE_EPOCH_MS);
	assert_int_equal(stats.claimed, 4711);
}

/* A8: the sweep works in bounded pieces and comes to an end. */
static void sweep_works_in_pieces(void **state)
{
	struct store_case *c = *state;
	enum { KEYS = 5000 };
	struct hapax_op *ops = calloc(KEYS, sizeof(*ops));
	char(*keys)[16] = calloc(KEYS, sizeof(*keys));
	uint64_t removed = 0;

	assert_true(ops && keys);
	for (size_t i = 0; i < KEYS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key %zu", i);
		ops[i] = case_op(c, HAPAX_OP_CHECK, keys[i]);
		/* Half of them expire, over several hours. */
		ops[i].ttl_ms = i % 2 ? HAPAX_TTL_FOREVER : 1 + (int64_t)i * 3000;
	}
	assert_int_equal(hapax_store_run(c->store, ops, KEYS, NULL), HAPAX_OK);
	store_case_advance(c, INT64_C(2) * KEYS * 3000);
	for (int calls = 0;; calls++) {
		struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

		sweep.count_max = 100;
		assert_int_equal(hapax_store_sweep(c->store, &sweep, NULL), HAPAX_OK);
		assert_true(sweep.removed <= 100);
		assert_true(sweep.looked >= sweep.removed);
		removed += sweep.removed;
		assert_true(calls < 10000);
		if (sweep.done) {
			assert_int_equal(sweep.remaining, KEYS / 2);
			break;
		}
	}
	assert_int_equal(removed, KEYS / 2);
	assert_int_equal(case_stats(c).keys, KEYS / 2);
	assert_int_equal(case_stats(c).swept, KEYS / 2);
	/* What lives was not touched. */
	assert_int_equal(case_state(c, "key 4999"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "key 4998"), HAPAX_STATE_ABSENT);
	free(ops);
	free(keys);
}

/*
 * A8: what has expired leaves by itself. Housekeeping has a clock of its own, so
 * the test waits for it: a second or so, a minute at worst.
 */
static void housekeeping_sweeps_by_itself(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");
	double begun = scale_seconds();

	c->options.flags = 0;
	c->options.sweep_interval_ms = 1;
	store_case_reopen(c);
	op.ttl_ms = 1;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	must_claim(c, "lapsed");
	store_case_advance(c, 100000);
	while (case_stats(c).swept == 0 || case_stats(c).failed == 0) {
		assert_true(scale_seconds() - begun < 60);
		sched_yield();
	}
	assert_int_equal(case_stats(c).keys, 1);
	assert_int_equal(case_state(c, "lapsed"), HAPAX_STATE_FAILED);
}

/* Names for people: never NULL, never the same word twice. */
static void everything_has_a_name(void **state)
{
	(void)state;
	for (int i = -20; i < 20; i++) {
		assert_non_null(hapax_status_name((enum hapax_status)i));
		assert_non_null(hapax_outcome_name((enum hapax_outcome)i));
		assert_non_null(hapax_op_type_name((enum hapax_op_type)i));
		assert_non_null(hapax_decision_name((enum hapax_decision)i));
		assert_non_null(hapax_state_name((enum hapax_state)i));
		assert_non_null(hapax_origin_name((enum hapax_origin)i));
		assert_non_null(hapax_on_lapse_name((enum hapax_on_lapse)i));
		assert_non_null(hapax_result_kind_name((enum hapax_result_kind)i));
		assert_non_null(hapax_result_class_name((enum hapax_result_class)i));
	}
	assert_string_equal(hapax_outcome_name(HAPAX_OUTCOME_ACQUIRED), "acquired");
	assert_string_equal(hapax_outcome_name(HAPAX_OUTCOME_IN_PROGRESS), "in_progress");
	assert_string_equal(hapax_op_type_name(HAPAX_OP_CLAIM), "claim");
	assert_string_equal(hapax_state_name(HAPAX_STATE_CLAIMED), "claimed");
	assert_string_equal(hapax_decision_name(HAPAX_DECISION_FENCED), "fenced");
	for (int i = 0; i <= HAPAX_OUTCOME_SKIPPED; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(
				hapax_outcome_name((enum hapax_outcome)i),
				hapax_outcome_name((enum hapax_outcome)k));
}

const struct conformance_case stats_cases[] = {
	{"E1: stats count records by state", stats_count_records_by_state, NEEDS_NOTHING},
	{"E1 E3: decisions are counted", decisions_are_counted, NEEDS_NOTHING},
	{"E3: counters survive a clean close", counters_survive_a_clean_close, NEEDS_DURABLE},
	{"I8 E3: counters do not need the wall clock", counters_do_not_need_the_wall_clock,
	 NEEDS_NOTHING},
	{"I13: bad stats are refused", bad_stats_are_refused, NEEDS_NOTHING},
	{"A8: sweep works in pieces", sweep_works_in_pieces, NEEDS_NOTHING},
	{"A8: housekeeping sweeps by itself", housekeeping_sweeps_by_itself, NEEDS_NOTHING},
	{"C7: everything has a name", everything_has_a_name, NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
