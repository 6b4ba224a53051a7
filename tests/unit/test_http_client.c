/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/http/http_client.h"
#include "support/fault_net.h"

enum { TURNS_MAX = 100000, SECOND_MS = 1000 };

#define MS_NS INT64_C(1000000)

/* A server of the test's own, and a call. */
struct bench {
	struct fault_net fault;
	struct hx_reactor reactor;
	struct hx_http_client client;
	struct hx_http_call call;
	int listener;
	int peer; /* the connection that was accepted last */
	unsigned heads;
	unsigned status;
	unsigned ends;
	enum hx_http_call_end end;
	char body[64];
	size_t body_size;
	bool pauses; /* at each piece of a body */
	unsigned hurries;
	bool is_revoked; /* what has waited must not be sent any more */
};

static bool may_send(struct hx_http_call *call)
{
	const struct bench *bench = call->context;

	return !bench->is_revoked;
}

static void on_head(struct hx_http_call *call, const struct hx_http1_head *head)
{
	struct bench *bench = call->context;

	bench->heads++;
	bench->status = head->status;
}

static void on_data(struct hx_http_call *call, struct hapax_bytes data)
{
	struct bench *bench = call->context;

	assert_true(bench->body_size + data.size < sizeof(bench->body));
	memcpy(bench->body + bench->body_size, data.data, data.size);
	bench->body_size += data.size;
	if (bench->pauses)
		hx_http_call_pause(call);
}

static void on_hurry(struct hx_http_call *call)
{
	struct bench *bench = call->context;

	bench->hurries++;
	bench->pauses = false;
	hx_http_call_resume(call);
}

static void on_end(
	struct hx_http_call *call, enum hx_http_call_end end, const struct hapax_error *err)
{
	struct bench *bench = call->context;

	assert_true((err == NULL) == (end == HX_HTTP_CALL_COMPLETE));
	bench->ends++;
	bench->end = end;
}

static const struct hx_http_call_ops ops = {
	.may_send = may_send,
	.on_head = on_head,
	.on_data = on_data,
	.on_hurry = on_hurry,
	.on_end = on_end};

static uint16_t listen_on_any(struct bench *bench)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bench->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(bench->listener >= 0);
	assert_int_equal(bind(bench->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(bench->listener, 8), 0);
	assert_int_equal(fcntl(bench->listener, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(getsockname(bench->listener, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

static int set_up(void **state)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));
	struct hx_endpoint endpoint = {.host = "127.0.0.1"};

	fault_net_init(&bench->fault);
	bench->peer = -1;
	endpoint.port = listen_on_any(bench);
	*state = bench;
	if (hx_reactor_init(&bench->reactor, &bench->fault.net, NULL) != HAPAX_OK)
		return -1;
	hx_http_client_init(&bench->client, &bench->reactor, NULL, &endpoint, NULL);
	return hx_http_call_init(&bench->call, &bench->reactor, &ops, bench);
}

static void close_peer(struct bench *bench)
{
	if (bench->peer >= 0)
		close(bench->peer);
	bench->peer = -1;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hx_http_call_done(&bench->call, &bench->reactor);
	hx_http_client_close(&bench->client);
	for (int i = 0; i < TURNS_MAX && bench->client.link_count > 0; i++)
		hx_reactor_turn(&bench->reactor, 0);
	hx_http_client_done(&bench->client);
	hx_reactor_done(&bench->reactor);
	close_peer(bench);
	close(bench->listener);
	test_free(bench);
	return 0;
}

static void begin(struct bench *bench, const char *body)
{
	static char head[128];

	snprintf(
		head, sizeof(head), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
		strlen(body));
	bench->ends = 0;
	bench->heads = 0;
	bench->body_size = 0;
	bench->call.head = hapax_bytes_from_text(head);
	bench->call.body = hapax_bytes_from_text(body);
	bench->call.file = NULL;
	assert_int_equal(
		hx_http_call_begin(
			&bench->call, &bench->client,
			hx_reactor_now_ns(&bench->reactor) + SECOND_MS * MS_NS, NULL),
		HAPAX_OK);
}

/* Turn until the connection is there. */
static void accept_one(struct bench *bench)
{
	close_peer(bench);
	for (int i = 0; bench->peer < 0 && i < TURNS_MAX; i++) {
		hx_reactor_turn(&bench->reactor, 0);
		bench->peer = accept(bench->listener, NULL, NULL);
	}
	assert_true(bench->peer >= 0);
	assert_int_equal(fcntl(bench->peer, F_SETFL, O_NONBLOCK), 0);
}

/* Turn until the request has come whole. */
static void receive(struct bench *bench, const char *body)
{
	char text[1024];
	size_t size = 0;

	for (int i = 0; i < TURNS_MAX; i++) {
		ssize_t count = read(bench->peer, text + size, sizeof(text) - 1 - size);

		if (count > 0)
			size += (size_t)count;
		text[size] = '\0';
		if (strstr(text, "\r\n\r\n") != NULL &&
		    strcmp(strstr(text, "\r\n\r\n") + 4, body) == 0)
			return;
		hx_reactor_turn(&bench->reactor, 0);
	}
	fail_msg("the request did not come: '%s'", text);
}

static void send_text(struct bench *bench, const char *text)
{
	assert_int_equal(write(bench->peer, text, strlen(text)), strlen(text));
}

static void expect_end(struct bench *bench, enum hx_http_call_end end)
{
	for (int i = 0; bench->ends == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->ends, 1);
	assert_int_equal(bench->end, end);
}

static void expect_body(const struct bench *bench, const char *body)
{
	assert_int_equal(bench->body_size, strlen(body));
	assert_memory_equal(bench->body, body, bench->body_size);
}

static void do_one(struct bench *bench)
{
	begin(bench, "hello");
	accept_one(bench);
	receive(bench, "hello");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	assert_int_equal(bench->status, 200);
	expect_body(bench, "ok");
}

static void a_connection_is_used_again(void **state)
{
	struct bench *bench = *state;

	do_one(bench);
	begin(bench, "again");
	receive(bench, "again");
	send_text(bench, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	assert_int_equal(bench->heads, 1);
	assert_int_equal(bench->status, 204);
	assert_int_equal(bench->client.dialed, 1);
	assert_int_equal(bench->client.reused, 1);
}

/* Nothing was sent on it: begun again on a new one, once. */
static void a_kept_connection_that_was_closed(void **state)
{
	struct bench *bench = *state;

	do_one(bench);
	close_peer(bench);
	begin(bench, "again");
	accept_one(bench);
	receive(bench, "again");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	assert_int_equal(bench->client.dialed, 2);
}

/* Bytes were sent, on a new connection or a kept one: unknown outcome, and no retry. */
static void an_answer_that_does_not_come_is_lost(void **state)
{
	struct bench *bench = *state;

	begin(bench, "hello");
	accept_one(bench);
	receive(bench, "hello");
	close_peer(bench);
	expect_end(bench, HX_HTTP_CALL_LOST);
	do_one(bench);
	begin(bench, "again");
	receive(bench, "again");
	close_peer(bench);
	expect_end(bench, HX_HTTP_CALL_LOST);
	assert_int_equal(bench->client.dialed, 2);
}

static void half_an_answer_is_lost(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"HTTP/1.1 200 OK\r\nConte",
		"nonsense\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		begin(bench, "hello");
		accept_one(bench);
		receive(bench, "hello");
		send_text(bench, answers[i]);
		close_peer(bench);
		expect_end(bench, HX_HTTP_CALL_LOST);
	}
	assert_int_equal(bench->client.reused, 0);
}

static void an_answer_may_end_with_the_connection(void **state)
{
	struct bench *bench = *state;

	begin(bench, "hello");
	accept_one(bench);
	receive(bench, "hello");
	send_text(bench, "HTTP/1.1 200 OK\r\n\r\nall there is");
	close_peer(bench);
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	expect_body(bench, "all there is");
}

static void bytes_behind_an_answer_end_the_connection(void **state)
{
	struct bench *bench = *state;

	begin(bench, "hello");
	accept_one(bench);
	receive(bench, "hello");
	send_text(bench, "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	do_one(bench);
	assert_int_equal(bench->client.dialed, 2);
}

static void nobody_listens(void **state)
{
	struct bench *bench = *state;

	close(bench->listener);
	bench->listener = -1;
	begin(bench, "hello");
	expect_end(bench, HX_HTTP_CALL_UNSENT);
	assert_false(bench->call.is_late);
	assert_int_equal(bench->client.link_count, 0);
}

static void time_is_up(void **state)
{
	struct bench *bench = *state;

	begin(bench, "hello");
	accept_one(bench);
	receive(bench, "hello");
	fault_net_advance(&bench->fault, SECOND_MS + 1);
	expect_end(bench, HX_HTTP_CALL_LOST);
	assert_true(bench->call.is_late);
	/* Who waits for a connection has sent nothing. */
	bench->client.options.connections_max = bench->client.link_count;
	begin(bench, "hello");
	fault_net_advance(&bench->fault, SECOND_MS + 1);
	expect_end(bench, HX_HTTP_CALL_UNSENT);
	assert_true(bench->call.is_late);
}

static void a_kept_connection_is_not_kept_for_ever(void **state)
{
	struct bench *bench = *state;

	do_one(bench);
	fault_net_advance(&bench->fault, 4 * SECOND_MS + 1);
	for (int i = 0; bench->client.link_count > 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->client.link_count, 0);
}

static void sends_in_small_pieces(void **state)
{
	struct bench *bench = *state;

	bench->fault.send_size_max = 1;
	bench->fault.recv_size_max = 1;
	bench->fault.refuses_every_second = true;
	do_one(bench);
	begin(bench, "again");
	receive(bench, "again");
	send_text(
		bench, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	expect_body(bench, "ok");
	assert_int_equal(bench->client.dialed, 1);
}

static void a_body_from_a_file(void **state)
{
	struct bench *bench = *state;
	struct hx_http_body body;

	hx_http_body_init(&body, "/tmp", 4);
	assert_int_equal(hx_http_body_add(&body, HX_BYTES_LIT("hel"), NULL), HAPAX_OK);
	assert_true(hx_http_body_is_in_memory(&body));
	assert_int_equal(hx_http_body_add(&body, HX_BYTES_LIT("lo"), NULL), HAPAX_OK);
	assert_false(hx_http_body_is_in_memory(&body));
	begin(bench, "");
	bench->call.file = &body;
	accept_one(bench);
	receive(bench, "hello");
	send_text(bench, "HTTP/1.1 204 No Content\r\n\r\n");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	hx_http_body_done(&body);
}

/* Bytes that came before anything was sent do not answer it: once more, on another connection. */
static void an_answer_before_the_request(void **state)
{
	struct bench *bench = *state;

	do_one(bench);
	bench->fault.send_errno = EAGAIN;
	begin(bench, "again");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nlie");
	for (int i = 0; bench->client.dialed == 1 && bench->ends == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->ends, 0);
	bench->fault.send_errno = 0;
	accept_one(bench);
	receive(bench, "again");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntruth");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	expect_body(bench, "truth");
}

/* A task of a turn: the server speaks after the turn has looked, and before it sends. */
static void lie_and_begin(struct hx_task *task)
{
	struct bench *bench = task->context;

	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nlie");
	begin(bench, "again");
}

/* The bytes lie in the kernel when the request is sent, and no turn has looked at them. */
static void an_answer_that_lay_there_before_the_request(void **state)
{
	struct bench *bench = *state;
	struct hx_task task = {.fn = lie_and_begin, .context = bench};

	do_one(bench);
	hx_reactor_defer(&bench->reactor, &task);
	hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->client.reused, 1);
	accept_one(bench);
	receive(bench, "again");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntruth");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	expect_body(bench, "truth");
	assert_int_equal(bench->client.dialed, 2);
}

/* On a new connection: the call fails, and is known not to have been sent. */
static void a_server_that_speaks_first(void **state)
{
	struct bench *bench = *state;

	begin(bench, "hello");
	bench->peer = accept(bench->listener, NULL, NULL);
	assert_true(bench->peer >= 0);
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nlie");
	expect_end(bench, HX_HTTP_CALL_UNSENT);
	assert_int_equal(bench->heads, 0);
}

/* It takes no more until it is told to, and the server's time does not run meanwhile. */
static void a_call_that_is_paused(void **state)
{
	struct bench *bench = *state;

	bench->pauses = true;
	begin(bench, "hello");
	accept_one(bench);
	receive(bench, "hello");
	send_text(bench, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	send_text(bench, "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n");
	for (int i = 0; bench->body_size == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	for (int i = 0; i < 100; i++)
		hx_reactor_turn(&bench->reactor, 0);
	expect_body(bench, "a");
	hx_http_call_resume(&bench->call);
	for (int i = 0; i < 100; i++)
		hx_reactor_turn(&bench->reactor, 0);
	expect_body(bench, "ab");
	fault_net_advance(&bench->fault, SECOND_MS + 1);
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	expect_body(bench, "abc");
	assert_int_equal(bench->hurries, 1);
	assert_false(bench->call.is_late);
	/* The connection is as good as before. */
	begin(bench, "again");
	receive(bench, "again");
	send_text(bench, "HTTP/1.1 204 No Content\r\n\r\n");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	assert_int_equal(bench->client.dialed, 1);
}

/* The time that it was paused for is given once. */
static void a_paused_call_that_is_late_all_the_same(void **state)
{
	struct bench *bench = *state;

	bench->pauses = true;
	begin(bench, "hello");
	accept_one(bench);
	receive(bench, "hello");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
	for (int i = 0; bench->body_size == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	for (int i = 0; bench->ends == 0 && i < 3; i++) {
		fault_net_advance(&bench->fault, SECOND_MS + 1);
		for (int turns = 0; turns < 100; turns++)
			hx_reactor_turn(&bench->reactor, 0);
	}
	expect_end(bench, HX_HTTP_CALL_LOST);
	assert_true(bench->call.is_late);
	assert_int_equal(bench->hurries, 1);
	/* Over: neither does anything. */
	hx_http_call_pause(&bench->call);
	hx_http_call_resume(&bench->call);
}

static void connections_that_are_not_to_be_kept(void **state)
{
	struct bench *bench = *state;

	bench->client.options.idle_max = HX_HTTP_IDLE_NONE;
	do_one(bench);
	do_one(bench);
	assert_int_equal(bench->client.dialed, 2);
	hx_http_client_configure(&bench->client, &(struct hx_http_client_options){.idle_max = 1});
	do_one(bench);
	assert_int_equal(bench->client.idle_count, 1);
	begin(bench, "again");
	assert_int_equal(bench->client.idle_count, 0);
	receive(bench, "again");
	send_text(bench, "HTTP/1.1 204 No Content\r\n\r\n");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	assert_int_equal(bench->client.dialed, 3);
}

/* A second call of the same bench: what it ends with counts there. */
static void begin_other(struct bench *bench, struct hx_http_call *other)
{
	assert_int_equal(hx_http_call_init(other, &bench->reactor, &ops, bench), HAPAX_OK);
	other->head =
		hapax_bytes_from_text("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n");
	other->body = hapax_bytes_from_text("other");
	assert_int_equal(
		hx_http_call_begin(
			other, &bench->client,
			hx_reactor_now_ns(&bench->reactor) + SECOND_MS * MS_NS, NULL),
		HAPAX_OK);
}

static void expect_ends(struct bench *bench, unsigned ends)
{
	for (int i = 0; bench->ends < ends && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->ends, ends);
	assert_int_equal(bench->end, HX_HTTP_CALL_COMPLETE);
}

/* No call gets a connection that another call has, though there may be one only. */
static void a_call_that_waits_where_none_is_kept(void **state)
{
	struct bench *bench = *state;
	struct hx_http_call other = {0};

	hx_http_client_configure(
		&bench->client,
		&(struct hx_http_client_options){
			.connections_max = 1, .idle_max = HX_HTTP_IDLE_NONE});
	begin(bench, "first");
	begin_other(bench, &other);
	accept_one(bench);
	receive(bench, "first");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_ends(bench, 1);
	accept_one(bench);
	receive(bench, "other");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_ends(bench, 2);
	assert_int_equal(bench->client.dialed, 2);
	assert_int_equal(bench->client.reused, 0);
	hx_http_call_done(&other, &bench->reactor);
}

/* It may wait for a line behind others, and gets the one that they leave. */
static void a_call_that_is_begun_again_where_no_more_lines_may_be(void **state)
{
	struct bench *bench = *state;
	struct hx_http_call other = {0};

	hx_http_client_configure(
		&bench->client, &(struct hx_http_client_options){.connections_max = 1});
	do_one(bench);
	begin(bench, "again");
	begin_other(bench, &other);
	close_peer(bench);
	accept_one(bench);
	receive(bench, "other");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_ends(bench, 1);
	receive(bench, "again");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_ends(bench, 2);
	assert_int_equal(bench->client.dialed, 2);
	hx_http_call_done(&other, &bench->reactor);
}

/* The caller has lost the right to it while it waited: nothing of it is sent. */
static void a_call_that_may_not_be_sent_any_more(void **state)
{
	struct bench *bench = *state;
	struct hx_http_call other = {0};

	hx_http_client_configure(
		&bench->client, &(struct hx_http_client_options){.connections_max = 1});
	/* While it dialed. */
	bench->is_revoked = true;
	begin(bench, "late");
	expect_end(bench, HX_HTTP_CALL_UNSENT);
	assert_true(bench->call.is_revoked);
	accept_one(bench);
	assert_int_equal(recv(bench->peer, bench->body, sizeof(bench->body), 0), 0);
	/* While it waited for a line. The one before it has the line, and is not asked. */
	bench->is_revoked = false;
	do_one(bench);
	begin(bench, "first");
	receive(bench, "first");
	begin_other(bench, &other);
	bench->is_revoked = true;
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	for (int i = 0; bench->ends < 2 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->ends, 2);
	assert_int_equal(bench->end, HX_HTTP_CALL_UNSENT);
	hx_http_call_done(&other, &bench->reactor);
}

/* A kept connection has waited for nothing, unless the server takes nothing. */
static void a_call_that_may_not_be_sent_by_the_time_the_server_takes_it(void **state)
{
	struct bench *bench = *state;

	do_one(bench);
	bench->fault.send_errno = EAGAIN;
	begin(bench, "late");
	hx_reactor_turn(&bench->reactor, 0);
	assert_true(bench->fault.sends > 0);
	assert_int_equal(bench->ends, 0);
	bench->is_revoked = true;
	bench->fault.send_errno = 0;
	expect_end(bench, HX_HTTP_CALL_UNSENT);
	assert_true(bench->call.is_revoked);
	assert_int_equal(recv(bench->peer, bench->body, sizeof(bench->body), 0), 0);
	assert_int_equal(bench->client.dialed, 1);
}

/* Who waits does not get a line whose end has come with the answer. */
static void an_answer_and_the_end_together(void **state)
{
	struct bench *bench = *state;
	struct hx_http_call other = {0};

	hx_http_client_configure(
		&bench->client, &(struct hx_http_client_options){.connections_max = 1});
	begin(bench, "hello");
	begin_other(bench, &other);
	accept_one(bench);
	receive(bench, "hello");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	close_peer(bench);
	accept_one(bench);
	assert_int_equal(bench->ends, 1);
	receive(bench, "other");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_ends(bench, 2);
	assert_int_equal(bench->client.dialed, 2);
	hx_http_call_done(&other, &bench->reactor);
}

/* The length is that of what a GET would bring; the next answer follows the head. */
static void an_answer_to_head(void **state)
{
	struct bench *bench = *state;

	for (int i = 0; i < 2; i++) {
		bench->call.is_head = true;
		begin(bench, "");
		if (i == 0)
			accept_one(bench);
		receive(bench, "");
		send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
		expect_end(bench, HX_HTTP_CALL_COMPLETE);
		expect_body(bench, "");
	}
	bench->call.is_head = false;
	begin(bench, "x");
	receive(bench, "x");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_end(bench, HX_HTTP_CALL_COMPLETE);
	expect_body(bench, "ok");
	assert_int_equal(bench->client.dialed, 1);
}

/* As long as it is prolonged it is not late. */
static void a_call_that_is_prolonged(void **state)
{
	struct bench *bench = *state;

	begin(bench, "x");
	accept_one(bench);
	receive(bench, "x");
	for (int i = 0; i < 5; i++) {
		hx_http_call_prolong(
			&bench->call, hx_reactor_now_ns(&bench->reactor) + SECOND_MS * MS_NS);
		fault_net_advance(&bench->fault, SECOND_MS * 9 / 10);
		for (int turns = 0; turns < 100; turns++)
			hx_reactor_turn(&bench->reactor, 0);
		assert_int_equal(bench->ends, 0);
	}
	fault_net_advance(&bench->fault, SECOND_MS / 5);
	expect_end(bench, HX_HTTP_CALL_LOST);
	assert_true(bench->call.is_late);
	/* It is over: nothing happens. */
	hx_http_call_prolong(&bench->call, 0);
	hx_http_call_abandon(&bench->call);
}

static void a_call_that_is_abandoned(void **state)
{
	struct bench *bench = *state;
	char byte;

	begin(bench, "x");
	accept_one(bench);
	receive(bench, "x");
	send_text(bench, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
	while (bench->body_size < 2)
		hx_reactor_turn(&bench->reactor, 0);
	hx_http_call_abandon(&bench->call);
	expect_end(bench, HX_HTTP_CALL_LOST);
	assert_false(bench->call.is_late);
	/* Its connection is closed, and no other is harmed. */
	for (int i = 0; i < TURNS_MAX && read(bench->peer, &byte, 1) != 0; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->client.link_count, 0);
	do_one(bench);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_connection_is_used_again),
		CASE(a_kept_connection_that_was_closed),
		CASE(an_answer_that_does_not_come_is_lost),
		CASE(half_an_answer_is_lost),
		CASE(an_answer_may_end_with_the_connection),
		CASE(bytes_behind_an_answer_end_the_connection),
		CASE(nobody_listens),
		CASE(time_is_up),
		CASE(a_kept_connection_is_not_kept_for_ever),
		CASE(sends_in_small_pieces),
		CASE(a_body_from_a_file),
		CASE(an_answer_before_the_request),
		CASE(an_answer_that_lay_there_before_the_request),
		CASE(a_server_that_speaks_first),
		CASE(a_call_that_is_paused),
		CASE(a_paused_call_that_is_late_all_the_same),
		CASE(connections_that_are_not_to_be_kept),
		CASE(a_call_that_waits_where_none_is_kept),
		CASE(a_call_that_is_begun_again_where_no_more_lines_may_be),
		CASE(a_call_that_may_not_be_sent_any_more),
		CASE(a_call_that_may_not_be_sent_by_the_time_the_server_takes_it),
		CASE(an_answer_and_the_end_together),
		CASE(an_answer_to_head),
		CASE(a_call_that_is_prolonged),
		CASE(a_call_that_is_abandoned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
