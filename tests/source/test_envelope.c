/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_envelope.c - messages as events, and what makes two of them the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "source/consume/advice.h"
#include "source/consume/envelope.h"
#include "source/consume/identity.h"

static struct hx_envelope envelope;
static struct hapax_field headers[HX_ENVELOPE_HEADERS_MAX + 8];
static struct hapax_message message;

static void begin(const char *data)
{
	hx_envelope_init(&envelope);
	message = (struct hapax_message){
		.origin = HX_BYTES_LIT("kafka://b:9092"),
		.topic = HX_BYTES_LIT("orders"),
		.partition = 3,
		.place = HX_BYTES_LIT("17"),
		.key = HX_BYTES_LIT("customer-1"),
		.data = hapax_bytes_from_text(data),
		.headers = headers,
		.time_ms = 1000};
}

static void header(const char *name, const char *value)
{
	headers[message.header_count++] =
		(struct hapax_field){hapax_bytes_from_text(name), hapax_bytes_from_text(value)};
}

static void event_headers(const char *prefix)
{
	static char names[4][32];
	static const char *const values[4] = {"1.0", "order.paid", "/shop", "A-1"};
	static const char *const attributes[4] = {"specversion", "type", "source", "id"};

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "%s%s", prefix, attributes[i]);
		header(names[i], values[i]);
	}
}

static enum hapax_status read_it(void)
{
	return hx_envelope_read(&envelope, &message, NULL);
}

static void key_is(const char *strategy, const char *expected)
{
	struct hx_identity identity;
	struct hapax_key key = HAPAX_KEY_INIT;
	struct hapax_buf *scratch = hapax_buf_new(1 << 20);
	struct hapax_error err = {.message = ""};
	bool lacks_id;

	assert_int_equal(hx_identity_init(&identity, strategy, NULL, &err), HAPAX_OK);
	assert_int_equal(
		hx_identity_make(&identity, &envelope, scratch, &key, &lacks_id, &err), HAPAX_OK);
	assert_string_equal(key.key, expected);
	hx_identity_done(&identity);
	hapax_buf_free(scratch);
}

static void every_binding_has_its_prefix(void **state)
{
	static const char *const prefixes[] = {"ce_", "ce-", "cloudEvents:", "cloudEvents_", "CE_"};

	(void)state;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		begin("{\"a\":1}");
		event_headers(prefixes[i]);
		header("content-type", "application/json");
		assert_int_equal(read_it(), HAPAX_OK);
		assert_true(envelope.is_cloudevent);
		assert_true(hx_bytes_equal(envelope.type, HX_BYTES_LIT("order.paid")));
		assert_int_equal(envelope.event.data_kind, HAPAX_DATA_JSON);
		/* The key that the gateway makes of the same event. */
		key_is(NULL, "/shop:A-1");
		hx_envelope_done(&envelope);
	}
}

static void structured_and_binary_are_the_same_event(void **state)
{
	(void)state;
	begin("{\"specversion\":\"1.0\",\"type\":\"t\",\"source\":\"/shop\",\"id\":\"A-1\",\"data\":{\"a\":1}}");
	header("content-type", "application/cloudevents+json; charset=utf-8");
	assert_int_equal(read_it(), HAPAX_OK);
	assert_true(envelope.is_cloudevent);
	key_is(NULL, "/shop:A-1");
	key_is("field:data.a", "1");
	hx_envelope_done(&envelope);
}

/* Version 1 of Python's SDK: content-type is that of the data, or missing. */
static void an_event_needs_no_content_type(void **state)
{
	static const char event[] = " {\"specversion\":\"1.0\",\"type\":\"t\",\"source\":\"/shop\","
				    "\"id\":\"A-1\",\"data\":{\"a\":1}}";
	static const char *const types[] = {NULL, "application/json", "text/plain"};
	static const char *const plain[] = {
		"{\"specversion\":\"1.0\",\"type\":\"t\",\"source\":\"/shop\",\"data\":1}",
		"{\"event\":{\"specversion\":\"1.0\",\"type\":\"t\",\"source\":\"/s\",\"id\":\"1\"}}",
		"{\"specversion\":\"1.0\"",
		"\"specversion\"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		begin(event);
		if (types[i] != NULL)
			header("content-type", types[i]);
		assert_int_equal(read_it(), HAPAX_OK);
		assert_true(envelope.is_cloudevent);
		key_is(NULL, "/shop:A-1");
		assert_true(hx_bytes_equal(
			envelope.content_type,
			hapax_bytes_from_text(types[i] == NULL ? "" : types[i])));
		hx_envelope_done(&envelope);
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		begin(plain[i]);
		assert_int_equal(read_it(), HAPAX_OK);
		assert_false(envelope.is_cloudevent);
		assert_ptr_equal(envelope.event.data.data, message.data.data);
		hx_envelope_done(&envelope);
	}
	begin("{\"a\":1}");
	event_headers("ce_");
	assert_int_equal(read_it(), HAPAX_OK);
	assert_true(envelope.is_cloudevent);
	key_is(NULL, "/shop:A-1");
	hx_envelope_done(&envelope);
}

/* The strategy that fits a message without an ID. */
static void advice_names_what_looks_like_an_id(void **state)
{
	static const struct {
		const char *data;
		const char *header;
		const char *expected;
	} cases[] = {
		{"{\"a\":{\"id\":1},\"order_id\":7,\"id\":\"x\"}", NULL, "field:data.id"},
		{"{\"orderId\":7,\"user_id\":1}", NULL, "field:data.orderId"},
		{"{\"order_id\":{},\"trace_id\":\"t\",\"paid\":true}", NULL, "content"},
		{"{\"a.id\":1,\"\\u0069d\":2}", NULL, "content"},
		{"{\"id\":1", NULL, "content"},
		{"[{\"id\":1}]", NULL, "content"},
		{"x", "X-Request-Id", "header:X-Request-Id"},
		{"{\"order_id\":1}", "X-Event-Id", "header:X-Event-Id"},
		{"{\"id\":1}", "X-Order-Id", "field:data.id"},
		{"x", "traceparent", "content"},
		{"x", "correlation-id", "content"},
		{"", NULL, "content"},
	};
	char strategy[HX_ADVICE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(cases[i].data);
		if (cases[i].header != NULL)
			header(cases[i].header, "v");
		assert_int_equal(read_it(), HAPAX_OK);
		hx_advice_strategy(&envelope, strategy);
		assert_string_equal(strategy, cases[i].expected);
		hx_envelope_done(&envelope);
	}
}

/* Header values are plain text there: nothing is percent-decoded. */
static void values_are_taken_as_they_are(void **state)
{
	(void)state;
	begin("");
	header("ce_specversion", "1.0");
	header("ce_type", "\"t\"");
	header("ce_source", "/a%20b");
	header("ce_id", "100%41");
	assert_int_equal(read_it(), HAPAX_OK);
	assert_true(hx_bytes_equal(envelope.cloudevent.id, HX_BYTES_LIT("100%41")));
	assert_true(hx_bytes_equal(envelope.cloudevent.type, HX_BYTES_LIT("\"t\"")));
	assert_true(hx_bytes_equal(envelope.cloudevent.source, HX_BYTES_LIT("/a%20b")));
	hx_envelope_done(&envelope);
}

static void malformed_events_are_refused(void **state)
{
	(void)state;
	begin("{}");
	header("ce_id", "1");
	assert_int_equal(read_it(), HAPAX_ERR_INVALID);
	hx_envelope_done(&envelope);
	begin("{}");
	event_headers("ce_");
	header("ce_id", "2");
	assert_int_equal(read_it(), HAPAX_ERR_INVALID);
	hx_envelope_done(&envelope);
	begin("{");
	header("content-type", "application/cloudevents+json");
	assert_int_equal(read_it(), HAPAX_ERR_INVALID);
	hx_envelope_done(&envelope);
	begin("[]");
	header("content-type", "application/cloudevents-batch+json");
	assert_int_equal(read_it(), HAPAX_ERR_UNSUPPORTED);
	hx_envelope_done(&envelope);
	begin("{}");
	header("content-type", "application/cloudevents+avro");
	assert_int_equal(read_it(), HAPAX_ERR_UNSUPPORTED);
	hx_envelope_done(&envelope);
	begin("{}");
	for (int i = 0; i < HX_ENVELOPE_HEADERS_MAX + 1; i++)
		header("x", "y");
	assert_int_equal(read_it(), HAPAX_ERR_LIMIT);
	hx_envelope_done(&envelope);
}

static void other_messages_are_found_by_a_header_or_their_place(void **state)
{
	(void)state;
	begin("{\"order\":7}");
	assert_int_equal(read_it(), HAPAX_OK);
	assert_false(envelope.is_cloudevent);
	assert_int_equal(envelope.event.data_kind, HAPAX_DATA_JSON);
	key_is(NULL, "kafka%3A//b%3A9092:orders:3:17:1000");
	key_is("field:data.order", "7");
	key_is("field:meta.key", "customer-1");
	hx_envelope_done(&envelope);
	begin("plain text");
	header("eventId", "018f");
	header("eventType", "order.paid");
	assert_int_equal(read_it(), HAPAX_OK);
	assert_int_equal(envelope.event.data_kind, HAPAX_DATA_BYTES);
	assert_true(hx_bytes_equal(envelope.type, HX_BYTES_LIT("order.paid")));
	key_is(NULL, "018f");
	hx_envelope_done(&envelope);
	begin("x");
	header("eventId", "018f");
	header("idempotency-key", "I-1");
	assert_int_equal(read_it(), HAPAX_OK);
	key_is(NULL, "I-1");
	hx_envelope_done(&envelope);
}

static void a_tombstone_is_a_message(void **state)
{
	(void)state;
	begin("");
	message.data = hx_bytes(NULL, 0);
	message.flags = HAPAX_MESSAGE_TOMBSTONE;
	headers[message.header_count++] =
		(struct hapax_field){HX_BYTES_LIT("empty"), hx_bytes(NULL, 0)};
	assert_int_equal(read_it(), HAPAX_OK);
	assert_int_equal(envelope.event.data.size, 0);
	key_is(NULL, "kafka%3A//b%3A9092:orders:3:17:1000");
	hx_envelope_done(&envelope);
}

static void assert_event(const char *id, const char *type, const char *source, int64_t time_ms)
{
	struct hapax_cause cause = hx_envelope_cause(&envelope, HX_BYTES_LIT("orders/3/17"));

	assert_true(hx_bytes_equal(cause.id, hapax_bytes_from_text(id)));
	assert_true(hx_bytes_equal(cause.type, hapax_bytes_from_text(type)));
	assert_true(hx_bytes_equal(cause.source, hapax_bytes_from_text(source)));
	assert_int_equal(cause.time_ms, time_ms);
	hx_envelope_done(&envelope);
}

/* A10: the attributes of the CloudEvent; else what the broker knows. Its key is not an id. */
static void a_message_is_remembered_as_an_event(void **state)
{
	(void)state;
	begin("{}");
	event_headers("ce_");
	header("ce_time", "1970-01-01T00:00:05Z");
	header("message-id", "m-1");
	assert_int_equal(read_it(), HAPAX_OK);
	assert_event("A-1", "order.paid", "/shop", 5000);
	begin("{}");
	header("Idempotency-Key", "k");
	header("eventType", "order.made");
	header("Message-Id", "m-1");
	assert_int_equal(read_it(), HAPAX_OK);
	assert_event("m-1", "order.made", "", 1000);
	begin("{}");
	message.time_ms = HAPAX_TIME_UNKNOWN;
	assert_int_equal(read_it(), HAPAX_OK);
	assert_event("orders/3/17", "", "", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_binding_has_its_prefix),
		cmocka_unit_test(structured_and_binary_are_the_same_event),
		cmocka_unit_test(an_event_needs_no_content_type),
		cmocka_unit_test(advice_names_what_looks_like_an_id),
		cmocka_unit_test(values_are_taken_as_they_are),
		cmocka_unit_test(malformed_events_are_refused),
		cmocka_unit_test(other_messages_are_found_by_a_header_or_their_place),
		cmocka_unit_test(a_tombstone_is_a_message),
		cmocka_unit_test(a_message_is_remembered_as_an_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
