/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant_limit.c - a store that refuses new keys of some tenants.
 *
 *	submit ──no lookup is needed───────────────────────────────────▶ the store
 *	   └──lookups ──▶ the store ──▶ looked(): absent is refused ──▶ the rest ──▶ the store
 *	                                          or is a new key to count
 *
 * An array goes to the store whole and in order. A refused operation is therefore sent as a
 * lookup, and becomes LIMIT when it returns.
 */
#include "store/tenant/tenant_limit.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/thread.h"
#include "store/core.h"
#include "store/counting.h"
#include "store/front.h"
#include "store/scope_table.h"

struct limit_store {
	struct hx_front front;
	struct hapax_store *counters; /* the store behind, or one behind that */
	_Atomic size_t count;         /* of tenants; 0: skip the list */
	struct hx_lock lock;
	struct hapax_bytes *tenants; /* Locks: lock. Sorted; followed by the texts */
};

/* The lookup of a plain set that found no record. */
struct absent {
	const struct hapax_op *lookup;
};

/* A submit with at least one operation that needs a lookup. */
struct job {
	struct limit_store *limit;
	struct hapax_completion completion;
	struct hapax_op *ops;
	size_t count;
	size_t lookup_count;
	struct hapax_op *lookups; /* one for each operation that needs one */
	struct absent *absent;
	size_t *indexes; /* their indexes in ops */
	/* The operation before it became a lookup; type 0: unchanged. */
	struct {
		int type;
		unsigned flags;
		bool is_judged; /* refused if its lookup finds no record */
		bool is_new;    /* a plain set that makes a record if it is applied */
	} * before;
};

static struct limit_store *limit_of(struct hapax_store *store)
{
	return (struct limit_store *)store;
}

static int compare(const void *one, const void *other)
{
	return hx_bytes_compare(
		*(const struct hapax_bytes *)one, *(const struct hapax_bytes *)other);
}

static bool is_named(struct limit_store *limit, struct hapax_bytes tenant)
{
	size_t count;
	bool is_there;

	hx_lock_acquire(&limit->lock);
	count = atomic_load_explicit(&limit->count, memory_order_relaxed);
	is_there = count > 0 &&
		bsearch(&tenant, limit->tenants, count, sizeof(tenant), compare) != NULL;
	hx_lock_release(&limit->lock);
	return is_there;
}

static bool may_make_record(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK ||
		(op->type == HAPAX_OP_SET &&
		 (op->set_if == HAPAX_SET_ALWAYS || op->set_if == HAPAX_SET_IF_ABSENT));
}

/* A plain set. */
static bool is_counted_here(const struct hapax_op *op)
{
	return op->status == HAPAX_OK && op->type == HAPAX_OP_SET && op->set_if == HAPAX_SET_ALWAYS;
}

/* May it create a record of a tenant that has too many? */
static bool is_judged(struct limit_store *limit, const struct hapax_op *op)
{
	return op->status == HAPAX_OK &&
		atomic_load_explicit(&limit->count, memory_order_relaxed) > 0 &&
		may_make_record(op) && is_named(limit, op->tenant);
}

/* A set of an absent key counts as acquired, so count this one as such a set. */
static void count_new(struct limit_store *limit, const struct hapax_op *op)
{
	struct hapax_op made = *op;

	made.set_if = HAPAX_SET_IF_ABSENT;
	/* The scope numbers are those of another store. */
	made.private_scope = HX_SCOPE_NOWHERE;
	made.unverified = 0;
	hx_counting_add(limit->counters, &made, 1);
}

static void end_job(struct job *job)
{
	struct hapax_completion completion = job->completion;
	struct hapax_op *ops = job->ops;
	size_t count = job->count;

	for (size_t i = 0; i < count; i++) {
		if (job->before[i].type == 0) {
			if (job->before[i].is_new && ops[i].outcome == HAPAX_OUTCOME_APPLIED)
				count_new(job->limit, &ops[i]);
			continue;
		}
		ops[i].type = (enum hapax_op_type)job->before[i].type;
		ops[i].flags = job->before[i].flags;
		hx_store_refuse(&ops[i], HAPAX_ERR_LIMIT);
	}
	hx_free(job);
	/* The store has counted. */
	completion.fn(ops, count, completion.context);
}

static void done(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	(void)count;
	end_job(context);
}

static void tenant_limit_refuse(struct job *job, size_t index)
{
	struct hapax_op *op = &job->ops[index];

	if (job->before[index].type != 0)
		return;
	job->before[index].type = (int)op->type;
	job->before[index].flags = op->flags;
	op->type = HAPAX_OP_LOOKUP;
	op->flags = 0;
}

/* An all-or-nothing group passes or fails whole: LINKED ties an operation to the next one. */
static void refuse_group(struct job *job, size_t index)
{
	size_t first = index;
	size_t last = index;

	while (first > 0 && (job->ops[first - 1].flags & HAPAX_OP_LINKED) != 0)
		first--;
	while (last + 1 < job->count && (job->ops[last].flags & HAPAX_OP_LINKED) != 0)
		last++;
	for (size_t i = first; i <= last; i++)
		tenant_limit_refuse(job, i);
}

static int compare_keys(const void *one, const void *other)
{
	return hx_store_compare_names(
		((const struct absent *)one)->lookup, ((const struct absent *)other)->lookup);
}

/* Several plain sets of one absent key in a batch make one record. */
static void mark_new(struct job *job, size_t count)
{
	qsort(job->absent, count, sizeof(*job->absent), compare_keys);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || compare_keys(&job->absent[i - 1], &job->absent[i]) != 0)
			job->before[job->indexes[job->absent[i].lookup - job->lookups]].is_new =
				true;
	}
}

static void looked(struct hapax_op *lookups, size_t count, void *context)
{
	struct job *job = context;
	size_t absent = 0;

	for (size_t i = 0; i < count; i++) {
		size_t index = job->indexes[i];

		/*
		 * If the lookup failed, the operation itself finds out whether the record exists.
		 */
		if (lookups[i].status != HAPAX_OK || lookups[i].outcome != HAPAX_OUTCOME_ABSENT)
			continue;
		if (job->before[index].is_judged)
			refuse_group(job, index);
		else
			job->absent[absent++].lookup = &lookups[i];
	}
	mark_new(job, absent);
	hapax_store_submit(
		job->limit->front.store, job->ops, job->count,
		(struct hapax_completion){done, job});
}

static struct job *new_job(size_t count)
{
	struct job *job;
	size_t lookups_at = sizeof(*job);
	size_t absent_at = lookups_at + count * sizeof(*job->lookups);
	size_t indexes_at = absent_at + count * sizeof(*job->absent);
	size_t before_at = indexes_at + count * sizeof(*job->indexes);
	unsigned char *memory = hx_alloc_zero(1, before_at + count * sizeof(*job->before));

	if (memory == NULL)
		return NULL;
	job = (void *)memory;
	job->lookups = (void *)(memory + lookups_at);
	job->absent = (void *)(memory + absent_at);
	job->indexes = (void *)(memory + indexes_at);
	job->before = (void *)(memory + before_at);
	return job;
}

static void limit_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct limit_store *limit = limit_of(store);
	struct job *job;
	size_t lookups = 0;

	for (size_t i = 0; i < count; i++)
		lookups += is_counted_here(&ops[i]) || is_judged(limit, &ops[i]);
	if (lookups == 0) {
		hapax_store_submit(limit->front.store, ops, count, completion);
		return;
	}
	/* More tenants may be named meanwhile, so reserve room for all. */
	job = new_job(count);
	if (job == NULL) {
		hx_store_fail_submit(store, ops, count, completion, HAPAX_ERR_NO_MEMORY);
		return;
	}
	job->limit = limit;
	job->completion = completion;
	job->ops = ops;
	job->count = count;
	for (size_t i = 0; i < count; i++) {
		job->before[i].is_judged = is_judged(limit, &ops[i]);
		if (!job->before[i].is_judged && !is_counted_here(&ops[i]))
			continue;
		job->indexes[job->lookup_count] = i;
		job->lookups[job->lookup_count++] = (struct hapax_op){
			.type = HAPAX_OP_LOOKUP,
			.tenant = ops[i].tenant,
			.group = ops[i].group,
			.key = ops[i].key};
	}
	/* The tenant may have left the list since the first check. */
	if (job->lookup_count == 0)
		looked(NULL, 0, job);
	else
		hapax_store_submit(
			limit->front.store, job->lookups, job->lookup_count,
			(struct hapax_completion){looked, job});
}

static enum hapax_status limit_files(
	struct hapax_store *store, struct hapax_files *files, struct hapax_error *err)
{
	return hapax_store_files(limit_of(store)->front.store, files, err);
}

static void limit_close(struct hapax_store *store)
{
	struct limit_store *limit = limit_of(store);

	hx_front_detach(&limit->front);
	hx_free(limit->tenants);
	hx_free(limit);
}

enum hapax_status hx_tenant_limit_open(
	struct hapax_store *store, struct hapax_store *counters, struct hapax_store **ret_store,
	struct hapax_error *err)
{
	struct hapax_store_options options = *hx_store_options(store);
	struct limit_store *limit = hx_alloc_zero(1, sizeof(*limit));
	enum hapax_status status;

	if (limit == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a store");
	hx_front_init(&limit->front, store, limit_submit, limit_close);
	if (store->ops->files != NULL)
		limit->front.ops.files = limit_files;
	limit->counters = counters;
	/* The store does its own housekeeping. */
	options.flags |= HAPAX_STORE_NO_HOUSEKEEPING;
	status = hx_front_attach(&limit->front, &options, err);
	if (status != HAPAX_OK) {
		limit_close(&limit->front.base);
		return status;
	}
	*ret_store = &limit->front.base;
	return HAPAX_OK;
}

enum hapax_status hx_tenant_limit_set(
	struct hapax_store *store, const struct hapax_bytes *tenants, size_t count)
{
	struct limit_store *limit = limit_of(store);
	struct hapax_bytes *copy = NULL;
	struct hapax_bytes *before;
	size_t size = 0;
	char *text;

	assert(store->ops->submit == limit_submit);
	for (size_t i = 0; i < count; i++)
		size += tenants[i].size;
	if (count > 0) {
		copy = hx_alloc(count * sizeof(*copy) + size);
		if (copy == NULL)
			return HAPAX_ERR_NO_MEMORY;
		text = (char *)(copy + count);
		for (size_t i = 0; i < count; i++) {
			copy[i] = hx_bytes(text, tenants[i].size);
			if (tenants[i].size > 0)
				memcpy(text, tenants[i].data, tenants[i].size);
			text += tenants[i].size;
		}
		qsort(copy, count, sizeof(*copy), compare);
	}
	hx_lock_acquire(&limit->lock);
	before = limit->tenants;
	limit->tenants = copy;
	atomic_store_explicit(&limit->count, count, memory_order_relaxed);
	hx_lock_release(&limit->lock);
	hx_free(before);
	return HAPAX_OK;
}
