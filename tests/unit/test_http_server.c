/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "net/http/http_server.h"
#include "support/fault_net.h"

enum { TURNS_MAX = 100000, REQUESTS = 3, DRAIN_MS = 1000, CLIENTS = 8 };

static const char request[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
			      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
			      "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
			      "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";

/* A server that answers with the body, at once or a turn later, and a client. */
struct bench {
	struct fault_net fault;
	struct hx_reactor reactor;
	struct hx_http_server server;
	struct hx_task task;
	struct hx_http_exchange *held;
	bool answers_later;
	unsigned requests;
	unsigned drained;
	int client;
	char got[4096];
	size_t got_size;
};

static void answer(struct hx_http_exchange *exchange)
{
	struct hapax_bytes body = {NULL, 0};

	assert_int_equal(hx_http_body_whole(&exchange->body, NULL, &body, NULL), HAPAX_OK);
	hx_http_reply(exchange, &(struct hx_http_reply){.status = 200, .body = body});
}

static void on_task(struct hx_task *task)
{
	struct bench *bench = task->context;
	struct hx_http_exchange *exchange = bench->held;

	bench->held = NULL;
	answer(exchange);
}

static void handle(struct hx_http_exchange *exchange)
{
	struct bench *bench = exchange->server->context;

	bench->requests++;
	assert_true(hx_bytes_equal(exchange->head.path, HX_BYTES_LIT("/x")));
	assert_int_equal(exchange->body.size, 5);
	if (!bench->answers_later) {
		answer(exchange);
		return;
	}
	assert_null(bench->held);
	bench->held = exchange;
	hx_reactor_post(&bench->reactor, &bench->task);
}

static void on_drained(struct hx_http_server *server)
{
	((struct bench *)server->context)->drained++;
}

static struct bench *open_bench(void)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));
	struct hx_endpoint endpoint = {.host = "127.0.0.1"};
	struct hx_address address;

	fault_net_init(&bench->fault);
	bench->task = (struct hx_task){.fn = on_task, .context = bench};
	assert_int_equal(hx_reactor_init(&bench->reactor, &bench->fault.net, NULL), HAPAX_OK);
	assert_true(hx_endpoint_address(&endpoint, &address));
	assert_int_equal(
		hx_http_server_open(
			&bench->server, &bench->reactor, &address, false, NULL, handle, on_drained,
			bench, NULL),
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
	close(bench->client);
	hx_http_server_close(&bench->server);
	for (int i = 0; i < TURNS_MAX && (bench->server.peer_count > 0 || bench->held); i++)
		hx_reactor_turn(&bench->reactor, 0);
	hx_http_server_done(&bench->server);
	hx_reactor_done(&bench->reactor);
	test_free(bench);
}

/* Turn once, and take what has come. False: the server has closed. */
static bool turn(struct bench *bench)
{
	ssize_t count;

	hx_reactor_turn(&bench->reactor, 0);
	count =
		read(bench->client, bench->got + bench->got_size,
		     sizeof(bench->got) - 1 - bench->got_size);
	if (count > 0)
		bench->got_size += (size_t)count;
	bench->got[bench->got_size] = '\0';
	return count != 0;
}

static unsigned answers(const struct bench *bench)
{
	unsigned count = 0;

	for (const char *at = bench->got; (at = strstr(at, "\r\n\r\nhello")) != NULL; at++)
		count++;
	return count;
}

static void send_bytes(struct bench *bench, const char *data, size_t size)
{
	assert_int_equal(write(bench->client, data, size), size);
}

static void expect_answers(struct bench *bench)
{
	for (int i = 0; answers(bench) < REQUESTS && i < TURNS_MAX; i++)
		assert_true(turn(bench));
	assert_int_equal(answers(bench), REQUESTS);
	assert_int_equal(bench->requests, REQUESTS);
}

static void cut_at_every_byte(void **state)
{
	(void)state;
	for (size_t cut = 0; cut < sizeof(request); cut++) {
		struct bench *bench = open_bench();

		bench->answers_later = cut % 2 == 0;
		send_bytes(bench, request, cut);
		for (int i = 0; i < 4; i++)
			assert_true(turn(bench));
		send_bytes(bench, request + cut, sizeof(request) - 1 - cut);
		expect_answers(bench);
		close_bench(bench);
	}
}

static void small_pieces_both_ways(void **state)
{
	struct bench *bench = open_bench();

	(void)state;
	bench->answers_later = true;
	bench->fault.recv_size_max = 1;
	bench->fault.send_size_max = 1;
	bench->fault.refuses_every_second = true;
	send_bytes(bench, request, sizeof(request) - 1);
	expect_answers(bench);
	close_bench(bench);
}

/* Without memory a connection is refused or closed; nothing is lost or leaks. */
static void every_allocation_fails_once(void **state)
{
	bool is_over = false;

	(void)state;
	for (uint64_t nth = 1; !is_over; nth++) {
		struct bench *bench = open_bench();
		uint64_t before = hx_alloc_count();

		hx_alloc_fail_at(nth, 0);
		send_bytes(bench, request, sizeof(request) - 1);
		for (int i = 0; i < 100 && turn(bench) && answers(bench) < REQUESTS; i++)
			;
		is_over = hx_alloc_count() - before < nth;
		hx_alloc_fail_at(0, 0);
		if (is_over)
			assert_int_equal(answers(bench), REQUESTS);
		close_bench(bench);
		assert_int_equal(hx_alloc_live(), 0);
	}
}

static void drains_after_the_reply(void **state)
{
	struct bench *bench = open_bench();

	(void)state;
	bench->answers_later = true;
	send_bytes(bench, request, sizeof(request) - 1);
	while (bench->held == NULL)
		assert_true(turn(bench));
	hx_http_server_drain(&bench->server);
	assert_int_equal(bench->drained, 0);
	for (int i = 0; turn(bench) && i < TURNS_MAX; i++)
		;
	fault_net_advance(&bench->fault, DRAIN_MS);
	/* What was sent ahead is not taken up any more. */
	assert_int_equal(answers(bench), bench->requests);
	assert_true(bench->requests < REQUESTS);
	assert_non_null(strstr(bench->got, "Connection: close"));
	close(bench->client);
	bench->client = -1;
	for (int i = 0; bench->drained == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->drained, 1);
	close_bench(bench);
}

static int connect_to(const struct bench *bench)
{
	int client = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(client >= 0);
	assert_int_equal(
		connect(client, (const struct sockaddr *)&bench->server.listener.address.storage,
			bench->server.listener.address.size),
		0);
	assert_int_equal(fcntl(client, F_SETFL, O_NONBLOCK), 0);
	return client;
}

/* A client accepted before the end, by the kernel or by us, is answered; idle ones are closed. */
static void drains_who_waits_at_the_door(void **state)
{
	struct bench *bench = open_bench();
	const char *end = strstr(request + 1, "POST");
	int idle = connect_to(bench);
	int clients[CLIENTS];
	int late;
	char byte;

	(void)state;
	/* One has begun its request, one is idle; the others were not accepted yet. */
	send_bytes(bench, request, 20);
	for (int i = 0; i < 10; i++)
		assert_true(turn(bench));
	assert_int_equal(bench->server.peer_count, 2);
	hx_listener_limit(&bench->server.listener, 2);
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = connect_to(bench);
		assert_int_equal(
			write(clients[i], request, (size_t)(end - request)), end - request);
	}
	hx_http_server_drain(&bench->server);
	/* A client that connects now is not heard. */
	late = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(
		connect(late, (const struct sockaddr *)&bench->server.listener.address.storage,
			bench->server.listener.address.size),
		-1);
	assert_int_equal(errno, EINPROGRESS);
	close(late);
	for (int i = 0; i < 100; i++)
		assert_true(turn(bench));
	fault_net_advance(&bench->fault, DRAIN_MS);
	for (int i = 0; bench->requests < CLIENTS && i < TURNS_MAX; i++)
		assert_true(turn(bench));
	fault_net_advance(&bench->fault, DRAIN_MS);
	for (int i = 0; read(idle, &byte, 1) != 0 && i < TURNS_MAX; i++)
		assert_true(turn(bench));
	close(idle);
	send_bytes(bench, request + 20, (size_t)(end - request) - 20);
	for (int i = 0; turn(bench) && i < TURNS_MAX; i++)
		;
	assert_int_equal(answers(bench), 1);
	for (int i = 0; i < CLIENTS; i++) {
		char text[1024] = "";

		assert_true(read(clients[i], text, sizeof(text) - 1) > 0);
		assert_non_null(strstr(text, "\r\n\r\nhello"));
		assert_non_null(strstr(text, "Connection: close"));
		close(clients[i]);
	}
	close(bench->client);
	bench->client = -1;
	for (int i = 0; bench->drained == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(bench->drained, 1);
	close_bench(bench);
}

static void drains_at_once_when_nobody_is_there(void **state)
{
	struct bench *bench = open_bench();

	(void)state;
	close(bench->client);
	bench->client = -1;
	for (int i = 0; i < 10; i++)
		hx_reactor_turn(&bench->reactor, 0);
	hx_http_server_drain(&bench->server);
	fault_net_advance(&bench->fault, DRAIN_MS);
	for (int i = 0; bench->drained == 0 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_true(hx_http_server_has_drained(&bench->server));
	assert_int_equal(bench->drained, 1);
	close_bench(bench);
}

/* What many clients make it hold has an end; when they have gone, there is room again. */
static void memory_has_a_limit(void **state)
{
	static const char head[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
	enum { HELD = 60000, MEMORY = 512 * 1024 };
	struct bench *bench = open_bench();
	static char text[HELD];
	int clients[CLIENTS];
	unsigned refused = 0;
	size_t held_max = 0;
	static struct hx_budget budget;

	(void)state;
	hx_budget_limit(&budget, MEMORY);
	bench->reactor.blocks.budget = &budget;
	bench->server.options.budget = &budget;
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = connect_to(bench);
		assert_int_equal(write(clients[i], head, strlen(head)), strlen(head));
		for (int turns = 0, sent = 0; turns < 1000; turns++) {
			ssize_t count = send(clients[i], text, (size_t)(HELD - sent), MSG_NOSIGNAL);

			sent += count > 0 ? (int)count : 0;
			hx_reactor_turn(&bench->reactor, 0);
			if (bench->reactor.blocks.held_bytes > held_max)
				held_max = bench->reactor.blocks.held_bytes;
		}
	}
	for (int i = 0; i < CLIENTS; i++) {
		ssize_t count = read(clients[i], text, HELD - 1);

		text[count > 0 ? count : 0] = '\0';
		refused += strstr(text, "HTTP/1.1 503 ") != NULL;
		close(clients[i]);
	}
	assert_true(refused > 0 && refused < CLIENTS);
	assert_true(held_max <= MEMORY);
	assert_true(hx_budget_used(&budget) >= bench->reactor.blocks.held_bytes);
	for (int i = 0; bench->server.peer_count > 1 && i < TURNS_MAX; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_true(bench->reactor.blocks.held_bytes < MEMORY / 2);
	send_bytes(bench, request, sizeof(request) - 1);
	expect_answers(bench);
	close_bench(bench);
	assert_int_equal(hx_budget_used(&budget), 0);
}

static void a_client_that_does_not_finish(void **state)
{
	struct bench *bench = open_bench();

	(void)state;
	send_bytes(bench, request, 20);
	for (int i = 0; i < 4; i++)
		assert_true(turn(bench));
	fault_net_advance(&bench->fault, 5001);
	for (int i = 0; turn(bench) && i < TURNS_MAX; i++)
		;
	assert_non_null(strstr(bench->got, "HTTP/1.1 408 "));
	assert_int_equal(bench->requests, 0);
	close_bench(bench);
}

/* A request takes a slot when all of it is there: what is only begun takes none from others. */
static void a_slot_counts_from_hand_over(void **state)
{
	static const char part[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nh";
	struct bench *bench = open_bench();
	int clients[CLIENTS];
	char text[1024] = "";

	(void)state;
	bench->server.options.exchanges_max = 1;
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = connect_to(bench);
		assert_int_equal(write(clients[i], part, strlen(part)), strlen(part));
	}
	for (int i = 0; bench->server.exchange_count < CLIENTS && i < TURNS_MAX; i++)
		assert_true(turn(bench));
	assert_int_equal(bench->server.exchange_count, CLIENTS);
	assert_int_equal(bench->server.handed_count, 0);
	send_bytes(bench, request, sizeof(request) - 1);
	expect_answers(bench);
	/* While one is with its handler, the next whole one is refused. */
	bench->answers_later = true;
	for (int i = 0; i < 2; i++)
		assert_int_equal(write(clients[i], "ello", 4), 4);
	for (int i = 0; bench->server.peer_count == CLIENTS + 1 && i < TURNS_MAX; i++)
		assert_true(turn(bench));
	assert_int_equal(bench->requests, REQUESTS + 1);
	for (int i = 0; i < 2; i++) {
		size_t size = strlen(text);
		ssize_t count = read(clients[i], text + size, sizeof(text) - 1 - size);

		assert_true(count > 0);
		text[size + (size_t)count] = '\0';
	}
	assert_non_null(strstr(text, "HTTP/1.1 503 "));
	assert_non_null(strstr(text, "Retry-After: 1"));
	assert_non_null(strstr(text, "\r\n\r\nhello"));
	for (int i = 0; i < CLIENTS; i++)
		close(clients[i]);
	close_bench(bench);
}

static void send_body(struct bench *bench, size_t size)
{
	static const char bytes[64 * 1024];

	send_bytes(bench, bytes, size);
	for (int i = 0; i < 100; i++)
		assert_true(turn(bench));
}

/* However much of a body has come: once it falls silent, it has body_ms. */
static void a_body_that_falls_silent(void **state)
{
	static const char head[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n";
	enum { BODY_MS = 10 * 1000, STEPS = 20 };
	struct bench *bench = open_bench();

	(void)state;
	send_bytes(bench, head, strlen(head));
	/* As slowly as is allowed, for much longer than BODY_MS. */
	for (int i = 0; i < STEPS; i++) {
		send_body(bench, 4 * 1000);
		fault_net_advance(&bench->fault, 1000);
		assert_true(turn(bench));
	}
	/* Many at once are not saved up for later. */
	for (int i = 0; i < STEPS / 2; i++)
		send_body(bench, 40 * 1000);
	fault_net_advance(&bench->fault, BODY_MS - 1);
	for (int i = 0; i < 10; i++)
		assert_true(turn(bench));
	fault_net_advance(&bench->fault, 2);
	for (int i = 0; turn(bench) && i < TURNS_MAX; i++)
		;
	assert_non_null(strstr(bench->got, "HTTP/1.1 408 "));
	assert_int_equal(bench->requests, 0);
	close_bench(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(small_pieces_both_ways),
		cmocka_unit_test(every_allocation_fails_once),
		cmocka_unit_test(drains_after_the_reply),
		cmocka_unit_test(drains_who_waits_at_the_door),
		cmocka_unit_test(drains_at_once_when_nobody_is_there),
		cmocka_unit_test(memory_has_a_limit),
		cmocka_unit_test(a_client_that_does_not_finish),
		cmocka_unit_test(a_slot_counts_from_hand_over),
		cmocka_unit_test(a_body_that_falls_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
