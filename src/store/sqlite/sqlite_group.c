/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_group.c - decide and apply a group of operations within a transaction.
 *
 *	load      the record of each operation, copied out of SQLite's memory
 *	decide    by the rules of transition.c; limits may turn an answer into LIMIT
 *	hand out  records into the callers' buffers, which may be too small
 *	apply     the decisions, unless an all-or-nothing group fails
 */
#include "store/sqlite/sqlite_group.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "record/record.h"
#include "record/transition.h"
#include "store/core.h"
#include "store/sqlite/limit.h"
#include "store/sqlite/row.h"

enum {
	/* Slots that stay allocated; larger groups are rare. */
	SLOTS_KEPT = 64,

	/* A larger buffer is freed after the batch. */
	SLOT_BYTES_KEPT = 64 * 1024,
};

/* In private_state: the check in store.c refused the operation. */
enum { OP_REFUSED = 1 };

/* One operation of the group that is being decided. */
struct hx_sqlite_slot {
	bool is_live; /* not refused, and its record is readable */
	bool has_row; /* the key has a row, perhaps an expired one */
	int64_t id;   /* of that row */
	struct hapax_record old;
	struct hapax_buf buf; /* holds the bytes of old */
	struct hx_transition transition;
};

void hx_sqlite_workspace_done(struct hx_sqlite_workspace *workspace)
{
	for (size_t i = 0; i < workspace->slot_count; i++)
		hx_buf_done(&workspace->slots[i].buf);
	hx_free(workspace->slots);
	workspace->slots = NULL;
	workspace->slot_count = 0;
}

void hx_sqlite_workspace_trim(struct hx_sqlite_workspace *workspace)
{
	if (workspace->slot_count > SLOTS_KEPT) {
		hx_sqlite_workspace_done(workspace);
		return;
	}
	for (size_t i = 0; i < workspace->slot_count; i++) {
		if (workspace->slots[i].buf.capacity > SLOT_BYTES_KEPT)
			hx_buf_done(&workspace->slots[i].buf);
	}
}

static bool reserve_slots(struct hx_sqlite_workspace *workspace, size_t count)
{
	struct hx_sqlite_slot *slots;

	if (count <= workspace->slot_count)
		return true;
	slots = hx_realloc(workspace->slots, count * sizeof(*slots));
	if (slots == NULL)
		return false;
	for (size_t i = workspace->slot_count; i < count; i++)
		hx_buf_init(&slots[i].buf, HX_RECORD_SIZE_MAX);
	workspace->slots = slots;
	workspace->slot_count = count;
	return true;
}

void hx_sqlite_ops_begin(struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ops[i].private_state = ops[i].status == HAPAX_OK ? 0 : OP_REFUSED;
}

void hx_sqlite_ops_fail(struct hapax_op *ops, size_t count, enum hapax_status status)
{
	for (size_t i = 0; i < count; i++) {
		if (!(ops[i].private_state & OP_REFUSED))
			hx_store_refuse(&ops[i], status);
	}
}

/* Read headers and body only to hand them out, compare them or write them back. */
static bool needs_result(const struct hapax_op *op)
{
	return op->record != NULL || op->type == HAPAX_OP_SET || op->type == HAPAX_OP_EXPIRE ||
		(op->type == HAPAX_OP_FORGET && op->set_if == HAPAX_SET_IF_EQUAL);
}

static int load_row(sqlite3_stmt *statement, struct hapax_op *op, struct hx_sqlite_slot *slot)
{
	struct hapax_record row = {.tenant = op->tenant, .group = op->group, .key = op->key};
	enum hapax_status status = HAPAX_ERR_CORRUPT;
	bool valid = false;
	int code = hx_sqlite_row_read(statement, &slot->id, &row, &valid);

	if (code != SQLITE_OK)
		return code;
	if (valid)
		status = hx_record_copy(&row, &slot->old, &slot->buf);
	slot->has_row = status == HAPAX_OK;
	slot->is_live = status == HAPAX_OK;
	if (status != HAPAX_OK)
		hx_store_refuse(op, status);
	return SQLITE_OK;
}

static int load(
	struct hx_sqlite_transaction *transaction, struct hapax_op *op, struct hx_sqlite_slot *slot)
{
	sqlite3_stmt *statement;
	int code = hx_sqlite_statement(
		transaction->connection,
		needs_result(op) ? HX_SQLITE_RECORD_FIND_WHOLE : HX_SQLITE_RECORD_FIND, &statement);

	slot->is_live = true;
	slot->has_row = false;
	if (code != SQLITE_OK)
		return code;
	code |= hx_sqlite_bind_bytes(statement, 1, op->tenant);
	code |= hx_sqlite_bind_bytes(statement, 2, op->group);
	code |= hx_sqlite_bind_bytes(statement, 3, op->key);
	if (code != SQLITE_OK)
		return SQLITE_NOMEM;
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		code = load_row(statement, op, slot);
	else if (code == SQLITE_DONE)
		code = SQLITE_OK;
	(void)sqlite3_reset(statement);
	return code;
}

static int load_all(
	struct hx_sqlite_workspace *workspace, struct hx_sqlite_transaction *transaction,
	const struct hx_sqlite_group *group)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < group->count && code == SQLITE_OK; i++) {
		workspace->slots[i].is_live = false;
		workspace->slots[i].transition.effect = HX_EFFECT_NONE;
		if (group->ops[i].private_state & OP_REFUSED)
			continue;
		/* Reset the answer: a batch may be decided more than once. */
		hx_store_refuse(&group->ops[i], HAPAX_OK);
		code = load(transaction, &group->ops[i], &workspace->slots[i]);
	}
	return code;
}

static bool is_all_or_nothing(const struct hx_sqlite_group *group)
{
	return (group->ops[0].flags & HAPAX_OP_ALL_OR_NOTHING) != 0;
}

/*
 * Claims of the group share one token. If a repeated call finds one of its keys free (forgotten
 * since), all of them take a fresh one.
 */
static void share_token(
	struct hx_sqlite_workspace *workspace, const struct hx_sqlite_group *group, uint64_t token)
{
	for (size_t i = 0; i < group->count; i++) {
		struct hx_sqlite_slot *slot = &workspace->slots[i];
		bool is_put = slot->is_live && slot->transition.effect == HX_EFFECT_PUT;

		if (is_put && group->ops[i].type == HAPAX_OP_CLAIM &&
		    group->ops[i].outcome == HAPAX_OUTCOME_ACQUIRED) {
			slot->transition.next.token = token;
			group->ops[i].token = token;
		}
	}
}

/*
 * Claims of an all-or-nothing group share one token; others take one each. An unused token leaves
 * a gap: tokens only promise to rise.
 *
 * A joined caller may roll back after it has shown its token to others. The counter in the file
 * then goes back. The counter here does not, so that at least this process does not grant the
 * token again (I5).
 */
static void decide_all(
	struct hx_sqlite_workspace *workspace, struct hx_sqlite_transaction *transaction,
	const struct hx_sqlite_group *group)
{
	struct hx_transition_rules rules = {
		.now_ms = transaction->now_ms,
		.result_size_max = workspace->options->result_size_max,
		.without_lease = workspace->without_lease,
	};
	uint64_t *token = &transaction->meta.token;
	bool has_taken = false;

	if (*token < workspace->token)
		*token = workspace->token;
	for (size_t i = 0; i < group->count; i++) {
		struct hx_sqlite_slot *slot = &workspace->slots[i];
		bool is_exhausted = *token == HX_TOKEN_MAX;

		if (!slot->is_live)
			continue;
		rules.fresh_token = is_exhausted || (has_taken && is_all_or_nothing(group))
			? *token
			: *token + 1;
		hx_transition(
			slot->has_row ? &slot->old : NULL, &group->ops[i], &rules,
			&slot->transition);
		if (group->ops[i].type == HAPAX_OP_LOAD && *token < slot->transition.next.token)
			*token = slot->transition.next.token;
		if (!slot->transition.takes_token)
			continue;
		if (is_exhausted) {
			slot->transition.effect = HX_EFFECT_NONE;
			hx_store_refuse(&group->ops[i], HAPAX_ERR_LIMIT);
			continue;
		}
		*token = rules.fresh_token;
		has_taken = true;
	}
	if (has_taken && is_all_or_nothing(group))
		share_token(workspace, group, transaction->meta.token);
}

static bool all_go(const struct hx_sqlite_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		if (!hx_transition_is_go(&group->ops[i]))
			return false;
	}
	return true;
}

static bool goes(const struct hx_sqlite_group *group)
{
	return !is_all_or_nothing(group) || all_go(group);
}

static bool wants_to_write(
	const struct hx_sqlite_workspace *workspace, const struct hx_sqlite_group *group)
{
	if (!goes(group))
		return false;
	for (size_t i = 0; i < group->count; i++) {
		if (workspace->slots[i].transition.effect != HX_EFFECT_NONE)
			return true;
	}
	return false;
}

/* May it write although the disk is full? A forgotten record needs no more room. */
static bool is_end(const struct hapax_op *op)
{
	return hx_transition_has_token(op) || op->type == HAPAX_OP_FORGET;
}

/* False: the group has something to write that is not the end of a claim. */
static bool keep_to_ends(struct hx_sqlite_workspace *workspace, const struct hx_sqlite_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		struct hx_sqlite_slot *slot = &workspace->slots[i];
		struct hapax_result *result = &slot->transition.next.result;

		if (slot->transition.effect == HX_EFFECT_NONE)
			continue;
		if (!is_end(&group->ops[i]))
			return false;
		if (slot->transition.effect == HX_EFFECT_PUT &&
		    result->headers.size + result->body.size > group->result_size_max) {
			hx_record_result_omit_body(result);
			result->headers = (struct hapax_bytes){NULL, 0};
		}
	}
	return true;
}

static int limit_all(
	struct hx_sqlite_workspace *workspace, struct hx_sqlite_transaction *transaction,
	const struct hx_sqlite_group *group)
{
	struct hx_sqlite_growth growth = {0, 0};
	int code = SQLITE_OK;

	for (size_t i = 0; i < group->count && code == SQLITE_OK; i++) {
		struct hx_sqlite_slot *slot = &workspace->slots[i];
		bool is_over = false;

		if (!slot->is_live || slot->transition.effect != HX_EFFECT_PUT)
			continue;
		code = hx_sqlite_limit_check(
			transaction, &group->ops[i], &slot->transition, slot->has_row, &growth,
			&is_over);
		if (is_over) {
			slot->transition.effect = HX_EFFECT_NONE;
			hx_store_refuse(&group->ops[i], HAPAX_ERR_LIMIT);
		}
	}
	return code;
}

/* The previous record, if there was one. */
static const struct hapax_record *record_before(const struct hx_sqlite_slot *slot)
{
	return slot->has_row && !slot->transition.was_absent ? &slot->old : NULL;
}

/* The record that the caller asked for: see struct hapax_op. */
static const struct hapax_record *record_to_hand_out(
	const struct hapax_op *op, const struct hx_sqlite_slot *slot)
{
	if (op->type == HAPAX_OP_SET || op->type == HAPAX_OP_FORGET)
		return record_before(slot);
	return slot->transition.effect == HX_EFFECT_PUT ? &slot->transition.next
							: record_before(slot);
}

static void hand_out(struct hapax_op *op, struct hx_sqlite_slot *slot)
{
	const struct hapax_record *source;
	enum hapax_status status;

	if (!slot->is_live || op->record == NULL || op->status != HAPAX_OK)
		return;
	source = record_to_hand_out(op, slot);
	if (source == NULL) {
		if (op->outcome == HAPAX_OUTCOME_SKIPPED)
			memset(op->record, 0, sizeof(*op->record));
		return;
	}
	status = hx_record_copy(source, op->record, op->buf);
	if (status == HAPAX_OK)
		return;
	slot->transition.effect = HX_EFFECT_NONE;
	hx_store_refuse(op, status);
}

static void hand_out_all(struct hx_sqlite_workspace *workspace, const struct hx_sqlite_group *group)
{
	for (size_t i = 0; i < group->count; i++)
		hand_out(&group->ops[i], &workspace->slots[i]);
}

/* No operation of the group takes effect; skipped ones report the current record. */
static void skip_all(
	struct hx_sqlite_workspace *workspace, const struct hx_sqlite_transaction *transaction,
	const struct hx_sqlite_group *group)
{
	hx_store_skip_group(group->ops, 0, group->count);
	for (size_t i = 0; i < group->count; i++) {
		struct hx_sqlite_slot *slot = &workspace->slots[i];
		struct hapax_op *op = &group->ops[i];

		slot->transition.effect = HX_EFFECT_NONE;
		if (op->status != HAPAX_OK || op->outcome != HAPAX_OUTCOME_SKIPPED)
			continue;
		hx_store_refuse(op, HAPAX_OK);
		op->outcome = HAPAX_OUTCOME_SKIPPED;
		if (record_before(slot) != NULL)
			hx_transition_describe(record_before(slot), transaction->now_ms, op);
	}
}

static int apply(struct hx_sqlite_transaction *transaction, struct hx_sqlite_slot *slot)
{
	switch (slot->transition.effect) {
	case HX_EFFECT_NONE: return SQLITE_OK;
	case HX_EFFECT_PUT:
		if (!slot->has_row)
			return hx_sqlite_transaction_insert(transaction, &slot->transition.next);
		return hx_sqlite_transaction_replace(
			transaction, slot->id, slot->old.state, &slot->transition.next);
	case HX_EFFECT_REMOVE:
		return hx_sqlite_transaction_remove(transaction, slot->id, &slot->old);
	}
	return SQLITE_INTERNAL;
}

static int apply_all(
	struct hx_sqlite_workspace *workspace, struct hx_sqlite_transaction *transaction,
	const struct hx_sqlite_group *group)
{
	int code = limit_all(workspace, transaction, group);

	if (code != SQLITE_OK)
		return code;
	if (goes(group))
		hand_out_all(workspace, group);
	/* It failed from the start, or because a record did not fit its buffer. */
	if (!goes(group)) {
		skip_all(workspace, transaction, group);
		hand_out_all(workspace, group);
	}
	for (size_t i = 0; i < group->count && code == SQLITE_OK; i++)
		code = apply(transaction, &workspace->slots[i]);
	if (code == SQLITE_OK && transaction->is_dirty)
		workspace->token = transaction->meta.token;
	return code;
}

int hx_sqlite_group_run(
	struct hx_sqlite_workspace *workspace, struct hx_sqlite_transaction *transaction,
	const struct hx_sqlite_group *group, bool *ret_told)
{
	int code = SQLITE_OK;

	*ret_told = false;
	if (!reserve_slots(workspace, group->count)) {
		hx_sqlite_ops_fail(group->ops, group->count, HAPAX_ERR_NO_MEMORY);
		return SQLITE_OK;
	}
	if (group->policy == HX_SQLITE_WRITE_APPLY || group->policy == HX_SQLITE_WRITE_ENDS)
		code = hx_sqlite_limit_make_room(transaction, group->count);
	if (code == SQLITE_OK)
		code = load_all(workspace, transaction, group);
	if (code != SQLITE_OK)
		return code;
	decide_all(workspace, transaction, group);
	if (group->policy != HX_SQLITE_WRITE_APPLY && wants_to_write(workspace, group) &&
	    !(group->policy == HX_SQLITE_WRITE_ENDS && keep_to_ends(workspace, group))) {
		*ret_told = group->policy == HX_SQLITE_WRITE_TELL;
		if (group->policy != HX_SQLITE_WRITE_TELL)
			hx_sqlite_ops_fail(group->ops, group->count, group->refusal);
		return SQLITE_OK;
	}
	return apply_all(workspace, transaction, group);
}
