/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink redis+cluster://, on the servers of tests/redis/with_cluster: rows find the server of
 * their stream, also while a slot moves, and one server that is away holds up its own rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/redis_peer.h"
#include "outbox/sink_rows.h"
#include "wire/resp/resp_reply.h"

enum { SERVERS = 3, STREAMS = 60, WAIT_MS = 60 * 1000 };

static struct redis_peer peers[SERVERS];
static pid_t pids[SERVERS];
static struct sink_rows rows;
static char names[STREAMS][16];

static int set_up(void **state)
{
	char ports[256], processes[256];
	char *port = ports, *process = processes;

	(void)state;
	(void)snprintf(ports, sizeof(ports), "%s", getenv("HAPAX_TEST_CLUSTER_PORTS"));
	(void)snprintf(processes, sizeof(processes), "%s", getenv("HAPAX_TEST_CLUSTER_PIDS"));
	for (size_t i = 0; i < SERVERS; i++) {
		redis_peer_open(&peers[i], strsep(&port, " "));
		pids[i] = (pid_t)strtol(strsep(&process, " "), NULL, 10);
		(void)redis_peer_ask(&peers[i], "FLUSHALL");
	}
	for (size_t i = 0; i < STREAMS; i++)
		(void)snprintf(names[i], sizeof(names[i]), "stream-%zu", i);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < SERVERS; i++)
		redis_peer_close(&peers[i]);
	return 0;
}

/* By one of its servers, as it may be: it finds the others. */
static struct hx_sink *open_sink(const char *scheme)
{
	char url[256];

	(void)snprintf(
		url, sizeof(url), "%s://%.*s", scheme,
		(int)strcspn(getenv("HAPAX_TEST_CLUSTER"), ","), getenv("HAPAX_TEST_CLUSTER"));
	return sink_rows_open(url);
}

static void make_rows(size_t count)
{
	sink_rows_make(&rows, "", count);
	for (size_t i = 0; i < count; i++)
		rows.rows[i].topic = hapax_bytes_from_text(names[i % STREAMS]);
}

static int64_t ask_number(struct redis_peer *peer, const char *command)
{
	struct hapax_bytes reply = redis_peer_ask(peer, "%s", command);
	struct hx_resp_value value;

	assert_true(hx_resp_next(&reply, &value));
	assert_int_equal(value.type, HX_RESP_INTEGER);
	return value.integer;
}

static void ask_text(struct redis_peer *peer, const char *command, char *out, size_t size)
{
	struct hapax_bytes reply = redis_peer_ask(peer, "%s", command);
	struct hx_resp_value value;

	assert_true(hx_resp_next(&reply, &value));
	assert_int_equal(value.type, HX_RESP_BULK);
	(void)snprintf(out, size, "%.*s", (int)value.text.size, (const char *)value.text.data);
}

static void rows_find_the_server_of_their_stream(void **state)
{
	struct hx_sink *sink = open_sink("redis+cluster");
	int64_t keys = 0;

	(void)state;
	for (int round = 0; round < 2; round++) {
		make_rows(600);
		assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
		assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 600);
	}
	for (size_t i = 0; i < SERVERS; i++) {
		int64_t found = ask_number(&peers[i], "DBSIZE");

		assert_true(found > 0);
		keys += found;
	}
	assert_int_equal(keys, STREAMS);
	hx_sink_close(sink);
}

/* A server says "MOVED 3999 ?:6381" if it has no host name, and "MOVED 3999 :6381" if it may not tell. */
static void a_server_without_a_name_has_that_of_the_one_that_names_it(void **state)
{
	static const char *const kinds[] = {"hostname", "unknown-endpoint", "ip"};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct hx_sink *sink = open_sink("redis+cluster");

		for (size_t k = 0; k < SERVERS; k++)
			(void)redis_peer_ask(
				&peers[k], "CONFIG SET cluster-preferred-endpoint-type %s",
				kinds[i]);
		make_rows(120);
		assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
		assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 120);
		hx_sink_close(sink);
	}
}

static void a_slot_that_moves_is_followed(void **state)
{
	struct hx_sink *sink = open_sink("redis+cluster");
	int64_t slot = ask_number(&peers[0], "CLUSTER KEYSLOT stream-0");
	/* As with_cluster deals them out. */
	size_t from = slot < 5461 ? 0 : slot < 10923 ? 1 : 2;
	size_t to = (from + 1) % SERVERS;
	char ids[SERVERS][64];

	(void)state;
	for (size_t i = 0; i < SERVERS; i++)
		ask_text(&peers[i], "CLUSTER MYID", ids[i], sizeof(ids[i]));
	(void)redis_peer_ask(
		&peers[to], "CLUSTER SETSLOT %lld IMPORTING %s", (long long)slot, ids[from]);
	(void)redis_peer_ask(
		&peers[from], "CLUSTER SETSLOT %lld MIGRATING %s", (long long)slot, ids[to]);
	make_rows(120);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 120);
	(void)redis_peer_ask(&peers[to], "ASKING");
	assert_int_equal(ask_number(&peers[to], "XLEN stream-0"), 2);
	/* It has moved permanently. */
	for (size_t i = 0; i < SERVERS; i++)
		(void)redis_peer_ask(
			&peers[(to + i) % SERVERS], "CLUSTER SETSLOT %lld NODE %s", (long long)slot,
			ids[to]);
	make_rows(120);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, NULL), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 120);
	assert_int_equal(ask_number(&peers[to], "XLEN stream-0"), 4);
	hx_sink_close(sink);
}

static void a_server_that_is_away_holds_up_its_own_rows(void **state)
{
	struct hx_sink *sink = open_sink("redis+cluster");
	struct hapax_error err;
	size_t sent;

	(void)state;
	make_rows(120);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	assert_int_equal(kill(pids[2], SIGSTOP), 0);
	make_rows(120);
	assert_int_equal(sink_rows_publish(&rows, sink, 1000, &err), HAPAX_ERR_UNAVAILABLE);
	sent = sink_rows_with(&rows, HX_OUTBOX_SENT);
	assert_true(sent > 0 && sent < 120);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_UNDECIDED), 120 - sent);
	assert_int_equal(kill(pids[2], SIGCONT), 0);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_OK);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 120);
	hx_sink_close(sink);
}

static void who_does_not_know_that_it_is_a_cluster_is_told(void **state)
{
	struct hx_sink *sink = open_sink("redis");
	struct hapax_error err;

	(void)state;
	make_rows(120);
	assert_int_equal(sink_rows_publish(&rows, sink, WAIT_MS, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "redis+cluster://"));
	assert_int_equal(
		sink_rows_with(&rows, HX_OUTBOX_SENT) + sink_rows_with(&rows, HX_OUTBOX_UNDECIDED),
		120);
	hx_sink_close(sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			rows_find_the_server_of_their_stream, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_server_without_a_name_has_that_of_the_one_that_names_it, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_server_that_is_away_holds_up_its_own_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			who_does_not_know_that_it_is_a_cluster_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_slot_that_moves_is_followed, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("redis_sink_cluster", tests, NULL, NULL);
}
