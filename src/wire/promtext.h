/* SPDX-License-Identifier: Apache-2.0 */
/*
 * promtext.h - metrics as Prometheus reads them: text format 0.0.4, and OpenMetrics 1.0.
 *
 * Families one after the other, each with its samples; the same calls write either format. The
 * first failure is remembered, so that callers check only the end. A family is named once, without
 * the suffixes that its kind has: _total, _bucket, _sum, _count and _info are written here.
 *
 *	hx_promtext_init(&text, out, HX_PROMTEXT_OPENMETRICS);
 *	hx_promtext_family(&text, HX_PROMTEXT_COUNTER, "hapax_decisions", NULL, "Decisions.");
 *	hx_promtext_count(&text, labels, 2, 42);
 *	status = hx_promtext_end(&text, &err);
 *
 * Numbers have the same text in both formats and in every locale.
 *
 * Threads: one at a time.
 */
#ifndef HX_PROMTEXT_H
#define HX_PROMTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

enum {
	/* For one family; limits the cost of one observation. */
	HX_PROMTEXT_BUCKETS_MAX = 64,
};

enum hx_promtext_format {
	HX_PROMTEXT_PLAIN,       /* text/plain; version=0.0.4 */
	HX_PROMTEXT_OPENMETRICS, /* application/openmetrics-text; version=1.0.0 */
};

enum hx_promtext_kind {
	HX_PROMTEXT_COUNTER,
	HX_PROMTEXT_GAUGE,
	HX_PROMTEXT_HISTOGRAM,
	HX_PROMTEXT_INFO, /* labels only; a gauge that is 1 in the plain format */
};

struct hx_promtext_label {
	const char *name;
	struct hapax_bytes value; /* UTF-8; other bytes become U+FFFD */
};

/* buckets[i]: observations above bounds[i - 1] and up to bounds[i]; the last: above all. */
struct hx_promtext_histogram {
	const double *bounds; /* rising */
	const uint64_t *buckets;
	size_t bound_count; /* buckets has one more */
	double sum;
};

/* Private. */
struct hx_promtext {
	struct hapax_buf *out;
	size_t begin;
	enum hx_promtext_format format;
	enum hx_promtext_kind kind;
	const char *family; /* NULL before the first */
	enum hapax_status status;
	const char *reason;
	char subject[64]; /* the subject of the error, cut */
};

/* The Content-Type to send. */
const char *hx_promtext_content_type(enum hx_promtext_format format);

/*
 * The format that the value of Accept asks for; size 0: no field. OpenMetrics if it is named with a
 * weight above zero and not below that of text/plain.
 */
enum hx_promtext_format hx_promtext_accept(struct hapax_bytes accept);

/* Append to out. */
void hx_promtext_init(
	struct hx_promtext *text, struct hapax_buf *out, enum hx_promtext_format format);

/*
 * Begin a family; name, unit and help stay valid until the next one. unit may be NULL;
 * else name ends with it. Samples of one family belong together: the same name twice is
 * the caller's mistake, which promtool finds.
 */
void hx_promtext_family(
	struct hx_promtext *text, enum hx_promtext_kind kind, const char *name, const char *unit,
	const char *help);

/* A sample of a counter or a gauge. */
void hx_promtext_count(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t label_count,
	uint64_t value);
void hx_promtext_value(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t label_count,
	double value);

/* The one sample of an info. */
void hx_promtext_info(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t label_count);

void hx_promtext_histogram(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t label_count,
	const struct hx_promtext_histogram *histogram);

/*
 * Finish. INVALID: a name, label or value could not be written; err names it. LIMIT or NO_MEMORY:
 * out is full. out is then unchanged.
 */
enum hapax_status hx_promtext_end(struct hx_promtext *text, struct hapax_error *err);

#endif
