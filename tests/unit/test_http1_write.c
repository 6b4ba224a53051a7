/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads and chunks as bytes: what is written can be read again, and what would break the
 * framing is not written.
 */
#include "wire/http1/http1_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/http1/http1.h"

static void assert_text(const struct hapax_buf *out, const char *text)
{
	assert_int_equal(out->size, strlen(text));
	assert_memory_equal(out->data, text, out->size);
}

static void a_request_is_written(void **state)
{
	struct hx_http1_writer writer;
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 4096);
	hx_http1_write_request(&writer, &out, HX_BYTES_LIT("POST"), HX_BYTES_LIT("/a?b"));
	hx_http1_write_field(&writer, HX_BYTES_LIT("Host"), HX_BYTES_LIT("h:80"));
	hx_http1_write_field(&writer, HX_BYTES_LIT("X"), hx_bytes(NULL, 0));
	hx_http1_write_length(&writer, 0);
	assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_OK);
	assert_text(&out, "POST /a?b HTTP/1.1\r\nHost: h:80\r\nX: \r\nContent-Length: 0\r\n\r\n");
	hx_buf_done(&out);
}

static void a_response_is_written_behind_what_is_there(void **state)
{
	struct hx_http1_writer writer;
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 4096);
	assert_int_equal(hx_buf_append(&out, "before", 6), HAPAX_OK);
	hx_http1_write_response(&writer, &out, 422);
	hx_http1_write_close(&writer);
	hx_http1_write_chunked(&writer);
	assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_OK);
	assert_text(
		&out,
		"beforeHTTP/1.1 422 Unprocessable Content\r\nConnection: close\r\n"
		"Transfer-Encoding: chunked\r\n\r\n");
	hx_buf_done(&out);
}

static void lengths_are_written_to_the_last_digit(void **state)
{
	static const struct {
		uint64_t size;
		const char *text;
	} cases[] = {
		{0, "0"},
		{9, "9"},
		{10, "10"},
		{1234567890, "1234567890"},
		{UINT64_MAX, "18446744073709551615"}};
	struct hx_http1_writer writer;
	struct hapax_buf out;
	char text[128];

	(void)state;
	hx_buf_init(&out, 4096);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hx_buf_clear(&out);
		hx_http1_write_response(&writer, &out, 200);
		hx_http1_write_length(&writer, cases[i].size);
		assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_OK);
		(void)snprintf(
			text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
			cases[i].text);
		assert_text(&out, text);
	}
	hx_buf_done(&out);
}

static void numbers_and_fields_that_were_read_are_written(void **state)
{
	const struct hapax_field read = {HX_BYTES_LIT("ce-id"), HX_BYTES_LIT("a b\xc3\xa4")};
	const struct hapax_field empty = {HX_BYTES_LIT("X"), {NULL, 0}};
	const struct hapax_field reserved = {HX_BYTES_LIT("Content-LENGTH"), HX_BYTES_LIT("7")};
	struct hx_http1_writer writer;
	struct hapax_error err;
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 4096);
	hx_http1_write_response(&writer, &out, 200);
	hx_http1_write_number(&writer, HX_BYTES_LIT("Hapax-Token"), UINT64_MAX);
	hx_http1_write_number(&writer, HX_BYTES_LIT("Hapax-Attempt"), 0);
	hx_http1_write_read_field(&writer, &read);
	hx_http1_write_read_field(&writer, &empty);
	assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_OK);
	assert_text(
		&out,
		"HTTP/1.1 200 OK\r\nHapax-Token: 18446744073709551615\r\nHapax-Attempt: 0\r\n"
		"ce-id: a b\xc3\xa4\r\nX: \r\n\r\n");
	/* Where a message ends is the writer's own business, whatever was read. */
	hx_http1_write_response(&writer, &out, 200);
	hx_http1_write_read_field(&writer, &reserved);
	assert_int_equal(hx_http1_write_end(&writer, &err), HAPAX_ERR_INVALID);
	assert_string_equal(
		err.message, "could not write header 'Content-LENGTH': only the codec writes it");
	hx_buf_done(&out);
}

struct bad_field {
	struct hapax_bytes name;
	struct hapax_bytes value;
	const char *message;
};

#define NOT_WRITTEN(name, why) "could not write header '" name "': " why

static void what_breaks_a_message_is_not_written(void **state)
{
	static const struct bad_field cases[] = {
		{HX_BYTES_LIT("X"), HX_BYTES_LIT("a\r\nY: b"),
		 NOT_WRITTEN("X", "its value has a control character")},
		{HX_BYTES_LIT("X"), HX_BYTES_LIT("a\nb"),
		 NOT_WRITTEN("X", "its value has a control character")},
		{HX_BYTES_LIT("X"), HX_BYTES_LIT("a\0b"),
		 NOT_WRITTEN("X", "its value has a control character")},
		{HX_BYTES_LIT("X"), HX_BYTES_LIT("0123456789abcdef\x7f"),
		 NOT_WRITTEN("X", "its value has a control character")},
		{HX_BYTES_LIT(""), HX_BYTES_LIT("a"),
		 NOT_WRITTEN("", "it is not a valid header name")},
		{HX_BYTES_LIT("a b"), HX_BYTES_LIT("a"),
		 NOT_WRITTEN("a b", "it is not a valid header name")},
		{HX_BYTES_LIT("a\n"), HX_BYTES_LIT("a"),
		 NOT_WRITTEN("a?", "it is not a valid header name")},
		{HX_BYTES_LIT("a:"), HX_BYTES_LIT("a"),
		 NOT_WRITTEN("a:", "it is not a valid header name")},
		{HX_BYTES_LIT("Content-Length"), HX_BYTES_LIT("5"),
		 NOT_WRITTEN("Content-Length", "only the codec writes it")},
		{HX_BYTES_LIT("TRANSFER-encoding"), HX_BYTES_LIT("chunked"),
		 NOT_WRITTEN("TRANSFER-encoding", "only the codec writes it")},
		{HX_BYTES_LIT("connection"), HX_BYTES_LIT("close"),
		 NOT_WRITTEN("connection", "only the codec writes it")},
	};
	struct hx_http1_writer writer;
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 4096);
	assert_int_equal(hx_buf_append(&out, "x", 1), HAPAX_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_error err;

		hx_http1_write_response(&writer, &out, 200);
		hx_http1_write_field(&writer, cases[i].name, cases[i].value);
		hx_http1_write_field(&writer, HX_BYTES_LIT("bad too"), HX_BYTES_LIT(""));
		hx_http1_write_length(&writer, 1);
		assert_int_equal(hx_http1_write_end(&writer, &err), HAPAX_ERR_INVALID);
		assert_string_equal(err.message, cases[i].message);
		assert_text(&out, "x");
	}
	hx_buf_done(&out);
}

static void first_lines_are_checked(void **state)
{
	static const char *const targets[] = {"", "/a b", "/a\r\n", "/#", "/\xff"};
	struct hx_http1_writer writer;
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 4096);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		hx_http1_write_request(
			&writer, &out, HX_BYTES_LIT("GET"), hapax_bytes_from_text(targets[i]));
		assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_ERR_INVALID);
	}
	hx_http1_write_request(&writer, &out, HX_BYTES_LIT("G T"), HX_BYTES_LIT("/"));
	assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_ERR_INVALID);
	hx_http1_write_response(&writer, &out, 99);
	assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_ERR_INVALID);
	hx_http1_write_response(&writer, &out, 600);
	assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(out.size, 0);
	hx_buf_done(&out);
}

static void a_body_ends_in_one_way_only(void **state)
{
	struct hx_http1_writer writer;
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 4096);
	hx_http1_write_response(&writer, &out, 200);
	hx_http1_write_length(&writer, 1);
	hx_http1_write_chunked(&writer);
	assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_ERR_INVALID);
	hx_http1_write_response(&writer, &out, 200);
	hx_http1_write_length(&writer, 1);
	hx_http1_write_length(&writer, 1);
	assert_int_equal(hx_http1_write_end(&writer, NULL), HAPAX_ERR_INVALID);
	assert_int_equal(out.size, 0);
	hx_buf_done(&out);
}

static void a_full_buffer_keeps_what_it_had(void **state)
{
	struct hx_http1_writer writer;
	struct hapax_error err;
	struct hapax_buf out;

	(void)state;
	hx_buf_init(&out, 24);
	hx_http1_write_response(&writer, &out, 200);
	hx_http1_write_field(&writer, HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT("text/plain"));
	assert_int_equal(hx_http1_write_end(&writer, &err), HAPAX_ERR_LIMIT);
	assert_string_equal(err.message, "could not write header 'Content-Type': not enough space");
	assert_int_equal(out.size, 0);
	hx_buf_done(&out);
}

/* Sizes on both sides of every number of digits, through our own reader. */
static void chunks_are_read_as_they_were_written(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 60; bits++) {
		uint64_t size = (UINT64_C(1) << bits) - (bits % 4 == 0 && bits > 0);
		struct hx_http1_event event;
		static struct hx_http1_head head;
		struct hx_http1 http;
		char text[256];
		size_t used;

		hx_http1_init(&http, HX_HTTP1_CLIENT, NULL);
		used = (size_t)snprintf(
			text, sizeof(text),
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
		assert_int_equal(
			hx_http1_next(&http, hx_bytes(text, used), &head, &event, NULL), HAPAX_OK);
		used = hx_http1_chunk_head(size, true, text);
		assert_in_range(used, 3, HX_HTTP1_CHUNK_HEAD_MAX);
		assert_int_equal(
			hx_http1_next(&http, hx_bytes(text, used), &head, &event, NULL), HAPAX_OK);
		assert_int_equal(event.type, HX_HTTP1_MORE);
		assert_true(http.left == size);
	}
}

static void a_chunk_ends_the_one_before(void **state)
{
	char text[HX_HTTP1_CHUNK_HEAD_MAX];

	(void)state;
	assert_int_equal(hx_http1_chunk_head(26, false, text), 6);
	assert_memory_equal(text, "\r\n1a\r\n", 6);
	assert_int_equal(hx_http1_chunk_head(0, false, text), 7);
	assert_memory_equal(text, "\r\n0\r\n\r\n", 7);
	assert_int_equal(hx_http1_chunk_head(0, true, text), 5);
	assert_memory_equal(text, "0\r\n\r\n", 5);
}

static void dates_are_those_of_the_standard(void **state)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} cases[] = {
		{0, "Thu, 01 Jan 1970 00:00:00 GMT"},
		{784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
		{951782399, "Mon, 28 Feb 2000 23:59:59 GMT"},
		{951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
		{1767225599, "Wed, 31 Dec 2025 23:59:59 GMT"},
		{4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
		{253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
	};
	char text[HX_HTTP1_DATE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hx_http1_date(cases[i].seconds * 1000 + 999, text);
		assert_memory_equal(text, cases[i].text, HX_HTTP1_DATE_SIZE);
	}
}

static void every_status_has_a_reason(void **state)
{
	(void)state;
	for (unsigned status = 0; status < 700; status++)
		assert_non_null(hx_http1_reason(status));
	assert_string_equal(hx_http1_reason(431), "Request Header Fields Too Large");
	assert_string_equal(hx_http1_reason(299), "OK");
	assert_string_equal(hx_http1_reason(499), "Client Error");
	assert_int_equal(hx_http1_continue().size, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_written),
		cmocka_unit_test(a_response_is_written_behind_what_is_there),
		cmocka_unit_test(lengths_are_written_to_the_last_digit),
		cmocka_unit_test(numbers_and_fields_that_were_read_are_written),
		cmocka_unit_test(what_breaks_a_message_is_not_written),
		cmocka_unit_test(first_lines_are_checked),
		cmocka_unit_test(a_body_ends_in_one_way_only),
		cmocka_unit_test(a_full_buffer_keeps_what_it_had),
		cmocka_unit_test(chunks_are_read_as_they_were_written),
		cmocka_unit_test(a_chunk_ends_the_one_before),
		cmocka_unit_test(dates_are_those_of_the_standard),
		cmocka_unit_test(every_status_has_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
