/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transition.c - the rules of the record.
 *
 * The answer to a claim or a check is the first row that applies:
 *
 *	record                                      claim          writes
 *	absent, expired, FAILED                     ACQUIRED       CLAIMED, fresh token
 *	CLAIMED, PARKED, DONE; other fingerprint    MISMATCH       -
 *	CLAIMED by this attempt_id                  ACQUIRED       a new lease, same token
 *	CLAIMED, lease alive                        IN_PROGRESS    -
 *	CLAIMED, lapsed, on_lapse retry             ACQUIRED       CLAIMED, fresh token
 *	CLAIMED, lapsed, on_lapse park              PARKED         PARKED
 *	PARKED                                      PARKED         -
 *	DONE                                        REPLAY         -
 *
 * The table by_token below covers operations that carry the record's token. Without that token
 * an operation is FENCED and changes nothing.
 */
#include "record/transition.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/record.h"

/* The effect of an operation with the right token on a record in a given state. */
enum verdict {
	VERDICT_FENCED,
	VERDICT_KEEP, /* answer APPLIED, change nothing: a repeated call */
	VERDICT_CLAIM,
	VERDICT_DONE,
	VERDICT_FAIL,
	VERDICT_PARK,
};

static const unsigned char by_token[][HAPAX_STATE_PARKED + 1] = {
	[HAPAX_OP_RENEW] =
		{
			[HAPAX_STATE_CLAIMED] = VERDICT_CLAIM,
			[HAPAX_STATE_PARKED] = VERDICT_CLAIM,
			[HAPAX_STATE_FAILED] = VERDICT_FENCED,
			[HAPAX_STATE_DONE] = VERDICT_FENCED,
		},
	[HAPAX_OP_COMPLETE] =
		{
			[HAPAX_STATE_CLAIMED] = VERDICT_DONE,
			[HAPAX_STATE_PARKED] = VERDICT_DONE,
			[HAPAX_STATE_FAILED] =
				VERDICT_DONE, /* no later run exists: the token proves it */
			[HAPAX_STATE_DONE] = VERDICT_KEEP,
		},
	[HAPAX_OP_RELEASE] =
		{
			[HAPAX_STATE_CLAIMED] = VERDICT_FAIL,
			[HAPAX_STATE_PARKED] = VERDICT_FAIL,
			[HAPAX_STATE_FAILED] = VERDICT_KEEP,
			[HAPAX_STATE_DONE] = VERDICT_FENCED,
		},
	[HAPAX_OP_PARK] =
		{
			[HAPAX_STATE_CLAIMED] = VERDICT_PARK,
			[HAPAX_STATE_PARKED] = VERDICT_KEEP,
			[HAPAX_STATE_FAILED] = VERDICT_FENCED,
			[HAPAX_STATE_DONE] = VERDICT_FENCED,
		},
};

/* The end of a span that begins now. Saturates: late is allowed, early is not. */
static int64_t time_after(int64_t now_ms, int64_t span_ms)
{
	int64_t end;

	assert(span_ms >= 0);
	if (span_ms == HAPAX_TTL_FOREVER || __builtin_add_overflow(now_ms, span_ms, &end))
		return HAPAX_TIME_NEVER;
	return end;
}

bool hx_transition_tells_token(const struct hapax_op *op)
{
	return op->outcome == HAPAX_OUTCOME_ACQUIRED || op->outcome == HAPAX_OUTCOME_APPLIED ||
		op->outcome == HAPAX_OUTCOME_FOUND;
}

/* How long the store keeps a record that op writes. */
static int64_t ttl_of(const struct hapax_op *op, int64_t now_ms)
{
	int64_t left_ms;

	if (!(op->flags & HAPAX_OP_TTL_IS_TIME))
		return op->ttl_ms;
	/* Counted from the same now, it ends at exactly the time that was given. */
	assert(op->type == HAPAX_OP_SET || op->type == HAPAX_OP_EXPIRE);
	left_ms = op->ttl_ms - now_ms;
	return left_ms < 1 ? 1 : left_ms < HX_TTL_MS_MAX ? left_ms : HX_TTL_MS_MAX;
}

void hx_transition_describe(const struct hapax_record *record, int64_t now_ms, struct hapax_op *op)
{
	assert(op->outcome != HAPAX_OUTCOME_NONE);
	assert(record->first_seen_ms <= record->changed_ms);
	if (!hx_transition_has_token(op))
		op->token = hx_transition_tells_token(op) ? record->token : 0;
	op->attempt = record->attempt;
	op->first_seen_ms = record->first_seen_ms;
	op->expires_ms = record->expires_ms;
	op->lease_left_ms = 0;
	if (record->state == HAPAX_STATE_CLAIMED && record->lease_ends_ms > now_ms)
		op->lease_left_ms = record->lease_ends_ms - now_ms;
	/* An operation that brought a token names the record's own, or it would be FENCED. */
	assert(op->token == 0 || op->token == record->token);
}

static void answer(struct hapax_op *op, enum hapax_outcome outcome)
{
	assert(outcome > HAPAX_OUTCOME_NONE);
	assert(outcome < HAPAX_OUTCOME_SKIPPED); /* decided by a group, not by a record */
	op->status = HAPAX_OK;
	op->outcome = outcome;
}

static void answer_record(
	struct hapax_op *op, enum hapax_outcome outcome, const struct hapax_record *record,
	int64_t now_ms)
{
	answer(op, outcome);
	hx_transition_describe(record, now_ms, op);
}

static void drop_result(struct hapax_record *record)
{
	memset(&record->result, 0, sizeof(record->result));
}

static void drop_people_text(struct hapax_record *record)
{
	record->owner = hx_bytes(NULL, 0);
	record->error = hx_bytes(NULL, 0);
}

static void enter_claimed(
	struct hapax_record *next, const struct hapax_op *op,
	const struct hx_transition_rules *rules)
{
	assert(next->changed_ms <= rules->now_ms);
	/* A renewal does not enter the state: the record was already in it. */
	if (next->state != HAPAX_STATE_CLAIMED)
		next->changed_ms = rules->now_ms;
	next->state = HAPAX_STATE_CLAIMED;
	next->expires_ms = HAPAX_TIME_NEVER;
	next->lease_ends_ms =
		rules->without_lease ? rules->now_ms : time_after(rules->now_ms, op->lease_ms);
	assert(next->lease_ends_ms >= rules->now_ms);
}

static void enter_failed(struct hapax_record *next, struct hapax_bytes error, int64_t now_ms)
{
	/* The answer DONE is final. A repeated release changes nothing. */
	assert(next->state == HAPAX_STATE_CLAIMED || next->state == HAPAX_STATE_PARKED);
	assert(next->changed_ms <= now_ms);
	next->state = HAPAX_STATE_FAILED;
	next->changed_ms = now_ms;
	next->lease_ends_ms = 0;
	next->expires_ms = time_after(now_ms, next->ttl_ms);
	assert(next->expires_ms >= now_ms);
	next->error = error;
	memset(next->attempt_id, 0, sizeof(next->attempt_id));
}

static void enter_parked(struct hapax_record *next, struct hapax_bytes error, int64_t now_ms)
{
	assert(next->state == HAPAX_STATE_CLAIMED);
	assert(next->changed_ms <= now_ms);
	next->state = HAPAX_STATE_PARKED;
	next->changed_ms = now_ms;
	next->lease_ends_ms = 0;
	next->expires_ms = HAPAX_TIME_NEVER;
	next->error = error;
}

/* A body over the limit becomes a tombstone: done stays done, only the body is missing. */
static void enter_done(
	struct hapax_record *next, const struct hapax_result *result,
	const struct hx_transition_rules *rules)
{
	assert(next->state != HAPAX_STATE_DONE);
	assert(next->changed_ms <= rules->now_ms);
	next->state = HAPAX_STATE_DONE;
	next->changed_ms = rules->now_ms;
	next->lease_ends_ms = 0;
	next->expires_ms = time_after(rules->now_ms, next->ttl_ms);
	assert(next->expires_ms >= rules->now_ms);
	memset(next->attempt_id, 0, sizeof(next->attempt_id));
	drop_people_text(next);
	drop_result(next);
	if (result == NULL)
		return;
	next->result = *result;
	if (result->body.size > rules->result_size_max)
		hx_record_result_omit_body(&next->result);
	assert(next->result.body.size <= rules->result_size_max);
}

/* The record of a key that starts over with op. */
static void begin_record(
	struct hapax_record *next, const struct hapax_op *op, enum hapax_origin origin,
	const struct hx_transition_rules *rules)
{
	memset(next, 0, sizeof(*next));
	next->origin = origin;
	next->attempt = 1;
	next->token = rules->fresh_token;
	next->first_seen_ms = rules->now_ms;
	next->changed_ms = rules->now_ms;
	next->expires_ms = HAPAX_TIME_NEVER;
	next->ttl_ms = ttl_of(op, rules->now_ms);
	next->tenant = op->tenant;
	next->group = op->group;
	next->key = op->key;
}

/* A claim or a check that may run: it takes a token. A check is done at once. */
static void acquire(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	struct hapax_record *next = &ret->next;
	bool is_check = op->type == HAPAX_OP_CHECK;

	assert(is_check || op->type == HAPAX_OP_CLAIM);
	/* Only a failed run and one whose lease lapsed leave their key to the next one. */
	assert(old == NULL || old->state == HAPAX_STATE_FAILED ||
	       hx_record_is_lapsed(old, rules->now_ms));
	begin_record(next, op, is_check ? HAPAX_ORIGIN_CHECK : HAPAX_ORIGIN_CLAIM, rules);
	if (old != NULL) {
		next->first_seen_ms = old->first_seen_ms;
		next->attempt = old->attempt == UINT32_MAX ? UINT32_MAX : old->attempt + 1;
	}
	if (op->fingerprint != NULL) {
		next->fingerprint_size = HAPAX_FINGERPRINT_SIZE;
		memcpy(next->fingerprint, op->fingerprint, sizeof(next->fingerprint));
	}
	if (is_check) {
		enter_done(next, NULL, rules);
	} else {
		enter_claimed(next, op, rules);
		next->on_lapse = op->on_lapse;
		next->owner = op->owner;
		next->cause = op->cause;
		memcpy(next->attempt_id, op->attempt_id, sizeof(next->attempt_id));
	}
	assert(old == NULL || next->attempt >= old->attempt);
	assert(old == NULL || next->first_seen_ms <= old->changed_ms);
	ret->effect = HX_EFFECT_PUT;
	ret->takes_token = true;
	answer_record(op, HAPAX_OUTCOME_ACQUIRED, next, rules->now_ms);
}

/* Both fingerprints are known and differ. A missing one matches, and is counted. */
static bool is_mismatch(const struct hapax_record *old, struct hapax_op *op)
{
	if (op->fingerprint == NULL || old->fingerprint_size == 0) {
		op->unverified = 1;
		return false;
	}
	assert(old->fingerprint_size <= HAPAX_FINGERPRINT_SIZE);
	return memcmp(op->fingerprint, old->fingerprint, old->fingerprint_size) != 0;
}

static bool is_repeated_call(const struct hapax_record *old, const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CLAIM && old->state == HAPAX_STATE_CLAIMED &&
		memcmp(op->attempt_id, old->attempt_id, HAPAX_ATTEMPT_ID_SIZE) == 0;
}

static void claim_claimed(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	assert(old->state == HAPAX_STATE_CLAIMED);
	if (is_repeated_call(old, op)) {
		ret->next = *old;
		enter_claimed(&ret->next, op, rules);
		ret->effect = HX_EFFECT_PUT;
		answer_record(op, HAPAX_OUTCOME_ACQUIRED, &ret->next, rules->now_ms);
	} else if (!hx_record_is_lapsed(old, rules->now_ms)) {
		answer_record(op, HAPAX_OUTCOME_IN_PROGRESS, old, rules->now_ms);
	} else if (old->on_lapse == HAPAX_ON_LAPSE_PARK) {
		ret->next = *old;
		enter_parked(&ret->next, HX_BYTES_LIT("the lease lapsed"), rules->now_ms);
		ret->effect = HX_EFFECT_PUT;
		answer_record(op, HAPAX_OUTCOME_PARKED, &ret->next, rules->now_ms);
	} else {
		acquire(old, op, rules, ret);
	}
}

static void claim(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	if (old == NULL || old->state == HAPAX_STATE_FAILED) {
		acquire(old, op, rules, ret);
		return;
	}
	if (is_mismatch(old, op)) {
		answer_record(op, HAPAX_OUTCOME_MISMATCH, old, rules->now_ms);
		return;
	}
	switch (old->state) {
	case HAPAX_STATE_CLAIMED: claim_claimed(old, op, rules, ret); return;
	case HAPAX_STATE_PARKED:
		answer_record(op, HAPAX_OUTCOME_PARKED, old, rules->now_ms);
		return;
	case HAPAX_STATE_DONE: answer_record(op, HAPAX_OUTCOME_REPLAY, old, rules->now_ms); return;
	case HAPAX_STATE_FAILED:
	case HAPAX_STATE_ABSENT: break;
	}
	assert(false && "a record in no state");
}

static void with_token(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	enum verdict verdict = VERDICT_FENCED;

	assert(hx_transition_has_token(op));
	assert(old == NULL || old->state <= HAPAX_STATE_PARKED);
	if (old != NULL && old->token == op->token)
		verdict = (enum verdict)by_token[op->type][old->state];
	if (verdict == VERDICT_FENCED) {
		op->status = HAPAX_ERR_FENCED;
		op->outcome = HAPAX_OUTCOME_NONE;
		return;
	}
	if (verdict == VERDICT_KEEP) {
		op->repeated = 1;
		answer_record(op, HAPAX_OUTCOME_APPLIED, old, rules->now_ms);
		return;
	}
	ret->next = *old;
	if (verdict == VERDICT_CLAIM)
		enter_claimed(&ret->next, op, rules);
	else if (verdict == VERDICT_DONE)
		enter_done(&ret->next, op->result, rules);
	else if (verdict == VERDICT_FAIL)
		enter_failed(&ret->next, op->error, rules->now_ms);
	else
		enter_parked(&ret->next, op->error, rules->now_ms);
	assert(ret->next.token == op->token);
	ret->effect = HX_EFFECT_PUT;
	answer_record(op, HAPAX_OUTCOME_APPLIED, &ret->next, rules->now_ms);
}

static void forget(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	bool set_only = (op->flags & HAPAX_OP_SET_ONLY) != 0;
	bool is_held;

	if (old == NULL || (set_only && old->state == HAPAX_STATE_FAILED)) {
		answer(op, HAPAX_OUTCOME_ABSENT);
		return;
	}
	is_held = old->state == HAPAX_STATE_CLAIMED || old->state == HAPAX_STATE_PARKED;
	if ((is_held && !(op->flags & HAPAX_OP_FORCE)) ||
	    (set_only && old->origin != HAPAX_ORIGIN_SET)) {
		answer_record(op, HAPAX_OUTCOME_BUSY, old, rules->now_ms);
		return;
	}
	if (set_only && op->set_if == HAPAX_SET_IF_EQUAL &&
	    !hx_bytes_equal(old->result.body, op->expected)) {
		answer_record(op, HAPAX_OUTCOME_NOT_MET, old, rules->now_ms);
		return;
	}
	assert(!is_held || (op->flags & HAPAX_OP_FORCE));
	ret->effect = HX_EFFECT_REMOVE;
	answer_record(op, HAPAX_OUTCOME_APPLIED, old, rules->now_ms);
}

/* May set and expire overwrite the record? */
static bool is_settable(const struct hapax_record *old)
{
	return old->state == HAPAX_STATE_DONE && old->origin == HAPAX_ORIGIN_SET;
}

static bool set_condition_holds(const struct hapax_record *old, const struct hapax_op *op)
{
	switch (op->set_if) {
	case HAPAX_SET_ALWAYS: return true;
	case HAPAX_SET_IF_ABSENT: return old == NULL;
	case HAPAX_SET_IF_PRESENT: return old != NULL;
	case HAPAX_SET_IF_EQUAL:
		return old != NULL && hx_bytes_equal(old->result.body, op->expected);
	}
	return false;
}

static void set(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	if (op->result != NULL && op->result->body.size > rules->result_size_max) {
		op->status = HAPAX_ERR_LIMIT;
		return;
	}
	if (old != NULL && old->state == HAPAX_STATE_FAILED)
		old = NULL;
	if (old != NULL && !is_settable(old) && op->set_if != HAPAX_SET_IF_ABSENT) {
		answer_record(op, HAPAX_OUTCOME_BUSY, old, rules->now_ms);
		return;
	}
	if (!set_condition_holds(old, op)) {
		answer(op, HAPAX_OUTCOME_NOT_MET);
		if (old != NULL)
			hx_transition_describe(old, rules->now_ms, op);
		return;
	}
	assert(old == NULL || is_settable(old));
	begin_record(&ret->next, op, HAPAX_ORIGIN_SET, rules);
	if (old != NULL && (op->flags & HAPAX_OP_KEEP_TTL))
		ret->next.ttl_ms = old->ttl_ms;
	enter_done(&ret->next, op->result, rules);
	if (old != NULL && (op->flags & HAPAX_OP_KEEP_TTL))
		ret->next.expires_ms = old->expires_ms;
	ret->effect = HX_EFFECT_PUT;
	ret->takes_token = true;
	answer_record(op, HAPAX_OUTCOME_APPLIED, &ret->next, rules->now_ms);
}

static void expire(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	if (old == NULL || old->state == HAPAX_STATE_FAILED) {
		answer(op, HAPAX_OUTCOME_ABSENT);
		return;
	}
	if (!is_settable(old)) {
		answer_record(op, HAPAX_OUTCOME_BUSY, old, rules->now_ms);
		return;
	}
	ret->next = *old;
	ret->next.ttl_ms = ttl_of(op, rules->now_ms);
	ret->next.expires_ms = time_after(rules->now_ms, ret->next.ttl_ms);
	assert(ret->next.expires_ms >= rules->now_ms);
	ret->effect = HX_EFFECT_PUT;
	answer_record(op, HAPAX_OUTCOME_APPLIED, &ret->next, rules->now_ms);
}

static void lookup(const struct hapax_record *old, struct hapax_op *op, int64_t now_ms)
{
	if (old == NULL)
		answer(op, HAPAX_OUTCOME_ABSENT);
	else
		answer_record(op, HAPAX_OUTCOME_FOUND, old, now_ms);
}

/* The old record does not matter. The check has seen that the new one is valid. */
static void load(
	struct hapax_op *op, const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	ret->next = *op->load;
	ret->next.tenant = op->tenant;
	ret->next.group = op->group;
	ret->next.key = op->key;
	ret->effect = HX_EFFECT_PUT;
	answer_record(op, HAPAX_OUTCOME_APPLIED, &ret->next, rules->now_ms);
}

/* Dispatch; old is NULL if it is absent or expired. */
static void transit(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	switch (op->type) {
	case HAPAX_OP_CLAIM:
	case HAPAX_OP_CHECK: claim(old, op, rules, ret); break;
	case HAPAX_OP_RENEW:
	case HAPAX_OP_COMPLETE:
	case HAPAX_OP_RELEASE:
	case HAPAX_OP_PARK: with_token(old, op, rules, ret); break;
	case HAPAX_OP_LOOKUP: lookup(old, op, rules->now_ms); break;
	case HAPAX_OP_FORGET: forget(old, op, rules, ret); break;
	case HAPAX_OP_SET: set(old, op, rules, ret); break;
	case HAPAX_OP_EXPIRE: expire(old, op, rules, ret); break;
	case HAPAX_OP_LOAD: load(op, rules, ret); break;
	}
}

/* What every answer promises, whatever the operation was. old is NULL if it was absent. */
static void transition_assert(
	const struct hapax_record *old, const struct hapax_op *op,
	const struct hx_transition_rules *rules, const struct hx_transition *ret)
{
	assert(ret->was_absent == (old == NULL));
	assert(op->status == HAPAX_OK || ret->effect == HX_EFFECT_NONE);
	assert((op->status == HAPAX_OK) == (op->outcome != HAPAX_OUTCOME_NONE));
	assert(op->type != HAPAX_OP_LOOKUP || ret->effect == HX_EFFECT_NONE);
	assert(ret->effect != HX_EFFECT_REMOVE || op->type == HAPAX_OP_FORGET);
	assert(ret->effect != HX_EFFECT_REMOVE || old != NULL);
	assert(!ret->takes_token || ret->effect == HX_EFFECT_PUT);
	if (ret->effect != HX_EFFECT_PUT)
		return;
	hx_record_assert(&ret->next);
	assert(hx_transition_is_go(op) || op->outcome == HAPAX_OUTCOME_PARKED);
	assert(ret->next.key.data == op->key.data || !ret->takes_token);
	/* A record that began earlier keeps its token until a claim or a set takes a new one. */
	assert(!ret->takes_token || ret->next.token == rules->fresh_token);
	assert(ret->takes_token || op->type == HAPAX_OP_LOAD || ret->next.token == old->token);
	/* Time does not run backwards for a key. */
	assert(op->type == HAPAX_OP_LOAD || ret->next.changed_ms <= rules->now_ms);
	assert(op->type == HAPAX_OP_LOAD || old == NULL || ret->next.changed_ms >= old->changed_ms);
}

void hx_transition(
	const struct hapax_record *old, struct hapax_op *op,
	const struct hx_transition_rules *rules, struct hx_transition *ret)
{
	struct hx_transition_rules later;

	assert(rules->fresh_token <= HX_TOKEN_MAX);
	assert(op->type >= HAPAX_OP_CLAIM);
	assert(op->type <= HAPAX_OP_LOAD);
	/*
	 * The caller read the time before it held the record. A thread that read it later may
	 * have written the record first. The time is never before the record's last change.
	 */
	if (old != NULL && old->changed_ms > rules->now_ms) {
		later = *rules;
		later.now_ms = old->changed_ms;
		rules = &later;
	}
	ret->effect = HX_EFFECT_NONE;
	ret->takes_token = false;
	if (old != NULL && hx_record_is_expired(old, rules->now_ms))
		old = NULL;
	ret->was_absent = old == NULL;
	op->unverified = 0;
	op->repeated = 0;
	op->expires_ms = HAPAX_TIME_NEVER;
	transit(old, op, rules, ret);
	transition_assert(old, op, rules, ret);
}

void hx_transition_sweep(
	const struct hapax_record *old, const struct hx_transition_rules *rules,
	struct hx_transition *ret)
{
	/* A loaded record may have changed later than now: its time does not run backwards. */
	int64_t now_ms = old->changed_ms > rules->now_ms ? old->changed_ms : rules->now_ms;

	ret->effect = HX_EFFECT_NONE;
	ret->takes_token = false;
	ret->was_absent = false;
	if (old->state != HAPAX_STATE_CLAIMED ||
	    time_after(old->lease_ends_ms, old->ttl_ms) > rules->now_ms)
		return;
	assert(hx_record_is_lapsed(old, rules->now_ms));
	ret->next = *old;
	if (old->on_lapse == HAPAX_ON_LAPSE_PARK)
		enter_parked(
			&ret->next, HX_BYTES_LIT("the lease lapsed and no run followed"), now_ms);
	else
		enter_failed(
			&ret->next, HX_BYTES_LIT("the lease lapsed and no run followed"), now_ms);
	ret->effect = HX_EFFECT_PUT;
	hx_record_assert(&ret->next);
	assert(ret->next.token == old->token);
	assert(ret->next.attempt == old->attempt);
}

bool hx_transition_is_go(const struct hapax_op *op)
{
	return op->status == HAPAX_OK &&
		(op->outcome == HAPAX_OUTCOME_ACQUIRED || op->outcome == HAPAX_OUTCOME_APPLIED);
}

/* Redis users ask for a first time with SET NX: it counts like a check. */
static bool is_set_once(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_SET && op->set_if == HAPAX_SET_IF_ABSENT;
}

static int decision_of_outcome(const struct hapax_op *op)
{
	switch (op->outcome) {
	case HAPAX_OUTCOME_ACQUIRED: return HAPAX_DECISION_ACQUIRED;
	case HAPAX_OUTCOME_REPLAY: return HAPAX_DECISION_REPLAY;
	case HAPAX_OUTCOME_IN_PROGRESS: return HAPAX_DECISION_IN_PROGRESS;
	case HAPAX_OUTCOME_MISMATCH: return HAPAX_DECISION_MISMATCH;
	case HAPAX_OUTCOME_PARKED: return HAPAX_DECISION_PARKED;
	case HAPAX_OUTCOME_APPLIED:
		if (op->repeated)
			return -1;
		if (op->type == HAPAX_OP_COMPLETE)
			return HAPAX_DECISION_COMPLETED;
		if (op->type == HAPAX_OP_RELEASE)
			return HAPAX_DECISION_RELEASED;
		if (op->type == HAPAX_OP_FORGET)
			return HAPAX_DECISION_FORGOTTEN;
		return is_set_once(op) ? HAPAX_DECISION_ACQUIRED : -1;
	case HAPAX_OUTCOME_NOT_MET: return is_set_once(op) ? HAPAX_DECISION_REPLAY : -1;
	case HAPAX_OUTCOME_NONE:
	case HAPAX_OUTCOME_FOUND:
	case HAPAX_OUTCOME_ABSENT:
	case HAPAX_OUTCOME_BUSY:
	case HAPAX_OUTCOME_SKIPPED: break;
	}
	return -1;
}

int hx_transition_decision(const struct hapax_op *op)
{
	if (op->status == HAPAX_ERR_FENCED)
		return HAPAX_DECISION_FENCED;
	if (op->status == HAPAX_ERR_LIMIT)
		return HAPAX_DECISION_LIMIT;
	return op->status == HAPAX_OK ? decision_of_outcome(op) : -1;
}
