/* SPDX-License-Identifier: Apache-2.0 */
/* cases_cause.c - A10: a record remembers the event that its key was claimed for. */
#include "conformance/cases.h"

#include <string.h>

#include "base/bytes.h"

/* An event of that id, in bytes that live until the next one. */
static struct hapax_bytes event(const char *id)
{
	static unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	const struct hapax_cause cause = {
		.id = hapax_bytes_from_text(id),
		.type = HX_BYTES_LIT("order.created"),
		.source = HX_BYTES_LIT("/shop/\n\"7\""),
		.time_ms = CASE_EPOCH_MS - 1234,
	};

	return hapax_cause_write(&cause, buffer);
}

/* Claim key for the event of that id; NULL: for none. */
static uint64_t claim_for(
	struct store_case *c, const char *key, const char *id, enum hapax_outcome outcome)
{
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, key);

	if (id)
		op.cause = event(id);
	must_run(c, &op, outcome);
	return op.token;
}

/* c->record has the event of that id; NULL: none. */
static void must_have(const struct store_case *c, const char *id)
{
	struct hapax_cause cause;

	if (!id) {
		assert_int_equal(c->record.cause.size, 0);
		return;
	}
	assert_int_equal(hapax_cause_read(c->record.cause, &cause), 1);
	assert_true(case_bytes_are(cause.id, id, strlen(id)));
	assert_true(case_bytes_are(cause.type, "order.created", 13));
	assert_true(case_bytes_are(cause.source, "/shop/\n\"7\"", 10));
	assert_int_equal(cause.time_ms, CASE_EPOCH_MS - 1234);
}

static void must_keep(struct store_case *c, const char *key, enum hapax_state state, const char *id)
{
	assert_int_equal(case_state(c, key), state);
	must_have(c, id);
}

static int scanned(const struct hapax_record *record, void *context)
{
	struct store_case *c = context;

	c->record = *record;
	must_have(c, "evt_1");
	return 0;
}

/* Duplicates get the first delivery's event, not their own. */
static void an_event_is_remembered(void **state)
{
	struct store_case *c = *state;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {0};
	uint64_t token = claim_for(c, "k", "evt_1", HAPAX_OUTCOME_ACQUIRED);

	must_have(c, "evt_1");
	(void)claim_for(c, "k", "evt_2", HAPAX_OUTCOME_IN_PROGRESS);
	must_have(c, "evt_1");
	assert_int_equal(case_complete(c, "k", token), HAPAX_OK);
	must_have(c, "evt_1");
	(void)claim_for(c, "k", "evt_2", HAPAX_OUTCOME_REPLAY);
	must_have(c, "evt_1");
	(void)claim_for(c, "k", NULL, HAPAX_OUTCOME_REPLAY);
	must_have(c, "evt_1");
	must_keep(c, "k", HAPAX_STATE_DONE, "evt_1");
	while (!cursor.done)
		assert_int_equal(
			hapax_store_scan(c->store, &scan, &cursor, scanned, c, NULL), HAPAX_OK);
}

static void an_event_survives_closing(void **state)
{
	struct store_case *c = *state;
	uint64_t token = claim_for(c, "done", "evt_1", HAPAX_OUTCOME_ACQUIRED);

	assert_int_equal(case_complete(c, "done", token), HAPAX_OK);
	(void)claim_for(c, "held", "evt_2", HAPAX_OUTCOME_ACQUIRED);
	store_case_reopen(c);
	must_keep(c, "done", HAPAX_STATE_DONE, "evt_1");
	must_keep(c, "held", HAPAX_STATE_CLAIMED, "evt_2");
}

/* Who runs, for what: a takeover has its own event, or none. */
static void a_takeover_brings_its_event(void **state)
{
	struct store_case *c = *state;

	(void)claim_for(c, "k", "evt_1", HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, 1000);
	uint64_t token = claim_for(c, "k", "evt_22", HAPAX_OUTCOME_ACQUIRED);

	must_keep(c, "k", HAPAX_STATE_CLAIMED, "evt_22");
	assert_int_equal(case_release(c, "k", token), HAPAX_OK);
	(void)claim_for(c, "k", NULL, HAPAX_OUTCOME_ACQUIRED);
	must_have(c, NULL);
	must_keep(c, "k", HAPAX_STATE_CLAIMED, NULL);
	store_case_advance(c, 1000);
	(void)claim_for(c, "k", "evt_3", HAPAX_OUTCOME_ACQUIRED);
	must_keep(c, "k", HAPAX_STATE_CLAIMED, "evt_3");
}

/* A lost answer: the claim is repeated with its own id, and is the same claim. */
static void a_repeated_claim_keeps_the_event(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");
	struct hapax_op again = op;

	op.cause = event("evt_1");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	again.cause = event("evt_2");
	must_run(c, &again, HAPAX_OUTCOME_ACQUIRED);
	must_have(c, "evt_1");
	assert_int_equal(again.token, op.token);
	must_keep(c, "k", HAPAX_STATE_CLAIMED, "evt_1");
}

static void the_holder_keeps_the_event(void **state)
{
	static char body[5000];
	const struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}};
	struct store_case *c = *state;
	uint64_t token = claim_for(c, "k", "evt_1", HAPAX_OUTCOME_ACQUIRED);
	struct hapax_op op;

	assert_int_equal(case_renew(c, "k", token), HAPAX_OK);
	must_keep(c, "k", HAPAX_STATE_CLAIMED, "evt_1");
	assert_int_equal(case_park(c, "k", token), HAPAX_OK);
	must_keep(c, "k", HAPAX_STATE_PARKED, "evt_1");
	assert_int_equal(case_renew(c, "k", token), HAPAX_OK);
	must_keep(c, "k", HAPAX_STATE_CLAIMED, "evt_1");
	assert_int_equal(case_release(c, "k", token), HAPAX_OK);
	must_keep(c, "k", HAPAX_STATE_FAILED, "evt_1");
	op = case_op_token(c, HAPAX_OP_COMPLETE, "k", token);
	op.result = &result;
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	must_have(c, "evt_1");
	must_keep(c, "k", HAPAX_STATE_DONE, "evt_1");

	/* A caller that asks for no record lets a store read less of it. */
	op.token = claim_for(c, "other", "evt_2", HAPAX_OUTCOME_ACQUIRED);
	op.key = hapax_bytes_from_text("other");
	op.record = NULL;
	assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_OK);
	must_keep(c, "other", HAPAX_STATE_DONE, "evt_2");
	assert_int_equal(c->record.result.body.size, sizeof(body));
}

static void a_lapsed_claim_keeps_the_event(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "parks");

	op.on_lapse = HAPAX_ON_LAPSE_PARK;
	op.cause = event("evt_1");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	(void)claim_for(c, "fails", "evt_2", HAPAX_OUTCOME_ACQUIRED);
	/* The lease, and the TTL after it. */
	store_case_advance(c, 1000 + 60000);
	assert_int_equal(case_sweep(c).lapsed, 2);
	must_keep(c, "parks", HAPAX_STATE_PARKED, "evt_1");
	must_keep(c, "fails", HAPAX_STATE_FAILED, "evt_2");
	/* The next claim parks it itself. */
	op = case_op(c, HAPAX_OP_CLAIM, "next");
	op.on_lapse = HAPAX_ON_LAPSE_PARK;
	op.cause = event("evt_3");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	store_case_advance(c, 1000);
	(void)claim_for(c, "next", "evt_4", HAPAX_OUTCOME_PARKED);
	must_keep(c, "next", HAPAX_STATE_PARKED, "evt_3");
}

/* A mark takes 38 bytes: nothing of an event is in it, whatever the caller says. */
static void marks_and_values_have_none(void **state)
{
	struct store_case *c = *state;
	struct hapax_op op = case_op(c, HAPAX_OP_CHECK, "mark");
	struct hapax_record record;

	op.cause = event("evt_1");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	must_keep(c, "mark", HAPAX_STATE_DONE, NULL);
	record = c->record;
	op = case_op(c, HAPAX_OP_SET, "value");
	op.cause = event("evt_1");
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	must_keep(c, "value", HAPAX_STATE_DONE, NULL);
	/* A mark over the end of a claim is a mark. */
	assert_int_equal(
		case_release(c, "k", claim_for(c, "k", "evt_1", HAPAX_OUTCOME_ACQUIRED)), HAPAX_OK);
	op = case_op(c, HAPAX_OP_CHECK, "k");
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	must_keep(c, "k", HAPAX_STATE_DONE, NULL);
	assert_int_equal(
		case_release(c, "s", claim_for(c, "s", "evt_1", HAPAX_OUTCOME_ACQUIRED)), HAPAX_OK);
	op = case_op(c, HAPAX_OP_SET, "s");
	must_run(c, &op, HAPAX_OUTCOME_APPLIED);
	must_keep(c, "s", HAPAX_STATE_DONE, NULL);

	record.cause = event("evt_1");
	op = case_op(c, HAPAX_OP_LOAD, "mark");
	op.load = &record;
	assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
}

/* The longest event there is, and one that must be cut between two characters. */
static void long_events_are_cut(void **state)
{
	struct store_case *c = *state;
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	char text[300], euros[300];
	struct hapax_cause cause = {.time_ms = -1}, kept;
	struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");

	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < sizeof(euros); i += 3)
		memcpy(euros + i, "\xe2\x82\xac", 3);
	cause.id = cause.source = (struct hapax_bytes){text, sizeof(text)};
	cause.type = (struct hapax_bytes){euros, sizeof(euros)};
	op.cause = hapax_cause_write(&cause, buffer);
	assert_int_equal(op.cause.size, HAPAX_CAUSE_SIZE_MAX);
	op.owner = cause.id;
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_park(c, "k", op.token), HAPAX_OK);
	assert_int_equal(case_state(c, "k"), HAPAX_STATE_PARKED);
	assert_true(case_bytes_are(c->record.cause, buffer, sizeof(buffer)));

	memcpy(text + 253, "\xe2\x82\xac", 3);
	cause = (struct hapax_cause){.id = {text, sizeof(text)}};
	op = case_op(c, HAPAX_OP_CLAIM, "cut");
	op.cause = hapax_cause_write(&cause, buffer);
	must_run(c, &op, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(case_complete(c, "cut", op.token), HAPAX_OK);
	assert_int_equal(case_state(c, "cut"), HAPAX_STATE_DONE);
	assert_int_equal(hapax_cause_read(c->record.cause, &kept), 1);
	assert_true(case_bytes_are(kept.id, text, 253));
	assert_int_equal(kept.time_ms, 0);
}

/* I13: nothing is done for bytes that are not an event. */
static void a_wrong_event_is_refused(void **state)
{
	static const struct hapax_bytes wrong[] = {
		{NULL, 12},
		{"x", 1},
		{"\1\0\0\0\0\0\0\0\0\0\0", 11},
		{"\1\0\0\0\0\0\0\0\0\0\0ab", 13},
		{"\1\0\0\0\0\0\0\0\0\0\0\xff", 12},
		{"\1\0\0\0\0\0\0\0\0\0\0\0", 12},
		{"\1\0\0\xff\xff\xff\xff\xff\xff\xff\x7fx", 12},
	};
	struct store_case *c = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");

		op.cause = wrong[i];
		assert_int_equal(case_run(c, &op), HAPAX_ERR_INVALID);
	}
	assert_int_equal(case_stats(c).keys, 0);
}

static void a_group_shares_the_event(void **state)
{
	struct store_case *c = *state;
	struct hapax_op ops[3];
	enum hapax_outcome outcome;
	size_t index;

	for (int i = 0; i < 3; i++)
		ops[i] = case_op(c, HAPAX_OP_CLAIM, (const char *[]){"a", "b", "c"}[i]);
	ops[0].cause = event("evt_1");
	assert_int_equal(hapax_store_claim_all(c->store, ops, 3, &outcome, &index, NULL), HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	must_keep(c, "a", HAPAX_STATE_CLAIMED, "evt_1");
	must_keep(c, "b", HAPAX_STATE_CLAIMED, "evt_1");
	must_keep(c, "c", HAPAX_STATE_CLAIMED, "evt_1");
}

const struct conformance_case cause_cases[] = {
	{"A10: an event is remembered", an_event_is_remembered, NEEDS_NOTHING},
	{"A10: an event survives closing", an_event_survives_closing, NEEDS_DURABLE},
	{"A10: a takeover brings its event", a_takeover_brings_its_event, NEEDS_NOTHING},
	{"A10: a repeated claim keeps the event", a_repeated_claim_keeps_the_event, NEEDS_NOTHING},
	{"A10: the holder keeps the event", the_holder_keeps_the_event, NEEDS_NOTHING},
	{"A10: a lapsed claim keeps the event", a_lapsed_claim_keeps_the_event, NEEDS_NOTHING},
	{"A10: marks and values have none", marks_and_values_have_none, NEEDS_NOTHING},
	{"A10: long events are cut", long_events_are_cut, NEEDS_NOTHING},
	{"I13: a wrong event is refused", a_wrong_event_is_refused, NEEDS_NOTHING},
	{"A10: a group shares the event", a_group_shares_the_event, NEEDS_WHOLE},
	{NULL, NULL, NEEDS_NOTHING},
};
