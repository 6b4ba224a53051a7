/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_store.c - a store with a near cache.
 *
 * A submit is answered from the cache if every operation can be. Otherwise it goes to the store
 * unchanged, and the cache keeps the records that the store reports as done.
 */
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include <hapax/ext/store_ops.h>
#include <hapax/near.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "store/core.h"
#include "store/front.h"
#include "store/near/cache.h"

enum {
	AGE_MS_MAX = 1000,
	KEYS_DEFAULT = 16384,
	LANES = 16,
	CACHE_LINE = 64,
};

#define KEYS_LIMIT (UINT64_C(1) << 24)

struct job {
	struct job *next;
	struct near_store *near;
	struct hapax_completion completion;
	int64_t asked_ms; /* the answers were true after it */
	uint64_t drops;   /* of the cache at that time */
};

/* The hits of some threads. A single counter would move between cores with every hit. */
struct lane {
	_Atomic uint64_t hits;
	char unused[CACHE_LINE - sizeof(uint64_t)];
};

struct near_store {
	struct hx_front front; /* the store counts hits, too: they repeat its decisions */
	const struct hapax_clock *clock;
	int64_t age_ms_max;
	struct hx_near_cache *cache;
	_Atomic uint64_t misses;
	struct lane lanes[LANES];
	struct hx_lock lock;
	struct job *free_jobs; /* Locks: lock */
};

static struct near_store *near_of(struct hapax_store *store)
{
	return (struct near_store *)store;
}

static int64_t now_of(const struct near_store *near)
{
	return near->clock->boot_ms(near->clock->context);
}

static bool is_question(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CLAIM || op->type == HAPAX_OP_CHECK;
}

/* Answer all, each on its own. If one is not cached, reset the answers before it. */
static bool answer_all(struct near_store *near, struct hapax_op *ops, size_t count, int64_t now_ms)
{
	int64_t from_ms = now_ms - near->age_ms_max + 1;

	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_OK && is_question(&ops[i]) && ops[i].flags == 0 &&
		    hx_near_cache_answer(near->cache, &ops[i], from_ms))
			continue;
		for (size_t k = 0; k < i; k++)
			hx_store_refuse(&ops[k], HAPAX_OK);
		return false;
	}
	return true;
}

/* After a change, the cached record is outdated. */
static void drop_changed(struct near_store *near, const struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_question(&ops[i]) && ops[i].type != HAPAX_OP_LOOKUP)
			hx_near_cache_drop(near->cache, &ops[i]);
	}
}

static struct job *take_job(struct near_store *near)
{
	struct job *job;

	hx_lock_acquire(&near->lock);
	job = near->free_jobs;
	if (job != NULL)
		near->free_jobs = job->next;
	hx_lock_release(&near->lock);
	return job != NULL ? job : hx_alloc_zero(1, sizeof(*job));
}

static void give_job(struct near_store *near, struct job *job)
{
	hx_lock_acquire(&near->lock);
	job->next = near->free_jobs;
	near->free_jobs = job;
	hx_lock_release(&near->lock);
}

static void remember(struct hapax_op *ops, size_t count, void *context)
{
	struct job *job = context;
	struct near_store *near = job->near;
	struct hapax_completion completion = job->completion;

	drop_changed(near, ops, count);
	for (size_t i = 0; i < count; i++) {
		if (is_question(&ops[i]) && ops[i].outcome == HAPAX_OUTCOME_REPLAY &&
		    ops[i].record != NULL && ops[i].record->state == HAPAX_STATE_DONE)
			hx_near_cache_put(near->cache, ops[i].record, job->asked_ms, job->drops);
	}
	give_job(near, job);
	/* The store has counted. */
	completion.fn(ops, count, completion.context);
}

static uint64_t count_questions(const struct hapax_op *ops, size_t count)
{
	uint64_t questions = 0;

	for (size_t i = 0; i < count; i++)
		questions += is_question(&ops[i]);
	return questions;
}

static void near_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct near_store *near = near_of(store);
	int64_t now_ms = now_of(near);
	struct job *job;

	if (answer_all(near, ops, count, now_ms)) {
		atomic_fetch_add_explicit(
			&near->lanes[hx_thread_id() % LANES].hits, count, memory_order_relaxed);
		hapax_store_complete(store, ops, count, completion);
		return;
	}
	atomic_fetch_add_explicit(&near->misses, count_questions(ops, count), memory_order_relaxed);
	drop_changed(near, ops, count);
	job = take_job(near);
	if (job == NULL) {
		hx_store_fail_submit(store, ops, count, completion, HAPAX_ERR_NO_MEMORY);
		return;
	}
	job->near = near;
	job->completion = completion;
	job->asked_ms = now_ms;
	job->drops = hx_near_cache_drops(near->cache);
	hapax_store_submit(near->front.store, ops, count, (struct hapax_completion){remember, job});
}

static void near_close(struct hapax_store *store)
{
	struct near_store *near = near_of(store);

	hx_front_detach(&near->front);
	while (near->free_jobs != NULL) {
		struct job *job = near->free_jobs;

		near->free_jobs = job->next;
		hx_free(job);
	}
	hx_near_cache_free(near->cache);
	hx_free(near);
}

static uint64_t pairs_for(uint64_t keys)
{
	uint64_t pairs = 1;

	while (pairs * 2 < keys)
		pairs *= 2;
	return pairs;
}

static enum hapax_status take_options(
	struct near_store *near, const struct hapax_near_options *given, uint64_t *ret_pairs,
	struct hapax_error *err)
{
	struct hapax_near_options options = HAPAX_NEAR_OPTIONS_INIT;

	if (given != NULL) {
		if (given->size < sizeof(given->size) || given->size > sizeof(options))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"options of unknown size; use HAPAX_NEAR_OPTIONS_INIT");
		memcpy(&options, given, given->size);
	}
	if (options.age_ms_max < 0 || options.age_ms_max > AGE_MS_MAX ||
	    options.keys_max > KEYS_LIMIT)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a near cache holds at most 16,777,216 keys, for at most one second");
	near->clock = options.clock != NULL ? options.clock : hapax_clock_system();
	near->age_ms_max = options.age_ms_max != 0 ? options.age_ms_max : AGE_MS_MAX;
	*ret_pairs = pairs_for(options.keys_max != 0 ? options.keys_max : KEYS_DEFAULT);
	return HAPAX_OK;
}

enum hapax_status hapax_near_open(
	struct hapax_store *store, const struct hapax_near_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options attached = HAPAX_STORE_OPTIONS_INIT;
	struct near_store *near;
	enum hapax_status status;
	uint64_t pairs = 0;

	if (store == NULL || ret_store == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a store is required");
	if (store->ops->count == NULL)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"store '%.200s' is local and needs no near cache", hapax_store_url(store));
	near = hx_alloc_zero(1, sizeof(*near));
	if (near == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a near cache");
	hx_front_init(&near->front, store, near_submit, near_close);
	status = take_options(near, options, &pairs, err);
	if (status == HAPAX_OK && (near->cache = hx_near_cache_new(pairs)) == NULL)
		status = hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a near cache");
	attached.clock = near->clock;
	/* The store sweeps itself. Hit counters are flushed once a second. */
	attached.flags = hx_store_options(store)->flags & HAPAX_STORE_NO_HOUSEKEEPING;
	attached.sweep_interval_ms = hx_store_options(store)->sweep_interval_ms;
	if (status == HAPAX_OK)
		status = hx_front_attach(&near->front, &attached, err);
	if (status != HAPAX_OK) {
		near_close(&near->front.base);
		return status;
	}
	*ret_store = &near->front.base;
	return HAPAX_OK;
}

enum hapax_status hapax_near_tell(
	struct hapax_store *store, struct hapax_near_stats *ret_stats, struct hapax_error *err)
{
	struct hapax_near_stats stats = HAPAX_NEAR_STATS_INIT;

	if (store == NULL || store->ops->submit != near_submit || ret_stats == NULL ||
	    ret_stats->size < sizeof(stats.size) || ret_stats->size > sizeof(stats))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a store with a near cache and stats of a known size are required");
	stats.size = ret_stats->size;
	for (size_t i = 0; i < LANES; i++)
		stats.hits +=
			atomic_load_explicit(&near_of(store)->lanes[i].hits, memory_order_relaxed);
	stats.misses = atomic_load_explicit(&near_of(store)->misses, memory_order_relaxed);
	memcpy(ret_stats, &stats, stats.size);
	return HAPAX_OK;
}
