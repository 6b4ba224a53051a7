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
#include <strings.h>

enum { CASES_MAX = 32, NAME_SIZE = 96, GOOD = 50 };

/* What a case is given. */
struct sink_run {
	const struct sink_broker *broker;
	const char *kind;
};

static const char *const kinds[] = {
	"postgres:",
#if HX_HAVE_SQLITE
	"sqlite:",
#endif
};

void sink_case_begin(
	struct sink_case *c, const struct sink_broker *broker, const char *kind,
	enum sink_mode mode)
{
	outbox_case_init(&c->outbox, kind);
	broker->url(mode, c->sink, sizeof(c->sink));
}

void sink_case_end(struct sink_case *c)
{
	outbox_case_done(&c->outbox);
}

struct hapax_relay_options sink_case_options(const struct sink_case *c)
{
	struct hapax_relay_options options = HAPAX_RELAY_OPTIONS_INIT;

	options.sink = c->sink;
	options.is_finite = 1;
	options.lease_ms = 30 * 1000;
	options.retry_ms = 1;
	options.retry_ms_max = 10;
	options.attempts_max = 3;
	options.poll_ms = 20;
	return options;
}

void sink_case_relay(const struct sink_case *c, const struct hapax_relay_options *options)
{
	struct hapax_relay *relay = NULL;
	struct hapax_error err;

	if (hapax_relay_open(c->outbox.url, options, &relay, &err) != HAPAX_OK ||
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

		/* The recorder of HTTP writes names in lower case. */
		if (field->name.size == strlen(name) &&
		    strncasecmp(field->name.data, name, field->name.size) == 0)
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
	/* D2, by option. */
	assert_string_equal(sink_message_field(message, "eventId"), "id-1");
	assert_string_equal(sink_message_field(message, "eventType"), "order.made");
	assert_string_equal(sink_message_field(message, "aggregateType"), "order");
	assert_string_equal(sink_message_field(message, "aggregateId"), "key-1");
	assert_string_equal(sink_message_field(message, "dataset"), "/shop");
	assert_string_equal(sink_message_field(message, "content-type"), "application/json");
}

/* A topic of this database's own: messages of the other one are there, too. */
static void name_topic(const struct sink_run *run, const char *name, char out[64])
{
	(void)snprintf(out, 64, "%s%s", name, run->kind[0] == 's' ? "-sqlite" : "");
}

static void messages_carry_what_the_row_has(void **state)
{
	const struct sink_run *run = *state;
	struct hapax_outbox_event event = HAPAX_OUTBOX_EVENT_INIT;
	struct hapax_field header = {hapax_bytes_from_text("trace"), hapax_bytes_from_text("abc")};
	struct carried carried = {.broker = run->broker};
	struct hapax_relay_options options;
	struct sink_case c;
	struct hapax_error err;
	char topic[64];

	sink_case_begin(&c, run->broker, run->kind, SINK_OPEN);
	name_topic(run, "carried", topic);
	event.topic = hapax_bytes_from_text(topic);
	event.id = hapax_bytes_from_text("id-1");
	event.ordering_key = hapax_bytes_from_text("key-1");
	event.type = hapax_bytes_from_text("order.made");
	event.source = hapax_bytes_from_text("/shop");
	event.subject = hapax_bytes_from_text("order");
	event.content_type = hapax_bytes_from_text("application/json");
	event.payload = hapax_bytes_from_text("{\"n\": 1}");
	event.headers = &header;
	event.header_count = 1;
	if (hapax_outbox_add(c.outbox.joined, &event, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	options = sink_case_options(&c);
	options.headers =
		"eventId=id,eventType=type,aggregateType=subject,aggregateId=ordering_key,dataset=source";
	sink_case_relay(&c, &options);
	run->broker->read(topic, check_carried, &carried);
	assert_int_equal(carried.count, 1);
	sink_case_end(&c);
}

static void check_bad(struct sink_case *c, const char *id, const char *reason)
{
	char sql[160], found[512];

	(void)snprintf(
		sql, sizeof(sql),
		"SELECT state || ' ' || coalesce(error, '') FROM {}hapax_outbox WHERE id = '%s'",
		id);
	outbox_case_text(&c->outbox, sql, found, sizeof(found));
	if (strncmp(found, "2 ", 2) != 0 || strstr(found, reason) == NULL)
		fail_msg("%s: '%s' has no '%s'", id, found, reason);
}

/* It, and one behind it that waits. */
static void add_bad(struct sink_case *c, const struct sink_bad *bad)
{
	char *payload = malloc(bad->payload_size + 1);
	char behind[64];

	assert_non_null(payload);
	memset(payload, 'x', bad->payload_size);
	payload[bad->payload_size] = '\0';
	outbox_case_add(&c->outbox, bad->topic, bad->id, bad->id, payload);
	free(payload);
	(void)snprintf(behind, sizeof(behind), "behind-%s", bad->id);
	outbox_case_add(&c->outbox, "parking", bad->id, behind, "x");
}

/* Among good ones, and with one behind each that waits for it. */
static void what_cannot_be_published_is_parked_with_the_reason(void **state)
{
	const struct sink_run *run = *state;
	const struct sink_broker *broker = run->broker;
	struct hapax_relay_options options;
	struct sink_case c;

	sink_case_begin(&c, broker, run->kind, SINK_STRICT);
	for (size_t i = 0; i < broker->bad_count; i++)
		add_bad(&c, &broker->bad[i]);
	for (int i = 0; i < GOOD; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "good-%d", i);
		outbox_case_add(&c.outbox, "parking", key, key, "x");
	}
	outbox_case_add(&c.outbox, "parking", "headers", "headers", "x");
	outbox_case_run(
		&c.outbox, "UPDATE {}hapax_outbox SET headers = '[1]' WHERE id = 'headers'");
	options = sink_case_options(&c);
	sink_case_relay(&c, &options);
	assert_int_equal(
		outbox_case_number(
			&c.outbox, "SELECT count(*) FROM {}hapax_outbox WHERE state = 1"),
		GOOD);
	check_bad(&c, "headers", "its headers must be a JSON object");
	for (size_t i = 0; i < broker->bad_count; i++)
		check_bad(&c, broker->bad[i].id, broker->bad[i].reason);
	/* Who stands behind one waits; nothing is lost. */
	assert_int_equal(
		outbox_case_number(
			&c.outbox, "SELECT count(*) FROM {}hapax_outbox WHERE state = 3"),
		(long long)broker->bad_count);
	sink_case_end(&c);
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
	const struct sink_run *run = *state;
	struct hapax_relay_options options;
	struct hapax_relay *relay = NULL;
	struct hapax_error err = {0};
	struct outage outage = {0};
	struct sink_case c;

	sink_case_begin(&c, run->broker, run->kind, SINK_OPEN);
	outbox_case_add(&c.outbox, "t", "k", "id", "x");
	options = sink_case_options(&c);
	options.sink = run->broker->absent;
	options.report = on_outage;
	options.stop = after_outage;
	options.context = &outage;
	assert_int_equal(hapax_relay_open(c.outbox.url, &options, &relay, &err), HAPAX_OK);
	if (hapax_relay_run(relay, &err) == HAPAX_OK)
		assert_true(outage.is_told && strlen(outage.text) > 10);
	else
		assert_true(err.status == HAPAX_ERR_UNAVAILABLE && strlen(err.message) > 10);
	hapax_relay_close(relay);
	assert_int_equal(
		outbox_case_number(
			&c.outbox,
			"SELECT count(*) FROM {}hapax_outbox WHERE state = 0 AND attempts = 0"),
		1);
	sink_case_end(&c);
}

static void a_missing_table_is_told_with_a_hint(void **state)
{
	const struct sink_run *run = *state;
	struct hapax_relay_options options;
	struct hapax_relay *relay = NULL;
	struct hapax_error err = {0};
	struct sink_case c;

	sink_case_begin(&c, run->broker, run->kind, SINK_OPEN);
	outbox_case_run(&c.outbox, "DROP TABLE {}hapax_outbox_meta");
	options = sink_case_options(&c);
	assert_int_equal(hapax_relay_open(c.outbox.url, &options, &relay, &err), HAPAX_OK);
	assert_int_equal(hapax_relay_run(relay, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "hapax outbox init"));
	hapax_relay_close(relay);
	sink_case_end(&c);
}

/* It is told, and goes on when the column is back. */
static void a_missing_column_is_told_and_loses_nothing(void **state)
{
	const struct sink_run *run = *state;
	struct hapax_relay_options options;
	struct hapax_relay *relay = NULL;
	struct outage outage = {0};
	struct hapax_error err;
	struct sink_case c;

	sink_case_begin(&c, run->broker, run->kind, SINK_STRICT);
	outbox_case_add(&c.outbox, "parking", "k", "id", "x");
	outbox_case_run(&c.outbox, "ALTER TABLE {}hapax_outbox DROP COLUMN subject");
	options = sink_case_options(&c);
	options.report = on_outage;
	options.stop = after_outage;
	options.context = &outage;
	assert_int_equal(hapax_relay_open(c.outbox.url, &options, &relay, &err), HAPAX_OK);
	assert_int_equal(hapax_relay_run(relay, &err), HAPAX_OK);
	hapax_relay_close(relay);
	if (strstr(outage.text, "subject") == NULL)
		fail_msg("'%s'", outage.text);
	outbox_case_run(&c.outbox, "ALTER TABLE {}hapax_outbox ADD COLUMN subject TEXT");
	options = sink_case_options(&c);
	sink_case_relay(&c, &options);
	assert_int_equal(
		outbox_case_number(
			&c.outbox,
			"SELECT count(*) FROM {}hapax_outbox WHERE state = 1 AND attempts = 1"),
		1);
	sink_case_end(&c);
}

static const struct {
	const char *name;
	void (*run)(void **state);
} cases[] = {
	{"messages carry what the row has", messages_carry_what_the_row_has},
	{"what cannot be published is parked with the reason",
	 what_cannot_be_published_is_parked_with_the_reason},
	{"a sink that is not there is told, and counts against no row",
	 a_sink_that_is_not_there_is_told_and_counts_against_no_row},
	{"a missing table is told with a hint", a_missing_table_is_told_with_a_hint},
	{"a missing column is told, and loses nothing", a_missing_column_is_told_and_loses_nothing},
};

int sink_cases_run(
	const struct sink_broker *broker, const struct CMUnitTest *more, size_t more_count)
{
	static char names[CASES_MAX][NAME_SIZE];
	static struct sink_run runs[sizeof(kinds) / sizeof(kinds[0])];
	struct CMUnitTest tests[CASES_MAX] = {{0}};
	const struct CMUnitTest proof = cmocka_unit_test(committed_is_published_and_happens_once);
	size_t count = 0;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		runs[k] = (struct sink_run){broker, kinds[k]};
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			(void)snprintf(
				names[count], NAME_SIZE, "%s %s to %s", kinds[k], cases[i].name,
				broker->name);
			tests[count] = (struct CMUnitTest){
				names[count], cases[i].run, NULL, NULL, &runs[k]};
			count++;
		}
	}
	tests[count] = proof;
	tests[count++].initial_state = (void *)(uintptr_t)broker;
	for (size_t i = 0; i < more_count && count < CASES_MAX; i++) {
		tests[count] = more[i];
		tests[count++].initial_state = (void *)(uintptr_t)broker;
	}
	/* Its length is the array's: what is not used has no function. */
	return _cmocka_run_group_tests(broker->name, tests, count, NULL, NULL);
}
