/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_group.c - linked operations, in one step.
 *
 * All shards of the group are locked, in order of their numbers, and their tables are bracketed
 * together. So a reader without a lock sees all of the group or nothing of it.
 */
#include "store/index/index_group.h"

#include <assert.h>

#include "base/alloc.h"
#include "store/core.h"
#include "store/index/write_ahead.h"

/* Groups up to this size need no allocation. */
enum { MEMBERS_ON_STACK = 4 };

struct member {
	struct hx_index_key key;
	struct hx_work work;
};

static uint32_t shards_of(
	const struct hx_work_context *context, const struct member *members, size_t count)
{
	uint32_t shards = 0;

	_Static_assert(HX_SHARDS_MAX <= 32, "a bit for each shard");
	for (size_t i = 0; i < count; i++) {
		assert(members[i].key.shard >= context->index->shards);
		assert(members[i].key.shard < context->index->shards + context->index->shard_count);
		shards |= 1u << (members[i].key.shard - context->index->shards);
	}
	return shards;
}

static void for_shards(
	const struct hx_work_context *context, uint32_t shards, void (*visit)(struct hx_shard *))
{
	for (; shards != 0; shards &= shards - 1)
		visit(&context->index->shards[__builtin_ctz(shards)]);
}

static void lock(struct hx_shard *shard)
{
	hx_lock_acquire(&shard->lock);
}

static void begin(struct hx_shard *shard)
{
	hx_table_begin(&shard->table);
}

static void end(struct hx_shard *shard)
{
	hx_table_end(&shard->table);
}

static void unlock(struct hx_shard *shard)
{
	hx_shard_charge(shard);
	hx_shard_assert(shard);
	hx_lock_release(&shard->lock);
}

static bool all_go(const struct member *members, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!hx_transition_is_go(members[i].work.op))
			return false;
	}
	return true;
}

/*
 * Claims of the group share one token. A repeated call that finds one of its keys free (it was
 * forgotten) takes a fresh token for all of them.
 */
static void share_token(struct member *members, size_t count)
{
	bool is_fresh = false;

	for (size_t i = 0; i < count; i++) {
		/* Only what goes gets here, and a claim that goes is put. */
		assert(members[i].work.op->type != HAPAX_OP_CLAIM ||
		       members[i].work.transition.effect == HX_EFFECT_PUT);
		is_fresh |= members[i].work.transition.takes_token;
	}
	for (size_t i = 0; i < count; i++) {
		if (members[i].work.op->type == HAPAX_OP_CLAIM)
			members[i].work.transition.takes_token = is_fresh;
	}
}

static void cancel_all(const struct hx_work_context *context, struct member *members, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hx_work_cancel(&members[i].work, context);
	if (context->write_ahead != NULL)
		context->write_ahead->cancel(context->write_ahead);
}

/* Prepare all, or undo everything; the operation that failed has its status. */
static bool prepare_all(const struct hx_work_context *context, struct member *members, size_t count)
{
	uint64_t token = 0;

	share_token(members, count);
	for (size_t i = 0; i < count; i++) {
		enum hapax_status status;

		if (members[i].work.transition.takes_token && token == 0)
			token = hx_index_take_tokens(context->index, 1);
		status = hx_work_prepare(&members[i].work, context, token, (unsigned)i + 1, false);
		assert(status != HAPAX_OK || !members[i].work.transition.takes_token ||
		       members[i].work.op->token == token);
		if (status == HAPAX_OK)
			continue;
		cancel_all(context, members, i);
		return false;
	}
	return true;
}

/* Linked, not all-or-nothing: a failed operation does not affect the others. */
static void prepare_each(
	const struct hx_work_context *context, struct member *members, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t token = members[i].work.transition.takes_token
			? hx_index_take_tokens(context->index, 1)
			: 0;

		if (hx_work_prepare(&members[i].work, context, token, (unsigned)i + 1, false) !=
		    HAPAX_OK)
			members[i].work.transition.effect = HX_EFFECT_NONE;
	}
}

/*
 * Evict for the group before it is decided, since its records must stay afterwards. Its existing
 * records count as used.
 */
static void make_room(const struct hx_work_context *context, struct member *members, size_t count)
{
	struct hx_admission admission = {.may_evict = true};

	if (context->index->evict != HAPAX_EVICT_LRU)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct hx_index_key *key = &members[i].key;
		const struct hapax_op *op = members[i].work.op;
		uint32_t place = hx_shard_find(key->shard, &key->packed, key->hash);

		if (place != 0)
			hx_packed_raise_use(hx_arena_at(&key->shard->arena, place), 2);
		if (op->type == HAPAX_OP_LOOKUP || op->type == HAPAX_OP_FORGET)
			continue;
		assert(admission.keys <= i);
		admission.keys += place == 0;
		admission.bytes += hx_work_bytes(op, context->rules.result_size_max);
	}
	for (size_t i = 0; i < count; i++) {
		admission.shard = members[i].key.shard;
		hx_index_make_room(context->index, &admission, context->rules.now_ms);
	}
}

/* If the journal is full, undo everything. False: it is not full. */
static bool put_off(const struct hx_work_context *context, struct member *members, size_t count)
{
	if (context->write_ahead == NULL || !context->write_ahead->is_full)
		return false;
	cancel_all(context, members, count);
	for (size_t i = 0; i < count; i++) {
		assert(members[i].work.staged == 0);
		hx_store_refuse(members[i].work.op, HAPAX_OK);
	}
	return true;
}

/* False: deferred. */
static bool index_group_run(
	const struct hx_work_context *context, struct member *members, size_t count,
	bool all_or_nothing)
{
	uint32_t shards = shards_of(context, members, count);
	bool goes = true;
	bool is_put_off;

	assert(shards != 0);
	assert((size_t)__builtin_popcount(shards) <= count);
	for_shards(context, shards, lock);
	make_room(context, members, count);
	for (size_t i = 0; i < count; i++)
		hx_work_decide(&members[i].work, context);
	if (all_or_nothing)
		goes = all_go(members, count) && prepare_all(context, members, count);
	else
		prepare_each(context, members, count);
	is_put_off = put_off(context, members, count);
	if (goes && !is_put_off) {
		for_shards(context, shards, begin);
		for (size_t i = 0; i < count; i++)
			hx_work_commit(&members[i].work, context);
		for_shards(context, shards, end);
		/* Return what was reserved for the worst case and not needed. */
		if (context->write_ahead != NULL)
			context->write_ahead->cancel(context->write_ahead);
		for (size_t i = 0; i < count; i++)
			hx_shard_tidy(members[i].key.shard, context->rules.now_ms);
	} else if (!is_put_off) {
		for (size_t i = 0; i < count; i++)
			hx_work_skip(&members[i].work, context);
	}
	for_shards(context, shards, unlock);
	return !is_put_off;
}

bool hx_index_group(const struct hx_work_context *context, struct hapax_op *ops, size_t count)
{
	bool all_or_nothing = (ops[0].flags & HAPAX_OP_ALL_OR_NOTHING) != 0;
	struct member on_stack[MEMBERS_ON_STACK];
	struct member *members = on_stack;
	size_t work_count = 0;
	bool is_run = true;

	assert(count >= 1);
	if (count > MEMBERS_ON_STACK)
		members = hx_alloc(count * sizeof(*members));
	if (members == NULL) {
		hx_store_fail(ops, count, HAPAX_ERR_NO_MEMORY);
		return true;
	}
	for (size_t i = 0; i < count; i++) {
		struct member *member = &members[work_count];

		if (ops[i].status != HAPAX_OK)
			continue;
		hx_index_key_init(context->index, &member->key, ops[i].private_scope, ops[i].key);
		hx_work_bind(&member->work, &member->key, &ops[i]);
		work_count++;
	}
	assert(!all_or_nothing || work_count == count || work_count == 0);
	if (work_count != 0)
		is_run = index_group_run(context, members, work_count, all_or_nothing);
	if (members != on_stack)
		hx_free(members);
	return is_run;
}
