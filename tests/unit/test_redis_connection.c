/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to Redis, with a server that is the test: credentials, replies, ends, waits.
 * Time is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/redis_connection.h"
#include "support/fault_net.h"
#include "support/temp_dir.h"

enum {
	TURNS_MAX = 100000,
	OPEN_MS = 5000,
	RETRY_MS_FIRST = 100,
	RETRY_MS_LAST = 400,
	REPLY_SIZE_MAX = 64,
};

#define MS_NS INT64_C(1000000)
#define PING  "*1\r\n$4\r\nPING\r\n"

struct bench {
	struct temp_dir dir;
	struct fault_net fault;
	struct hx_reactor reactor;
	struct hx_redis_place place;
	struct hx_redis_connection connection;
	int listener;
	int peer; /* the server's end */
	unsigned due;
	unsigned ready;
	unsigned replies;
	unsigned taken;
	unsigned closed;
	unsigned idle;
	bool waits;             /* what closed returns */
	bool opens;             /* what idle does */
	bool closes;            /* ... and closed: once more */
	bool is_wrong;          /* what reply says of the next one */
	char reply[128];        /* the last one */
	struct hapax_error why; /* of the last end */
	enum hx_redis_connection_state state;
};

static void open_it(struct bench *bench)
{
	hx_redis_connection_open(
		&bench->connection, &bench->place.endpoints[0],
		hx_reactor_now_ns(&bench->reactor) + OPEN_MS * MS_NS);
}

static enum hapax_status greet(struct hx_redis_connection *connection)
{
	return hx_connection_write(&connection->stream, PING, sizeof(PING) - 1);
}

static size_t reply_size_max(struct hx_redis_connection *connection)
{
	return ((struct bench *)connection->context)->due > 0 ? REPLY_SIZE_MAX : 0;
}

static bool on_reply(struct hx_redis_connection *connection, struct hapax_bytes reply)
{
	struct bench *bench = connection->context;

	if (connection->state == HX_REDIS_CONNECTION_GREETING) {
		hx_redis_connection_ready(connection);
		bench->ready++;
		return true;
	}
	bench->due--;
	bench->replies++;
	(void)snprintf(
		bench->reply, sizeof(bench->reply), "%.*s", (int)reply.size,
		(const char *)reply.data);
	return !bench->is_wrong;
}

static void on_taken(struct hx_redis_connection *connection)
{
	((struct bench *)connection->context)->taken++;
}

static bool on_closed(struct hx_redis_connection *connection, const struct hapax_error *why)
{
	struct bench *bench = connection->context;

	bench->closed++;
	bench->why = *why;
	bench->state = connection->state;
	if (bench->closes)
		assert_false(hx_redis_connection_close(connection));
	return bench->waits;
}

static void on_idle(struct hx_redis_connection *connection)
{
	struct bench *bench = connection->context;

	bench->idle++;
	assert_int_equal(connection->state, HX_REDIS_CONNECTION_CLOSED);
	if (bench->opens)
		open_it(bench);
}

static const struct hx_redis_connection_ops connection_ops = {
	.greet = greet,
	.reply_size_max = reply_size_max,
	.reply = on_reply,
	.taken = on_taken,
	.closed = on_closed,
	.idle = on_idle,
};

static void turn(struct bench *bench)
{
	for (int i = 0; i < 8; i++)
		hx_reactor_turn(&bench->reactor, 0);
}

static void turn_until(struct bench *bench, const unsigned *count, unsigned value)
{
	for (int i = 0; i < TURNS_MAX && *count < value; i++)
		hx_reactor_turn(&bench->reactor, 0);
	turn(bench);
	assert_int_equal(*count, value);
}

static void pass(struct bench *bench, int64_t ms)
{
	fault_net_advance(&bench->fault, ms);
	turn(bench);
}

static void say(struct bench *bench, const char *text)
{
	assert_int_equal(write(bench->peer, text, strlen(text)), strlen(text));
}

static void hang_up(struct bench *bench)
{
	if (bench->peer >= 0)
		(void)close(bench->peer);
	bench->peer = -1;
}

/* The connection comes, and says exactly this. */
static void meet(struct bench *bench, const char *expected)
{
	char text[512] = "";
	size_t size = 0;

	hang_up(bench);
	for (int i = 0; i < TURNS_MAX && bench->peer < 0; i++) {
		hx_reactor_turn(&bench->reactor, 0);
		bench->peer = accept(bench->listener, NULL, NULL);
	}
	assert_true(bench->peer >= 0);
	for (int i = 0; i < TURNS_MAX && size < strlen(expected); i++) {
		ssize_t got;

		hx_reactor_turn(&bench->reactor, 0);
		got = recv(bench->peer, text + size, sizeof(text) - size - 1, MSG_DONTWAIT);
		size += got > 0 ? (size_t)got : 0;
	}
	assert_string_equal(text, expected);
}

static void get_ready(struct bench *bench)
{
	unsigned ready = bench->ready;

	meet(bench, PING);
	say(bench, "+PONG\r\n");
	turn_until(bench, &bench->ready, ready + 1);
	assert_int_equal(bench->connection.state, HX_REDIS_CONNECTION_READY);
}

static void expect_end(
	struct bench *bench, unsigned count, enum hapax_status status, const char *text)
{
	turn_until(bench, &bench->closed, count);
	assert_int_equal(bench->why.status, status);
	assert_non_null(strstr(bench->why.message, text));
}

static int set_up(void **state)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct hx_redis_connection_options options = {
		.ops = &connection_ops,
		.reactor = &bench->reactor,
		.place = &bench->place,
		.retry_ms_first = RETRY_MS_FIRST,
		.retry_ms_last = RETRY_MS_LAST,
	};

	bench->peer = -1;
	temp_dir_init(&bench->dir);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/s", bench->dir.path);
	bench->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(bench->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(bench->listener, 8), 0);
	bench->place.endpoint_count = 1;
	bench->place.endpoints[0].is_unix = true;
	(void)snprintf(
		bench->place.endpoints[0].host, sizeof(bench->place.endpoints[0].host), "%s",
		address.sun_path);
	fault_net_init(&bench->fault);
	assert_int_equal(hx_reactor_init(&bench->reactor, &bench->fault.net, NULL), HAPAX_OK);
	assert_int_equal(hx_redis_connection_init(&bench->connection, &options, bench), HAPAX_OK);
	hx_reactor_turn(&bench->reactor, 0);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	(void)hx_redis_connection_close(&bench->connection);
	turn(bench);
	assert_int_equal(bench->connection.state, HX_REDIS_CONNECTION_CLOSED);
	hx_redis_connection_done(&bench->connection);
	hx_redis_connection_done(&bench->connection);
	hx_reactor_done(&bench->reactor);
	hang_up(bench);
	(void)close(bench->listener);
	temp_dir_done(&bench->dir);
	test_free(bench);
	return 0;
}

/* ------------------------------------------------------------------ greeting */

static void credentials_and_database_come_first(void **state)
{
	struct bench *bench = *state;

	memcpy(bench->place.user, "ann", 4);
	memcpy(bench->place.password, "s3cret", 7);
	bench->place.db = 12;
	open_it(bench);
	meet(bench,
	     "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\ns3cret\r\n"
	     "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n" PING);
	say(bench, "+OK\r\n+OK\r\n");
	turn(bench);
	/* Those two were not the owner's. */
	assert_int_equal(bench->ready, 0);
	say(bench, "+PONG\r\n");
	turn_until(bench, &bench->ready, 1);
	assert_int_equal(bench->closed, 0);
}

static void a_password_needs_no_user_and_may_be_long(void **state)
{
	struct bench *bench = *state;
	char expected[512];

	memset(bench->place.password, 'x', sizeof(bench->place.password) - 1);
	(void)snprintf(
		expected, sizeof(expected), "*2\r\n$4\r\nAUTH\r\n$255\r\n%s\r\n" PING,
		bench->place.password);
	open_it(bench);
	meet(bench, expected);
}

static void a_refusal_says_what_to_do(void **state)
{
	static const struct {
		const char *user;
		int db;
		const char *says;
		enum hapax_status status;
		const char *text;
	} cases[] = {
		{"ann", 0, "-WRONGPASS no\r\n", HAPAX_ERR_INVALID, "user or password: 'WRONGPASS"},
		{"", 0, "-NOAUTH no\r\n", HAPAX_ERR_INVALID, "set them as redis://user:password@"},
		{"", 7, "-ERR out of range\r\n", HAPAX_ERR_INVALID, "no database 7: 'ERR out of"},
		{"", 0, "-LOADING yes\r\n", HAPAX_ERR_UNAVAILABLE, "is loading its data"},
		{"ann", 0, "+OK\r\n-NOAUTH no\r\n", HAPAX_ERR_INVALID, "user or password"},
		{"", 0, "what\r\n", HAPAX_ERR_UNAVAILABLE, "does not speak the Redis protocol"},
	};
	struct bench *bench = *state;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(bench->place.user, sizeof(bench->place.user), "%s", cases[i].user);
		bench->place.db = cases[i].db;
		open_it(bench);
		meet(bench, "");
		say(bench, cases[i].says);
		expect_end(bench, i + 1, cases[i].status, cases[i].text);
		assert_int_equal(bench->state, HX_REDIS_CONNECTION_GREETING);
		assert_int_equal(bench->ready, 0);
	}
}

static void everything_up_to_ready_has_one_deadline(void **state)
{
	struct bench *bench = *state;

	open_it(bench);
	meet(bench, PING);
	say(bench, "*2\r\n:1\r\n");
	pass(bench, OPEN_MS - 1);
	assert_int_equal(bench->closed, 0);
	pass(bench, 2);
	turn_until(bench, &bench->closed, 1);
	assert_int_equal(bench->why.status, HAPAX_ERR_UNAVAILABLE);
	/* What was read of a reply is forgotten with the connection; READY has no deadline. */
	open_it(bench);
	get_ready(bench);
	pass(bench, 100 * OPEN_MS);
	assert_int_equal(bench->closed, 1);
}

static void a_greeting_may_come_again(void **state)
{
	struct bench *bench = *state;

	open_it(bench);
	get_ready(bench);
	hx_redis_connection_greet_again(
		&bench->connection, hx_reactor_now_ns(&bench->reactor) + OPEN_MS * MS_NS);
	say(bench, "+PONG\r\n");
	turn_until(bench, &bench->ready, 2);
	hx_redis_connection_greet_again(
		&bench->connection, hx_reactor_now_ns(&bench->reactor) + OPEN_MS * MS_NS);
	pass(bench, OPEN_MS + 1);
	turn_until(bench, &bench->closed, 1);
}

/* ------------------------------------------------------------------ replies */

static void replies_are_handed_over_whole(void **state)
{
	struct bench *bench = *state;

	open_it(bench);
	get_ready(bench);
	bench->taken = 0;
	bench->due = 3;
	say(bench, ":1\r\n$5\r\nhel");
	turn_until(bench, &bench->replies, 1);
	assert_string_equal(bench->reply, ":1\r\n");
	assert_int_equal(bench->taken, 1);
	bench->fault.recv_size_max = 1;
	say(bench, "lo\r\n*2\r\n:1\r\n:2\r\n");
	turn_until(bench, &bench->replies, 3);
	assert_string_equal(bench->reply, "*2\r\n:1\r\n:2\r\n");
	assert_int_equal(bench->closed, 0);
}

static void what_nobody_asked_for_ends_it(void **state)
{
	struct bench *bench = *state;

	open_it(bench);
	get_ready(bench);
	/* A part is enough: the rest would be taken for the answer to what is asked next. */
	say(bench, "$5\r\nhel");
	expect_end(bench, 1, HAPAX_ERR_UNAVAILABLE, "unexpected message");
	assert_int_equal(bench->state, HX_REDIS_CONNECTION_READY);
	assert_false(bench->connection.has_choked);
}

static void a_reply_beyond_its_size_ends_it(void **state)
{
	struct bench *bench = *state;

	open_it(bench);
	get_ready(bench);
	bench->due = 1;
	say(bench, "$65\r\n");
	turn_until(bench, &bench->closed, 1);
	assert_true(bench->connection.has_choked);
	assert_int_equal(bench->replies, 0);
	open_it(bench);
	assert_false(bench->connection.has_choked);
}

static void a_reply_that_makes_no_sense_ends_it(void **state)
{
	struct bench *bench = *state;

	open_it(bench);
	get_ready(bench);
	bench->due = 2;
	bench->is_wrong = true;
	say(bench, ":1\r\n:2\r\n");
	expect_end(bench, 1, HAPAX_ERR_UNAVAILABLE, "unexpected reply");
	assert_int_equal(bench->replies, 1);
}

/* ------------------------------------------------------------------ ends */

static void a_lost_connection_may_be_opened_at_once(void **state)
{
	struct bench *bench = *state;

	bench->opens = true;
	open_it(bench);
	get_ready(bench);
	hang_up(bench);
	expect_end(bench, 1, HAPAX_ERR_UNAVAILABLE, "Redis closed the connection");
	assert_int_equal(bench->idle, 1);
	get_ready(bench);
}

/* Between half of span_ms and all of it. */
static void expect_wait(struct bench *bench, int64_t span_ms)
{
	unsigned idle = bench->idle;

	assert_int_equal(bench->connection.state, HX_REDIS_CONNECTION_WAITING);
	pass(bench, span_ms / 2 - 1);
	assert_int_equal(bench->idle, idle);
	pass(bench, span_ms / 2 + 1);
	assert_int_equal(bench->idle, idle + 1);
	assert_int_equal(bench->connection.state, HX_REDIS_CONNECTION_CLOSED);
}

static void waits_grow_up_to_a_bound(void **state)
{
	static const int64_t spans_ms[] = {100, 200, 400, 400, 400, 400, 400, 400, 400, 400};
	struct bench *bench = *state;
	unsigned count = 0;

	bench->waits = true;
	(void)unlink(bench->place.endpoints[0].host);
	for (; count < sizeof(spans_ms) / sizeof(spans_ms[0]); count++) {
		open_it(bench);
		turn_until(bench, &bench->closed, count + 1);
		assert_int_equal(bench->why.status, HAPAX_ERR_UNAVAILABLE);
		assert_int_equal(bench->state, HX_REDIS_CONNECTION_DIALLING);
		expect_wait(bench, spans_ms[count]);
	}
	/* The owner says when the server works. */
	bench->connection.failures = 0;
	open_it(bench);
	turn_until(bench, &bench->closed, count + 1);
	expect_wait(bench, RETRY_MS_FIRST);
}

static void closing_ends_what_is_under_way(void **state)
{
	struct bench *bench = *state;

	bench->waits = true;
	bench->opens = true;
	/* Never opened. */
	assert_false(hx_redis_connection_close(&bench->connection));
	/* Dialling. */
	open_it(bench);
	assert_false(hx_redis_connection_close(&bench->connection));
	pass(bench, OPEN_MS + 1);
	assert_int_equal(bench->closed, 0);
	(void)close(accept(bench->listener, NULL, NULL));
	/* Connected: the end comes, and no wait behind it. */
	open_it(bench);
	meet(bench, PING);
	assert_true(hx_redis_connection_close(&bench->connection));
	assert_int_equal(bench->closed, 0);
	turn_until(bench, &bench->closed, 1);
	assert_int_equal(bench->connection.state, HX_REDIS_CONNECTION_CLOSED);
	/* Waiting. */
	open_it(bench);
	meet(bench, PING);
	hang_up(bench);
	turn_until(bench, &bench->closed, 2);
	assert_int_equal(bench->connection.state, HX_REDIS_CONNECTION_WAITING);
	assert_false(hx_redis_connection_close(&bench->connection));
	pass(bench, RETRY_MS_LAST);
	assert_int_equal(bench->idle, 0);
	/* It can be used again. */
	open_it(bench);
	get_ready(bench);
	assert_int_equal(bench->closed, 2);
}

static void the_owner_may_close_it_when_it_is_told_of_the_end(void **state)
{
	struct bench *bench = *state;

	bench->waits = true;
	bench->closes = true;
	open_it(bench);
	get_ready(bench);
	hang_up(bench);
	turn_until(bench, &bench->closed, 1);
	assert_int_equal(bench->connection.state, HX_REDIS_CONNECTION_CLOSED);
	pass(bench, RETRY_MS_LAST);
	assert_int_equal(bench->idle, 0);
	bench->closes = false;
}

static void the_first_reason_stays(void **state)
{
	struct bench *bench = *state;

	/* Nothing is there to break. */
	hx_redis_connection_break(&bench->connection, "too early");
	open_it(bench);
	get_ready(bench);
	hx_redis_connection_break(&bench->connection, "first");
	hx_redis_connection_break(&bench->connection, "second");
	expect_end(bench, 1, HAPAX_ERR_UNAVAILABLE, "first");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(credentials_and_database_come_first),
		CASE(a_password_needs_no_user_and_may_be_long),
		CASE(a_refusal_says_what_to_do),
		CASE(everything_up_to_ready_has_one_deadline),
		CASE(a_greeting_may_come_again),
		CASE(replies_are_handed_over_whole),
		CASE(what_nobody_asked_for_ends_it),
		CASE(a_reply_beyond_its_size_ends_it),
		CASE(a_reply_that_makes_no_sense_ends_it),
		CASE(a_lost_connection_may_be_opened_at_once),
		CASE(waits_grow_up_to_a_bound),
		CASE(closing_ends_what_is_under_way),
		CASE(the_owner_may_close_it_when_it_is_told_of_the_end),
		CASE(the_first_reason_stays),
	};

	return cmocka_run_group_tests_name("redis_connection", tests, NULL, NULL);
}
