/* SPDX-License-Identifier: Apache-2.0 */
/*
 * promtext.c - metrics in the text format of Prometheus.
 */
#include "wire/promtext.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/utf8.h"
#include "wire/http1/http1_text.h"
#include "wire/media_type.h"

enum { NUMBER_SIZE = 40 };

static void fail(
	struct hx_promtext *text, enum hapax_status status, const char *subject, const char *reason)
{
	if (text->status != HAPAX_OK)
		return;
	text->status = status;
	text->reason = reason;
	(void)snprintf(text->subject, sizeof(text->subject), "%s", subject);
}

static void put(struct hx_promtext *text, const void *data, size_t size)
{
	enum hapax_status status;

	if (text->status != HAPAX_OK)
		return;
	status = hx_buf_append(text->out, data, size);
	if (status != HAPAX_OK)
		fail(text, status, text->family == NULL ? "" : text->family, "not enough memory");
}

static void put_text(struct hx_promtext *text, const char *string)
{
	put(text, string, strlen(string));
}

/* [a-zA-Z_][a-zA-Z0-9_]*, and a colon in the name of a family. */
static bool is_name(const char *name, bool colon)
{
	const char *at = name;

	for (; *at != '\0'; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
			*at == '_' || (colon && *at == ':');

		if (!letter && (at == name || *at < '0' || *at > '9'))
			return false;
	}
	return at != name;
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t size = strlen(name);
	size_t suffix_size = strlen(suffix);

	return size > suffix_size && strcmp(name + size - suffix_size, suffix) == 0;
}

/* Escape \ and LF, and " if the text is in quotes. */
static void put_escaped(struct hx_promtext *text, struct hapax_bytes value, bool quoted)
{
	const unsigned char *at = value.data;
	const unsigned char *end = value.size == 0 ? at : at + value.size;

	while (at < end) {
		uint32_t code;
		size_t size = hx_utf8_size(hx_bytes(at, (size_t)(end - at)), &code);

		if (size == 0) {
			put_text(text, "\xef\xbf\xbd");
			size = 1;
		} else if (*at == '\n') {
			put_text(text, "\\n");
		} else if (*at == '\\' || (*at == '"' && quoted)) {
			put_text(text, *at == '"' ? "\\\"" : "\\\\");
		} else {
			put(text, at, size);
		}
		at += size;
	}
}

/*
 * The shortest text that reads back as the same double. printf(3) uses the decimal point of the
 * process's locale; the output must not depend on it.
 */
static size_t format_double(double value, char out[NUMBER_SIZE])
{
	int size = 0;

	if (isnan(value))
		return (size_t)snprintf(out, NUMBER_SIZE, "NaN");
	if (isinf(value))
		return (size_t)snprintf(out, NUMBER_SIZE, value > 0 ? "+Inf" : "-Inf");
	/* "10.0" rather than "1e+01". */
	if (fabs(value) < 1e15 && value == (double)(int64_t)value)
		return (size_t)snprintf(out, NUMBER_SIZE, "%lld.0", (long long)value);
	for (int digits = 1; digits <= 17; digits++) {
		size = snprintf(out, NUMBER_SIZE, "%.*g", digits, value);
		if (strtod(out, NULL) == value)
			break;
	}
	assert(size > 0 && size < NUMBER_SIZE);
	for (int i = 0; i < size; i++) {
		if (strchr("0123456789+-e", out[i]) == NULL)
			out[i] = '.';
	}
	return (size_t)size;
}

static void put_double(struct hx_promtext *text, double value)
{
	char number[NUMBER_SIZE];
	size_t size = format_double(value, number);

	put(text, number, size);
}

static void put_count(struct hx_promtext *text, uint64_t value)
{
	char number[NUMBER_SIZE];
	int size = snprintf(number, sizeof(number), "%llu", (unsigned long long)value);

	put(text, number, (size_t)size);
}

const char *hx_promtext_content_type(enum hx_promtext_format format)
{
	return format == HX_PROMTEXT_OPENMETRICS
		? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		: "text/plain; version=0.0.4; charset=utf-8";
}

enum hx_promtext_format hx_promtext_accept(struct hapax_bytes accept)
{
	struct hapax_bytes element;
	unsigned open = 0;
	unsigned plain = 0;

	while (hx_http1_list_next(&accept, &element)) {
		struct hapax_bytes type = hx_media_type_essence(element);
		unsigned weight = hx_media_type_weight(element);

		if (hx_http1_text_equal(type, HX_BYTES_LIT("application/openmetrics-text")))
			open = weight > open ? weight : open;
		else if (hx_http1_text_equal(type, HX_BYTES_LIT("text/plain")))
			plain = weight > plain ? weight : plain;
	}
	return open > 0 && open >= plain ? HX_PROMTEXT_OPENMETRICS : HX_PROMTEXT_PLAIN;
}

void hx_promtext_init(
	struct hx_promtext *text, struct hapax_buf *out, enum hx_promtext_format format)
{
	*text = (struct hx_promtext){
		.out = out, .begin = out->size, .format = format, .status = HAPAX_OK};
}

/* The suffix that a kind adds to a family name, in samples and in TYPE of the plain format. */
static const char *suffix(enum hx_promtext_kind kind)
{
	switch (kind) {
	case HX_PROMTEXT_COUNTER: return "_total";
	case HX_PROMTEXT_INFO: return "_info";
	case HX_PROMTEXT_GAUGE:
	case HX_PROMTEXT_HISTOGRAM: break;
	}
	return "";
}

static const char *type_name(enum hx_promtext_kind kind, enum hx_promtext_format format)
{
	switch (kind) {
	case HX_PROMTEXT_COUNTER: return "counter";
	case HX_PROMTEXT_HISTOGRAM: return "histogram";
	case HX_PROMTEXT_INFO: return format == HX_PROMTEXT_PLAIN ? "gauge" : "info";
	case HX_PROMTEXT_GAUGE: break;
	}
	return "gauge";
}

static void put_comment(struct hx_promtext *text, const char *word)
{
	put_text(text, word);
	put_text(text, text->family);
	if (text->format == HX_PROMTEXT_PLAIN)
		put_text(text, suffix(text->kind));
	put_text(text, " ");
}

static void check_family(struct hx_promtext *text, const char *name, const char *unit)
{
	static const char *const reserved[] = {
		"_total", "_bucket", "_sum", "_count", "_info", "_created"};

	if (!is_name(name, true))
		fail(text, HAPAX_ERR_INVALID, name, "it is not a valid name of a metric");
	for (size_t i = 0; i < HX_COUNT(reserved); i++) {
		if (ends_with(name, reserved[i]))
			fail(text, HAPAX_ERR_INVALID, name,
			     "it has a suffix that is added automatically");
	}
	if (unit != NULL &&
	    (!ends_with(name, unit) || name[strlen(name) - strlen(unit) - 1] != '_'))
		fail(text, HAPAX_ERR_INVALID, name, "it does not end with its unit");
}

void hx_promtext_family(
	struct hx_promtext *text, enum hx_promtext_kind kind, const char *name, const char *unit,
	const char *help)
{
	check_family(text, name, unit);
	text->family = name;
	text->kind = kind;
	/* HELP comes first in the plain format, TYPE first in OpenMetrics. */
	if (text->format == HX_PROMTEXT_PLAIN) {
		put_comment(text, "# HELP ");
		put_escaped(text, hapax_bytes_from_text(help), false);
		put_text(text, "\n");
	}
	put_comment(text, "# TYPE ");
	put_text(text, type_name(kind, text->format));
	put_text(text, "\n");
	if (text->format == HX_PROMTEXT_PLAIN)
		return;
	if (unit != NULL) {
		put_comment(text, "# UNIT ");
		put_text(text, unit);
		put_text(text, "\n");
	}
	put_comment(text, "# HELP ");
	put_escaped(text, hapax_bytes_from_text(help), true);
	put_text(text, "\n");
}

static void put_label(
	struct hx_promtext *text, const char *name, struct hapax_bytes value, size_t index)
{
	put_text(text, index == 0 ? "{" : ",");
	put_text(text, name);
	put_text(text, "=\"");
	put_escaped(text, value, true);
	put_text(text, "\"");
}

static void check_labels(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_name(labels[i].name, false) || strncmp(labels[i].name, "__", 2) == 0 ||
		    strcmp(labels[i].name, "le") == 0)
			fail(text, HAPAX_ERR_INVALID, labels[i].name,
			     "it is not a valid name of a label");
		for (size_t k = 0; k < i; k++) {
			if (strcmp(labels[i].name, labels[k].name) == 0)
				fail(text, HAPAX_ERR_INVALID, labels[i].name,
				     "the label occurs twice");
		}
	}
}

/* Write name and labels; bound NULL: no label le. */
static void put_series(
	struct hx_promtext *text, const char *name_suffix, const struct hx_promtext_label *labels,
	size_t count, const double *bound)
{
	put_text(text, text->family);
	put_text(text, name_suffix);
	for (size_t i = 0; i < count; i++)
		put_label(text, labels[i].name, labels[i].value, i);
	if (bound != NULL) {
		char number[NUMBER_SIZE];
		size_t size = format_double(*bound, number);

		put_label(text, "le", hx_bytes(number, size), count);
	}
	put_text(text, count > 0 || bound != NULL ? "} " : " ");
}

/* May a sample of this kind follow now? */
static bool begin_sample(
	struct hx_promtext *text, bool fits, const struct hx_promtext_label *labels, size_t count)
{
	if (text->family == NULL)
		fail(text, HAPAX_ERR_INVALID, "", "a sample precedes its family");
	else if (!fits)
		fail(text, HAPAX_ERR_INVALID, text->family, "its samples are of another kind");
	check_labels(text, labels, count);
	return text->status == HAPAX_OK;
}

static bool is_single(const struct hx_promtext *text)
{
	return text->kind == HX_PROMTEXT_COUNTER || text->kind == HX_PROMTEXT_GAUGE;
}

void hx_promtext_count(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t label_count,
	uint64_t value)
{
	if (!begin_sample(text, is_single(text), labels, label_count))
		return;
	put_series(text, suffix(text->kind), labels, label_count, NULL);
	put_count(text, value);
	put_text(text, "\n");
}

void hx_promtext_value(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t label_count,
	double value)
{
	if (!begin_sample(text, is_single(text), labels, label_count))
		return;
	if (text->kind == HX_PROMTEXT_COUNTER && !(value >= 0)) {
		fail(text, HAPAX_ERR_INVALID, text->family, "a counter must not be negative");
		return;
	}
	put_series(text, suffix(text->kind), labels, label_count, NULL);
	put_double(text, value);
	put_text(text, "\n");
}

void hx_promtext_info(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t label_count)
{
	if (!begin_sample(text, text->kind == HX_PROMTEXT_INFO, labels, label_count))
		return;
	put_series(text, "_info", labels, label_count, NULL);
	put_text(text, "1\n");
}

static bool check_histogram(struct hx_promtext *text, const struct hx_promtext_histogram *histogram)
{
	const double *bounds = histogram->bounds;
	bool rising = histogram->bound_count < HX_PROMTEXT_BUCKETS_MAX;

	for (size_t i = 0; i < histogram->bound_count && rising; i++)
		rising = isfinite(bounds[i]) && (i == 0 || bounds[i - 1] < bounds[i]);
	if (!rising)
		fail(text, HAPAX_ERR_INVALID, text->family, "the bounds of its buckets must rise");
	return rising;
}

void hx_promtext_histogram(
	struct hx_promtext *text, const struct hx_promtext_label *labels, size_t label_count,
	const struct hx_promtext_histogram *histogram)
{
	uint64_t below = 0;

	if (!begin_sample(text, text->kind == HX_PROMTEXT_HISTOGRAM, labels, label_count) ||
	    !check_histogram(text, histogram))
		return;
	for (size_t i = 0; i <= histogram->bound_count; i++) {
		double bound =
			i == histogram->bound_count ? (double)INFINITY : histogram->bounds[i];

		below += histogram->buckets[i];
		put_series(text, "_bucket", labels, label_count, &bound);
		put_count(text, below);
		put_text(text, "\n");
	}
	put_series(text, "_sum", labels, label_count, NULL);
	put_double(text, histogram->sum);
	put_text(text, "\n");
	put_series(text, "_count", labels, label_count, NULL);
	put_count(text, below);
	put_text(text, "\n");
}

enum hapax_status hx_promtext_end(struct hx_promtext *text, struct hapax_error *err)
{
	if (text->format == HX_PROMTEXT_OPENMETRICS)
		put_text(text, "# EOF\n");
	if (text->status == HAPAX_OK)
		return HAPAX_OK;
	text->out->size = text->begin;
	return hx_error_set(
		err, text->status, 0, "could not write metric '%s': %s", text->subject,
		text->reason);
}
