/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From PostgreSQL to RabbitMQ: the cases of all sinks (tests/outbox/sink_case.h), what is RabbitMQ's
 * own, and the example.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/rabbit.h"
#include "outbox/sink_case.h"
#include "support/postgres_case.h"

enum { WAIT_MS = 60 * 1000 };

/* ------------------------------------------------------------------ the broker */

static void open_broker(struct hx_rabbit *rabbit, const char *queue)
{
	struct hx_rabbit_place place;
	struct hapax_error err;
	char url[512];

	(void)snprintf(url, sizeof(url), "amqp://guest:guest@%s", getenv("HAPAX_TEST_RABBITMQ"));
	if (hx_rabbit_place_parse(url, &place, &err) != HAPAX_OK ||
	    hx_rabbit_open(rabbit, &place, WAIT_MS, &err) != HAPAX_OK ||
	    hx_rabbit_declare_queue(rabbit, hapax_bytes_from_text(queue), &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

/* The next message of a queue; false: there is none. */
static bool get_message(struct hx_rabbit *rabbit, const char *queue, amqp_message_t *ret_message)
{
	amqp_rpc_reply_t reply =
		amqp_basic_get(rabbit->conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes(queue), 1);

	assert_int_equal(reply.reply_type, AMQP_RESPONSE_NORMAL);
	if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD)
		return false;
	reply = amqp_read_message(rabbit->conn, HX_RABBIT_CHANNEL, ret_message, 0);
	assert_int_equal(reply.reply_type, AMQP_RESPONSE_NORMAL);
	return true;
}

static struct hapax_bytes bytes_of(amqp_bytes_t bytes)
{
	return (struct hapax_bytes){bytes.bytes, bytes.len};
}

static void take(const amqp_message_t *message, sink_message_fn *each, void *context)
{
	const amqp_basic_properties_t *properties = &message->properties;
	struct sink_message taken = {.body = bytes_of(message->body)};
	struct hapax_bytes id = bytes_of(properties->message_id);

	for (int i = 0; i < properties->headers.num_entries; i++) {
		const amqp_table_entry_t *entry = &properties->headers.entries[i];

		taken.fields[taken.count].name = bytes_of(entry->key);
		taken.fields[taken.count++].value = bytes_of(entry->value.value.bytes);
	}
	taken.fields[taken.count].name = hapax_bytes_from_text("content-type");
	taken.fields[taken.count++].value = bytes_of(properties->content_type);
	/* Persistent, and with the id that consumers know messages by. */
	assert_int_equal(properties->delivery_mode, 2);
	assert_int_equal(id.size, strlen(sink_message_field(&taken, "id")));
	assert_memory_equal(id.data, sink_message_field(&taken, "id"), id.size);
	each(context, &taken);
}

static void broker_read(const char *topic, sink_message_fn *each, void *context)
{
	struct hx_rabbit rabbit = {0};
	amqp_message_t message;

	open_broker(&rabbit, topic);
	while (get_message(&rabbit, topic, &message)) {
		take(&message, each, context);
		amqp_destroy_message(&message);
		amqp_maybe_release_buffers(rabbit.conn);
	}
	hx_rabbit_close(&rabbit);
}

static void broker_url(enum sink_mode mode, char *out, size_t size)
{
	struct hx_rabbit rabbit = {0};

	(void)snprintf(
		out, size, "amqp://guest:guest@%s/%s", getenv("HAPAX_TEST_RABBITMQ"),
		mode == SINK_STRICT ? "" : "?declare=quorum");
	if (mode == SINK_OPEN)
		return;
	open_broker(&rabbit, "parking");
	hx_rabbit_close(&rabbit);
}

static void broker_restart(void)
{
	assert_int_equal(system(getenv("HAPAX_TEST_RABBITMQ_RESTART")), 0);
}

/* ------------------------------------------------------------------ RabbitMQ's own */

static void an_exchange_that_is_not_there_parks(void **state)
{
	struct hapax_relay_options options;
	struct sink_case c;
	char url[600], text[300];

	sink_case_begin(&c, *state, "postgres:", SINK_STRICT);
	options = sink_case_options(&c);
	(void)snprintf(url, sizeof(url), "%s?exchange=absent", c.sink);
	options.sink = url;
	outbox_case_add(&c.outbox, "parking", "", "exchange", "x");
	sink_case_relay(&c, &options);
	outbox_case_text(
		&c.outbox, "SELECT state || error FROM {}hapax_outbox", text, sizeof(text));
	assert_non_null(
		strstr(text, "2RabbitMQ rejected the event: NOT_FOUND - no exchange 'absent'"));
	sink_case_end(&c);
}

/* The example, as its readers will run it: once with SQLite, once with PostgreSQL. */
static void the_example_ships_each_order_once(void **state)
{
	const char *example = getenv("HAPAX_TEST_EXAMPLE_OUTBOX");
	char command[2048], output[4096] = "", postgres[512];
	const char *const databases[] = {"sqlite:shop.db", postgres};
	PGconn *conn = postgres_case_connect();

	(void)state;
	(void)snprintf(
		postgres, sizeof(postgres), "postgres:///example%s", getenv("HAPAX_TEST_POSTGRES"));
	(void)postgres_case_query(conn, "DROP DATABASE IF EXISTS example");
	(void)postgres_case_query(conn, "CREATE DATABASE example");
	PQfinish(conn);
	if (example == NULL)
		skip();
	for (int i = 0; i < 2; i++) {
		FILE *pipe;
		size_t size;

		(void)snprintf(
			command, sizeof(command), "'%s' 'amqp://guest:guest@%s' '%s'", example,
			getenv("HAPAX_TEST_RABBITMQ"), databases[i]);
		pipe = popen(command, "r");
		assert_non_null(pipe);
		size = fread(output, 1, sizeof(output) - 1, pipe);
		output[size] = '\0';
		assert_int_equal(pclose(pipe), 0);
		assert_non_null(strstr(output, "order 3 was not placed"));
		assert_null(strstr(output, "shipped {\"order\":3}"));
		assert_non_null(strstr(output, "8 messages, 4 orders shipped"));
	}
}

int main(void)
{
	static const struct CMUnitTest more[] = {
		cmocka_unit_test(an_exchange_that_is_not_there_parks),
		cmocka_unit_test(the_example_ships_each_order_once),
	};
	static const struct sink_bad bad[] = {
		{"unroutable", "nowhere", 1, "no queue is bound"},
		{"large", "parking", 13000000, "RabbitMQ rejected the event: PRECONDITION_FAILED"},
	};
	static const struct sink_broker broker = {
		.name = "RabbitMQ",
		.prefix = "cloudEvents_",
		.absent = "amqp://127.0.0.1:1",
		.bad = bad,
		.bad_count = sizeof(bad) / sizeof(bad[0]),
		.url = broker_url,
		.restart = broker_restart,
		.read = broker_read,
	};

	return sink_cases_run(&broker, more, sizeof(more) / sizeof(more[0]));
}
