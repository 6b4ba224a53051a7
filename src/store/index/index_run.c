/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_run.c - a submit's operations on the index.
 *
 * Operations that only read (a duplicate, a lookup) take no lock; a write holds the lock of its
 * key's shard. For a batch, buckets and records are prefetched, so that the cache misses of many
 * keys overlap.
 */
#include "store/index/index_run.h"

#include <assert.h>

#include "store/core.h"
#include "store/index/index_group.h"
#include "store/index/write_ahead.h"
#include "store/index/mark.h"

/*
 * The number of keys prefetched at a time: as many as the caches have in flight. More would
 * evict prefetched data from the first cache before it is used.
 */
enum { AHEAD = HX_SIPHASH_LANES };

/* Under the lock of the key's shard. */
static void write_one(struct hx_work *work, const struct hx_work_context *context)
{
	struct hx_shard *shard = work->key->shard;
	uint64_t token = 0;

	hx_lock_acquire(&shard->lock);
	hx_work_decide(work, context);
	if (work->transition.takes_token && work->op->status == HAPAX_OK)
		token = hx_index_take_tokens(context->index, 1);
	if (hx_work_prepare(work, context, token, 1, true) == HAPAX_OK) {
		hx_table_begin(&shard->table);
		hx_work_commit(work, context);
		hx_table_end(&shard->table);
		hx_shard_tidy(shard, context->rules.now_ms);
		hx_shard_charge(shard);
	} else {
		assert(work->staged == 0);
		assert(!work->is_admitted);
	}
	hx_shard_assert(shard);
	hx_lock_release(&shard->lock);
}

static bool is_full(const struct hx_work_context *context)
{
	return context->write_ahead != NULL && context->write_ahead->is_full;
}

static void run_slowly(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op)
{
	struct hx_work work;

	/* Operations that the check refused do not come here. */
	assert(op->status == HAPAX_OK);
	hx_work_bind(&work, key, op);
	if (!hx_work_read(&work, context))
		write_one(&work, context);
}

void hx_index_run_one(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op)
{
	/* With a full journal, the same operation is tried again. */
	if (!hx_mark_run(context, key, op) && !is_full(context))
		run_slowly(context, key, op);
}

/*
 * Can they run together? A mix runs one by one, since operations on one key take effect in their
 * order. So do journaled operations, since the journal may stop at any of them.
 */
static bool are_checks(
	const struct hx_work_context *context, const struct hapax_op *ops, size_t count)
{
	bool fit = context->write_ahead == NULL;

	for (size_t i = 0; i < count; i++)
		fit &= hx_mark_fits(&ops[i]);
	return fit;
}

/* Single operations, at most AHEAD of them, whose records are prefetched. Returns how many. */
static size_t run_some(
	const struct hx_work_context *context, const struct hx_index_key *keys,
	struct hapax_op *ops, size_t count)
{
	assert(count <= AHEAD);
	if (are_checks(context, ops, count)) {
		unsigned left = hx_mark_run_all(context, keys, ops, (unsigned)count);

		for (; left != 0; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctz(left);

			run_slowly(context, &keys[i], &ops[i]);
		}
		return count;
	}
	for (size_t i = 0; i < count; i++) {
		hx_index_run_one(context, &keys[i], &ops[i]);
		if (is_full(context)) {
			hx_store_refuse(&ops[i], HAPAX_OK);
			return i;
		}
	}
	return count;
}

/* Prepare keys, and prefetch their buckets. */
static void begin_some(
	const struct hx_work_context *context, struct hx_index_key *keys,
	const struct hapax_op *ops, size_t count)
{
	hx_index_keys_init(context->index, keys, ops, count);
	for (size_t i = 0; i < count; i++)
		hx_index_prefetch_bucket(&keys[i]);
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Single operations, AHEAD at a time. While these wait for their records, the next ones are
 * prepared; their buckets arrive while these run. Returns how many.
 */
static size_t run_ahead(const struct hx_work_context *context, struct hapax_op *ops, size_t count)
{
	struct hx_index_key keys[2][AHEAD];
	struct hx_index_key *behind[AHEAD]; /* whose bucket overflows */
	uint32_t overflow[AHEAD];
	size_t here = min_size(count, AHEAD);
	size_t first = 0;
	unsigned turn = 0;

	begin_some(context, keys[0], ops, here);
	while (here != 0) {
		unsigned seat = hx_epoch_enter(&context->index->epoch);
		size_t next = min_size(count - first - here, AHEAD);
		size_t count_behind = 0;
		size_t ran;

		for (size_t i = 0; i < here; i++) {
			overflow[count_behind] = hx_index_probe(&keys[turn][i]);
			behind[count_behind] = &keys[turn][i];
			count_behind += overflow[count_behind] != 0;
		}
		begin_some(context, keys[turn ^ 1], ops + first + here, next);
		for (size_t i = 0; i < count_behind; i++)
			hx_index_probe_overflow(behind[i], overflow[i]);
		ran = run_some(context, keys[turn], ops + first, here);
		hx_epoch_leave(&context->index->epoch, seat);
		assert(ran <= here);
		/* Only a full journal stops it. */
		assert(ran == here || is_full(context));
		first += ran;
		here = ran == here ? next : 0;
		turn ^= 1;
	}
	return first;
}

/* How many operations from first on are single and not refused. */
static size_t count_plain(const struct hapax_op *ops, size_t count, size_t first)
{
	size_t end = first;

	while (end < count && ops[end].status == HAPAX_OK && !hx_run_is_grouped(&ops[end]))
		end++;
	return end - first;
}

size_t hx_index_run_all(const struct hx_work_context *context, struct hapax_op *ops, size_t count)
{
	size_t i = 0;

	while (i < count && !is_full(context)) {
		size_t plain = count_plain(ops, count, i);

		if (plain != 0) {
			i += run_ahead(context, ops + i, plain);
		} else if (hx_run_is_grouped(&ops[i])) {
			size_t end = hx_store_group_end(ops, count, i);

			assert(end > i);
			assert(end <= count);
			if (hx_index_group(context, ops + i, end - i))
				i = end;
		} else {
			assert(ops[i].status != HAPAX_OK);
			i++; /* refused by the check */
		}
	}
	assert(i <= count);
	return i;
}
