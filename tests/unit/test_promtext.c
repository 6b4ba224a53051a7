/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics in both formats, to the byte; and through promtool, where it is installed.
 */
#include "wire/promtext.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

enum { OUT_MAX = 64 * 1024 };

static const struct hx_promtext_label labels[] = {
	{"door", HX_BYTES_LIT("gateway")},
	{"tenant", HX_BYTES_LIT("a\"b\\c\nd\xff")},
};

static const double bounds[] = {1e-5, 2.5e-5, 1e-4, 0.005, 1, 10};
static const uint64_t buckets[] = {1, 0, 2, 3, 0, 4, 5};

/* A family of every kind. */
static enum hapax_status write_all(
	struct hapax_buf *out, enum hx_promtext_format format, struct hapax_error *err)
{
	const struct hx_promtext_histogram histogram = {bounds, buckets, 6, 60.25};
	struct hx_promtext text;

	hx_promtext_init(&text, out, format);
	hx_promtext_family(&text, HX_PROMTEXT_INFO, "hapax_build", NULL, "What is running.");
	hx_promtext_info(&text, labels, 1);
	hx_promtext_family(
		&text, HX_PROMTEXT_COUNTER, "hapax_decisions", NULL, "Decisions \\ by \"door\"\n.");
	hx_promtext_count(&text, labels, 2, UINT64_MAX);
	hx_promtext_count(&text, labels, 1, 0);
	hx_promtext_family(
		&text, HX_PROMTEXT_GAUGE, "hapax_store_bytes", "bytes", "Bytes in the store.");
	hx_promtext_value(&text, NULL, 0, 1.5);
	hx_promtext_family(
		&text, HX_PROMTEXT_HISTOGRAM, "hapax_check_duration_seconds", "seconds",
		"Time of a check.");
	hx_promtext_histogram(&text, labels, 1, &histogram);
	return hx_promtext_end(&text, err);
}

static void assert_text(const struct hapax_buf *out, const char *text)
{
	if (!hx_bytes_equal(hx_bytes(out->data, out->size), hapax_bytes_from_text(text)))
		fail_msg("got\n%.*s\nwant\n%s", (int)out->size, (const char *)out->data, text);
}

static void the_plain_format_is_that_of_prometheus(void **state)
{
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, OUT_MAX);
	assert_int_equal(write_all(&out, HX_PROMTEXT_PLAIN, NULL), HAPAX_OK);
	assert_text(
		&out,
		"# HELP hapax_build_info What is running.\n"
		"# TYPE hapax_build_info gauge\n"
		"hapax_build_info{door=\"gateway\"} 1\n"
		"# HELP hapax_decisions_total Decisions \\\\ by \"door\"\\n.\n"
		"# TYPE hapax_decisions_total counter\n"
		"hapax_decisions_total{door=\"gateway\",tenant=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} "
		"18446744073709551615\n"
		"hapax_decisions_total{door=\"gateway\"} 0\n"
		"# HELP hapax_store_bytes Bytes in the store.\n"
		"# TYPE hapax_store_bytes gauge\n"
		"hapax_store_bytes 1.5\n"
		"# HELP hapax_check_duration_seconds Time of a check.\n"
		"# TYPE hapax_check_duration_seconds histogram\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"1e-05\"} 1\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"2.5e-05\"} 1\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"0.0001\"} 3\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"0.005\"} 6\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"1.0\"} 6\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"10.0\"} 10\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"+Inf\"} 15\n"
		"hapax_check_duration_seconds_sum{door=\"gateway\"} 60.25\n"
		"hapax_check_duration_seconds_count{door=\"gateway\"} 15\n");
	hx_buf_done(&out);
}

static void openmetrics_is_that_of_its_standard(void **state)
{
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, OUT_MAX);
	assert_int_equal(write_all(&out, HX_PROMTEXT_OPENMETRICS, NULL), HAPAX_OK);
	assert_text(
		&out,
		"# TYPE hapax_build info\n"
		"# HELP hapax_build What is running.\n"
		"hapax_build_info{door=\"gateway\"} 1\n"
		"# TYPE hapax_decisions counter\n"
		"# HELP hapax_decisions Decisions \\\\ by \\\"door\\\"\\n.\n"
		"hapax_decisions_total{door=\"gateway\",tenant=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} "
		"18446744073709551615\n"
		"hapax_decisions_total{door=\"gateway\"} 0\n"
		"# TYPE hapax_store_bytes gauge\n"
		"# UNIT hapax_store_bytes bytes\n"
		"# HELP hapax_store_bytes Bytes in the store.\n"
		"hapax_store_bytes 1.5\n"
		"# TYPE hapax_check_duration_seconds histogram\n"
		"# UNIT hapax_check_duration_seconds seconds\n"
		"# HELP hapax_check_duration_seconds Time of a check.\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"1e-05\"} 1\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"2.5e-05\"} 1\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"0.0001\"} 3\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"0.005\"} 6\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"1.0\"} 6\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"10.0\"} 10\n"
		"hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"+Inf\"} 15\n"
		"hapax_check_duration_seconds_sum{door=\"gateway\"} 60.25\n"
		"hapax_check_duration_seconds_count{door=\"gateway\"} 15\n"
		"# EOF\n");
	hx_buf_done(&out);
}

static void numbers_are_short_and_exact(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "0.0"},
		{-1, "-1.0"},
		{0.1, "0.1"},
		{1.0 / 3, "0.3333333333333333"},
		{1e20, "1e+20"},
		{123456789, "123456789.0"},
		{1e-300, "1e-300"},
		{(double)INFINITY, "+Inf"},
		{-(double)INFINITY, "-Inf"},
		{(double)NAN, "NaN"},
		{5e-324, "5e-324"},
		{1.7976931348623157e308, "1.7976931348623157e+308"},
	};
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, OUT_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_promtext text;
		char wanted[128];

		hx_buf_clear(&out);
		hx_promtext_init(&text, &out, HX_PROMTEXT_PLAIN);
		hx_promtext_family(&text, HX_PROMTEXT_GAUGE, "x", NULL, "X.");
		hx_promtext_value(&text, NULL, 0, cases[i].value);
		assert_int_equal(hx_promtext_end(&text, NULL), HAPAX_OK);
		(void)snprintf(
			wanted, sizeof(wanted), "# HELP x X.\n# TYPE x gauge\nx %s\n",
			cases[i].text);
		assert_text(&out, wanted);
	}
	hx_buf_done(&out);
}

typedef void bad_fn(struct hx_promtext *text);

static void bad_family(struct hx_promtext *text)
{
	hx_promtext_family(text, HX_PROMTEXT_GAUGE, "9x", NULL, "");
}

static void bad_suffix(struct hx_promtext *text)
{
	hx_promtext_family(text, HX_PROMTEXT_COUNTER, "x_total", NULL, "");
}

static void bad_unit(struct hx_promtext *text)
{
	hx_promtext_family(text, HX_PROMTEXT_GAUGE, "x_kiloseconds", "seconds", "");
}

static void bad_label(struct hx_promtext *text)
{
	const struct hx_promtext_label label = {"a-b", HX_BYTES_LIT("")};

	hx_promtext_family(text, HX_PROMTEXT_GAUGE, "x", NULL, "");
	hx_promtext_count(text, &label, 1, 0);
}

static void reserved_label(struct hx_promtext *text)
{
	const struct hx_promtext_label label = {"le", HX_BYTES_LIT("")};

	hx_promtext_family(text, HX_PROMTEXT_GAUGE, "x", NULL, "");
	hx_promtext_count(text, &label, 1, 0);
}

static void label_twice(struct hx_promtext *text)
{
	const struct hx_promtext_label pair[] = {
		{"a", HX_BYTES_LIT("1")}, {"a", HX_BYTES_LIT("2")}};

	hx_promtext_family(text, HX_PROMTEXT_GAUGE, "x", NULL, "");
	hx_promtext_count(text, pair, 2, 0);
}

static void no_family(struct hx_promtext *text)
{
	hx_promtext_count(text, NULL, 0, 0);
}

static void other_kind(struct hx_promtext *text)
{
	hx_promtext_family(text, HX_PROMTEXT_HISTOGRAM, "x", NULL, "");
	hx_promtext_count(text, NULL, 0, 0);
}

static void negative_counter(struct hx_promtext *text)
{
	hx_promtext_family(text, HX_PROMTEXT_COUNTER, "x", NULL, "");
	hx_promtext_value(text, NULL, 0, -1);
}

static void falling_bounds(struct hx_promtext *text)
{
	static const double falling[] = {2, 1};
	const struct hx_promtext_histogram histogram = {falling, buckets, 2, 0};

	hx_promtext_family(text, HX_PROMTEXT_HISTOGRAM, "x", NULL, "");
	hx_promtext_histogram(text, NULL, 0, &histogram);
}

static void what_prometheus_refuses_is_not_written(void **state)
{
	static const struct {
		bad_fn *write;
		const char *message;
	} cases[] = {
		{bad_family, "could not write metric '9x': it is not a valid name of a metric"},
		{bad_suffix,
		 "could not write metric 'x_total': it has a suffix that is added automatically"},
		{bad_unit, "could not write metric 'x_kiloseconds': it does not end with its unit"},
		{bad_label, "could not write metric 'a-b': it is not a valid name of a label"},
		{reserved_label, "could not write metric 'le': it is not a valid name of a label"},
		{label_twice, "could not write metric 'a': the label occurs twice"},
		{no_family, "could not write metric '': a sample precedes its family"},
		{other_kind, "could not write metric 'x': its samples are of another kind"},
		{negative_counter, "could not write metric 'x': a counter must not be negative"},
		{falling_bounds, "could not write metric 'x': the bounds of its buckets must rise"},
	};
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, OUT_MAX);
	assert_int_equal(hx_buf_append(&out, "x", 1), HAPAX_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_promtext text;
		struct hapax_error err;

		hx_promtext_init(&text, &out, HX_PROMTEXT_OPENMETRICS);
		cases[i].write(&text);
		hx_promtext_family(&text, HX_PROMTEXT_GAUGE, "y", NULL, "");
		assert_int_equal(hx_promtext_end(&text, &err), HAPAX_ERR_INVALID);
		assert_string_equal(err.message, cases[i].message);
		assert_text(&out, "x");
	}
	hx_buf_done(&out);
}

static void a_full_buffer_keeps_what_it_had(void **state)
{
	struct hapax_error err;
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 300);
	assert_int_equal(write_all(&out, HX_PROMTEXT_PLAIN, &err), HAPAX_ERR_LIMIT);
	assert_string_equal(
		err.message, "could not write metric 'hapax_decisions': not enough memory");
	assert_int_equal(out.size, 0);
	hx_buf_done(&out);
}

static void the_format_is_the_one_that_is_asked_for(void **state)
{
	static const struct {
		const char *accept;
		enum hx_promtext_format format;
	} cases[] = {
		{"", HX_PROMTEXT_PLAIN},
		{"*/*", HX_PROMTEXT_PLAIN},
		{"text/plain", HX_PROMTEXT_PLAIN},
		{"application/openmetrics-text", HX_PROMTEXT_OPENMETRICS},
		{"Application/OpenMetrics-Text; version=1.0.0; charset=utf-8",
		 HX_PROMTEXT_OPENMETRICS},
		{"application/openmetrics-textual", HX_PROMTEXT_PLAIN},
		{"application/openmetrics-text;q=0", HX_PROMTEXT_PLAIN},
		{"application/openmetrics-text;q=0.2,text/plain;q=0.5", HX_PROMTEXT_PLAIN},
		{"application/openmetrics-text;version=1.0.0;q=0.5,"
		 "application/openmetrics-text;version=0.0.1;q=0.4,"
		 "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		 HX_PROMTEXT_OPENMETRICS},
		{"text/plain, application/openmetrics-text", HX_PROMTEXT_OPENMETRICS},
		{"application/vnd.google.protobuf;q=0.9, text/plain;q=0.1", HX_PROMTEXT_PLAIN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
			hx_promtext_accept(hapax_bytes_from_text(cases[i].accept)),
			cases[i].format);
	assert_string_equal(
		hx_promtext_content_type(HX_PROMTEXT_PLAIN),
		"text/plain; version=0.0.4; charset=utf-8");
	assert_string_equal(
		hx_promtext_content_type(HX_PROMTEXT_OPENMETRICS),
		"application/openmetrics-text; version=1.0.0; charset=utf-8");
}

/* promtool reads the plain format from its standard input. */
static void promtool_finds_nothing_to_say(void **state)
{
	struct hapax_buf out;
	FILE *tool;

	(void)state;
	/* NOLINTNEXTLINE(cert-env33-c): a fixed command line, of a test */
	if (system("command -v promtool >/dev/null 2>&1") != 0) {
		print_message("# promtool is not installed (Debian: prometheus)\n");
		skip();
	}
	hx_buf_init(&out, OUT_MAX);
	assert_int_equal(write_all(&out, HX_PROMTEXT_PLAIN, NULL), HAPAX_OK);
	/* NOLINTNEXTLINE(cert-env33-c): the same */
	tool = popen("promtool check metrics >&2", "w");
	assert_non_null(tool);
	assert_int_equal(fwrite(out.data, 1, out.size, tool), out.size);
	assert_int_equal(pclose(tool), 0);
	hx_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_plain_format_is_that_of_prometheus),
		cmocka_unit_test(openmetrics_is_that_of_its_standard),
		cmocka_unit_test(numbers_are_short_and_exact),
		cmocka_unit_test(what_prometheus_refuses_is_not_written),
		cmocka_unit_test(a_full_buffer_keeps_what_it_had),
		cmocka_unit_test(the_format_is_the_one_that_is_asked_for),
		cmocka_unit_test(promtool_finds_nothing_to_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
