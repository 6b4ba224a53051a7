/* SPDX-License-Identifier: Apache-2.0 */
/* cases_time.c - I8: leases and expiry on the store's clock; late is allowed, early is not. */
#include "conformance/cases.h"

#include "base/limits.h"
#include "support/virtual_clock.h"

enum { MINUTE = 60000 };
#define DAY (INT64_C(86400) * 1000)

/* I8: the wall clock may be set to anything while the store is open. */
static void wall_clock_is_not_believed(void **state)
{
	struct store_case *c = *state;
	static const int64_t walls[] = {
		0, -1000, CASE_EPOCH_MS - 365 * DAY, CASE_EPOCH_MS + 3650 * DAY, INT64_C(1) << 50};
	uint64_t token = must_claim(c, "held");
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "done");
	int64_t passed = 0;

	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	for (size_t i = 0; i < sizeof(walls) / sizeof(walls[0]); i++) {
		hx_virtual_clock_set_wall(&c->clock, walls[i]);
		assert_int_equal(store_case_now(c), CASE_EPOCH_MS + passed);
		assert_int_equal(case_claim(c, "held", NULL), HAPAX_OUTCOME_IN_PROGRESS);
		must_run(c, &check, HAPAX_OUTCOME_REPLAY);
		store_case_advance(c, 100);
		passed += 100;
		/* The skew says how far the machine's clock is off. */
		assert_int_equal(case_stats(c).skew_ms, CASE_EPOCH_MS + passed - walls[i] - 100);
	}
	store_case_advance(c, 1000 - passed);
	assert_true(must_claim(c, "held") > token);
}

/* TTL runs from completion, however long the run took. */
static void ttl_runs_from_completion(void **state)
{
	struct store_case *c = *state;
	uint64_t token = must_claim(c, "k");

	for (int i = 0; i < 200; i++) {
		store_case_advance(c, 900);
		assert_int_equal(case_renew(c, "k", token), HAPAX_OK);
	}
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.expires_ms, CASE_EPOCH_MS + 180000 + MINUTE);
	store_case_advance(c, MINUTE - 1);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	store_case_advance(c, 1);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);
}

/* The record's own values decide, not those of a later caller. */
static void record_keeps_its_own_ttl(void **state)
{
	struct store_case *c = *state;
	struct hapax_op claim = case_op(c, HAPAX_OP_CLAIM, "k");

	claim.ttl_ms = 5000;
	must_run(c, &claim, HAPAX_OUTCOME_ACQUIRED);
	uint64_t token = claim.token;
	claim = case_op(c, HAPAX_OP_CLAIM, "k");
	claim.ttl_ms = 1;
	must_run(c, &claim, HAPAX_OUTCOME_IN_PROGRESS);
	struct hapax_op complete = case_op_token(c, HAPAX_OP_COMPLETE, "k", token);
	complete.ttl_ms = 77;
	must_run(c, &complete, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(complete.expires_ms, CASE_EPOCH_MS + 5000);
	claim = case_op(c, HAPAX_OP_CLAIM, "k");
	claim.ttl_ms = 1;
	must_run(c, &claim, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(claim.expires_ms, CASE_EPOCH_MS + 5000);
}

/* A claim does not expire by its ttl, however short; its holder may come back. */
static void claim_never_expires(void **state)
{
	struct store_case *c = *state;
	struct hapax_op claim = case_op(c, HAPAX_OP_CLAIM, "k");

	claim.ttl_ms = 1;
	claim.lease_ms = 1;
	must_run(c, &claim, HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, 365 * DAY);
	struct hapax_op lookup = case_op(c, HAPAX_OP_LOOKUP, "k");
	must_run(c, &lookup, HAPAX_OUTCOME_FOUND);
	assert_int_equal(c->record.state, HAPAX_STATE_CLAIMED);
	assert_int_equal(lookup.lease_left_ms, 0);
	assert_int_equal(lookup.expires_ms, HAPAX_TIME_NEVER);
	assert_int_equal(case_complete(c, "k", claim.token), HAPAX_OK);
}

/* FAILED lives for the ttl, then the key starts over. */
static void failed_record_lives_for_its_ttl(void **state)
{
	struct store_case *c = *state;
	uint64_t token = must_claim(c, "k");

	assert_int_equal(case_release(c, "k", token), HAPAX_OK);
	store_case_advance(c, MINUTE - 1);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_FAILED);
	store_case_advance(c, 1);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_complete(c, "k", token), HAPAX_ERR_FENCED);
	must_claim(c, "k");
	assert_int_equal(c->record.attempt, 1);
}

/* 0 is 24 hours; forever is forever; negative and absurd are refused. */
static void ttl_has_bounds(void **state)
{
	struct store_case *c = *state;
	static const enum hapax_op_type types[] = {
		HAPAX_OP_CLAIM, HAPAX_OP_CHECK, HAPAX_OP_SET, HAPAX_OP_EXPIRE};
	static const int64_t bad[] = {-1, INT64_MIN, HX_TTL_MS_MAX + 1, INT64_MAX - 1};
	struct hapax_op op;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
			op = case_op(c, types[i], "bad");
			op.ttl_ms = bad[k];
			assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
			assert_int_equal(case_state(c, "bad"), HAPAX_STATE_ABSENT);
		}
	}
	op = case_op(c, HAPAX_OP_CHECK, "day");
	op.ttl_ms = 0;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(op.expires_ms, CASE_EPOCH_MS + DAY);
	op = case_op(c, HAPAX_OP_CHECK, "century");
	op.ttl_ms = HX_TTL_MS_MAX;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(op.expires_ms, CASE_EPOCH_MS + HX_TTL_MS_MAX);
	op = case_op(c, HAPAX_OP_CHECK, "ever");
	op.ttl_ms = HAPAX_TTL_FOREVER;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(op.expires_ms, HAPAX_TIME_NEVER);
	op = case_op(c, HAPAX_OP_CHECK, "moment");
	op.ttl_ms = 1;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_state(c, "moment"), HAPAX_STATE_DONE);
	store_case_advance(c, 1);
	assert_int_equal(case_state(c, "moment"), HAPAX_STATE_ABSENT);

	store_case_advance(c, HX_TTL_MS_MAX - 2);
	case_sweep(c);
	assert_int_equal(case_state(c, "century"), HAPAX_STATE_DONE);
	assert_int_equal(case_state(c, "day"), HAPAX_STATE_ABSENT);
	store_case_advance(c, 1);
	case_sweep(c);
	assert_int_equal(case_state(c, "century"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_state(c, "ever"), HAPAX_STATE_DONE);
}

static void lease_has_bounds(void **state)
{
	struct store_case *c = *state;
	static const int64_t bad[] = {-1, INT64_MIN, HX_LEASE_MS_MAX + 1, INT64_MAX};
	struct hapax_op op;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		op = case_op(c, HAPAX_OP_CLAIM, "bad");
		op.lease_ms = bad[i];
		assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
		assert_int_equal(case_state(c, "bad"), HAPAX_STATE_ABSENT);
	}
	op = case_op(c, HAPAX_OP_CLAIM, "k");
	op.lease_ms = 0;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(op.lease_left_ms, 30000);
	uint64_t token = op.token;
	op = case_op_token(c, HAPAX_OP_RENEW, "k", token);
	op.lease_ms = HX_LEASE_MS_MAX;
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(op.lease_left_ms, HX_LEASE_MS_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		op = case_op_token(c, HAPAX_OP_RENEW, "k", token);
		op.lease_ms = bad[i];
		assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
	}
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
	assert_int_equal(c->record.lease_ends_ms, CASE_EPOCH_MS + HX_LEASE_MS_MAX);
}

/* I8: within one boot, closing and opening changes nothing about time. */
static void time_goes_on_over_reopening(void **state)
{
	struct store_case *c = *state;
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "k");

	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, MINUTE / 2);
	hx_virtual_clock_set_wall(&c->clock, CASE_EPOCH_MS + 3650 * DAY);
	store_case_reopen(c);
	assert_int_equal(store_case_now(c), CASE_EPOCH_MS + MINUTE / 2);
	must_run(c, &check, HAPAX_OUTCOME_REPLAY);
	hx_virtual_clock_set_wall(&c->clock, 0);
	store_case_reopen(c);
	store_case_advance(c, MINUTE / 2 - 1);
	must_run(c, &check, HAPAX_OUTCOME_REPLAY);
	store_case_advance(c, 1);
	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
}

/* I8: after a reboot with the wall clock behind, the store's time does not go back. */
static void reboot_never_goes_back(void **state)
{
	struct store_case *c = *state;
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "k");

	store_case_advance(c, 1234567);
	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	int64_t before = CASE_EPOCH_MS + 1234567;
	for (int i = 0; i < 3; i++) {
		hx_virtual_clock_reboot(&c->clock);
		hx_virtual_clock_set_wall(&c->clock, i == 2 ? 0 : CASE_EPOCH_MS - 9 * DAY);
		store_case_reopen(c);
		assert_true(store_case_now(c) >= before);
		assert_true(store_case_now(c) < before + MINUTE);
		must_run(c, &check, HAPAX_OUTCOME_REPLAY);
	}
	/* And it runs. */
	store_case_advance(c, MINUTE);
	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
}

/* I8: nor does it go back behind what was only read, when the store was closed cleanly. */
static void reading_is_not_taken_back(void **state)
{
	struct store_case *c = *state;
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "k");

	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, MINUTE);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);
	int64_t before = store_case_now(c);
	hapax_store_close(c->store);
	c->store = NULL;
	hx_virtual_clock_reboot(&c->clock);
	hx_virtual_clock_set_wall(&c->clock, 0);
	store_case_open(c);
	assert_true(store_case_now(c) >= before);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);
}

/* I8: a reboot may jump ahead by clock_step_ms_max; what is beyond comes at 10 %. */
static void reboot_jumps_ahead_no_further_than_allowed(void **state)
{
	struct store_case *c = *state;
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "k");

	check.ttl_ms = 8 * DAY;
	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	hx_virtual_clock_reboot(&c->clock);
	hx_virtual_clock_set_wall(&c->clock, CASE_EPOCH_MS + 3 * DAY);
	store_case_reopen(c);
	assert_int_equal(store_case_now(c), CASE_EPOCH_MS + 3 * DAY);

	c->options.clock_step_ms_max = DAY;
	hx_virtual_clock_reboot(&c->clock);
	hx_virtual_clock_set_wall(&c->clock, CASE_EPOCH_MS + 3650 * DAY);
	store_case_reopen(c);
	int64_t now = store_case_now(c);
	assert_int_equal(now, CASE_EPOCH_MS + 4 * DAY);
	must_run(c, &check, HAPAX_OUTCOME_REPLAY);
	store_case_advance(c, DAY);
	now = store_case_now(c);
	assert_true(now >= CASE_EPOCH_MS + 5 * DAY);
	assert_true(now <= CASE_EPOCH_MS + 5 * DAY + DAY / 10);
	/* The debt outlives a reopening in the same boot, and is paid on. */
	store_case_reopen(c);
	assert_true(store_case_now(c) >= now);
	store_case_advance(c, DAY);
	assert_true(store_case_now(c) >= now + DAY + DAY / 10 - 1000);
	assert_true(store_case_now(c) <= now + DAY + DAY / 10 + 1);
}

/* The sweep settles a lapsed claim without a next claim, after its ttl. */
static void sweep_settles_lapsed_claims(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "park");

	op.on_lapse = HAPAX_ON_LAPSE_PARK;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	uint64_t retry = must_claim(c, "retry");
	op = case_op(c, HAPAX_OP_CLAIM, "ever");
	op.ttl_ms = HAPAX_TTL_FOREVER;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);

	/* Lease 1 s, ttl 1 min: due at 61 s and not before. */
	store_case_advance(c, 1000 + MINUTE - 1);
	assert_int_equal(case_sweep(c).lapsed, 0);
	assert_int_equal(case_state(c, "retry"), HAPAX_STATE_CLAIMED);
	store_case_advance(c, 1);
	struct hapax_sweep swept = case_sweep(c);
	assert_int_equal(swept.lapsed, 2);
	assert_int_equal(swept.removed, 0);
	assert_int_equal(swept.remaining, 3);
	assert_int_equal(case_state(c, "park"), HAPAX_STATE_PARKED);
	assert_int_equal(case_state(c, "ever"), HAPAX_STATE_CLAIMED);
	assert_int_equal(case_state(c, "retry"), HAPAX_STATE_FAILED);
	assert_int_equal(c->record.token, retry);
	assert_int_equal(c->record.attempt, 1);
	assert_int_equal(c->record.expires_ms, CASE_EPOCH_MS + 1000 + 2 * MINUTE);
	assert_int_equal(case_sweep(c).lapsed, 0);
	/* Its holder may still say that it was done. */
	assert_int_equal(case_complete(c, "retry", retry), HAPAX_OK);
}

const struct conformance_case time_cases[] = {
	{"I8: the wall clock is not believed", wall_clock_is_not_believed, NEEDS_NOTHING},
	{"I1: ttl runs from completion", ttl_runs_from_completion, NEEDS_NOTHING},
	{"I8: a record keeps its own ttl", record_keeps_its_own_ttl, NEEDS_NOTHING},
	{"I8: a claim never expires", claim_never_expires, NEEDS_NOTHING},
	{"I8: a failed record lives for its ttl", failed_record_lives_for_its_ttl, NEEDS_NOTHING},
	{"I8: ttl has bounds", ttl_has_bounds, NEEDS_NOTHING},
	{"I8: lease has bounds", lease_has_bounds, NEEDS_NOTHING},
	{"I8: time goes on over reopening", time_goes_on_over_reopening, NEEDS_OWN_CLOCK},
	{"I8: a reboot never goes back", reboot_never_goes_back, NEEDS_OWN_CLOCK},
	{"I8: a reading is not taken back", reading_is_not_taken_back, NEEDS_OWN_CLOCK},
	{"I8: a reboot jumps ahead no further than allowed",
	 reboot_jumps_ahead_no_further_than_allowed, NEEDS_OWN_CLOCK},
	{"I3: sweep settles lapsed claims", sweep_settles_lapsed_claims, NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
