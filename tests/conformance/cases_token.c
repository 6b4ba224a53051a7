/* SPDX-License-Identifier: Apache-2.0 */
/* cases_token.c - I5: tokens rise, and only the last one counts. */
#include "conformance/cases.h"

#include <string.h>

#include "base/buf.h"
#include "record/record.h"
#include "support/random_record.h"
#include "support/virtual_clock.h"

static const enum hapax_op_type token_ops[] = {
	HAPAX_OP_RENEW,
	HAPAX_OP_COMPLETE,
	HAPAX_OP_RELEASE,
	HAPAX_OP_PARK,
};
enum { TOKEN_OPS = sizeof(token_ops) / sizeof(token_ops[0]) };

/* Everything a lookup shows of a key, to be compared later. */
struct snapshot {
	enum hapax_state state;
	struct hapax_record record;
	struct hapax_buf bytes; /* of the record */
};

static void take_snapshot(struct snapshot *snapshot, struct store_case *c, const char *key)
{
	memset(snapshot, 0, sizeof(*snapshot));
	hx_buf_init(&snapshot->bytes, 4096);
	snapshot->state = case_state(c, key);
	if (snapshot->state != HAPAX_STATE_ABSENT)
		assert_int_equal(
			hx_record_copy(&c->record, &snapshot->record, &snapshot->bytes), HAPAX_OK);
}

/* Field by field: padding may hold anything. */
static void assert_same_snapshot(const struct snapshot *a, const struct snapshot *b)
{
	assert_int_equal(a->state, b->state);
	assert_null(random_record_difference(&a->record, &b->record, HAPAX_FINGERPRINT_SIZE));
}

/* All four operations with that token are FENCED and leave no trace but a count. */
static void must_be_fenced(struct store_case *c, const char *key, uint64_t token)
{
	struct snapshot before;
	struct snapshot after;
	uint64_t fenced = case_stats(c).counts[HAPAX_DECISION_FENCED];

	take_snapshot(&before, c, key);
	for (size_t i = 0; i < TOKEN_OPS; i++) {
		struct hapax_op op = case_op_token(c, token_ops[i], key, token);

		op.error = hapax_bytes_from_text("must not be kept");
		assert_int_equal(case_run(c, &op), HAPAX_ERR_FENCED);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_NONE);
	}
	take_snapshot(&after, c, key);
	assert_same_snapshot(&before, &after);
	assert_int_equal(case_stats(c).counts[HAPAX_DECISION_FENCED], fenced + TOKEN_OPS);
	hx_buf_done(&before.bytes);
	hx_buf_done(&after.bytes);
}

/* I5, E1: a late finisher can neither overwrite nor delete the new owner's record. */
static void stale_token_changes_nothing(void **state)
{
	struct store_case *c = *state;
	uint64_t stale = must_claim(c, "k");

	store_case_advance(c, 1000);
	uint64_t token = must_claim(c, "k");
	must_be_fenced(c, "k", stale);
	assert_int_equal(case_park(c, "k", token), HAPAX_OK);
	must_be_fenced(c, "k", stale);
	assert_int_equal(case_release(c, "k", token), HAPAX_OK);
	must_be_fenced(c, "k", stale);
	token = must_claim(c, "k");
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	must_be_fenced(c, "k", stale);
	store_case_advance(c, 60000);
	must_be_fenced(c, "k", stale);
	must_be_fenced(c, "k", token);
}

/* I5: a key that was never there, another key's token, one from the future. */
static void foreign_token_changes_nothing(void **state)
{
	struct store_case *c = *state;

	must_be_fenced(c, "absent", 1);
	uint64_t a = must_claim(c, "a");
	uint64_t b = must_claim(c, "b");
	must_be_fenced(c, "a", b);
	must_be_fenced(c, "b", a);
	must_be_fenced(c, "a", b + 1);
	must_be_fenced(c, "a", (UINT64_C(1) << 53) - 1);
	/* The same key in another scope is another key. */
	struct hapax_op op = case_op_token(c, HAPAX_OP_COMPLETE, "a", a);
	op.group = hapax_bytes_from_text("other");
	assert_int_equal(case_run(c, &op), HAPAX_ERR_FENCED);
	assert_int_equal(case_state(c, "a"), HAPAX_STATE_CLAIMED);
}

/* The second table of the rules: every state against every operation with its token. */
static void right_token_does_what_the_table_says(void **state)
{
	struct store_case *c = *state;
	static const enum hapax_state from[] = {
		HAPAX_STATE_CLAIMED, HAPAX_STATE_CLAIMED, HAPAX_STATE_PARKED, HAPAX_STATE_FAILED,
		HAPAX_STATE_DONE};
	/* renew, complete, release, park; ABSENT stands for FENCED. */
	static const enum hapax_state to[][TOKEN_OPS] = {
		{HAPAX_STATE_CLAIMED, HAPAX_STATE_DONE, HAPAX_STATE_FAILED, HAPAX_STATE_PARKED},
		{HAPAX_STATE_CLAIMED, HAPAX_STATE_DONE, HAPAX_STATE_FAILED, HAPAX_STATE_PARKED},
		{HAPAX_STATE_CLAIMED, HAPAX_STATE_DONE, HAPAX_STATE_FAILED, HAPAX_STATE_PARKED},
		{HAPAX_STATE_ABSENT, HAPAX_STATE_DONE, HAPAX_STATE_FAILED, HAPAX_STATE_ABSENT},
		{HAPAX_STATE_ABSENT, HAPAX_STATE_DONE, HAPAX_STATE_ABSENT, HAPAX_STATE_ABSENT},
	};

	for (size_t row = 0; row < sizeof(from) / sizeof(from[0]); row++) {
		for (size_t i = 0; i < TOKEN_OPS; i++) {
			char key[32];

			snprintf(key, sizeof(key), "%zu/%zu", row, i);
			uint64_t token = must_claim(c, key);
			/* Row 1 is a claim that lapsed; with its token that makes no difference. */
			if (row == 1)
				store_case_advance(c, 2000);
			if (from[row] == HAPAX_STATE_PARKED)
				assert_int_equal(case_park(c, key, token), HAPAX_OK);
			if (from[row] == HAPAX_STATE_FAILED)
				assert_int_equal(case_release(c, key, token), HAPAX_OK);
			if (from[row] == HAPAX_STATE_DONE)
				assert_int_equal(case_complete(c, key, token), HAPAX_OK);

			struct hapax_op op = case_op_token(c, token_ops[i], key, token);
			enum hapax_status status = case_run(c, &op);
			bool fenced = to[row][i] == HAPAX_STATE_ABSENT;
			assert_int_equal(status, fenced ? HAPAX_ERR_FENCED : HAPAX_OK);
			assert_int_equal(case_state(c, key), fenced ? from[row] : to[row][i]);
			assert_int_equal(c->record.token, token);
		}
	}
}

/* I13: the calls with a token are settled by repeating them. */
static void repeated_calls_are_applied_once(void **state)
{
	struct store_case *c = *state;
	struct hapax_result first = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("first")};
	struct hapax_result second = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("second")};
	uint64_t token = must_claim(c, "k");
	struct hapax_op op = case_op_token(c, HAPAX_OP_COMPLETE, "k", token);

	op.result = &first;
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(op.repeated, 0);
	store_case_advance(c, 10);
	op = case_op_token(c, HAPAX_OP_COMPLETE, "k", token);
	op.result = &second;
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(op.repeated, 1);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_true(case_bytes_are(c->record.result.body, "first", 5));
	assert_int_equal(c->record.expires_ms, CASE_EPOCH_MS + 60000);

	token = must_claim(c, "p");
	assert_int_equal(case_park(c, "p", token), HAPAX_OK);
	store_case_advance(c, 10);
	assert_int_equal(case_park(c, "p", token), HAPAX_OK);
	assert_int_equal(case_state(c, "p"), HAPAX_STATE_PARKED);
	assert_int_equal(c->record.changed_ms, CASE_EPOCH_MS + 10);
	assert_int_equal(case_release(c, "p", token), HAPAX_OK);
	store_case_advance(c, 10);
	assert_int_equal(case_release(c, "p", token), HAPAX_OK);
	assert_int_equal(case_state(c, "p"), HAPAX_STATE_FAILED);
	assert_int_equal(c->record.changed_ms, CASE_EPOCH_MS + 20);
}

/* I13: a claim is settled by the same attempt_id: same token, same attempt, new lease. */
static void repeated_claim_gives_the_same_token(void **state)
{
	struct store_case *c = *state;
	struct hapax_op first = case_op(c, HAPAX_OP_CLAIM, "k");
	struct hapax_op again = first;

	must_run(c, &first, HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, 600);
	must_run(c, &again, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(again.token, first.token);
	assert_int_equal(again.attempt, 1);
	assert_int_equal(again.lease_left_ms, 1000);
	assert_int_equal(again.first_seen_ms, CASE_EPOCH_MS);

	/* Even after the lapse, as long as no other claim took over. */
	store_case_advance(c, 5000);
	must_run(c, &again, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(again.token, first.token);
	assert_int_equal(again.attempt, 1);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);

	/* Taken over: the old attempt_id is a stranger. */
	store_case_advance(c, 5000);
	uint64_t second = must_claim(c, "k");
	assert_true(second > first.token);
	must_run(c, &again, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(case_complete(c, "k", second), HAPAX_OK);
	must_run(c, &again, HAPAX_OUTCOME_REPLAY);
}

/* The attempt_id of a released or parked run does not bring it back. */
static void attempt_id_counts_only_while_claimed(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");
	struct hapax_op again = op;

	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	uint64_t token = op.token;
	assert_int_equal(case_park(c, "k", token), HAPAX_OK);
	must_run(c, &again, HAPAX_OUTCOME_PARKED);
	assert_int_equal(case_release(c, "k", token), HAPAX_OK);
	must_run(c, &again, HAPAX_OUTCOME_ACQUIRED);
	assert_true(again.token > token);
	assert_int_equal(again.attempt, 2);
}

/* Claim and check key with another fingerprint or the same; neither answer has a token. */
static void must_have_no_token(
	struct store_case *c, const char *key, unsigned char print, enum hapax_outcome outcome)
{
	static const enum hapax_op_type types[] = {HAPAX_OP_CLAIM, HAPAX_OP_CHECK};
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];

	memset(fingerprint, print, sizeof(fingerprint));
	for (size_t i = 0; i < 4; i++) {
		struct hapax_op op = case_op(c, types[i % 2], key);

		op.fingerprint = fingerprint;
		op.token = 4711; /* of an operation that is used again */
		/* With the record, which shows the token, and without. */
		if (i < 2) {
			op.record = NULL;
			op.buf = NULL;
		}
		must_run(c, &op, outcome);
		assert_int_equal(op.token, 0);
		if (op.record != NULL)
			assert_true(op.record->token > 0);
	}
}

/* The holder's token ends the holder's claim: no answer to another caller has it. */
static void only_who_acquired_is_told_the_token(void **state)
{
	struct store_case *c = *state;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	struct hapax_op claim = case_op(c, HAPAX_OP_CLAIM, "k");

	memset(fingerprint, 1, sizeof(fingerprint));
	claim.fingerprint = fingerprint;
	must_run(c, &claim, HAPAX_OUTCOME_ACQUIRED);
	uint64_t token = claim.token;
	assert_true(token > 0);
	must_have_no_token(c, "k", 1, HAPAX_OUTCOME_IN_PROGRESS);
	must_have_no_token(c, "k", 2, HAPAX_OUTCOME_MISMATCH);
	struct hapax_op forget = case_op(c, HAPAX_OP_FORGET, "k");
	must_run(c, &forget, HAPAX_OUTCOME_BUSY);
	assert_int_equal(forget.token, 0);
	struct hapax_op look = case_op(c, HAPAX_OP_LOOKUP, "k");
	must_run(c, &look, HAPAX_OUTCOME_FOUND);
	assert_int_equal(look.token, token);
	assert_int_equal(case_park(c, "k", token), HAPAX_OK);
	must_have_no_token(c, "k", 1, HAPAX_OUTCOME_PARKED);
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	must_have_no_token(c, "k", 1, HAPAX_OUTCOME_REPLAY);
	must_have_no_token(c, "k", 2, HAPAX_OUTCOME_MISMATCH);

	/* A mark, which the embedded stores answer by another way. */
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "m");
	check.fingerprint = fingerprint;
	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	assert_true(check.token > 0);
	must_have_no_token(c, "m", 1, HAPAX_OUTCOME_REPLAY);
	must_have_no_token(c, "m", 2, HAPAX_OUTCOME_MISMATCH);
}

/* I5: tokens rise over the whole store, whatever becomes of the records. */
static void tokens_rise_over_the_whole_store(void **state)
{
	struct store_case *c = *state;
	uint64_t last = 0;

	for (int i = 0; i < 200; i++) {
		static const char *const keys[] = {"a", "b", "c"};
		const char *key = keys[i % 3];
		struct hapax_op op = case_op(c, i % 2 ? HAPAX_OP_CLAIM : HAPAX_OP_CHECK, key);

		must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
		assert_true(op.token > last);
		assert_true(op.token < UINT64_C(1) << 53);
		last = op.token;
		assert_int_equal(case_stats(c).token, last);
		if (i % 5 == 0) {
			store_case_advance(c, 60000);
			case_sweep(c);
		}
		struct hapax_op forget = case_op(c, HAPAX_OP_FORGET, key);
		forget.flags = HAPAX_OP_FORCE;
		assert_int_equal(case_run(c, &forget), HAPAX_OK);
	}
}

/* I5: and over closing and opening, even when every record is gone. */
static void tokens_survive_reopening(void **state)
{
	struct store_case *c = *state;
	uint64_t last = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t token = must_claim(c, "k");

		assert_true(token > last);
		last = token;
		struct hapax_op forget = case_op(c, HAPAX_OP_FORGET, "k");
		forget.flags = HAPAX_OP_FORCE;
		must_run(c, &forget, HAPAX_OUTCOME_APPLIED);
		/* The clock may do what it likes in between. */
		hx_virtual_clock_reboot(&c->clock);
		hx_virtual_clock_set_wall(&c->clock, i % 2 ? 0 : CASE_EPOCH_MS * 2);
		store_case_reopen(c);
		assert_true(case_complete(c, "k", token) == HAPAX_ERR_FENCED);
	}
}

const struct conformance_case token_cases[] = {
	{"I5 E1: a stale token changes nothing", stale_token_changes_nothing, NEEDS_NOTHING},
	{"I5: a foreign token changes nothing", foreign_token_changes_nothing, NEEDS_WHOLE},
	{"I5 E1: the right token does what the table says", right_token_does_what_the_table_says,
	 NEEDS_NOTHING},
	{"I13: repeated calls are applied once", repeated_calls_are_applied_once, NEEDS_NOTHING},
	{"I13: a repeated claim gives the same token", repeated_claim_gives_the_same_token,
	 NEEDS_NOTHING},
	{"I13: an attempt_id counts only while claimed", attempt_id_counts_only_while_claimed,
	 NEEDS_NOTHING},
	{"only a claim that was acquired is told the token", only_who_acquired_is_told_the_token,
	 NEEDS_NOTHING},
	{"I5: tokens rise over the whole store", tokens_rise_over_the_whole_store, NEEDS_WHOLE},
	{"I5: tokens survive reopening", tokens_survive_reopening, NEEDS_DURABLE},
	{NULL, NULL, NEEDS_NOTHING},
};
