/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.h - decisions per scope and hour, as kept in the log.
 *
 * They are added up here and go into a frame that is written anyway; a clean close writes the
 * rest. Every row is written as its total, so the last one read holds.
 *
 * Threads: any; one lock.
 */
#ifndef HX_STORE_LOG_WRITE_COUNTS_H
#define HX_STORE_LOG_WRITE_COUNTS_H

#include "store/counter_book.h"
#include "store/log/write/writer.h"

struct hx_log_counts {
	struct hx_mutex mutex;
	struct hx_counter_book book;
	struct hx_scope_table *scopes;
	_Atomic uint32_t has_news; /* rows that are not in the log */
};

void hx_log_counts_init(struct hx_log_counts *counts, struct hx_scope_table *scopes);
void hx_log_counts_done(struct hx_log_counts *counts);

/* See hapax_store_count_fn. */
enum hapax_status hx_log_counts_add(
	struct hx_log_counts *counts, const struct hapax_counters *rows, size_t count,
	int64_t now_ms);

/* A row as read from a segment of the log. */
enum hapax_status hx_log_counts_load(
	struct hx_log_counts *counts, uint32_t scope_id, int64_t hour_ms,
	const uint64_t totals[HAPAX_DECISION_COUNT], uint64_t segment_id);

/* Add the rows to stats->counts, and pass them to each, which may be NULL. */
void hx_log_counts_report(
	struct hx_log_counts *counts, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context);

/* The segment is given up: write its rows again. */
void hx_log_counts_renew(struct hx_log_counts *counts, uint64_t segment_id);

/*
 * Append rows that are not in the log, as many as fit. They are only counters: rows that fail
 * wait for the next time.
 */
void hx_log_counts_write(struct hx_log_counts *counts, struct hx_log_writer *writer);

#endif
