/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark.c - the fast lane: checks of keys that are new, or marked already.
 *
 * Nearly all requests to a store of seen events are one of the two. Both can be answered from
 * the packed record, without struct hapax_record in between, which halves the instructions.
 * Every unusual case (another state, an expired mark, a limit, a caller that wants the record)
 * is left to work.c. The rules are those of transition.c, and the model in tests/conformance
 * checks both lanes against them.
 */
#include "store/index/mark.h"

#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "store/index/write_ahead.h"

static void answer(
	struct hapax_op *op, enum hapax_outcome outcome, uint64_t token, int64_t first_seen_ms,
	int64_t expires_ms)
{
	op->outcome = outcome;
	op->token = token;
	op->attempt = 1;
	op->first_seen_ms = first_seen_ms;
	op->expires_ms = expires_ms;
}

/* The key exists. True: as a mark that has not expired. */
static bool answer_marked(
	const struct hx_work_context *context, const struct hx_index_key *key, uint32_t place,
	struct hapax_op *op)
{
	struct hx_shard *shard = key->shard;
	unsigned char *at = hx_arena_at(&shard->arena, place);
	enum hapax_outcome outcome = HAPAX_OUTCOME_REPLAY;
	struct hx_packed_mark mark;

	if (!hx_packed_read_mark(at, hx_arena_base(&shard->arena, place), shard->profiles, &mark) ||
	    mark.expires_ms <= context->rules.now_ms)
		return false;
	if (op->fingerprint == NULL || mark.fingerprint == NULL)
		op->unverified = 1;
	else if (memcmp(op->fingerprint, mark.fingerprint, HAPAX_FINGERPRINT_SHORT_SIZE) != 0)
		outcome = HAPAX_OUTCOME_MISMATCH;
	if (context->index->evict == HAPAX_EVICT_LRU)
		hx_packed_raise_use(at, 2);
	/* Without the token: it is not the caller's (hx_transition_tells_token()). */
	answer(op, outcome, 0, mark.first_seen_ms, mark.expires_ms);
	return true;
}

static struct hx_write_ahead_change change_of(
	const struct hx_work_context *context, const struct hx_index_key *key,
	const struct hx_packed_mark *mark)
{
	return (struct hx_write_ahead_change){
		.key = key, .mark = mark, .now_ms = context->rules.now_ms};
}

/* Write to the journal, if there is one. False: it has no room. */
static bool write_journal(
	const struct hx_work_context *context, const struct hx_index_key *key,
	const struct hx_packed_mark *mark)
{
	struct hx_write_ahead *write_ahead = context->write_ahead;
	struct hx_write_ahead_change change;

	if (write_ahead == NULL)
		return true;
	assert(!write_ahead->is_full);
	change = change_of(context, key, mark);
	if (write_ahead->reserve(write_ahead, &change) != HAPAX_OK)
		return false;
	write_ahead->write(write_ahead, &change);
	return true;
}

/* Locks: the shard's. token may stay unused. */
static bool put_mark(
	const struct hx_work_context *context, const struct hx_index_key *key, uint64_t token,
	struct hapax_op *op)
{
	struct hx_shard *shard = key->shard;
	struct hx_packed_mark mark = {
		.fingerprint = op->fingerprint,
		.expires_ms = context->rules.now_ms + op->ttl_ms,
		.token = token,
		.profile_id = hx_shard_profile(shard, key->packed.scope_id, op->ttl_ms),
	};
	uint32_t place;

	if (token == 0 || mark.profile_id == HX_PROFILE_NONE ||
	    hx_profile_get(shard->profiles, mark.profile_id)->ttl_ms != op->ttl_ms)
		return false;
	if (hx_index_is_limited(context->index) &&
	    hx_index_admit(
		    context->index,
		    &(struct hx_admission){
			    .shard = shard,
			    .keys = 1,
			    .bytes = hx_work_bytes(op, 0),
			    .may_evict = true,
		    },
		    context->rules.now_ms) != HAPAX_OK)
		return false;
	place = hx_shard_stage_mark(shard, &key->packed, &mark, context->rules.now_ms);
	if (place == 0 || !write_journal(context, key, &mark)) {
		assert(!hx_table_is_begun(&shard->table));
		if (place != 0)
			hx_shard_unstage(shard, place);
		hx_index_unadmit(context->index);
		return false;
	}
	hx_shard_publish_mark(shard, key->hash, place);
	if (context->index->evict == HAPAX_EVICT_LRU)
		hx_packed_raise_use(hx_arena_at(&shard->arena, place), 1);
	hx_shard_tidy(shard, context->rules.now_ms);
	if (hx_index_is_limited(context->index))
		hx_shard_charge(shard);
	answer(op, HAPAX_OUTCOME_ACQUIRED, mark.token, context->rules.now_ms, mark.expires_ms);
	return true;
}

bool hx_mark_read(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op)
{
	uint64_t sequence;
	uint32_t place;

	return hx_mark_fits(op) &&
		hx_shard_read(key->shard, &key->packed, key->hash, &place, &sequence) &&
		place != 0 && answer_marked(context, key, place, op);
}

bool hx_mark_run(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op)
{
	struct hx_shard *shard = key->shard;
	uint64_t sequence;
	uint32_t place;
	bool is_put = false;

	if (!hx_mark_fits(op) || !hx_shard_read(shard, &key->packed, key->hash, &place, &sequence))
		return false;
	if (place != 0)
		return answer_marked(context, key, place, op);
	hx_lock_acquire(&shard->lock);
	/* Another thread may have put it since the lookup. */
	if (atomic_load_explicit(&shard->table.sequence, memory_order_relaxed) == sequence ||
	    hx_shard_find(shard, &key->packed, key->hash) == 0)
		is_put = put_mark(context, key, hx_index_take_tokens(context->index, 1), op);
	hx_lock_release(&shard->lock);
	return is_put;
}

/* Is key number i among the keys left over? By hash: a false match is harmless. */
static bool follows(const struct hx_index_key *keys, unsigned left, unsigned i)
{
	for (; left != 0; left &= left - 1) {
		if (keys[__builtin_ctz(left)].hash == keys[i].hash)
			return true;
	}
	return false;
}

/* Answer the marked keys, without a lock. Returns the others, as bits. */
static unsigned answer_all(
	const struct hx_work_context *context, const struct hx_index_key *keys,
	struct hapax_op *ops, unsigned count)
{
	unsigned left = 0;

	assert(count <= 32);
	for (unsigned i = 0; i < count; i++) {
		const struct hx_index_key *key = &keys[i];
		uint32_t place = key->place;
		uint64_t sequence;

		/* Nothing was probed: the key is most likely new. */
		if (place != 0 && !hx_index_probe_holds(key) &&
		    !hx_shard_read(key->shard, &key->packed, key->hash, &place, &sequence))
			place = 0;
		if (place == 0 || follows(keys, left, i) ||
		    !answer_marked(context, key, place, &ops[i]))
			left |= 1u << i;
	}
	return left;
}

/* Put the keys of one shard. Returns the ones left over. Locks: the shard's. */
static unsigned put_all(
	const struct hx_work_context *context, const struct hx_index_key *keys,
	struct hapax_op *ops, unsigned todo)
{
	unsigned count = (unsigned)__builtin_popcount(todo);
	uint64_t token = hx_index_take_tokens(context->index, count);
	unsigned left = 0;

	assert(todo != 0);
	assert(token == 0 || token <= HX_TOKEN_MAX - count + 1);
	for (; todo != 0; todo &= todo - 1) {
		unsigned i = (unsigned)__builtin_ctz(todo);
		const struct hx_index_key *key = &keys[i];
		uint32_t place = hx_shard_find(key->shard, &key->packed, key->hash);

		/* An operation must not overtake one on the same key that is left over. */
		if (follows(keys, left, i) ||
		    (place != 0 ? !answer_marked(context, key, place, &ops[i])
				: !put_mark(context, key, token, &ops[i])))
			left |= 1u << i;
		token += token != 0;
	}
	return left;
}

unsigned hx_mark_run_all(
	const struct hx_work_context *context, const struct hx_index_key *keys,
	struct hapax_op *ops, unsigned count)
{
	unsigned todo = answer_all(context, keys, ops, count);
	unsigned left = 0;

	while (todo != 0) {
		struct hx_shard *shard = keys[__builtin_ctz(todo)].shard;
		unsigned here = 0;

		for (unsigned i = 0; i < count; i++)
			here |= (unsigned)(keys[i].shard == shard) << i;
		here &= todo;
		assert(here != 0);
		hx_lock_acquire(&shard->lock);
		left |= put_all(context, keys, ops, here);
		hx_lock_release(&shard->lock);
		todo &= ~here;
		assert((left & todo) == 0);
	}
	return left;
}
