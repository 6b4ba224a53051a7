/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_backlog.c - what is left to publish, and who publishes it.
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* Looks at every step whether those that wait have left, and how much was pending then. */
struct watch {
	struct outbox_case *c;
	int64_t deadline_ns;
	bool has_seen;
	uint64_t pending;
};

static int watch_the_waiting(void *context)
{
	struct watch *watch = context;
	struct hapax_outbox_status backlog = HAPAX_OUTBOX_STATUS_INIT;

	if (!watch->has_seen &&
	    hapax_outbox_backlog(watch->c->joined, &backlog, NULL) == HAPAX_OK &&
	    backlog.waiting == 2) {
		watch->has_seen = true;
		watch->pending = backlog.pending;
	}
	return hx_clock_mono_ns() > watch->deadline_ns;
}

/* Not when leases are renewed, or the relay rests: until then every fetch would meet them. */
static void who_waits_leaves_the_pending_ones_at_once(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);
	struct hapax_outbox_status backlog = HAPAX_OUTBOX_STATUS_INIT;
	struct watch watch = {.c = c, .deadline_ns = hx_clock_mono_ns() + INT64_C(60) * 1000000000};
	char id[16];

	options.lease_ms = INT64_C(24) * 3600 * 1000;
	options.batch_max = 5;
	options.stop = watch_the_waiting;
	options.context = &watch;
	outbox_case_add(c, "bad", "k", "1", "");
	outbox_case_add(c, "t", "k", "2", "");
	outbox_case_add(c, "t", "k", "3", "");
	for (unsigned i = 0; i < 50; i++) {
		snprintf(id, sizeof(id), "other %u", i);
		outbox_case_add(c, "t", "", id, "");
	}
	(void)drain_with(c, &options);
	assert_true(watch.has_seen);
	assert_true(watch.pending > 0);
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

/* A relay that comes to a large backlog must not go through it each time it renews its leases. */
static void what_is_pending_is_not_gone_through_for_nothing(void **state)
{
	struct outbox_case *c = *state;
	int64_t looked_at;

	needs_postgres(c, "PostgreSQL alone counts the rows that it looks at");
	outbox_case_run(
		c,
		"SELECT count({}hapax_outbox_add('t', '', 'k' || n)) FROM generate_series(1, 3000) n");
	outbox_case_run(c, "SELECT {}hapax_outbox_tend('r', '', 60000, false)");
	outbox_case_run(c, "BEGIN");
	outbox_case_run(c, "SELECT {}hapax_outbox_settle('r', 1000)");
	looked_at = outbox_case_number(
		c,
		"SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relid ="
		" '{}hapax_outbox'::regclass");
	outbox_case_run(c, "COMMIT");
	assert_true(looked_at < 100);
}

/* The word of a new row that comes with an answer is heard, and not slept over. */
static void what_is_told_with_an_answer_is_heard(void **state)
{
	struct outbox_case *c = *state;
	static struct hx_outbox_batch batch;
	struct hapax_outbox *outbox = NULL;
	int64_t wait_ns = INT64_C(60) * 1000000000, began_ns;
	unsigned partitions = 0;

	needs_postgres(c, "SQLite does not notify of a new row");
	hx_outbox_batch_init(&batch);
	assert_int_equal(hapax_outbox_open(c->url, &outbox, NULL), HAPAX_OK);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "r", "", 60000, true, &partitions, NULL), HAPAX_OK);
	/* Listen. */
	outbox->ops->wait(outbox, 0);
	outbox_case_add(c, "t", "", "1", "");
	assert_int_equal(outbox->ops->fetch(outbox, "r", 10, &batch, NULL), HAPAX_OK);
	began_ns = hx_clock_mono_ns();
	outbox->ops->wait(outbox, wait_ns);
	assert_true(hx_clock_mono_ns() - began_ns < wait_ns / 2);
	hx_outbox_batch_done(&batch);
	hapax_outbox_close(outbox);
}

static void relays_are_listed(void **state)
{
	struct outbox_case *c = *state;
	char text[256] = "";

	outbox_case_run(
		c,
		c->is_postgres
			? "SELECT {}hapax_outbox_tend('r1', 'ann', 60000, false)"
			: "INSERT INTO {}hapax_outbox_relay (relay, owner, until_ms) VALUES ('r1', 'ann', 9999999999999)");
	if (!c->is_postgres)
		outbox_case_run(c, "UPDATE {}hapax_outbox_part SET relay = 'r1'");
	assert_int_equal(hapax_outbox_relays(c->joined, note_relay, text, NULL), HAPAX_OK);
	assert_string_equal(text, "ann has 64;");
	assert_int_equal(hapax_outbox_relays(NULL, note_relay, text, NULL), HAPAX_ERR_INVALID);
}

const struct outbox_test backlog_cases[] = {
	{"who_waits_leaves_the_pending_ones_at_once", who_waits_leaves_the_pending_ones_at_once},
	{"what_is_left_is_counted", what_is_left_is_counted},
	{"what_is_pending_is_not_gone_through_for_nothing",
	 what_is_pending_is_not_gone_through_for_nothing},
	{"what_is_told_with_an_answer_is_heard", what_is_told_with_an_answer_is_heard},
	{"relays_are_listed", relays_are_listed},
	{NULL, NULL},
};
