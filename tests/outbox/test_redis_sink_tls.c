/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sinks rediss:// and redis+unix:, on the server of tests/redis/with_redis --tls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outbox/sink_rows.h"

enum { WAIT_MS = 60 * 1000 };

static struct sink_rows rows;
static char large[3000000];

static struct hx_sink *open_tls(const char *host, const char *options)
{
	char url[512];

	(void)snprintf(
		url, sizeof(url), "rediss://%s:%s/stream?%s%s", host,
		getenv("HAPAX_TEST_REDIS_TLS"), options,
		options[0] == '\0' ? "" : getenv("HAPAX_TEST_REDIS_CA"));
	return sink_rows_open(url);
}

static void check_sink(struct hx_sink *sink)
{
	struct hapax_error err;

	sink_rows_make(&rows, "topic", 200);
	rows.rows[100].payload = (struct hapax_bytes){large, sizeof(large)};
	if (sink_rows_publish(&rows, sink, WAIT_MS, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	assert_int_equal(sink_rows_with(&rows, HX_OUTBOX_SENT), 200);
	hx_sink_close(sink);
}

static void events_go_over_tls(void **state)
{
	(void)state;
	check_sink(open_tls("localhost", "ca="));
}

static void events_go_over_a_socket(void **state)
{
	char url[512];

	(void)state;
	(void)snprintf(url, sizeof(url), "redis+unix:%s?db=2", getenv("HAPAX_TEST_REDIS"));
	check_sink(sink_rows_open(url));
}

static void a_server_that_is_not_who_it_should_be_is_refused(void **state)
{
	/* Not by the system's authorities, and not under this name. */
	struct hx_sink *sinks[] = {open_tls("localhost", ""), open_tls("127.0.0.2", "ca=")};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct hapax_error err = {0};

		assert_int_equal(sinks[i]->ops->connect(sinks[i], &err), HAPAX_ERR_UNAVAILABLE);
		assert_true(strlen(err.message) > 10);
		hx_sink_close(sinks[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_go_over_tls),
		cmocka_unit_test(events_go_over_a_socket),
		cmocka_unit_test(a_server_that_is_not_who_it_should_be_is_refused),
	};

	memset(large, 'x', sizeof(large));
	return cmocka_run_group_tests_name("redis_sink_tls", tests, NULL, NULL);
}
