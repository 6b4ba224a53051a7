/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.h - cells that metrics.c writes and metrics_render.c reads.
 *
 * For each family a writer has a page for each number of its numbered label, created when first
 * needed; a page has the cells of all fixed values. Only its own thread writes a cell, so an
 * increment is a load and a store. A scrape reads each cell whole, and gets a sum that was true at
 * some time between begin and end.
 */
#ifndef HX_CELLS_H
#define HX_CELLS_H

#include <stdatomic.h>

#include "observe/metrics/family.h"
#include "observe/metrics/label_table.h"

/* The cells of one number. */
typedef _Atomic uint64_t hx_cell;

struct hx_cells {
	struct hx_metrics *metrics;
	_Atomic(hx_cell *) *pages[HX_METRIC_COUNT]; /* [number] */
	uint32_t last[HX_NUMBERING_COUNT];          /* the number last requested */
	_Atomic uint64_t lost;
};

struct hx_metrics {
	struct hx_label_table tables[HX_NUMBERING_COUNT]; /* NOT is unused */
	bool has_aliases;
	size_t writer_count;
	struct hx_cells *writers;
};

/* The numbers that a family may have; at least 1: that of other, or of all. */
size_t hx_metrics_numbers(const struct hx_metrics *metrics, enum hx_metric metric);

/* The sum of one cell over all writers; false: no writer has the page. */
bool hx_metrics_cell(
	const struct hx_metrics *metrics, enum hx_metric metric, uint32_t number, size_t cell,
	uint64_t *ret_sum);

#endif
