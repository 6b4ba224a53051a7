/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - a submit's operations on the index.
 *
 * What only reads (a duplicate, a lookup) takes no lock; what writes holds the lock
 * of its key's shard. Of a batch, buckets and records are fetched ahead, so that
 * the cache misses of many keys overlap.
 */
#include "store/index/run.h"

#include "store/core.h"
#include "store/index/group.h"
#include "store/index/journal.h"
#include "store/index/mark.h"

/*
 * As many keys as are fetched ahead at a time: what the caches have in flight. More
 * would push out of the first cache what was fetched, before it is used.
 */
enum { AHEAD = 16 };

/* Under the lock of the key's shard. */
static void write_one(struct hx_work *work, const struct hx_work_context *context)
{
	struct hx_shard *shard = work->key->shard;
	uint64_t token = 0;

	hx_lock_acquire(&shard->lock);
	hx_work_decide(work, context);
	if (work->transition.takes_token && work->op->status == HAPAX_OK)
		token = hx_index_take_token(context->index);
	if (hx_work_prepare(work, context, token, 1, true) == HAPAX_OK) {
		hx_table_begin(&shard->table);
		hx_work_commit(work, context);
		hx_table_end(&shard->table);
		hx_shard_tidy(shard, context->rules.now_ms);
		hx_shard_charge(shard);
	}
	hx_lock_release(&shard->lock);
}

void hx_run_one(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op)
{
	struct hx_work work;

	if (hx_mark_run(context, key, op))
		return;
	/* The journal is full: what was tried is tried again. */
	if (context->journal != NULL && context->journal->is_full)
		return;
	hx_work_bind(&work, key, op);
	if (!hx_work_read(&work, context))
		write_one(&work, context);
}

static bool is_full(const struct hx_work_context *context)
{
	return context->journal != NULL && context->journal->is_full;
}

/* Operations on their own, at most AHEAD of them. Between enter and leave. Returns how many. */
static size_t run_ahead(const struct hx_work_context *context, struct hapax_op *ops, size_t count)
{
	struct hx_index_key keys[AHEAD];
	uint32_t overflow[AHEAD];

	for (size_t i = 0; i < count; i++) {
		hx_index_key_init(context->index, &keys[i], ops[i].private_scope, ops[i].key);
		hx_index_prefetch_bucket(&keys[i]);
	}
	for (size_t i = 0; i < count; i++)
		overflow[i] = hx_index_prefetch_record(&keys[i]);
	for (size_t i = 0; i < count; i++) {
		if (overflow[i] != 0)
			hx_index_prefetch_overflow(&keys[i], overflow[i]);
	}
	for (size_t i = 0; i < count; i++) {
		hx_run_one(context, &keys[i], &ops[i]);
		if (is_full(context)) {
			hx_store_refuse(&ops[i], HAPAX_OK);
			return i;
		}
	}
	return count;
}

/* How many operations from first on stand on their own, are not refused, and fit. */
static size_t count_plain(const struct hapax_op *ops, size_t count, size_t first)
{
	size_t end = first;

	while (end < count && end - first < AHEAD && ops[end].status == HAPAX_OK &&
	       !hx_run_is_grouped(&ops[end]))
		end++;
	return end - first;
}

size_t hx_run_all(const struct hx_work_context *context, struct hapax_op *ops, size_t count)
{
	size_t i = 0;

	while (i < count && !is_full(context)) {
		size_t plain = count_plain(ops, count, i);

		if (plain != 0) {
			unsigned seat = hx_epoch_enter(&context->index->epoch);

			i += run_ahead(context, ops + i, plain);
			hx_epoch_leave(&context->index->epoch, seat);
		} else if (hx_run_is_grouped(&ops[i])) {
			size_t end = hx_store_group_end(ops, count, i);

			if (hx_index_group(context, ops + i, end - i))
				i = end;
		} else {
			i++; /* refused by the check */
		}
	}
	return i;
}
