/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_message.c - a row as a CloudEvent.
 */
#include "outbox/cases.h"

#include <stdio.h>
#include <string.h>

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

const struct outbox_test message_cases[] = {
	{"headers_that_are_none_park_the_row", headers_that_are_none_park_the_row},
	{"messages_are_cloudevents", messages_are_cloudevents},
	{NULL, NULL},
};
