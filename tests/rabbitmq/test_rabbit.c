/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to RabbitMQ: URLs, connecting, what a broker says about messages, and losing it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/rabbit.h"
#include "support/scale.h"

enum { WAIT_MS = 60 * 1000 };

static struct hx_rabbit_place place_of(const char *before, const char *variable, const char *behind)
{
	struct hx_rabbit_place place;
	struct hapax_error err;
	char url[512];
	const char *where = getenv(variable);

	assert_non_null(where);
	(void)snprintf(url, sizeof(url), "%s%s%s", before, where, behind);
	if (hx_rabbit_place_parse(url, &place, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	return place;
}

static void open_or_fail(struct hx_rabbit *rabbit, const struct hx_rabbit_place *place)
{
	struct hapax_error err;

	if (hx_rabbit_open(rabbit, place, WAIT_MS, &err) != HAPAX_OK ||
	    hx_rabbit_confirm(rabbit, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static uint64_t publish(
	struct hx_rabbit *rabbit, const char *exchange, const char *key, const char *id,
	struct hapax_bytes body)
{
	struct hapax_field header = {
		hapax_bytes_from_text("ce-type"), hapax_bytes_from_text("order.made")};
	struct hx_rabbit_message message = {
		.exchange = exchange,
		.routing_key = hapax_bytes_from_text(key),
		.message_id = hapax_bytes_from_text(id),
		.content_type = hapax_bytes_from_text("text/plain"),
		.time_ms = 1700000000000,
		.headers = &header,
		.header_count = 1,
		.body = body};
	struct hapax_error err;
	uint64_t tag = 0;

	if (hx_rabbit_publish(rabbit, &message, &tag, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	return tag;
}

static struct hx_rabbit_event next(struct hx_rabbit *rabbit)
{
	struct hx_rabbit_event event;
	struct hapax_error err;

	if (hx_rabbit_next(rabbit, WAIT_MS, &event, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	return event;
}

static void urls_are_taken_apart(void **state)
{
	struct hx_rabbit_place place;

	(void)state;
	assert_int_equal(hx_rabbit_place_parse("amqp://h", &place, NULL), HAPAX_OK);
	assert_string_equal(place.host, "h");
	assert_int_equal(place.port, 5672);
	assert_string_equal(place.user, "guest");
	assert_string_equal(place.vhost, "/");
	assert_int_equal(
		hx_rabbit_place_parse(
			"amqps://u%40:p%2F:@[::1]/v%2Fw?exchange=e&declare=quorum&queue=q&ca=%2Fc",
			&place, NULL),
		HAPAX_OK);
	assert_string_equal(place.host, "::1");
	assert_int_equal(place.port, 5671);
	assert_true(place.has_tls && place.declares);
	assert_string_equal(place.user, "u@");
	assert_string_equal(place.password, "p/:");
	assert_string_equal(place.vhost, "v/w");
	assert_string_equal(place.exchange, "e");
	assert_string_equal(place.queue, "q");
	assert_string_equal(place.authority_file, "/c");
}

static void bad_urls_are_refused_without_the_password(void **state)
{
	static const char *const bad[] = {
		"redis://h",         "amqp://",        "amqp://u:s3cret@",
		"amqp://h:0",        "amqp://h:70000", "amqp://h:x",
		"amqp://%zz@h",      "amqp://h/%",     "amqp://h?declare=classic",
		"amqp://h?s3cret=1", "amqp://[::1",    "amqp://u:s3cret@h/%00",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hx_rabbit_place place;
		struct hapax_error err = {0};

		assert_int_equal(hx_rabbit_place_parse(bad[i], &place, &err), HAPAX_ERR_INVALID);
		assert_int_not_equal(err.message[0], '\0');
		if (strstr(bad[i], "u:s3cret") != NULL)
			assert_null(strstr(err.message, "s3cret"));
	}
}

static void messages_are_confirmed(void **state)
{
	struct hx_rabbit_place place = place_of("amqp://guest:guest@", "HAPAX_TEST_RABBITMQ", "");
	struct hx_rabbit rabbit = {0};
	uint64_t confirmed = 0;
	struct hapax_error err;

	(void)state;
	open_or_fail(&rabbit, &place);
	if (hx_rabbit_declare_queue(&rabbit, hapax_bytes_from_text("confirmed"), &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	for (int i = 1; i <= 20; i++)
		assert_int_equal(
			publish(&rabbit, "", "confirmed", "id", hapax_bytes_from_text("hello")), i);
	while (confirmed < 20) {
		struct hx_rabbit_event event = next(&rabbit);

		assert_int_equal(event.happening, HX_RABBIT_ACK);
		confirmed = event.is_multiple ? event.tag : confirmed + 1;
	}
	hx_rabbit_close(&rabbit);
	hx_rabbit_close(&rabbit);
}

static void what_no_queue_wants_comes_back(void **state)
{
	struct hx_rabbit_place place = place_of("amqp://guest:guest@", "HAPAX_TEST_RABBITMQ", "");
	struct hx_rabbit rabbit = {0};
	struct hx_rabbit_event event;
	static char large[300 * 1024];

	(void)state;
	memset(large, 'x', sizeof(large));
	open_or_fail(&rabbit, &place);
	(void)publish(&rabbit, "", "nowhere", "id-1", (struct hapax_bytes){large, sizeof(large)});
	(void)publish(&rabbit, "", "nowhere", "id-2", (struct hapax_bytes){NULL, 0});
	event = next(&rabbit);
	assert_int_equal(event.happening, HX_RABBIT_RETURNED);
	assert_string_equal(event.message_id, "id-1");
	assert_int_equal(event.code, 312);
	assert_string_equal(event.text, "NO_ROUTE");
	event = next(&rabbit);
	if (event.happening == HX_RABBIT_ACK)
		event = next(&rabbit);
	assert_int_equal(event.happening, HX_RABBIT_RETURNED);
	assert_string_equal(event.message_id, "id-2");
	assert_int_equal(next(&rabbit).happening, HX_RABBIT_ACK);
	hx_rabbit_close(&rabbit);
}

static void what_the_broker_refuses_is_told(void **state)
{
	struct hx_rabbit_place place = place_of("amqp://guest:guest@", "HAPAX_TEST_RABBITMQ", "");
	struct hx_rabbit rabbit = {0};
	struct hx_rabbit_event event;

	(void)state;
	open_or_fail(&rabbit, &place);
	(void)publish(&rabbit, "no-such-exchange", "k", "id", hapax_bytes_from_text("x"));
	event = next(&rabbit);
	assert_int_equal(event.happening, HX_RABBIT_REFUSED);
	assert_int_equal(event.code, 404);
	assert_non_null(strstr(event.text, "no-such-exchange"));
	hx_rabbit_close(&rabbit);
}

static void messages_that_amqp_cannot_carry_are_not_sent(void **state)
{
	struct hx_rabbit_place place = place_of("amqp://guest:guest@", "HAPAX_TEST_RABBITMQ", "");
	struct hx_rabbit rabbit = {0};
	static char large[HX_RABBIT_HEADERS_SIZE_MAX + 1];
	struct hapax_field header = {hapax_bytes_from_text("h"), {large, sizeof(large)}};
	struct hx_rabbit_message message = {.exchange = "", .routing_key = {large, 256}};
	struct hapax_error err = {0};
	uint64_t tag = 0;

	(void)state;
	memset(large, 'x', sizeof(large));
	open_or_fail(&rabbit, &place);
	assert_int_equal(hx_rabbit_publish(&rabbit, &message, &tag, &err), HAPAX_ERR_INVALID);
	message.routing_key.size = 1;
	message.headers = &header;
	message.header_count = 1;
	assert_int_equal(hx_rabbit_publish(&rabbit, &message, &tag, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "'h'"));
	header.value.size = HX_RABBIT_HEADERS_SIZE_MAX - 16;
	assert_int_equal(hx_rabbit_publish(&rabbit, &message, &tag, &err), HAPAX_OK);
	assert_int_equal(next(&rabbit).happening, HX_RABBIT_RETURNED);
	hx_rabbit_close(&rabbit);
}

static void tls_peers_are_verified(void **state)
{
	struct hx_rabbit_place place =
		place_of("amqps://guest:guest@", "HAPAX_TEST_RABBITMQ_TLS", "");
	struct hx_rabbit rabbit = {0};
	struct hapax_error err = {0};

	(void)state;
	assert_int_equal(hx_rabbit_open(&rabbit, &place, WAIT_MS, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "ca=FILE"));
	(void)snprintf(
		place.authority_file, sizeof(place.authority_file), "%s",
		getenv("HAPAX_TEST_RABBITMQ_CA"));
	open_or_fail(&rabbit, &place);
	hx_rabbit_close(&rabbit);
}

static void failures_to_connect_have_hints(void **state)
{
	struct hx_rabbit_place place = place_of("amqp://guest:wrong@", "HAPAX_TEST_RABBITMQ", "");
	struct hx_rabbit rabbit = {0};
	struct hapax_error err = {0};

	(void)state;
	assert_int_equal(hx_rabbit_open(&rabbit, &place, WAIT_MS, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "password"));
	place = place_of("amqp://guest:guest@", "HAPAX_TEST_RABBITMQ", "/absent");
	assert_int_equal(hx_rabbit_open(&rabbit, &place, WAIT_MS, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "vhost"));
	place.port = 1;
	assert_int_equal(hx_rabbit_open(&rabbit, &place, WAIT_MS, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "does the broker run"));
	assert_false(hx_rabbit_is_open(&rabbit));
}

static void a_broker_that_dies_is_noticed(void **state)
{
	struct hx_rabbit_place place = place_of("amqp://guest:guest@", "HAPAX_TEST_RABBITMQ", "");
	struct hx_rabbit rabbit = {0};
	struct hx_rabbit_event event;
	struct hapax_error err;

	(void)state;
	open_or_fail(&rabbit, &place);
	/* Starting a broker takes seconds of CPU time; a connection that ends looks the same. */
	if (scale_is_proof())
		assert_int_equal(system(getenv("HAPAX_TEST_RABBITMQ_RESTART")), 0);
	else
		assert_int_equal(shutdown(amqp_get_sockfd(rabbit.conn), SHUT_RDWR), 0);
	assert_int_equal(hx_rabbit_next(&rabbit, WAIT_MS, &event, &err), HAPAX_ERR_UNAVAILABLE);
	hx_rabbit_close(&rabbit);
	open_or_fail(&rabbit, &place);
	hx_rabbit_close(&rabbit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(bad_urls_are_refused_without_the_password),
		cmocka_unit_test(messages_are_confirmed),
		cmocka_unit_test(what_no_queue_wants_comes_back),
		cmocka_unit_test(what_the_broker_refuses_is_told),
		cmocka_unit_test(messages_that_amqp_cannot_carry_are_not_sent),
		cmocka_unit_test(tls_peers_are_verified),
		cmocka_unit_test(failures_to_connect_have_hints),
		cmocka_unit_test(a_broker_that_dies_is_noticed),
	};

	return cmocka_run_group_tests_name("rabbit", tests, NULL, NULL);
}
