/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_command.c - what a command is told in its environment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "source/handler/command_handler.h"
#include "source/consume/in_flight.h"

enum { ROOM = 64 * 1024, LARGE = ROOM + 1, TRACES = 3 };

/* Of what may be large, its length. */
static const char *const told[] = {
	"sh", "-c",
	"printf '%s|%s|%s|%s|%s|%s' \"$HAPAX_DUPLICATE\" \"$HAPAX_TOKEN\" \"$HAPAX_OFFSET\" "
	"\"$TRACEPARENT\" \"${#TRACESTATE}\" \"${#BAGGAGE}\"",
	NULL};

static struct hx_in_flight *in_flight;
static struct hapax_message message;
static struct hapax_field headers[TRACES];
static char large[LARGE];

static int set_up(void **state)
{
	(void)state;
	memset(large, 'x', sizeof(large));
	memset(&message, 0, sizeof(message));
	message.topic = HX_BYTES_LIT("orders");
	message.place = HX_BYTES_LIT("42");
	message.headers = headers;
	in_flight = calloc(1, sizeof(*in_flight));
	if (in_flight == NULL)
		return -1;
	in_flight->message = &message;
	in_flight->token = 7;
	in_flight->attempt = 1;
	hx_envelope_init(&in_flight->envelope);
	hx_buf_init(&in_flight->call.body, LARGE);
	in_flight->call.work.private_call = &in_flight->call;
	/* As where the consumer was started within a trace, or by a command of another one. */
	return setenv("TRACEPARENT", "ours", 1) || setenv("TRACESTATE", "ours", 1) ||
		setenv("BAGGAGE", "ours", 1) || setenv("HAPAX_DUPLICATE", "ours", 1);
}

static int tear_down(void **state)
{
	(void)state;
	hx_buf_done(&in_flight->call.body);
	hx_envelope_done(&in_flight->envelope);
	free(in_flight);
	return 0;
}

static void add_header(const char *name, struct hapax_bytes value)
{
	headers[message.header_count++] = (struct hapax_field){hapax_bytes_from_text(name), value};
}

static void be_duplicate(void)
{
	in_flight->is_tagged = true;
	in_flight->duplicate.cause = HAPAX_CAUSE_PRODUCER;
	in_flight->duplicate.original = HX_BYTES_LIT("orders/0/41");
}

/* It begins with that. */
static void expect_told(const char *text)
{
	struct hx_command command = {told, INT64_MAX, LARGE};
	struct hapax_error err = {0};
	const struct hapax_buf *body = &in_flight->call.body;

	hx_buf_clear(&in_flight->call.body);
	assert_int_equal(hx_envelope_read(&in_flight->envelope, &message, &err), HAPAX_OK);
	assert_int_equal(hx_command_run_work(&in_flight->call.work, &command), HAPAX_RUN_OK);
	assert_true(body->size >= strlen(text));
	assert_memory_equal(body->data, text, strlen(text));
}

static void a_trace_goes_on(void **state)
{
	(void)state;
	add_header("traceparent", HX_BYTES_LIT("00-a-b-01"));
	add_header("tracestate", HX_BYTES_LIT("s=1"));
	add_header("baggage", HX_BYTES_LIT("b=22"));
	expect_told("|7|42|00-a-b-01|3|4");
}

static void a_message_without_a_trace_has_not_ours(void **state)
{
	(void)state;
	expect_told("|7|42||0|0");
}

/* Who sends a message must not be able to make a duplicate look like none. */
static void a_large_trace_pushes_nothing_out(void **state)
{
	(void)state;
	be_duplicate();
	add_header("traceparent", HX_BYTES_LIT("00-a-b-01"));
	add_header("tracestate", hx_bytes(large, LARGE));
	/* Whatever it leaves of the room. */
	for (size_t size = ROOM - 320; size <= ROOM; size += 10) {
		headers[1].value = hx_bytes(large, size);
		expect_told("producer|7|42|00-a-b-01|");
	}
}

static void a_large_key_pushes_nothing_out(void **state)
{
	(void)state;
	be_duplicate();
	message.key = hx_bytes(large, ROOM);
	add_header("baggage", hx_bytes(large, LARGE));
	expect_told("producer|7|42||0|0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_trace_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_message_without_a_trace_has_not_ours, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_large_trace_pushes_nothing_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_large_key_pushes_nothing_out, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
