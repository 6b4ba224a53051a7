/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_set.c - set, expire and forget as the Redis door uses them: they write only
 * records made by set, FAILED counts as absent.
 */
#include "conformance/cases.h"

/* The kinds of record that a key can have when it is set. */
enum made {
	MADE_NOTHING,
	MADE_CLAIMED,
	MADE_LAPSED,
	MADE_PARKED,
	MADE_FAILED,
	MADE_DONE, /* by claim and complete, with the value "v" */
	MADE_MARK, /* by check */
	MADE_SET,  /* with the value "v" */
	MADE_SET_EXPIRED,
	MADE_COUNT,
};

static struct hapax_result value_of(const char *text)
{
	return (struct hapax_result){
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text(text)};
}

static void make(struct store_case *c, enum made made, const char *key)
{
	struct hapax_result value = value_of("v");
	struct hapax_op op;
	uint64_t token;

	switch (made) {
	case MADE_NOTHING:
	case MADE_COUNT: return;
	case MADE_CLAIMED:
		must_claim(c, key);
		op = case_op_token(c, HAPAX_OP_RENEW, key, c->record.token);
		op.lease_ms = 86400000;
		must_run(c, &op, HAPAX_OUTCOME_APPLIED);
		return;
	case MADE_LAPSED:
		must_claim(c, key);
		store_case_advance(c, 1000);
		return;
	case MADE_PARKED: assert_int_equal(case_park(c, key, must_claim(c, key)), HAPAX_OK); return;
	case MADE_FAILED:
		assert_int_equal(case_release(c, key, must_claim(c, key)), HAPAX_OK);
		return;
	case MADE_DONE:
		token = must_claim(c, key);
		op = case_op_token(c, HAPAX_OP_COMPLETE, key, token);
		op.result = &value;
		must_run(c, &op, HAPAX_OUTCOME_APPLIED);
		return;
	case MADE_MARK:
		op = case_op(c, HAPAX_OP_CHECK, key);
		must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
		return;
	case MADE_SET:
	case MADE_SET_EXPIRED:
		op = case_op(c, HAPAX_OP_SET, key);
		op.result = &value;
		if (made == MADE_SET_EXPIRED)
			op.ttl_ms = 1;
		must_run(c, &op, HAPAX_OUTCOME_APPLIED);
		if (made == MADE_SET_EXPIRED)
			store_case_advance(c, 1);
		return;
	}
}

#define APPLIED HAPAX_OUTCOME_APPLIED
#define NOT_MET HAPAX_OUTCOME_NOT_MET
#define BUSY    HAPAX_OUTCOME_BUSY
#define ABSENT  HAPAX_OUTCOME_ABSENT

/* Every condition against every record. */
static void set_obeys_its_table(void **state)
{
	struct store_case *c = *state;
	/* always, if absent, if present, if equal to "v", if equal to "w" */
	static const enum hapax_outcome expected[MADE_COUNT][5] = {
		[MADE_NOTHING] = {APPLIED, APPLIED, NOT_MET, NOT_MET, NOT_MET},
		[MADE_CLAIMED] = {BUSY, NOT_MET, BUSY, BUSY, BUSY},
		[MADE_LAPSED] = {BUSY, NOT_MET, BUSY, BUSY, BUSY},
		[MADE_PARKED] = {BUSY, NOT_MET, BUSY, BUSY, BUSY},
		[MADE_FAILED] = {APPLIED, APPLIED, NOT_MET, NOT_MET, NOT_MET},
		[MADE_DONE] = {BUSY, NOT_MET, BUSY, BUSY, BUSY},
		[MADE_MARK] = {BUSY, NOT_MET, BUSY, BUSY, BUSY},
		[MADE_SET] = {APPLIED, NOT_MET, APPLIED, APPLIED, NOT_MET},
		[MADE_SET_EXPIRED] = {APPLIED, APPLIED, NOT_MET, NOT_MET, NOT_MET},
	};
	struct hapax_result value = value_of("new");

	for (unsigned made = 0; made < MADE_COUNT; made++) {
		for (unsigned i = 0; i < 5; i++) {
			char key[32];
			struct hapax_op op;

			snprintf(key, sizeof(key), "%u/%u", made, i);
			make(c, (enum made)made, key);
			enum hapax_state before = case_state(c, key);
			op = case_op(c, HAPAX_OP_SET, key);
			op.result = &value;
			op.set_if = (enum hapax_set_if)(i < 3 ? i : HAPAX_SET_IF_EQUAL);
			op.expected = hapax_bytes_from_text(i == 4 ? "w" : "v");
			must_run(c, &op, expected[made][i]);
			/* It shows what was there. */
			if (made == MADE_SET)
				assert_true(case_bytes_are(c->record.result.body, "v", 1));

			enum hapax_state after = case_state(c, key);
			if (expected[made][i] != APPLIED) {
				assert_int_equal(after, before);
				continue;
			}
			assert_int_equal(after, HAPAX_STATE_DONE);
			assert_int_equal(c->record.origin, HAPAX_ORIGIN_SET);
			assert_true(case_bytes_are(c->record.result.body, "new", 3));
			assert_int_equal(c->record.attempt_id[0], 0);
		}
	}
}

/* expire changes what set made, and nothing else. */
static void expire_obeys_its_table(void **state)
{
	struct store_case *c = *state;
	static const enum hapax_outcome expected[MADE_COUNT] = {
		[MADE_NOTHING] = ABSENT, [MADE_CLAIMED] = BUSY,  [MADE_LAPSED] = BUSY,
		[MADE_PARKED] = BUSY,    [MADE_FAILED] = ABSENT, [MADE_DONE] = BUSY,
		[MADE_MARK] = BUSY,      [MADE_SET] = APPLIED,   [MADE_SET_EXPIRED] = ABSENT,
	};

	for (unsigned made = 0; made < MADE_COUNT; made++) {
		char key[32];

		snprintf(key, sizeof(key), "%u", made);
		make(c, (enum made)made, key);
		struct hapax_op op = case_op(c, HAPAX_OP_EXPIRE, key);
		op.ttl_ms = 123456;
		must_run(c, &op, expected[made]);
		if (expected[made] == APPLIED) {
			int64_t now = store_case_now(c);

			assert_int_equal(op.expires_ms, now + 123456);
			assert_int_equal(case_state(c, key), HAPAX_STATE_DONE);
			assert_int_equal(c->record.expires_ms, now + 123456);
			assert_true(case_bytes_are(c->record.result.body, "v", 1));
		}
	}
	struct hapax_op op = case_op(c, HAPAX_OP_EXPIRE, "7");
	op.ttl_ms = HAPAX_TTL_FOREVER;
	must_run(c, &op, APPLIED);
	store_case_advance(c, INT64_C(1) << 45);
	assert_int_equal(case_state(c, "7"), HAPAX_STATE_DONE);
	/* Sooner works as well as later. */
	op = case_op(c, HAPAX_OP_EXPIRE, "7");
	op.ttl_ms = 1;
	must_run(c, &op, APPLIED);
	store_case_advance(c, 1);
	assert_int_equal(case_state(c, "7"), HAPAX_STATE_ABSENT);
	case_sweep(c);
}

/* forget with SET_ONLY, as DEL does it. */
static void forget_of_set_records_only(void **state)
{
	struct store_case *c = *state;
	static const enum hapax_outcome expected[MADE_COUNT] = {
		[MADE_NOTHING] = ABSENT, [MADE_CLAIMED] = BUSY,  [MADE_LAPSED] = BUSY,
		[MADE_PARKED] = BUSY,    [MADE_FAILED] = ABSENT, [MADE_DONE] = BUSY,
		[MADE_MARK] = BUSY,      [MADE_SET] = APPLIED,   [MADE_SET_EXPIRED] = ABSENT,
	};

	for (unsigned made = 0; made < MADE_COUNT; made++) {
		char key[32];

		snprintf(key, sizeof(key), "%u", made);
		make(c, (enum made)made, key);
		enum hapax_state before = case_state(c, key);
		struct hapax_op op = case_op(c, HAPAX_OP_FORGET, key);
		op.flags = HAPAX_OP_SET_ONLY;
		must_run(c, &op, expected[made]);
		assert_int_equal(
			case_state(c, key),
			expected[made] == APPLIED ? HAPAX_STATE_ABSENT : before);
	}
}

/* forget with SET_ONLY and a value, as DELEX and the scripts of locks do it. */
static void forget_of_a_value_only(void **state)
{
	struct store_case *c = *state;

	for (unsigned made = 0; made < MADE_COUNT; made++) {
		char key[32];
		struct hapax_op op;

		snprintf(key, sizeof(key), "%u", made);
		make(c, (enum made)made, key);
		op = case_op(c, HAPAX_OP_FORGET, key);
		op.flags = HAPAX_OP_SET_ONLY;
		op.set_if = HAPAX_SET_IF_EQUAL;
		op.expected = hapax_bytes_from_text("another value");
		must_run(
			c, &op,
			made == MADE_SET ? NOT_MET
				: made == MADE_NOTHING || made == MADE_FAILED ||
					made == MADE_SET_EXPIRED
				? ABSENT
				: BUSY);
		if (made != MADE_SET)
			continue;
		assert_int_equal(case_state(c, key), HAPAX_STATE_DONE);
		op = case_op(c, HAPAX_OP_FORGET, key);
		op.flags = HAPAX_OP_SET_ONLY;
		op.set_if = HAPAX_SET_IF_EQUAL;
		op.expected = hapax_bytes_from_text("v");
		must_run(c, &op, APPLIED);
		assert_int_equal(case_state(c, key), HAPAX_STATE_ABSENT);
	}
}

static void set_keeps_or_renews_the_expiry(void **state)
{
	struct store_case *c = *state;
	struct hapax_result value = value_of("v");
	struct hapax_op op = case_op(c, HAPAX_OP_SET, "k");

	op.result = &value;
	op.ttl_ms = 5000;
	/* Nothing to keep: its own ttl counts. */
	op.flags = HAPAX_OP_KEEP_TTL;
	must_run(c, &op, APPLIED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.expires_ms, CASE_EPOCH_MS + 5000);
	store_case_advance(c, 1000);
	op.ttl_ms = 7777;
	must_run(c, &op, APPLIED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.expires_ms, CASE_EPOCH_MS + 5000);
	op.flags = 0;
	must_run(c, &op, APPLIED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.expires_ms, CASE_EPOCH_MS + 1000 + 7777);
	op.ttl_ms = HAPAX_TTL_FOREVER;
	must_run(c, &op, APPLIED);
	op.flags = HAPAX_OP_KEEP_TTL;
	op.ttl_ms = 1;
	must_run(c, &op, APPLIED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.expires_ms, HAPAX_TIME_NEVER);
}

/* The value of SET is the result, never the fingerprint; a claim replays it. */
static void claim_replays_what_was_set(void **state)
{
	struct store_case *c = *state;
	struct hapax_result value = value_of("stored");
	struct hapax_op set = case_op(c, HAPAX_OP_SET, "k");

	set.result = &value;
	must_run(c, &set, APPLIED);
	struct hapax_op claim = case_op(c, HAPAX_OP_CLAIM, "k");
	claim.fingerprint = case_fingerprint('A');
	must_run(c, &claim, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(claim.unverified, 1);
	assert_true(case_bytes_are(c->record.result.body, "stored", 6));

	/* Empty is a value, and equal to empty. */
	value = value_of("");
	must_run(c, &set, APPLIED);
	set.set_if = HAPAX_SET_IF_EQUAL;
	set.expected = hapax_bytes_from_text("stored");
	must_run(c, &set, NOT_MET);
	set.expected = hapax_bytes_from_text("");
	must_run(c, &set, APPLIED);
}

/* The point in time that was said is the one that is kept, whatever the store reads its clock for. */
static void expiry_at_a_point_in_time(void **state)
{
	struct store_case *c = *state;
	struct hapax_result value = value_of("v");
	int64_t at_ms = store_case_now(c) + 1234567;
	struct hapax_op op = case_op(c, HAPAX_OP_SET, "k");

	op.result = &value;
	op.flags = HAPAX_OP_TTL_IS_TIME;
	op.ttl_ms = at_ms;
	must_run(c, &op, APPLIED);
	assert_int_equal(op.expires_ms, at_ms);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.expires_ms, at_ms);
	store_case_advance(c, 1000);
	op = case_op(c, HAPAX_OP_EXPIRE, "k");
	op.flags = HAPAX_OP_TTL_IS_TIME;
	op.ttl_ms = at_ms + 1;
	must_run(c, &op, APPLIED);
	assert_int_equal(op.expires_ms, at_ms + 1);
	store_case_advance(c, at_ms - store_case_now(c));
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	store_case_advance(c, 1);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);

	/* One that has passed, and none at all. */
	op = case_op(c, HAPAX_OP_SET, "k");
	op.result = &value;
	op.flags = HAPAX_OP_TTL_IS_TIME;
	op.ttl_ms = 1;
	must_run(c, &op, APPLIED);
	store_case_advance(c, 1);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);
	op.ttl_ms = 0;
	assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
	op.ttl_ms = HAPAX_TTL_FOREVER;
	assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
	op = case_op(c, HAPAX_OP_CHECK, "k");
	op.flags = HAPAX_OP_TTL_IS_TIME;
	assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
}

/* Over result_size_max a value is refused: SET never becomes a tombstone. */
static void large_value_is_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_result value = value_of("0123456789");
	struct hapax_op op = case_op(c, HAPAX_OP_SET, "k");

	c->options.result_size_max = 10;
	store_case_reopen(c);
	op.result = &value;
	must_run(c, &op, APPLIED);
	value = value_of("0123456789a");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_LIMIT);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.result.body.size, 10);
	op.key = hapax_bytes_from_text("absent");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_LIMIT);
	assert_int_equal(case_state(c, "absent"), HAPAX_STATE_ABSENT);
}

const struct conformance_case set_cases[] = {
	{"C7: set obeys its table", set_obeys_its_table, NEEDS_NOTHING},
	{"C7: expire obeys its table", expire_obeys_its_table, NEEDS_NOTHING},
	{"C7: forget of set records only", forget_of_set_records_only, NEEDS_NOTHING},
	{"C7: forget of a value only", forget_of_a_value_only, NEEDS_NOTHING},
	{"C7: set keeps or renews the expiry", set_keeps_or_renews_the_expiry, NEEDS_NOTHING},
	{"B5: claim replays what was set", claim_replays_what_was_set, NEEDS_NOTHING},
	{"I12: a large value is refused", large_value_is_refused, NEEDS_NOTHING},
	{"I9: expiry at a point in time", expiry_at_a_point_in_time, NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
