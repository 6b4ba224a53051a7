/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_checker.c - the checker itself: it accepts what a store really did, however
 * the calls overlapped, and rejects each of the lies that it is there to find.
 */
#include "conformance/checker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "support/scale.h"
#include "support/store_case.h"

enum { EVENTS = 40, LEASE = 10, TTL = 25 };

/* ------------------------------------------------------------------ true histories */

static void record_call(
	struct store_case *c, const char *key, struct checker_event *event, size_t at)
{
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {[15] = 1}; /* never all zeros */
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = {&event->value, sizeof(event->value)}};
	struct hapax_op op = case_op(c, event->type, key);

	memcpy(attempt_id, &event->attempt_number, sizeof(event->attempt_number));
	op.attempt_id = attempt_id;
	op.lease_ms = event->lease_ms;
	op.ttl_ms = event->ttl_ms;
	op.token = event->token;
	op.result = event->type == HAPAX_OP_COMPLETE ? &result : NULL;
	op.flags = event->type == HAPAX_OP_FORGET ? HAPAX_OP_FORCE : 0;
	case_run(c, &op);
	event->begun = event->ended = 1000 + at * 10;
	event->now_first_ms = event->now_last_ms = CASE_EPOCH_MS + c->clock.boot_ms;
	event->status = op.status;
	event->outcome = op.outcome;
	event->attempt = op.attempt;
	event->state = c->record.state;
	if (op.outcome == HAPAX_OUTCOME_ACQUIRED || op.outcome == HAPAX_OUTCOME_FOUND)
		event->token = op.token;
	if (op.outcome == HAPAX_OUTCOME_REPLAY || op.outcome == HAPAX_OUTCOME_FOUND) {
		event->value = 0;
		if (c->record.result.body.size == sizeof(event->value))
			memcpy(&event->value, c->record.result.body.data, sizeof(event->value));
	}
}

/* One after the other, on a store. */
static void make_history(
	struct store_case *c, struct hx_prng *prng, uint64_t number, struct checker_event *events)
{
	static const enum hapax_op_type types[] = {
		HAPAX_OP_CLAIM,    HAPAX_OP_CLAIM,   HAPAX_OP_CLAIM, HAPAX_OP_CLAIM,
		HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_RENEW, HAPAX_OP_PARK,
		HAPAX_OP_LOOKUP,   HAPAX_OP_FORGET,  HAPAX_OP_CHECK};
	uint64_t token = 1;
	char key[32];

	snprintf(key, sizeof(key), "key %llu", (unsigned long long)number);
	for (size_t i = 0; i < EVENTS; i++) {
		events[i] = (struct checker_event){
			.type = types[hx_prng_below(prng, sizeof(types) / sizeof(types[0]))],
			.attempt_number = 1 + i - hx_prng_below(prng, 2),
			.lease_ms = LEASE,
			.ttl_ms = TTL,
			.value = 100 + i};
		if (events[i].type != HAPAX_OP_LOOKUP && events[i].type != HAPAX_OP_CLAIM &&
		    events[i].type != HAPAX_OP_CHECK)
			events[i].token = hx_prng_below(prng, 5) ? token : token - (token > 1);
		if (hx_prng_below(prng, 3) == 0)
			store_case_advance(c, (int64_t)hx_prng_below(prng, LEASE + 3));
		record_call(c, key, &events[i], i);
		if (events[i].outcome == HAPAX_OUTCOME_ACQUIRED)
			token = events[i].token;
	}
}

/* The same calls, each begun earlier and ended later by something: still true. */
static void blur(struct hx_prng *prng, struct checker_event *events)
{
	for (size_t i = 0; i < EVENTS; i++) {
		events[i].begun -= 1 + hx_prng_below(prng, 45);
		events[i].ended += 1 + hx_prng_below(prng, 45);
		events[i].now_first_ms -= (int64_t)hx_prng_below(prng, 3);
		events[i].now_last_ms += (int64_t)hx_prng_below(prng, 3);
	}
	/* The order in the array means nothing. */
	for (size_t i = EVENTS - 1; i > 0; i--) {
		size_t k = hx_prng_below(prng, i + 1);
		struct checker_event event = events[i];

		events[i] = events[k];
		events[k] = event;
	}
}

static void true_histories_are_accepted(void **state)
{
	uint64_t count = scale_count(100000, 3000);
	struct checker_event events[EVENTS];
	double begun = scale_seconds();
	struct store_case c;
	struct hx_prng prng;
	uint64_t gave_up = 0;

	(void)state;
	hx_prng_seed(&prng, 41);
	store_case_begin(&c, "memory:");
	for (uint64_t i = 0; i < count; i++) {
		make_history(&c, &prng, i, events);
		assert_int_equal(checker_run(events, EVENTS), CHECKER_ACCEPTED);
		blur(&prng, events);
		enum checker_verdict verdict = checker_run(events, EVENTS);
		if (verdict == CHECKER_REJECTED)
			checker_print(events, EVENTS);
		assert_int_not_equal(verdict, CHECKER_REJECTED);
		gave_up += verdict == CHECKER_GAVE_UP;
	}
	store_case_done(&c);
	scale_report(
		"true histories accepted by the checker", count, scale_seconds() - begun, true);
	assert_true(gave_up <= count / 100);
}

/* Change one answer of a history without overlap: then it is a lie. */
static bool tell_a_lie(struct hx_prng *prng, struct checker_event *event)
{
	static const enum hapax_outcome asked[] = {
		HAPAX_OUTCOME_ACQUIRED, HAPAX_OUTCOME_REPLAY, HAPAX_OUTCOME_IN_PROGRESS,
		HAPAX_OUTCOME_PARKED};

	switch (event->type) {
	case HAPAX_OP_CLAIM:
	case HAPAX_OP_CHECK: {
		enum hapax_outcome other = asked[hx_prng_below(prng, 4)];

		if (other == event->outcome)
			return false;
		event->outcome = other;
		if (other == HAPAX_OUTCOME_ACQUIRED)
			event->token = 1 + hx_prng_below(prng, 1000000);
		return true;
	}
	case HAPAX_OP_RENEW:
	case HAPAX_OP_COMPLETE:
	case HAPAX_OP_RELEASE:
	case HAPAX_OP_PARK:
		if (event->status == HAPAX_OK) {
			event->status = HAPAX_ERR_FENCED;
			event->outcome = HAPAX_OUTCOME_NONE;
		} else {
			event->status = HAPAX_OK;
			event->outcome = HAPAX_OUTCOME_APPLIED;
		}
		return true;
	case HAPAX_OP_LOOKUP:
		if (event->outcome == HAPAX_OUTCOME_FOUND)
			event->token ^= 1;
		else
			event->outcome = HAPAX_OUTCOME_FOUND;
		return true;
	default: return false;
	}
}

static void lies_are_rejected(void **state)
{
	uint64_t count = scale_count(100000, 3000);
	struct checker_event events[EVENTS];
	double begun = scale_seconds();
	struct store_case c;
	struct hx_prng prng;
	uint64_t lies = 0;

	(void)state;
	hx_prng_seed(&prng, 42);
	store_case_begin(&c, "memory:");
	for (uint64_t i = 0; lies < count; i++) {
		make_history(&c, &prng, i, events);
		if (!tell_a_lie(&prng, &events[hx_prng_below(&prng, EVENTS)]))
			continue;
		lies++;
		if (checker_run(events, EVENTS) != CHECKER_REJECTED)
			checker_print(events, EVENTS);
		assert_int_equal(checker_run(events, EVENTS), CHECKER_REJECTED);
	}
	store_case_done(&c);
	scale_report(
		"false histories rejected by the checker", lies, scale_seconds() - begun, true);
}

/* ------------------------------------------------------------------ lies by hand */

static struct checker_event claim(uint64_t begun, uint64_t ended, uint64_t number, uint64_t token)
{
	return (struct checker_event){
		.begun = begun,
		.ended = ended,
		.type = HAPAX_OP_CLAIM,
		.attempt_number = number,
		.lease_ms = LEASE,
		.ttl_ms = TTL,
		.token = token,
		.attempt = 1,
		.outcome = token ? HAPAX_OUTCOME_ACQUIRED : HAPAX_OUTCOME_IN_PROGRESS};
}

static struct checker_event with_token(
	uint64_t begun, uint64_t ended, enum hapax_op_type type, uint64_t token)
{
	return (struct checker_event){
		.begun = begun,
		.ended = ended,
		.type = type,
		.lease_ms = LEASE,
		.token = token,
		.value = token,
		.outcome = HAPAX_OUTCOME_APPLIED};
}

/* I1b: two winners, even if they overlap in every way. */
static void two_live_holders_are_rejected(void **state)
{
	struct checker_event events[] = {claim(1, 10, 1, 5), claim(2, 9, 2, 6)};

	(void)state;
	events[1].attempt = 2;
	assert_int_equal(checker_run(events, 2), CHECKER_REJECTED);
	/* With a release that may lie between them it is fine. */
	struct checker_event good[] = {events[0], events[1], with_token(3, 8, HAPAX_OP_RELEASE, 5)};
	assert_int_equal(checker_run(good, 3), CHECKER_ACCEPTED);
	/* Not if the release began after both had ended. */
	good[2] = with_token(11, 12, HAPAX_OP_RELEASE, 5);
	assert_int_equal(checker_run(good, 3), CHECKER_REJECTED);
	/* Nor if time cannot have passed; and so if it can. */
	events[1].now_last_ms = LEASE - 1;
	assert_int_equal(checker_run(events, 2), CHECKER_REJECTED);
	events[1].now_last_ms = LEASE;
	assert_int_equal(checker_run(events, 2), CHECKER_ACCEPTED);
}

/* I5: a token that falls, or comes back. */
static void falling_tokens_are_rejected(void **state)
{
	struct checker_event events[] = {
		claim(1, 2, 1, 5), with_token(3, 4, HAPAX_OP_RELEASE, 5), claim(5, 6, 2, 4)};

	(void)state;
	events[2].attempt = 2;
	assert_int_equal(checker_run(events, 3), CHECKER_REJECTED);
	events[2].token = 5;
	assert_int_equal(checker_run(events, 3), CHECKER_REJECTED);
	events[2].token = 6;
	assert_int_equal(checker_run(events, 3), CHECKER_ACCEPTED);
}

/* I1: a second success; I5: a stale one that counted. */
static void second_success_is_rejected(void **state)
{
	struct checker_event events[] = {
		claim(1, 2, 1, 5), with_token(3, 4, HAPAX_OP_COMPLETE, 5), claim(5, 6, 2, 6)};
	struct checker_event stale[] = {
		claim(1, 2, 1, 5), with_token(3, 4, HAPAX_OP_RELEASE, 5), claim(5, 6, 2, 6),
		with_token(7, 8, HAPAX_OP_COMPLETE, 5)};

	(void)state;
	events[1].ttl_ms = TTL;
	assert_int_equal(checker_run(events, 3), CHECKER_REJECTED);
	events[2].now_first_ms = events[2].now_last_ms = TTL;
	assert_int_equal(checker_run(events, 3), CHECKER_ACCEPTED);
	stale[2].attempt = 2;
	assert_int_equal(checker_run(stale, 4), CHECKER_REJECTED);
	stale[3].status = HAPAX_ERR_FENCED;
	stale[3].outcome = HAPAX_OUTCOME_NONE;
	assert_int_equal(checker_run(stale, 4), CHECKER_ACCEPTED);
}

/* A result that was never stored, and "in progress" without a run. */
static void inventions_are_rejected(void **state)
{
	struct checker_event events[] = {
		claim(1, 2, 1, 5), with_token(3, 4, HAPAX_OP_COMPLETE, 5), claim(5, 6, 2, 0)};

	(void)state;
	events[2].outcome = HAPAX_OUTCOME_REPLAY;
	events[2].value = 6;
	assert_int_equal(checker_run(events, 3), CHECKER_REJECTED);
	events[2].value = 5;
	assert_int_equal(checker_run(events, 3), CHECKER_ACCEPTED);
	struct checker_event alone = claim(1, 2, 1, 0);
	assert_int_equal(checker_run(&alone, 1), CHECKER_REJECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(true_histories_are_accepted),
		cmocka_unit_test(lies_are_rejected),
		cmocka_unit_test(two_live_holders_are_rejected),
		cmocka_unit_test(falling_tokens_are_rejected),
		cmocka_unit_test(second_success_is_rejected),
		cmocka_unit_test(inventions_are_rejected),
	};

	return cmocka_run_group_tests_name("checker", tests, NULL, NULL);
}
