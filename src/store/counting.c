/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counting.c - move decisions from operations to the book.
 */
#include "store/counting.h"

#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "store/core_private.h"

enum { ROWS_AT_ONCE = 64 };

/* Scopes beyond the counted ones share one row with this name. */
static const struct hapax_bytes other_name = {"other", 5};

/* Does op count like its neighbor? Then the decision need not be looked up again. */
static bool counts_alike(const struct hapax_op *op, const struct hapax_op *neighbor)
{
	return op->private_scope != HX_SCOPE_NOWHERE && op->type == neighbor->type &&
		op->status == neighbor->status && op->outcome == neighbor->outcome &&
		op->set_if == neighbor->set_if && op->private_scope == neighbor->private_scope &&
		op->unverified == neighbor->unverified && op->repeated == neighbor->repeated;
}

/* Does the scope have a row of its own? */
static bool is_counted(uint32_t scope_id)
{
	return scope_id < HX_COUNTED_SCOPES_MAX && scope_id != HX_SCOPE_NOWHERE;
}

/*
 * The scope that a decision counts for. An unknown scope is interned only after the store has
 * shown that it exists: other processes may write to the store as well.
 */
static struct hx_scope *scope_of(struct hx_store_core *core, const struct hapax_op *op)
{
	struct hx_scope *scope = NULL;
	enum hapax_status status;

	/* There was no room for its names: it counts as the default scope. */
	if (op->private_scope == HX_SCOPE_REFUSED)
		return hx_scope_table_get(&core->scopes, HX_SCOPE_DEFAULT);
	if (op->private_scope == HX_SCOPE_NOWHERE && op->status == HAPAX_OK)
		scope = hx_scope_table_intern(&core->scopes, op->tenant, op->group, &status);
	return scope != NULL ? scope : hx_scope_table_get(&core->scopes, op->private_scope);
}

static _Atomic uint64_t *counter_of(struct hx_store_core *core, const struct hapax_op *op)
{
	int decision = hx_transition_decision(op);

	if (decision < 0)
		return NULL;
	return &scope_of(core, op)->counts[op->unverified != 0][decision];
}

static void add(struct hx_store_core *core, _Atomic uint64_t *counter, uint64_t count)
{
	atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
	if (atomic_load_explicit(&core->is_dirty, memory_order_relaxed) == 0)
		atomic_store_explicit(&core->is_dirty, 1, memory_order_release);
}

/* Neighbors that count alike, as in most batches, cost one addition. */
void hx_counting_add(struct hapax_store *store, const struct hapax_op *ops, size_t count)
{
	struct hx_store_core *core = store->core;

	for (size_t i = 0; i < count;) {
		_Atomic uint64_t *counter = counter_of(core, &ops[i]);
		size_t first = i++;

		while (i < count && counts_alike(&ops[i], &ops[first]))
			i++;
		if (counter != NULL)
			add(core, counter, i - first);
	}
}

static uint64_t take_one(_Atomic uint64_t *counter)
{
	if (atomic_load_explicit(counter, memory_order_relaxed) == 0)
		return 0;
	return atomic_exchange_explicit(counter, 0, memory_order_relaxed);
}

static bool counting_take(struct hx_scope *scope, uint64_t counts[HAPAX_DECISION_COUNT])
{
	uint64_t unverified = 0;
	uint64_t any = 0;

	for (size_t i = 0; i < HAPAX_DECISION_COUNT; i++) {
		uint64_t without = take_one(&scope->counts[1][i]);

		counts[i] = take_one(&scope->counts[0][i]) + without;
		unverified += without;
		any |= counts[i];
	}
	counts[HAPAX_DECISION_UNVERIFIED] += unverified;
	return any != 0;
}

static void give_back(struct hx_scope *scope, const uint64_t counts[HAPAX_DECISION_COUNT])
{
	for (size_t i = 0; i < HAPAX_DECISION_COUNT; i++)
		atomic_fetch_add_explicit(&scope->counts[0][i], counts[i], memory_order_relaxed);
}

/* *ret_kept is the number of rows that were kept, the first ones, also on failure. */
static enum hapax_status counting_keep(
	struct hapax_store *store, const uint32_t *scope_ids, const struct hapax_counters *rows,
	size_t count, size_t *ret_kept, struct hapax_error *err)
{
	struct hx_store_core *core = store->core;
	int64_t hour_ms;

	if (store->ops->count != NULL) {
		enum hapax_status status = store->ops->count(store, rows, count, err);

		*ret_kept = status == HAPAX_OK ? count : 0;
		return status;
	}
	hour_ms = hx_counting_hour_ms(hx_clock_mark_now(&core->mark, core->options.clock));
	for (size_t i = 0; i < count; i++) {
		*ret_kept = i;
		uint32_t id = is_counted(scope_ids[i]) ? scope_ids[i] : HX_COUNTED_SCOPES_MAX;
		enum hapax_status status =
			hx_counter_book_add(&core->book, hour_ms, id, rows[i].counts);

		if (status != HAPAX_OK)
			return status;
	}
	return HAPAX_OK;
}

/* Keep the rows, or return them to their scopes. Locks: flush_mutex held. */
static enum hapax_status keep_or_give_back(
	struct hapax_store *store, const uint32_t *scope_ids, const struct hapax_counters *rows,
	size_t count, struct hapax_error *err)
{
	size_t kept = 0;
	enum hapax_status status = counting_keep(store, scope_ids, rows, count, &kept, err);

	if (status == HAPAX_OK)
		return status;
	for (size_t i = kept; i < count; i++)
		give_back(hx_scope_table_get(&store->core->scopes, scope_ids[i]), rows[i].counts);
	atomic_store_explicit(&store->core->is_dirty, 1, memory_order_release);
	return status;
}

/* Locks: flush_mutex held. */
static enum hapax_status flush_scopes(struct hapax_store *store, struct hapax_error *err)
{
	struct hx_scope_table *scopes = &store->core->scopes;
	uint32_t scope_count = atomic_load_explicit(&scopes->count, memory_order_acquire);
	struct hapax_counters rows[ROWS_AT_ONCE];
	uint32_t scope_ids[ROWS_AT_ONCE];
	size_t count = 0;
	enum hapax_status status = HAPAX_OK;

	for (uint32_t id = 0; id < scope_count && status == HAPAX_OK; id++) {
		struct hx_scope *scope = hx_scope_table_get(scopes, id);

		if (!counting_take(scope, rows[count].counts))
			continue;
		scope_ids[count] = id;
		rows[count].tenant = is_counted(id) ? scope->tenant : other_name;
		rows[count].group = is_counted(id) ? scope->group : other_name;
		rows[count].hour_ms = 0;
		if (++count == ROWS_AT_ONCE) {
			status = keep_or_give_back(store, scope_ids, rows, count, err);
			count = 0;
		}
	}
	if (count != 0 && status == HAPAX_OK)
		status = keep_or_give_back(store, scope_ids, rows, count, err);
	return status;
}

enum hapax_status hx_counting_flush(struct hapax_store *store, struct hapax_error *err)
{
	struct hx_store_core *core = store->core;
	enum hapax_status status = HAPAX_OK;

	hx_mutex_lock(&core->flush_mutex);
	if (atomic_exchange_explicit(&core->is_dirty, 0, memory_order_acquire) != 0)
		status = flush_scopes(store, err);
	hx_mutex_unlock(&core->flush_mutex);
	return status;
}

void hx_counting_report(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context)
{
	struct hx_store_core *core = store->core;
	bool stopped = each == NULL;

	hx_mutex_lock(&core->flush_mutex);
	for (size_t i = 0; i < core->book.count; i++) {
		const struct hx_counter_row *row = &core->book.rows[i];
		struct hapax_counters counters = {
			.tenant = other_name, .group = other_name, .hour_ms = row->hour_ms};

		if (row->scope_id < HX_COUNTED_SCOPES_MAX) {
			struct hx_scope *scope = hx_scope_table_get(&core->scopes, row->scope_id);

			counters.tenant = scope->tenant;
			counters.group = scope->group;
		}
		memcpy(counters.counts, row->counts, sizeof(counters.counts));
		for (size_t k = 0; k < HAPAX_DECISION_COUNT; k++)
			stats->counts[k] += row->counts[k];
		if (!stopped)
			stopped = each(&counters, context) != 0;
	}
	hx_mutex_unlock(&core->flush_mutex);
}
