/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line to Redis whose server hangs: in the middle of a reply, of a greeting, between two
 * replies. Time is the test's.
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

#include "source/redis/stream_connection.h"
#include "support/fault_net.h"
#include "support/temp_dir.h"

enum { TURNS_MAX = 100000 };

struct bench {
	struct temp_dir dir;
	struct fault_net fault;
	struct hx_reactor reactor;
	struct hx_redis_place place;
	struct hx_redis_line line;
	int listener;
	int peer; /* the server's end */
	unsigned ready;
	unsigned replies;
	unsigned lost;
	unsigned closed;
	char why[128];
};

static void on_ready(struct hx_redis_line *line)
{
	((struct bench *)line->context)->ready++;
}

static void on_reply(struct hx_redis_line *line, struct hapax_bytes reply)
{
	(void)reply;
	((struct bench *)line->context)->replies++;
}

static void on_lost(struct hx_redis_line *line, const char *why)
{
	struct bench *bench = line->context;

	bench->lost++;
	(void)snprintf(bench->why, sizeof(bench->why), "%s", why);
}

static void on_closed(struct hx_redis_line *line)
{
	((struct bench *)line->context)->closed++;
}

static const struct hx_redis_line_ops line_ops = {
	.ready = on_ready, .reply = on_reply, .lost = on_lost, .closed = on_closed};

/* Until *count is value; then as often as something that is on its way may need. */
static void turn_until(struct bench *bench, const unsigned *count, unsigned value)
{
	for (int i = 0; i < TURNS_MAX && *count < value; i++)
		hx_reactor_turn(&bench->reactor, 0);
	for (int i = 0; i < 8; i++)
		hx_reactor_turn(&bench->reactor, 0);
	assert_int_equal(*count, value);
}

static void listen_at(struct bench *bench)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/s", bench->dir.path);
	bench->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(bench->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(bench->listener, 8), 0);
}

static void say(struct bench *bench, const char *text)
{
	assert_int_equal(write(bench->peer, text, strlen(text)), strlen(text));
}

/* The line comes; the server says that much of its answer to CLIENT ID. */
static void meet(struct bench *bench, const char *greeting)
{
	if (bench->peer >= 0)
		(void)close(bench->peer);
	bench->peer = -1;
	for (int i = 0; i < TURNS_MAX && bench->peer < 0; i++) {
		hx_reactor_turn(&bench->reactor, 0);
		bench->peer = accept(bench->listener, NULL, NULL);
	}
	assert_true(bench->peer >= 0);
	say(bench, greeting);
}

static int set_up(void **state)
{
	struct bench *bench = test_calloc(1, sizeof(*bench));
	char url[256];

	bench->peer = -1;
	temp_dir_init(&bench->dir);
	listen_at(bench);
	fault_net_init(&bench->fault);
	assert_int_equal(hx_reactor_init(&bench->reactor, &bench->fault.net, NULL), HAPAX_OK);
	(void)snprintf(url, sizeof(url), "redis+unix:%s/s", bench->dir.path);
	assert_int_equal(hx_redis_place_parse(url, &bench->place, NULL), HAPAX_OK);
	assert_int_equal(
		hx_redis_line_init(
			&bench->line, &bench->reactor, NULL, &bench->place, NULL, &line_ops, bench),
		HAPAX_OK);
	hx_reactor_turn(&bench->reactor, 0);
	hx_redis_line_open(&bench->line);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	hx_redis_line_close(&bench->line);
	turn_until(bench, &bench->closed, 1);
	hx_redis_line_done(&bench->line);
	hx_reactor_done(&bench->reactor);
	if (bench->peer >= 0)
		(void)close(bench->peer);
	(void)close(bench->listener);
	temp_dir_done(&bench->dir);
	test_free(bench);
	return 0;
}

static void ask(struct bench *bench)
{
	hx_redis_line_command(&bench->line, 0, HX_REDIS_WORDS("PING"));
	assert_true(hx_redis_line_send(&bench->line));
}

static void pass(struct bench *bench, int64_t ms)
{
	fault_net_advance(&bench->fault, ms);
	for (int i = 0; i < 8; i++)
		hx_reactor_turn(&bench->reactor, 0);
}

static void a_server_that_hangs_within_a_reply_is_given_up(void **state)
{
	struct bench *bench = *state;

	meet(bench, ":7\r\n");
	turn_until(bench, &bench->ready, 1);
	ask(bench);
	say(bench, "*2\r\n$3\r\nab");
	pass(bench, 14000);
	/* A byte now and then does not count as a reply. */
	say(bench, "c");
	pass(bench, 0);
	assert_int_equal(bench->lost, 0);
	pass(bench, 2000);
	turn_until(bench, &bench->lost, 1);
	assert_int_equal(bench->replies, 0);
	assert_false(bench->line.is_ready);
	assert_int_not_equal(bench->why[0], '\0');
	/* It tries again, and what comes then is read from its beginning. */
	pass(bench, 1000);
	meet(bench, ":8\r\n");
	turn_until(bench, &bench->ready, 2);
	ask(bench);
	say(bench, "+PONG\r\n");
	turn_until(bench, &bench->replies, 1);
}

static void a_server_that_hangs_within_the_greeting_is_given_up(void **state)
{
	struct bench *bench = *state;

	meet(bench, ":7");
	pass(bench, 4000);
	assert_int_equal(bench->lost, 0);
	pass(bench, 2000);
	turn_until(bench, &bench->lost, 1);
	assert_int_equal(bench->ready, 0);
}

static void each_reply_gives_the_next_one_its_time(void **state)
{
	struct bench *bench = *state;

	meet(bench, ":7\r\n");
	turn_until(bench, &bench->ready, 1);
	/* Nothing is asked: nothing is late. */
	pass(bench, 3600 * 1000);
	assert_int_equal(bench->lost, 0);
	ask(bench);
	pass(bench, 10000);
	/* A later question does not put off the first one's time. */
	ask(bench);
	pass(bench, 4000);
	say(bench, "+PONG\r\n");
	turn_until(bench, &bench->replies, 1);
	pass(bench, 14000);
	assert_int_equal(bench->lost, 0);
	pass(bench, 2000);
	turn_until(bench, &bench->lost, 1);
}

static void a_later_question_does_not_put_off_the_first(void **state)
{
	struct bench *bench = *state;

	meet(bench, ":7\r\n");
	turn_until(bench, &bench->ready, 1);
	ask(bench);
	pass(bench, 10000);
	ask(bench);
	pass(bench, 6000);
	turn_until(bench, &bench->lost, 1);
	assert_int_equal(bench->replies, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_server_that_hangs_within_a_reply_is_given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_server_that_hangs_within_the_greeting_is_given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			each_reply_gives_the_next_one_its_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_later_question_does_not_put_off_the_first, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
