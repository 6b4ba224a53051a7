/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter_book.h - decisions per scope and hour, for stores that keep none of their own.
 * Bounded: a full book drops the oldest hour.
 *
 * Threads: one at a time; the caller locks.
 */
#ifndef HX_STORE_COUNTER_BOOK_H
#define HX_STORE_COUNTER_BOOK_H

#include <hapax/store.h>

struct hx_counter_row {
	int64_t hour_ms;
	uint32_t scope_id;
	uint64_t counts[HAPAX_DECISION_COUNT];
	uint64_t kept_in; /* for the store: where it has written this row; every change sets 0 */
};

struct hx_counter_book {
	struct hx_counter_row *rows; /* by hour, then scope */
	size_t count;
	size_t capacity;
};

void hx_counter_book_init(struct hx_counter_book *book);
void hx_counter_book_done(struct hx_counter_book *book);

/* HAPAX_ERR_NO_MEMORY: nothing was added. */
enum hapax_status hx_counter_book_add(
	struct hx_counter_book *book, int64_t hour_ms, uint32_t scope_id,
	const uint64_t counts[HAPAX_DECISION_COUNT]);

/* Set the counts of a row, whatever it had; the store keeps it in kept_in. */
enum hapax_status hx_counter_book_set(
	struct hx_counter_book *book, int64_t hour_ms, uint32_t scope_id,
	const uint64_t counts[HAPAX_DECISION_COUNT], uint64_t kept_in);

#endif
