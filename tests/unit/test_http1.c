/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 9112, message by message, each cut at every byte: what is taken, what is refused,
 * with which status and where.
 */
#include "wire/http1/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#include "http1_requests.h"
#include "http1_responses.h"

enum {
	REQUEST_COUNT = sizeof(requests) / sizeof(requests[0]),
	RESPONSE_COUNT = sizeof(responses) / sizeof(responses[0]),
	TRANSCRIPT_SIZE = 10 * 1024,
};

/* A connection under test, and what was read from it. */
struct reading {
	struct hx_http1 http;
	struct hx_http1_head head;
	enum http1_setting setting;
	enum hx_http1_role role;
	bool is_over;    /* refused, or the last message was read */
	bool keep_alive; /* as the last head said */
	char text[TRANSCRIPT_SIZE];
	size_t text_size;
	char message[HAPAX_ERROR_MESSAGE_SIZE];
};

__attribute__((format(printf, 2, 3))) static void say(
	struct reading *reading, const char *format, ...)
{
	size_t room = TRANSCRIPT_SIZE - reading->text_size;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(reading->text + reading->text_size, room, format, arguments);
	va_end(arguments);
	assert_true(size >= 0 && (size_t)size < room);
	reading->text_size += (size_t)size;
}

static void begin(struct reading *reading, enum http1_setting setting, enum hx_http1_role role)
{
	static const struct hx_http1_limits small = {32, 128, 4, 16};

	memset(reading, 0, sizeof(*reading));
	reading->setting = setting;
	reading->role = role;
	hx_http1_init(&reading->http, role, setting == SMALL ? &small : NULL);
	if (setting == HEAD)
		hx_http1_reset_answer(&reading->http, true);
}

static void say_head(struct reading *reading)
{
	const struct hx_http1_head *head = &reading->head;

	if (reading->text_size > 0)
		say(reading, " ");
	if (head->status != 0)
		say(reading, "%u", head->status);
	else
		say(reading, "%.*s %.*s", (int)head->method.size, (const char *)head->method.data,
		    (int)head->path.size, (const char *)head->path.data);
	say(reading, " %s", head->keep_alive ? "keep" : "close");
	if (head->expects_continue)
		say(reading, " 100");
	if (head->status == 0 || head->status >= 200)
		say(reading, " |");
	reading->keep_alive = head->keep_alive;
}

static void say_event(struct reading *reading, const struct hx_http1_event *event)
{
	switch (event->type) {
	case HX_HTTP1_HEAD: say_head(reading); break;
	case HX_HTTP1_DATA:
		assert_true(event->data.size > 0);
		say(reading, "%.*s", (int)event->data.size, (const char *)event->data.data);
		break;
	case HX_HTTP1_END:
		say(reading, "|");
		hx_http1_reset(&reading->http);
		if (reading->setting == HEAD)
			hx_http1_reset_answer(&reading->http, true);
		reading->is_over = !reading->keep_alive;
		break;
	case HX_HTTP1_MORE:
	case HX_HTTP1_IDLE: break;
	}
}

/*
 * Read as much as data has, in memory of just that size. Returns what was used; what is
 * left is passed again with the next bytes.
 */
static size_t feed(struct reading *reading, const char *data, size_t size)
{
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hx_http1_event event = {HX_HTTP1_HEAD, 0, {NULL, 0}};
	char *copy = malloc(size + 1);
	size_t used = 0;

	assert_non_null(copy);
	memcpy(copy + 1, data, size);
	/* What a head of another connection left must not matter. */
	memset(&reading->head, 0xa5, sizeof(reading->head));
	while (!reading->is_over && event.type != HX_HTTP1_MORE) {
		if (hx_http1_next(
			    &reading->http, hx_bytes(copy + 1 + used, size - used), &reading->head,
			    &event, &err) != HAPAX_OK) {
			unsigned long long offset = 0;
			char *rest = NULL;

			assert_int_equal(strncmp(err.message, "byte ", 5), 0);
			offset = strtoull(err.message + 5, &rest, 10);
			assert_true(rest > err.message + 5 && (*rest == ':' || *rest == ','));
			say(reading, "%s%u@%llu", reading->text_size > 0 ? " " : "",
			    hx_http1_reply_status(&reading->http), offset);
			memcpy(reading->message, err.message, sizeof(err.message));
			reading->is_over = true;
			break;
		}
		assert_in_range(event.used, 0, size - used);
		used += event.used;
		say_event(reading, &event);
	}
	free(copy);
	return used;
}

/* After the last byte: a body that lasts until the end ends, another is incomplete. */
static void end(struct reading *reading)
{
	struct hx_http1_event event;

	if (reading->is_over)
		return;
	if (hx_http1_closed(&reading->http, &event, NULL) != HAPAX_OK)
		say(reading, " cut");
	else
		say_event(reading, &event);
}

/* In two pieces; cut 0: in one. SIZE_MAX: byte by byte. */
static void read_case(
	struct reading *reading, const struct http1_case *test, enum hx_http1_role role, size_t cut)
{
	size_t step = cut == SIZE_MAX ? 1 : cut == 0 ? test->size : cut;
	size_t used = 0;

	begin(reading, test->setting, role);
	for (size_t have = step; !reading->is_over; have += step) {
		if (have > test->size || (have == 2 * step && cut != SIZE_MAX))
			have = test->size;
		used += feed(reading, test->data + used, have - used);
		if (have == test->size)
			break;
	}
	end(reading);
}

static void check_result(
	const struct reading *reading, const struct http1_case *test, size_t number)
{
	char wanted[64];
	size_t size;

	if (test->status == 0) {
		if (strcmp(reading->text, test->expected) != 0)
			fail_msg(
				"case %zu, '%s':\n got %s (%s)\nwant %s", number, test->data,
				reading->text, reading->message, test->expected);
		return;
	}
	if (test->status == 1)
		(void)snprintf(wanted, sizeof(wanted), " cut");
	else
		(void)snprintf(wanted, sizeof(wanted), "%u@%zu", test->status, test->offset);
	size = strlen(wanted);
	if (reading->text_size < size ||
	    strcmp(reading->text + reading->text_size - size, wanted) != 0)
		fail_msg(
			"case %zu, '%s':\n got %s (%s)\nwant %s", number, test->data, reading->text,
			reading->message, wanted);
}

static void check_cuts(const struct http1_case *cases, size_t count, enum hx_http1_role role)
{
	static struct reading whole;
	static struct reading parts;

	for (size_t i = 0; i < count; i++) {
		read_case(&whole, &cases[i], role, 0);
		check_result(&whole, &cases[i], i);
		for (size_t cut = 1; cut <= cases[i].size; cut++) {
			size_t where = cut == cases[i].size ? SIZE_MAX : cut;

			read_case(&parts, &cases[i], role, where);
			if (strcmp(whole.text, parts.text) != 0 ||
			    strcmp(whole.message, parts.message) != 0)
				fail_msg(
					"case %zu, '%s', cut at %zu:\n got %s (%s)\nwant %s (%s)",
					i, cases[i].data, where, parts.text, parts.message,
					whole.text, whole.message);
		}
	}
}

static void there_are_at_least_400_cases(void **state)
{
	(void)state;
	assert_true(REQUEST_COUNT + RESPONSE_COUNT >= 400);
}

static void requests_are_read_the_same_however_they_are_cut(void **state)
{
	(void)state;
	check_cuts(requests, REQUEST_COUNT, HX_HTTP1_SERVER);
}

static void responses_are_read_the_same_however_they_are_cut(void **state)
{
	(void)state;
	check_cuts(responses, RESPONSE_COUNT, HX_HTTP1_CLIENT);
}

/* Reads one head, which must be good. */
static void read_head(struct reading *reading, struct hapax_bytes text, enum hx_http1_role role)
{
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hx_http1_event event;

	begin(reading, USUAL, role);
	if (hx_http1_next(&reading->http, text, &reading->head, &event, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	assert_int_equal(event.type, HX_HTTP1_HEAD);
}

static bool is(struct hapax_bytes bytes, const char *text)
{
	return hx_bytes_equal(bytes, hapax_bytes_from_text(text));
}

static void a_head_has_its_parts(void **state)
{
	static struct reading reading;
	const struct hx_http1_head *head = &reading.head;

	(void)state;
	read_head(
		&reading,
		HX_BYTES_LIT("PUT http://Example.org:8/a?b HTTP/1.1\r\n"
			     "X: 1\r\nHost: example.org:8\r\nx:  two words \r\n"
			     "Content-Length: 12\r\nContent-Type:\r\n\r\n"),
		HX_HTTP1_SERVER);
	assert_true(is(head->method, "PUT"));
	assert_true(is(head->target, "http://Example.org:8/a?b"));
	assert_true(is(head->path, "/a?b"));
	assert_true(is(head->authority, "example.org:8"));
	assert_int_equal(head->version_minor, 1);
	assert_int_equal(head->status, 0);
	assert_int_equal(head->body, HX_HTTP1_BODY_LENGTH);
	assert_int_equal(head->content_length, 12);
	assert_int_equal(head->field_count, 5);
	assert_true(is(hx_http1_known(head, HX_HTTP1_HOST), "example.org:8"));
	assert_non_null(hx_http1_known(head, HX_HTTP1_CONTENT_TYPE).data);
	assert_int_equal(hx_http1_known(head, HX_HTTP1_CONTENT_TYPE).size, 0);
	assert_null(hx_http1_known(head, HX_HTTP1_EXPECT).data);
	assert_int_equal(hx_http1_find(head, HX_BYTES_LIT("X"), 0), 0);
	assert_int_equal(hx_http1_find(head, HX_BYTES_LIT("X"), 1), 2);
	assert_true(is(head->fields[2].value, "two words"));
	assert_int_equal(hx_http1_find(head, HX_BYTES_LIT("X"), 3), 5);
	assert_int_equal(hx_http1_find(head, HX_BYTES_LIT("Xy"), 0), 5);
}

static void a_status_line_has_its_parts(void **state)
{
	static struct reading reading;

	(void)state;
	read_head(
		&reading, HX_BYTES_LIT("HTTP/1.0 503 Try later\r\nA: b\r\n\r\n"), HX_HTTP1_CLIENT);
	assert_int_equal(reading.head.status, 503);
	assert_int_equal(reading.head.version_minor, 0);
	assert_true(is(reading.head.reason, "Try later"));
	assert_int_equal(reading.head.body, HX_HTTP1_BODY_CLOSE);
	assert_false(reading.head.keep_alive);
}

static void what_belongs_to_the_connection_is_told(void **state)
{
	static const char *const hops[] = {
		"Connection",
		"KEEP-ALIVE",
		"te",
		"Trailer",
		"Transfer-Encoding",
		"Upgrade",
		"Proxy-Authorization",
		"Proxy-Authenticate",
		"proxy-connection",
		"Content-Length",
		"expect",
		"x-one",
		"X-Two",
		"x-three"};
	static const char *const others[] = {"Host", "X-Four", "x", "Content-Type", "", "Via"};
	static struct reading reading;

	(void)state;
	read_head(
		&reading,
		HX_BYTES_LIT("GET / HTTP/1.1\r\nHost: h\r\nConnection: X-One , x-two\r\n"
			     "Y: x-four\r\nconnection:X-THREE,close\r\n\r\n"),
		HX_HTTP1_SERVER);
	for (size_t i = 0; i < sizeof(hops) / sizeof(hops[0]); i++)
		assert_true(hx_http1_is_hop(&reading.head, hapax_bytes_from_text(hops[i])));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(hx_http1_is_hop(&reading.head, hapax_bytes_from_text(others[i])));
}

/* At the limits that stand in the header: the largest that is taken, one more is not. */
static void the_default_limits_are_kept(void **state)
{
	static char text[HX_HTTP1_HEAD_MAX + 64];
	static struct reading reading;
	size_t target = HX_HTTP1_LINE_MAX - strlen("GET  HTTP/1.1");
	size_t size;

	(void)state;
	for (size_t extra = 0; extra < 2; extra++) {
		size = (size_t)snprintf(
			text, sizeof(text), "GET /%0*d HTTP/1.1\r\nHost: h\r\n\r\n",
			(int)(target - 1 + extra), 0);
		begin(&reading, USUAL, HX_HTTP1_SERVER);
		(void)feed(&reading, text, size);
		assert_int_equal(strstr(reading.text, "414@") != NULL, extra);
	}
	for (size_t extra = 0; extra < 2; extra++) {
		int digits =
			HX_HTTP1_HEAD_MAX - (int)strlen("GET / HTTP/1.1\r\nHost: h\r\nX: \r\n\r\n");

		size = (size_t)snprintf(
			text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\nX: %0*d\r\n\r\n",
			digits + (int)extra, 0);
		assert_int_equal(size, HX_HTTP1_HEAD_MAX + extra);
		begin(&reading, USUAL, HX_HTTP1_SERVER);
		(void)feed(&reading, text, size);
		assert_int_equal(strstr(reading.text, "431@") != NULL, extra);
	}
	for (size_t extra = 0; extra < 2; extra++) {
		size = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: h\r\n");
		for (size_t i = 1; i < HX_HTTP1_FIELDS_MAX + extra; i++)
			size += (size_t)snprintf(text + size, sizeof(text) - size, "A:\r\n");
		size += (size_t)snprintf(text + size, sizeof(text) - size, "\r\n");
		begin(&reading, USUAL, HX_HTTP1_SERVER);
		(void)feed(&reading, text, size);
		assert_int_equal(strstr(reading.text, "431@") != NULL, extra);
	}
}

/* Many small extensions are as much work as one that is too long. */
static void extensions_have_a_limit_in_all(void **state)
{
	static const char chunk[] =
		"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n";
	static struct reading reading;
	size_t chunks = 0;

	(void)state;
	begin(&reading, USUAL, HX_HTTP1_SERVER);
	(void)feed(
		&reading, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 56);
	while (!reading.is_over && chunks < 2 * HX_HTTP1_EXTENSIONS_MAX / 50) {
		reading.text_size = 0;
		(void)feed(&reading, chunk, sizeof(chunk) - 1);
		chunks++;
	}
	assert_true(reading.is_over);
	assert_non_null(strstr(reading.text, "400@"));
	assert_in_range(chunks, HX_HTTP1_EXTENSIONS_MAX / 60, HX_HTTP1_EXTENSIONS_MAX / 50);
}

static void a_body_may_be_given_another_limit(void **state)
{
	static struct reading reading;

	(void)state;
	begin(&reading, SMALL, HX_HTTP1_SERVER);
	hx_http1_limit_body(&reading.http, 20);
	(void)feed(&reading, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\n", 48);
	assert_string_equal(reading.text, "POST / keep |");
	begin(&reading, SMALL, HX_HTTP1_SERVER);
	hx_http1_limit_body(&reading.http, 0);
	(void)feed(
		&reading, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999999\r\n\r\n", 56);
	assert_string_equal(reading.text, "POST / keep |");
}

static void time_is_up_only_when_something_was_begun(void **state)
{
	static struct reading reading;

	(void)state;
	begin(&reading, USUAL, HX_HTTP1_SERVER);
	assert_int_equal(hx_http1_timeout_status(&reading.http), 0);
	(void)feed(&reading, "\r\n", 2);
	assert_int_equal(hx_http1_timeout_status(&reading.http), 0);
	(void)feed(&reading, "\r\nG", 3);
	assert_int_equal(hx_http1_timeout_status(&reading.http), 408);
	begin(&reading, USUAL, HX_HTTP1_SERVER);
	(void)feed(&reading, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", 47);
	assert_int_equal(hx_http1_timeout_status(&reading.http), 408);
	(void)feed(&reading, "hello", 5);
	assert_int_equal(hx_http1_timeout_status(&reading.http), 0);
	begin(&reading, USUAL, HX_HTTP1_CLIENT);
	assert_int_equal(hx_http1_timeout_status(&reading.http), 504);
}

static void errors_name_the_field(void **state)
{
	static struct reading reading;
	static const char text[] = "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n";

	(void)state;
	begin(&reading, USUAL, HX_HTTP1_SERVER);
	(void)feed(&reading, text, sizeof(text) - 1);
	assert_string_equal(
		reading.message, "byte 41, header 'Content-Length': it is not a number");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_at_least_400_cases),
		cmocka_unit_test(requests_are_read_the_same_however_they_are_cut),
		cmocka_unit_test(responses_are_read_the_same_however_they_are_cut),
		cmocka_unit_test(a_head_has_its_parts),
		cmocka_unit_test(a_status_line_has_its_parts),
		cmocka_unit_test(what_belongs_to_the_connection_is_told),
		cmocka_unit_test(the_default_limits_are_kept),
		cmocka_unit_test(extensions_have_a_limit_in_all),
		cmocka_unit_test(a_body_may_be_given_another_limit),
		cmocka_unit_test(time_is_up_only_when_something_was_begun),
		cmocka_unit_test(errors_name_the_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
