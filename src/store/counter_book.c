/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter_book.c - decisions per scope and hour, in a sorted array.
 */
#include "store/counter_book.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

/* Two days of two thousand scopes, 10 MB: as much as a page of statistics can show. */
enum { ROWS_MAX = 100000 };

void hx_counter_book_init(struct hx_counter_book *book)
{
	memset(book, 0, sizeof(*book));
}

void hx_counter_book_done(struct hx_counter_book *book)
{
	hx_free(book->rows);
	memset(book, 0, sizeof(*book));
}

static bool row_before(const struct hx_counter_row *row, int64_t hour_ms, uint32_t scope_id)
{
	return row->hour_ms != hour_ms ? row->hour_ms < hour_ms : row->scope_id < scope_id;
}

/* The first row that does not come before (hour_ms, scope_id). */
static size_t find(const struct hx_counter_book *book, int64_t hour_ms, uint32_t scope_id)
{
	size_t low = 0;
	size_t high = book->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (row_before(&book->rows[middle], hour_ms, scope_id))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void drop_oldest_hour(struct hx_counter_book *book)
{
	size_t drop = 0;

	while (drop < book->count && book->rows[drop].hour_ms == book->rows[0].hour_ms)
		drop++;
	book->count -= drop;
	memmove(book->rows, book->rows + drop, book->count * sizeof(book->rows[0]));
}

static bool make_room(struct hx_counter_book *book)
{
	size_t capacity = book->capacity == 0 ? 16 : book->capacity * 2;
	struct hx_counter_row *rows;

	if (book->count < book->capacity)
		return true;
	rows = hx_realloc(book->rows, capacity * sizeof(rows[0]));
	if (rows == NULL)
		return false;
	book->rows = rows;
	book->capacity = capacity;
	return true;
}

/* The row for this hour and scope, created if it is absent. NULL: no memory. */
static struct hx_counter_row *row_for(
	struct hx_counter_book *book, int64_t hour_ms, uint32_t scope_id)
{
	struct hx_counter_row *row;
	size_t at;

	if (book->count >= ROWS_MAX)
		drop_oldest_hour(book);
	at = find(book, hour_ms, scope_id);
	row = at < book->count ? &book->rows[at] : NULL;
	if (row == NULL || row->hour_ms != hour_ms || row->scope_id != scope_id) {
		if (!make_room(book))
			return NULL;
		assert(book->rows != NULL);
		row = &book->rows[at];
		memmove(row + 1, row, (book->count - at) * sizeof(*row));
		memset(row, 0, sizeof(*row));
		row->hour_ms = hour_ms;
		row->scope_id = scope_id;
		book->count++;
	}
	assert(book->count <= book->capacity);
	return row;
}

enum hapax_status hx_counter_book_add(
	struct hx_counter_book *book, int64_t hour_ms, uint32_t scope_id,
	const uint64_t counts[HAPAX_DECISION_COUNT])
{
	struct hx_counter_row *row = row_for(book, hour_ms, scope_id);

	if (row == NULL)
		return HAPAX_ERR_NO_MEMORY;
	for (size_t i = 0; i < HAPAX_DECISION_COUNT; i++)
		row->counts[i] += counts[i];
	row->kept_in = 0;
	return HAPAX_OK;
}

enum hapax_status hx_counter_book_set(
	struct hx_counter_book *book, int64_t hour_ms, uint32_t scope_id,
	const uint64_t counts[HAPAX_DECISION_COUNT], uint64_t kept_in)
{
	struct hx_counter_row *row = row_for(book, hour_ms, scope_id);

	if (row == NULL)
		return HAPAX_ERR_NO_MEMORY;
	memcpy(row->counts, counts, sizeof(row->counts));
	row->kept_in = kept_in;
	return HAPAX_OK;
}
