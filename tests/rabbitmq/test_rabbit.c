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

static void publish(
	struct hx_rabbit *rabbit, const char *exchange, const char *key, const char *id,
	struct hapax_bytes body, struct hx_rabbit_sent *sent)
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

	if (hx_rabbit_publish(rabbit, &message, sent, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
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
	struct hx_rabbit_sent sent[20], *taken;
	bool is_confirmed[20] = {false};
	struct hapax_error err;

	(void)state;
	open_or_fail(&rabbit, &place);
	for (int i = 0; i < 2; i++)
		if (hx_rabbit_declare_queue(&rabbit, hapax_bytes_from_text("confirmed"), &err) !=
		    HAPAX_OK)
			fail_msg("%s", err.message);
	assert_int_equal(rabbit.declared_count, 1);
	for (size_t i = 0; i < 20; i++) {
		sent[i].owner = &is_confirmed[i];
		publish(&rabbit, "", "confirmed", "id", hapax_bytes_from_text("hello"), &sent[i]);
		assert_int_equal(sent[i].tag, i + 1);
	}
	while (rabbit.sent != NULL) {
		struct hx_rabbit_event event = next(&rabbit);

		assert_int_equal(event.happening, HX_RABBIT_ACK);
		while ((taken = hx_rabbit_take_sent(&rabbit, event.tag, event.is_multiple)) != NULL)
			*(bool *)taken->owner = true;
	}
	for (size_t i = 0; i < 20; i++)
		assert_true(is_confirmed[i]);
	hx_rabbit_close(&rabbit);
	hx_rabbit_close(&rabbit);
}

/* Send this many on a connection that is there for its list alone. */
static void send_in_a_row(struct hx_rabbit *rabbit, struct hx_rabbit_sent *sent, size_t count)
{
	for (size_t i = 0; i < count; i++)
		publish(rabbit, "", "nowhere", "id", hapax_bytes_from_text(""), &sent[i]);
}

static void answers_are_about_one_message_or_all_before(void **state)
{
	struct hx_rabbit_place place = place_of("amqp://guest:guest@", "HAPAX_TEST_RABBITMQ", "");
	struct hx_rabbit rabbit = {0};
	struct hx_rabbit_sent sent[6];

	(void)state;
	open_or_fail(&rabbit, &place);
	send_in_a_row(&rabbit, sent, 5);
	/* The last, one in the middle, one that was answered, one that never was. */
	assert_ptr_equal(hx_rabbit_take_sent(&rabbit, 5, false), &sent[4]);
	assert_ptr_equal(hx_rabbit_take_sent(&rabbit, 2, false), &sent[1]);
	assert_null(hx_rabbit_take_sent(&rabbit, 2, false));
	assert_null(hx_rabbit_take_sent(&rabbit, 9, false));
	/* The list has its end again. */
	send_in_a_row(&rabbit, &sent[5], 1);
	assert_int_equal(sent[5].tag, 6);
	assert_ptr_equal(hx_rabbit_take_sent(&rabbit, 3, true), &sent[0]);
	assert_ptr_equal(hx_rabbit_take_sent(&rabbit, 3, true), &sent[2]);
	assert_null(hx_rabbit_take_sent(&rabbit, 3, true));
	/* The connection ends: what is left is taken, and nothing of it is there on the next. */
	hx_rabbit_close(&rabbit);
	assert_ptr_equal(hx_rabbit_take_sent(&rabbit, UINT64_MAX, true), &sent[3]);
	open_or_fail(&rabbit, &place);
	assert_null(hx_rabbit_take_sent(&rabbit, UINT64_MAX, true));
	send_in_a_row(&rabbit, sent, 1);
	assert_ptr_equal(hx_rabbit_take_sent(&rabbit, 1, false), &sent[0]);
	assert_null(rabbit.sent);
	hx_rabbit_close(&rabbit);
}

static void queues_are_asked_for_once(void **state)
{
	struct hx_rabbit_place place = place_of("amqp://guest:guest@", "HAPAX_TEST_RABBITMQ", "");
	struct hapax_bytes classic = hapax_bytes_from_text("classic");
	struct hx_rabbit rabbit = {0};
	struct hapax_error err;

	(void)state;
	open_or_fail(&rabbit, &place);
	(void)amqp_queue_declare(
		rabbit.conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes("classic"), 0, 0, 0, 0,
		amqp_empty_table);
	assert_int_equal(hx_rabbit_declare_queue(&rabbit, classic, &err), HAPAX_ERR_INVALID);
	hx_rabbit_close(&rabbit);
	/* A refusal is not remembered, unless the caller says so. */
	open_or_fail(&rabbit, &place);
	assert_int_equal(hx_rabbit_declare_queue(&rabbit, classic, &err), HAPAX_ERR_INVALID);
	hx_rabbit_close(&rabbit);
	open_or_fail(&rabbit, &place);
	hx_rabbit_remember_queue(&rabbit, classic);
	assert_int_equal(hx_rabbit_declare_queue(&rabbit, classic, &err), HAPAX_OK);
	/* More names than there are places for: the first is asked for again, and refused. */
	for (int i = 0; i < HX_RABBIT_DECLARED_MAX; i++)
		hx_rabbit_remember_queue(&rabbit, hapax_bytes_from_text("other"));
	assert_int_equal(hx_rabbit_declare_queue(&rabbit, classic, &err), HAPAX_ERR_INVALID);
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
	publish(&rabbit, "", "nowhere", "id-1", (struct hapax_bytes){large, sizeof(large)}, NULL);
	publish(&rabbit, "", "nowhere", "id-2", (struct hapax_bytes){NULL, 0}, NULL);
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
	publish(&rabbit, "no-such-exchange", "k", "id", hapax_bytes_from_text("x"), NULL);
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

	(void)state;
	memset(large, 'x', sizeof(large));
	open_or_fail(&rabbit, &place);
	assert_int_equal(hx_rabbit_publish(&rabbit, &message, NULL, &err), HAPAX_ERR_INVALID);
	message.routing_key.size = 1;
	message.headers = &header;
	message.header_count = 1;
	assert_int_equal(hx_rabbit_publish(&rabbit, &message, NULL, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "'h'"));
	header.value.size = HX_RABBIT_HEADERS_SIZE_MAX - 16;
	assert_int_equal(hx_rabbit_publish(&rabbit, &message, NULL, &err), HAPAX_OK);
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
	assert_non_null(strstr(err.message, "check that the broker is running"));
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
		cmocka_unit_test(answers_are_about_one_message_or_all_before),
		cmocka_unit_test(queues_are_asked_for_once),
		cmocka_unit_test(what_no_queue_wants_comes_back),
		cmocka_unit_test(what_the_broker_refuses_is_told),
		cmocka_unit_test(messages_that_amqp_cannot_carry_are_not_sent),
		cmocka_unit_test(tls_peers_are_verified),
		cmocka_unit_test(failures_to_connect_have_hints),
		cmocka_unit_test(a_broker_that_dies_is_noticed),
	};

	return cmocka_run_group_tests_name("rabbit", tests, NULL, NULL);
}
