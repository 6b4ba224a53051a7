/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family.h - the families of metrics that are counted in cells, as data.
 *
 * To add one: a value of enum hx_metric, its row in family.c, a line in README.md. Names, units and
 * labels follow Prometheus' conventions; promtool checks the output.
 *
 * Threads: any; it is constant.
 */
#ifndef HX_FAMILY_H
#define HX_FAMILY_H

#include <stddef.h>
#include <stdint.h>

#include "observe/metrics/metrics.h"

/* Labels whose values are numbered as they appear. */
enum hx_numbering {
	HX_NUMBERED_NOT,
	HX_NUMBERED_SCOPE, /* tenant and group */
	HX_NUMBERED_TYPE,  /* event_type */
	HX_NUMBERED_EVENT, /* event_type and group */
	HX_NUMBERED_ROUTE,
	HX_NUMBERED_CONSUMER,
	HX_NUMBERING_COUNT,
};

/* HTTP status codes as an index: 100 to 599, and none. */
enum { HX_CODE_FIRST = 100, HX_CODE_NONE = 500, HX_CODE_COUNT = 501 };

/* A label with a fixed set of values. */
struct hx_fixed_label {
	const char *name;          /* NULL: none */
	const char *const *values; /* NULL: status codes */
	size_t count;
};

enum { HX_FIXED_LABELS_MAX = 2, HX_LABELS_MAX = 4 };

struct hx_family {
	const char *name; /* without the suffix of its kind */
	const char *help;
	const char *unit;  /* NULL: none */
	const char *alias; /* its name in the documents; NULL: none */
	enum hx_promtext_kind kind;
	enum hx_numbering numbering;
	struct hx_fixed_label fixed[HX_FIXED_LABELS_MAX];
	const int64_t *bounds_ns; /* for a histogram */
	size_t bound_count;
};

extern const struct hx_family hx_families[HX_METRIC_COUNT];

/* The number of values for argument fixed. */
size_t hx_family_fixed_count(const struct hx_family *family);

/* The cells of one series: 1, or for a histogram its buckets and the sum. */
size_t hx_family_series_cells(const struct hx_family *family);

#endif
