/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "net/redis_place.h"
#include "store/redis/redis_member.h"
#include "store/redis/redis_session.h"

static void urls_are_taken_apart(void **state)
{
	static const struct {
		const char *url;
		const char *host;
		int port;
		bool is_unix, has_tls;
		const char *user, *password, *prefix;
		int db;
	} cases[] = {
		{"redis://h", "h", 6379, false, false, "", "", "hapax", 0},
		{"redis://h:1/", "h", 1, false, false, "", "", "hapax", 0},
		{"rediss://u:p%40%2F@h:1/3?prefix=x", "h", 1, false, true, "u", "p@/", "x", 3},
		{"redis://:secret@[::1]:2?db=7", "::1", 2, false, false, "", "secret", "hapax", 7},
		{"redis://u@h", "h", 6379, false, false, "u", "", "hapax", 0},
		{"redis+unix:/run/r.sock", "/run/r.sock", 0, true, false, "", "", "hapax", 0},
		{"redis+unix:///run/r.sock?db=2&prefix=a-b", "/run/r.sock", 0, true, false, "", "",
		 "a-b", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hx_redis_place place;

		assert_int_equal(hx_redis_place_parse(cases[i].url, &place, NULL), HAPAX_OK);
		assert_string_equal(place.endpoints[0].host, cases[i].host);
		assert_int_equal(place.endpoints[0].port, cases[i].port);
		assert_int_equal(place.endpoints[0].is_unix, cases[i].is_unix);
		assert_int_equal(place.has_tls, cases[i].has_tls);
		assert_string_equal(place.user, cases[i].user);
		assert_string_equal(place.password, cases[i].password);
		assert_string_equal(place.prefix, cases[i].prefix);
		assert_int_equal(place.db, cases[i].db);
	}
}

static void bad_urls_are_refused(void **state)
{
	static const char *const bad[] = {
		"redis",
		"redis+cluster",
		"redis:",
		"redis:host",
		"redis://",
		"redis://:p@",
		"redis://h:x",
		"redis://h:70000",
		"redis://h/x",
		"redis://h/-1",
		"redis://h/1/2",
		"redis://h/99999",
		"redis://secret%zz@h",
		"redis://secret%00@h",
		"redis://h?tll=1",
		"redis://h?prefix=",
		"redis://h?prefix=a:b",
		"redis://h?prefix=a%20b",
		"redis://h?prefix={a}",
		"redis://h?require=fast",
		"redis://h?allow=all",
		"redis://h?db=1x",
		"redis+unix:",
		"redis+unix:?db=1",
		"redis+unix:/a%zz",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hapax_error err = {0};
		struct hx_redis_place place;

		assert_int_equal(hx_redis_place_parse(bad[i], &place, &err), HAPAX_ERR_INVALID);
		assert_true(err.message[0] != '\0');
		assert_null(strstr(err.message, "secret"));
	}
}

static void names_come_back(void **state)
{
	static const struct {
		struct hapax_bytes tenant, group, key;
		const char *member;
	} cases[] = {
		{{"a", 1}, {"b", 1}, {"k", 1}, "a/b:k"},
		{{"a/b", 3}, {"c", 1}, {"k", 1}, "a%2Fb/c:k"},
		{{"a", 1}, {"b/c", 3}, {"k", 1}, "a/b%2Fc:k"},
		{{"a:", 2}, {"%{}", 3}, {"x:y/z%", 6}, "a%3A/%25%7B%7D:x:y/z%"},
	};
	unsigned char scratch[2 * HX_SCOPE_PART_SIZE_MAX];
	struct hapax_bytes tenant, group, key;
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 4096);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hx_buf_clear(&buf);
		assert_int_equal(
			hx_redis_member_append(&buf, cases[i].tenant, cases[i].group, cases[i].key),
			HAPAX_OK);
		assert_true(hx_bytes_equal(
			hapax_buf_bytes(&buf), hapax_bytes_from_text(cases[i].member)));
		assert_true(hx_redis_member_split(
			hapax_buf_bytes(&buf), scratch, &tenant, &group, &key));
		assert_true(hx_bytes_equal(tenant, cases[i].tenant));
		assert_true(hx_bytes_equal(group, cases[i].group));
		assert_true(hx_bytes_equal(key, cases[i].key));
	}
	hx_buf_done(&buf);
	static const char *const bad[] = {"", "a", "a/b", "a:b", "/b:k", "a/:k", "a/b:", "a%2/b:k"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(hx_redis_member_split(
			hapax_bytes_from_text(bad[i]), scratch, &tenant, &group, &key));
}

/* The guarantee follows from the settings, and durable is said only when it is so. */
static void guarantee_follows_from_settings(void **state)
{
	struct hx_redis_server server = {.is_master = true};
	char text[HX_REDIS_GUARANTEE_SIZE];

	(void)state;
	assert_false(hx_redis_guarantee(&server, text));
	assert_non_null(strstr(text, "nothing survives"));
	server.has_log = true;
	assert_false(hx_redis_guarantee(&server, text));
	assert_non_null(strstr(text, "last second"));
	server.syncs_always = true;
	assert_true(hx_redis_guarantee(&server, text));
	server.replica_count = 1;
	assert_true(hx_redis_guarantee(&server, text));
	assert_non_null(strstr(text, "a failover may lose answers that are not yet replicated"));
	assert_non_null(strstr(text, "tokens continue by the clock of the new master"));
	server.skips_sync = true;
	assert_false(hx_redis_guarantee(&server, text));
	server.skips_sync = false;
	server.evicts = true;
	assert_false(hx_redis_guarantee(&server, text));
	assert_non_null(strstr(text, "evicted"));
}

static void info_is_read(void **state)
{
	struct hx_redis_server server = {0};

	(void)state;
	hx_redis_server_read(
		&server,
		hapax_bytes_from_text(
			"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
			"maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\nloading:0\r\n"
			"aof_enabled:1\r\nrole:master\r\nconnected_slaves:2"));
	assert_int_equal(server.version, 700);
	assert_true(server.is_master && server.has_log && server.evicts);
	assert_false(server.is_loading || server.is_cluster);
	assert_int_equal(server.replica_count, 2);
	hx_redis_server_read(
		&server,
		hapax_bytes_from_text("role:slave\nmaxmemory:100\nmaxmemory_policy:volatile-lru"));
	assert_false(server.is_master || server.evicts || server.has_log);
	assert_int_equal(server.version, 0);
	hx_redis_server_read(&server, hapax_bytes_from_text(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(bad_urls_are_refused),
		cmocka_unit_test(names_come_back),
		cmocka_unit_test(guarantee_follows_from_settings),
		cmocka_unit_test(info_is_read),
	};

	return cmocka_run_group_tests_name("redis_place", tests, NULL, NULL);
}
