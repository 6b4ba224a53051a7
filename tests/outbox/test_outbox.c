/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbox in a database, and a relay with a sink in memory: what is committed is published,
 * in order, and what fails holds up its own key only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/uuid7.h"
#include "outbox/memory_sink.h"
#include "outbox/outbox_case.h"
#include "support/scale.h"

static const char *kind;
static struct memory_log sunk;

enum { REPORTS_MAX = 64 };

struct reports {
	size_t counts[HAPAX_RELAY_CONFIRMED + 1];
	char last[HAPAX_RELAY_CONFIRMED + 1][512];
};

static void on_report(void *context, enum hapax_relay_event event, const char *text)
{
	struct reports *reports = context;

	reports->counts[event]++;
	(void)snprintf(reports->last[event], sizeof(reports->last[event]), "%s", text);
}

static struct hapax_relay_options relay_options(struct reports *reports)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;

	options.retry_ms = 1;
	options.retry_ms_max = 4;
	options.poll_ms = 5;
	options.lease_ms = 10 * 1000;
	options.is_finite = 1;
	options.report = reports == NULL ? NULL : on_report;
	options.context = reports;
	return options;
}

/* Publish until nothing is pending. */
static struct hapax_relay_stats drain_with(
	struct outbox_case *c, const struct hapax_relay_options *options)
{
	struct hapax_relay_stats stats = HAPAX_RELAY_STATS_INIT;
	struct hapax_relay *relay = NULL;
	struct hapax_error err;

	if (hx_relay_new(c->url, options, memory_sink_new(&sunk), &relay, &err) != HAPAX_OK ||
	    hapax_relay_run(relay, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	hapax_relay_stats(relay, &stats);
	hapax_relay_close(relay);
	return stats;
}

static struct hapax_relay_stats drain(struct outbox_case *c)
{
	struct hapax_relay_options options = relay_options(NULL);

	return drain_with(c, &options);
}

static int set_up(void **state)
{
	struct outbox_case *c = calloc(1, sizeof(*c));

	outbox_case_init(c, kind);
	memory_log_init(&sunk);
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	outbox_case_done(*state);
	free(*state);
	return 0;
}

/* ------------------------------------------------------------------ adding */

static void tables_are_made_once(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_migration migration;
	struct hapax_error err;

	outbox_case_add(c, "t", "", "kept", "x");
	assert_int_equal(hapax_outbox_init(c->url, &migration, &err), HAPAX_OK);
	assert_int_equal(migration.from, migration.to);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 1);
}

static void a_newer_outbox_is_refused(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox *outbox;
	struct hapax_error err = {0};

	outbox_case_run(c, "UPDATE {}hapax_outbox_meta SET version = 99");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "newer hapax"));
	assert_int_equal(hapax_outbox_init(c->url, NULL, &err), HAPAX_ERR_UNSUPPORTED);
}

static void a_missing_outbox_is_told_with_a_hint(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox *outbox;
	struct hapax_error err = {0};

	outbox_case_run(c, "DROP TABLE {}hapax_outbox_meta");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "hapax outbox init"));
}

static void events_live_and_die_with_their_transaction(void **state)
{
	struct outbox_case *c = *state;

	outbox_case_run(c, "BEGIN");
	outbox_case_run(c, "INSERT INTO {}orders VALUES ('a')");
	outbox_case_add(c, "orders", "a", "1", "{}");
	outbox_case_run(c, "ROLLBACK");
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 0);
	outbox_case_run(c, "BEGIN");
	outbox_case_add(c, "orders", "a", "2", "{}");
	outbox_case_run(c, "COMMIT");
	(void)drain(c);
	assert_int_equal(sunk.count, 1);
	assert_string_equal(sunk.messages[0].id, "2");
}

static enum hapax_status insert_order(void *context, struct hapax_error *err)
{
	struct outbox_case *c = context;

	(void)err;
	return outbox_case_try(c, "INSERT INTO {}orders VALUES ('o')") ? HAPAX_OK
								       : HAPAX_ERR_HANDLER;
}

static void execute_keeps_both_or_neither(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_event events[2] = {HAPAX_OUTBOX_EVENT_INIT, HAPAX_OUTBOX_EVENT_INIT};
	struct hapax_error err;

	events[0].topic = events[1].topic = hapax_bytes_from_text("orders");
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, events, 2, &err), HAPAX_OK);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}orders"), 1);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 2);
	/* The order is there already: no event tells of a second one. */
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, events, 2, &err),
		HAPAX_ERR_HANDLER);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 2);
	/* An event that is none: no order either. */
	outbox_case_run(c, "DELETE FROM {}orders");
	events[1].topic.size = 0;
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, events, 2, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}orders"), 0);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 2);
}

static void execute_works_inside_of_a_transaction(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_error err;

	event.topic = hapax_bytes_from_text("orders");
	outbox_case_run(c, "BEGIN");
	outbox_case_run(c, "INSERT INTO {}orders VALUES ('before')");
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, &event, 1, &err), HAPAX_OK);
	/* What fails is undone alone. */
	assert_int_equal(
		hapax_outbox_execute(c->joined, insert_order, c, &event, 1, &err),
		HAPAX_ERR_HANDLER);
	outbox_case_run(c, "COMMIT");
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}orders"), 2);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 1);
}

static void events_that_are_none_are_refused(void **state)
{
	struct outbox_case *c = *state;
	static char large[HX_OUTBOX_PAYLOAD_SIZE_MAX + 1];
	struct hapax_field header = {hapax_bytes_from_text("h"), hapax_bytes_from_text("\xff")};
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_error err = {0};

	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	event.topic = hapax_bytes_from_text("t");
	event.payload = (struct hapax_bytes){large, sizeof(large)};
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "reference"));
	event.payload.size = 0;
	memset(large, 'k', HX_OUTBOX_LONG_SIZE_MAX + 1);
	event.ordering_key = (struct hapax_bytes){large, HX_OUTBOX_LONG_SIZE_MAX + 1};
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	event.ordering_key = (struct hapax_bytes){"a\0b", 3};
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	event.ordering_key.size = 0;
	event.headers = &header;
	event.header_count = 1;
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	event.header_count = 0;
	event.id = hapax_bytes_from_text("twice");
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_OK);
	assert_int_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "already"));
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 1);
}

static void ids_are_uuids_that_sort_by_time(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	char id[HAPAX_OUTBOX_ID_SIZE];
	unsigned char uuid[HX_UUID_SIZE];
	int64_t made_ms = 0;
	struct hapax_error err;

	event.topic = hapax_bytes_from_text("t");
	assert_int_equal(hapax_outbox_add(c->joined, &event, id, &err), HAPAX_OK);
	assert_true(hx_uuid_parse(hapax_bytes_from_text(id), uuid));
	assert_true(hx_uuid7_time_ms(uuid, &made_ms));
	assert_int_equal(
		made_ms / 60000,
		outbox_case_number(c, "SELECT created_ms / 60000 FROM {}hapax_outbox"));
}

/* ------------------------------------------------------------------ relaying */

static void all_is_published_once_and_marked(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_stats stats;
	struct hapax_outbox_status status = HAPAX_OUTBOX_STATUS_INIT;

	outbox_case_run(c, "BEGIN");
	for (int i = 0; i < 2500; i++) {
		char id[16], key[16];

		(void)snprintf(id, sizeof(id), "%d", i);
		(void)snprintf(key, sizeof(key), "k%d", i % 500);
		outbox_case_add(c, "t", i % 5 == 0 ? "" : key, id, id);
	}
	outbox_case_run(c, "COMMIT");
	stats = drain(c);
	assert_int_equal(stats.published, 2500);
	assert_int_equal(sunk.count, 2500);
	/* Many at a time, and of one key in order. */
	assert_true(sunk.calls_max > 100);
	for (int i = 0; i < 2500; i++) {
		char id[16], earlier[16];
		size_t at = 0, before = 0;

		(void)snprintf(id, sizeof(id), "%d", i);
		assert_int_equal(memory_log_find(&sunk, id, &at), 1);
		(void)snprintf(earlier, sizeof(earlier), "%d", i - 500);
		if (i % 5 == 0 || i < 500)
			continue;
		assert_int_equal(memory_log_find(&sunk, earlier, &before), 1);
		assert_true(before < at);
	}
	assert_int_equal(hapax_outbox_status(c->joined, &status, NULL), HAPAX_OK);
	assert_int_equal(status.sent, 2500);
	assert_int_equal(status.pending, 0);
	assert_int_equal(status.relays, 0);
	assert_int_equal(drain(c).published, 0);
}

static void a_row_that_fails_is_tried_again_then_parked(void **state)
{
	struct outbox_case *c = *state;
	struct reports reports = {0};
	struct hapax_relay_options options = relay_options(&reports);
	struct hapax_outbox_status status = HAPAX_OUTBOX_STATUS_INIT;
	char error[256];

	options.attempts_max = 3;
	outbox_case_add(c, "fail", "k", "1", "");
	outbox_case_add(c, "t", "k", "2", "");
	outbox_case_add(c, "t", "other", "3", "");
	outbox_case_add(c, "t", "", "4", "");
	(void)drain_with(c, &options);
	assert_int_equal(reports.counts[HAPAX_RELAY_RETRY], 2);
	assert_int_equal(reports.counts[HAPAX_RELAY_PARKED], 1);
	/* Only its own key waits. */
	assert_int_equal(sunk.count, 2);
	assert_int_equal(memory_log_find(&sunk, "2", NULL), 0);
	assert_int_equal(hapax_outbox_status(c->joined, &status, NULL), HAPAX_OK);
	assert_int_equal(status.parked, 1);
	assert_int_equal(status.parked_keys, 1);
	assert_int_equal(status.waiting, 1);
	assert_int_equal(
		outbox_case_number(c, "SELECT attempts FROM {}hapax_outbox WHERE id = '1'"), 3);
	outbox_case_text(
		c, "SELECT error FROM {}hapax_outbox WHERE id = '1'", error, sizeof(error));
	assert_string_equal(error, "told to \"fail\" \\ once more");
}

static void a_row_that_is_refused_is_parked_at_once(void **state)
{
	struct outbox_case *c = *state;
	struct reports reports = {0};
	struct hapax_relay_options options = relay_options(&reports);

	outbox_case_add(c, "bad", "k", "1", "");
	(void)drain_with(c, &options);
	assert_int_equal(reports.counts[HAPAX_RELAY_RETRY], 0);
	assert_int_equal(reports.counts[HAPAX_RELAY_PARKED], 1);
	assert_non_null(strstr(reports.last[HAPAX_RELAY_PARKED], "told to refuse"));
	/* What comes later for the key waits, too; in order when it goes on. */
	outbox_case_add(c, "t", "k", "2", "");
	outbox_case_add(c, "t", "k", "3", "");
	(void)drain_with(c, &options);
	assert_int_equal(sunk.count, 0);
	sunk.is_tolerant = true;
	outbox_case_run(c, "UPDATE {}hapax_outbox SET state = 0 WHERE state = 2");
	(void)drain_with(c, &options);
	assert_int_equal(sunk.count, 3);
	assert_string_equal(sunk.messages[0].id, "1");
	assert_string_equal(sunk.messages[1].id, "2");
	assert_string_equal(sunk.messages[2].id, "3");
}

static void an_outage_is_counted_against_no_row(void **state)
{
	struct outbox_case *c = *state;
	struct reports reports = {0};
	struct hapax_relay_options options = relay_options(&reports);
	size_t first = 0, second = 0;

	options.attempts_max = 1;
	sunk.away = 4;
	for (int i = 0; i < 8; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "%d", i);
		outbox_case_add(c, "t", i < 6 ? "" : "k", id, "");
	}
	(void)drain_with(c, &options);
	assert_int_equal(reports.counts[HAPAX_RELAY_OUTAGE], 1);
	assert_int_equal(reports.counts[HAPAX_RELAY_RESUMED], 1);
	assert_int_equal(reports.counts[HAPAX_RELAY_PARKED], 0);
	assert_int_equal(
		outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 1"), 8);
	/* Some came twice, under the same ids, and none too early. */
	assert_true(sunk.count > 8);
	assert_true(memory_log_find(&sunk, "6", &first) >= 1);
	assert_int_equal(memory_log_find(&sunk, "7", &second), 1);
	assert_true(first < second);
}

/* A relay that died keeps its partitions until its lease is over; its rows are not lost. */
static void rows_of_a_dead_relay_are_taken_over(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);
	struct hapax_outbox *dead = NULL;
	unsigned partitions = 0;
	struct hapax_error err;

	options.lease_ms = 300;
	assert_int_equal(hapax_outbox_open(c->url, &dead, &err), HAPAX_OK);
	assert_int_equal(
		dead->ops->tend(dead, "dead", "", 300, false, &partitions, &err), HAPAX_OK);
	assert_int_equal(partitions, HX_OUTBOX_PARTITIONS);
	hapax_outbox_close(dead);
	for (int i = 0; i < 100; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "%d", i);
		outbox_case_add(c, "t", "", id, "");
	}
	assert_int_equal(drain_with(c, &options).published, 100);
}

/* A paused relay comes back: what it says about failures of rows counts no more. */
static void failures_count_with_the_token_only(void **state)
{
	struct outbox_case *c = *state;
	static struct hx_outbox_batch batch;
	struct hapax_outbox *paused = NULL, *other = NULL;
	unsigned partitions = 0;
	struct hapax_error err;

	hx_outbox_batch_init(&batch);
	outbox_case_add(c, "t", "k", "1", "");
	outbox_case_add(c, "t", "j", "2", "");
	assert_int_equal(hapax_outbox_open(c->url, &paused, &err), HAPAX_OK);
	assert_int_equal(hapax_outbox_open(c->url, &other, &err), HAPAX_OK);
	assert_int_equal(
		paused->ops->tend(paused, "paused", "", 60000, false, &partitions, &err), HAPAX_OK);
	assert_int_equal(paused->ops->fetch(paused, "paused", 10, &batch, &err), HAPAX_OK);
	assert_int_equal(batch.count, 2);
	/* Its lease ends, and another one takes over. */
	outbox_case_run(c, "UPDATE {}hapax_outbox_part SET until_ms = 1");
	outbox_case_run(c, "UPDATE {}hapax_outbox_relay SET until_ms = 1");
	assert_int_equal(
		other->ops->tend(other, "other", "", 60000, false, &partitions, &err), HAPAX_OK);
	assert_int_equal(partitions, HX_OUTBOX_PARTITIONS);
	batch.rows[0].outcome = HX_OUTBOX_FAILED;
	batch.rows[0].is_parked = true;
	batch.rows[1].outcome = HX_OUTBOX_SENT;
	assert_int_equal(paused->ops->mark(paused, &batch, &err), HAPAX_OK);
	assert_int_equal(
		outbox_case_number(c, "SELECT state FROM {}hapax_outbox WHERE id = '1'"), 0);
	/* That the broker has one is true whoever says it. */
	assert_int_equal(
		outbox_case_number(c, "SELECT state FROM {}hapax_outbox WHERE id = '2'"), 1);
	assert_int_equal(paused->ops->fetch(paused, "paused", 10, &batch, &err), HAPAX_OK);
	assert_int_equal(batch.count, 0);
	hx_outbox_batch_done(&batch);
	hapax_outbox_close(paused);
	hapax_outbox_close(other);
}

static void partitions_are_shared_by_those_who_live(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox *outbox = NULL;
	unsigned a = 0, b = 0;
	struct hapax_error err;

	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_OK);
	assert_int_equal(outbox->ops->tend(outbox, "a", "", 60000, false, &a, &err), HAPAX_OK);
	assert_int_equal(a, 64);
	assert_int_equal(outbox->ops->tend(outbox, "b", "", 60000, false, &b, &err), HAPAX_OK);
	assert_int_equal(b, 0);
	assert_int_equal(outbox->ops->tend(outbox, "a", "", 60000, false, &a, &err), HAPAX_OK);
	assert_int_equal(outbox->ops->tend(outbox, "b", "", 60000, false, &b, &err), HAPAX_OK);
	assert_int_equal(a, 32);
	assert_int_equal(b, 32);
	assert_int_equal(outbox->ops->leave(outbox, "a", &err), HAPAX_OK);
	assert_int_equal(outbox->ops->tend(outbox, "b", "", 60000, false, &b, &err), HAPAX_OK);
	assert_int_equal(b, 64);
	hapax_outbox_close(outbox);
}

/* 1,000 rows of a key that cannot be published; the others are not held up by them. */
static void poison_holds_up_its_own_key(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);

	options.attempts_max = 4;
	outbox_case_run(c, "BEGIN");
	for (int i = 0; i < 2000; i++) {
		char id[16], key[16];

		(void)snprintf(id, sizeof(id), "%d", i);
		(void)snprintf(key, sizeof(key), "k%d", i % 100);
		outbox_case_add(c, i < 1000 ? "fail" : "t", i < 1000 ? "poison" : key, id, "");
	}
	outbox_case_run(c, "COMMIT");
	assert_int_equal(drain_with(c, &options).published, 1000);
	/* One of them was tried, and the others never. */
	assert_int_equal(
		outbox_case_number(c, "SELECT sum(attempts) FROM {}hapax_outbox WHERE state <> 1"),
		4);
}

static int stop_late(void *context)
{
	return hx_clock_mono_ns() > *(int64_t *)context;
}

/* Not when leases are renewed: until then every look at what is pending would meet them. */
static void who_waits_leaves_the_pending_ones_at_once(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);
	struct hapax_outbox_status backlog = HAPAX_OUTBOX_STATUS_INIT;
	int64_t deadline_ns = hx_clock_mono_ns() + INT64_C(60) * 1000000000;

	options.lease_ms = INT64_C(24) * 3600 * 1000;
	options.stop = stop_late;
	options.context = &deadline_ns;
	outbox_case_add(c, "bad", "k", "1", "");
	outbox_case_add(c, "t", "k", "2", "");
	outbox_case_add(c, "t", "k", "3", "");
	(void)drain_with(c, &options);
	assert_int_equal(hapax_outbox_backlog(c->joined, &backlog, NULL), HAPAX_OK);
	assert_int_equal(backlog.pending, 0);
	assert_int_equal(backlog.waiting, 2);
	assert_int_equal(backlog.parked, 1);
	assert_int_equal(backlog.parked_keys, 1);
}

static void what_is_left_is_counted(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_status status = HAPAX_OUTBOX_STATUS_INIT;
	struct hapax_outbox_status backlog = HAPAX_OUTBOX_STATUS_INIT;
	struct hapax_relay_stats stats;

	outbox_case_add(c, "t", "", "1", "");
	stats = drain(c);
	/* As it was when it began. */
	assert_true(stats.backlog_age_ms >= 0);
	assert_int_equal(stats.backlog.pending, 1);
	assert_int_equal(stats.backlog.relays, 1);
	assert_int_equal(stats.backlog.partitions, 64);
	outbox_case_add(c, "t", "", "2", "");
	outbox_case_run(
		c, "UPDATE {}hapax_outbox SET created_ms = created_ms - 5000 WHERE id = '2'");
	assert_int_equal(hapax_outbox_status(c->joined, &status, NULL), HAPAX_OK);
	assert_int_equal(status.sent, 1);
	assert_int_equal(hapax_outbox_backlog(c->joined, &backlog, NULL), HAPAX_OK);
	assert_int_equal(backlog.sent, 0);
	assert_int_equal(backlog.pending, 1);
	assert_int_equal(status.pending, 1);
	assert_true(backlog.oldest_ms >= 5000);
	assert_int_equal(hapax_outbox_backlog(NULL, &backlog, NULL), HAPAX_ERR_INVALID);
}

static int note_relay(void *context, const struct hapax_field *fields, size_t count)
{
	char *text = context;

	assert_int_equal(count, 3);
	assert_memory_equal(fields[0].name.data, "owner", 5);
	assert_memory_equal(fields[1].name.data, "partitions", 10);
	(void)snprintf(
		text + strlen(text), 64, "%.*s has %.*s;", (int)fields[0].value.size,
		(const char *)fields[0].value.data, (int)fields[1].value.size,
		(const char *)fields[1].value.data);
	return 0;
}

static void relays_are_listed(void **state)
{
	struct outbox_case *c = *state;
	char text[256] = "";

	outbox_case_run(
		c,
		c->is_postgres
			? "SELECT {}hapax_outbox_tend('r1', 'ann', 60000, false)"
			: "INSERT INTO {}hapax_outbox_relay VALUES ('r1', 'ann', 9999999999999)");
	if (!c->is_postgres)
		outbox_case_run(c, "UPDATE {}hapax_outbox_part SET relay = 'r1'");
	assert_int_equal(hapax_outbox_relays(c->joined, note_relay, text, NULL), HAPAX_OK);
	assert_string_equal(text, "ann has 64;");
	assert_int_equal(hapax_outbox_relays(NULL, note_relay, text, NULL), HAPAX_ERR_INVALID);
}

static void headers_that_are_none_park_the_row(void **state)
{
	static const struct {
		const char *json;
		int count;
	} cases[] = {
		{"", 0},
		{"{}", 0},
		{"{\"a\":\"b\",\"c\":\"\\u00e4\\\"\",\"n\":1.5,\"t\":true}", 4},
		{"{\"a\":null}", -1},
		{"{\"a\":{}}", -1},
		{"[]", -1},
		{"{", -1},
		{"\"a\"", -1},
	};
	struct hapax_field fields[4];
	struct hapax_buf scratch;

	(void)state;
	hx_buf_init(&scratch, 4096);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hx_buf_clear(&scratch);
		assert_int_equal(
			hx_outbox_headers_read(
				hapax_bytes_from_text(cases[i].json), &scratch, fields, 4),
			cases[i].count);
	}
	assert_int_equal(
		hx_outbox_headers_read(hapax_bytes_from_text(cases[2].json), &scratch, fields, 3),
		-1);
	assert_int_equal(
		hx_outbox_headers_read(hapax_bytes_from_text(cases[2].json), &scratch, fields, 4),
		4);
	assert_memory_equal(fields[1].value.data, "\xc3\xa4\"", 3);
	assert_memory_equal(fields[2].value.data, "1.5", 3);
	hx_buf_done(&scratch);
}

static void messages_are_cloudevents(void **state)
{
	struct hx_outbox_message message;
	struct hx_outbox_row row = {
		.created_ms = 1700000000123,
		.id = hapax_bytes_from_text("id-1"),
		.topic = hapax_bytes_from_text("orders"),
		.ordering_key = hapax_bytes_from_text("k"),
		.headers = hapax_bytes_from_text("{\"trace\":\"t\",\"CE_ID\":\"forged\"}"),
	};
	const struct {
		const char *name;
		const char *value;
	} expected[] = {
		{"ce_specversion", "1.0"},
		{"ce_id", "id-1"},
		{"ce_source", "/shop"},
		{"ce_type", "orders"},
		{"ce_time", "2023-11-14T22:13:20.123Z"},
		{"ce_partitionkey", "k"},
		{"id", "id-1"},
		{"trace", "t"},
	};

	(void)state;
	hx_outbox_message_init(&message, "ce_", "/shop");
	assert_true(hx_outbox_message_read(&message, &row));
	assert_int_equal(message.count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < message.count; i++) {
		assert_int_equal(message.fields[i].name.size, strlen(expected[i].name));
		assert_memory_equal(
			message.fields[i].name.data, expected[i].name, strlen(expected[i].name));
		assert_int_equal(message.fields[i].value.size, strlen(expected[i].value));
		assert_memory_equal(
			message.fields[i].value.data, expected[i].value, strlen(expected[i].value));
	}
	hx_outbox_message_done(&message);
}

/* ------------------------------------------------------------------ managing */

static int take_id(void *context, const struct hapax_field *fields, size_t count)
{
	char *ids = context;
	size_t held = strlen(ids);

	(void)count;
	(void)snprintf(
		ids + held, 256 - held, "%.*s,", (int)fields[0].value.size,
		(const char *)fields[0].value.data);
	return 0;
}

static void people_retry_park_and_purge(void **state)
{
	struct outbox_case *c = *state;
	char ids[256] = "";
	uint64_t count = 0;

	outbox_case_add(c, "bad", "k", "1", "");
	outbox_case_add(c, "t", "k", "2", "");
	outbox_case_add(c, "bad", "j", "3", "");
	outbox_case_add(c, "t", "i", "4", "");
	assert_int_equal(hapax_outbox_park(c->joined, "4", &count, NULL), HAPAX_OK);
	assert_int_equal(count, 1);
	assert_int_equal(hapax_outbox_park(c->joined, "absent", &count, NULL), HAPAX_OK);
	assert_int_equal(count, 0);
	(void)drain(c);
	assert_int_equal(sunk.count, 0);
	assert_int_equal(
		hapax_outbox_find(
			c->joined, "state", hapax_bytes_from_text("2"), take_id, ids, NULL),
		HAPAX_OK);
	assert_string_equal(ids, "1,3,4,");
	sunk.is_tolerant = true;
	assert_int_equal(hapax_outbox_retry(c->joined, NULL, "k", &count, NULL), HAPAX_OK);
	assert_int_equal(count, 1);
	(void)drain(c);
	assert_int_equal(sunk.count, 2);
	assert_string_equal(sunk.messages[0].id, "1");
	assert_string_equal(sunk.messages[1].id, "2");
	assert_int_equal(hapax_outbox_retry(c->joined, "3", NULL, &count, NULL), HAPAX_OK);
	assert_int_equal(count, 1);
	assert_int_equal(hapax_outbox_retry(c->joined, NULL, NULL, &count, NULL), HAPAX_OK);
	assert_int_equal(count, 1);
	(void)drain(c);
	assert_int_equal(sunk.count, 4);
	/* Too young to go, then old enough. */
	assert_int_equal(hapax_outbox_purge(c->joined, 3600 * 1000, &count, NULL), HAPAX_OK);
	assert_int_equal(count, 0);
	outbox_case_run(c, "UPDATE {}hapax_outbox SET sent_ms = 1 WHERE id <> '1'");
	outbox_case_add(c, "t", "", "5", "");
	assert_int_equal(hapax_outbox_purge(c->joined, 3600 * 1000, &count, NULL), HAPAX_OK);
	assert_int_equal(count, 3);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox"), 2);
}

static void tables_of_others_are_taken_over(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_table table = HAPAX_OUTBOX_TABLE_EVENTS;
	struct hapax_error err;
	uint64_t count = 0;

	outbox_case_run(
		c,
		"CREATE TABLE {}outbox_events (id INTEGER PRIMARY KEY, queue_name TEXT, payload TEXT, status TEXT)");
	outbox_case_run(c, "INSERT INTO {}outbox_events VALUES (1, 'q', 'old', 'pending')");
	outbox_case_run(c, "INSERT INTO {}outbox_events VALUES (2, 'q', 'done', 'processed')");
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 1, &count, &err), HAPAX_OK);
	assert_int_equal(count, 1);
	outbox_case_run(c, "INSERT INTO {}outbox_events VALUES (3, 'q', 'new', 'pending')");
	outbox_case_run(c, "INSERT INTO {}outbox_events VALUES (4, 'q', 'other', 'draft')");
	(void)drain(c);
	assert_int_equal(sunk.count, 2);
	assert_int_equal(memory_log_find(&sunk, "1", NULL), 1);
	assert_int_equal(memory_log_find(&sunk, "3", NULL), 1);
	assert_int_equal(
		outbox_case_number(
			c, "SELECT count(*) FROM {}outbox_events WHERE status = 'processed'"),
		3);
	/* Once more changes nothing. */
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 1, &count, &err), HAPAX_OK);
	assert_int_equal(count, 0);
}

static void debezium_tables_are_taken_over(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_table table = HAPAX_OUTBOX_TABLE_DEBEZIUM;
	struct hapax_error err = {0};
	char text[64];

	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "there is no table outbox"));
	outbox_case_run(
		c,
		"CREATE TABLE {}outbox (id TEXT PRIMARY KEY, aggregatetype TEXT, aggregateid TEXT, kind TEXT,"
		" payload TEXT)");
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "no column type"));
	table.type = "kind";
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_OK);
	outbox_case_run(c, "BEGIN");
	outbox_case_run(c, "INSERT INTO {}outbox VALUES ('e1', 'order', '17', 'made', '{}')");
	outbox_case_run(c, "INSERT INTO {}outbox VALUES ('e2', 'order', '17', 'paid', '{}')");
	outbox_case_run(c, "COMMIT");
	outbox_case_run(c, "BEGIN");
	outbox_case_run(c, "INSERT INTO {}outbox VALUES ('e3', 'order', '17', 'undone', '{}')");
	outbox_case_run(c, "ROLLBACK");
	outbox_case_text(
		c, "SELECT topic || ' ' || type FROM {}hapax_outbox WHERE id = 'e1'", text,
		sizeof(text));
	assert_string_equal(text, "outbox.event.order made");
	(void)drain(c);
	assert_int_equal(sunk.count, 2);
	assert_string_equal(sunk.messages[0].id, "e1");
	assert_string_equal(sunk.messages[1].id, "e2");
	assert_string_equal(sunk.messages[1].key, "17");
}

static void queries_that_are_wrong_are_told(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_error err = {0};
	char ids[256] = "";

	assert_int_equal(
		hapax_outbox_query(c->joined, "SELECT x FROM nowhere", take_id, ids, &err),
		HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "nowhere"));
	assert_int_equal(
		hapax_outbox_find(
			c->joined, "payload", hapax_bytes_from_text("x"), take_id, ids, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(
		hapax_outbox_query(
			c->joined, "SELECT 'a' UNION ALL SELECT 'b'", take_id, ids, &err),
		HAPAX_OK);
	assert_string_equal(ids, "a,b,");
}

/* ------------------------------------------------------------------ many at once */

enum { WRITERS = 8, KEYS = 20 };

struct writer {
	struct hx_thread thread;
	struct outbox_case c;
	unsigned number;
	unsigned rows;
	uint64_t seed;
};

/* Transactions of several events, some rolled back, some held open for a while. */
static void write_rows(void *arg)
{
	struct writer *writer = arg;
	struct hx_prng prng;

	hx_prng_seed(&prng, writer->seed + writer->number);
	for (unsigned i = 0; i < writer->rows; i++) {
		bool is_kept = hx_prng_below(&prng, 4) != 0;
		char id[32], key[16], sql[256];

		(void)snprintf(
			id, sizeof(id), "%s-%u-%u", is_kept ? "kept" : "undone", writer->number, i);
		(void)snprintf(key, sizeof(key), "k%u", (unsigned)hx_prng_below(&prng, KEYS));
		outbox_case_run(&writer->c, writer->c.is_postgres ? "BEGIN" : "BEGIN IMMEDIATE");
		outbox_case_add(&writer->c, "t", key, id, key);
		/* Others commit meanwhile, with larger numbers. */
		for (uint64_t n = hx_prng_below(&prng, 20); n > 0; n--)
			hx_thread_yield();
		if (is_kept) {
			(void)snprintf(sql, sizeof(sql), "INSERT INTO {}orders VALUES ('%s')", id);
			outbox_case_run(&writer->c, sql);
		}
		outbox_case_run(&writer->c, is_kept ? "COMMIT" : "ROLLBACK");
	}
}

struct relayer {
	struct hx_thread thread;
	struct hapax_relay *relay;
	enum hapax_status status;
};

static void run_relay(void *arg)
{
	struct relayer *relayer = arg;

	relayer->status = hapax_relay_run(relayer->relay, NULL);
}

static void committed_is_published_with_writers_and_two_relays(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);
	static struct writer writers[WRITERS];
	struct relayer relayers[2];
	uint64_t count = scale_count(20000, 400), seed = 0;
	double began = scale_seconds();
	char text[64];
	int64_t orders;

	if (!scale_seed(&seed))
		hx_random_bytes(&seed, sizeof(seed));
	print_message("# seed %llu\n", (unsigned long long)seed);
	options.is_finite = 0;
	options.lease_ms = 1000;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			hx_relay_new(
				c->url, &options, memory_sink_new(&sunk), &relayers[i].relay, NULL),
			HAPAX_OK);
		assert_int_equal(
			hx_thread_start(
				&relayers[i].thread, run_relay, &relayers[i], "relay", NULL),
			HAPAX_OK);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i].number = i;
		writers[i].rows = (unsigned)(count / WRITERS);
		writers[i].seed = seed;
		outbox_case_join(c, &writers[i].c);
		assert_int_equal(
			hx_thread_start(
				&writers[i].thread, write_rows, &writers[i], "writer", NULL),
			HAPAX_OK);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		hx_thread_join(&writers[i].thread);
		outbox_case_leave(&writers[i].c);
	}
	while (outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox WHERE state <> 1") > 0)
		hx_thread_yield();
	for (size_t i = 0; i < 2; i++) {
		hapax_relay_stop(relayers[i].relay);
		hx_thread_join(&relayers[i].thread);
		hapax_relay_close(relayers[i].relay);
		assert_int_equal(relayers[i].status, HAPAX_OK);
	}
	orders = outbox_case_number(c, "SELECT count(*) FROM {}orders");
	assert_int_equal(sunk.count, orders);
	/* Of each key in the order of commits, which is the order of seq. */
	for (size_t i = 0; i < sunk.count; i++) {
		assert_memory_equal(sunk.messages[i].id, "kept", 4);
		for (size_t j = i + 1; j < sunk.count && j < i + 400; j++) {
			char sql[256];

			if (strcmp(sunk.messages[i].key, sunk.messages[j].key) != 0)
				continue;
			(void)snprintf(
				sql, sizeof(sql),
				"SELECT (SELECT seq FROM {}hapax_outbox WHERE id = '%s') < (SELECT seq FROM"
				" {}hapax_outbox WHERE id = '%s')",
				sunk.messages[i].id, sunk.messages[j].id);
			outbox_case_text(c, sql, text, sizeof(text));
			assert_true(text[0] == 't' || text[0] == '1');
			break;
		}
	}
	scale_report("outbox rows, 8 writers, 2 relays", count, scale_seconds() - began, true);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(tables_are_made_once),
		CASE(a_newer_outbox_is_refused),
		CASE(a_missing_outbox_is_told_with_a_hint),
		CASE(events_live_and_die_with_their_transaction),
		CASE(execute_keeps_both_or_neither),
		CASE(execute_works_inside_of_a_transaction),
		CASE(events_that_are_none_are_refused),
		CASE(ids_are_uuids_that_sort_by_time),
		CASE(all_is_published_once_and_marked),
		CASE(a_row_that_fails_is_tried_again_then_parked),
		CASE(a_row_that_is_refused_is_parked_at_once),
		CASE(an_outage_is_counted_against_no_row),
		CASE(rows_of_a_dead_relay_are_taken_over),
		CASE(failures_count_with_the_token_only),
		CASE(partitions_are_shared_by_those_who_live),
		CASE(poison_holds_up_its_own_key),
		CASE(who_waits_leaves_the_pending_ones_at_once),
		CASE(what_is_left_is_counted),
		CASE(relays_are_listed),
		cmocka_unit_test(headers_that_are_none_park_the_row),
		cmocka_unit_test(messages_are_cloudevents),
		CASE(people_retry_park_and_purge),
		CASE(tables_of_others_are_taken_over),
		CASE(debezium_tables_are_taken_over),
		CASE(queries_that_are_wrong_are_told),
		CASE(committed_is_published_with_writers_and_two_relays),
	};

	if (argc < 2)
		return 64;
	kind = argv[1];
	return cmocka_run_group_tests_name("outbox", tests, NULL, NULL);
}
