/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "wire/resp/resp_request.h"

#define LIT(text) text, sizeof(text) - 1

/* What the arguments are, joined by '|'; or the error. */
static const struct {
	const char *data;
	size_t size;
	const char *args;
	const char *error;
} cases[] = {
	{LIT("*1\r\n$4\r\nPING\r\n"), "PING", NULL},
	{LIT("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"), "SET|k|", NULL},
	{LIT("*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n"), "GET|a\r\nb", NULL},
	{LIT("*0\r\n"), "", NULL},
	{LIT("*-1\r\n"), "", NULL},
	{LIT("*-100\r\n"), "", NULL},
	{LIT("\r\n"), "", NULL},
	{LIT("\n"), "", NULL},
	{LIT("   \r\n"), "", NULL},
	{LIT("PING\r\n"), "PING", NULL},
	{LIT("PING\n"), "PING", NULL},
	{LIT("  set  k\tv \r\n"), "set|k|v", NULL},
	{LIT("set k \"a b\"\r\n"), "set|k|a b", NULL},
	{LIT("set k \"\\x41\\n\\q\\\"\"\r\n"), "set|k|A\nq\"", NULL},
	{LIT("set k \"\\xg1\"\r\n"), "set|k|xg1", NULL},
	{LIT("set k 'a \"b\" \\'c\\' \\n'\r\n"), "set|k|a \"b\" 'c' \\n", NULL},
	{LIT("set k \"\"\r\n"), "set|k|", NULL},
	{LIT("a\"b\" c\r\n"), "ab|c", NULL},
	{LIT("set k \"a\r\n"), NULL, "unbalanced quotes in request"},
	{LIT("set k 'a\r\n"), NULL, "unbalanced quotes in request"},
	{LIT("set k \"a\"b\r\n"), NULL, "unbalanced quotes in request"},
	{LIT("*x\r\n"), NULL, "invalid multibulk length"},
	{LIT("*\r\n"), NULL, "invalid multibulk length"},
	{LIT("*1x\r\n"), NULL, "invalid multibulk length"},
	{LIT("* 1\r\n"), NULL, "invalid multibulk length"},
	{LIT("*1\rx"), NULL, "invalid multibulk length"},
	{LIT("*65537\r\n"), NULL, "invalid multibulk length"},
	{LIT("*99999999999999999999\r\n"), NULL, "invalid multibulk length"},
	{LIT("*1\r\nfoo\r\n"), NULL, "expected '$', got 'f'"},
	{LIT("*1\r\n:1\r\n"), NULL, "expected '$', got ':'"},
	{LIT("*1\r\n$x\r\n"), NULL, "invalid bulk length"},
	{LIT("*1\r\n$-1\r\n"), NULL, "invalid bulk length"},
	{LIT("*1\r\n$\r\n"), NULL, "invalid bulk length"},
	{LIT("*1\r\n$1048577\r\n"), NULL, "invalid bulk length"},
	{LIT("*1\r\n$2\r\nabcd"), NULL, "invalid bulk length"},
};

static const struct hx_resp_limits defaults = {0, 0, false};

static void check_result(
	struct hx_resp_request *request, struct hapax_bytes input, enum hx_resp_result result,
	size_t size, size_t index)
{
	char joined[200] = "";
	size_t held = 0;

	if (cases[index].error != NULL) {
		char text[100];

		(void)snprintf(text, sizeof(text), "Protocol error: %s", cases[index].error);
		assert_int_equal(result, HX_RESP_BAD);
		assert_string_equal(request->error, text);
		return;
	}
	assert_int_equal(result, HX_RESP_DONE);
	assert_int_equal(size, cases[index].size);
	for (size_t i = 0; i < request->count; i++) {
		struct hapax_bytes arg = hx_resp_request_arg(request, input, i);

		if (i > 0)
			joined[held++] = '|';
		if (arg.size)
			memcpy(joined + held, arg.data, arg.size);
		held += arg.size;
	}
	assert_string_equal(joined, cases[index].args);
}

/* Each case cut in two at every byte, and in memory that ends where the bytes end. */
static void cases_hold_at_every_split(void **state)
{
	struct hx_resp_request request;

	(void)state;
	hx_resp_request_init(&request);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t split = 0; split <= cases[i].size; split++) {
			char *part = malloc(split ? split : 1);
			char *whole = malloc(cases[i].size);
			struct hapax_bytes input = {part, split};
			size_t size = 0;
			enum hx_resp_result result;

			assert_non_null(part);
			assert_non_null(whole);
			memcpy(part, cases[i].data, split);
			memcpy(whole, cases[i].data, cases[i].size);
			result = hx_resp_request_read(&request, input, &defaults, &size);
			if (result == HX_RESP_MORE) {
				input = hx_bytes(whole, cases[i].size);
				result = hx_resp_request_read(&request, input, &defaults, &size);
			}
			check_result(&request, input, result, size, i);
			hx_resp_request_next(&request);
			free(part);
			free(whole);
		}
	}
	hx_resp_request_done(&request);
}

static void pipelined_requests_come_one_by_one(void **state)
{
	static const char text[] =
		"*1\r\n$4\r\nPING\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n\r\n";
	struct hapax_bytes input = {text, sizeof(text) - 1};
	static const size_t counts[] = {1, 1, 2, 0};
	struct hx_resp_request request;

	(void)state;
	hx_resp_request_init(&request);
	for (size_t i = 0; i < 4; i++) {
		size_t size = 0;

		assert_int_equal(
			hx_resp_request_read(&request, input, &defaults, &size), HX_RESP_DONE);
		assert_int_equal(request.count, counts[i]);
		input = hx_bytes((const char *)input.data + size, input.size - size);
		hx_resp_request_next(&request);
	}
	assert_int_equal(input.size, 0);
	hx_resp_request_done(&request);
}

static enum hx_resp_result read_text(
	struct hx_resp_request *request, const char *text, const struct hx_resp_limits *limits)
{
	size_t size = 0;

	hx_resp_request_next(request);
	return hx_resp_request_read(request, hx_bytes(text, strlen(text)), limits, &size);
}

static void limits_hold(void **state)
{
	static char line[HX_RESP_LINE_SIZE_MAX + 10];
	struct hx_resp_limits few = {.args_max = 2, .bulk_size_max = 3};
	struct hx_resp_limits stranger = {.is_unauthenticated = true};
	struct hx_resp_request request;

	(void)state;
	hx_resp_request_init(&request);
	assert_int_equal(read_text(&request, "*3\r\n", &few), HX_RESP_BAD);
	assert_int_equal(read_text(&request, "*2\r\n$4\r\n", &few), HX_RESP_BAD);
	assert_int_equal(read_text(&request, "*2\r\n$3\r\n", &few), HX_RESP_MORE);
	assert_int_equal(read_text(&request, "*11\r\n", &stranger), HX_RESP_BAD);
	assert_string_equal(request.error, "Protocol error: unauthenticated multibulk length");
	assert_int_equal(read_text(&request, "*10\r\n$16385\r\n", &stranger), HX_RESP_BAD);
	assert_string_equal(request.error, "Protocol error: unauthenticated bulk length");
	memset(line, 'x', sizeof(line) - 1);
	assert_int_equal(read_text(&request, line, &defaults), HX_RESP_BAD);
	assert_string_equal(request.error, "Protocol error: too big inline request");
	line[0] = '*';
	assert_int_equal(read_text(&request, line, &defaults), HX_RESP_BAD);
	assert_string_equal(request.error, "Protocol error: too big mbulk count string");
	memcpy(line, "*1\r\n$", 5);
	assert_int_equal(read_text(&request, line, &defaults), HX_RESP_BAD);
	assert_string_equal(request.error, "Protocol error: too big bulk count string");
	hx_resp_request_done(&request);
}

static void no_memory_is_said(void **state)
{
	struct hx_resp_request request;

	(void)state;
	hx_resp_request_init(&request);
	for (uint64_t nth = 1; nth <= 2; nth++) {
		hx_alloc_fail_at(nth, 0);
		assert_int_equal(read_text(&request, "PING\r\n", &defaults), HX_RESP_BAD);
		hx_alloc_fail_at(0, 0);
		assert_string_equal(request.error, "not enough memory");
		hx_resp_request_done(&request);
	}
	assert_int_equal(read_text(&request, "PING\r\n", &defaults), HX_RESP_DONE);
	hx_resp_request_done(&request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases_hold_at_every_split),
		cmocka_unit_test(pipelined_requests_come_one_by_one),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(no_memory_is_said),
	};

	return cmocka_run_group_tests_name("resp_request", tests, NULL, NULL);
}
