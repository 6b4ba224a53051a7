/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_retention.c - sent rows are deleted after a while, and no others (E4).
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <string.h>

#include "outbox/retention.h"

enum { OLD_ROWS = 2 * HX_RETENTION_ROWS + 300 };

/* One day: the rows below are older, or from now. */
static const int64_t day_ms = INT64_C(24) * 3600 * 1000;

static int64_t rows(struct outbox_case *c)
{
	return outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox");
}

/* Sent rows, the first count of which were sent in 1970. */
static void add_sent(struct outbox_case *c, int count)
{
	struct hapax_relay_options options = relay_options(NULL);
	char id[16];

	outbox_case_run(c, "BEGIN");
	for (int i = 0; i < count; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		outbox_case_add(c, "t", "", id, "");
	}
	outbox_case_run(c, "COMMIT");
	(void)drain_with(c, &options);
	outbox_case_run(c, "UPDATE {}hapax_outbox SET sent_ms = 1");
}

/* E4: however old a row is, it stays until it was sent. */
static void only_sent_rows_are_deleted(void **state)
{
	struct outbox_case *c = *state;
	struct reports reports = {{0}, {""}};
	struct hapax_relay_options options = relay_options(&reports);
	struct hapax_relay_stats stats;

	add_sent(c, OLD_ROWS);
	outbox_case_add(c, "bad", "k", "parked", "");
	outbox_case_add(c, "t", "k", "waiting", "");
	outbox_case_add(c, "t", "", "young", "");
	options.retention_ms = HAPAX_TTL_FOREVER;
	stats = drain_with(c, &options);
	assert_int_equal(stats.purged, 0);
	assert_int_equal(rows(c), OLD_ROWS + 3);
	outbox_case_add(c, "t", "", "pending", "");
	/* Whatever an application wrote there. */
	outbox_case_run(
		c,
		"UPDATE {}hapax_outbox SET created_ms = 1, sent_ms = 1 WHERE id IN ('parked', 'waiting', 'pending')");
	options.retention_ms = day_ms;
	stats = drain_with(c, &options);
	assert_int_equal(stats.purged, OLD_ROWS);
	assert_int_equal(reports.counts[HAPAX_RELAY_PURGED], 1);
	assert_string_equal(reports.last[HAPAX_RELAY_PURGED], "2300 rows");
	assert_int_equal(rows(c), 4);
	assert_int_equal(
		outbox_case_number(
			c, "SELECT count(*) FROM {}hapax_outbox WHERE id IN ('young', 'pending')"),
		2);
	assert_int_equal(memory_log_find(&sunk, "pending", NULL), 1);
}

/* One relay deletes for all: that of partition 0. */
static void the_relay_of_a_partition_deletes(void **state)
{
	struct outbox_case *c = *state;
	struct hx_retention mine = {.age_ms = day_ms}, theirs = mine;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;
	uint64_t count = 1;

	add_sent(c, 3);
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_OK);
	outbox_case_run(
		c,
		"UPDATE {}hapax_outbox_part SET relay = 'theirs', until_ms = 9000000000000 WHERE part = 0");
	outbox_case_run(
		c,
		"UPDATE {}hapax_outbox_part SET relay = 'mine', until_ms = 9000000000000 WHERE part <> 0");
	assert_int_equal(hx_retention_step(&mine, outbox, "mine", &count, &err), HAPAX_OK);
	assert_int_equal(count, 0);
	assert_int_equal(rows(c), 3);
	/* A lease that has ended is none. */
	outbox_case_run(c, "UPDATE {}hapax_outbox_part SET until_ms = 1 WHERE part = 0");
	assert_int_equal(hx_retention_step(&theirs, outbox, "theirs", &count, &err), HAPAX_OK);
	assert_int_equal(count, 0);
	outbox_case_run(c, "UPDATE {}hapax_outbox_part SET until_ms = 9000000000000");
	/* Not due yet. */
	assert_int_equal(hx_retention_step(&theirs, outbox, "theirs", &count, &err), HAPAX_OK);
	assert_int_equal(rows(c), 3);
	theirs.due_ns = 0;
	assert_int_equal(hx_retention_step(&theirs, outbox, "theirs", &count, &err), HAPAX_OK);
	assert_int_equal(count, 3);
	assert_int_equal(rows(c), 0);
	hapax_outbox_close(outbox);
}

/* Rows that cannot be deleted are told of, and rows to be published do not wait. */
static void a_database_that_deletes_nothing_stops_nothing(void **state)
{
	struct outbox_case *c = *state;
	struct reports reports = {{0}, {""}};
	struct hapax_relay_options options = relay_options(&reports);

	add_sent(c, 1);
	if (c->is_postgres) {
		outbox_case_run(
			c,
			"CREATE FUNCTION {}refuse() RETURNS trigger LANGUAGE plpgsql AS"
			" 'BEGIN RAISE EXCEPTION ''rows stay''; END'");
		outbox_case_run(
			c,
			"CREATE TRIGGER refuse BEFORE DELETE ON {}hapax_outbox FOR EACH ROW EXECUTE"
			" FUNCTION {}refuse()");
	} else {
		outbox_case_run(
			c,
			"CREATE TRIGGER refuse BEFORE DELETE ON hapax_outbox BEGIN SELECT RAISE(FAIL,"
			" 'rows stay'); END");
	}
	outbox_case_add(c, "t", "", "next", "");
	options.retention_ms = day_ms;
	assert_int_equal(drain_with(c, &options).published, 1);
	assert_int_equal(rows(c), 2);
	assert_int_equal(reports.counts[HAPAX_RELAY_UNPURGED], 1);
	assert_non_null(strstr(reports.last[HAPAX_RELAY_UNPURGED], "rows stay"));
	assert_int_equal(reports.counts[HAPAX_RELAY_OUTAGE], 0);
}

const struct outbox_test retention_cases[] = {
	{"only_sent_rows_are_deleted", only_sent_rows_are_deleted},
	{"the_relay_of_a_partition_deletes", the_relay_of_a_partition_deletes},
	{"a_database_that_deletes_nothing_stops_nothing",
	 a_database_that_deletes_nothing_stops_nothing},
	{NULL, NULL},
};
