/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_case.c - what every sink has to show: messages that carry what the row has, and reasons
 * for what cannot be published.
 */
#include "outbox/sink_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/postgres_case.h"

enum { CASES_MAX = 16, GOOD = 50 };

static char db_url[512];
static char sink_url[512];

const char *sink_case_db(void)
{
	return db_url;
}

void sink_case_outbox(const struct sink_broker *broker, enum sink_mode mode)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_error err;

	(void)postgres_case_query(conn, "DROP SCHEMA IF EXISTS relayed CASCADE");
	PQfinish(conn);
	postgres_case_url(db_url, sizeof(db_url), "&schema=relayed");
	if (hapax_outbox_init(db_url, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	broker->url(mode, sink_url, sizeof(sink_url));
}

struct hapax_relay_options sink_case_options(void)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;

	options.sink = sink_url;
	options.is_finite = 1;
	options.lease_ms = 30 * 1000;
	options.retry_ms = 1;
	options.retry_ms_max = 10;
	options.attempts_max = 3;
	options.poll_ms = 20;
	return options;
}

void sink_case_relay(const struct hapax_relay_options *options)
{
	struct hapax_relay *relay = NULL;
	struct hapax_error err;

	if (hapax_relay_open(db_url, options, &relay, &err) != HAPAX_OK ||
	    hapax_relay_run(relay, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	hapax_relay_close(relay);
}

const char *sink_message_field(const struct sink_message *message, const char *name)
{
	static char text[300];

	text[0] = '\0';
	for (size_t i = 0; i < message->count; i++) {
		const struct hapax_field *field = &message->fields[i];

		if (field->name.size == strlen(name) &&
		    memcmp(field->name.data, name, field->name.size) == 0)
			(void)snprintf(
				text, sizeof(text), "%.*s", (int)field->value.size,
				(const char *)field->value.data);
	}
	return text;
}

/* ------------------------------------------------------------------ cases */

struct carried {
	const struct sink_broker *broker;
	size_t count;
};

static void check_attribute(
	const struct carried *carried, const struct sink_message *message, const char *name,
	const char *value)
{
	char field[64];

	(void)snprintf(field, sizeof(field), "%s%s", carried->broker->prefix, name);
	assert_string_equal(sink_message_field(message, field), value);
}

static void check_carried(void *context, const struct sink_message *message)
{
	struct carried *carried = context;

	carried->count++;
	assert_int_equal(message->body.size, 8);
	assert_memory_equal(message->body.data, "{\"n\": 1}", 8);
	check_attribute(carried, message, "specversion", "1.0");
	check_attribute(carried, message, "id", "id-1");
	check_attribute(carried, message, "type", "order.made");
	check_attribute(carried, message, "source", "/shop");
	check_attribute(carried, message, "partitionkey", "key-1");
	assert_string_equal(sink_message_field(message, "id"), "id-1");
	assert_string_equal(sink_message_field(message, "trace"), "abc");
	assert_string_equal(sink_message_field(message, "content-type"), "application/json");
}

static void messages_carry_what_the_row_has(void **state)
{
	const struct sink_broker *broker = *state;
	struct hapax_relay_options options = sink_case_options();
	struct carried carried = {.broker = broker};
	PGconn *conn = postgres_case_connect();

	sink_case_outbox(broker, SINK_OPEN);
	(void)postgres_case_query(
		conn,
		"SELECT relayed.hapax_outbox_add_json('carried', '{\"n\": 1}', 'key-1', 'order.made', '/shop',"
		" p_headers => '{\"trace\": \"abc\"}', p_id => 'id-1')");
	sink_case_relay(&options);
	broker->read("carried", check_carried, &carried);
	assert_int_equal(carried.count, 1);
	PQfinish(conn);
}

static void check_bad(PGconn *conn, const char *id, const char *reason)
{
	const char *found = postgres_case_query(
		conn,
		"SELECT state || ' ' || coalesce(error, '') FROM relayed.hapax_outbox WHERE id = '%s'",
		id);

	if (strncmp(found, "2 ", 2) != 0 || strstr(found, reason) == NULL)
		fail_msg("%s: '%s' has no '%s'", id, found, reason);
}

/* Among good ones, and with one behind each that waits for it. */
static void what_cannot_be_published_is_parked_with_the_reason(void **state)
{
	const struct sink_broker *broker = *state;
	struct hapax_relay_options options = sink_case_options();
	PGconn *conn = postgres_case_connect();

	sink_case_outbox(broker, SINK_STRICT);
	for (size_t i = 0; i < broker->bad_count; i++)
		(void)postgres_case_query(
			conn,
			"SELECT relayed.hapax_outbox_add('%s', convert_to(repeat('x', %zu), 'UTF8'), '%s',"
			" p_id => '%s'), relayed.hapax_outbox_add('parking', 'x', '%s', p_id => 'behind-%s')",
			broker->bad[i].topic, broker->bad[i].payload_size, broker->bad[i].id,
			broker->bad[i].id, broker->bad[i].id, broker->bad[i].id);
	(void)postgres_case_query(
		conn,
		"SELECT count(relayed.hapax_outbox_add('parking', 'x', 'good-' || n)) FROM generate_series(1, %d) n",
		GOOD);
	(void)postgres_case_query(
		conn,
		"SELECT relayed.hapax_outbox_add('parking', 'x', 'headers', p_id => 'headers')");
	(void)postgres_case_query(
		conn, "UPDATE relayed.hapax_outbox SET headers = '[1]' WHERE id = 'headers'");
	sink_case_relay(&options);
	assert_int_equal(
		postgres_case_number(
			conn, "SELECT count(*) FROM relayed.hapax_outbox WHERE state = 1"),
		GOOD);
	check_bad(conn, "headers", "its headers are no JSON object");
	for (size_t i = 0; i < broker->bad_count; i++)
		check_bad(conn, broker->bad[i].id, broker->bad[i].reason);
	/* Who stands behind one waits; nothing is lost. */
	assert_int_equal(
		postgres_case_number(
			conn, "SELECT count(*) FROM relayed.hapax_outbox WHERE state = 3"),
		(long long)broker->bad_count);
	PQfinish(conn);
}

struct outage {
	int is_told;
	char text[256];
};

static void on_outage(void *context, enum hapax_relay_event event, const char *text)
{
	struct outage *outage = context;

	if (event != HAPAX_RELAY_OUTAGE)
		return;
	outage->is_told = 1;
	(void)snprintf(outage->text, sizeof(outage->text), "%s", text);
}

static int after_outage(void *context)
{
	return ((struct outage *)context)->is_told;
}

/* At once, or, where connections are made when there is something to say, then. */
static void a_sink_that_is_not_there_is_told_and_counts_against_no_row(void **state)
{
	const struct sink_broker *broker = *state;
	struct hapax_relay_options options = sink_case_options();
	PGconn *conn = postgres_case_connect();
	struct hapax_relay *relay = NULL;
	struct hapax_error err = {0};
	struct outage outage = {0};

	sink_case_outbox(broker, SINK_OPEN);
	(void)postgres_case_query(conn, "SELECT relayed.hapax_outbox_add('t', 'x', 'k')");
	options.sink = broker->absent;
	options.report = on_outage;
	options.stop = after_outage;
	options.context = &outage;
	assert_int_equal(hapax_relay_open(db_url, &options, &relay, &err), HAPAX_OK);
	if (hapax_relay_run(relay, &err) == HAPAX_OK)
		assert_true(outage.is_told && strlen(outage.text) > 10);
	else
		assert_true(err.status == HAPAX_ERR_UNAVAILABLE && strlen(err.message) > 10);
	hapax_relay_close(relay);
	assert_int_equal(
		postgres_case_number(
			conn,
			"SELECT count(*) FROM relayed.hapax_outbox WHERE state = 0 AND attempts = 0"),
		1);
	PQfinish(conn);
}

static void a_missing_table_is_told_with_a_hint(void **state)
{
	const struct sink_broker *broker = *state;
	struct hapax_relay_options options = sink_case_options();
	PGconn *conn = postgres_case_connect();
	struct hapax_relay *relay = NULL;
	struct hapax_error err = {0};

	sink_case_outbox(broker, SINK_OPEN);
	(void)postgres_case_query(conn, "DROP SCHEMA relayed CASCADE");
	assert_int_equal(hapax_relay_open(db_url, &options, &relay, &err), HAPAX_OK);
	assert_int_equal(hapax_relay_run(relay, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "hapax outbox init"));
	hapax_relay_close(relay);
	PQfinish(conn);
}

static const struct CMUnitTest cases[] = {
	cmocka_unit_test(messages_carry_what_the_row_has),
	cmocka_unit_test(what_cannot_be_published_is_parked_with_the_reason),
	cmocka_unit_test(a_sink_that_is_not_there_is_told_and_counts_against_no_row),
	cmocka_unit_test(a_missing_table_is_told_with_a_hint),
	cmocka_unit_test(committed_is_published_and_happens_once),
};

int sink_cases_run(
	const struct sink_broker *broker, const struct CMUnitTest *more, size_t more_count)
{
	struct CMUnitTest tests[CASES_MAX] = {{0}};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tests[count++] = cases[i];
	for (size_t i = 0; i < more_count && count < CASES_MAX; i++)
		tests[count++] = more[i];
	for (size_t i = 0; i < count; i++)
		tests[i].initial_state = (void *)(uintptr_t)broker;
	/* Its length is the array's: what is not used has no function. */
	return _cmocka_run_group_tests(broker->name, tests, count, NULL, NULL);
}
