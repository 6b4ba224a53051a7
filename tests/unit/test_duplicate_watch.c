/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of duplicates in a scope: when it is told, and when not (E12, C8).
 */
#include "observe/duplicate_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/stream.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"

static void decide(
	struct hx_metrics *metrics, const char *tenant, enum hapax_decision decision,
	unsigned count)
{
	/* Two writers, as two loops are. */
	for (unsigned i = 0; i < count; i++) {
		struct hx_cells *cells = hx_metrics_cells(metrics, i % 2);

		hx_metrics_decision(
			cells, HX_DOOR_GATEWAY,
			hx_metrics_scope(cells, hapax_bytes_from_text(tenant), HX_BYTES_LIT("g")),
			decision);
	}
}

static void many_duplicates_are_told_once(void **state)
{
	struct hx_metrics_options options = {.writers = 2, .scopes_max = 2};
	struct hx_logger_options log_options = {.level = HX_LOGGER_INFO};
	struct hx_duplicate_watch *watch;
	struct hx_metrics *metrics;
	struct hx_logger *log;
	char text[4096];
	int ends[2];
	ssize_t size;

	(void)state;
	assert_int_equal(hx_stream_pipe(ends, 0), 0);
	assert_int_equal(hx_metrics_new(&options, &metrics, NULL), HAPAX_OK);
	assert_int_equal(hx_logger_new(ends[1], &log_options, &log, NULL), HAPAX_OK);
	assert_int_equal(hx_duplicate_watch_new(metrics, &watch, NULL), HAPAX_OK);

	decide(metrics, "quiet", HAPAX_DECISION_ACQUIRED, 80);
	decide(metrics, "quiet", HAPAX_DECISION_REPLAY, 20);
	decide(metrics, "loud", HAPAX_DECISION_ACQUIRED, 79);
	decide(metrics, "loud", HAPAX_DECISION_REPLAY, 21);
	decide(metrics, "loud", HAPAX_DECISION_IN_PROGRESS, 1000);
	decide(metrics, "beyond the limit", HAPAX_DECISION_REPLAY, 99);
	assert_int_equal(hx_duplicate_watch_look(watch, log, 20), 1);
	/* Nothing new, nothing to say. */
	assert_int_equal(hx_duplicate_watch_look(watch, log, 20), 0);
	/* Too few to judge are kept until there are enough. */
	decide(metrics, "beyond the limit", HAPAX_DECISION_REPLAY, 1);
	assert_int_equal(hx_duplicate_watch_look(watch, log, 20), 1);
	decide(metrics, "loud", HAPAX_DECISION_REPLAY, 1000);
	assert_int_equal(hx_duplicate_watch_look(watch, log, 0), 0);

	assert_true(hx_logger_flush(log, hx_clock_mono_ns() + INT64_C(60000000000)));
	size = hx_stream_read(ends[0], text, sizeof(text) - 1);
	assert_true(size > 0);
	text[size] = '\0';
	assert_non_null(strstr(
		text,
		"\"msg\":\"high duplicate rate detected\",\"queue\":\"loud/g\",\"hit_rate\":21,"
		"\"threshold\":20,\"suggestion\":\""));
	assert_non_null(strstr(text, "\"queue\":\"other/other\",\"hit_rate\":100,"));
	assert_null(strstr(text, "quiet"));
	hx_duplicate_watch_free(watch);
	hx_logger_close(log, 60000);
	hx_metrics_free(metrics);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
}

static void without_memory_nobody_watches(void **state)
{
	struct hx_metrics_options options = {.writers = 1};
	struct hx_duplicate_watch *watch;
	struct hx_metrics *metrics;

	(void)state;
	assert_int_equal(hx_metrics_new(&options, &metrics, NULL), HAPAX_OK);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		hx_alloc_fail_at(nth, 0);
		assert_int_equal(
			hx_duplicate_watch_new(metrics, &watch, NULL), HAPAX_ERR_NO_MEMORY);
	}
	hx_alloc_fail_at(0, 0);
	hx_duplicate_watch_free(NULL);
	hx_metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_duplicates_are_told_once),
		cmocka_unit_test(without_memory_nobody_watches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
