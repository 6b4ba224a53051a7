/* SPDX-License-Identifier: Apache-2.0 */
/* cases_claim.c - the two tables of the rules for a record, row by row. */
#include "conformance/cases.h"

/* I1: once done, a claim replays until the ttl has passed, and only then runs again. */
static void done_is_replayed_until_it_expires(void **state)
{
	struct store_case *c = *state;
	uint64_t token = must_claim(c, "k");

	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	for (int i = 0; i < 3; i++) {
		struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");

		must_run(c, &op, HAPAX_OUTCOME_REPLAY);
		assert_int_equal(op.attempt, 1);
		assert_int_equal(op.first_seen_ms, CASE_EPOCH_MS);
		assert_int_equal(op.expires_ms, CASE_EPOCH_MS + 60000);
		store_case_advance(c, 19999);
	}
	store_case_advance(c, 2);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_REPLAY);
	store_case_advance(c, 1);
	assert_true(must_claim(c, "k") > token);
	assert_int_equal(c->record.attempt, 1);
	assert_int_equal(c->record.first_seen_ms, CASE_EPOCH_MS + 60000);
}

/* I1b: while a lease lives no other caller gets the key; once it lapsed, one other does. */
static void lease_keeps_others_out_until_it_lapses(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");
	uint64_t second = 0;

	op.owner = hapax_bytes_from_text("worker 1");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(op.lease_left_ms, 1000);
	uint64_t first = op.token;

	store_case_advance(c, 999);
	op = case_op(c, HAPAX_OP_CLAIM, "k");
	must_run(c, &op, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(op.lease_left_ms, 1);
	assert_true(case_bytes_are(c->record.owner, "worker 1", 8));

	store_case_advance(c, 1);
	op = case_op(c, HAPAX_OP_CLAIM, "k");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	second = op.token;
	assert_true(second > first);
	assert_int_equal(op.attempt, 2);
	assert_int_equal(op.first_seen_ms, CASE_EPOCH_MS);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(case_complete(c, "k", first), HAPAX_ERR_FENCED);
	assert_int_equal(case_complete(c, "k", second), HAPAX_OK);
}

/* I1b: a renewed lease counts from its renewal. */
static void renewal_restarts_the_lease(void **state)
{
	struct store_case *c = *state;
	uint64_t token = must_claim(c, "k");

	for (int i = 0; i < 5; i++) {
		store_case_advance(c, 700);
		assert_int_equal(case_renew(c, "k", token), HAPAX_OK);
		assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	}
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
	assert_int_equal(c->record.lease_ends_ms, CASE_EPOCH_MS + 5 * 700 + 1000);
	/* Entering the state was long ago. */
	assert_int_equal(c->record.changed_ms, CASE_EPOCH_MS);
}

/* I3, A5, D4: a released key runs again at once; attempts and the error are kept. */
static void released_key_runs_again(void **state)
{
	struct store_case *c = *state;

	for (uint32_t attempt = 1; attempt <= 3; attempt++) {
		struct hapax_op claim = case_op(c, HAPAX_OP_CLAIM, "k");

		must_run(c, &claim, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(claim.attempt, attempt);
		struct hapax_op release = case_op_token(c, HAPAX_OP_RELEASE, "k", claim.token);
		release.error = hapax_bytes_from_text("connection refused");
		must_run(c, &release, HAPAX_OUTCOME_APPLIED);
		assert_int_equal(case_state(c, "k"), HAPAX_STATE_FAILED);
		assert_int_equal(c->record.attempt, attempt);
		assert_int_equal(c->record.expires_ms, CASE_EPOCH_MS + 60000);
		assert_true(case_bytes_are(c->record.error, "connection refused", 18));
	}
}

/* I3: a holder that vanished blocks its key for its lease and no longer. */
static void no_key_is_stuck(void **state)
{
	struct store_case *c = *state;

	must_claim(c, "k");
	store_case_advance(c, 1000);
	uint64_t token = must_claim(c, "k");
	store_case_advance(c, 1000);
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "k");
	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(check.attempt, 3);
	assert_true(check.token > token);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.origin, HAPAX_ORIGIN_CHECK);
}

/* on_lapse park: a claim finds the lapse, and then no caller runs. */
static void lapse_parks_when_asked_to(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");

	op.on_lapse = HAPAX_ON_LAPSE_PARK;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	uint64_t token = op.token;
	store_case_advance(c, 1000);
	/* Reading does not judge. */
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_CLAIMED);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_PARKED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_PARKED);
	assert_int_equal(c->record.token, token);
	assert_int_equal(c->record.expires_ms, HAPAX_TIME_NEVER);
	assert_int_equal(c->record.lease_ends_ms, 0);
	store_case_advance(c, INT64_C(400) * 86400 * 1000);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_PARKED);
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "k");
	must_run(c, &check, HAPAX_OUTCOME_PARKED);
	/* The late finisher may still say what happened. */
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_REPLAY);
}

/* A lapsed check finds the same as a claim does. */
static void lapse_parks_a_check_too(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");

	op.on_lapse = HAPAX_ON_LAPSE_PARK;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "k");
	must_run(c, &check, HAPAX_OUTCOME_IN_PROGRESS);
	store_case_advance(c, 1000);
	must_run(c, &check, HAPAX_OUTCOME_PARKED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_PARKED);
}

/* E1: reserve, then confirm or release; a late finisher before takeover still counts. */
static void lapsed_holder_may_finish_if_nobody_ran(void **state)
{
	struct store_case *c = *state;
	uint64_t token = must_claim(c, "a");

	store_case_advance(c, 5000);
	assert_int_equal(case_renew(c, "a", token), HAPAX_OK);
	assert_int_equal(case_claim(c, "a", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	store_case_advance(c, 5000);
	assert_int_equal(case_complete(c, "a", token), HAPAX_OK);
	assert_int_equal(case_claim(c, "a", NULL), HAPAX_OUTCOME_REPLAY);

	token = must_claim(c, "b");
	assert_int_equal(case_release(c, "b", token), HAPAX_OK);
	assert_int_equal(case_complete(c, "b", token), HAPAX_OK);
	assert_int_equal(case_claim(c, "b", NULL), HAPAX_OUTCOME_REPLAY);
}

/* A7: looking does not mark, forgetting removes. */
static void lookup_does_not_mark_and_forget_removes(void **state)
{
	struct store_case *c = *state;
	struct hapax_op lookup = case_op(c, HAPAX_OP_LOOKUP, "k");
	struct hapax_op check = case_op(c, HAPAX_OP_CHECK, "k");
	struct hapax_op forget = case_op(c, HAPAX_OP_FORGET, "k");

	must_run(c, &lookup, HAPAX_OUTCOME_ABSENT);
	must_run(c, &lookup, HAPAX_OUTCOME_ABSENT);
	must_run(c, &forget, HAPAX_OUTCOME_ABSENT);
	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	must_run(c, &check, HAPAX_OUTCOME_REPLAY);
	must_run(c, &lookup, HAPAX_OUTCOME_FOUND);
	must_run(c, &forget, HAPAX_OUTCOME_APPLIED);
	/* The record as it stood before. */
	assert_int_equal(c->record.state, HAPAX_STATE_DONE);
	must_run(c, &lookup, HAPAX_OUTCOME_ABSENT);
	must_run(c, &check, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(check.attempt, 1);
}

/* forget on CLAIMED and PARKED is BUSY unless forced, and then the holder is fenced. */
static void forget_of_a_held_key_must_be_forced(void **state)
{
	struct store_case *c = *state;
	struct hapax_op forget = case_op(c, HAPAX_OP_FORGET, "k");
	uint64_t token = must_claim(c, "k");

	must_run(c, &forget, HAPAX_OUTCOME_BUSY);
	assert_int_equal(case_park(c, "k", token), HAPAX_OK);
	must_run(c, &forget, HAPAX_OUTCOME_BUSY);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_PARKED);
	forget.flags = HAPAX_OP_FORCE;
	must_run(c, &forget, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_ABSENT);
	assert_int_equal(case_complete(c, "k", token), HAPAX_ERR_FENCED);
	assert_true(must_claim(c, "k") > token);

	/* A failed record has no holder: no force is needed. */
	token = must_claim(c, "f");
	assert_int_equal(case_release(c, "f", token), HAPAX_OK);
	forget = case_op(c, HAPAX_OP_FORGET, "f");
	must_run(c, &forget, HAPAX_OUTCOME_APPLIED);
}

/* A2: the plain call says first, then duplicate. */
static void plain_check_says_first_then_duplicate(void **state)
{
	struct store_case *c = *state;
	enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;
	struct hapax_error err;

	assert_int_equal(
		hapax_store_check(c->store, hapax_bytes_from_text("k"), 0, &outcome, &err),
		HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(
		hapax_store_check(c->store, hapax_bytes_from_text("k"), 0, &outcome, NULL),
		HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	/* 24 hours by default. */
	assert_int_equal(c->record.expires_ms, CASE_EPOCH_MS + 86400000);

	err.message[0] = '\0';
	outcome = HAPAX_OUTCOME_NONE;
	assert_int_equal(
		hapax_store_check(c->store, hapax_bytes_from_text(""), 0, &outcome, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(err.status, HAPAX_ERR_INVALID);
	assert_true(err.message[0] != '\0');
	assert_int_equal(outcome, HAPAX_OUTCOME_NONE);

	/* No caller could get the answer: nothing is marked. */
	assert_int_equal(
		hapax_store_check(c->store, hapax_bytes_from_text("untold"), 0, NULL, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(case_state(c, "untold"), HAPAX_STATE_ABSENT);
}

/* Scopes do not see each other; no name is the name "default". */
static void scopes_are_apart(void **state)
{
	struct store_case *c = *state;
	/* "ab" + "c" and "a" + "bc" are two scopes, and neither is "abc". */
	static const char *const scopes[][2] = {
		{"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}, {"default", "x"},
	};

	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");

		op.tenant = hapax_bytes_from_text(scopes[i][0]);
		op.group = hapax_bytes_from_text(scopes[i][1]);
		must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	}
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "k");
	op.tenant = hapax_bytes_from_text("default");
	op.group = hapax_bytes_from_text("default");
	must_run(c, &op, HAPAX_OUTCOME_REPLAY);
	assert_true(case_bytes_are(c->record.tenant, "default", 7));
	assert_true(case_bytes_are(c->record.group, "default", 7));
	assert_true(case_bytes_are(c->record.key, "k", 1));
}

/* C7: two that have opened the same place have one ledger. */
static void two_openers_share_one_ledger(void **state)
{
	struct store_case *c = *state;
	struct hapax_store *mine = c->store;
	struct hapax_store *other = NULL;
	uint64_t token = must_claim(c, "k");

	assert_int_equal(hapax_store_open(c->url, &c->options, &other, NULL), HAPAX_OK);
	c->store = other;
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	uint64_t second = must_claim(c, "l");
	assert_true(!store_case_is_whole(c) || second > token);
	c->store = mine;
	assert_true(must_claim(c, "m") > second || !store_case_is_whole(c));
	assert_int_equal(case_complete(c, "l", second), HAPAX_OK);
	c->store = other;
	assert_int_equal(case_claim(c, "l", NULL), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	assert_int_equal(case_stats(c).keys, 3);
	c->store = mine;
	hapax_store_close(other);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_REPLAY);
}

/* C7: what a store says of itself. */
static void store_says_what_it_is(void **state)
{
	struct store_case *c = *state;
	size_t size = strcspn(c->kind, ":+");

	assert_int_equal(strlen(hapax_store_name(c->store)), size);
	assert_memory_equal(hapax_store_name(c->store), c->kind, size);
	assert_string_equal(hapax_store_url(c->store), c->url);
	bool is_cluster = strcmp(c->kind, "redis+cluster:") == 0;
	unsigned whole = HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY;

	assert_int_equal(hapax_store_capabilities(c->store) & whole, is_cluster ? 0 : whole);
}

const struct conformance_case claim_cases[] = {
	{"I1: done is replayed until it expires", done_is_replayed_until_it_expires, NEEDS_NOTHING},
	{"I1b: a lease keeps others out until it lapses", lease_keeps_others_out_until_it_lapses,
	 NEEDS_NOTHING},
	{"I1b: renewal restarts the lease", renewal_restarts_the_lease, NEEDS_NOTHING},
	{"I3 A5 D4: a released key runs again", released_key_runs_again, NEEDS_NOTHING},
	{"I3: no key is stuck", no_key_is_stuck, NEEDS_NOTHING},
	{"I3: a lapse parks when asked to", lapse_parks_when_asked_to, NEEDS_NOTHING},
	{"I3: a lapse parks a check too", lapse_parks_a_check_too, NEEDS_NOTHING},
	{"E1: a lapsed holder may finish if no other ran", lapsed_holder_may_finish_if_nobody_ran,
	 NEEDS_NOTHING},
	{"A7: lookup does not mark and forget removes", lookup_does_not_mark_and_forget_removes,
	 NEEDS_NOTHING},
	{"A7: forget of a held key must be forced", forget_of_a_held_key_must_be_forced,
	 NEEDS_NOTHING},
	{"A2: plain check says first then duplicate", plain_check_says_first_then_duplicate,
	 NEEDS_NOTHING},
	{"I7 B1: scopes are apart", scopes_are_apart, NEEDS_NOTHING},
	{"C7: two openers share one ledger", two_openers_share_one_ledger, NEEDS_SHARING},
	{"C7: a store says what it is", store_says_what_it_is, NEEDS_NOTHING},
	{NULL, NULL, NEEDS_NOTHING},
};
