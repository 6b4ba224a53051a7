/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_relay.c - what is committed is published, in order; what fails holds up its own key only.
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

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
		dead->ops->keep_alive(dead, "dead", "", 300, false, &partitions, &err), HAPAX_OK);
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
		paused->ops->keep_alive(paused, "paused", "", 60000, false, &partitions, &err),
		HAPAX_OK);
	assert_int_equal(paused->ops->fetch(paused, "paused", 10, &batch, &err), HAPAX_OK);
	assert_int_equal(batch.count, 2);
	/* Its lease ends, and another one takes over. */
	outbox_case_run(c, "UPDATE {}hapax_outbox_part SET until_ms = 1");
	outbox_case_run(c, "UPDATE {}hapax_outbox_relay SET until_ms = 1");
	assert_int_equal(
		other->ops->keep_alive(other, "other", "", 60000, false, &partitions, &err),
		HAPAX_OK);
	assert_int_equal(partitions, HX_OUTBOX_PARTITIONS);
	batch.rows[0].outcome = HX_OUTBOX_FAILED;
	batch.rows[0].is_parked = true;
	batch.rows[1].outcome = HX_OUTBOX_SENT;
	assert_int_equal(paused->ops->mark(paused, &batch, &err), HAPAX_OK);
	assert_int_equal(
		outbox_case_number(c, "SELECT state FROM {}hapax_outbox WHERE id = '1'"), 0);
	/* That the broker has one is true from any source. */
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
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "a", "", 60000, false, &a, &err), HAPAX_OK);
	assert_int_equal(a, 64);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "b", "", 60000, false, &b, &err), HAPAX_OK);
	assert_int_equal(b, 0);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "a", "", 60000, false, &a, &err), HAPAX_OK);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "b", "", 60000, false, &b, &err), HAPAX_OK);
	assert_int_equal(a, 32);
	assert_int_equal(b, 32);
	assert_int_equal(outbox->ops->leave(outbox, "a", &err), HAPAX_OK);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "b", "", 60000, false, &b, &err), HAPAX_OK);
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
	/* One of them was tried, and the others never: they were set aside. */
	assert_int_equal(
		outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 3"), 999);
	assert_int_equal(
		outbox_case_number(c, "SELECT sum(attempts) FROM {}hapax_outbox WHERE state <> 1"),
		4);
}

/* Others come when a row that is never confirmed has been tried alone for a while. */
struct company {
	struct outbox_case *c;
	bool has_come;
	int64_t deadline_ns;
};

static int come_after_a_while(void *context)
{
	struct company *company = context;

	if (!company->has_come && sunk.publishes >= 4) {
		company->has_come = true;
		for (int i = 0; i < 20; i++) {
			char id[16];

			(void)snprintf(id, sizeof(id), "later %d", i);
			outbox_case_add(company->c, "t", "", id, "");
		}
	}
	return hx_clock_mono_ns() > company->deadline_ns;
}

/* As of a queue that has lost its majority. The sink is there, and the row stops no other. */
static void a_row_that_is_never_confirmed_stops_nobody(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);
	struct company company = {
		.c = c, .deadline_ns = hx_clock_mono_ns() + INT64_C(60) * 1000000000};
	char error[256];

	options.lease_ms = 200;
	options.batch_max = 8;
	options.attempts_max = 2;
	options.stop = come_after_a_while;
	options.context = &company;
	outbox_case_add(c, "silent", "k", "1", "");
	outbox_case_add(c, "t", "k", "2", "");
	(void)drain_with(c, &options);
	assert_true(company.has_come);
	/* Once each: what was confirmed was marked. */
	assert_int_equal(sunk.count, 20);
	assert_int_equal(memory_log_find(&sunk, "2", NULL), 0);
	assert_int_equal(
		outbox_case_number(c, "SELECT state FROM {}hapax_outbox WHERE id = '1'"), 2);
	outbox_case_text(
		c, "SELECT error FROM {}hapax_outbox WHERE id = '1'", error, sizeof(error));
	assert_string_equal(error, "the sink did not confirm it in time, but confirmed later ones");
}

static int stop_when_one_is_parked(void *context)
{
	struct company *company = context;

	return hx_clock_mono_ns() > company->deadline_ns ||
		outbox_case_number(
			company->c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 2") > 0;
}

/* A row is not to blame if the time was up before its turn, wherever it stands. */
static void a_row_that_was_never_sent_keeps_its_attempts(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);
	struct company company = {
		.c = c, .deadline_ns = hx_clock_mono_ns() + INT64_C(60) * 1000000000};

	options.lease_ms = 200;
	options.attempts_max = 1;
	options.stop = stop_when_one_is_parked;
	options.context = &company;
	outbox_case_add(c, "unsent", "", "1", "");
	outbox_case_add(c, "silent", "", "2", "");
	/* Of one key: with each wave that is late another one is confirmed. */
	for (int i = 3; i < 40; i++) {
		char id[16];

		(void)snprintf(id, sizeof(id), "%d", i);
		outbox_case_add(c, "t", "k", id, "");
	}
	(void)drain_with(c, &options);
	assert_int_equal(
		outbox_case_number(c, "SELECT state FROM {}hapax_outbox WHERE id = '2'"), 2);
	assert_int_equal(
		outbox_case_number(c, "SELECT state + attempts FROM {}hapax_outbox WHERE id = '1'"),
		0);
}

static int stop_after_two(void *context)
{
	(void)context;
	return sunk.publishes >= 2;
}

/* What is left of a lease is less than the time that a broker is given. */
static void a_row_that_had_little_time_keeps_its_attempts(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);

	options.lease_ms = 9000;
	options.attempts_max = 1;
	options.stop = stop_after_two;
	/* The first ones of two keys take half of it, and the second ones get the other half. */
	outbox_case_add(c, "slow", "k", "1", "");
	outbox_case_add(c, "silent", "k", "2", "");
	outbox_case_add(c, "t", "l", "3", "");
	outbox_case_add(c, "t", "l", "4", "");
	(void)drain_with(c, &options);
	assert_int_equal(sunk.publishes, 2);
	assert_int_equal(sunk.count, 3);
	assert_int_equal(
		outbox_case_number(c, "SELECT state + attempts FROM {}hapax_outbox WHERE id = '2'"),
		0);
}

const struct outbox_test relay_cases[] = {
	{"all_is_published_once_and_marked", all_is_published_once_and_marked},
	{"a_row_that_fails_is_tried_again_then_parked",
	 a_row_that_fails_is_tried_again_then_parked},
	{"a_row_that_is_refused_is_parked_at_once", a_row_that_is_refused_is_parked_at_once},
	{"an_outage_is_counted_against_no_row", an_outage_is_counted_against_no_row},
	{"rows_of_a_dead_relay_are_taken_over", rows_of_a_dead_relay_are_taken_over},
	{"failures_count_with_the_token_only", failures_count_with_the_token_only},
	{"partitions_are_shared_by_those_who_live", partitions_are_shared_by_those_who_live},
	{"poison_holds_up_its_own_key", poison_holds_up_its_own_key},
	{"a_row_that_is_never_confirmed_stops_nobody", a_row_that_is_never_confirmed_stops_nobody},
	{"a_row_that_was_never_sent_keeps_its_attempts",
	 a_row_that_was_never_sent_keeps_its_attempts},
	{"a_row_that_had_little_time_keeps_its_attempts",
	 a_row_that_had_little_time_keeps_its_attempts},
	{NULL, NULL},
};
