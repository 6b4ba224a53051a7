/* SPDX-License-Identifier: Apache-2.0 */
/* cases_load.c - records that come from another store, as they are. */
#include "conformance/cases.h"

#include <string.h>

#include <hapax/copy.h>

#include "base/limits.h"
#include "support/random_record.h"

static struct hapax_op load_op(const char *key, const struct hapax_record *record)
{
	return (struct hapax_op){
		.type = HAPAX_OP_LOAD, .key = hapax_bytes_from_text(key), .load = record};
}

/* A record of every shape comes out as it went in. */
static void a_loaded_record_is_as_it_was(void **state)
{
	struct store_case *c = *state;
	static struct random_record random;
	struct hx_prng prng;
	uint64_t token = 0;

	hx_prng_seed(&prng, 5);
	for (int i = 0; i < 200; i++) {
		struct hapax_op op, lookup;
		const char *difference;

		random_record_make(&random, &prng, CASE_EPOCH_MS);
		if (random.record.expires_ms <= CASE_EPOCH_MS)
			continue;
		op = load_op("k", &random.record);
		op.tenant = random.record.tenant;
		op.group = random.record.group;
		op.key = random.record.key;
		assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
		lookup = (struct hapax_op){
			.type = HAPAX_OP_LOOKUP,
			.tenant = random.record.tenant,
			.group = random.record.group,
			.key = random.record.key,
			.record = &c->record,
			.buf = c->buf};
		assert_int_equal(hapax_store_run(c->store, &lookup, 1, NULL), HAPAX_OK);
		assert_int_equal(lookup.outcome, HAPAX_OUTCOME_FOUND);
		difference = random_record_difference(
			&c->record, &random.record, c->record.fingerprint_size);
		if (difference)
			fail_msg("%s differs after %d records", difference, i);
		token = random.record.token > token ? random.record.token : token;
		/* I5: and no token at or below it is given out. */
		assert_true(case_stats(c).token >= token);
	}
}

/* A claim that began elsewhere is completed here, with the token it was given there. */
static void a_loaded_claim_can_be_completed(void **state)
{
	struct store_case *c = *state;
	struct hapax_record record = {
		.state = HAPAX_STATE_CLAIMED,
		.attempt = 3,
		.token = must_claim(c, "other") + 1000,
		.first_seen_ms = CASE_EPOCH_MS - 5000,
		.changed_ms = CASE_EPOCH_MS - 2000,
		.lease_ends_ms = CASE_EPOCH_MS + 1000,
		.expires_ms = HAPAX_TIME_NEVER,
		.ttl_ms = 60000,
		.attempt_id = {9},
	};
	struct hapax_op op = load_op("k", &record);

	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(case_complete(c, "k", record.token - 1), HAPAX_ERR_FENCED);
	assert_int_equal(case_complete(c, "k", record.token), HAPAX_OK);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.first_seen_ms, record.first_seen_ms);
	assert_true(must_claim(c, "next") > record.token);
}

/* What it finds it replaces, whatever state that is in. */
static void loading_decides_nothing(void **state)
{
	struct store_case *c = *state;
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.origin = HAPAX_ORIGIN_CHECK,
		.attempt = 1,
		.token = 5,
		.first_seen_ms = CASE_EPOCH_MS,
		.changed_ms = CASE_EPOCH_MS,
		.expires_ms = CASE_EPOCH_MS + 60000,
		.ttl_ms = 60000,
	};
	struct hapax_stats before;
	struct hapax_op op = load_op("k", &record);
	uint64_t token = must_claim(c, "k");

	before = case_stats(c);
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_DONE);
	assert_int_equal(c->record.token, 5);
	assert_int_equal(case_complete(c, "k", token), HAPAX_ERR_FENCED);
	assert_int_equal(
		case_stats(c).counts[HAPAX_DECISION_COMPLETED],
		before.counts[HAPAX_DECISION_COMPLETED]);
	/* A lower token lowers nothing. */
	assert_true(must_claim(c, "next") > token || !store_case_is_whole(c));
}

static void a_wrong_record_is_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_record record = {.state = HAPAX_STATE_DONE, .attempt = 1, .token = 5};
	struct hapax_op op = load_op("k", &record);

	/* ttl is 0. */
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_ERR_INVALID);
	record.ttl_ms = 1000;
	record.expires_ms = CASE_EPOCH_MS + 1000;
	record.token = HX_TOKEN_MAX + 1;
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_ERR_INVALID);
	record.token = 5;
	record.lease_ends_ms = 1;
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_ERR_INVALID);
	record.lease_ends_ms = 0;
	op.load = NULL;
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_ERR_INVALID);
	op.load = &record;
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(case_stats(c).keys, 1);
}

static void fill(struct store_case *c)
{
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "done");

	op.cause = (struct hapax_bytes){"\5\0\0\0\0\0\0\0\0\0\0evt_1", 16};
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(c, "done", op.token), HAPAX_OK);
	(void)must_claim(c, "running");
	assert_int_equal(case_release(c, "failed", must_claim(c, "failed")), HAPAX_OK);
	assert_int_equal(case_park(c, "parked", must_claim(c, "parked")), HAPAX_OK);
	op = case_op(c, HAPAX_OP_SET, "set");
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
}

static const char *const filled[] = {"done", "running", "failed", "parked", "set"};
enum { FILLED = sizeof(filled) / sizeof(filled[0]) };

static void must_be_copied(struct store_case *from, struct store_case *to)
{
	for (size_t i = 0; i < FILLED; i++) {
		assert_int_not_equal(case_state(from, filled[i]), HAPAX_STATE_ABSENT);
		assert_int_equal(case_state(to, filled[i]), from->record.state);
		assert_null(random_record_difference(
			&to->record, &from->record, HAPAX_FINGERPRINT_SHORT_SIZE));
	}
}

/* To another store and back: the same records, tokens 2^40 higher each time. */
static void a_copy_holds_every_record(void **state)
{
	struct store_case *c = *state;
	struct hapax_copy copy = HAPAX_COPY_INIT;
	struct hapax_error err = {0};
	struct store_case other, third;
	uint64_t token;

	fill(c);
	token = case_stats(c).token;
	store_case_begin(&other, "memory:");
	store_case_begin(&third, c->kind);
	/* memory: begins its tokens at the time in microseconds; the larger one counts. */
	token = token > case_stats(&other).token ? token : case_stats(&other).token;
	assert_int_equal(hapax_store_copy(c->store, other.store, &copy, &err), HAPAX_OK);
	assert_int_equal(copy.records, FILLED);
	assert_int_equal(copy.token, token + (UINT64_C(1) << 40));
	must_be_copied(c, &other);
	assert_int_equal(case_stats(&other).keys, FILLED);
	copy = (struct hapax_copy)HAPAX_COPY_INIT;
	assert_int_equal(hapax_store_copy(other.store, third.store, &copy, &err), HAPAX_OK);
	must_be_copied(c, &third);
	assert_true(must_claim(&third, "new") > token + (UINT64_C(2) << 40));
	/* Not into one that holds something, not into itself. */
	assert_int_equal(hapax_store_copy(c->store, other.store, &copy, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_store_copy(c->store, c->store, &copy, &err), HAPAX_ERR_INVALID);
	store_case_done(&third);
	store_case_done(&other);
}

static int end_it(const struct hapax_copy *copy, void *context)
{
	(void)copy;
	(void)context;
	return 1;
}

static void a_copy_that_was_ended_can_be_told(void **state)
{
	struct store_case *c = *state;
	struct hapax_copy copy = HAPAX_COPY_INIT;
	struct store_case other;

	fill(c);
	store_case_begin(&other, c->kind);
	copy.progress = end_it;
	assert_int_equal(hapax_store_copy(c->store, other.store, &copy, NULL), HAPAX_ERR_HANDLER);
	/* The marker, and what was copied. */
	assert_true(case_stats(&other).keys >= 2);
	assert_true(case_stats(&other).failed >= 1);
	store_case_done(&other);
}

/* What it lacks would run again: no caller gets to use it, and no copy takes it. */
static void a_copy_that_was_ended_does_not_open(void **state)
{
	struct store_case *c = *state;
	struct hapax_copy copy = HAPAX_COPY_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	struct store_case other;

	fill(c);
	store_case_begin(&other, c->kind);
	copy.progress = end_it;
	assert_int_equal(hapax_store_copy(c->store, other.store, &copy, NULL), HAPAX_ERR_HANDLER);
	hapax_store_close(other.store);
	other.store = NULL;
	assert_int_equal(
		hapax_store_open(other.url, &other.options, &store, &err), HAPAX_ERR_INVALID);
	assert_null(store);
	assert_non_null(strstr(err.message, "part of an unfinished copy"));
	store_case_done(&other);
}

static void tokens_after_a_restore(void **state)
{
	struct store_case *c = *state;
	uint64_t token = must_claim(c, "k");
	uint64_t last = 0;

	assert_int_equal(hapax_store_restored(c->store, &last, NULL), HAPAX_OK);
	assert_int_equal(last, token + (UINT64_C(1) << 40));
	assert_true(must_claim(c, "next") > last);
	assert_int_equal(case_stats(c).keys, 2);
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
}

/* I5: the distance survives closing. */
static void loaded_tokens_survive(void **state)
{
	struct store_case *c = *state;
	uint64_t last = 0;

	fill(c);
	assert_int_equal(hapax_store_restored(c->store, &last, NULL), HAPAX_OK);
	store_case_reopen(c);
	assert_true(case_stats(c).token >= last);
	assert_true(must_claim(c, "next") > last);
}

const struct conformance_case load_cases[] = {
	{"a loaded record is as it was", a_loaded_record_is_as_it_was, NEEDS_NOTHING},
	{"E1: a loaded claim can be completed", a_loaded_claim_can_be_completed, NEEDS_NOTHING},
	{"loading decides nothing", loading_decides_nothing, NEEDS_NOTHING},
	{"a wrong record is refused", a_wrong_record_is_refused, NEEDS_NOTHING},
	{"a copy holds every record", a_copy_holds_every_record, NEEDS_NOTHING},
	{"a copy that was ended can be told", a_copy_that_was_ended_can_be_told, NEEDS_NOTHING},
	{"a copy that was ended does not open", a_copy_that_was_ended_does_not_open, NEEDS_DURABLE},
	{"I5: tokens after a restore", tokens_after_a_restore, NEEDS_NOTHING},
	{"I5: loaded tokens survive closing", loaded_tokens_survive, NEEDS_DURABLE},
	{NULL, NULL, NEEDS_NOTHING},
};
