/* SPDX-License-Identifier: Apache-2.0 */
/* cases_fingerprint.c - I7: the same key with another payload is never answered. */
#include "conformance/cases.h"

static enum hapax_outcome claim_with(struct store_case *c, const char *key, char letter)
{
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, key);

	op.fingerprint = case_fingerprint(letter);
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	return op.outcome;
}

static enum hapax_outcome check_with(struct store_case *c, const char *key, char letter)
{
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, key);

	op.fingerprint = case_fingerprint(letter);
	assert_int_equal(case_run(c, &op), HAPAX_OK);
	return op.outcome;
}

/* I7: MISMATCH comes before IN_PROGRESS, and before PARKED and REPLAY. */
static void other_payload_is_a_mismatch_in_every_state(void **state)
{
	struct store_case *c = *state;

	assert_int_equal(claim_with(c, "k", 'A'), HAPAX_OUTCOME_ACQUIRED);
	uint64_t token = c->record.token;
	assert_int_equal(claim_with(c, "k", 'B'), HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(check_with(c, "k", 'B'), HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(claim_with(c, "k", 'A'), HAPAX_OUTCOME_IN_PROGRESS);
	/* A lapsed claim is not there for another payload either. */
	store_case_advance(c, 5000);
	assert_int_equal(claim_with(c, "k", 'B'), HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(check_with(c, "k", 'B'), HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
	assert_int_equal(c->record.token, token);

	assert_int_equal(case_park(c, "k", token), HAPAX_OK);
	assert_int_equal(claim_with(c, "k", 'B'), HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(claim_with(c, "k", 'A'), HAPAX_OUTCOME_PARKED);
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	assert_int_equal(claim_with(c, "k", 'B'), HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(check_with(c, "k", 'B'), HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(claim_with(c, "k", 'A'), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(check_with(c, "k", 'A'), HAPAX_OUTCOME_REPLAY);
	/* Expired is never seen. */
	store_case_advance(c, 60000);
	assert_int_equal(claim_with(c, "k", 'B'), HAPAX_OUTCOME_ACQUIRED);
}

/* I7: the repeat of a call with another payload is another call. */
static void mismatch_comes_before_the_attempt_id(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");
	struct hapax_op again = op;

	op.fingerprint = case_fingerprint('A');
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	again.fingerprint = case_fingerprint('B');
	must_run(c, &again, HAPAX_OUTCOME_MISMATCH);
}

/* A failed run is not a success: the next payload may differ, and replaces it. */
static void failed_record_takes_another_payload(void **state)
{
	struct store_case *c = *state;

	assert_int_equal(claim_with(c, "k", 'A'), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_release(c, "k", c->record.token), HAPAX_OK);
	assert_int_equal(claim_with(c, "k", 'B'), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(c->record.attempt, 2);
	assert_int_equal(c->record.fingerprint[0], 'B');
	assert_int_equal(claim_with(c, "k", 'A'), HAPAX_OUTCOME_MISMATCH);
	assert_int_equal(case_release(c, "k", c->record.token), HAPAX_OK);
	assert_int_equal(check_with(c, "k", 'C'), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(check_with(c, "k", 'B'), HAPAX_OUTCOME_MISMATCH);
}

/* None on either side matches, and says so. */
static void no_fingerprint_matches_and_is_unverified(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "known");

	op.fingerprint = case_fingerprint('A');
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(op.unverified, 0);
	op = case_op(c, HAPAX_OP_CLAIM, "known");
	must_run(c, &op, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(op.unverified, 1);
	op = case_op(c, HAPAX_OP_CLAIM, "known");
	op.fingerprint = case_fingerprint('A');
	must_run(c, &op, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(op.unverified, 0);

	op = case_op(c, HAPAX_OP_CHECK, "unknown");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(c->record.fingerprint_size, 0);
	op = case_op(c, HAPAX_OP_CHECK, "unknown");
	op.fingerprint = case_fingerprint('B');
	must_run(c, &op, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(op.unverified, 1);

	assert_int_equal(case_stats(c).counts[HAPAX_DECISION_UNVERIFIED], 2);
	assert_int_equal(case_stats(c).counts[HAPAX_DECISION_MISMATCH], 0);
}

/* E14: fingerprints that differ late differ; a store keeps at least 16 bytes of them. */
static void fingerprints_are_compared_far_enough(void **state)
{
	struct store_case *c = *state;
	unsigned char one[HAPAX_FINGERPRINT_SIZE] = {0};
	unsigned char other[HAPAX_FINGERPRINT_SIZE] = {0};
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");

	/* Zero bytes are a fingerprint too, not the lack of one. */
	op.fingerprint = one;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_true(c->record.fingerprint_size >= 16);
	for (size_t i = 0; i < 16; i++) {
		other[i] = 1;
		op = case_op(c, HAPAX_OP_CHECK, "k");
		op.fingerprint = other;
		must_run(c, &op, HAPAX_OUTCOME_MISMATCH);
		assert_int_equal(op.unverified, 0);
		other[i] = 0;
	}
	op = case_op(c, HAPAX_OP_CHECK, "k");
	op.fingerprint = other;
	must_run(c, &op, HAPAX_OUTCOME_REPLAY);
}

const struct conformance_case fingerprint_cases[] = {
	{"I7: another payload is a mismatch in every state",
	 other_payload_is_a_mismatch_in_every_state, NEEDS_NOTHING},
	{"I7: mismatch comes before the attempt_id", mismatch_comes_before_the_attempt_id,
	 NEEDS_NOTHING},
	{"I7 A5: a failed record takes another payload", failed_record_takes_another_payload,
	 NEEDS_NOTHING},
	{"I7: no fingerprint matches and is unverified", no_fingerprint_matches_and_is_unverified,
	 NEEDS_NOTHING},
	{"I7 E14: fingerprints are compared far enough", fingerprints_are_compared_far_enough,
	 NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
