/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - see model.h. An array of keys, searched from its beginning; groups
 * that are all or nothing run on a copy of the whole model.
 *
 * Where the text leaves room, the model leaves room too: out-members are compared
 * only when a record exists, the text of an error only when a caller gave it,
 * and tokens within one submit only per key, because operations on different keys
 * may take effect in any order.
 */
#include "conformance/model_private.h"

#include <string.h>

#include "base/limits.h"

static struct hapax_bytes or_default(struct hapax_bytes name)
{
	return name.size ? name : (struct hapax_bytes){"default", 7};
}

/* Time plus a length of time that may be forever. */
static int64_t later(int64_t now_ms, int64_t length_ms)
{
	return length_ms == HAPAX_TTL_FOREVER ? HAPAX_TIME_NEVER : now_ms + length_ms;
}

static int64_t ttl_of(const struct hapax_op *op, int64_t now_ms)
{
	/* Such times are near in a history: no limit is met. */
	if (op->flags & HAPAX_OP_TTL_IS_TIME)
		return op->ttl_ms <= now_ms ? 1 : op->ttl_ms - now_ms;
	return op->ttl_ms ? op->ttl_ms : HX_TTL_MS_DEFAULT;
}

static int64_t lease_of(const struct hapax_op *op)
{
	return op->lease_ms ? op->lease_ms : HX_LEASE_MS_DEFAULT;
}

static bool is_expired(const struct model_record *record, int64_t now_ms)
{
	return (record->state == HAPAX_STATE_DONE || record->state == HAPAX_STATE_FAILED) &&
		record->expires_ms <= now_ms;
}

static bool is_there(const struct model_record *record, int64_t now_ms)
{
	return record->state != HAPAX_STATE_ABSENT && !is_expired(record, now_ms);
}

static struct model_key *key_of(
	struct model *model, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	tenant = or_default(tenant);
	group = or_default(group);
	for (size_t i = 0; i < model->count; i++) {
		struct model_key *entry = &model->keys[i];

		if (model_text_is(&entry->tenant, tenant) && model_text_is(&entry->group, group) &&
		    model_text_is(&entry->key, key))
			return entry;
	}
	if (model->count == MODEL_KEYS_MAX)
		return NULL;
	struct model_key *entry = &model->keys[model->count++];
	*entry = (struct model_key){
		.tenant = model_text_of(tenant),
		.group = model_text_of(group),
		.key = model_text_of(key)};
	return entry;
}

/* ------------------------------------------------------------------ the rules */

static void enter(struct model_record *record, enum hapax_state state, int64_t now_ms)
{
	record->state = state;
	record->changed_ms = now_ms;
	record->lease_ends_ms = 0;
	record->expires_ms = HAPAX_TIME_NEVER;
	if (state == HAPAX_STATE_DONE || state == HAPAX_STATE_FAILED) {
		record->expires_ms = later(now_ms, record->ttl_ms);
		memset(record->attempt_id, 0, sizeof(record->attempt_id));
	}
	if (state == HAPAX_STATE_DONE) {
		record->owner = (struct model_text){0};
		record->error = (struct model_text){0};
		record->error_is_free = false;
	}
}

/* A run begins: as a new record, or as one more attempt of the old one. */
static void begin(
	struct model *model, struct model_record *record, const struct hapax_op *op, int64_t now_ms)
{
	if (!is_there(record, now_ms))
		*record = (struct model_record){.first_seen_ms = now_ms};
	record->attempt++;
	record->error = (struct model_text){0};
	record->error_is_free = false;
	record->cause = (struct model_text){0};
	record->cause_may_go = false;
	record->ttl_ms = ttl_of(op, now_ms);
	record->on_lapse = op->type == HAPAX_OP_CLAIM ? op->on_lapse : HAPAX_ON_LAPSE_RETRY;
	record->has_fingerprint = op->fingerprint != NULL;
	memset(record->fingerprint, 0, sizeof(record->fingerprint));
	if (op->fingerprint)
		memcpy(record->fingerprint, op->fingerprint, sizeof(record->fingerprint));
	if (op->type == HAPAX_OP_CHECK) {
		record->origin = HAPAX_ORIGIN_CHECK;
		model_record_keep_result(model, record, NULL);
		enter(record, HAPAX_STATE_DONE, now_ms);
		return;
	}
	record->origin = HAPAX_ORIGIN_CLAIM;
	enter(record, HAPAX_STATE_CLAIMED, now_ms);
	record->owner = model_text_of(op->owner);
	record->cause = model_text_of(op->cause);
	memcpy(record->attempt_id, op->attempt_id, sizeof(record->attempt_id));
	record->lease_ends_ms = now_ms + lease_of(op);
}

/* claim and check: the first table of the rules, row by row. */
static void ask(
	struct model *model, struct model_record *record, const struct hapax_op *op, int64_t now_ms,
	struct model_answer *answer)
{
	if (!is_there(record, now_ms) || record->state == HAPAX_STATE_FAILED) {
		answer->outcome = HAPAX_OUTCOME_ACQUIRED;
		answer->takes_token = true;
		begin(model, record, op, now_ms);
		return;
	}
	if (op->fingerprint && record->has_fingerprint) {
		if (memcmp(op->fingerprint, record->fingerprint, HAPAX_FINGERPRINT_SIZE) != 0) {
			answer->outcome = HAPAX_OUTCOME_MISMATCH;
			return;
		}
	} else {
		answer->unverified = 1;
	}
	switch (record->state) {
	case HAPAX_STATE_CLAIMED:
		if (op->type == HAPAX_OP_CLAIM &&
		    memcmp(op->attempt_id, record->attempt_id, HAPAX_ATTEMPT_ID_SIZE) == 0) {
			answer->outcome = HAPAX_OUTCOME_ACQUIRED;
			record->lease_ends_ms = now_ms + lease_of(op);
		} else if (!model_record_is_lapsed(record, now_ms)) {
			answer->outcome = HAPAX_OUTCOME_IN_PROGRESS;
		} else if (record->on_lapse == HAPAX_ON_LAPSE_PARK) {
			answer->outcome = HAPAX_OUTCOME_PARKED;
			enter(record, HAPAX_STATE_PARKED, now_ms);
			record->error_is_free = true;
		} else {
			answer->outcome = HAPAX_OUTCOME_ACQUIRED;
			answer->takes_token = true;
			begin(model, record, op, now_ms);
		}
		return;
	case HAPAX_STATE_PARKED: answer->outcome = HAPAX_OUTCOME_PARKED; return;
	case HAPAX_STATE_DONE: answer->outcome = HAPAX_OUTCOME_REPLAY; return;
	case HAPAX_STATE_FAILED:
	case HAPAX_STATE_ABSENT: return;
	}
}

/* renew, complete, release, park: the second table of the rules. */
static void use_token(
	struct model *model, struct model_record *record, const struct hapax_op *op, int64_t now_ms,
	struct model_answer *answer)
{
	enum hapax_state state = is_there(record, now_ms) && record->token == op->token
		? record->state
		: HAPAX_STATE_ABSENT;
	bool held = state == HAPAX_STATE_CLAIMED || state == HAPAX_STATE_PARKED;
	bool failed = state == HAPAX_STATE_FAILED;

	record->cause_may_go = record->cause_may_go || model->has_bytes_max;
	answer->outcome = HAPAX_OUTCOME_APPLIED;
	if (op->type == HAPAX_OP_RENEW && held) {
		if (state == HAPAX_STATE_PARKED) {
			enter(record, HAPAX_STATE_CLAIMED, now_ms);
			record->error = (struct model_text){0};
			record->error_is_free = true;
		}
		record->lease_ends_ms = now_ms + lease_of(op);
	} else if (op->type == HAPAX_OP_COMPLETE && (held || failed)) {
		enter(record, HAPAX_STATE_DONE, now_ms);
		model_record_keep_result(model, record, op->result);
		record->may_be_cut = model->has_bytes_max;
	} else if (op->type == HAPAX_OP_COMPLETE && state == HAPAX_STATE_DONE) {
		answer->repeated = 1; /* the stored result stays */
	} else if (op->type == HAPAX_OP_RELEASE && held) {
		enter(record, HAPAX_STATE_FAILED, now_ms);
		record->error = model_text_of(op->error);
		record->error_is_free = op->error.size == 0 || model->has_bytes_max;
	} else if (op->type == HAPAX_OP_RELEASE && failed) {
		answer->repeated = 1;
	} else if (op->type == HAPAX_OP_PARK && state == HAPAX_STATE_CLAIMED) {
		enter(record, HAPAX_STATE_PARKED, now_ms);
		record->error = model_text_of(op->error);
		record->error_is_free = op->error.size == 0 || model->has_bytes_max;
	} else if (op->type == HAPAX_OP_PARK && state == HAPAX_STATE_PARKED) {
		answer->repeated = 1;
	} else {
		answer->status = HAPAX_ERR_FENCED;
		answer->outcome = HAPAX_OUTCOME_NONE;
	}
}

static void forget(
	struct model_record *record, const struct hapax_op *op, int64_t now_ms,
	struct model_answer *answer)
{
	bool held = record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED;
	bool force = op->flags & HAPAX_OP_FORCE;
	bool set_only = op->flags & HAPAX_OP_SET_ONLY;

	if (!is_there(record, now_ms) || (set_only && record->state == HAPAX_STATE_FAILED))
		answer->outcome = HAPAX_OUTCOME_ABSENT;
	else if ((held && !force) || (set_only && record->origin != HAPAX_ORIGIN_SET))
		answer->outcome = HAPAX_OUTCOME_BUSY;
	else if (
		set_only && op->set_if == HAPAX_SET_IF_EQUAL &&
		(record->body_size != op->expected.size ||
		 (op->expected.size &&
		  memcmp(record->body, op->expected.data, op->expected.size) != 0)))
		answer->outcome = HAPAX_OUTCOME_NOT_MET;
	else
		answer->outcome = HAPAX_OUTCOME_APPLIED;
	if (answer->outcome == HAPAX_OUTCOME_APPLIED)
		record->state = HAPAX_STATE_ABSENT;
}

/* FAILED counts as absent here; only a DONE record made by set may be written. */
static enum hapax_outcome may_set(
	const struct model_record *record, const struct hapax_op *op, int64_t now_ms)
{
	bool there = is_there(record, now_ms) && record->state != HAPAX_STATE_FAILED;
	bool own = record->state == HAPAX_STATE_DONE && record->origin == HAPAX_ORIGIN_SET;

	if (!there)
		return op->set_if == HAPAX_SET_ALWAYS || op->set_if == HAPAX_SET_IF_ABSENT
			? HAPAX_OUTCOME_APPLIED
			: HAPAX_OUTCOME_NOT_MET;
	if (op->set_if == HAPAX_SET_IF_ABSENT)
		return HAPAX_OUTCOME_NOT_MET;
	if (!own)
		return HAPAX_OUTCOME_BUSY;
	if (op->set_if != HAPAX_SET_IF_EQUAL)
		return HAPAX_OUTCOME_APPLIED;
	return record->body_size == op->expected.size &&
			(!op->expected.size ||
			 memcmp(record->body, op->expected.data, op->expected.size) == 0)
		? HAPAX_OUTCOME_APPLIED
		: HAPAX_OUTCOME_NOT_MET;
}

static void set(
	struct model *model, struct model_record *record, const struct hapax_op *op, int64_t now_ms,
	struct model_answer *answer)
{
	if (op->result && op->result->body.size > model->result_size_max) {
		answer->status = HAPAX_ERR_LIMIT;
		return;
	}
	answer->outcome = may_set(record, op, now_ms);
	if (answer->outcome != HAPAX_OUTCOME_APPLIED)
		return;
	bool keep = (op->flags & HAPAX_OP_KEEP_TTL) && is_there(record, now_ms) &&
		record->state == HAPAX_STATE_DONE;
	int64_t expires_ms = record->expires_ms;
	int64_t ttl_ms = record->ttl_ms;

	/* A value written over another is a new record; only its expiry may live on. */
	*record = (struct model_record){.first_seen_ms = now_ms, .attempt = 1};
	answer->takes_token = true;
	record->origin = HAPAX_ORIGIN_SET;
	record->ttl_ms = keep ? ttl_ms : ttl_of(op, now_ms);
	enter(record, HAPAX_STATE_DONE, now_ms);
	if (keep)
		record->expires_ms = expires_ms;
	model_record_keep_result(model, record, op->result);
}

static void expire(
	struct model_record *record, const struct hapax_op *op, int64_t now_ms,
	struct model_answer *answer)
{
	if (!is_there(record, now_ms) || record->state == HAPAX_STATE_FAILED) {
		answer->outcome = HAPAX_OUTCOME_ABSENT;
	} else if (record->state != HAPAX_STATE_DONE || record->origin != HAPAX_ORIGIN_SET) {
		answer->outcome = HAPAX_OUTCOME_BUSY;
	} else {
		answer->outcome = HAPAX_OUTCOME_APPLIED;
		record->ttl_ms = ttl_of(op, now_ms);
		record->expires_ms = later(now_ms, record->ttl_ms);
	}
}

/* ------------------------------------------------------------------ limits */

static size_t count_parked(const struct model *model, const struct model_key *scope)
{
	size_t parked = 0;

	for (size_t i = 0; i < model->count; i++)
		parked += model->keys[i].record.state == HAPAX_STATE_PARKED &&
			(!scope ||
			 (memcmp(&model->keys[i].tenant, &scope->tenant, sizeof(scope->tenant)) ==
				  0 &&
			  memcmp(&model->keys[i].group, &scope->group, sizeof(scope->group)) == 0));
	return parked;
}

/* Expired ones too: they count until they are removed, at an unknown time. */
static size_t count_held(const struct model *model)
{
	size_t held = 0;

	for (size_t i = 0; i < model->count; i++)
		held += model->keys[i].record.state != HAPAX_STATE_ABSENT;
	return held;
}

/*
 * Do the limits forbid op, which would take a token? Of one operation alone that is
 * known, but for what has expired. Of several, different keys have no order, and a
 * group is decided before any of it is done: then the answer is believed if all of
 * them together could have met the limit.
 */
static bool is_refused(
	const struct model *model, const struct model_key *entry, const struct hapax_op *op,
	int64_t now_ms)
{
	bool alone = model->submitted == 1;
	bool said_so = op->status == HAPAX_ERR_LIMIT;
	size_t live = model_count(model, now_ms, HAPAX_STATE_ABSENT);

	/* A claim that would begin a run is a new one, whatever stood there before. */
	if (model->parked_max && op->type == HAPAX_OP_CLAIM) {
		if (alone && count_parked(model, entry) >= model->parked_max)
			return true;
		if (!alone && said_so &&
		    model->parked_before + model->submitted > model->parked_max)
			return true;
	}
	if (model->has_bytes_max && said_so)
		return true;
	if (!model->keys_max || is_there(&entry->record, now_ms))
		return false;
	if (!alone)
		return said_so && model->held_before + model->submitted > model->keys_max;
	/* Only what is done can make room. */
	if (model->evicts)
		return live - model_count(model, now_ms, HAPAX_STATE_DONE) >= model->keys_max;
	return live >= model->keys_max || (said_so && count_held(model) >= model->keys_max);
}

/* ------------------------------------------------------------------ eviction */

static void evict(struct model *model, struct model_record *record)
{
	record->state = HAPAX_STATE_ABSENT;
	model->evicted++;
}

static void evict_if_gone(struct model *model, int64_t now_ms, const struct hapax_op *op)
{
	struct model_key *entry = key_of(model, op->tenant, op->group, op->key);

	if (model->evicts && entry && is_there(&entry->record, now_ms) &&
	    entry->record.state == HAPAX_STATE_DONE &&
	    model_shows_absence(model, op, &entry->record))
		evict(model, &entry->record);
}

/* ------------------------------------------------------------------ submit */

/* Predict one operation, change the model by it. False only for a bad token. */
static bool apply(
	struct model *model, int64_t now_ms, const struct hapax_op *op, uint64_t shared_token,
	struct model_answer *answer)
{
	struct model_key *entry = key_of(model, op->tenant, op->group, op->key);

	if (!entry)
		return model_differ(model, "more keys than the model holds");
	struct model_record next = entry->record;
	bool before = op->type == HAPAX_OP_SET || op->type == HAPAX_OP_FORGET;

	*answer = (struct model_answer){.status = HAPAX_OK, .outcome = HAPAX_OUTCOME_NONE};
	switch (op->type) {
	case HAPAX_OP_CLAIM:
	case HAPAX_OP_CHECK: ask(model, &next, op, now_ms, answer); break;
	case HAPAX_OP_RENEW:
	case HAPAX_OP_COMPLETE:
	case HAPAX_OP_RELEASE:
	case HAPAX_OP_PARK: use_token(model, &next, op, now_ms, answer); break;
	case HAPAX_OP_LOOKUP:
		answer->outcome =
			is_there(&next, now_ms) ? HAPAX_OUTCOME_FOUND : HAPAX_OUTCOME_ABSENT;
		break;
	case HAPAX_OP_FORGET: forget(&next, op, now_ms, answer); break;
	case HAPAX_OP_SET: set(model, &next, op, now_ms, answer); break;
	case HAPAX_OP_EXPIRE: expire(&next, op, now_ms, answer); break;
	case HAPAX_OP_LOAD: return model_differ(model, "no history loads records");
	}
	if (answer->status == HAPAX_OK && answer->takes_token &&
	    is_refused(model, entry, op, now_ms)) {
		*answer = (struct model_answer){.status = HAPAX_ERR_LIMIT};
		return true;
	}
	/* A store that refused, or skipped, gave no token: model_compare() says so. */
	if (answer->takes_token && op->status == HAPAX_OK && op->outcome != HAPAX_OUTCOME_SKIPPED) {
		if (!model_take_token(model, entry, op, shared_token))
			return false;
		next.token = op->token;
	}
	answer->has_record = answer->outcome != HAPAX_OUTCOME_ABSENT &&
		is_there(before ? &entry->record : &next, now_ms);
	answer->shown = before ? entry->record : next;
	entry->record = next;
	return true;
}

/* What the store has to count; SET NX asks what a check asks, and counts the same. */
static void count_decision(
	struct model *model, const struct hapax_op *op, const struct model_answer *answer)
{
	static const enum hapax_decision by_outcome[] = {
		[HAPAX_OUTCOME_ACQUIRED] = HAPAX_DECISION_ACQUIRED,
		[HAPAX_OUTCOME_REPLAY] = HAPAX_DECISION_REPLAY,
		[HAPAX_OUTCOME_IN_PROGRESS] = HAPAX_DECISION_IN_PROGRESS,
		[HAPAX_OUTCOME_MISMATCH] = HAPAX_DECISION_MISMATCH,
		[HAPAX_OUTCOME_PARKED] = HAPAX_DECISION_PARKED,
	};
	bool set_once = op->type == HAPAX_OP_SET && op->set_if == HAPAX_SET_IF_ABSENT;
	bool applied = answer->outcome == HAPAX_OUTCOME_APPLIED;

	model->counts[HAPAX_DECISION_FENCED] += answer->status == HAPAX_ERR_FENCED;
	model->counts[HAPAX_DECISION_LIMIT] += answer->status == HAPAX_ERR_LIMIT;
	if (answer->status != HAPAX_OK || answer->outcome == HAPAX_OUTCOME_SKIPPED)
		return;
	if (op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK) {
		model->counts[by_outcome[answer->outcome]]++;
		model->counts[HAPAX_DECISION_UNVERIFIED] += answer->unverified != 0;
	}
	model->counts[HAPAX_DECISION_ACQUIRED] += set_once && applied;
	model->counts[HAPAX_DECISION_REPLAY] += set_once && !applied;
	model->counts[HAPAX_DECISION_COMPLETED] +=
		op->type == HAPAX_OP_COMPLETE && applied && !answer->repeated;
	model->counts[HAPAX_DECISION_RELEASED] +=
		op->type == HAPAX_OP_RELEASE && applied && !answer->repeated;
	model->counts[HAPAX_DECISION_FORGOTTEN] += op->type == HAPAX_OP_FORGET && applied;
}

static bool goes(const struct model_answer *answer)
{
	return answer->status == HAPAX_OK &&
		(answer->outcome == HAPAX_OUTCOME_ACQUIRED ||
		 answer->outcome == HAPAX_OUTCOME_APPLIED);
}

/* The record as it stands, since nothing was done. */
static void show_before(
	const struct model *model, int64_t now_ms, const struct hapax_op *op,
	struct model_answer *answer)
{
	const struct model_record *record =
		model_find(model, now_ms, op->tenant, op->group, op->key);

	answer->has_record = record && answer->outcome != HAPAX_OUTCOME_ABSENT;
	if (answer->has_record)
		answer->shown = *record;
}

/* All or nothing: run it on a copy, keep the copy only if every operation goes. */
static bool submit_together(
	struct model *model, int64_t now_ms, const struct hapax_op *ops, size_t count)
{
	static _Thread_local struct model saved;
	static _Thread_local struct model_answer answers[HX_SUBMIT_OPS_MAX > 64 ? 64 : 1];
	uint64_t shared_token = 0;
	bool go = true;

	for (size_t i = 0; i < count; i++)
		evict_if_gone(model, now_ms, &ops[i]);
	saved = *model;
	for (size_t i = 0; i < count; i++) {
		if (!apply(model, now_ms, &ops[i], shared_token, &answers[i]))
			return false;
		go = go && goes(&answers[i]);
		if (ops[i].type == HAPAX_OP_CLAIM && goes(&answers[i]))
			shared_token = ops[i].token;
	}
	if (!go)
		*model = saved;
	for (size_t i = 0; i < count; i++) {
		if (!go && goes(&answers[i]))
			answers[i].outcome = HAPAX_OUTCOME_SKIPPED;
		/* What a record would have become is not shown when nothing was done. */
		if (!go)
			show_before(model, now_ms, &ops[i], &answers[i]);
		if (!model_compare(model, &ops[i], &answers[i], now_ms))
			return false;
		count_decision(model, &ops[i], &answers[i]);
	}
	return true;
}

bool model_submit(struct model *model, int64_t now_ms, const struct hapax_op *ops, size_t count)
{
	model->submitted = count;
	model->held_before = count_held(model);
	model->parked_before = count_parked(model, NULL);
	for (size_t i = 0; i < count;) {
		size_t end = i + 1;

		while (end < count && (ops[end - 1].flags & HAPAX_OP_LINKED))
			end++;
		if (ops[i].flags & HAPAX_OP_ALL_OR_NOTHING) {
			if (!submit_together(model, now_ms, ops + i, end - i))
				return false;
			i = end;
			continue;
		}
		for (; i < end; i++) {
			struct model_answer answer;

			evict_if_gone(model, now_ms, &ops[i]);
			if (!apply(model, now_ms, &ops[i], 0, &answer) ||
			    !model_compare(model, &ops[i], &answer, now_ms))
				return false;
			count_decision(model, &ops[i], &answer);
		}
	}
	model->token_max = model->token_high;
	return true;
}

bool model_assume(
	struct model *model, int64_t now_ms, const struct hapax_op *ops, size_t count,
	uint64_t token)
{
	static _Thread_local struct model saved;
	uint64_t shared_token = 0;
	bool go = true;

	saved = *model;
	for (size_t i = 0; i < count; i++) {
		struct hapax_op answered = ops[i];
		struct model_answer answer;

		answered.status = HAPAX_OK;
		answered.outcome = HAPAX_OUTCOME_NONE;
		if (ops[i].type < HAPAX_OP_RENEW || ops[i].type > HAPAX_OP_PARK)
			answered.token = token;
		if (!apply(model, now_ms, &answered, shared_token, &answer))
			return false;
		go = go && goes(&answer);
		if (ops[i].type == HAPAX_OP_CLAIM && goes(&answer))
			shared_token = token;
	}
	if (!go && (ops[0].flags & HAPAX_OP_ALL_OR_NOTHING))
		*model = saved;
	model->token_max = model->token_high;
	return true;
}

/* ------------------------------------------------------------------ the rest */

void model_init(struct model *model)
{
	*model = (struct model){.result_size_max = HX_RESULT_SIZE_DEFAULT};
}

size_t model_sweep(struct model *model, int64_t now_ms)
{
	size_t settled = 0;

	for (size_t i = 0; i < model->count; i++) {
		struct model_record *record = &model->keys[i].record;

		if (is_expired(record, now_ms)) {
			record->state = HAPAX_STATE_ABSENT;
		} else if (
			model_record_is_lapsed(record, now_ms) &&
			later(record->lease_ends_ms, record->ttl_ms) <= now_ms) {
			enter(record,
			      record->on_lapse == HAPAX_ON_LAPSE_PARK ? HAPAX_STATE_PARKED
								      : HAPAX_STATE_FAILED,
			      now_ms);
			record->error_is_free = true;
			settled++;
		}
	}
	return settled;
}

void model_scan_begin(struct model *model)
{
	for (size_t i = 0; i < model->count; i++)
		model->keys[i].seen = false;
}

bool model_scan_record(struct model *model, int64_t now_ms, const struct hapax_record *record)
{
	struct model_key *entry = key_of(model, record->tenant, record->group, record->key);

	if (!entry || !is_there(&entry->record, now_ms))
		return model_differ(model, "a scan showed a record that is not there");
	const char *field = model_record_difference(&entry->record, record);
	if (field)
		return model_differ(model, "a scan showed another %s", field);
	entry->seen = true;
	return true;
}

bool model_scan_end(struct model *model, int64_t now_ms)
{
	for (size_t i = 0; i < model->count; i++) {
		struct model_record *record = &model->keys[i].record;

		if (!is_there(record, now_ms) || model->keys[i].seen)
			continue;
		if (!model->evicts || record->state != HAPAX_STATE_DONE)
			return model_differ(model, "a scan left a record out");
		evict(model, record);
	}
	return true;
}

size_t model_count(const struct model *model, int64_t now_ms, enum hapax_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < model->count; i++) {
		const struct model_record *record = &model->keys[i].record;

		count += is_there(record, now_ms) &&
			(state == HAPAX_STATE_ABSENT || record->state == state);
	}
	return count;
}

const struct model_record *model_find(
	const struct model *model, int64_t now_ms, struct hapax_bytes tenant,
	struct hapax_bytes group, struct hapax_bytes key)
{
	for (size_t i = 0; i < model->count; i++) {
		const struct model_key *entry = &model->keys[i];

		if (model_text_is(&entry->tenant, or_default(tenant)) &&
		    model_text_is(&entry->group, or_default(group)) &&
		    model_text_is(&entry->key, key))
			return is_there(&entry->record, now_ms) ? &entry->record : NULL;
	}
	return NULL;
}
