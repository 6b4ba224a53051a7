/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - an amount of memory or disk that many users share.
 *
 * take() asks before use and may be refused. note() records a use that cannot be refused, so `used`
 * may exceed `max` by the noted amount. give() returns either; returning more than was taken is an
 * error of the program and stops it.
 *
 * Work that is begun must be able to end: new work stops at three quarters
 * (hx_budget_is_full()), and the last quarter is for the answers to old work.
 *
 * Every function takes NULL for a budget without limit, and counts nothing there.
 *
 * Threads: any.
 */
#ifndef HX_BUDGET_H
#define HX_BUDGET_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct hx_budget {
	_Atomic size_t used;
	_Atomic size_t max;       /* 0: no limit */
	struct hx_budget *parent; /* every take also takes from it; NULL: none */
};

/* Takes zeros. A smaller max than before takes nothing back. */
static inline void hx_budget_limit(struct hx_budget *budget, size_t max)
{
	atomic_store_explicit(&budget->max, max, memory_order_relaxed);
}

static inline size_t hx_budget_used(const struct hx_budget *budget)
{
	return atomic_load_explicit(&budget->used, memory_order_relaxed);
}

static inline size_t hx_budget_max(const struct hx_budget *budget)
{
	return atomic_load_explicit(&budget->max, memory_order_relaxed);
}

static inline void hx_budget_note(struct hx_budget *budget, size_t size)
{
	for (; budget != NULL; budget = budget->parent)
		atomic_fetch_add_explicit(&budget->used, size, memory_order_relaxed);
}

static inline void hx_budget_give(struct hx_budget *budget, size_t size)
{
	for (; budget != NULL; budget = budget->parent) {
		size_t before =
			atomic_fetch_sub_explicit(&budget->used, size, memory_order_relaxed);

		assert(before >= size);
		(void)before;
	}
}

/* Would a take of size succeed now? */
static inline bool hx_budget_has_room(const struct hx_budget *budget, size_t size)
{
	for (; budget != NULL; budget = budget->parent) {
		size_t max = hx_budget_max(budget);
		size_t used = hx_budget_used(budget);

		if (max != 0 && (used > max || size > max - used))
			return false;
	}
	return true;
}

/* False: nothing was taken. Two concurrent calls that fit only alone may both be refused. */
static inline bool hx_budget_take(struct hx_budget *budget, size_t size)
{
	hx_budget_note(budget, size);
	if (hx_budget_has_room(budget, 0))
		return true;
	hx_budget_give(budget, size);
	return false;
}

/* Are three quarters used? Then no new work begins. */
static inline bool hx_budget_is_full(const struct hx_budget *budget)
{
	for (; budget != NULL; budget = budget->parent) {
		size_t max = hx_budget_max(budget);

		if (max != 0 && hx_budget_used(budget) >= max - max / 4)
			return true;
	}
	return false;
}

/* The maximum share of one of many users: an eighth; SIZE_MAX without a limit. */
static inline size_t hx_budget_share(const struct hx_budget *budget)
{
	size_t max = budget == NULL ? 0 : hx_budget_max(budget);

	return max == 0 ? (size_t)-1 : max / 8;
}

#endif
