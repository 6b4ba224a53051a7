/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "net/http/http_peer.h"
#include "net/http/http_server.h"
#include "support/fault_net.h"
#include "wire/http1/http1.h"

enum {
	TURNS_MAX = 1000000,
	PIECE_SIZE = 5000,
	BODY_SIZE =
		16 * 1024 * 1024, /* more than the kernel holds for a client that does not read */

	/* What may lie in the connection: the mark, a piece above it, and its chunk's head. */
	UNSENT_MAX = 64 * 1024 + PIECE_SIZE + 64,
};

static const char request_1_1[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
static const char request_1_0[] = "POST /x HTTP/1.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

enum ending { ENDS, ENDS_WITH_LINES, IS_CUT };

/* A server that streams, and a client. */
struct bench {
	struct fault_net fault;
	struct hx_reactor reactor;
	struct hx_http_server server;
	struct hx_http_exchange *exchange;
	size_t body_size;
	size_t written;
	size_t unsent_max;
	unsigned rooms;
	unsigned requests;
	enum ending ending;
	bool was_refused; /* it could not begin */
	struct hx_http_reply reply;

	int client;
	char *got;
	size_t got_size;
	int read_errno;
	bool is_ended;
};

static void end(struct bench *bench)
{
	struct hx_http_exchange *exchange = bench->exchange;

	bench->exchange = NULL;
	if (bench->ending == IS_CUT)
		hx_http_stream_cut(exchange);
	hx_http_stream_end(
		exchange,
		bench->ending == ENDS_WITH_LINES ? HX_BYTES_LIT("Hapax-Stored: no\r\n")
						 : hx_bytes(NULL, 0));
}

static unsigned char byte_at(size_t index)
{
	return (unsigned char)('a' + index % 23);
}

static void write_on(struct bench *bench)
{
	unsigned char piece[PIECE_SIZE];
	bool goes_on = true;

	while (goes_on && bench->written < bench->body_size) {
		size_t left = bench->body_size - bench->written;
		size_t size = left < PIECE_SIZE ? left : PIECE_SIZE;
		const struct hx_http_peer *peer = bench->exchange->peer;

		for (size_t i = 0; i < size; i++)
			piece[i] = byte_at(bench->written + i);
		goes_on = hx_http_stream_write(bench->exchange, hx_bytes(piece, size));
		bench->written += size;
		if (peer != NULL && hx_connection_unsent(&peer->connection) > bench->unsent_max)
			bench->unsent_max = hx_connection_unsent(&peer->connection);
	}
	if (goes_on)
		end(bench);
}

static void on_room(struct hx_http_exchange *exchange)
{
	struct bench *bench = exchange->server->context;

	bench->rooms++;
	write_on(bench);
}

static void handle(struct hx_http_exchange *exchange)
{
	struct bench *bench = exchange->server->context;

	bench->requests++;
	bench->exchange = exchange;
	bench->written = 0;
	if (hx_http_stream_begin(exchange, &bench->reply, on_room) != HAPAX_OK) {
		bench->was_refused = true;
		bench->exchange = NULL;
		hx_http_reply(exchange, &(struct hx_http_reply){.status = 503});
		return;
	}
	write_on(bench);
}

static struct bench *open_bench(size_t body_size, enum ending ending)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));
	struct hx_endpoint endpoint = {.host = "127.0.0.1"};
	struct hx_address address;

	bench->got = test_malloc(2 * BODY_SIZE);
	bench->body_size = body_size;
	bench->ending = ending;
	bench->reply.status = 200;
	fault_net_init(&bench->fault);
	assert_int_equal(hx_reactor_init(&bench->reactor, &bench->fault.net, NULL), HAPAX_OK);
	assert_true(hx_endpoint_address(&endpoint, &address));
	assert_int_equal(
		hx_http_server_open(
			&bench->server, &bench->reactor, &address, false, NULL, handle, NULL, bench,
			NULL),
		HAPAX_OK);
	bench->client = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(bench->client >= 0);
	assert_int_equal(
		connect(bench->client,
			(const struct sockaddr *)&bench->server.listener.address.storage,
			bench->server.listener.address.size),
		0);
	assert_int_equal(fcntl(bench->client, F_SETFL, O_NONBLOCK), 0);
	return bench;
}

static void close_bench(struct bench *bench)
{
	if (bench->client >= 0)
		close(bench->client);
	hx_http_server_close(&bench->server);
	for (int i = 0; i < TURNS_MAX && (bench->server.peer_count > 0 || bench->exchange); i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_null(bench->exchange);
	hx_http_server_done(&bench->server);
	hx_reactor_done(&bench->reactor);
	test_free(bench->got);
	test_free(bench);
}

static void send_text(struct bench *bench, const char *text)
{
	assert_int_equal(write(bench->client, text, strlen(text)), strlen(text));
}

/* Turn without reading until the server can write no more. */
static void fill(struct bench *bench)
{
	for (int i = 0; i < TURNS_MAX; i++) {
		hx_reactor_turn(&bench->reactor, 0);
		if (bench->exchange != NULL && bench->exchange->is_full)
			return;
	}
	fail_msg("%zu bytes were written without a wait", bench->written);
}

static void turn_and_read(struct bench *bench)
{
	ssize_t count;

	hx_reactor_turn(&bench->reactor, 0);
	count = read(bench->client, bench->got + bench->got_size, 2 * BODY_SIZE - bench->got_size);
	if (count > 0)
		bench->got_size += (size_t)count;
	else if (count == 0)
		bench->is_ended = true;
	else if (errno != EAGAIN)
		bench->read_errno = errno;
}

/* What came, read as a client reads it: how much of a body, and is it whole? */
static size_t judge(const struct bench *bench, bool *ret_is_whole)
{
	static struct hx_http1_head head;
	struct hx_http1 http;
	struct hx_http1_event event;
	size_t used = 0;
	size_t body = 0;

	*ret_is_whole = false;
	hx_http1_init(&http, HX_HTTP1_CLIENT, NULL);
	do {
		assert_int_equal(
			hx_http1_next(
				&http, hx_bytes(bench->got + used, bench->got_size - used), &head,
				&event, NULL),
			HAPAX_OK);
		used += event.used;
		for (size_t i = 0; event.type == HX_HTTP1_DATA && i < event.data.size; i++)
			assert_int_equal(
				((const unsigned char *)event.data.data)[i], byte_at(body + i));
		body += event.type == HX_HTTP1_DATA ? event.data.size : 0;
		*ret_is_whole = event.type == HX_HTTP1_END;
	} while (event.type == HX_HTTP1_HEAD || event.type == HX_HTTP1_DATA);
	if (!*ret_is_whole && bench->is_ended)
		*ret_is_whole = hx_http1_closed(&http, &event, NULL) == HAPAX_OK &&
			event.type == HX_HTTP1_END;
	return body;
}

static bool is_over(const struct bench *bench)
{
	bool is_whole = false;

	if (bench->is_ended || bench->read_errno != 0)
		return true;
	/* Reading all of it again and again would take long: only when its end may be there. */
	if (bench->exchange != NULL || bench->got_size < bench->body_size)
		return false;
	(void)judge(bench, &is_whole);
	return is_whole;
}

static void expect_whole(struct bench *bench)
{
	bool is_whole;

	for (int i = 0; i < TURNS_MAX && !is_over(bench); i++)
		turn_and_read(bench);
	assert_int_equal(judge(bench, &is_whole), bench->body_size);
	assert_true(is_whole);
}

static void as_fast_as_the_client_reads(void **state)
{
	struct bench *bench = open_bench(BODY_SIZE, ENDS);

	(void)state;
	send_text(bench, request_1_1);
	fill(bench);
	assert_true(bench->written < BODY_SIZE);
	expect_whole(bench);
	assert_true(bench->rooms > 0);
	assert_true(bench->unsent_max <= UNSENT_MAX);
	/* The connection is good for another one. */
	bench->got_size = 0;
	bench->body_size = 0;
	send_text(bench, request_1_1);
	while (bench->requests == 1)
		turn_and_read(bench);
	expect_whole(bench);
	close_bench(bench);
}

static void fields_behind_the_body(void **state)
{
	struct bench *bench = open_bench(10, ENDS_WITH_LINES);
	static const char end_text[] = "\r\n0\r\nHapax-Stored: no\r\n\r\n";

	(void)state;
	send_text(bench, request_1_1);
	expect_whole(bench);
	assert_memory_equal(
		bench->got + bench->got_size - strlen(end_text), end_text, strlen(end_text));
	close_bench(bench);
}

static void a_client_that_goes_away(void **state)
{
	struct bench *bench = open_bench(BODY_SIZE, ENDS);

	(void)state;
	send_text(bench, request_1_1);
	fill(bench);
	close(bench->client);
	bench->client = -1;
	for (int i = 0; i < TURNS_MAX && bench->exchange != NULL; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_null(bench->exchange);
	assert_int_equal(bench->written, BODY_SIZE);
	close_bench(bench);
}

/* What was cut off does not look whole, whatever its framing. */
static void a_reply_that_is_cut_off(void **state)
{
	static const char *const requests[] = {request_1_1, request_1_0};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct bench *bench = open_bench(100 * 1000, IS_CUT);
		bool is_whole;

		send_text(bench, requests[i]);
		for (int turns = 0; turns < TURNS_MAX && !is_over(bench); turns++)
			turn_and_read(bench);
		assert_int_equal(bench->read_errno, ECONNRESET);
		(void)judge(bench, &is_whole);
		assert_false(is_whole);
		close_bench(bench);
	}
}

static void a_client_of_old(void **state)
{
	struct bench *bench = open_bench(BODY_SIZE, ENDS);

	(void)state;
	send_text(bench, request_1_0);
	fill(bench);
	expect_whole(bench);
	assert_true(bench->is_ended);
	close_bench(bench);
	/* It cannot be told what stands behind the body: then it is not told that it is whole. */
	bench = open_bench(10, ENDS_WITH_LINES);
	send_text(bench, request_1_0);
	for (int turns = 0; turns < TURNS_MAX && !is_over(bench); turns++)
		turn_and_read(bench);
	assert_int_equal(bench->read_errno, ECONNRESET);
	close_bench(bench);
}

static void a_server_that_drains(void **state)
{
	struct bench *bench = open_bench(BODY_SIZE, ENDS);

	(void)state;
	send_text(bench, request_1_1);
	fill(bench);
	hx_http_server_drain(&bench->server);
	expect_whole(bench);
	for (int i = 0; i < TURNS_MAX && !bench->is_ended; i++)
		turn_and_read(bench);
	assert_true(bench->is_ended);
	close_bench(bench);
}

/* Without memory it is refused or cut off, never whole and wrong. */
static void every_allocation_fails_once(void **state)
{
	bool is_last = false;

	(void)state;
	for (uint64_t nth = 1; !is_last; nth++) {
		struct bench *bench = open_bench(200 * 1000, ENDS);
		uint64_t before = hx_alloc_count();
		bool is_whole;

		hx_alloc_fail_at(nth, 0);
		send_text(bench, request_1_1);
		for (int i = 0; i < 1000 && !is_over(bench); i++)
			turn_and_read(bench);
		is_last = hx_alloc_count() - before < nth;
		hx_alloc_fail_at(0, 0);
		if (is_last)
			assert_int_equal(judge(bench, &is_whole), bench->body_size);
		close_bench(bench);
		assert_int_equal(hx_alloc_live(), 0);
	}
}

/* All that came, up to the end of the second of two replies. */
static const char *get_two(struct bench *bench, const char *request)
{
	for (unsigned i = 1; i <= 2; i++) {
		send_text(bench, request);
		while (bench->requests < i || bench->exchange != NULL)
			turn_and_read(bench);
	}
	for (int i = 0; i < 1000; i++)
		turn_and_read(bench);
	bench->got[bench->got_size] = '\0';
	return bench->got;
}

/* Every one ends where it should, and the connection goes on. */
static void replies_with_a_length(void **state)
{
	static const char head_1_1[] = "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n";
	static const struct {
		const char *request;
		unsigned status;
		bool is_sized;
		size_t size;
		const char *field; /* NULL: neither */
		const char *end;
	} cases[] = {
		{request_1_1, 200, true, 3, "Content-Length: 3\r\n", "\r\n\r\nabc"},
		{request_1_1, 200, true, 0, "Content-Length: 0\r\n", "\r\n\r\n"},
		{head_1_1, 200, true, 3, "Content-Length: 3\r\n", "\r\n\r\n"},
		{head_1_1, 200, false, 3, "Transfer-Encoding: chunked\r\n", "\r\n\r\n"},
		{request_1_1, 204, false, 0, NULL, "\r\n\r\n"},
		{request_1_1, 304, true, 3, NULL, "\r\n\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench *bench = open_bench(cases[i].size, ENDS);
		size_t size = strlen(cases[i].end);
		const char *got;

		bench->reply.status = cases[i].status;
		if (cases[i].is_sized)
			bench->reply.framing = HX_HTTP_SIZED;
		bench->reply.length = cases[i].size;
		got = get_two(bench, cases[i].request);
		assert_true(bench->got_size > size);
		assert_string_equal(got + bench->got_size - size, cases[i].end);
		assert_non_null(strstr(got + 1, "HTTP/1.1 "));
		assert_false(bench->is_ended);
		if (cases[i].field != NULL)
			assert_non_null(strstr(got, cases[i].field));
		else
			assert_true(
				strstr(got, "Content-Length") == NULL &&
				strstr(got, "Transfer-Encoding") == NULL);
		close_bench(bench);
	}
}

/* Less than was told, or more: the client must not take it for whole, or for the next reply. */
static void a_length_that_is_not_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct bench *bench = open_bench(100, ENDS);
		bool is_whole;

		bench->reply.framing = HX_HTTP_SIZED;
		bench->reply.length = i == 0 ? 101 : 99;
		send_text(bench, request_1_1);
		for (int turns = 0; turns < TURNS_MAX && bench->read_errno == 0; turns++)
			turn_and_read(bench);
		assert_int_equal(bench->read_errno, ECONNRESET);
		(void)judge(bench, &is_whole);
		assert_false(is_whole);
		close_bench(bench);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_fast_as_the_client_reads),
		cmocka_unit_test(fields_behind_the_body),
		cmocka_unit_test(a_client_that_goes_away),
		cmocka_unit_test(a_reply_that_is_cut_off),
		cmocka_unit_test(a_client_of_old),
		cmocka_unit_test(replies_with_a_length),
		cmocka_unit_test(a_length_that_is_not_kept),
		cmocka_unit_test(a_server_that_drains),
		cmocka_unit_test(every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
