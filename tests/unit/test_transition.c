/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_transition.c - every state against every operation: the tables of the rules
 * as data, and what a pure function must not do.
 */
#include "record/transition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/record.h"

enum { NOW = 1000000, TOKEN = 7, FRESH = 100 };

/* The states of the tables' rows; LAPSED is a claim whose lease is over. */
enum row {
	ROW_ABSENT,
	ROW_EXPIRED_DONE,
	ROW_EXPIRED_FAILED,
	ROW_FAILED,
	ROW_CLAIMED,
	ROW_LAPSED,
	ROW_LAPSED_PARK,
	ROW_PARKED,
	ROW_DONE,
	ROW_MARK,
	ROW_SET,
	ROW_COUNT,
};

static const unsigned char print_a[HAPAX_FINGERPRINT_SIZE] = {'a'};
static const unsigned char print_b[HAPAX_FINGERPRINT_SIZE] = {'b'};
static const unsigned char id_own[HAPAX_ATTEMPT_ID_SIZE] = {1};
static const unsigned char id_other[HAPAX_ATTEMPT_ID_SIZE] = {2};

/* The record of a row; fingerprint 'a' or, without, none. NULL for ROW_ABSENT. */
static const struct hapax_record *make(enum row row, bool has_print, struct hapax_record *record)
{
	static const enum hapax_state states[ROW_COUNT] = {
		[ROW_EXPIRED_DONE] = HAPAX_STATE_DONE, [ROW_EXPIRED_FAILED] = HAPAX_STATE_FAILED,
		[ROW_FAILED] = HAPAX_STATE_FAILED,     [ROW_CLAIMED] = HAPAX_STATE_CLAIMED,
		[ROW_LAPSED] = HAPAX_STATE_CLAIMED,    [ROW_LAPSED_PARK] = HAPAX_STATE_CLAIMED,
		[ROW_PARKED] = HAPAX_STATE_PARKED,     [ROW_DONE] = HAPAX_STATE_DONE,
		[ROW_MARK] = HAPAX_STATE_DONE,         [ROW_SET] = HAPAX_STATE_DONE,
	};

	if (row == ROW_ABSENT)
		return NULL;
	*record = (struct hapax_record){
		.state = states[row],
		.attempt = 3,
		.token = TOKEN,
		.first_seen_ms = NOW - 500,
		.changed_ms = NOW - 100,
		.expires_ms = HAPAX_TIME_NEVER,
		.ttl_ms = 5000,
		.tenant = HX_BYTES_LIT("default"),
		.group = HX_BYTES_LIT("default"),
		.key = HX_BYTES_LIT("k")};
	if (has_print) {
		record->fingerprint_size = HAPAX_FINGERPRINT_SIZE;
		memcpy(record->fingerprint, print_a, sizeof(print_a));
	}
	if (record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED)
		memcpy(record->attempt_id, id_own, sizeof(id_own));
	else
		record->expires_ms = NOW + 4900;
	if (record->state == HAPAX_STATE_CLAIMED)
		record->lease_ends_ms = row == ROW_CLAIMED ? NOW + 1 : NOW;
	if (row == ROW_LAPSED_PARK)
		record->on_lapse = HAPAX_ON_LAPSE_PARK;
	if (row == ROW_EXPIRED_DONE || row == ROW_EXPIRED_FAILED)
		record->expires_ms = NOW;
	if (row == ROW_MARK)
		record->origin = HAPAX_ORIGIN_CHECK;
	if (row == ROW_SET)
		record->origin = HAPAX_ORIGIN_SET;
	if (row == ROW_DONE || row == ROW_SET) {
		record->result.kind = HAPAX_RESULT_BYTES;
		record->result.body = HX_BYTES_LIT("old");
	}
	hx_record_assert(record);
	return record;
}

static struct hapax_op make_op(enum hapax_op_type type)
{
	return (struct hapax_op){
		.type = type,
		.tenant = HX_BYTES_LIT("default"),
		.group = HX_BYTES_LIT("default"),
		.key = HX_BYTES_LIT("k"),
		.attempt_id = id_other,
		.lease_ms = 30000,
		.ttl_ms = 60000};
}

static struct hx_transition_rules make_rules(void)
{
	return (struct hx_transition_rules){
		.now_ms = NOW, .fresh_token = FRESH, .result_size_max = 100};
}

static struct hx_transition run(const struct hapax_record *old, struct hapax_op *op)
{
	struct hx_transition_rules rules = make_rules();
	struct hx_transition transition;

	memset(&transition, 0x5a, sizeof(transition));
	hx_transition(old, op, &rules, &transition);
	assert_true(op->status != HAPAX_OK || op->outcome != HAPAX_OUTCOME_NONE);
	if (transition.effect == HX_EFFECT_PUT) {
		assert_true(hx_record_is_valid(&transition.next));
		assert_true(transition.next.token == (transition.takes_token ? FRESH : TOKEN));
		assert_true(hx_bytes_equal(transition.next.key, op->key));
	} else {
		assert_false(transition.takes_token);
	}
	return transition;
}

/* The first table: what claim and check answer to each row. */
static const struct {
	enum hapax_outcome same;  /* same fingerprint, or none on a side */
	enum hapax_outcome other; /* another one */
} asked[ROW_COUNT] = {
	[ROW_ABSENT] = {HAPAX_OUTCOME_ACQUIRED, HAPAX_OUTCOME_ACQUIRED},
	[ROW_EXPIRED_DONE] = {HAPAX_OUTCOME_ACQUIRED, HAPAX_OUTCOME_ACQUIRED},
	[ROW_EXPIRED_FAILED] = {HAPAX_OUTCOME_ACQUIRED, HAPAX_OUTCOME_ACQUIRED},
	[ROW_FAILED] = {HAPAX_OUTCOME_ACQUIRED, HAPAX_OUTCOME_ACQUIRED},
	[ROW_CLAIMED] = {HAPAX_OUTCOME_IN_PROGRESS, HAPAX_OUTCOME_MISMATCH},
	[ROW_LAPSED] = {HAPAX_OUTCOME_ACQUIRED, HAPAX_OUTCOME_MISMATCH},
	[ROW_LAPSED_PARK] = {HAPAX_OUTCOME_PARKED, HAPAX_OUTCOME_MISMATCH},
	[ROW_PARKED] = {HAPAX_OUTCOME_PARKED, HAPAX_OUTCOME_MISMATCH},
	[ROW_DONE] = {HAPAX_OUTCOME_REPLAY, HAPAX_OUTCOME_MISMATCH},
	[ROW_MARK] = {HAPAX_OUTCOME_REPLAY, HAPAX_OUTCOME_MISMATCH},
	[ROW_SET] = {HAPAX_OUTCOME_REPLAY, HAPAX_OUTCOME_MISMATCH},
};

static bool begins_anew(enum row row)
{
	return row == ROW_ABSENT || row == ROW_EXPIRED_DONE || row == ROW_EXPIRED_FAILED;
}

static void check_acquired(
	enum row row, const struct hapax_op *op, const struct hx_transition *transition)
{
	const struct hapax_record *next = &transition->next;
	bool is_new = begins_anew(row);

	assert_int_equal(transition->effect, HX_EFFECT_PUT);
	assert_true(transition->takes_token);
	assert_int_equal(op->token, FRESH);
	assert_int_equal(op->attempt, is_new ? 1 : 4);
	assert_int_equal(next->attempt, op->attempt);
	assert_int_equal(next->first_seen_ms, is_new ? NOW : NOW - 500);
	assert_int_equal(op->first_seen_ms, next->first_seen_ms);
	assert_int_equal(next->changed_ms, NOW);
	assert_int_equal(next->ttl_ms, 60000);
	assert_int_equal(next->fingerprint_size, op->fingerprint ? HAPAX_FINGERPRINT_SIZE : 0);
	if (op->type == HAPAX_OP_CHECK) {
		assert_int_equal(next->state, HAPAX_STATE_DONE);
		assert_int_equal(next->origin, HAPAX_ORIGIN_CHECK);
		assert_int_equal(next->expires_ms, NOW + 60000);
		assert_int_equal(next->result.kind, HAPAX_RESULT_NONE);
	} else {
		assert_int_equal(next->state, HAPAX_STATE_CLAIMED);
		assert_int_equal(next->origin, HAPAX_ORIGIN_CLAIM);
		assert_int_equal(next->lease_ends_ms, NOW + 30000);
		assert_int_equal(op->lease_left_ms, 30000);
		assert_memory_equal(next->attempt_id, id_other, sizeof(id_other));
	}
}

/* claim and check, with every combination of fingerprints. */
static void claim_and_check_answer_by_the_table(void **state)
{
	static const unsigned char *const prints[] = {NULL, print_a, print_b};

	(void)state;
	for (unsigned i = 0; i < ROW_COUNT * 2 * 3 * 2; i++) {
		enum row row = (enum row)(i % ROW_COUNT);
		bool has_print = i / ROW_COUNT % 2;
		const unsigned char *print = prints[i / ROW_COUNT / 2 % 3];
		struct hapax_record storage;
		const struct hapax_record *old = make(row, has_print, &storage);
		struct hapax_op op = make_op(i / ROW_COUNT / 6 ? HAPAX_OP_CHECK : HAPAX_OP_CLAIM);
		bool compared = has_print && print;
		bool counts = !begins_anew(row) && row != ROW_FAILED;

		op.fingerprint = print;
		op.token = TOKEN;
		struct hx_transition transition = run(old, &op);
		assert_int_equal(op.status, HAPAX_OK);
		assert_int_equal(
			op.outcome,
			compared && print == print_b ? asked[row].other : asked[row].same);
		assert_int_equal(op.unverified != 0, counts && !compared);
		assert_int_equal(transition.was_absent, begins_anew(row));
		if (op.outcome == HAPAX_OUTCOME_ACQUIRED) {
			check_acquired(row, &op, &transition);
		} else if (row == ROW_LAPSED_PARK && op.outcome == HAPAX_OUTCOME_PARKED) {
			assert_int_equal(transition.effect, HX_EFFECT_PUT);
			assert_int_equal(transition.next.state, HAPAX_STATE_PARKED);
			assert_int_equal(transition.next.changed_ms, NOW);
		} else {
			assert_int_equal(transition.effect, HX_EFFECT_NONE);
			assert_int_equal(op.attempt, 3);
		}
		if (op.outcome != HAPAX_OUTCOME_ACQUIRED)
			assert_int_equal(op.token, 0);
	}
}

/* The second table. ABSENT: FENCED; the state itself: nothing to write. */
static void token_operations_go_by_the_table(void **state)
{
	static const enum hapax_op_type types[] = {
		HAPAX_OP_RENEW, HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_PARK};
	static const enum hapax_state held[] = {
		HAPAX_STATE_CLAIMED, HAPAX_STATE_DONE, HAPAX_STATE_FAILED, HAPAX_STATE_PARKED};
	static const enum hapax_state failed[] = {
		HAPAX_STATE_ABSENT, HAPAX_STATE_DONE, HAPAX_STATE_FAILED, HAPAX_STATE_ABSENT};
	static const enum hapax_state done[] = {
		HAPAX_STATE_ABSENT, HAPAX_STATE_DONE, HAPAX_STATE_ABSENT, HAPAX_STATE_ABSENT};
	static const enum hapax_state fenced[] = {
		HAPAX_STATE_ABSENT, HAPAX_STATE_ABSENT, HAPAX_STATE_ABSENT, HAPAX_STATE_ABSENT};
	static const enum hapax_state *const to[ROW_COUNT] = {
		[ROW_ABSENT] = fenced,
		[ROW_EXPIRED_DONE] = fenced,
		[ROW_EXPIRED_FAILED] = fenced,
		[ROW_FAILED] = failed,
		[ROW_CLAIMED] = held,
		[ROW_LAPSED] = held,
		[ROW_LAPSED_PARK] = held,
		[ROW_PARKED] = held,
		[ROW_DONE] = done,
		[ROW_MARK] = done,
		[ROW_SET] = done,
	};

	(void)state;
	for (unsigned i = 0; i < ROW_COUNT * 4 * 3; i++) {
		enum row row = (enum row)(i % ROW_COUNT);
		unsigned which = i / ROW_COUNT % 4;
		/* The right one, one below, one above. */
		uint64_t token = TOKEN + (uint64_t[]){0, (uint64_t)-1, 1}[i / ROW_COUNT / 4];
		struct hapax_record storage;
		const struct hapax_record *old = make(row, true, &storage);
		struct hapax_op op = make_op(types[which]);
		enum hapax_state target = token == TOKEN ? to[row][which] : HAPAX_STATE_ABSENT;

		op.token = token;
		op.error = HX_BYTES_LIT("why");
		struct hx_transition transition = run(old, &op);
		assert_int_equal(op.token, token);
		if (target == HAPAX_STATE_ABSENT) {
			assert_int_equal(op.status, HAPAX_ERR_FENCED);
			assert_int_equal(op.outcome, HAPAX_OUTCOME_NONE);
			assert_int_equal(transition.effect, HX_EFFECT_NONE);
			continue;
		}
		assert_int_equal(op.status, HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
		if (target == old->state && types[which] != HAPAX_OP_RENEW) {
			assert_int_equal(transition.effect, HX_EFFECT_NONE);
			continue;
		}
		const struct hapax_record *next = &transition.next;
		assert_int_equal(transition.effect, HX_EFFECT_PUT);
		assert_int_equal(next->state, target);
		assert_int_equal(next->attempt, 3);
		assert_int_equal(next->first_seen_ms, NOW - 500);
		assert_int_equal(next->ttl_ms, 5000);
		assert_int_equal(next->changed_ms, target == old->state ? NOW - 100 : NOW);
		if (target == HAPAX_STATE_FAILED || target == HAPAX_STATE_PARKED)
			assert_true(hx_bytes_equal(next->error, HX_BYTES_LIT("why")));
		if (target == HAPAX_STATE_FAILED || target == HAPAX_STATE_DONE)
			assert_int_equal(next->expires_ms, NOW + 5000);
	}
}

/* Repeated by its own attempt_id, a claim is held on to, lapsed or not; a check never is. */
static void own_attempt_id_restarts_the_lease(void **state)
{
	static const enum row rows[] = {ROW_CLAIMED, ROW_LAPSED, ROW_LAPSED_PARK};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct hapax_record storage;
		const struct hapax_record *old = make(rows[i], true, &storage);
		struct hapax_op op = make_op(HAPAX_OP_CLAIM);

		op.attempt_id = id_own;
		op.fingerprint = print_a;
		struct hx_transition transition = run(old, &op);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(op.token, TOKEN);
		assert_int_equal(op.attempt, 3);
		assert_false(transition.takes_token);
		assert_int_equal(transition.next.lease_ends_ms, NOW + 30000);
		assert_int_equal(transition.next.changed_ms, NOW - 100);
		assert_int_equal(transition.next.ttl_ms, 5000);

		op = make_op(HAPAX_OP_CHECK);
		op.attempt_id = id_own;
		run(old, &op);
		assert_true(op.token != TOKEN || op.outcome != HAPAX_OUTCOME_ACQUIRED);
	}
}

static void result_is_kept_or_cut(void **state)
{
	static const unsigned char body[101];
	struct hapax_record storage;
	const struct hapax_record *old = make(ROW_CLAIMED, true, &storage);
	struct hapax_result result = {
		.kind = HAPAX_RESULT_HTTP,
		.status = 418,
		.headers = HX_BYTES_LIT("h"),
		.body = {body, 100}};
	struct hapax_op op = make_op(HAPAX_OP_COMPLETE);

	(void)state;
	op.token = TOKEN;
	op.result = &result;
	struct hx_transition transition = run(old, &op);
	assert_int_equal(transition.next.result.body.size, 100);
	assert_int_equal(transition.next.result.omitted_bytes, 0);
	result.body.size = 101;
	transition = run(old, &op);
	assert_int_equal(transition.next.result.body.size, 0);
	assert_int_equal(transition.next.result.omitted_bytes, 101);
	assert_int_equal(transition.next.result.status, 418);
	assert_int_equal(transition.next.result.headers.size, 1);
	/* A set does not cut. */
	op = make_op(HAPAX_OP_SET);
	op.result = &result;
	transition = run(NULL, &op);
	assert_int_equal(op.status, HAPAX_ERR_LIMIT);
	assert_int_equal(transition.effect, HX_EFFECT_NONE);
}

/* Near the end of time nothing wraps: what cannot be counted is forever. */
static void times_saturate(void **state)
{
	struct hx_transition_rules rules = make_rules();
	struct hx_transition transition;
	struct hapax_op op = make_op(HAPAX_OP_CHECK);

	(void)state;
	rules.now_ms = INT64_MAX - 10;
	op.ttl_ms = 10;
	hx_transition(NULL, &op, &rules, &transition);
	assert_int_equal(op.expires_ms, HAPAX_TIME_NEVER);
	op = make_op(HAPAX_OP_CHECK);
	hx_transition(NULL, &op, &rules, &transition);
	assert_int_equal(op.expires_ms, HAPAX_TIME_NEVER);
	op = make_op(HAPAX_OP_CLAIM);
	hx_transition(NULL, &op, &rules, &transition);
	assert_true(op.lease_left_ms > 0);
	op = make_op(HAPAX_OP_CHECK);
	op.ttl_ms = HAPAX_TTL_FOREVER;
	rules.now_ms = 0;
	hx_transition(NULL, &op, &rules, &transition);
	assert_int_equal(op.expires_ms, HAPAX_TIME_NEVER);
	assert_int_equal(transition.next.ttl_ms, HAPAX_TTL_FOREVER);
	/* Attempts stop counting, they do not begin again. */
	struct hapax_record storage;
	make(ROW_FAILED, false, &storage);
	storage.attempt = UINT32_MAX;
	op = make_op(HAPAX_OP_CLAIM);
	rules = make_rules();
	hx_transition(&storage, &op, &rules, &transition);
	assert_int_equal(op.attempt, UINT32_MAX);
}

/* An operation that read its clock a moment before another one wrote the record. */
static void clock_reading_may_be_older_than_the_record(void **state)
{
	(void)state;
	for (unsigned row = ROW_FAILED; row < ROW_COUNT; row++) {
		for (unsigned type = HAPAX_OP_CLAIM; type <= HAPAX_OP_EXPIRE; type++) {
			struct hx_transition_rules rules = make_rules();
			struct hx_transition transition;
			struct hapax_record storage;
			struct hapax_op op = make_op((enum hapax_op_type)type);

			make((enum row)row, true, &storage);
			storage.first_seen_ms = storage.changed_ms = NOW - 100;
			rules.now_ms = NOW - 120;
			op.token = TOKEN;
			hx_transition(&storage, &op, &rules, &transition);
			if (transition.effect != HX_EFFECT_PUT)
				continue;
			assert_true(hx_record_is_valid(&transition.next));
			/* A record's time does not go back. */
			if (type != HAPAX_OP_SET)
				assert_true(transition.next.changed_ms >= storage.changed_ms);
		}
	}
}

/* Inside a caller's transaction a claim has no lease: it ends at once. */
static void claim_without_lease_has_lapsed(void **state)
{
	struct hx_transition_rules rules = make_rules();
	struct hx_transition transition;
	struct hapax_op op = make_op(HAPAX_OP_CLAIM);

	(void)state;
	rules.without_lease = true;
	hx_transition(NULL, &op, &rules, &transition);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_true(hx_record_is_lapsed(&transition.next, NOW));
}

static void sweep_settles_what_is_due(void **state)
{
	static const enum hapax_state settled[] = {HAPAX_STATE_FAILED, HAPAX_STATE_PARKED};
	struct hx_transition_rules rules = make_rules();
	struct hx_transition transition;
	struct hapax_record storage;

	(void)state;
	for (unsigned row = ROW_FAILED; row < ROW_COUNT; row++) {
		make((enum row)row, true, &storage);
		/* Lapsed a moment ago is not due: the ttl, 5 s, counts from the lapse. */
		rules.now_ms = NOW;
		hx_transition_sweep(&storage, &rules, &transition);
		assert_int_equal(transition.effect, HX_EFFECT_NONE);
	}
	for (unsigned i = 0; i < 2; i++) {
		make(i ? ROW_LAPSED_PARK : ROW_LAPSED, true, &storage);
		rules.now_ms = NOW + 4999;
		hx_transition_sweep(&storage, &rules, &transition);
		assert_int_equal(transition.effect, HX_EFFECT_NONE);
		rules.now_ms = NOW + 5000;
		hx_transition_sweep(&storage, &rules, &transition);
		assert_int_equal(transition.effect, HX_EFFECT_PUT);
		assert_int_equal(transition.next.state, settled[i]);
		assert_int_equal(transition.next.token, TOKEN);
		assert_int_equal(transition.next.attempt, 3);
		assert_true(transition.next.error.size > 0);
		assert_true(hx_record_is_valid(&transition.next));
		storage.ttl_ms = HAPAX_TTL_FOREVER;
		rules.now_ms = INT64_MAX - 1;
		hx_transition_sweep(&storage, &rules, &transition);
		assert_int_equal(transition.effect, HX_EFFECT_NONE);
	}
}

/* A load may bring a record from a store whose clock is ahead, whatever its lease says. */
static void sweep_settles_what_changed_later(void **state)
{
	struct hx_transition_rules rules = make_rules();
	struct hx_transition transition;
	struct hapax_record storage;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		make(i ? ROW_LAPSED_PARK : ROW_LAPSED, true, &storage);
		rules.now_ms = NOW + 5000;
		storage.first_seen_ms = storage.changed_ms = rules.now_ms + 1000;
		hx_transition_sweep(&storage, &rules, &transition);
		assert_int_equal(transition.effect, HX_EFFECT_PUT);
		assert_int_equal(transition.next.changed_ms, storage.changed_ms);
		assert_true(hx_record_is_valid(&transition.next));
	}
}

static void decisions_follow_answers(void **state)
{
	struct hapax_op op = make_op(HAPAX_OP_CLAIM);

	(void)state;
	op.outcome = HAPAX_OUTCOME_ACQUIRED;
	assert_int_equal(hx_transition_decision(&op), HAPAX_DECISION_ACQUIRED);
	assert_true(hx_transition_is_go(&op));
	op.outcome = HAPAX_OUTCOME_REPLAY;
	assert_int_equal(hx_transition_decision(&op), HAPAX_DECISION_REPLAY);
	assert_false(hx_transition_is_go(&op));
	op.outcome = HAPAX_OUTCOME_SKIPPED;
	assert_int_equal(hx_transition_decision(&op), -1);
	assert_false(hx_transition_is_go(&op));
	op = make_op(HAPAX_OP_COMPLETE);
	op.outcome = HAPAX_OUTCOME_APPLIED;
	assert_int_equal(hx_transition_decision(&op), HAPAX_DECISION_COMPLETED);
	assert_true(hx_transition_is_go(&op));
	op.status = HAPAX_ERR_FENCED;
	op.outcome = HAPAX_OUTCOME_NONE;
	assert_int_equal(hx_transition_decision(&op), HAPAX_DECISION_FENCED);
	assert_false(hx_transition_is_go(&op));
	op.status = HAPAX_ERR_LIMIT;
	assert_int_equal(hx_transition_decision(&op), HAPAX_DECISION_LIMIT);
	op.status = HAPAX_ERR_INVALID;
	assert_int_equal(hx_transition_decision(&op), -1);
	op = make_op(HAPAX_OP_LOOKUP);
	op.outcome = HAPAX_OUTCOME_FOUND;
	assert_int_equal(hx_transition_decision(&op), -1);
	assert_false(hx_transition_is_go(&op));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claim_and_check_answer_by_the_table),
		cmocka_unit_test(token_operations_go_by_the_table),
		cmocka_unit_test(own_attempt_id_restarts_the_lease),
		cmocka_unit_test(result_is_kept_or_cut),
		cmocka_unit_test(times_saturate),
		cmocka_unit_test(clock_reading_may_be_older_than_the_record),
		cmocka_unit_test(claim_without_lease_has_lapsed),
		cmocka_unit_test(sweep_settles_what_is_due),
		cmocka_unit_test(sweep_settles_what_changed_later),
		cmocka_unit_test(decisions_follow_answers),
	};

	return cmocka_run_group_tests_name("transition", tests, NULL, NULL);
}
