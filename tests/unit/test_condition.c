/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of conditions: one line when each begins and one when it has ended, flapping or not
 * (E12, E13).
 */
#include "observe/condition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/stream.h"
#include "observe/logger/logger.h"
#include "support/virtual_clock.h"

/* 2024-01-15T10:30:00.000Z */
#define NOW_MS INT64_C(1705314600000)

#define BEGUN "\"ts\":\"2024-01-15T10:30:00.000Z\",\"msg\":\"condition began\",\"condition\":"
#define ENDED "\"msg\":\"condition ended\",\"condition\":"

static struct hx_virtual_clock virtual_clock;
static struct hx_conditions conditions;
static struct hx_logger *logger;
static int ends[2];

static int init(void **state)
{
	struct hx_logger_options options = {.level = HX_LOGGER_ERROR, .rate = 1};

	(void)state;
	hx_virtual_clock_init(&virtual_clock, NOW_MS);
	options.clock = hx_virtual_clock_clock(&virtual_clock);
	assert_int_equal(hx_stream_pipe(ends, 0), 0);
	assert_int_equal(hx_logger_new(ends[1], &options, &logger, NULL), HAPAX_OK);
	memset(&conditions, 0, sizeof(conditions));
	hx_conditions_init(&conditions, logger, options.clock);
	return 0;
}

static int done(void **state)
{
	(void)state;
	hx_logger_close(logger, 60000);
	hx_stream_close(ends[0]);
	hx_stream_close(ends[1]);
	return 0;
}

/* What was logged since the last time. */
static const char *lines(void)
{
	static char text[64 * 1024];
	ssize_t size;

	assert_true(hx_logger_flush(logger, hx_clock_mono_ns() + 60 * HX_NS_PER_S));
	/* So that there is something to read, always. */
	assert_int_equal(hx_stream_write(ends[1], "", 1), 1);
	size = hx_stream_read(ends[0], text, sizeof(text));
	assert_true(size >= 1);
	assert_int_equal(text[size - 1], '\0');
	return text;
}

static void pass(int64_t ms)
{
	hx_virtual_clock_advance(&virtual_clock, ms);
	hx_conditions_tick(&conditions);
}

static size_t open_count(void)
{
	struct hx_condition_row rows[HX_CONDITIONS_MAX];

	return hx_conditions_list(&conditions, rows);
}

/* Neither the level nor the rate of the log suppresses them. */
static void a_line_when_it_begins_and_one_when_it_has_ended(void **state)
{
	(void)state;
	hx_condition_begin(&conditions, HX_CONDITION_DISK_FULL, NULL, "no space left");
	hx_condition_begin(&conditions, HX_CONDITION_DISK_FULL, "", "still none");
	hx_condition_set(&conditions, HX_CONDITION_UPSTREAM_DOWN, "a:1", true, "refused");
	hx_condition_set(&conditions, HX_CONDITION_CLOCK_UNSYNCED, NULL, true, "no NTP");
	assert_string_equal(
		lines(),
		"{\"level\":\"error\"," BEGUN "\"disk_full\",\"severity\":\"critical\","
		"\"reason\":\"no space left\"}\n"
		"{\"level\":\"warn\"," BEGUN "\"upstream_down\",\"subject\":\"a:1\","
		"\"severity\":\"warning\",\"reason\":\"refused\"}\n"
		"{\"level\":\"info\"," BEGUN "\"clock_unsynchronized\",\"severity\":\"info\","
		"\"reason\":\"no NTP\"}\n");
	pass(3000);
	hx_condition_end(&conditions, HX_CONDITION_DISK_FULL, NULL);
	hx_condition_end(&conditions, HX_CONDITION_UPSTREAM_DOWN, "b:1");
	pass(HX_CONDITION_HOLD_MS - 1);
	assert_string_equal(lines(), "");
	assert_int_equal(open_count(), 3);
	pass(1);
	assert_string_equal(
		lines(),
		"{\"level\":\"info\",\"ts\":\"2024-01-15T10:30:08.000Z\"," ENDED
		"\"disk_full\",\"lasted\":\"3s\"}\n");
	assert_int_equal(open_count(), 2);
	/* The next one is news again. */
	hx_condition_begin(&conditions, HX_CONDITION_DISK_FULL, NULL, "again");
	assert_non_null(strstr(lines(), "\"reason\":\"again\""));
}

/* However often it comes and goes, it is one condition until it stays away. */
static void flapping_is_two_lines(void **state)
{
	struct hx_condition_row rows[HX_CONDITIONS_MAX];

	(void)state;
	for (int i = 0; i < 10; i++) {
		hx_condition_begin(&conditions, HX_CONDITION_STORE_DOWN, NULL, "away");
		pass(HX_CONDITION_HOLD_MS + 1000);
		hx_condition_end(&conditions, HX_CONDITION_STORE_DOWN, NULL);
		hx_condition_end(&conditions, HX_CONDITION_STORE_DOWN, NULL);
		pass(HX_CONDITION_HOLD_MS - 1);
	}
	assert_int_equal(hx_conditions_list(&conditions, rows), 1);
	assert_int_equal(rows[0].since_ms, NOW_MS);
	assert_int_equal(rows[0].times, 10);
	pass(1);
	pass(60000);
	assert_string_equal(
		lines(),
		"{\"level\":\"error\"," BEGUN "\"store_down\",\"severity\":\"critical\","
		"\"reason\":\"away\"}\n"
		"{\"level\":\"info\",\"ts\":\"2024-01-15T10:31:49.991Z\"," ENDED
		"\"store_down\",\"lasted\":\"1m44s\",\"times\":10}\n");
	assert_int_equal(open_count(), 0);
}

static void rows_are_in_the_order_of_kinds_with_the_last_reason(void **state)
{
	struct hx_condition_row rows[HX_CONDITIONS_MAX];

	(void)state;
	hx_condition_begin(&conditions, HX_CONDITION_UPSTREAM_DOWN, "b:2", "refused");
	pass(1000);
	hx_condition_begin(&conditions, HX_CONDITION_UPSTREAM_DOWN, "a:1", "refused");
	hx_condition_begin(&conditions, HX_CONDITION_STORE_DOWN, NULL, "away");
	hx_condition_begin(&conditions, HX_CONDITION_UPSTREAM_DOWN, "b:2", "reset");
	assert_int_equal(hx_conditions_list(&conditions, rows), 3);
	assert_int_equal(rows[0].condition, HX_CONDITION_STORE_DOWN);
	assert_string_equal(rows[1].subject, "b:2");
	assert_string_equal(rows[1].reason, "reset");
	assert_int_equal(rows[1].since_ms, NOW_MS);
	assert_string_equal(rows[2].subject, "a:1");
	hx_condition_end_all(&conditions, HX_CONDITION_UPSTREAM_DOWN);
	pass(HX_CONDITION_HOLD_MS);
	assert_int_equal(hx_conditions_list(&conditions, rows), 1);
}

/* A subject that does not fit is the same one each time; more than fit are counted. */
static void there_are_limits(void **state)
{
	char subject[2 * HX_CONDITION_SUBJECT_SIZE];

	(void)state;
	memset(subject, 's', sizeof(subject) - 1);
	subject[sizeof(subject) - 1] = '\0';
	for (int i = 0; i < 2; i++)
		hx_condition_begin(&conditions, HX_CONDITION_UPSTREAM_SLOW, subject, subject);
	assert_int_equal(open_count(), 1);
	for (int i = 0; i < HX_CONDITIONS_MAX; i++) {
		(void)snprintf(subject, sizeof(subject), "%d", i);
		hx_condition_begin(&conditions, HX_CONDITION_UPSTREAM_SLOW, subject, "late");
	}
	assert_int_equal(open_count(), HX_CONDITIONS_MAX);
	assert_int_equal(conditions.left_off, 1);
	hx_condition_end_all(&conditions, HX_CONDITION_UPSTREAM_SLOW);
	pass(HX_CONDITION_HOLD_MS);
	assert_int_equal(open_count(), 0);
}

static void every_kind_has_a_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < HX_CONDITION_COUNT; i++) {
		assert_non_null(hx_condition_kinds[i].name);
		assert_non_null(hx_condition_kinds[i].part);
	}
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, init, done)
	const struct CMUnitTest tests[] = {
		CASE(a_line_when_it_begins_and_one_when_it_has_ended),
		CASE(flapping_is_two_lines),
		CASE(rows_are_in_the_order_of_kinds_with_the_last_reason),
		CASE(there_are_limits),
		CASE(every_kind_has_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
