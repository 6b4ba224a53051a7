/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.c - decisions per scope and hour, as kept in the log.
 */
#include "store/log/write/counts.h"

#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "store/counting.h"

void hx_log_counts_init(struct hx_log_counts *counts, struct hx_scope_table *scopes)
{
	memset(counts, 0, sizeof(*counts));
	hx_mutex_init(&counts->mutex);
	hx_counter_book_init(&counts->book);
	counts->scopes = scopes;
}

/* Locks: mutex. A row of the log is in a segment; a row that is nowhere is news. */
static void row_assert(const struct hx_log_counts *counts, const struct hx_counter_row *row)
{
	assert(row->scope_id < HX_SCOPES_MAX);
	assert(row->kept_in != 0 ||
	       atomic_load_explicit(&counts->has_news, memory_order_relaxed) != 0);
}

void hx_log_counts_done(struct hx_log_counts *counts)
{
	if (counts->scopes == NULL)
		return;
	hx_counter_book_done(&counts->book);
	hx_mutex_done(&counts->mutex);
	memset(counts, 0, sizeof(*counts));
}

enum hapax_status hx_log_counts_add(
	struct hx_log_counts *counts, const struct hapax_counters *rows, size_t count,
	int64_t now_ms)
{
	int64_t hour_ms = hx_counting_hour_ms(now_ms);
	enum hapax_status status = HAPAX_OK;

	assert(hour_ms % HX_MS_PER_HOUR == 0);
	/*
	 * All or nothing: first everything that can fail. An empty row is a place for the
	 * counts.
	 */
	hx_mutex_lock(&counts->mutex);
	for (unsigned round = 0; round < 2 && status == HAPAX_OK; round++) {
		static const uint64_t nothing[HAPAX_DECISION_COUNT];

		for (size_t i = 0; i < count && status == HAPAX_OK; i++) {
			const struct hx_scope *scope = hx_scope_table_intern(
				counts->scopes, rows[i].tenant, rows[i].group, &status);

			if (scope != NULL)
				status = hx_counter_book_add(
					&counts->book, hour_ms, scope->id,
					round == 0 ? nothing : rows[i].counts);
		}
	}
	atomic_store_explicit(&counts->has_news, 1, memory_order_release);
	hx_mutex_unlock(&counts->mutex);
	return status;
}

enum hapax_status hx_log_counts_load(
	struct hx_log_counts *counts, uint32_t scope_id, int64_t hour_ms,
	const uint64_t totals[HAPAX_DECISION_COUNT], uint64_t segment_id)
{
	assert(scope_id < HX_SCOPES_MAX);
	return hx_counter_book_set(&counts->book, hour_ms, scope_id, totals, segment_id);
}

void hx_log_counts_report(
	struct hx_log_counts *counts, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context)
{
	bool stopped = each == NULL;

	hx_mutex_lock(&counts->mutex);
	for (size_t i = 0; i < counts->book.count; i++) {
		const struct hx_counter_row *row = &counts->book.rows[i];
		const struct hx_scope *scope = hx_scope_table_get(counts->scopes, row->scope_id);
		struct hapax_counters counters = {
			.tenant = scope->tenant, .group = scope->group, .hour_ms = row->hour_ms};

		assert(scope->id == row->scope_id);
		memcpy(counters.counts, row->counts, sizeof(counters.counts));
		for (size_t k = 0; k < HAPAX_DECISION_COUNT; k++)
			stats->counts[k] += row->counts[k];
		if (!stopped)
			stopped = each(&counters, context) != 0;
	}
	hx_mutex_unlock(&counts->mutex);
}

void hx_log_counts_renew(struct hx_log_counts *counts, uint64_t segment_id)
{
	hx_mutex_lock(&counts->mutex);
	for (size_t i = 0; i < counts->book.count; i++) {
		struct hx_counter_row *row = &counts->book.rows[i];

		row_assert(counts, row);
		if (row->kept_in <= segment_id)
			row->kept_in = 0;
	}
	atomic_store_explicit(&counts->has_news, 1, memory_order_release);
	hx_mutex_unlock(&counts->mutex);
}

static bool write_row(struct hx_log_writer *writer, const struct hx_counter_row *row)
{
	enum hapax_status status = hx_log_writer_name_scope(writer, row->scope_id);
	unsigned char *at = NULL;
	uint64_t lsn;

	/* A row is written again only when it has changed, or its segment goes. */
	assert(row->kept_in == 0);
	if (status == HAPAX_OK)
		at = hx_log_writer_append(writer, HX_LOG_COUNTS_SIZE, &lsn, &status);
	assert((at != NULL) == (status == HAPAX_OK));
	if (at != NULL)
		hx_log_counts_encode(at, row->hour_ms, row->scope_id, row->counts, lsn);
	/* There was a frame already: write it unchanged. */
	writer->write_ahead.is_full = false;
	return at != NULL;
}

void hx_log_counts_write(struct hx_log_counts *counts, struct hx_log_writer *writer)
{
	bool is_all = true;

	/* Only into a frame that is written anyway. */
	assert(writer->payload != 0 || writer->is_forced);
	if (atomic_load_explicit(&counts->has_news, memory_order_acquire) == 0)
		return;
	hx_mutex_lock(&counts->mutex);
	/* Newest first: older rows seldom change. */
	for (size_t i = counts->book.count; i > 0 && is_all; i--) {
		struct hx_counter_row *row = &counts->book.rows[i - 1];

		if (row->kept_in != 0)
			continue;
		assert(writer->active.header.id >= writer->manifest.log_first_id);
		is_all = write_row(writer, row);
		if (is_all)
			row->kept_in = writer->active.header.id;
	}
	if (is_all)
		atomic_store_explicit(&counts->has_news, 0, memory_order_relaxed);
	hx_mutex_unlock(&counts->mutex);
}
