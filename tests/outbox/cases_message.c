/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_message.c - a row as a CloudEvent.
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "outbox/message.h"

static void headers_that_are_none_park_the_row(void **state)
{
	static const struct {
		const char *json;
		int count;
	} cases[] = {
		{"", 0},
		{"{}", 0},
		{"{\"a\":\"b\",\"c\":\"\\u00e4\\\"\",\"n\":1.5,\"t\":true}", 4},
		{"{\"a\":null}", -1},
		{"{\"a\":{}}", -1},
		{"[]", -1},
		{"{", -1},
		{"\"a\"", -1},
	};
	struct hapax_field fields[4];
	struct hapax_buf scratch;

	(void)state;
	hx_buf_init(&scratch, 4096);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hx_buf_clear(&scratch);
		assert_int_equal(
			hx_outbox_headers_read(
				hapax_bytes_from_text(cases[i].json), &scratch, fields, 4),
			cases[i].count);
	}
	assert_int_equal(
		hx_outbox_headers_read(hapax_bytes_from_text(cases[2].json), &scratch, fields, 3),
		-1);
	assert_int_equal(
		hx_outbox_headers_read(hapax_bytes_from_text(cases[2].json), &scratch, fields, 4),
		4);
	assert_memory_equal(fields[1].value.data, "\xc3\xa4\"", 3);
	assert_memory_equal(fields[2].value.data, "1.5", 3);
	hx_buf_done(&scratch);
}

static void messages_are_cloudevents(void **state)
{
	struct hx_outbox_message message;
	struct hx_outbox_row row = {
		.created_ms = 1700000000123,
		.id = hapax_bytes_from_text("id-1"),
		.topic = hapax_bytes_from_text("orders"),
		.ordering_key = hapax_bytes_from_text("k"),
		.headers = hapax_bytes_from_text("{\"trace\":\"t\",\"CE_ID\":\"forged\"}"),
	};
	const struct {
		const char *name;
		const char *value;
	} expected[] = {
		{"ce_specversion", "1.0"},
		{"ce_id", "id-1"},
		{"ce_source", "/shop"},
		{"ce_type", "orders"},
		{"ce_time", "2023-11-14T22:13:20.123Z"},
		{"ce_partitionkey", "k"},
		{"id", "id-1"},
		{"trace", "t"},
	};

	(void)state;
	hx_outbox_message_init(&message, "ce_", "/shop");
	assert_true(hx_outbox_message_read(&message, &row));
	assert_int_equal(message.count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < message.count; i++) {
		assert_int_equal(message.fields[i].name.size, strlen(expected[i].name));
		assert_memory_equal(
			message.fields[i].name.data, expected[i].name, strlen(expected[i].name));
		assert_int_equal(message.fields[i].value.size, strlen(expected[i].value));
		assert_memory_equal(
			message.fields[i].value.data, expected[i].value, strlen(expected[i].value));
	}
	hx_outbox_message_done(&message);
}

static size_t count_of(const struct hx_outbox_message *message, const char *name, const char *value)
{
	size_t count = 0;

	for (size_t i = 0; i < message->count; i++)
		count += hx_bytes_equal(message->fields[i].name, hapax_bytes_from_text(name)) &&
			hx_bytes_equal(message->fields[i].value, hapax_bytes_from_text(value));
	return count;
}

/* D2: the names that consumers of a system expect, from the columns of the row. */
static void headers_by_option(void **state)
{
	struct hx_outbox_message message;
	struct hx_outbox_row row = {
		.id = hapax_bytes_from_text("id-1"),
		.topic = hapax_bytes_from_text("orders"),
		.ordering_key = hapax_bytes_from_text("order-17"),
		.headers = hapax_bytes_from_text("{\"eventID\":\"forged\",\"dataset\":\"own\"}"),
	};
	size_t before;

	(void)state;
	hx_outbox_message_init(&message, "ce_", "/shop");
	assert_true(hx_outbox_message_read(&message, &row));
	before = message.count;
	assert_int_equal(
		hx_outbox_message_add(
			&message,
			"eventId=id, eventType=type,aggregateId=ordering_key,dataset=subject",
			NULL),
		HAPAX_OK);
	assert_true(hx_outbox_message_read(&message, &row));
	/* A row's header of that name gives way, unless the column has no value. */
	assert_int_equal(message.count, before + 2);
	assert_int_equal(count_of(&message, "eventId", "id-1"), 1);
	assert_int_equal(count_of(&message, "eventID", "forged"), 0);
	assert_int_equal(count_of(&message, "eventType", "orders"), 1);
	assert_int_equal(count_of(&message, "aggregateId", "order-17"), 1);
	assert_int_equal(count_of(&message, "dataset", "own"), 1);
	hx_outbox_message_done(&message);
}

static void headers_that_are_wrong_are_refused(void **state)
{
	static const struct {
		const char *text;
		const char *complaint;
	} cases[] = {
		{"eventId", "is not NAME=COLUMN"},
		{"=id", "is not NAME=COLUMN"},
		{"a b=id", "is not NAME=COLUMN"},
		{"a=id,,b=id,c", "'c' is not NAME=COLUMN"},
		{"a-name-that-is-longer-than-31-bytes=id", "1 to 31"},
		{"a=payload", "use id, topic, ordering_key, type, source or subject"},
		{"a=", "has no known column"},
		{"a=id,A=type", "'A' is reserved, or given twice"},
		{"CE_ID=id", "is reserved"},
		{"id=id", "is reserved"},
		{"Content-Length=id", "is reserved"},
		{"a=id,b=id,c=id,d=id,e=id,f=id,g=id,h=id", "at most 7"},
	};
	struct hx_outbox_message message;
	struct hapax_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hx_outbox_message_init(&message, "ce_", "/shop");
		assert_int_equal(
			hx_outbox_message_add(&message, cases[i].text, &err), HAPAX_ERR_INVALID);
		if (strstr(err.message, cases[i].complaint) == NULL)
			fail_msg("%s: %s", cases[i].text, err.message);
		hx_outbox_message_done(&message);
	}
}

const struct outbox_test message_cases[] = {
	{"headers_by_option", headers_by_option},
	{"headers_that_are_wrong_are_refused", headers_that_are_wrong_are_refused},
	{"headers_that_are_none_park_the_row", headers_that_are_none_park_the_row},
	{"messages_are_cloudevents", messages_are_cloudevents},
	{NULL, NULL},
};
