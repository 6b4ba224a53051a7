/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counting.h - move decisions from operations to the book.
 *
 * Decisions are added up in their scope. Once a second, and at close, they move to the store's
 * own counters (or to the book here).
 */
#ifndef HX_STORE_COUNTING_H
#define HX_STORE_COUNTING_H

#include <hapax/ext/store_ops.h>

/* The hour that a time belongs to. */
static inline int64_t hx_counting_hour_ms(int64_t now_ms)
{
	const int64_t hour_ms = 3600 * 1000;
	int64_t over = now_ms % hour_ms;

	return now_ms - (over < 0 ? over + hour_ms : over);
}

/* Count the decisions of answered operations. Threads: any. */
void hx_counting_add(struct hapax_store *store, const struct hapax_op *ops, size_t count);

/*
 * Move the added-up decisions to the store. Decisions that cannot be moved stay for the next
 * time. Threads: any; one at a time inside.
 */
enum hapax_status hx_counting_flush(struct hapax_store *store, struct hapax_error *err);

/* Add the book's rows to stats->counts, and pass them to each, which may be NULL. */
void hx_counting_report(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context);

#endif
