/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_trouble.c - what must not stop the rest: rows that came by other ways, reasons that are no
 * text, tables that do not want to be told, a clock that goes back, an outbox of an earlier hapax.
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <string.h>

#include "support/scale.h"

#define HOUR_MS INT64_C(3600000)

/* What would be tried forever ends when it was reported. */
static int stop_at_outage(void *context)
{
	struct reports *reports = context;

	return reports->counts[HAPAX_RELAY_OUTAGE] > 0;
}

static void drain_without_outage(struct outbox_case *c)
{
	struct reports reports = {0};
	struct hapax_relay_options options = relay_options(&reports);

	options.stop = stop_at_outage;
	(void)drain_with(c, &options);
	assert_string_equal(reports.last[HAPAX_RELAY_OUTAGE], "");
}

static void check_parked(struct outbox_case *c, const char *id, const char *reason)
{
	char sql[128], text[512];

	(void)snprintf(
		sql, sizeof(sql),
		"SELECT state || ' ' || coalesce(error, '') FROM {}hapax_outbox WHERE id = '%s'",
		id);
	outbox_case_text(c, sql, text, sizeof(text));
	if (strncmp(text, "2 ", 2) != 0 || strstr(text, reason) == NULL)
		fail_msg("%s: '%s' has no '%s'", id, text, reason);
}

/* As a program that writes to the table itself; payload and topic are expressions of SQL. */
static void insert_row(
	struct outbox_case *c, const char *id, const char *topic, const char *payload)
{
	char sql[512];

	(void)snprintf(
		sql, sizeof(sql),
		"INSERT INTO {}hapax_outbox (seq, id, part, created_ms, topic, payload) VALUES (%s, '%s', 0,"
		" 0, %s, %s)",
		c->is_postgres ? "nextval('{}hapax_outbox_seq')" : "NULL", id, topic, payload);
	outbox_case_run(c, sql);
}

/* A broker's words may be any bytes, and a topic that is cut may end within a character. */
static void reasons_that_are_no_text_are_written_down(void **state)
{
	struct outbox_case *c = *state;

	outbox_case_add(c, "garbled", "k", "1", "");
	outbox_case_add(c, "t", "j", "2", "");
	drain_without_outage(c);
	check_parked(c, "1", "it said '?? \xc3\xa4', then ?");
	assert_int_equal(memory_log_find(&sunk, "2", NULL), 1);
}

static void rows_that_are_no_events_are_parked(void **state)
{
	struct outbox_case *c = *state;
	/* One that fits into no batch; PostgreSQL has none, and is slow to make it. */
	unsigned size = scale_is_proof() ? 100000000 : c->is_postgres ? 17000000 : 45000000;
	char payload[96];

	(void)snprintf(
		payload, sizeof(payload),
		c->is_postgres ? "convert_to(repeat('x', %u), 'UTF8')" : "zeroblob(%u)", size);
	insert_row(c, "large", "'t'", payload);
	(void)snprintf(
		payload, sizeof(payload), "%s",
		c->is_postgres ? "repeat('t', 5000000)"
			       : "replace(hex(zeroblob(2500000)), '0', 't')");
	insert_row(c, "topic", payload, c->is_postgres ? "''" : "x''");
	insert_row(c, "empty", "''", c->is_postgres ? "''" : "x''");
	outbox_case_add(c, "t", "k", "good", "x");
	drain_without_outage(c);
	check_parked(c, "large", "its payload is larger than 16 MiB; store it elsewhere");
	check_parked(c, "topic", "its topic must be 1 to 255 bytes long");
	check_parked(c, "empty", "its topic must be 1 to 255 bytes long");
	assert_int_equal(sunk.count, 1);
	assert_int_equal(memory_log_find(&sunk, "good", NULL), 1);
}

/* As in C, where empty bytes are none: no row waits for another. */
static void an_empty_ordering_key_is_none(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_table table = HAPAX_OUTBOX_TABLE_DEBEZIUM;
	struct hapax_error err;

	table.topic_prefix = "";
	outbox_case_run(
		c,
		"CREATE TABLE {}outbox (id TEXT PRIMARY KEY, aggregatetype TEXT, aggregateid TEXT, type TEXT,"
		" payload TEXT)");
	if (hapax_outbox_adopt(c->joined, &table, 0, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	outbox_case_run(c, "INSERT INTO {}outbox VALUES ('e1', 'bad', '', '', '{}')");
	outbox_case_run(c, "INSERT INTO {}outbox VALUES ('e2', 't', '', '', '{}')");
	if (c->is_postgres)
		outbox_case_run(c, "SELECT {}hapax_outbox_add('t', '', '', p_id => 'e3')");
	else
		outbox_case_add(c, "t", "", "e3", "");
	drain_without_outage(c);
	check_parked(c, "e1", "told to refuse");
	assert_int_equal(memory_log_find(&sunk, "e2", NULL), 1);
	assert_int_equal(memory_log_find(&sunk, "e3", NULL), 1);
}

/* Its word for what was sent is another one. The events are sent all the same, and marked. */
static void a_table_that_is_not_told_stops_nobody(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_table table = HAPAX_OUTBOX_TABLE_EVENTS;
	struct hapax_error err;
	char text[512];

	outbox_case_run(
		c,
		"CREATE TABLE {}outbox_events (id INTEGER PRIMARY KEY, queue_name TEXT, payload TEXT, status"
		" TEXT CHECK (status IN ('pending', 'done')))");
	if (hapax_outbox_adopt(c->joined, &table, 0, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	outbox_case_run(c, "INSERT INTO {}outbox_events VALUES (1, 't', '{}', 'pending')");
	outbox_case_add(c, "t", "", "own", "");
	drain_without_outage(c);
	assert_int_equal(sunk.count, 2);
	assert_int_equal(
		outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 1"), 2);
	outbox_case_text(
		c, "SELECT error FROM {}hapax_outbox WHERE id = 'outbox_events:1'", text,
		sizeof(text));
	assert_non_null(strstr(text, "sent, but could not update its row in "));
	/* It is gone, with events of it still pending. */
	outbox_case_run(c, "INSERT INTO {}outbox_events VALUES (2, 't', '{}', 'pending')");
	outbox_case_run(c, "DROP TABLE {}outbox_events");
	outbox_case_add(c, "t", "", "later", "");
	drain_without_outage(c);
	assert_int_equal(sunk.count, 4);
	assert_int_equal(
		outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 1"), 4);
}

/* SQLite lets a trigger end the transaction that marks the rows. They are marked again. */
static void a_trigger_that_rolls_back_stops_nobody(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_table table = HAPAX_OUTBOX_TABLE_EVENTS;
	struct reports reports = {0};
	struct hapax_relay_options options = relay_options(&reports);
	struct hapax_error err;

	if (c->is_postgres) {
		printf("# skip: a trigger in PostgreSQL cannot roll back\n");
		skip();
	}
	outbox_case_run(
		c,
		"CREATE TABLE {}outbox_events (id INTEGER PRIMARY KEY, queue_name TEXT, payload TEXT, status"
		" TEXT)");
	if (hapax_outbox_adopt(c->joined, &table, 0, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	outbox_case_run(
		c,
		"CREATE TRIGGER refuse BEFORE UPDATE ON outbox_events BEGIN SELECT RAISE(ROLLBACK, 'no');"
		" END");
	outbox_case_add(c, "t", "", "own", "");
	outbox_case_run(c, "INSERT INTO {}outbox_events VALUES (1, 't', '{}', 'pending')");
	(void)drain_with(c, &options);
	assert_int_equal(sunk.count, 2);
	assert_int_equal(
		outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 1"), 2);
}

/* Leases of the future are over; those that are only long are not. */
static void leases_of_before_the_clock_went_back_are_over(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox *outbox = NULL;
	unsigned partitions = 0;

	assert_int_equal(hapax_outbox_open(c->url, &outbox, NULL), HAPAX_OK);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "long", "", HOUR_MS, false, &partitions, NULL),
		HAPAX_OK);
	assert_int_equal(partitions, 64);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "short", "", 1000, false, &partitions, NULL),
		HAPAX_OK);
	assert_int_equal(partitions, 0);
	assert_int_equal(outbox->ops->leave(outbox, "long", NULL), HAPAX_OK);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "short", "", 1000, false, &partitions, NULL),
		HAPAX_OK);
	assert_int_equal(partitions, 64);
	/* It dies, and the clock goes back by two hours. */
	outbox_case_run(c, "UPDATE {}hapax_outbox_part SET until_ms = until_ms + 7200000");
	outbox_case_run(c, "UPDATE {}hapax_outbox_relay SET until_ms = until_ms + 7200000");
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "next", "", 1000, false, &partitions, NULL),
		HAPAX_OK);
	assert_int_equal(partitions, 64);
	hapax_outbox_close(outbox);
}

static void pauses_of_before_the_clock_went_back_are_over(void **state)
{
	struct outbox_case *c = *state;
	static struct hx_outbox_batch batch;
	struct hapax_outbox *outbox = NULL;
	unsigned partitions = 0;

	hx_outbox_batch_init(&batch);
	outbox_case_add(c, "t", "k", "1", "");
	outbox_case_add(c, "t", "k", "2", "");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, NULL), HAPAX_OK);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "r", "", HOUR_MS, false, &partitions, NULL),
		HAPAX_OK);
	assert_int_equal(outbox->ops->fetch(outbox, "r", 1, &batch, NULL), HAPAX_OK);
	assert_int_equal(batch.count, 1);
	hx_sink_decide(&batch.rows[0], HX_OUTBOX_FAILED, "not now");
	batch.rows[0].is_parked = false;
	batch.rows[0].pause_ms = HOUR_MS;
	/* Once more, as after an answer that was lost: it is one attempt. */
	assert_int_equal(outbox->ops->mark(outbox, &batch, NULL), HAPAX_OK);
	assert_int_equal(outbox->ops->mark(outbox, &batch, NULL), HAPAX_OK);
	assert_int_equal(
		outbox_case_number(c, "SELECT attempts FROM {}hapax_outbox WHERE id = '1'"), 1);
	/* A pause that may be is one, for both. */
	assert_int_equal(outbox->ops->settle(outbox, "r", HOUR_MS, NULL), HAPAX_OK);
	assert_int_equal(outbox->ops->fetch(outbox, "r", 10, &batch, NULL), HAPAX_OK);
	assert_int_equal(batch.count, 0);
	assert_int_equal(outbox->ops->settle(outbox, "r", 1000, NULL), HAPAX_OK);
	assert_int_equal(outbox->ops->fetch(outbox, "r", 10, &batch, NULL), HAPAX_OK);
	assert_int_equal(batch.count, 2);
	hx_outbox_batch_done(&batch);
	hapax_outbox_close(outbox);
}

/* One that waits to be tried again still does when it comes back from behind a parked one. */
static void who_comes_back_still_holds_up_its_key(void **state)
{
	struct outbox_case *c = *state;
	static struct hx_outbox_batch batch;
	struct hapax_outbox *outbox = NULL;
	unsigned partitions = 0;

	hx_outbox_batch_init(&batch);
	outbox_case_add(c, "t", "k", "0", "");
	outbox_case_add(c, "t", "k", "1", "");
	outbox_case_add(c, "t", "k", "2", "");
	/* The first was parked by hand while the second waited for another attempt. */
	outbox_case_run(
		c,
		"UPDATE {}hapax_outbox SET held = (1 = 1), next_ms = created_ms + 3600000 WHERE id = '1'");
	assert_int_equal(hapax_outbox_park(c->joined, "0", NULL, NULL), HAPAX_OK);
	assert_int_equal(hapax_outbox_open(c->url, &outbox, NULL), HAPAX_OK);
	assert_int_equal(
		outbox->ops->keep_alive(outbox, "r", "", HOUR_MS, false, &partitions, NULL),
		HAPAX_OK);
	assert_int_equal(outbox->ops->settle(outbox, "r", 2 * HOUR_MS, NULL), HAPAX_OK);
	assert_int_equal(
		outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 3"), 2);
	assert_int_equal(hapax_outbox_retry(c->joined, "0", NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(outbox->ops->fetch(outbox, "r", 10, &batch, NULL), HAPAX_OK);
	assert_int_equal(batch.count, 1);
	assert_memory_equal(batch.rows[0].id.data, "0", 1);
	hx_outbox_batch_done(&batch);
	hapax_outbox_close(outbox);
}

static void an_older_outbox_is_told_and_brought_up_to_date(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_migration migration = {0};
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err = {0};

	outbox_case_add(c, "t", "k", "before", "");
	/* As it was in version 1. */
	outbox_case_run(c, "ALTER TABLE {}hapax_outbox_relay DROP COLUMN lease_ms");
	outbox_case_run(c, "UPDATE {}hapax_outbox_meta SET version = 1");
	if (c->is_postgres) {
		outbox_case_run(c, "DROP FUNCTION {}hapax_outbox_settle(text, bigint)");
		outbox_case_run(
			c,
			"CREATE FUNCTION {}hapax_outbox_settle(p_relay text) RETURNS integer LANGUAGE sql RETURN"
			" 0");
	}
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "has version 1, and this hapax needs 2"));
	assert_non_null(strstr(err.message, "hapax outbox init"));
	/* A joined caller continues to add, and the update does not wait for it forever. */
	if (c->is_postgres)
		outbox_case_run(c, "BEGIN");
	outbox_case_add(c, "t", "k", "meanwhile", "");
	if (c->is_postgres) {
		assert_int_equal(
			hapax_outbox_init(c->url, &migration, &err), HAPAX_ERR_UNAVAILABLE);
		assert_non_null(strstr(err.message, "lock timeout"));
		outbox_case_run(c, "COMMIT");
	}
	assert_int_equal(hapax_outbox_init(c->url, &migration, &err), HAPAX_OK);
	assert_int_equal(migration.from, 1);
	assert_int_equal(migration.to, 2);
	drain_without_outage(c);
	assert_int_equal(sunk.count, 2);
}

/* What hapax_outbox_grant() gives is enough, for who adds and for who relays. */
static void roles_have_what_they_need(void **state)
{
	struct outbox_case *c = *state;
	static const char *const statements[] = {
		"SELECT {}hapax_outbox_grant('hapax_app')",
		"SELECT {}hapax_outbox_grant('hapax_relay', true)",
		"SET ROLE hapax_app",
		"SELECT {}hapax_outbox_add('t', 'x', 'k', p_id => 'e1')",
		"SELECT {}hapax_outbox_add_json('t', '{\"n\": 1}', 'k')",
		"SET ROLE hapax_relay",
		"SELECT {}hapax_outbox_tend('r', '', 60000, false)",
		"SELECT {}hapax_outbox_settle('r', 1000)",
		"SELECT {}hapax_outbox_set_idle('r', true)",
		"SELECT {}hapax_outbox_fetch('r', 10, 1000)",
		"SELECT {}hapax_outbox_mark('{1}', '{2}', '{1}', '{0}', '{f}', '{no}', '{1}')",
		"SELECT {}hapax_outbox_backlog()",
		"SELECT {}hapax_outbox_purge(3600000, 10)",
		"SELECT {}hapax_outbox_leave('r')",
		"RESET ROLE",
	};

	needs_postgres(c, "SQLite has no roles");
	for (int i = 0; i < 2; i++) {
		const char *role = i == 0 ? "hapax_app" : "hapax_relay";
		char sql[256];

		(void)snprintf(
			sql, sizeof(sql),
			"DO $$ BEGIN IF to_regrole('%s') IS NULL THEN CREATE ROLE %s; END IF; END $$",
			role, role);
		outbox_case_run(c, sql);
	}
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		outbox_case_run(c, statements[i]);
	assert_int_equal(
		outbox_case_number(c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 1"), 1);
}

/* With what to do about it, and not about a ledger. */
static void rights_and_tables_that_are_missing_are_told(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err = {0};

	needs_postgres(c, "SQLite has no roles");
	event.topic = hapax_bytes_from_text("t");
	outbox_case_run(
		c,
		"DO $$ BEGIN IF to_regrole('hapax_nobody') IS NULL THEN CREATE ROLE hapax_nobody; END IF; END"
		" $$");
	outbox_case_run(c, "SET ROLE hapax_nobody");
	assert_int_not_equal(hapax_outbox_add(c->joined, &event, NULL, &err), HAPAX_OK);
	assert_non_null(strstr(err.message, "SELECT hapax_outbox_grant('ROLE')"));
	outbox_case_run(c, "RESET ROLE");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_OK);
	outbox_case_run(c, "ALTER TABLE {}hapax_outbox RENAME TO away");
	assert_int_equal(hapax_outbox_park(outbox, "id", NULL, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "hapax outbox init --db URL"));
	outbox_case_run(c, "ALTER TABLE {}away RENAME TO hapax_outbox");
	assert_int_equal(hapax_outbox_park(outbox, "id", NULL, &err), HAPAX_OK);
	hapax_outbox_close(outbox);
}

static int take_none(void *context, const struct hapax_field *fields, size_t count)
{
	(void)context;
	(void)fields;
	(void)count;
	return 0;
}

static void queries_of_people_only_read(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err = {0};

	outbox_case_run(c, "INSERT INTO {}orders VALUES ('a')");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_OK);
	assert_int_equal(
		hapax_outbox_query(
			outbox,
			c->is_postgres ? "DELETE FROM outbox_case.orders RETURNING id"
				       : "DELETE FROM orders RETURNING id",
			take_none, NULL, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(outbox_case_number(c, "SELECT count(*) FROM {}orders"), 1);
	/* And nothing of it is left behind. */
	assert_int_equal(hapax_outbox_query(outbox, "SELECT 1", take_none, NULL, &err), HAPAX_OK);
	assert_int_equal(hapax_outbox_park(outbox, "absent", NULL, &err), HAPAX_OK);
	hapax_outbox_close(outbox);
}

/* A relay that waits, and then cannot say that it is busy. */
struct busy_case {
	struct reports reports; /* the first: it is the context of the reports, too */
	struct outbox_case *c;
	int phase;
};

static int stop_when_all_are_marked(void *context)
{
	struct busy_case *b = context;

	if (b->phase == 0 &&
	    outbox_case_number(b->c, "SELECT count(*) FROM {}hapax_outbox_relay WHERE is_idle") ==
		    1) {
		outbox_case_run(
			b->c,
			"ALTER FUNCTION {}hapax_outbox_set_idle(text, boolean) RENAME TO hapax_outbox_gone");
		outbox_case_run(
			b->c,
			"SELECT {}hapax_outbox_add('orders', convert_to(n::text, 'UTF8'), p_id => 'row-' || n)"
			" FROM generate_series(1, 40) n");
		b->phase = 1;
	} else if (b->phase == 1 && b->reports.counts[HAPAX_RELAY_OUTAGE] > 0) {
		outbox_case_run(
			b->c,
			"ALTER FUNCTION {}hapax_outbox_gone(text, boolean) RENAME TO hapax_outbox_set_idle");
		b->phase = 2;
	}
	return b->phase == 2 &&
		outbox_case_number(b->c, "SELECT count(*) FROM {}hapax_outbox WHERE state = 0") ==
		0;
}

/* The rows of the batch before were sent; these were only fetched. */
static void rows_that_were_not_published_are_not_marked(void **state)
{
	struct outbox_case *c = *state;
	struct busy_case b = {.c = c};
	struct hapax_relay_options options = relay_options(&b.reports);

	needs_postgres(c, "only a relay on PostgreSQL says whether it waits");
	outbox_case_add(c, "orders", "", "first", "0");
	options.is_finite = 0;
	options.stop = stop_when_all_are_marked;
	options.context = &b;
	(void)drain_with(c, &options);
	assert_int_equal(b.phase, 2);
	assert_int_equal(sunk.count, 41);
	assert_int_equal(memory_log_find(&sunk, "row-1", NULL), 1);
}

/* A lost connection must not leave the long deadline of the statement that was not asked. */
static void patience_ends_with_the_connection(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_status status = HAPAX_OUTBOX_STATUS_INIT;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err;

	needs_postgres(c, "SQLite has no connection to lose");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_OK);
	outbox_case_run(
		c,
		"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
		" AND application_name = 'hapax outbox' AND datname = current_database()");
	assert_int_not_equal(hapax_outbox_status(outbox, &status, &err), HAPAX_OK);
	assert_int_equal(hapax_outbox_status(outbox, &status, &err), HAPAX_OK);
	hapax_outbox_close(outbox);
}

/* The function in the server is not ours: the owner of the schema can replace it. */
static void a_server_that_returns_too_many_rows_is_not_believed(void **state)
{
	enum { ROWS = 40, BATCH = 7 };

	struct outbox_case *c = *state;
	struct hapax_relay_options options = relay_options(NULL);
	char id[16];

	needs_postgres(c, "SQLite has no functions in a server");
	for (int i = 0; i < ROWS; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		outbox_case_add(c, "t", "", id, "");
	}
	outbox_case_run(c, "ALTER FUNCTION {}hapax_outbox_fetch RENAME TO honest");
	outbox_case_run(
		c,
		"CREATE FUNCTION {}hapax_outbox_fetch(p_relay text, p_limit integer, p_bytes bigint) RETURNS"
		" TABLE (seq bigint, token bigint, attempts integer, created_ms bigint, id text, topic text,"
		" ordering_key text, type text, source text, subject text, content_type text, headers text,"
		" payload bytea) LANGUAGE sql AS 'SELECT * FROM {}honest(p_relay, 1000, p_bytes)'");
	options.batch_max = BATCH;
	assert_int_equal(drain_with(c, &options).batches, (ROWS + BATCH - 1) / BATCH);
	assert_int_equal(sunk.count, ROWS);
}

const struct outbox_test trouble_cases[] = {
	{"a_server_that_returns_too_many_rows_is_not_believed",
	 a_server_that_returns_too_many_rows_is_not_believed},
	{"reasons_that_are_no_text_are_written_down", reasons_that_are_no_text_are_written_down},
	{"rows_that_are_no_events_are_parked", rows_that_are_no_events_are_parked},
	{"an_empty_ordering_key_is_none", an_empty_ordering_key_is_none},
	{"a_table_that_is_not_told_stops_nobody", a_table_that_is_not_told_stops_nobody},
	{"a_trigger_that_rolls_back_stops_nobody", a_trigger_that_rolls_back_stops_nobody},
	{"leases_of_before_the_clock_went_back_are_over",
	 leases_of_before_the_clock_went_back_are_over},
	{"pauses_of_before_the_clock_went_back_are_over",
	 pauses_of_before_the_clock_went_back_are_over},
	{"who_comes_back_still_holds_up_its_key", who_comes_back_still_holds_up_its_key},
	{"an_older_outbox_is_told_and_brought_up_to_date",
	 an_older_outbox_is_told_and_brought_up_to_date},
	{"roles_have_what_they_need", roles_have_what_they_need},
	{"rights_and_tables_that_are_missing_are_told",
	 rights_and_tables_that_are_missing_are_told},
	{"queries_of_people_only_read", queries_of_people_only_read},
	{"rows_that_were_not_published_are_not_marked",
	 rows_that_were_not_published_are_not_marked},
	{"patience_ends_with_the_connection", patience_ends_with_the_connection},
	{NULL, NULL},
};
