/* SPDX-License-Identifier: Apache-2.0 */
/* cases_group.c - several operations in one step, and several in one submit. */
#include "conformance/cases.h"

#include <string.h>

/* Operations on one key take effect in array order. */
static void array_order_counts_on_one_key(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[] = {
		case_op(c, HAPAX_OP_LOOKUP, "k"), case_op(c, HAPAX_OP_CHECK, "k"),
		case_op(c, HAPAX_OP_CHECK, "k"),  case_op(c, HAPAX_OP_FORGET, "k"),
		case_op(c, HAPAX_OP_LOOKUP, "k"), case_op(c, HAPAX_OP_CLAIM, "k"),
		case_op(c, HAPAX_OP_CHECK, "k"),
	};
	static const enum hapax_outcome expected[] = {
		HAPAX_OUTCOME_ABSENT,      HAPAX_OUTCOME_ACQUIRED, HAPAX_OUTCOME_REPLAY,
		HAPAX_OUTCOME_APPLIED,     HAPAX_OUTCOME_ABSENT,   HAPAX_OUTCOME_ACQUIRED,
		HAPAX_OUTCOME_IN_PROGRESS,
	};

	assert_int_equal(hapax_store_run(c->store, ops, 7, NULL), HAPAX_OK);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(ops[i].outcome, expected[i]);
	assert_true(ops[5].token > ops[1].token);
}

/* Whatever the way that a check takes inside: no check on a key overtakes another. */
static void array_order_counts_for_any_ttl(void **state)
{
	struct store_case *c = *state;
	static const int64_t day_ms = INT64_C(24) * 3600 * 1000;
	const int64_t ttls[] = {60 * day_ms, 1000, HAPAX_TTL_FOREVER, 40 * day_ms, 0};
	enum { TTLS = sizeof(ttls) / sizeof(ttls[0]) };

	for (int first = 0; first < TTLS; first++) {
		struct hapax_op ops[2 * TTLS];
		char key[16];

		snprintf(key, sizeof(key), "k%d", first);
		for (int i = 0; i < 2 * TTLS; i++) {
			ops[i] = case_op(c, HAPAX_OP_CHECK, i % 2 ? "other" : key);
			ops[i].ttl_ms = ttls[(first + i / 2) % TTLS];
		}
		assert_int_equal(hapax_store_run(c->store, ops, 2 * TTLS, NULL), HAPAX_OK);
		for (int i = 0; i < 2 * TTLS; i += 2) {
			assert_int_equal(
				ops[i].outcome, i ? HAPAX_OUTCOME_REPLAY : HAPAX_OUTCOME_ACQUIRED);
			assert_int_equal(ops[i].attempt, 1);
		}
	}
}

/* E1: a caller that does not get the group is shown what stood in the way, with its result. */
static void refused_group_shows_what_stood_in_the_way(void **state)
{
	struct store_case *c = *state;
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {"paid", 4}};
	struct hapax_op op = case_op_token(c, HAPAX_OP_COMPLETE, "b done", must_claim(c, "b done"));
	struct hapax_op ops[4];
	struct hapax_record records[4];
	struct hapax_buf *bufs[4];
	enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;
	size_t index = 0;

	op.result = &result;
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	uint64_t held = must_claim(c, "c held");
	uint64_t failed = must_claim(c, "d failed");
	assert_int_equal(case_release(c, "d failed", failed), HAPAX_OK);
	for (int i = 0; i < 4; i++) {
		ops[i] =
			case_op(c, HAPAX_OP_CLAIM,
				(const char *[]){"a new", "b done", "c held", "d failed"}[i]);
		memset(&records[i], 0, sizeof(records[i]));
		bufs[i] = hapax_buf_new(4096);
		assert_non_null(bufs[i]);
		ops[i].record = &records[i];
		ops[i].buf = bufs[i];
	}
	assert_int_equal(hapax_store_claim_all(c->store, ops, 4, &outcome, &index, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(index, 1);
	assert_int_equal(records[1].state, HAPAX_STATE_DONE);
	assert_true(case_bytes_are(records[1].result.body, "paid", 4));
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(ops[2].token, 0);
	assert_int_equal(records[2].token, held);
	/* Nothing of a claim that was not made: no token, no attempt. */
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(ops[0].token, 0);
	assert_int_equal(ops[0].attempt, 0);
	assert_int_equal(ops[0].lease_left_ms, 0);
	assert_int_equal(ops[3].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(ops[3].token, 0);
	assert_int_equal(records[3].token, failed);
	assert_int_equal(ops[3].attempt, 1);
	assert_int_equal(records[3].state, HAPAX_STATE_FAILED);
	for (int i = 0; i < 4; i++)
		hapax_buf_free(bufs[i]);
}

/*
 * Claims of a, b, c under one attempt, which is not one of the single claims';
 * flags as claim_all sets them.
 */
static void make_group(struct store_case *c, struct hapax_op *ops, uint64_t attempt)
{
	static const char *const keys[] = {"a", "b", "c"};

	for (int i = 0; i < 3; i++) {
		ops[i] = case_op(c, HAPAX_OP_CLAIM, keys[i]);
		ops[i].attempt_id = case_attempt_id(10000 + attempt);
		ops[i].flags = i < 2 ? HAPAX_OP_LINKED : 0;
	}
	ops[0].flags |= HAPAX_OP_ALL_OR_NOTHING;
}

static void make_token_group(
	struct store_case *c, struct hapax_op *ops, enum hapax_op_type type, uint64_t token)
{
	make_group(c, ops, 0);
	for (int i = 0; i < 3; i++) {
		unsigned flags = ops[i].flags;
		struct hapax_bytes key = ops[i].key;

		ops[i] = case_op_token(c, type, "", token);
		ops[i].key = key;
		ops[i].flags = flags;
	}
}

/* All are free: one token, one attempt; the same list completes. */
static void group_of_free_keys_is_acquired(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[3];
	static const enum hapax_op_type types[] = {
		HAPAX_OP_RENEW, HAPAX_OP_PARK, HAPAX_OP_RENEW, HAPAX_OP_COMPLETE};

	make_group(c, ops, 1);
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
	uint64_t token = ops[0].token;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(ops[i].token, token);
		assert_int_equal(ops[i].attempt, 1);
	}
	/* Repeated by its attempt_id. */
	make_group(c, ops, 1);
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(ops[i].token, token);
	}
	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
		make_token_group(c, ops, types[k], token);
		assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
		for (int i = 0; i < 3; i++)
			assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_APPLIED);
	}
	make_group(c, ops, 2);
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_REPLAY);
}

/* One stands in the way: it says what, the others are skipped, nothing is done. */
static void group_with_an_obstacle_does_nothing(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[3];
	uint64_t token = must_claim(c, "b");

	make_group(c, ops, 1);
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(case_state(c, "a"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_state(c, "c"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_stats(c).keys, 1);

	/* The same for a list of completes of which one is fenced. */
	assert_int_equal(case_release(c, "b", token), HAPAX_OK);
	make_group(c, ops, 2);
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
	token = ops[0].token;
	struct hapax_op forget = case_op(c, HAPAX_OP_FORGET, "c");
	forget.flags = HAPAX_OP_FORCE;
	must_run(c, &forget, HAPAX_OUTCOME_APPLIED);
	make_token_group(c, ops, HAPAX_OP_COMPLETE, token);
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_ERR_FENCED);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(ops[2].status, HAPAX_ERR_FENCED);
	assert_int_equal(case_state(c, "a"), HAPAX_STATE_CLAIMED);
	assert_int_equal(case_state(c, "b"), HAPAX_STATE_CLAIMED);
}

/* What stood in the way is shown: the result of the one that is done already. */
static void group_with_an_obstacle_gives_out_records(void **state)
{
	struct store_case *c = *state;
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES};
	struct hapax_record records[3] = {{0}};
	struct hapax_buf *bufs[3];
	struct hapax_op ops[3];
	struct hapax_op complete = case_op_token(c, HAPAX_OP_COMPLETE, "b", must_claim(c, "b"));

	result.body = hapax_bytes_from_text("receipt");
	complete.result = &result;
	must_run(c, &complete, HAPAX_OUTCOME_APPLIED);
	make_group(c, ops, 1);
	for (int i = 0; i < 3; i++) {
		bufs[i] = hapax_buf_new(4096);
		ops[i].record = &records[i];
		ops[i].buf = bufs[i];
	}
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(records[1].state, HAPAX_STATE_DONE);
	assert_true(case_bytes_are(records[1].result.body, "receipt", 7));
	assert_int_equal(records[0].state, HAPAX_STATE_ABSENT);
	assert_int_equal(records[2].state, HAPAX_STATE_ABSENT);
	for (int i = 0; i < 3; i++)
		hapax_buf_free(bufs[i]);
}

/* Nothing is done means that a lapse is not settled either. */
static void skipped_group_does_not_park(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[3];
	struct hapax_op claim = case_op(c, HAPAX_OP_CLAIM, "b");

	claim.on_lapse = HAPAX_ON_LAPSE_PARK;
	must_run(c, &claim, HAPAX_OUTCOME_ACQUIRED);
	must_claim(c, "c");
	store_case_advance(c, 1000);
	make_group(c, ops, 1);
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_PARKED);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(case_state(c, "b"), HAPAX_STATE_CLAIMED);
	assert_int_equal(case_state(c, "c"), HAPAX_STATE_CLAIMED);
	assert_int_equal(c->record.attempt, 1);
}

/* Without ALL_OR_NOTHING each operation of a group stands for itself. */
static void linked_operations_stand_for_themselves(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[3];

	must_claim(c, "b");
	make_group(c, ops, 1);
	ops[0].flags = HAPAX_OP_LINKED;
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_ACQUIRED);
}

/* Lists that mean nothing. */
static void bad_groups_are_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[3];

	/* A key twice. */
	make_group(c, ops, 1);
	ops[2].key = ops[0].key;
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_ERR_INVALID);
	/* A group that goes on after the end. */
	make_group(c, ops, 1);
	ops[2].flags = HAPAX_OP_LINKED;
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_ERR_INVALID);
	/* Two attempts under one token. */
	make_group(c, ops, 1);
	ops[2].attempt_id = case_attempt_id(10002);
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_ERR_INVALID);
	/* All or nothing in the middle. */
	make_group(c, ops, 1);
	ops[1].flags |= HAPAX_OP_ALL_OR_NOTHING;
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_ERR_INVALID);
	/* One of them refused: none is done. */
	make_group(c, ops, 1);
	ops[1].key.size = 0;
	assert_int_equal(hapax_store_run(c->store, ops, 3, NULL), HAPAX_ERR_INVALID);
	for (int i = 0; i < 3; i++)
		assert_true(ops[i].status != HAPAX_OK || ops[i].outcome == HAPAX_OUTCOME_SKIPPED);
	assert_int_equal(case_stats(c).keys, 0);
}

/* Several groups and single operations in one submit do not run into each other. */
static void groups_in_one_submit_are_apart(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[8];

	make_group(c, ops, 1);
	ops[3] = case_op(c, HAPAX_OP_CHECK, "single");
	make_group(c, ops + 4, 2);
	ops[7] = case_op_token(c, HAPAX_OP_LOOKUP, "a", 0);
	assert_int_equal(hapax_store_run(c->store, ops, 8, NULL), HAPAX_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_ACQUIRED);
	for (int i = 4; i < 7; i++)
		assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(ops[7].outcome, HAPAX_OUTCOME_FOUND);
}

/* hapax_store_claim_all: sorts, claims, and says what decided. */
static void claim_all_says_what_decided(void **state)
{
	struct store_case *c = *state;
	enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;
	size_t index = 99;
	struct hapax_op ops[3] = {
		case_op(c, HAPAX_OP_CLAIM, "c"), case_op(c, HAPAX_OP_CLAIM, "a"),
		case_op(c, HAPAX_OP_CLAIM, "b")};

	assert_int_equal(hapax_store_claim_all(c->store, ops, 3, &outcome, &index, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_true(case_bytes_are(ops[0].key, "a", 1));
	assert_true(case_bytes_are(ops[1].key, "b", 1));
	assert_true(case_bytes_are(ops[2].key, "c", 1));
	assert_int_equal(ops[0].token, ops[2].token);

	/* MISMATCH wins over what came before it. */
	struct hapax_op d = case_op(c, HAPAX_OP_CHECK, "d");
	d.fingerprint = case_fingerprint('A');
	must_run(c, &d, HAPAX_OUTCOME_ACQUIRED);
	struct hapax_op more[3] = {
		case_op(c, HAPAX_OP_CLAIM, "e"), case_op(c, HAPAX_OP_CLAIM, "d"),
		case_op(c, HAPAX_OP_CLAIM, "c")};
	assert_int_equal(
		hapax_store_claim_all(c->store, more, 3, &outcome, &index, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(index, 0);
	assert_int_equal(more[1].outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(more[2].outcome, HAPAX_OUTCOME_SKIPPED);
	for (int i = 0; i < 3; i++)
		more[i].fingerprint = case_fingerprint('B');
	assert_int_equal(
		hapax_store_claim_all(c->store, more, 3, &outcome, &index, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(index, 1);
	assert_int_equal(case_state(c, "e"), HAPAX_STATE_ABSENT);

	assert_int_equal(
		hapax_store_claim_all(c->store, more, 0, &outcome, &index, NULL),
		HAPAX_ERR_INVALID);
	more[1].key = more[0].key;
	assert_int_equal(
		hapax_store_claim_all(c->store, more, 3, &outcome, &index, NULL),
		HAPAX_ERR_INVALID);
	more[1].key = hapax_bytes_from_text("f");
	assert_int_equal(
		hapax_store_claim_all(c->store, more, 3, NULL, &index, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_store_claim_all(c->store, more, 3, &outcome, NULL, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(case_state(c, "f"), HAPAX_STATE_ABSENT);
	more[0].attempt_id = NULL;
	assert_int_equal(
		hapax_store_claim_all(c->store, more, 3, &outcome, &index, NULL),
		HAPAX_ERR_INVALID);
}

const struct conformance_case group_cases[] = {
	{"E1: array order counts on one key", array_order_counts_on_one_key, NEEDS_NOTHING},
	{"E1: array order counts for any ttl", array_order_counts_for_any_ttl, NEEDS_NOTHING},
	{"E1: a refused group shows what stood in the way",
	 refused_group_shows_what_stood_in_the_way, NEEDS_WHOLE},
	{"I1b: a group of free keys is acquired", group_of_free_keys_is_acquired, NEEDS_WHOLE},
	{"I1b: a group with an obstacle does nothing", group_with_an_obstacle_does_nothing,
	 NEEDS_WHOLE},
	{"B5: a group with an obstacle gives out records", group_with_an_obstacle_gives_out_records,
	 NEEDS_WHOLE},
	{"I1b: a skipped group does not park", skipped_group_does_not_park, NEEDS_WHOLE},
	{"I1b: linked operations stand for themselves", linked_operations_stand_for_themselves,
	 NEEDS_WHOLE},
	{"I13: bad groups are refused", bad_groups_are_refused, NEEDS_WHOLE},
	{"I1b: groups in one submit are apart", groups_in_one_submit_are_apart, NEEDS_WHOLE},
	{"I1b: claim_all says what decided", claim_all_says_what_decided, NEEDS_WHOLE},
	{NULL, NULL, NEEDS_NOTHING},
};
