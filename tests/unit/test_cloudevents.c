/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in three modes, through the HTTP reader and cut at every byte: what they are,
 * and what is refused with which status. A4: identity is source and id, in every mode.
 */
#include "wire/cloudevents/cloudevents.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/http1/http1.h"

#include "cloudevents_cases.h"

enum {
	CASE_COUNT = sizeof(cases) / sizeof(cases[0]),
	TEXT_SIZE = 4096,
	BATCH_MAX = 3,
};

/* A message, and the room to read it in. */
struct reading {
	struct hx_http1_head head;
	struct hapax_buf body;
	struct hapax_buf scratch;
	char text[TEXT_SIZE];
	size_t text_size;
};

__attribute__((format(printf, 2, 3))) static void say(
	struct reading *reading, const char *format, ...)
{
	size_t room = TEXT_SIZE - reading->text_size;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(reading->text + reading->text_size, room, format, arguments);
	va_end(arguments);
	assert_true(size >= 0 && (size_t)size < room);
	reading->text_size += (size_t)size;
}

static void say_bytes(struct reading *reading, struct hapax_bytes bytes)
{
	say(reading, "%.*s", (int)bytes.size, bytes.size == 0 ? "" : (const char *)bytes.data);
}

static bool is_shown_first(struct hapax_bytes name)
{
	return hx_bytes_equal(name, HX_BYTES_LIT("id")) ||
		hx_bytes_equal(name, HX_BYTES_LIT("source")) ||
		hx_bytes_equal(name, HX_BYTES_LIT("type")) ||
		hx_bytes_equal(name, HX_BYTES_LIT("specversion"));
}

static void say_event(struct reading *reading, const struct hx_cloudevent *event)
{
	say(reading, "[");
	say_bytes(reading, event->source);
	say(reading, " ");
	say_bytes(reading, event->id);
	say(reading, " ");
	say_bytes(reading, event->type);
	say(reading, " %c:", event->data_kind == HAPAX_DATA_JSON ? 'J' : 'B');
	say_bytes(reading, event->data);
	for (size_t i = 0; i < event->attribute_count; i++) {
		if (is_shown_first(event->attributes[i].name))
			continue;
		say(reading, " ");
		say_bytes(reading, event->attributes[i].name);
		say(reading, "=");
		say_bytes(reading, event->attributes[i].value);
	}
	say(reading, "]");
}

static unsigned deserved(enum hapax_status status)
{
	switch (status) {
	case HAPAX_ERR_UNSUPPORTED: return 415;
	case HAPAX_ERR_LIMIT: return 413;
	case HAPAX_ERR_INVALID: return 400;
	default: return 500;
	}
}

static enum hapax_status read_batch(struct reading *reading, struct hapax_error *err)
{
	struct hapax_bytes body = hx_bytes(reading->body.data, reading->body.size);
	struct hx_cloudevents_batch batch;
	struct hx_cloudevent event;
	enum hapax_status status =
		hx_cloudevents_batch_init(&batch, body, BATCH_MAX, &reading->scratch, err);
	size_t count = 0;

	if (status != HAPAX_OK)
		return status;
	say(reading, "L");
	while (hx_cloudevents_batch_next(&batch, &event)) {
		say_event(reading, &event);
		count++;
	}
	assert_int_equal(count, batch.count);
	return HAPAX_OK;
}

/* As the gateway reads a message whose head and body are there. */
static enum hapax_status read_message(struct reading *reading, struct hapax_error *err)
{
	struct hapax_bytes body = hx_bytes(reading->body.data, reading->body.size);
	struct hapax_bytes type = hx_http1_known(&reading->head, HX_HTTP1_CONTENT_TYPE);
	struct hx_cloudevent event;
	enum hx_cloudevents_mode mode;
	enum hapax_status status = hx_cloudevents_detect(type, &mode, err);

	if (status == HAPAX_OK && mode == HX_CLOUDEVENTS_BATCHED)
		return read_batch(reading, err);
	if (status == HAPAX_OK && mode == HX_CLOUDEVENTS_STRUCTURED)
		status = hx_cloudevent_read_structured(&event, body, &reading->scratch, err);
	else if (status == HAPAX_OK)
		status = hx_cloudevent_read_binary(
			&event, reading->head.fields, reading->head.field_count, type, body,
			&reading->scratch, err);
	if (status != HAPAX_OK)
		return status;
	say(reading, "%c", mode == HX_CLOUDEVENTS_BINARY ? 'B' : 'S');
	say_event(reading, &event);
	return HAPAX_OK;
}

static void read_bytes(struct reading *reading, const char *data, size_t size, size_t cut)
{
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hx_http1_event event = {HX_HTTP1_MORE, 0, {NULL, 0}};
	enum hapax_status status;
	struct hx_http1 http;
	size_t used = 0;
	size_t have = cut;

	reading->text_size = 0;
	hx_buf_clear(&reading->body);
	hx_http1_init(&http, HX_HTTP1_SERVER, NULL);
	while (event.type != HX_HTTP1_END) {
		if (hx_http1_next(
			    &http, hx_bytes(data + used, have - used), &reading->head, &event,
			    &err) != HAPAX_OK) {
			say(reading, "%u %s", hx_http1_reply_status(&http), err.message);
			return;
		}
		used += event.used;
		if (event.type == HX_HTTP1_DATA)
			assert_int_equal(
				hx_buf_append(&reading->body, event.data.data, event.data.size),
				HAPAX_OK);
		if (event.type == HX_HTTP1_MORE)
			have = size;
	}
	status = read_message(reading, &err);
	if (status != HAPAX_OK) {
		reading->text_size = 0;
		say(reading, "%u %s", deserved(status), err.message);
	}
}

static size_t make_message(const struct cloudevents_case *test, char out[TEXT_SIZE])
{
	int size = snprintf(
		out, TEXT_SIZE, "POST / HTTP/1.1\r\nHost: h\r\n%sContent-Length: %zu\r\n\r\n%s",
		test->fields, strlen(test->body), test->body);

	assert_true(size > 0 && size < TEXT_SIZE);
	return (size_t)size;
}

static void begin(struct reading *reading)
{
	hx_buf_init(&reading->body, 1 << 20);
	hx_buf_init(&reading->scratch, 1 << 20);
}

static void end(struct reading *reading)
{
	hx_buf_done(&reading->body);
	hx_buf_done(&reading->scratch);
}

static void there_are_at_least_150_cases(void **state)
{
	(void)state;
	assert_true(CASE_COUNT >= 150);
}

static void events_are_the_same_however_they_are_cut(void **state)
{
	static struct reading whole;
	static struct reading parts;
	static char message[TEXT_SIZE];

	(void)state;
	begin(&whole);
	begin(&parts);
	for (size_t i = 0; i < CASE_COUNT; i++) {
		const char *expected = cases[i].expected;
		size_t size = make_message(&cases[i], message);
		size_t compared = expected[0] == '4' ? strlen(expected) : SIZE_MAX;

		read_bytes(&whole, message, size, size);
		if (strncmp(whole.text, expected, compared) != 0)
			fail_msg(
				"case %zu, %s%s\n got %s\nwant %s", i, cases[i].fields,
				cases[i].body, whole.text, expected);
		for (size_t cut = 1; cut < size; cut++) {
			read_bytes(&parts, message, size, cut);
			assert_string_equal(whole.text, parts.text);
		}
	}
	end(&whole);
	end(&parts);
}

/* A text that lies at the end of its memory, and scratch that just suffices. */
static void nothing_is_read_beyond_the_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASE_COUNT; i++) {
		size_t size = strlen(cases[i].body);
		char *copy = malloc(size + 1);
		struct hapax_buf scratch;
		struct hx_cloudevent event;
		struct hapax_error err;

		assert_non_null(copy);
		memcpy(copy + 1, cases[i].body, size);
		hx_buf_init(&scratch, size);
		if (hx_cloudevent_read_structured(
			    &event, hx_bytes(copy + 1, size), &scratch, &err) != HAPAX_OK)
			assert_int_equal(err.status, HAPAX_ERR_INVALID);
		hx_buf_done(&scratch);
		free(copy);
	}
}

static void what_does_not_fit_is_a_limit(void **state)
{
	static const char text[] =
		"{\"id\":\"\\u0031\",\"source\":\"s\",\"type\":\"t\",\"specversion\":\"1.0\"}";
	const struct hapax_field field = {HX_BYTES_LIT("ce-id"), HX_BYTES_LIT("%41")};
	struct hx_cloudevent event;
	struct hapax_buf scratch;

	(void)state;
	hx_buf_init(&scratch, 4);
	assert_int_equal(
		hx_cloudevent_read_structured(
			&event, hx_bytes(text, sizeof(text) - 1), &scratch, NULL),
		HAPAX_ERR_LIMIT);
	assert_int_equal(
		hx_cloudevent_read_binary(
			&event, &field, 1, hx_bytes(NULL, 0), hx_bytes(NULL, 0), &scratch, NULL),
		HAPAX_ERR_LIMIT);
	hx_buf_done(&scratch);
}

static void make_key(const struct hx_cloudevent *event, struct hapax_key *ret)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_key_strategy *strategy = NULL;
	struct hapax_buf *scratch = hapax_buf_new(1 << 20);
	struct hapax_event view = hx_cloudevent_view(event, NULL, 0);
	struct hapax_error err;

	assert_int_equal(hapax_key_strategy_new("event-id", &options, &strategy, &err), HAPAX_OK);
	assert_int_equal(hapax_key_make(strategy, &view, scratch, ret, &err), HAPAX_OK);
	hapax_key_strategy_free(strategy);
	hapax_buf_free(scratch);
}

/* One event in every form has one key and one fingerprint. */
static void one_event_has_one_key_in_every_mode(void **state)
{
	static const struct hapax_field fields[] = {
		{HX_BYTES_LIT("ce-id"), HX_BYTES_LIT("a%20%E2%82%AC")},
		{HX_BYTES_LIT("CE-Source"), HX_BYTES_LIT("\"/s:x\"")},
		{HX_BYTES_LIT("ce-type"), HX_BYTES_LIT("t")},
		{HX_BYTES_LIT("ce-specversion"), HX_BYTES_LIT("1.0")},
	};
	static const struct hapax_bytes texts[] = {
		HX_BYTES_LIT("{\"id\":\"a \xe2\x82\xac\",\"source\":\"/s:x\",\"type\":\"t\","
			     "\"specversion\":\"1.0\",\"data\":{\"b\":[1.0],\"a\":\"x\"}}"),
		HX_BYTES_LIT("{\"data_base64\":\"eyJhIjoieCIsImIiOlsxXX0=\",\"source\":\"\\/s:x\","
			     "\"datacontenttype\":\"application/json\",\"type\":\"u\","
			     "\"specversion\":\"1.0\",\"id\":\"a \\u20ac\",\"more\":true}"),
	};
	struct hapax_key first = HAPAX_KEY_INIT;
	struct hx_cloudevent event;
	struct hapax_buf scratch;

	(void)state;
	hx_buf_init(&scratch, 4096);
	assert_int_equal(
		hx_cloudevent_read_binary(
			&event, fields, 4, HX_BYTES_LIT("application/json"),
			HX_BYTES_LIT("{ \"a\": \"x\", \"b\": [1] }"), &scratch, NULL),
		HAPAX_OK);
	make_key(&event, &first);
	for (size_t i = 0; i < 2; i++) {
		struct hapax_key key = HAPAX_KEY_INIT;

		assert_int_equal(
			hx_cloudevent_read_structured(&event, texts[i], &scratch, NULL), HAPAX_OK);
		make_key(&event, &key);
		assert_true(hx_bytes_equal(
			hx_bytes(first.key, first.key_size), hx_bytes(key.key, key.key_size)));
		assert_memory_equal(
			&first.fingerprint, &key.fingerprint, sizeof(first.fingerprint));
	}
	hx_buf_done(&scratch);
}

static void an_event_of_a_batch_has_its_own_text(void **state)
{
	static const char first[] =
		"{\"id\":\"1\",\"source\":\"s\",\"type\":\"t\",\"specversion\":\"1.0\",\"data\":{}}";
	char text[512];
	struct hx_cloudevents_batch batch;
	struct hx_cloudevent event;
	struct hapax_buf scratch;
	int size = snprintf(text, sizeof(text), "[ %s ,\n%s]", first, first);

	(void)state;
	hx_buf_init(&scratch, 4096);
	assert_int_equal(
		hx_cloudevents_batch_init(
			&batch, hx_bytes(text, (size_t)size), BATCH_MAX, &scratch, NULL),
		HAPAX_OK);
	assert_int_equal(batch.count, 2);
	while (hx_cloudevents_batch_next(&batch, &event)) {
		assert_int_equal(event.text.size, sizeof(first) - 1);
		assert_memory_equal(event.text.data, first, event.text.size);
	}
	hx_buf_done(&scratch);
}

static void the_time_is_read(void **state)
{
	static const struct hapax_bytes text = HX_BYTES_LIT(
		"{\"id\":\"1\",\"source\":\"s\",\"type\":\"t\",\"specversion\":\"1.0\","
		"\"time\":\"1970-01-01T00:00:01.5Z\"}");
	struct hx_cloudevent event;
	struct hapax_buf scratch;

	(void)state;
	hx_buf_init(&scratch, 4096);
	assert_int_equal(hx_cloudevent_read_structured(&event, text, &scratch, NULL), HAPAX_OK);
	assert_int_equal(event.time_ms, 1500);
	hx_buf_done(&scratch);
}

static void values_are_encoded_as_the_binding_says(void **state)
{
	static const struct {
		const char *value;
		const char *text;
	} texts[] = {
		{"Euro \xe2\x82\xac \xf0\x9f\x98\x80", "Euro%20%E2%82%AC%20%F0%9F%98%80"},
		{"a\"b%c", "a%22b%25c"},
		{"!#~\x7f\t", "!#~%7F%09"},
		{"", ""},
	};
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 256);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		hx_buf_clear(&out);
		assert_int_equal(
			hx_cloudevent_encode(&out, hapax_bytes_from_text(texts[i].value)),
			HAPAX_OK);
		assert_true(hx_bytes_equal(
			hx_bytes(out.data, out.size), hapax_bytes_from_text(texts[i].text)));
	}
	hx_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_at_least_150_cases),
		cmocka_unit_test(events_are_the_same_however_they_are_cut),
		cmocka_unit_test(nothing_is_read_beyond_the_text),
		cmocka_unit_test(what_does_not_fit_is_a_limit),
		cmocka_unit_test(one_event_has_one_key_in_every_mode),
		cmocka_unit_test(an_event_of_a_batch_has_its_own_text),
		cmocka_unit_test(the_time_is_read),
		cmocka_unit_test(values_are_encoded_as_the_binding_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
