/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting by several writers, adding up, and both formats; promtool reads the plain one
 * (A9, B11, E10).
 */
#include "observe/metrics/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/io.h"
#include "base/thread.h"
#include "observe/metrics/family.h"
#include "support/metrics_sample.h"
#include "support/scale.h"

enum { OUT_MAX = 16 * 1024 * 1024 };

static struct hx_metrics *new_metrics(size_t writers)
{
	struct hx_metrics_options options = {
		.writers = writers, .scopes_max = 3, .types_max = 2, .routes_max = 2};
	struct hx_metrics *metrics;

	assert_int_equal(hx_metrics_new(&options, &metrics, NULL), HAPAX_OK);
	return metrics;
}

/* With a NUL, so that strings can be looked for. */
static const char *render(
	struct hx_metrics *metrics, const struct hx_metrics_facts *facts,
	enum hx_promtext_format format, struct hapax_buf *out)
{
	static const struct hx_metrics_facts nothing = {.version = NULL};
	struct hapax_error err;

	hx_buf_init(out, OUT_MAX);
	if (hx_metrics_render(metrics, facts == NULL ? &nothing : facts, format, out, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
	assert_int_equal(hx_buf_append(out, "", 1), HAPAX_OK);
	return (const char *)out->data;
}

/* Whether text has this line. */
static void has_line(const char *text, const char *line)
{
	const char *at = text;
	size_t size = strlen(line);

	while ((at = strstr(at, line)) != NULL) {
		if ((at == text || at[-1] == '\n') && at[size] == '\n')
			return;
		at++;
	}
	fail_msg("there is no line \"%s\"", line);
}

static void lacks(const char *text, const char *part)
{
	if (strstr(text, part) != NULL)
		fail_msg("there is \"%s\"", part);
}

static void what_writers_count_is_added_up(void **state)
{
	struct hx_metrics *metrics = new_metrics(3);
	struct hapax_buf out;
	const char *text;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct hx_cells *cells = hx_metrics_cells(metrics, i);
		uint32_t scope =
			hx_metrics_scope(cells, HX_BYTES_LIT("acme"), HX_BYTES_LIT("pay\"ments"));

		assert_int_equal(scope, 1);
		hx_metrics_decision(cells, HX_DOOR_GATEWAY, scope, HAPAX_DECISION_REPLAY);
		hx_metrics_decision(cells, HX_DOOR_GATEWAY, scope, HAPAX_DECISION_COMPLETED);
		hx_metrics_add(cells, HX_METRIC_CONNECTIONS, 0, HX_DOOR_GATEWAY, 2);
		hx_metrics_operation(cells, HAPAX_OP_CLAIM, HAPAX_OK);
		hx_metrics_operation(cells, HAPAX_OP_COMPLETE, HAPAX_ERR_UNAVAILABLE);
		hx_metrics_operation(cells, HAPAX_OP_LOAD, HAPAX_OK);
		hx_metrics_add(
			cells, HX_METRIC_DUPLICATES,
			hx_metrics_type(cells, HX_BYTES_LIT("order.paid")), 0, 1);
		hx_metrics_add(
			cells, HX_METRIC_REQUESTS, 0, hx_metrics_request(HX_DOOR_ADMIN, 404), 1);
		hx_metrics_check_errors(cells, HX_DOOR_PROXY, HAPAX_ERR_UNAVAILABLE, 1);
	}
	/* Up on one writer, down on another: the sum is right. */
	hx_metrics_add(hx_metrics_cells(metrics, 2), HX_METRIC_CONNECTIONS, 0, HX_DOOR_GATEWAY, -5);
	assert_int_equal(hx_metrics_sum(metrics, HX_METRIC_CONNECTIONS, 0, HX_DOOR_GATEWAY), 1);
	text = render(metrics, NULL, HX_PROMTEXT_PLAIN, &out);
	has_line(
		text,
		"hapax_decisions_total{tenant=\"acme\",group=\"pay\\\"ments\",door=\"gateway\",decision=\"replay\"} 3");
	has_line(
		text,
		"hapax_decisions_total{tenant=\"acme\",group=\"pay\\\"ments\",door=\"gateway\",decision=\"acquired\"} 0");
	lacks(text, "door=\"admin\",decision");
	has_line(text, "hapax_connections{door=\"gateway\"} 1.0");
	has_line(text, "hapax_store_operations_total{operation=\"claim\",result=\"ok\"} 3");
	has_line(text, "hapax_store_operations_total{operation=\"complete\",result=\"error\"} 3");
	has_line(text, "hapax_duplicates_total{event_type=\"order.paid\"} 3");
	has_line(text, "hapax_http_requests_total{door=\"admin\",code=\"404\"} 3");
	lacks(text, "code=\"405\"");
	has_line(text, "hapax_check_errors_total{door=\"proxy\",reason=\"check_failed\"} 3");
	/* Document A's names, beside ours. */
	has_line(text, "duplicate_events_skipped_total{event_type=\"order.paid\"} 3");
	has_line(text, "idempotency_cache_operations_total{operation=\"check\"} 3");
	has_line(text, "idempotency_cache_operations_total{operation=\"mark\"} 3");
	has_line(text, "idempotency_errors_total{door=\"proxy\",reason=\"check_failed\"} 3");
	hx_buf_done(&out);
	hx_metrics_free(metrics);
}

static void histograms_have_their_buckets(void **state)
{
	struct hx_metrics *metrics = new_metrics(2);
	struct hapax_buf out;
	const char *text;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct hx_cells *cells = hx_metrics_cells(metrics, i);

		hx_metrics_observe_ns(cells, HX_METRIC_CHECK_DURATION, 0, HX_DOOR_GATEWAY, 100000);
		hx_metrics_observe_ns(cells, HX_METRIC_CHECK_DURATION, 0, HX_DOOR_GATEWAY, 100001);
		hx_metrics_observe_ns(cells, HX_METRIC_CHECK_DURATION, 0, HX_DOOR_GATEWAY, -1);
		hx_metrics_observe_ns(
			cells, HX_METRIC_CHECK_DURATION, 0, HX_DOOR_GATEWAY, 2000000000);
		hx_metrics_observe_ns(cells, HX_METRIC_KEY_TTL, 0, 0, INT64_MAX);
		hx_metrics_observe_ns(cells, HX_METRIC_KEY_TTL, 0, 0, INT64_C(86400000000000));
	}
	text = render(metrics, NULL, HX_PROMTEXT_PLAIN, &out);
	has_line(text, "hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"1e-05\"} 2");
	has_line(text, "hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"0.0001\"} 4");
	has_line(text, "hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"0.00025\"} 6");
	has_line(text, "hapax_check_duration_seconds_bucket{door=\"gateway\",le=\"+Inf\"} 8");
	has_line(text, "hapax_check_duration_seconds_count{door=\"gateway\"} 8");
	has_line(text, "hapax_check_duration_seconds_sum{door=\"gateway\"} 4.000400002");
	/* Its three buckets, by document A's own name. */
	has_line(
		text,
		"idempotency_check_duration_seconds_bucket{door=\"gateway\",le=\"0.0001\"} 4");
	has_line(
		text,
		"idempotency_check_duration_seconds_bucket{door=\"gateway\",le=\"0.0005\"} 6");
	has_line(
		text, "idempotency_check_duration_seconds_bucket{door=\"gateway\",le=\"0.001\"} 6");
	has_line(text, "hapax_key_ttl_seconds_bucket{le=\"86400.0\"} 2");
	has_line(text, "hapax_key_ttl_seconds_bucket{le=\"+Inf\"} 4");
	has_line(text, "hapax_key_ttl_seconds_sum 172800.0");
	hx_buf_done(&out);
	hx_metrics_free(metrics);
}

static void labels_are_bounded(void **state)
{
	struct hx_metrics *metrics = new_metrics(1);
	struct hx_cells *cells = hx_metrics_cells(metrics, 0);
	struct hapax_buf out;
	const char *text;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		char name[16];
		uint32_t scope;

		(void)snprintf(name, sizeof(name), "t%u", i);
		scope = hx_metrics_scope(cells, hapax_bytes_from_text(name), HX_BYTES_LIT("g"));
		assert_int_equal(scope, i < 3 ? i + 1 : 0);
		hx_metrics_decision(cells, HX_DOOR_GATEWAY, scope, HAPAX_DECISION_ACQUIRED);
		assert_int_equal(hx_metrics_route(cells, name), i < 2 ? i + 1 : 0);
	}
	text = render(metrics, NULL, HX_PROMTEXT_OPENMETRICS, &out);
	has_line(
		text,
		"hapax_decisions_total{tenant=\"t2\",group=\"g\",door=\"gateway\",decision=\"acquired\"} 1");
	has_line(
		text,
		"hapax_decisions_total{tenant=\"other\",group=\"other\",door=\"gateway\",decision=\"acquired\"} 97");
	lacks(text, "tenant=\"t3\"");
	hx_buf_done(&out);
	hx_metrics_free(metrics);
}

static void without_memory_it_is_not_counted_but_told(void **state)
{
	int64_t live = hx_alloc_live();
	struct hx_metrics *metrics;
	struct hapax_buf out;
	bool is_made = false;

	(void)state;
	for (uint64_t nth = 1; !is_made; nth++) {
		struct hx_metrics_options options = {.writers = 2};

		hx_alloc_fail_at(nth, 0);
		is_made = hx_metrics_new(&options, &metrics, NULL) == HAPAX_OK;
		hx_alloc_fail_at(0, 0);
		if (is_made)
			hx_metrics_free(metrics);
		assert_int_equal(hx_alloc_live(), live);
	}
	metrics = new_metrics(1);
	hx_alloc_fail_at(1, 1);
	hx_metrics_add(hx_metrics_cells(metrics, 0), HX_METRIC_REFUSED, 0, HX_REFUSED_TENANT, 1);
	hx_metrics_observe_ns(hx_metrics_cells(metrics, 0), HX_METRIC_KEY_DURATION, 0, 0, 1);
	hx_alloc_fail_at(0, 0);
	has_line(render(metrics, NULL, HX_PROMTEXT_PLAIN, &out), "hapax_metrics_lost_total 2");
	has_line((const char *)out.data, "hapax_refused_total{reason=\"tenant\"} 0");
	hx_buf_done(&out);
	hx_metrics_free(metrics);
}

static void what_is_not_known_of_the_build_is_left_out(void **state)
{
	struct hx_metrics *metrics = metrics_sample_new();
	struct hx_metrics_facts facts = metrics_sample_facts();
	struct hapax_buf out;
	const char *text;

	(void)state;
	facts.revision = "";
	text = render(metrics, &facts, HX_PROMTEXT_PLAIN, &out);
	has_line(text, "hapax_build_info{version=\"0.1.0\",store=\"memory\"} 1");
	hx_buf_done(&out);
	hx_metrics_free(metrics);
}

static void facts_are_told(void **state)
{
	struct hx_metrics *metrics = metrics_sample_new();
	struct hx_metrics_facts facts = metrics_sample_facts();
	struct hapax_buf out;
	const char *text = render(metrics, &facts, HX_PROMTEXT_PLAIN, &out);

	(void)state;
	has_line(text, "hapax_build_info{version=\"0.1.0\",revision=\"abc\",store=\"memory\"} 1");
	has_line(text, "hapax_keys{state=\"done\"} 40");
	has_line(text, "hapax_expiry_backlog_keys 5.0");
	has_line(text, "hapax_evictions_total 6");
	has_line(text, "hapax_store_bytes 4096.0");
	has_line(text, "hapax_store_max_bytes 8192.0");
	has_line(text, "hapax_hit_ratio 0.2");
	has_line(text, "idempotency_cache_size{status=\"total\"} 50");
	has_line(text, "idempotency_cache_size{status=\"expired\"} 5");
	has_line(text, "idempotency_cache_operations_total{operation=\"cleanup\"} 7");
	has_line(text, "hapax_config_reloads_total 2");
	has_line(text, "hapax_ready 1.0");
	has_line(text, "hapax_consumer_up{consumer=\"orders\"} 1");
	has_line(text, "hapax_consumer_paused{consumer=\"orders\",reason=\"store\"} 0");
	has_line(
		text,
		"hapax_consumer_messages_total{consumer=\"orders\",decision=\"acquired\"} 52");
	has_line(text, "hapax_consumer_messages_total{consumer=\"orders\",decision=\"replay\"} 10");
	has_line(text, "hapax_consumer_duplicates_total{consumer=\"orders\",cause=\"producer\"} 9");
	has_line(text, "hapax_consumer_runs_total{consumer=\"orders\",outcome=\"unstored\"} 2");
	has_line(text, "hapax_consumer_received_total{consumer=\"orders\"} 70");
	has_line(text, "hapax_consumer_lag_messages{consumer=\"orders\"} 12");
	has_line(text, "hapax_consumer_starts_total{consumer=\"q\\\"u\\\\o\\nte\"} 7");
	/* What is not known has no sample. */
	assert_null(strstr(text, "hapax_consumer_lag_messages{consumer=\"q"));
	has_line(text, "# TYPE process_cpu_seconds_total counter");
	has_line(text, "# TYPE process_resident_memory_bytes gauge");
	assert_null(strstr(text, "process_start_time_seconds 0.0\n"));
	assert_null(strstr(text, "process_open_fds 0.0\n"));
	hx_buf_done(&out);
	hx_metrics_free(metrics);
}

static void aliases_can_be_left_out(void **state)
{
	struct hx_metrics_options options = {.writers = 1, .no_aliases = true};
	struct hx_metrics *metrics;
	struct hapax_buf out;

	(void)state;
	assert_int_equal(hx_metrics_new(&options, &metrics, NULL), HAPAX_OK);
	lacks(render(metrics, NULL, HX_PROMTEXT_PLAIN, &out), "idempotency_");
	lacks((const char *)out.data, "duplicate_events_skipped");
	hx_buf_done(&out);
	hx_metrics_free(metrics);
}

/* No family twice, each with help; names as Prometheus wants them. */
static void families_are_well_formed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HX_METRIC_COUNT; i++) {
		const struct hx_family *family = &hx_families[i];

		assert_non_null(family->name);
		assert_true(strlen(family->help) > 10);
		assert_int_equal(family->kind == HX_PROMTEXT_HISTOGRAM, family->bound_count > 0);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(family->name, hx_families[k].name);
		for (size_t k = 1; k < family->bound_count; k++)
			assert_true(family->bounds_ns[k - 1] < family->bounds_ns[k]);
		for (size_t k = 0; k < HX_FIXED_LABELS_MAX; k++)
			for (size_t n = 0;
			     family->fixed[k].values != NULL && n < family->fixed[k].count; n++)
				assert_non_null(family->fixed[k].values[n]);
	}
	/* In the order of the enum that others pass. */
	for (int i = 0; i <= HAPAX_DECISION_FENCED; i++)
		assert_string_equal(
			hx_families[HX_METRIC_DECISIONS].fixed[1].values[i],
			hapax_decision_name((enum hapax_decision)i));
	for (int i = HAPAX_OP_CLAIM; i <= HAPAX_OP_EXPIRE; i++)
		assert_string_equal(
			hx_families[HX_METRIC_OPERATIONS].fixed[0].values[i - HAPAX_OP_CLAIM],
			hapax_op_type_name((enum hapax_op_type)i));
	for (int i = 0; i <= HAPAX_RUN_AMBIGUOUS; i++)
		assert_string_equal(
			hx_families[HX_METRIC_RUNS].fixed[0].values[i],
			hapax_run_outcome_name((enum hapax_run_outcome)i));
}

enum { WRITERS = 3 };

struct crowd {
	struct hx_metrics *metrics;
	uint64_t count;
	_Atomic size_t next;
	_Atomic size_t ended;
};

static void count_all(void *arg)
{
	struct crowd *crowd = arg;
	struct hx_cells *cells = hx_metrics_cells(crowd->metrics, crowd->next++);

	for (uint64_t i = 0; i < crowd->count; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "t%u", (unsigned)(i % 5));
		hx_metrics_decision(
			cells, HX_DOOR_GATEWAY,
			hx_metrics_scope(cells, hapax_bytes_from_text(name), HX_BYTES_LIT("g")),
			HAPAX_DECISION_ACQUIRED);
		hx_metrics_observe_ns(
			cells, HX_METRIC_CHECK_DURATION, 0, HX_DOOR_GATEWAY, (int64_t)i);
	}
	crowd->ended++;
}

/* Scrapes while others count: nothing is lost in the end, and no counter ever falls. */
static void scrapes_while_others_count(void **state)
{
	struct crowd crowd = {
		.metrics = new_metrics(WRITERS), .count = scale_count(5000000, 50000)};
	struct hx_thread threads[WRITERS];
	uint64_t sum = 0, before = 0;
	double begin = scale_seconds();

	(void)state;
	for (size_t i = 0; i < WRITERS; i++)
		assert_int_equal(
			hx_thread_start(&threads[i], count_all, &crowd, "count", NULL), HAPAX_OK);
	while (crowd.ended < WRITERS) {
		struct hapax_buf out;

		(void)render(crowd.metrics, NULL, HX_PROMTEXT_OPENMETRICS, &out);
		hx_buf_done(&out);
		sum = (uint64_t)hx_metrics_sum(crowd.metrics, HX_METRIC_DECISIONS, 1, 0);
		assert_true(sum >= before);
		before = sum;
	}
	for (size_t i = 0; i < WRITERS; i++)
		hx_thread_join(&threads[i]);
	sum = 0;
	for (uint32_t scope = 0; scope <= 3; scope++)
		sum += (uint64_t)hx_metrics_sum(crowd.metrics, HX_METRIC_DECISIONS, scope, 0);
	assert_int_equal(sum, WRITERS * crowd.count);
	scale_report("metrics: counted during scrapes", sum, scale_seconds() - begin, true);
	hx_metrics_free(crowd.metrics);
}

static void promtool_finds_nothing_to_say(void **state)
{
	struct hx_metrics *metrics = metrics_sample_new();
	struct hx_metrics_facts facts = metrics_sample_facts();
	struct hapax_buf out;
	FILE *tool;

	(void)state;
	/* NOLINTNEXTLINE(cert-env33-c): a fixed command line, of a test */
	if (system("command -v promtool >/dev/null 2>&1") != 0) {
		print_message("# promtool is not installed (Debian: prometheus)\n");
		hx_metrics_free(metrics);
		skip();
	}
	(void)render(metrics, &facts, HX_PROMTEXT_PLAIN, &out);
	/* NOLINTNEXTLINE(cert-env33-c): the same */
	tool = popen("promtool check metrics >&2", "w");
	assert_non_null(tool);
	assert_int_equal(fwrite(out.data, 1, out.size - 1, tool), out.size - 1);
	assert_int_equal(pclose(tool), 0);
	hx_buf_done(&out);
	hx_metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_writers_count_is_added_up),
		cmocka_unit_test(histograms_have_their_buckets),
		cmocka_unit_test(labels_are_bounded),
		cmocka_unit_test(without_memory_it_is_not_counted_but_told),
		cmocka_unit_test(what_is_not_known_of_the_build_is_left_out),
		cmocka_unit_test(facts_are_told),
		cmocka_unit_test(aliases_can_be_left_out),
		cmocka_unit_test(families_are_well_formed),
		cmocka_unit_test(scrapes_while_others_count),
		cmocka_unit_test(promtool_finds_nothing_to_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
