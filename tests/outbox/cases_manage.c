/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_manage.c - what people do with an outbox, and tables of others that become one.
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <string.h>

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
	assert_int_equal(memory_log_find(&sunk, "outbox_events:1", NULL), 1);
	assert_int_equal(memory_log_find(&sunk, "outbox_events:3", NULL), 1);
	assert_int_equal(
		outbox_case_number(
			c, "SELECT count(*) FROM {}outbox_events WHERE status = 'processed'"),
		3);
	/* Once more changes nothing. */
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 1, &count, &err), HAPAX_OK);
	assert_int_equal(count, 0);
	/* Nor is one taken twice that an earlier version took, as it named it. */
	outbox_case_run(
		c, "UPDATE {}hapax_outbox SET id = '1', state = 0 WHERE id = 'outbox_events:1'");
	outbox_case_run(c, "UPDATE {}outbox_events SET status = 'pending' WHERE id = 1");
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 1, &count, &err), HAPAX_OK);
	assert_int_equal(count, 0);
	/* Another table has the same numbers, and its rows are other events. */
	outbox_case_run(
		c,
		"CREATE TABLE {}second (id INTEGER PRIMARY KEY, queue_name TEXT, payload TEXT, status TEXT)");
	table.table = "second";
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_OK);
	outbox_case_run(c, "INSERT INTO {}second VALUES (3, 'q', 'new', 'pending')");
	(void)drain(c);
	assert_int_equal(memory_log_find(&sunk, "second:3", NULL), 1);
	assert_int_equal(
		outbox_case_number(c, "SELECT count(*) FROM {}second WHERE status = 'processed'"),
		1);
}

static void debezium_tables_are_taken_over(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox_table table = HAPAX_OUTBOX_TABLE_DEBEZIUM;
	struct hapax_error err = {0};
	char text[64];

	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "table outbox does not exist"));
	table.table = "a\"b'; DROP TABLE hapax_outbox; --";
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "table a\"b'"));
	assert_non_null(strstr(err.message, "does not exist"));
	table.table = "hapax_outbox";
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "is the outbox itself"));
	table.table = "outbox";
	outbox_case_run(
		c,
		"CREATE TABLE {}outbox (id TEXT PRIMARY KEY, aggregatetype TEXT, aggregateid TEXT, kind TEXT,"
		" payload TEXT)");
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "no column type"));
	/* The preset of another table. */
	table = (struct hapax_outbox_table)HAPAX_OUTBOX_TABLE_EVENTS;
	table.table = "outbox";
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "no column queue_name"));
	assert_non_null(strstr(err.message, "preset"));
	table = (struct hapax_outbox_table)HAPAX_OUTBOX_TABLE_DEBEZIUM;
	table.type = "kind";
	assert_int_equal(hapax_outbox_adopt(c->joined, &table, 0, NULL, &err), HAPAX_OK);
	outbox_case_run(c, "BEGIN");
	outbox_case_run(c, "INSERT INTO {}outbox VALUES ('e1', 'order', '17', 'made', '{}')");
	/* Of a row that says nothing but that something is gone. */
	outbox_case_run(c, "INSERT INTO {}outbox VALUES ('e2', 'order', '17', 'paid', NULL)");
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
	assert_string_equal(sunk.messages[1].payload, "");
}

/* Whatever they are: nothing of a name is SQL. */
static void names_of_tables_and_columns_are_names(void **state)
{
	struct outbox_case *c = *state;
	/* PostgreSQL takes a table as one writes it in SQL, with its schema if need be. */
	struct hapax_outbox_table table = {
		.size = sizeof(table),
		.table = c->is_postgres ? "\"odd \"\"table\"\" '; --\"" : "odd \"table\" '; --",
		.id = "i\"d",
		.topic = "to'pic; --",
		.topic_prefix = "it's \" %s $$ ",
		.ordering_key = "k%I",
		.payload = "pay load",
		.status = "sta\"tus",
		.pending = "to'do",
		.processed = "do\"n'e",
	};
	struct hapax_error err;
	char text[128];

	outbox_case_run(
		c,
		"CREATE TABLE {}\"odd \"\"table\"\" '; --\" (\"i\"\"d\" INTEGER PRIMARY KEY, \"to'pic; --\" TEXT,"
		" \"k%I\" TEXT, \"pay load\" TEXT, \"sta\"\"tus\" TEXT)");
	if (hapax_outbox_adopt(c->joined, &table, 1, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	outbox_case_run(
		c,
		"INSERT INTO {}\"odd \"\"table\"\" '; --\" VALUES (7, 'topic', 'k', 'x', 'to''do')");
	(void)drain(c);
	assert_int_equal(memory_log_find(&sunk, "odd \"table\" '; --:7", NULL), 1);
	outbox_case_text(c, "SELECT topic FROM {}hapax_outbox", text, sizeof(text));
	assert_string_equal(text, "it's \" %s $$ topic");
	outbox_case_text(
		c, "SELECT \"sta\"\"tus\" FROM {}\"odd \"\"table\"\" '; --\"", text, sizeof(text));
	assert_string_equal(text, "do\"n'e");
}

static int note_bytes(void *context, const struct hapax_field *fields, size_t count)
{
	assert_int_equal(count, 2);
	assert_int_equal(fields[0].value.size, 3);
	assert_memory_equal(fields[0].value.data, "\x00\xff\\", 3);
	assert_null(fields[1].value.data);
	(*(int *)context)++;
	return 0;
}

/* A payload that is rebuilt is the one that it was. */
static void bytes_of_a_query_are_what_they_are(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_error err = {0};
	int seen = 0;

	assert_int_equal(
		hapax_outbox_query(
			c->joined,
			c->is_postgres ? "SELECT '\\x00ff5c'::bytea, NULL::bytea"
				       : "SELECT x'00ff5c', NULL",
			note_bytes, &seen, &err),
		HAPAX_OK);
	assert_int_equal(seen, 1);
}

static int take_nothing(void *context, const struct hapax_field *fields, size_t count)
{
	(void)context;
	(void)fields;
	(void)count;
	return 0;
}

/* It is not the query that is wrong, and the next one finds another connection. */
static void a_query_that_loses_its_connection_is_told(void **state)
{
	struct outbox_case *c = *state;
	struct hapax_outbox *outbox = NULL;
	struct hapax_error err = {0};

	needs_postgres(c, "SQLite has no connection to lose");
	assert_int_equal(hapax_outbox_open(c->url, &outbox, &err), HAPAX_OK);
	assert_int_equal(
		hapax_outbox_query(
			outbox, "SELECT pg_terminate_backend(pg_backend_pid())", take_nothing, NULL,
			&err),
		HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "the query was not answered: "));
	assert_int_equal(
		hapax_outbox_query(outbox, "SELECT 1", take_nothing, NULL, &err), HAPAX_OK);
	hapax_outbox_close(outbox);
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

const struct outbox_test manage_cases[] = {
	{"people_retry_park_and_purge", people_retry_park_and_purge},
	{"tables_of_others_are_taken_over", tables_of_others_are_taken_over},
	{"debezium_tables_are_taken_over", debezium_tables_are_taken_over},
	{"names_of_tables_and_columns_are_names", names_of_tables_and_columns_are_names},
	{"queries_that_are_wrong_are_told", queries_that_are_wrong_are_told},
	{"bytes_of_a_query_are_what_they_are", bytes_of_a_query_are_what_they_are},
	{"a_query_that_loses_its_connection_is_told", a_query_that_loses_its_connection_is_told},
	{NULL, NULL},
};
