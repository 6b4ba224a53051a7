/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - a store in front of another one, which handles that store's outages.
 *
 * One thread probes an unavailable store, and reconciles the journal when the store is available
 * again. The breaker closes only after a full pass over the journal. Until the journal is empty,
 * it is asked first: it may hold new records, or records that could not be settled yet.
 */
#include "store/outage/guard.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "store/core.h"
#include "store/outage/claim_notes.h"
#include "store/outage/journal.h"

enum {
	FAILURES_DEFAULT = 3,
	BACKOFF_MS_MIN_DEFAULT = 100,
	BACKOFF_MS_MAX_DEFAULT = 10000,

	/* Interval while the journal holds records that could not be settled. */
	RECONCILE_INTERVAL_MS = 1000,
};

#define BACKOFF_MS_LIMIT HX_MS_PER_DAY

/* Looked up to see whether the store answers. No caller uses this key. */
static const struct hapax_bytes probe_key = {"\0hapax probe", 12};

/* The clock's boot time, used for all intervals. */
static int64_t now_of(const struct hx_guard *guard)
{
	return guard->options.clock->boot_ms(guard->options.clock->context);
}

/* Locks: mutex. */
static void mark_trouble(struct hx_guard *guard)
{
	bool is_troubled =
		guard->breaker.is_open || guard->breaker.failures != 0 || guard->uses_journal;

	atomic_store_explicit(&guard->is_troubled, is_troubled, memory_order_release);
}

void hx_guard_note(struct hx_guard *guard, bool has_answered)
{
	uint64_t random = hx_random_u64();

	hx_mutex_lock(&guard->mutex);
	if (has_answered) {
		hx_breaker_succeed(&guard->breaker);
	} else if (hx_breaker_fail(&guard->breaker, now_of(guard), random)) {
		guard->outage.outages++;
		hx_cond_signal(&guard->wake);
	}
	mark_trouble(guard);
	hx_mutex_unlock(&guard->mutex);
}

void hx_guard_look(struct hx_guard *guard, bool *ret_is_away, bool *ret_uses_journal)
{
	hx_mutex_lock(&guard->mutex);
	*ret_is_away = guard->breaker.is_open;
	*ret_uses_journal = guard->uses_journal;
	hx_mutex_unlock(&guard->mutex);
}

void hx_guard_count(struct hx_guard *guard, uint64_t *number, uint64_t count)
{
	hx_mutex_lock(&guard->mutex);
	*number += count;
	hx_mutex_unlock(&guard->mutex);
}

void hx_guard_enter_journal(struct hx_guard *guard)
{
	hx_mutex_lock(&guard->mutex);
	guard->journalling++;
	guard->entered++;
	guard->uses_journal = guard->options.journal != NULL;
	mark_trouble(guard);
	hx_mutex_unlock(&guard->mutex);
}

void hx_guard_leave_journal(struct hx_guard *guard)
{
	hx_mutex_lock(&guard->mutex);
	assert(guard->journalling > 0);
	guard->journalling--;
	hx_cond_signal(&guard->wake);
	hx_mutex_unlock(&guard->mutex);
}

bool hx_guard_continues(const struct hx_guard *guard, const struct hapax_op *op)
{
	const struct hapax_outage_options *options = &guard->options;

	if (options->journal == NULL)
		return false;
	return options->continues == NULL ||
		options->continues(op->tenant, op->group, options->continues_context) != 0;
}

/* ------------------------------------------------------------------ retry */

static bool store_answers(struct hx_guard *guard)
{
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .key = probe_key};

	return hapax_store_run(guard->front.store, &op, 1, NULL) == HAPAX_OK;
}

/*
 * Copy the journal's records to the store. True: the store accepted them. A damaged record stays
 * in the journal and is not an outage; the journal is asked as long as it holds a record.
 */
static bool reconcile(struct hx_guard *guard)
{
	struct hapax_reconcile work = HAPAX_RECONCILE_INIT;
	enum hapax_status status;

	work.each = guard->options.each;
	work.context = guard->options.each_context;
	status = hapax_journal_reconcile(guard->options.journal, guard->front.store, &work, NULL);
	hx_mutex_lock(&guard->mutex);
	for (size_t i = 0; i < HAPAX_RECONCILED_COUNT; i++)
		guard->outage.reconciled[i] += i == HAPAX_RECONCILED_LATER ? 0 : work.counts[i];
	hx_mutex_unlock(&guard->mutex);
	return status == HAPAX_OK || status == HAPAX_ERR_CORRUPT;
}

/* End the outage if the journal is empty and no submit may still write to it. */
static void leave_if_empty(struct hx_guard *guard)
{
	uint64_t count = 0;
	uint64_t entered;

	hx_mutex_lock(&guard->mutex);
	entered = guard->journalling == 0 ? guard->entered : UINT64_MAX;
	hx_mutex_unlock(&guard->mutex);
	if (hx_journal_count(guard->options.journal, &count, NULL) != HAPAX_OK || count != 0)
		return;
	hx_mutex_lock(&guard->mutex);
	/* Unless a submit entered after the count. */
	if (guard->entered == entered && !guard->breaker.is_open)
		guard->uses_journal = false;
	mark_trouble(guard);
	hx_mutex_unlock(&guard->mutex);
}

static void close_breaker(struct hx_guard *guard)
{
	hx_mutex_lock(&guard->mutex);
	hx_breaker_close(&guard->breaker);
	mark_trouble(guard);
	hx_mutex_unlock(&guard->mutex);
}

/* Locks: mutex. */
static int64_t next_due_ms(const struct hx_guard *guard)
{
	if (guard->breaker.is_open)
		return guard->breaker.retry_ms;
	return guard->uses_journal ? guard->reconcile_ms : HAPAX_TIME_NEVER;
}

static int64_t tick(struct hx_guard *guard)
{
	int64_t now_ms = now_of(guard);
	int64_t due_ms;
	bool is_away;
	bool is_over;

	hx_mutex_lock(&guard->mutex);
	due_ms = next_due_ms(guard);
	is_away = guard->breaker.is_open;
	is_over = !guard->uses_journal;
	hx_mutex_unlock(&guard->mutex);
	if (now_ms < due_ms)
		return due_ms;
	if (is_away && !store_answers(guard)) {
		hx_guard_note(guard, false);
	} else if (is_over || reconcile(guard)) {
		close_breaker(guard);
		if (!is_over)
			leave_if_empty(guard);
	} else {
		hx_guard_note(guard, false);
	}
	hx_mutex_lock(&guard->mutex);
	guard->reconcile_ms = now_of(guard) + RECONCILE_INTERVAL_MS;
	due_ms = next_due_ms(guard);
	hx_mutex_unlock(&guard->mutex);
	return due_ms;
}

static void keep_trying(void *arg)
{
	struct hx_guard *guard = arg;

	hx_mutex_lock(&guard->mutex);
	while (!guard->stops) {
		int64_t due_ms;

		hx_mutex_unlock(&guard->mutex);
		due_ms = tick(guard);
		hx_mutex_lock(&guard->mutex);
		if (guard->stops)
			break;
		/* An event during the tick may be due earlier. */
		if (next_due_ms(guard) < due_ms)
			due_ms = next_due_ms(guard);
		if (due_ms == HAPAX_TIME_NEVER)
			hx_cond_wait(&guard->wake, &guard->mutex);
		else
			(void)hx_cond_wait_until_ns(
				&guard->wake, &guard->mutex,
				hx_clock_mono_ns() + (due_ms - now_of(guard)) * HX_NS_PER_MS);
	}
	hx_mutex_unlock(&guard->mutex);
}

/* ------------------------------------------------------------------ the store */

static struct hx_guard *guard_of(struct hapax_store *store)
{
	return (struct hx_guard *)store;
}

/* The store or the journal counts decisions; the guard has none of its own. */
static enum hapax_status guard_count(
	struct hapax_store *store, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err)
{
	(void)store;
	(void)rows;
	(void)count;
	(void)err;
	return HAPAX_OK;
}

static void guard_close(struct hapax_store *store)
{
	struct hx_guard *guard = guard_of(store);

	if (guard->runs) {
		hx_mutex_lock(&guard->mutex);
		guard->stops = true;
		hx_cond_signal(&guard->wake);
		hx_mutex_unlock(&guard->mutex);
		hx_thread_join(&guard->thread);
	}
	hx_front_detach(&guard->front);
	hx_outage_forwards_free(guard);
	hx_claim_notes_free(guard->notes);
	hx_mutex_done(&guard->mutex);
	hx_cond_done(&guard->wake);
	hx_free(guard);
}

static bool options_are_valid(struct hapax_outage_options *options)
{
	if (options->clock == NULL)
		options->clock = hapax_clock_system();
	if (options->failures_max == 0)
		options->failures_max = FAILURES_DEFAULT;
	if (options->backoff_ms_min == 0)
		options->backoff_ms_min = BACKOFF_MS_MIN_DEFAULT;
	if (options->backoff_ms_max == 0)
		options->backoff_ms_max = BACKOFF_MS_MAX_DEFAULT;
	return options->backoff_ms_min > 0 && options->backoff_ms_min <= options->backoff_ms_max &&
		options->backoff_ms_max <= BACKOFF_MS_LIMIT;
}

static enum hapax_status take_options(
	struct hx_guard *guard, const struct hapax_outage_options *options, struct hapax_error *err)
{
	guard->options = (struct hapax_outage_options)HAPAX_OUTAGE_OPTIONS_INIT;
	if (options != NULL) {
		if (options->size < sizeof(options->size) || options->size > sizeof(*options))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"options of unknown size; use HAPAX_OUTAGE_OPTIONS_INIT");
		memcpy(&guard->options, options, options->size);
	}
	if (!options_are_valid(&guard->options))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the backoff must be above 0 and at most one day, with its minimum "
			"below its maximum");
	guard->breaker = (struct hx_breaker){
		.failures_max = guard->options.failures_max,
		.backoff_ms_min = guard->options.backoff_ms_min,
		.backoff_ms_max = guard->options.backoff_ms_max,
	};
	return HAPAX_OK;
}

/* This process reconciles records that an earlier process left in the journal. */
static enum hapax_status take_journal(struct hx_guard *guard, struct hapax_error *err)
{
	uint64_t count = 0;
	enum hapax_status status;

	if (guard->options.journal == NULL)
		return HAPAX_OK;
	guard->notes = hx_claim_notes_new();
	if (guard->notes == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to guard a store");
	status = hx_journal_prepare(guard->options.journal, err);
	if (status == HAPAX_OK)
		status = hx_journal_count(guard->options.journal, &count, err);
	guard->uses_journal = count != 0;
	mark_trouble(guard);
	return status;
}

static enum hapax_status start(struct hx_guard *guard, struct hapax_error *err)
{
	enum hapax_status status;

	if (guard->options.flags & HAPAX_STORE_NO_HOUSEKEEPING)
		return HAPAX_OK;
	status = hx_thread_start(&guard->thread, keep_trying, guard, "hapax-guard", err);
	guard->runs = status == HAPAX_OK;
	return status;
}

enum hapax_status hapax_outage_guard(
	struct hapax_store *store, const struct hapax_outage_options *options,
	struct hapax_store **ret_store, struct hapax_error *err)
{
	struct hapax_store_options attached = HAPAX_STORE_OPTIONS_INIT;
	struct hx_guard *guard;
	enum hapax_status status;

	if (store == NULL || ret_store == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a store to guard is required");
	guard = hx_alloc_zero(1, sizeof(*guard));
	if (guard == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to guard a store");
	hx_front_init(&guard->front, store, hx_outage_forward_submit, guard_close);
	guard->front.ops.count = guard_count;
	hx_mutex_init(&guard->mutex);
	hx_cond_init(&guard->wake);
	attached.flags = HAPAX_STORE_NO_HOUSEKEEPING; /* the guarded store has its own */
	status = take_options(guard, options, err);
	attached.clock = guard->options.clock;
	if (status == HAPAX_OK)
		status = hx_front_attach(&guard->front, &attached, err);
	if (status == HAPAX_OK)
		status = take_journal(guard, err);
	if (status == HAPAX_OK)
		status = start(guard, err);
	if (status != HAPAX_OK) {
		guard_close(&guard->front.base);
		return status;
	}
	*ret_store = &guard->front.base;
	return HAPAX_OK;
}

static bool is_guard(const struct hapax_store *store)
{
	return store != NULL && store->ops->submit == hx_outage_forward_submit;
}

enum hapax_status hapax_outage_tell(
	struct hapax_store *store, struct hapax_outage *ret_outage, struct hapax_error *err)
{
	struct hx_guard *guard = guard_of(store);
	size_t size;

	if (!is_guard(store) || ret_outage == NULL || ret_outage->size < sizeof(size) ||
	    ret_outage->size > sizeof(*ret_outage))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a guarded store and an outage of a known size are required");
	size = ret_outage->size;
	hx_mutex_lock(&guard->mutex);
	guard->outage.size = size;
	guard->outage.is_away = guard->breaker.is_open;
	guard->outage.uses_journal = guard->uses_journal;
	memcpy(ret_outage, &guard->outage, size);
	hx_mutex_unlock(&guard->mutex);
	return HAPAX_OK;
}

int64_t hapax_outage_tick(struct hapax_store *store)
{
	assert(is_guard(store) && !guard_of(store)->runs);
	return tick(guard_of(store));
}
