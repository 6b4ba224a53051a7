/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - counting.
 */
#include "observe/metrics/metrics.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "observe/metrics/cells.h"

enum { SCOPES_DEFAULT = 1000, TYPES_DEFAULT = 100, ROUTES_DEFAULT = 1000 };

size_t hx_metrics_numbers(const struct hx_metrics *metrics, enum hx_metric metric)
{
	enum hx_numbering numbering = hx_families[metric].numbering;

	return numbering == HX_NUMBERED_NOT ? 1 : (size_t)metrics->tables[numbering].count_max + 1;
}

static size_t page_cells(const struct hx_family *family)
{
	return hx_family_fixed_count(family) * hx_family_series_cells(family);
}

static enum hapax_status cells_init(struct hx_cells *cells, struct hx_metrics *metrics)
{
	cells->metrics = metrics;
	for (unsigned i = 0; i < HX_METRIC_COUNT; i++) {
		cells->pages[i] = hx_alloc_zero(
			hx_metrics_numbers(metrics, (enum hx_metric)i), sizeof(cells->pages[0][0]));
		if (cells->pages[i] == NULL)
			return HAPAX_ERR_NO_MEMORY;
	}
	return HAPAX_OK;
}

static void cells_done(struct hx_cells *cells)
{
	/* Unused cells have no metrics and no pages. */
	for (unsigned i = 0; cells->metrics != NULL && i < HX_METRIC_COUNT; i++) {
		size_t count = hx_metrics_numbers(cells->metrics, (enum hx_metric)i);

		for (size_t k = 0; cells->pages[i] != NULL && k < count; k++)
			hx_free(atomic_load_explicit(&cells->pages[i][k], memory_order_relaxed));
		hx_free(cells->pages[i]);
	}
}

static enum hapax_status init(struct hx_metrics *metrics, const struct hx_metrics_options *options)
{
	uint64_t limits[HX_NUMBERING_COUNT] = {
		[HX_NUMBERED_SCOPE] =
			options->scopes_max == 0 ? SCOPES_DEFAULT : options->scopes_max,
		[HX_NUMBERED_TYPE] = options->types_max == 0 ? TYPES_DEFAULT : options->types_max,
		[HX_NUMBERED_ROUTE] =
			options->routes_max == 0 ? ROUTES_DEFAULT : options->routes_max,
	};
	enum hapax_status status = HAPAX_OK;

	limits[HX_NUMBERED_EVENT] = limits[HX_NUMBERED_TYPE];
	limits[HX_NUMBERED_CONSUMER] = limits[HX_NUMBERED_ROUTE];
	metrics->has_aliases = !options->no_aliases;
	metrics->writer_count = options->writers == 0 ? 1 : options->writers;
	metrics->writers = hx_alloc_zero(metrics->writer_count, sizeof(struct hx_cells));
	if (metrics->writers == NULL)
		return HAPAX_ERR_NO_MEMORY;
	for (unsigned i = HX_NUMBERED_SCOPE; i < HX_NUMBERING_COUNT && status == HAPAX_OK; i++)
		status = hx_label_table_init(&metrics->tables[i], limits[i]);
	for (size_t i = 0; i < metrics->writer_count && status == HAPAX_OK; i++)
		status = cells_init(&metrics->writers[i], metrics);
	return status;
}

enum hapax_status hx_metrics_new(
	const struct hx_metrics_options *options, struct hx_metrics **ret_metrics,
	struct hapax_error *err)
{
	struct hx_metrics *metrics = hx_alloc_zero(1, sizeof(*metrics));

	if (metrics == NULL || init(metrics, options) != HAPAX_OK) {
		hx_metrics_free(metrics);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for metrics");
	}
	*ret_metrics = metrics;
	return HAPAX_OK;
}

void hx_metrics_free(struct hx_metrics *metrics)
{
	if (metrics == NULL)
		return;
	for (size_t i = 0; metrics->writers != NULL && i < metrics->writer_count; i++)
		cells_done(&metrics->writers[i]);
	hx_free(metrics->writers);
	for (unsigned i = HX_NUMBERED_SCOPE; i < HX_NUMBERING_COUNT; i++)
		hx_label_table_done(&metrics->tables[i]);
	hx_free(metrics);
}

struct hx_cells *hx_metrics_cells(struct hx_metrics *metrics, size_t writer)
{
	assert(writer < metrics->writer_count);
	return &metrics->writers[writer];
}

/* ------------------------------------------------------------------ labels */

static uint32_t number_of(
	struct hx_cells *cells, enum hx_numbering numbering, struct hapax_bytes first,
	struct hapax_bytes second)
{
	uint32_t *last = &cells->last[numbering];

	*last = hx_label_table_number_near(
		&cells->metrics->tables[numbering], *last, first, second);
	return *last;
}

uint32_t hx_metrics_scope(
	struct hx_cells *cells, struct hapax_bytes tenant, struct hapax_bytes group)
{
	return number_of(cells, HX_NUMBERED_SCOPE, tenant, group);
}

uint32_t hx_metrics_type(struct hx_cells *cells, struct hapax_bytes type)
{
	return number_of(cells, HX_NUMBERED_TYPE, type, HX_BYTES_LIT(""));
}

uint32_t hx_metrics_event(struct hx_cells *cells, struct hapax_bytes type, struct hapax_bytes group)
{
	return number_of(cells, HX_NUMBERED_EVENT, type, group);
}

uint32_t hx_metrics_route(struct hx_cells *cells, const char *name)
{
	return number_of(cells, HX_NUMBERED_ROUTE, hapax_bytes_from_text(name), HX_BYTES_LIT(""));
}

uint32_t hx_metrics_consumer(struct hx_cells *cells, const char *name)
{
	return number_of(
		cells, HX_NUMBERED_CONSUMER, hapax_bytes_from_text(name), HX_BYTES_LIT(""));
}

unsigned hx_metrics_code(unsigned status)
{
	return status >= HX_CODE_FIRST && status < HX_CODE_FIRST + HX_CODE_NONE
		? status - HX_CODE_FIRST
		: HX_CODE_NONE;
}

unsigned hx_metrics_request(enum hx_door door, unsigned status)
{
	return (unsigned)door * HX_CODE_COUNT + hx_metrics_code(status);
}

/* ------------------------------------------------------------------ counting */

/* The first cell of a series, or NULL: out of memory. */
static hx_cell *series(
	struct hx_cells *cells, enum hx_metric metric, uint32_t numbered, unsigned fixed)
{
	const struct hx_family *family = &hx_families[metric];
	_Atomic(hx_cell *) *place;
	hx_cell *page;

	assert(numbered < hx_metrics_numbers(cells->metrics, metric));
	assert(fixed < hx_family_fixed_count(family));
	place = &cells->pages[metric][numbered];
	page = atomic_load_explicit(place, memory_order_relaxed);
	if (page == NULL) {
		page = hx_alloc_zero(page_cells(family), sizeof(*page));
		if (page == NULL) {
			atomic_fetch_add_explicit(&cells->lost, 1, memory_order_relaxed);
			return NULL;
		}
		atomic_store_explicit(place, page, memory_order_release);
	}
	return page + fixed * hx_family_series_cells(family);
}

static void raise_cell(hx_cell *cell, uint64_t amount)
{
	uint64_t before = atomic_load_explicit(cell, memory_order_relaxed);

	atomic_store_explicit(cell, before + amount, memory_order_relaxed);
}

void hx_metrics_add(
	struct hx_cells *cells, enum hx_metric metric, uint32_t numbered, unsigned fixed,
	int64_t amount)
{
	hx_cell *cell = series(cells, metric, numbered, fixed);

	assert(hx_families[metric].kind != HX_PROMTEXT_HISTOGRAM);
	assert(amount >= 0 || hx_families[metric].kind == HX_PROMTEXT_GAUGE);
	/* A decrement wraps around, and so does the sum, which is then correct. */
	if (cell != NULL)
		raise_cell(cell, (uint64_t)amount);
}

void hx_metrics_decisions(
	struct hx_cells *cells, enum hx_door door, uint32_t scope, enum hapax_decision decision,
	int64_t count)
{
	const struct hx_fixed_label *decisions = &hx_families[HX_METRIC_DECISIONS].fixed[1];

	if ((size_t)decision < decisions->count)
		hx_metrics_add(
			cells, HX_METRIC_DECISIONS, scope,
			(unsigned)door * (unsigned)decisions->count + (unsigned)decision, count);
}

void hx_metrics_decision(
	struct hx_cells *cells, enum hx_door door, uint32_t scope, enum hapax_decision decision)
{
	hx_metrics_decisions(cells, door, scope, decision, 1);
}

static enum hx_check_error check_error_of(enum hapax_status status)
{
	switch (status) {
	case HAPAX_ERR_UNAVAILABLE:
	case HAPAX_ERR_FAILED: return HX_CHECK_ERROR_CHECK_FAILED;
	case HAPAX_ERR_UNCERTAIN: return HX_CHECK_ERROR_UNCERTAIN;
	case HAPAX_ERR_LIMIT:
	case HAPAX_ERR_NO_MEMORY: return HX_CHECK_ERROR_LIMIT;
	case HAPAX_OK:
	case HAPAX_ERR_INVALID:
	case HAPAX_ERR_FENCED:
	case HAPAX_ERR_CORRUPT:
	case HAPAX_ERR_UNSUPPORTED:
	case HAPAX_ERR_HANDLER: break;
	}
	return HX_CHECK_ERROR_OTHER;
}

void hx_metrics_check_errors(
	struct hx_cells *cells, enum hx_door door, enum hapax_status status, int64_t count)
{
	hx_metrics_add(
		cells, HX_METRIC_CHECK_ERRORS, 0,
		(unsigned)door * HX_CHECK_ERROR_COUNT + check_error_of(status), count);
}

void hx_metrics_invalid(struct hx_cells *cells, enum hx_door door, enum hx_invalid reason)
{
	hx_metrics_add(
		cells, HX_METRIC_INVALID_EVENTS, 0,
		(unsigned)door * HX_INVALID_COUNT + (unsigned)reason, 1);
}

/* Are they the same word? Headers are written with hyphens. */
static bool is_same_word(const char *label, const char *name)
{
	while (*label != '\0' && (*label == *name || (*label == '_' && *name == '-'))) {
		label++;
		name++;
	}
	return *label == *name;
}

enum hx_invalid hx_invalid_of(const char *name)
{
	const struct hx_fixed_label *reasons = &hx_families[HX_METRIC_INVALID_EVENTS].fixed[1];

	for (size_t i = 0; i < reasons->count; i++) {
		if (is_same_word(reasons->values[i], name))
			return (enum hx_invalid)i;
	}
	return HX_INVALID_OTHER;
}

void hx_metrics_operations(
	struct hx_cells *cells, enum hapax_op_type type, enum hapax_status status, uint64_t count)
{
	if (type >= HAPAX_OP_CLAIM && type <= HAPAX_OP_EXPIRE)
		hx_metrics_add(
			cells, HX_METRIC_OPERATIONS, 0,
			((unsigned)type - HAPAX_OP_CLAIM) * 2 + (status != HAPAX_OK),
			(int64_t)count);
}

void hx_metrics_operation(struct hx_cells *cells, enum hapax_op_type type, enum hapax_status status)
{
	hx_metrics_operations(cells, type, status, 1);
}

void hx_metrics_observe_ns(
	struct hx_cells *cells, enum hx_metric metric, uint32_t numbered, unsigned fixed,
	int64_t value_ns)
{
	const struct hx_family *family = &hx_families[metric];
	hx_cell *cell = series(cells, metric, numbered, fixed);
	size_t bucket = 0;

	assert(family->kind == HX_PROMTEXT_HISTOGRAM);
	if (cell == NULL)
		return;
	/* The clock was set back: do not count an absurd value. */
	if (value_ns < 0)
		value_ns = 0;
	while (bucket < family->bound_count && value_ns > family->bounds_ns[bucket])
		bucket++;
	raise_cell(cell + bucket, 1);
	if (value_ns != INT64_MAX)
		raise_cell(cell + family->bound_count + 1, (uint64_t)value_ns);
}

/* ------------------------------------------------------------------ adding up */

bool hx_metrics_cell(
	const struct hx_metrics *metrics, enum hx_metric metric, uint32_t number, size_t cell,
	uint64_t *ret_sum)
{
	bool is_there = false;
	uint64_t sum = 0;

	for (size_t i = 0; i < metrics->writer_count; i++) {
		const hx_cell *page = atomic_load_explicit(
			&metrics->writers[i].pages[metric][number], memory_order_acquire);

		if (page == NULL)
			continue;
		is_there = true;
		sum += atomic_load_explicit(page + cell, memory_order_relaxed);
	}
	*ret_sum = sum;
	return is_there;
}

int64_t hx_metrics_sum(
	struct hx_metrics *metrics, enum hx_metric metric, uint32_t numbered, unsigned fixed)
{
	uint64_t sum;

	assert(hx_families[metric].kind != HX_PROMTEXT_HISTOGRAM);
	(void)hx_metrics_cell(metrics, metric, numbered, fixed, &sum);
	return (int64_t)sum;
}
