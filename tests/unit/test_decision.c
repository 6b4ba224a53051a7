/* SPDX-License-Identifier: Apache-2.0 */
/* One report, all listeners: figures (A9, B11, D11), lines (A10, E12), the feed; and rounds. */
#include "observe/decision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/stream.h"
#include "base/time.h"
#include "observe/feed.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "support/virtual_clock.h"

enum { RATE = 3 };

static struct hx_virtual_clock clock_of_all;
static struct hx_metrics *metrics;
static struct hx_observer observer;
static int ends[2];
static char text[64 * 1024];

static int begin(void **state)
{
	struct hx_logger_options options = {.level = HX_LOGGER_DEBUG, .rate = RATE};

	(void)state;
	hx_virtual_clock_init(&clock_of_all, INT64_C(1705314600000));
	options.clock = hx_virtual_clock_clock(&clock_of_all);
	memset(&observer, 0, sizeof(observer));
	observer.clock = options.clock;
	assert_int_equal(hx_stream_pipe(ends, 0), 0);
	assert_int_equal(hx_logger_new(ends[1], &options, &observer.log, NULL), HAPAX_OK);
	assert_int_equal(hx_feed_new(1, &observer.feed, NULL), HAPAX_OK);
	assert_int_equal(
		hx_metrics_new(&(struct hx_metrics_options){.types_max = 2}, &metrics, NULL),
		HAPAX_OK);
	observer.cells = hx_metrics_cells(metrics, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hx_metrics_free(metrics);
	hx_feed_free(observer.feed);
	hx_logger_close(observer.log, 60000);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
	return 0;
}

/* The lines since the last call. */
static const char *lines(void)
{
	ssize_t size;

	assert_true(hx_logger_flush(observer.log, hx_clock_mono_ns() + 60 * HX_NS_PER_S));
	assert_int_equal(hx_stream_write(ends[1], "", 1), 1);
	size = hx_stream_read(ends[0], text, sizeof(text));
	assert_true(size >= 1);
	return text;
}

static void has(const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' is not in: %s", part, text);
}

static void count_note(const struct hx_feed_note *note, void *context)
{
	size_t *count = context;

	assert_true(hx_bytes_equal(note->key, HX_BYTES_LIT("k")));
	/* That of an original is not shown as one of this delivery. */
	assert_int_equal(note->token, note->decision == HAPAX_DECISION_ACQUIRED ? 7 : 0);
	(*count)++;
}

static struct hx_decision make(enum hx_door door, enum hapax_decision decision, const char *type)
{
	return (struct hx_decision){
		.door = door,
		.consumer = door == HX_DOOR_CONSUMER ? "orders" : NULL,
		.tenant = HX_BYTES_LIT("t"),
		.group = HX_BYTES_LIT("g"),
		.key = HX_BYTES_LIT("k"),
		.event = {.id = HX_BYTES_LIT("e-1"), .type = hapax_bytes_from_text(type)},
		.decision = decision,
		.took_ns = 1000,
		.ttl_ms = 60000};
}

static int64_t events(const char *type, enum hx_event_outcome outcome)
{
	return hx_metrics_sum(
		metrics, HX_METRIC_EVENTS,
		hx_metrics_event(observer.cells, hapax_bytes_from_text(type), HX_BYTES_LIT("g")),
		outcome);
}

static void every_door_and_consumer_feeds_the_same_figures(void **state)
{
	static const struct hx_decision_end ok = {.outcome = HAPAX_RUN_OK, .took_ns = 5};
	static const struct hx_decision_end failed = {.outcome = HAPAX_RUN_TRANSIENT, .took_ns = 5};
	static const struct hx_decision_end unstored = {.status = HAPAX_ERR_FENCED, .took_ns = 5};
	size_t notes = 0;

	(void)state;
	for (int door = 0; door < HX_DECIDER_COUNT; door++) {
		struct hx_decision run = make((enum hx_door)door, HAPAX_DECISION_ACQUIRED, "a");
		struct hx_decision replay = make((enum hx_door)door, HAPAX_DECISION_REPLAY, "a");
		struct hx_decision held = make((enum hx_door)door, HAPAX_DECISION_IN_PROGRESS, "a");
		struct hx_decision other = make((enum hx_door)door, HAPAX_DECISION_MISMATCH, "a");

		run.token = replay.token = 7;
		hx_decision_tell(&observer, &run);
		hx_decision_end(&observer, &run, &ok);
		hx_decision_end(&observer, &run, &failed);
		hx_decision_end(&observer, &run, &unstored);
		hx_decision_tell(&observer, &replay);
		hx_decision_tell(&observer, &held);
		hx_decision_tell(&observer, &other);
		run.status = HAPAX_ERR_UNAVAILABLE;
		hx_decision_tell(&observer, &run);
		run.status = HAPAX_OK;
		run.flags = HX_DECISION_MARKED;
		hx_decision_tell(&observer, &run);
	}
	assert_int_equal(events("a", HX_EVENT_PROCESSED), 2 * HX_DECIDER_COUNT);
	/* What a consumer finds in progress it asks for again. */
	assert_int_equal(events("a", HX_EVENT_DUPLICATE), 2 * HX_DECIDER_COUNT - 1);
	assert_int_equal(events("a", HX_EVENT_FAILED), 3 * HX_DECIDER_COUNT);
	assert_int_equal(
		hx_metrics_sum(
			metrics, HX_METRIC_DUPLICATES,
			hx_metrics_type(observer.cells, HX_BYTES_LIT("a")), 0),
		HX_DECIDER_COUNT);
	assert_int_equal(
		hx_metrics_sum(
			metrics, HX_METRIC_CHECK_ERRORS, 0,
			HX_DOOR_CONSUMER * HX_CHECK_ERROR_COUNT + HX_CHECK_ERROR_CHECK_FAILED),
		1);
	/* Duplicates always, and refused ones. */
	assert_int_equal(hx_feed_take(observer.feed, count_note, &notes), 0);
	assert_int_equal(notes, 3 * HX_DECIDER_COUNT);
}

static void types_beyond_the_limit_are_other(void **state)
{
	static const char *const types[] = {"a", "b", "c", "d"};

	(void)state;
	for (size_t i = 0; i < HX_COUNT(types); i++) {
		struct hx_decision decision =
			make(HX_DOOR_CONSUMER, HAPAX_DECISION_REPLAY, types[i]);

		hx_decision_tell(&observer, &decision);
	}
	assert_int_equal(events("a", HX_EVENT_DUPLICATE), 1);
	assert_int_equal(events("c", HX_EVENT_DUPLICATE), 2);
	assert_int_equal(hx_metrics_sum(metrics, HX_METRIC_EVENTS, 0, HX_EVENT_DUPLICATE), 2);
}

/* A debug line for each step of a run (A10). */
static void a_run_is_logged_from_its_beginning_to_its_end(void **state)
{
	struct hx_decision decision = make(HX_DOOR_CONSUMER, HAPAX_DECISION_ACQUIRED, "a");
	struct hx_decision_end ended = {.outcome = HAPAX_RUN_OK, .took_ns = 1500 * HX_NS_PER_MS};

	(void)state;
	decision.attempt = 2;
	hx_decision_tell(&observer, &decision);
	hx_decision_end(&observer, &decision, &ended);
	ended.outcome = HAPAX_RUN_TRANSIENT;
	ended.why = HX_BYTES_LIT("status 500");
	hx_decision_end(&observer, &decision, &ended);
	(void)lines();
	has("\"level\":\"debug\"");
	has("\"msg\":\"job received\",\"idempotency_key\":\"k\",\"job_id\":\"e-1\",\"queue\":\"t/g\"");
	has("\"consumer\":\"orders\",\"decision\":\"acquired\",\"attempt\":2}");
	has("\"msg\":\"job succeeded\"");
	has("\"outcome\":\"ok\",\"attempt\":2,\"took\":\"1s500ms\"}");
	has("\"msg\":\"job failed\"");
	has("\"outcome\":\"transient\",\"attempt\":2,\"took\":\"1s500ms\",\"error\":\"status 500\"}");
}

/* The client names the event when it claims; the record tells it at the end. */
static void the_record_names_the_event_of_an_end(void **state)
{
	unsigned char packed[HAPAX_CAUSE_SIZE_MAX];
	const struct hapax_cause event = {.id = HX_BYTES_LIT("e-1"), .type = HX_BYTES_LIT("a")};
	struct hapax_record record = {.cause = hapax_cause_write(&event, packed)};
	struct hapax_op op = {
		.type = HAPAX_OP_COMPLETE,
		.record = &record,
		.attempt = 1,
		.outcome = HAPAX_OUTCOME_APPLIED};
	struct hx_decision_end ended;
	struct hx_decision told;
	enum hapax_decision decision;

	(void)state;
	assert_int_equal(hx_decision_sort_op(&op, &decision, &ended), HX_OP_ENDED);
	hx_decision_read_op(&op, HX_DOOR_ADMIN, HAPAX_DECISION_ACQUIRED, &told);
	assert_true(hx_bytes_equal(told.event.id, event.id));
	assert_true(hx_bytes_equal(told.event.type, event.type));
	/* Another operation of its group failed: nothing has ended. */
	op.outcome = HAPAX_OUTCOME_SKIPPED;
	assert_int_equal(hx_decision_sort_op(&op, &decision, &ended), HX_OP_OTHER);
}

/* In a round the log is asked until it refuses; the rest is counted at once. */
static void lines_above_the_rate_are_counted_by_round(void **state)
{
	struct hx_decision decision = make(HX_DOOR_RESP, HAPAX_DECISION_REPLAY, "");
	size_t asked = 0;

	(void)state;
	hx_observer_begin_round(&observer);
	for (int i = 0; i < 100; i++) {
		unsigned wants = hx_observer_wants(&observer, decision.decision);

		asked += (wants & HX_OBSERVER_LOG) != 0;
		hx_decision_note(&observer, wants, &decision);
	}
	hx_observer_end_round(&observer);
	assert_int_equal(asked, RATE + 1);
	assert_int_equal(hx_logger_suppressed(observer.log), 100 - RATE);
	hx_virtual_clock_advance(&clock_of_all, 2000);
	hx_logger_tick(observer.log);
	(void)lines();
	has("\"suppressed\":97");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_door_and_consumer_feeds_the_same_figures, begin, end),
		cmocka_unit_test_setup_teardown(types_beyond_the_limit_are_other, begin, end),
		cmocka_unit_test_setup_teardown(
			a_run_is_logged_from_its_beginning_to_its_end, begin, end),
		cmocka_unit_test(the_record_names_the_event_of_an_end),
		cmocka_unit_test_setup_teardown(
			lines_above_the_rate_are_counted_by_round, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
