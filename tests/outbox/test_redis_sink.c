/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink redis:// on its own: what each answer of a server means, and how connections end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "outbox/redis_peer.h"
#include "outbox/sink/redis_target.h"
#include "outbox/sink_rows.h"
#include "support/redis_server.h"
#include "wire/resp/resp_reply.h"

enum { WAIT_MS = 60 * 1000 };

static struct redis_server server;
static struct redis_peer peer;
static struct sink_rows rows;
static char large[3000000];

static struct hx_sink *open_sink(const char *user, const char *rest)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "redis://%s127.0.0.1:%d%s", user, server.port, rest);
	return sink_rows_open(url);
}

static int set_up(void **state)
{
	char place[16];

	(void)state;
	(void)snprintf(place, sizeof(place), "%d", server.port);
	redis_peer_open(&peer, place);
	(void)redis_peer_ask(&peer, "FLUSHALL");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	redis_peer_close(&peer);
	return 0;
}

static int64_t ask_number(const char *command)
{
	struct hapax_bytes reply = redis_peer_ask(&peer, "%s", command);
	struct hx_resp_value value;

	assert_true(hx_resp_next(&reply, &value));
	assert_int_equal(value.type, HX_RESP_INTEGER);
	return value.integer;
}

/* ------------------------------------------------------------------ URLs */

static void urls_are_taken_apart(void **state)
{
	static const struct {
		const char *url;
		const char *stream;
		const char *host;
		int db;
		int64_t length_max;
		bool creates;
	} cases[] = {
		{"redis://h", "", "h", 0, 0, true},
		{"redis://h/", "", "h", 0, 0, true},
		{"redis://h:1/2", "", "h", 2, 0, true},
		{"redis://h/orders", "orders", "h", 0, 0, true},
		{"redis://h/2/or%2Fders", "or/ders", "h", 2, 0, true},
		{"redis://h/0/17", "17", "h", 0, 0, true},
		{"rediss://u:p@h/s?ca=x&maxlen=5", "s", "h", 0, 5, true},
		{"redis+cluster://h:1,g:2/s?create=no", "s", "h", 0, 0, false},
		{"redis+unix:/run/r.sock?db=3&stream=s", "s", "/run/r.sock", 3, 0, true},
		{"redis+unix:/run/r.sock", "", "/run/r.sock", 0, 0, true},
		{"redis+unix:///run/r.sock", "", "/run/r.sock", 0, 0, true},
	};
	static const char *const bad[] = {
		"redis://",
		"redis://h?maxlen=0",
		"redis://h?maxlen=x",
		"redis://h?create=yes",
		"redis://h/%zz",
		"redis://h?stream=",
		"redis://h?prefix=p",
		"redis://h?maxlen",
		"redis://h:x/s",
		"redis+unix:?db=1",
		"redis+cluster://h/2/s",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_redis_target target;
		struct hapax_error err;

		if (hx_redis_target_parse(cases[i].url, &target, &err) != HAPAX_OK)
			fail_msg("%s: %s", cases[i].url, err.message);
		assert_string_equal(target.stream, cases[i].stream);
		assert_string_equal(target.place.endpoints[0].host, cases[i].host);
		assert_int_equal(target.place.db, cases[i].db);
		assert_int_equal(target.length_max, cases[i].length_max);
		assert_int_equal(target.creates, cases[i].creates);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hx_redis_target target;
		struct hapax_error err = {0};

		if (hx_redis_target_parse(bad[i], &target, &err) != HAPAX_ERR_INVALID)
			fail_msg("%s was taken", bad[i]);
		assert_true(err.message[0] != '\0');
	}
}

static void sinks_that_there_are_not_are_told(void **state)
{
	struct hx_sink *sink = NULL;
	struct hapax_error err = {0};

	(void)state;
	assert_int_equal(hx_sink_open("ftp://h", "", &sink, &err), HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "redis://HOST"));
	assert_int_equal(hx_sink_open("redis:h", "", &sink, &err), HAPAX_ERR_UNSUPPORTED);
}

/* ------------------------------------------------------------------ publishing */

static void streams_are_trimmed_and_named_by_the_url(void **state)
{
	struct hx_sink *sink = open_sink("", "/1/all?maxlen=10");

	(void)state;
	sink_rows_make(&rows, "topic", 600);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 600);
	(void)redis_peer_ask(&peer, "SELECT 1");
	/* It is trimmed by whole nodes of a hundred entries. */
	assert_in_range(ask_number("XLEN all"), 10, 250);
	assert_int_equal(ask_number("EXISTS topic"), 0);
	hx_sink_close(sink);
}

static void a_header_named_as_the_payload_is_refused(void **state)
{
	struct hx_sink *sink = open_sink("", "");

	(void)state;
	sink_rows_make(&rows, "topic", 3);
	rows.rows[1].headers = hapax_bytes_from_text("{\"data\": \"x\"}");
	rows.rows[2].content_type = hapax_bytes_from_text("text/plain");
	rows.rows[2].headers = hapax_bytes_from_text("{\"Content-Type\": \"x\", \"more\": \"y\"}");
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 2);
	assert_int_equal(rows.rows[1].outcome, HX_OUTBOX_REFUSED);
	assert_non_null(strstr(rows.rows[1].error, "'data'"));
	hx_sink_close(sink);
}

/* No row is to blame: it is published when the server takes entries again. */
static void check_away(const char *before, const char *after, const char *reason)
{
	struct hx_sink *sink = open_sink("", "");
	struct hapax_error err = {0};

	sink_rows_make(&rows, "topic", 20);
	assert_int_equal(sink->ops->connect(sink, &err), HAPAX_OK);
	(void)redis_peer_ask(&peer, "%s", before);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, reason));
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_UNDECIDED), 20);
	(void)redis_peer_ask(&peer, "%s", after);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 20);
	assert_int_equal(ask_number("XLEN topic"), 20);
	hx_sink_close(sink);
}

static void a_full_server_is_away(void **state)
{
	(void)state;
	check_away("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM");
}

static void a_replica_is_away(void **state)
{
	(void)state;
	check_away("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY");
}

static void what_one_stream_forbids_is_tried_again(void **state)
{
	struct hx_sink *sink;

	(void)state;
	(void)redis_peer_ask(&peer, "ACL SETUSER relay on >word ~topic +@all");
	sink = open_sink("relay:word@", "");
	sink_rows_make(&rows, "topic", 3);
	rows.rows[1].topic = hapax_bytes_from_text("other");
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 2);
	assert_int_equal(rows.rows[1].outcome, HX_OUTBOX_FAILED);
	assert_non_null(strstr(rows.rows[1].error, "NOPERM"));
	hx_sink_close(sink);
}

static void who_may_not_come_in_is_told(void **state)
{
	struct hx_sink *sink = open_sink("relay:sesame@", "");
	struct hapax_error err = {0};

	(void)state;
	(void)redis_peer_ask(&peer, "ACL SETUSER relay on >word ~topic +@all");
	assert_int_equal(sink->ops->connect(sink, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "WRONGPASS"));
	assert_null(strstr(err.message, "sesame"));
	hx_sink_close(sink);
	/* The default user wants a password from now on; the peer is in already. */
	(void)redis_peer_ask(&peer, "CONFIG SET requirepass word");
	sink = open_sink("", "");
	assert_int_equal(sink->ops->connect(sink, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "NOAUTH"));
	hx_sink_close(sink);
	sink = open_sink(":word@", "");
	assert_int_equal(sink->ops->connect(sink, &err), HAPAX_OK);
	hx_sink_close(sink);
	(void)redis_peer_ask(&peer, "CONFIG SET requirepass \"\"");
}

/* ------------------------------------------------------------------ connections */

static void a_silent_server_is_not_waited_for_for_ever(void **state)
{
	struct hx_sink *sink = open_sink("", "");
	struct hapax_error err = {0};

	(void)state;
	sink_rows_make(&rows, "topic", 20);
	assert_int_equal(sink->ops->connect(sink, &err), HAPAX_OK);
	assert_int_equal(kill(server.pid, SIGSTOP), 0);
	assert_int_equal(sink_rows_publish(&rows, sink, 50, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "in time"));
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_UNDECIDED), 20);
	assert_int_equal(sink_rows_awaited(&rows), 20);
	/* Nor for a greeting: nothing was sent. */
	assert_int_equal(sink_rows_publish(&rows, sink, 50, &err), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(sink_rows_awaited(&rows), 0);
	assert_int_equal(kill(server.pid, SIGCONT), 0);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 20);
	hx_sink_close(sink);
}

static void a_connection_that_went_meanwhile_is_made_again(void **state)
{
	struct hx_sink *sink = open_sink("", "");
	struct hapax_error err = {0};

	(void)state;
	sink_rows_make(&rows, "topic", 20);
	assert_int_equal(sink->ops->connect(sink, &err), HAPAX_OK);
	assert_true(ask_number("CLIENT KILL TYPE normal SKIPME yes") >= 1);
	assert_int_equal(sink->ops->keep_alive(sink, &err), HAPAX_OK);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 20);
	hx_sink_close(sink);
}

/* It says so and hangs up; whether that is heard is a matter of luck. */
static void what_the_server_chokes_on_holds_up_nobody(void **state)
{
	struct hx_sink *sink;

	(void)state;
	(void)redis_peer_ask(&peer, "CONFIG SET proto-max-bulk-len 1048576");
	/* One who may not ask how much it takes. */
	(void)redis_peer_ask(&peer, "ACL SETUSER relay on >word ~topic +@all -config");
	sink = open_sink("relay:word@", "");
	sink_rows_make(&rows, "topic", 20);
	rows.rows[7].payload = (struct hapax_bytes){large, sizeof(large)};
	(void)sink_rows_publish(&rows, sink, WAIT_MS, NULL);
	assert_true(
		rows.rows[7].outcome == HX_OUTBOX_REFUSED ||
		rows.rows[7].outcome == HX_OUTBOX_FAILED);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 19);
	assert_int_equal(ask_number("XLEN topic"), 19);
	hx_sink_close(sink);
	(void)redis_peer_ask(&peer, "CONFIG SET proto-max-bulk-len 536870912");
}

static void large_events_go_through(void **state)
{
	struct hx_sink *sink = open_sink("", "");

	(void)state;
	sink_rows_make(&rows, "topic", 6);
	for (size_t i = 0; i < rows.count; i++)
		rows.rows[i].payload = (struct hapax_bytes){large, sizeof(large)};
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 6);
	hx_sink_close(sink);
}

/* A server that sends to another one each time, and hangs up; the last one takes entries. */
static void send_on(int listener, int port, int servers)
{
	for (int number = 0; number <= servers;) {
		int fd = accept(listener, NULL, NULL);
		char data[4096];
		ssize_t size = read(fd, data, sizeof(data));

		while (size > 0) {
			bool is_entry = memmem(data, (size_t)size, "XADD", 4) != NULL;

			if (!is_entry)
				(void)dprintf(fd, "+OK\r\n+OK\r\n");
			else if (number < servers)
				(void)dprintf(fd, "-MOVED 1 127.0.0.%d:%d\r\n", number + 2, port);
			else
				(void)dprintf(fd, "$3\r\n1-1\r\n");
			if (is_entry)
				number++;
			size = is_entry && number <= servers ? 0 : read(fd, data, sizeof(data));
		}
		(void)close(fd);
	}
}

/* Over the life of a relay, more servers than are kept in mind. */
static void servers_that_are_gone_are_forgotten(void **state)
{
	enum { MANY = 100 };
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct hx_sink *sink;
	char url[64];
	pid_t pid;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 16), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		send_on(listener, ntohs(at.sin_port), MANY);
		_exit(0);
	}
	(void)close(listener);
	(void)snprintf(url, sizeof(url), "redis+cluster://127.0.0.1:%d", (int)ntohs(at.sin_port));
	sink = sink_rows_open(url);
	sink_rows_make(&rows, "topic", 1);
	/* Some at a time: it does not run after them forever. */
	for (int i = 0; i < MANY && rows.rows[0].outcome == HX_OUTBOX_UNDECIDED; i++)
		(void)sink_rows_publish(&rows, sink, WAIT_MS, NULL);
	assert_int_equal(rows.rows[0].outcome, HX_OUTBOX_SENT);
	hx_sink_close(sink);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const char *const options[] = {"--appendonly", "no", NULL};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(sinks_that_there_are_not_are_told),
		CASE(streams_are_trimmed_and_named_by_the_url),
		CASE(a_header_named_as_the_payload_is_refused),
		CASE(a_full_server_is_away),
		CASE(a_replica_is_away),
		CASE(what_one_stream_forbids_is_tried_again),
		CASE(who_may_not_come_in_is_told),
		CASE(a_silent_server_is_not_waited_for_for_ever),
		CASE(a_connection_that_went_meanwhile_is_made_again),
		CASE(what_the_server_chokes_on_holds_up_nobody),
		CASE(large_events_go_through),
		cmocka_unit_test(servers_that_are_gone_are_forgotten),
	};
	int failed;

	if (!redis_server_is_there()) {
		(void)printf("1..0 # SKIP redis-server is not installed (tools/setup test)\n");
		return 0;
	}
	memset(large, 'x', sizeof(large));
	redis_server_init(&server, options);
	redis_server_start(&server);
	failed = cmocka_run_group_tests_name("redis_sink", tests, NULL, NULL);
	redis_server_done(&server);
	return failed;
}
