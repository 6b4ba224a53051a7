/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From PostgreSQL to Redis Streams: the cases of all sinks, with a server that dies by SIGKILL and
 * comes back with its append only file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>

#include "outbox/redis_peer.h"
#include "outbox/sink_case.h"
#include "support/redis_server.h"

static struct redis_server server;

static void broker_url(enum sink_mode mode, char *out, size_t size)
{
	struct redis_peer peer;
	char place[16];

	(void)snprintf(
		out, size, "redis://127.0.0.1:%d%s", server.port,
		mode == SINK_STRICT ? "?create=no" : "");
	if (mode == SINK_OPEN)
		return;
	(void)snprintf(place, sizeof(place), "%d", server.port);
	redis_peer_open(&peer, place);
	(void)redis_peer_ask(&peer, "XADD parking * data first");
	(void)redis_peer_ask(&peer, "SET text value");
	redis_peer_close(&peer);
}

static void broker_restart(void)
{
	redis_server_end(&server, SIGKILL);
	redis_server_start(&server);
}

static void broker_read(const char *topic, sink_message_fn *each, void *context)
{
	struct redis_peer peer;
	char place[16];

	(void)snprintf(place, sizeof(place), "%d", server.port);
	redis_peer_open(&peer, place);
	redis_peer_read(&peer, topic, each, context);
	redis_peer_close(&peer);
}

int main(void)
{
	static const struct CMUnitTest more[] = {
		cmocka_unit_test(committed_in_sqlite_is_published_and_happens_once),
	};
	static const char *const options[] = {
		"--appendonly", "yes", "--appendfsync", "always", "--proto-max-bulk-len",
		"2mb",          NULL,
	};
	static const struct sink_bad bad[] = {
		{"unroutable", "nowhere", 1, "the stream does not exist"},
		{"large", "parking", 3000000,
		 "its payload is too large: 3000000 bytes, limit of Redis 2097152"},
		{"type", "text", 1, "WRONGTYPE"},
	};
	static const struct sink_broker broker = {
		.name = "Redis Streams",
		.prefix = "ce_",
		.absent = "redis://127.0.0.1:1",
		.bad = bad,
		.bad_count = sizeof(bad) / sizeof(bad[0]),
		.restarts_fast = true,
		.url = broker_url,
		.restart = broker_restart,
		.read = broker_read,
	};
	int failed;

	if (!redis_server_is_there()) {
		(void)printf("1..0 # SKIP redis-server is not installed (tools/setup test)\n");
		return 0;
	}
	redis_server_init(&server, options);
	redis_server_start(&server);
	failed = sink_cases_run(&broker, more, sizeof(more) / sizeof(more[0]));
	redis_server_done(&server);
	return failed;
}
