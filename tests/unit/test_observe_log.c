/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines: both forms to the byte, E12's and A10's fields, hashed keys, limits, and a
 * reader that does not read.
 */
#include "observe/logger/logger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/stream.h"
#include "base/thread.h"
#include "observe/decision.h"
#include "observe/logger/logger_format.h"
#include "observe/logger/logger_line.h"
#include "observe/logger/logger_rate.h"
#include "support/scale.h"
#include "support/virtual_clock.h"
#include "wire/json/json.h"

#define SECOND_NS INT64_C(1000000000)

/* 2024-01-15T10:30:00.000Z, as in document E. */
#define NOW_MS INT64_C(1705314600000)

static int64_t soon_ns(void)
{
	return hx_clock_mono_ns() + 60 * SECOND_NS;
}

/* A log whose lines come out of a pipe. */
struct pipe_log {
	struct hx_virtual_clock clock;
	struct hx_logger_options options;
	struct hx_logger *log;
	int ends[2];
	char text[256 * 1024];
};

static void pipe_open(struct pipe_log *pipe, struct hx_logger_options options)
{
	hx_virtual_clock_init(&pipe->clock, NOW_MS);
	options.clock = hx_virtual_clock_clock(&pipe->clock);
	pipe->options = options;
	assert_int_equal(hx_stream_pipe(pipe->ends, 0), 0);
	assert_int_equal(hx_logger_new(pipe->ends[1], &options, &pipe->log, NULL), HAPAX_OK);
}

/* What was written since the last time, as text. */
static const char *pipe_read(struct pipe_log *pipe)
{
	ssize_t size;

	assert_true(hx_logger_flush(pipe->log, soon_ns()));
	/* So that there is something to read, always. */
	assert_int_equal(hx_stream_write(pipe->ends[1], "", 1), 1);
	size = hx_stream_read(pipe->ends[0], pipe->text, sizeof(pipe->text));
	assert_true(size >= 1);
	assert_int_equal(pipe->text[size - 1], '\0');
	return pipe->text;
}

static void pipe_close(struct pipe_log *pipe)
{
	hx_logger_close(pipe->log, 60000);
	hx_stream_close(pipe->ends[0]);
	hx_stream_close(pipe->ends[1]);
}

static void both_forms_to_the_byte(void **state)
{
	static struct pipe_log pipe;
	const struct hx_logger_field fields[] = {
		HX_LOGGER_BYTES("bytes", hx_bytes("a\"b\\\n\xff\xc3\xa9", 8)),
		HX_LOGGER_TEXT("plain", "word"),
		HX_LOGGER_TEXT("empty", ""),
		HX_LOGGER_TEXT(NULL, "left out"),
		HX_LOGGER_KEY("key", HX_BYTES_LIT("order-17")),
		HX_LOGGER_SIGNED("signed", INT64_MIN),
		HX_LOGGER_UNSIGNED("unsigned", UINT64_MAX),
		HX_LOGGER_DURATION("duration", 83640000),
		HX_LOGGER_TIME("time", 0),
		HX_LOGGER_SHARE("share", 45.2),
		HX_LOGGER_BOOLEAN("yes", true),
	};
	enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

	(void)state;
	pipe_open(&pipe, (struct hx_logger_options){.level = HX_LOGGER_INFO});
	hx_logger(pipe.log, HX_LOGGER_DEBUG, "not made", NULL, 0);
	assert_false(hx_logger_takes(pipe.log, HX_LOGGER_DEBUG));
	hx_logger(pipe.log, HX_LOGGER_WARN, "it happened", fields, FIELDS);
	assert_string_equal(
		pipe_read(&pipe),
		"{\"level\":\"warn\",\"ts\":\"2024-01-15T10:30:00.000Z\",\"msg\":\"it happened\","
		"\"bytes\":\"a\\\"b\\\\\\n\xef\xbf\xbd\xc3\xa9\",\"plain\":\"word\",\"empty\":\"\","
		"\"key\":\"order-17\",\"signed\":-9223372036854775808,"
		"\"unsigned\":18446744073709551615,\"duration\":\"23h14m\","
		"\"time\":\"1970-01-01T00:00:00.000Z\",\"share\":45.2,\"yes\":true}\n");
	pipe.options.format = HX_LOGGER_LOGFMT;
	pipe.options.keys = HX_LOGGER_KEYS_HASH;
	pipe.options.has_priority = true;
	hx_logger_configure(pipe.log, &pipe.options);
	hx_logger(pipe.log, HX_LOGGER_ERROR, "it happened", fields, FIELDS);
	assert_string_equal(
		pipe_read(&pipe),
		"<3>level=error ts=2024-01-15T10:30:00.000Z msg=\"it happened\" "
		"bytes=\"a\\\"b\\\\\\n\xef\xbf\xbd\xc3\xa9\" plain=word empty=\"\" "
		"key=sha256:72a90ea3da8b5dd0 signed=-9223372036854775808 "
		"unsigned=18446744073709551615 duration=23h14m "
		"time=1970-01-01T00:00:00.000Z share=45.2 yes=true\n");
	pipe.options.keys = HX_LOGGER_KEYS_NONE;
	hx_logger_configure(pipe.log, &pipe.options);
	hx_logger(pipe.log, HX_LOGGER_INFO, "m", fields + 4, 1);
	assert_string_equal(pipe_read(&pipe), "<6>level=info ts=2024-01-15T10:30:00.000Z msg=m\n");
	hx_logger(NULL, HX_LOGGER_ERROR, "not logged", NULL, 0);
	pipe_close(&pipe);
}

/* E12 and A10: these words and fields are promised. */
static void promised_lines(void **state)
{
	static struct pipe_log pipe;
	struct hx_decision decision = {
		.door = HX_DOOR_GATEWAY,
		.route = "orders",
		.tenant = HX_BYTES_LIT("acme"),
		.group = HX_BYTES_LIT("payments"),
		.key = HX_BYTES_LIT("payment_hash_abc123"),
		.event =
			{.id = HX_BYTES_LIT("job_456"),
			 .type = HX_BYTES_LIT("payment.made"),
			 .source = HX_BYTES_LIT("/shop")},
		.decision = HAPAX_DECISION_REPLAY,
		.original =
			{.id = HX_BYTES_LIT("job_123"),
			 .type = HX_BYTES_LIT("payment.asked"),
			 .source = HX_BYTES_LIT("/till"),
			 .time_ms = NOW_MS - 3600000},
		.token = 7,
		.first_seen_ms = NOW_MS - 2760000,
		.expires_ms = NOW_MS + 83640000};

	(void)state;
	pipe_open(&pipe, (struct hx_logger_options){.level = HX_LOGGER_INFO});
	assert_true(hx_logger_duplicate(pipe.log, &decision, NOW_MS));
	assert_string_equal(
		pipe_read(&pipe),
		"{\"level\":\"info\",\"ts\":\"2024-01-15T10:30:00.000Z\","
		"\"msg\":\"duplicate job blocked\",\"idempotency_key\":\"payment_hash_abc123\","
		"\"job_id\":\"job_456\",\"queue\":\"acme/payments\",\"door\":\"gateway\","
		"\"event_id\":\"job_456\",\"event_type\":\"payment.made\","
		"\"event_source\":\"/shop\",\"route\":\"orders\",\"decision\":\"replay\","
		"\"original_job_id\":\"job_123\",\"original_type\":\"payment.asked\","
		"\"original_source\":\"/till\","
		"\"original_time\":\"2024-01-15T09:30:00.000Z\",\"original_token\":7,"
		"\"ttl_remaining\":\"23h14m\",\"first_seen\":\"2024-01-15T09:44:00.000Z\"}\n");
	decision = (struct hx_decision){
		.door = HX_DOOR_RESP,
		.tenant = HX_BYTES_LIT("t"),
		.group = HX_BYTES_LIT("g"),
		.decision = HAPAX_DECISION_IN_PROGRESS,
		.expires_ms = HAPAX_TIME_NEVER};
	assert_true(hx_logger_duplicate(pipe.log, &decision, NOW_MS));
	assert_string_equal(
		pipe_read(&pipe),
		"{\"level\":\"info\",\"ts\":\"2024-01-15T10:30:00.000Z\","
		"\"msg\":\"duplicate job blocked\",\"queue\":\"t/g\",\"door\":\"resp\","
		"\"decision\":\"in_progress\",\"ttl_remaining\":\"forever\"}\n");
	hx_logger_duplicate_rate(pipe.log, HX_BYTES_LIT("t"), HX_BYTES_LIT("webhooks"), 45.2, 20);
	assert_string_equal(
		pipe_read(&pipe),
		"{\"level\":\"warn\",\"ts\":\"2024-01-15T10:30:00.000Z\","
		"\"msg\":\"high duplicate rate detected\",\"queue\":\"t/webhooks\",\"hit_rate\":45.2,"
		"\"threshold\":20,\"suggestion\":\"review how often the sender retries\"}\n");
	hx_logger_cleanup(pipe.log, 100, 30, 70, 1500);
	assert_string_equal(
		pipe_read(&pipe),
		"{\"level\":\"info\",\"ts\":\"2024-01-15T10:30:00.000Z\","
		"\"msg\":\"cleanup finished\",\"total\":100,\"deleted\":30,\"remaining\":70,"
		"\"took\":\"1s500ms\"}\n");
	hx_logger_cleanup(pipe.log, 100, 0, 100, 1);
	assert_string_equal(pipe_read(&pipe), "");
	pipe_close(&pipe);
}

static size_t count_lines(const char *text, const char *part)
{
	size_t count = 0;

	while ((text = strstr(text, part)) != NULL) {
		count++;
		text++;
	}
	return count;
}

static void a_message_has_its_rate(void **state)
{
	static const char flood[] = "flood";
	static struct pipe_log pipe;
	const char *text;

	(void)state;
	pipe_open(&pipe, (struct hx_logger_options){.rate = 3});
	for (int i = 0; i < 100; i++)
		hx_logger(pipe.log, HX_LOGGER_INFO, flood, NULL, 0);
	hx_logger(pipe.log, HX_LOGGER_INFO, "another", NULL, 0);
	text = pipe_read(&pipe);
	assert_int_equal(count_lines(text, "\"msg\":\"flood\""), 3);
	assert_int_equal(count_lines(text, "\"msg\":\"another\""), 1);
	assert_null(strstr(text, "suppressed"));
	assert_int_equal(hx_logger_suppressed(pipe.log), 97);
	hx_virtual_clock_advance(&pipe.clock, 999);
	hx_logger(pipe.log, HX_LOGGER_INFO, flood, NULL, 0);
	hx_logger_tick(pipe.log);
	assert_string_equal(pipe_read(&pipe), "");
	/* The next second: the first line tells. */
	hx_virtual_clock_advance(&pipe.clock, 1);
	hx_logger(pipe.log, HX_LOGGER_INFO, flood, NULL, 0);
	assert_non_null(strstr(pipe_read(&pipe), "\"msg\":\"flood\",\"suppressed\":98}"));
	for (int i = 0; i < 10; i++)
		hx_logger(pipe.log, HX_LOGGER_INFO, flood, NULL, 0);
	(void)pipe_read(&pipe);
	/* And if no line follows, a tick does. */
	hx_virtual_clock_advance(&pipe.clock, 1000);
	hx_logger_tick(pipe.log);
	assert_non_null(
		strstr(pipe_read(&pipe),
		       "\"msg\":\"lines suppressed\",\"of\":\"flood\",\"suppressed\":8}"));
	hx_logger_tick(pipe.log);
	assert_string_equal(pipe_read(&pipe), "");
	pipe_close(&pipe);
}

static void what_somebody_has_to_see_has_none(void **state)
{
	static struct pipe_log pipe;

	(void)state;
	pipe_open(&pipe, (struct hx_logger_options){.rate = 3, .level = HX_LOGGER_ERROR});
	for (int i = 0; i < 100; i++)
		hx_logger_always(pipe.log, HX_LOGGER_INFO, "audit", NULL, 0);
	hx_logger(pipe.log, HX_LOGGER_INFO, "audit", NULL, 0);
	assert_int_equal(count_lines(pipe_read(&pipe), "\"msg\":\"audit\""), 100);
	assert_int_equal(hx_logger_suppressed(pipe.log), 0);
	pipe_close(&pipe);
}

static void more_messages_than_places_share_one(void **state)
{
	static char messages[HX_LOGGER_RATE_MESSAGES_MAX + 10][8];
	static struct hx_logger_rate rate;
	uint64_t suppressed;
	const char *msg;

	(void)state;
	for (size_t i = 0; i < HX_LOGGER_RATE_MESSAGES_MAX + 10; i++) {
		bool is_shared = i >= HX_LOGGER_RATE_MESSAGES_MAX;

		assert_int_equal(
			hx_logger_rate_take(&rate, messages[i], 1, 0, &suppressed), !is_shared);
	}
	assert_false(hx_logger_rate_next(&rate, 999, &msg, &suppressed));
	assert_true(hx_logger_rate_next(&rate, 1000, &msg, &suppressed));
	assert_string_equal(msg, "other");
	assert_int_equal(suppressed, 10);
	assert_true(hx_logger_rate_take(&rate, "x", 0, 0, &suppressed));
}

static void assert_json(const char *text, size_t size)
{
	struct hx_json json;
	struct hx_json_token token;
	struct hapax_error err;

	assert_int_equal(hx_json_init(&json, hx_bytes(text, size), NULL, 0, NULL), HAPAX_OK);
	do {
		if (hx_json_next(&json, &token, &err) != HAPAX_OK)
			fail_msg("%s: %.*s", err.message, (int)size, text);
	} while (token.type != HX_JSON_END);
}

/* Whatever comes in, a line is JSON, ends with LF, and is no longer than it may be. */
static void long_lines_are_cut_and_still_json(void **state)
{
	static const char *const pieces[] = {"x", "\"", "\x01", "\xff", "\xe2\x82\xac"};
	static char value[4 * HX_LOGGER_LINE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t piece = strlen(pieces[i]);

		for (size_t k = 0; k + piece < sizeof(value); k += piece)
			memcpy(value + k, pieces[i], piece);
		for (size_t size = 0; size < 2200; size += size < 900 ? 61 : 1) {
			struct hx_logger_field fields[8];
			struct hx_logger_line line = {
				.msg = "m",
				.fields = fields,
				.field_count = 8,
				.suppressed = UINT64_MAX};
			char out[HX_LOGGER_LINE_MAX];
			size_t used;

			for (size_t k = 0; k < 8; k++)
				fields[k] = (struct hx_logger_field)HX_LOGGER_BYTES(
					"name", hx_bytes(value, size));
			used = hx_logger_line_format(&line, out);
			assert_true(used <= HX_LOGGER_LINE_MAX);
			assert_int_equal(out[used - 1], '\n');
			assert_null(memchr(out, '\n', used - 1));
			assert_json(out, used - 1);
			assert_non_null(
				memmem(out, used, "\"suppressed\":18446744073709551615}", 34));
			if (size > 1100)
				assert_non_null(memmem(out, used, "\"cut\":true", 10));
		}
	}
}

/* Without a reader: the caller is not held up, lost lines are counted, and close returns. */
static void a_reader_that_does_not_read_holds_nobody_up(void **state)
{
	static struct pipe_log pipe;
	static char value[1000];
	const struct hx_logger_field field =
		HX_LOGGER_BYTES("value", hx_bytes(value, sizeof(value)));
	uint64_t lines = 0;

	(void)state;
	memset(value, 'x', sizeof(value));
	pipe_open(&pipe, (struct hx_logger_options){.level = HX_LOGGER_DEBUG});
	while (hx_logger_lost(pipe.log) == 0) {
		hx_logger(pipe.log, HX_LOGGER_INFO, "m", &field, 1);
		lines++;
		assert_true(lines < 10000);
	}
	assert_true(lines > HX_LOGGER_WAITING_MAX / 1100);
	assert_false(hx_logger_flush(pipe.log, hx_clock_mono_ns()));
	hx_logger_close(pipe.log, 0);
	hx_stream_close(pipe.ends[0]);
	hx_stream_close(pipe.ends[1]);
}

/* And when it reads again, it is told how much it missed. */
static void what_was_lost_is_told(void **state)
{
	static struct pipe_log pipe;
	static char value[1000];
	const struct hx_logger_field field =
		HX_LOGGER_BYTES("value", hx_bytes(value, sizeof(value)));
	bool is_told = false;

	(void)state;
	memset(value, 'x', sizeof(value));
	pipe_open(&pipe, (struct hx_logger_options){.level = HX_LOGGER_DEBUG});
	while (hx_logger_lost(pipe.log) < 3)
		hx_logger(pipe.log, HX_LOGGER_INFO, "m", &field, 1);
	hx_logger_tick(pipe.log);
	while (!is_told) {
		ssize_t size = hx_stream_read(pipe.ends[0], pipe.text, sizeof(pipe.text) - 1);

		assert_true(size > 0);
		pipe.text[size] = '\0';
		is_told = strstr(pipe.text, "\"msg\":\"lines lost\",\"lost\":3}") != NULL;
		hx_logger_tick(pipe.log);
	}
	pipe_close(&pipe);
}

static void a_reader_that_left_is_no_error(void **state)
{
	static struct pipe_log pipe;

	(void)state;
	pipe_open(&pipe, (struct hx_logger_options){.level = HX_LOGGER_DEBUG});
	hx_stream_close(pipe.ends[0]);
	pipe.ends[0] = -1;
	hx_logger(pipe.log, HX_LOGGER_INFO, "m", NULL, 0);
	assert_true(hx_logger_flush(pipe.log, soon_ns()));
	assert_int_equal(hx_logger_lost(pipe.log), 1);
	pipe_close(&pipe);
}

enum { WRITERS = 4 };

struct crowd {
	struct hx_logger *log;
	uint64_t count;
};

static void write_many(void *arg)
{
	struct crowd *crowd = arg;

	for (uint64_t i = 0; i < crowd->count; i++) {
		const struct hx_logger_field field = HX_LOGGER_UNSIGNED("i", i);

		hx_logger(crowd->log, HX_LOGGER_INFO, "crowd", &field, 1);
	}
}

/* Every line of every thread comes out whole, or is counted as lost. */
static void lines_of_many_threads_stay_whole(void **state)
{
	static struct pipe_log pipe;
	struct hx_thread threads[WRITERS];
	struct crowd crowd;
	uint64_t lines = 0, expected;
	double begin = scale_seconds();
	char line[HX_LOGGER_LINE_MAX];
	size_t used = 0;

	(void)state;
	pipe_open(&pipe, (struct hx_logger_options){.level = HX_LOGGER_DEBUG});
	crowd = (struct crowd){.log = pipe.log, .count = scale_count(200000, 2000)};
	expected = crowd.count * WRITERS;
	for (size_t i = 0; i < WRITERS; i++)
		assert_int_equal(
			hx_thread_start(&threads[i], write_many, &crowd, "crowd", NULL), HAPAX_OK);
	while (lines + hx_logger_lost(pipe.log) < expected) {
		ssize_t size = hx_stream_read(pipe.ends[0], pipe.text, sizeof(pipe.text));

		assert_true(size > 0);
		for (ssize_t i = 0; i < size; i++) {
			assert_true(used < sizeof(line));
			line[used++] = pipe.text[i];
			if (pipe.text[i] == '\n') {
				assert_json(line, used - 1);
				lines++;
				used = 0;
			}
		}
	}
	for (size_t i = 0; i < WRITERS; i++)
		hx_thread_join(&threads[i]);
	assert_int_equal(lines + hx_logger_lost(pipe.log), expected);
	scale_report("log: whole lines of 4 threads", lines, scale_seconds() - begin, true);
	pipe_close(&pipe);
}

static void without_memory_there_is_no_log(void **state)
{
	struct hx_logger_options options = {.level = HX_LOGGER_INFO};
	int64_t live = hx_alloc_live();
	struct hx_logger *log;

	(void)state;
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_logger_new(2, &options, &log, NULL), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(hx_alloc_live(), live);
	hx_logger_close(NULL, 0);
	assert_false(hx_logger_is_journal(2, NULL));
	assert_false(hx_logger_is_journal(2, "1:2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_to_the_byte),
		cmocka_unit_test(promised_lines),
		cmocka_unit_test(a_message_has_its_rate),
		cmocka_unit_test(what_somebody_has_to_see_has_none),
		cmocka_unit_test(more_messages_than_places_share_one),
		cmocka_unit_test(long_lines_are_cut_and_still_json),
		cmocka_unit_test(a_reader_that_does_not_read_holds_nobody_up),
		cmocka_unit_test(what_was_lost_is_told),
		cmocka_unit_test(a_reader_that_left_is_no_error),
		cmocka_unit_test(lines_of_many_threads_stay_whole),
		cmocka_unit_test(without_memory_there_is_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
