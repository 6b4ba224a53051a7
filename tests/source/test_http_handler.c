/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_handler.c - a message that waited for a connection past its lease is not sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/system.h"
#include "source/consume/consumer.h"
#include "source/handler/http_handler.h"
#include "source/consume/in_flight.h"
#include "support/processor_case.h"

enum { TURNS_MAX = 100000, WITHIN_MS = 899, LEASE_MS = 900 };

static struct processor_case c;
static struct call call;
static struct hx_reactor reactor;
static struct hx_http_handler handler;
static struct hx_consumer consumer;
static struct hx_in_flight *in_flight;
static struct hapax_message message;
static int listener;
static int peer;

static void listen_on_any(char *url, size_t size)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t address_size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, address_size), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &address_size), 0);
	(void)snprintf(url, size, "http://127.0.0.1:%u/", (unsigned)ntohs(address.sin_port));
}

static int set_up(void **state)
{
	char url[64];

	(void)state;
	peer = -1;
	processor_case_begin(&c);
	listen_on_any(url, sizeof(url));
	memset(&consumer, 0, sizeof(consumer));
	memset(&call, 0, sizeof(call));
	message = (struct hapax_message){
		.origin = HX_BYTES_LIT("broker"),
		.topic = HX_BYTES_LIT("orders"),
		.time_ms = HAPAX_TIME_UNKNOWN};
	in_flight = calloc(1, sizeof(*in_flight));
	if (in_flight == NULL || hx_reactor_init(&reactor, hx_net_system(), NULL) != HAPAX_OK ||
	    hx_http_handler_init(&handler, &reactor, NULL, url, 1, NULL) != HAPAX_OK)
		return -1;
	handler.max_run_ms = INT64_MAX;
	in_flight->consumer = &consumer;
	in_flight->message = &message;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	handler.base.ops->forget(&handler.base, in_flight);
	hx_http_client_close(&handler.client);
	for (int i = 0; i < TURNS_MAX && handler.client.link_count > 0; i++)
		hx_reactor_turn(&reactor, 0);
	hx_http_handler_done(&handler);
	hx_reactor_done(&reactor);
	hx_buf_done(&in_flight->result_headers);
	free(in_flight);
	close(listener);
	if (peer >= 0)
		close(peer);
	processor_case_done(&c);
	return 0;
}

/* It is told to run, and ms pass before there is a connection. */
static void let_it_wait(int64_t ms)
{
	call_begin(&c, &call, "key", 0);
	assert_true(call_was_told(&call, HAPAX_STEP_RUN));
	in_flight->run = call.run;
	in_flight->state = HX_IN_FLIGHT_RUNNING;
	consumer.running = 1;
	handler.base.ops->start(&handler.base, in_flight);
	assert_int_equal(handler.client.dialed, 1);
	store_case_advance(&c.store, ms);
	for (int i = 0; peer < 0 && i < TURNS_MAX; i++) {
		peer = accept(listener, NULL, NULL);
		hx_reactor_turn(&reactor, 0);
	}
	assert_true(peer >= 0);
}

static void expect_finish(enum hapax_run_outcome outcome)
{
	for (int i = 0; in_flight->state == HX_IN_FLIGHT_RUNNING && i < TURNS_MAX; i++)
		hx_reactor_turn(&reactor, 0);
	assert_int_equal(in_flight->state, HX_IN_FLIGHT_FINISHING);
	assert_int_equal(in_flight->outcome, outcome);
	call_finish_failed(&call, in_flight->outcome, "over");
}

static void a_message_that_waited_within_its_lease_is_sent(void **state)
{
	static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
	char text[1024] = "";

	(void)state;
	let_it_wait(WITHIN_MS);
	for (int i = 0; recv(peer, text, sizeof(text) - 1, MSG_DONTWAIT) <= 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&reactor, 0);
	assert_memory_equal(text, "POST / HTTP/1.1\r\n", 17);
	assert_int_equal(write(peer, answer, strlen(answer)), strlen(answer));
	expect_finish(HAPAX_RUN_OK);
}

/* I1: another node may have taken over, and sent it. */
static void a_message_that_waited_past_its_lease_is_not_sent(void **state)
{
	char byte;

	(void)state;
	let_it_wait(LEASE_MS);
	expect_finish(HAPAX_RUN_TRANSIENT);
	assert_string_equal(in_flight->error_text, "the lease lapsed before the request was sent");
	assert_int_equal(read(peer, &byte, 1), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_message_that_waited_within_its_lease_is_sent),
		CASE(a_message_that_waited_past_its_lease_is_not_sent),
	};

	return cmocka_run_group_tests_name("http_handler", tests, NULL, NULL);
}
