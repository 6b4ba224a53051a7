/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_server.c - a real server that is full, a replica, set up otherwise, or used by others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "support/redis_case.h"

/*
 * Say something to the server that is none of our business otherwise, a command a line; true: no
 * error. It waits for every reply, since the server may drop a connection whose peer is gone with the
 * rest of its commands.
 */
static bool say(const char *commands)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[300];
	char reply[256] = "";
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t size = (size_t)snprintf(text, sizeof(text), "%s\r\n", commands);
	size_t count = 0;
	size_t awaited = 0;
	bool is_error = false;

	assert_true(size < sizeof(text));
	(void)snprintf(
		address.sun_path, sizeof(address.sun_path), "%s", getenv("HAPAX_TEST_REDIS"));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(write(fd, text, size), size);
	for (const char *line = text; (line = strchr(line, '\n')) != NULL; line++)
		awaited++;
	for (const char *line = reply; awaited > 0;) {
		ssize_t part = read(fd, reply + count, sizeof(reply) - 1 - count);
		const char *end;

		if (part <= 0)
			break;
		count += (size_t)part;
		reply[count] = '\0';
		for (; awaited > 0 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
			awaited--;
			if (*line == '-')
				printf("# %s: %.*s\n", commands, (int)strcspn(line, "\r"), line);
			is_error |= *line == '-';
		}
	}
	close(fd);
	return awaited == 0 && !is_error;
}

/* ---------------------------------------------------------------- the server is not as it should be */

static void forgotten_scripts_are_loaded_again(void **state)
{
	struct redis_case *scene = *state;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_op ops[20];
	char keys[20][32];

	for (int round = 0; round < 5; round++) {
		assert_true(say("SCRIPT FLUSH"));
		for (size_t i = 0; i < 20; i++)
			ops[i] = redis_case_op(HAPAX_OP_CHECK, keys[i], ++scene->number);
		assert_int_equal(hapax_store_run(scene->faulty, ops, 20, NULL), HAPAX_OK);
		for (size_t i = 0; i < 20; i++)
			assert_int_equal(ops[i].outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_true(say("SCRIPT FLUSH"));
		assert_int_equal(
			hapax_store_stats(scene->faulty, &stats, NULL, NULL, NULL), HAPAX_OK);
		assert_int_equal(stats.keys, 20 * (round + 1));
	}
}

static void full_server_lets_claims_end(void **state)
{
	struct redis_case *scene = *state;
	char key[32];
	struct hapax_op op = redis_case_op(HAPAX_OP_CLAIM, key, ++scene->number);
	struct hapax_op other;
	char more[32];

	assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
	assert_true(say("CONFIG SET maxmemory 1"));
	other = redis_case_op(HAPAX_OP_CLAIM, more, scene->number + 1);
	assert_int_equal(redis_case_run(scene->sound, &other), HAPAX_ERR_LIMIT);
	op.type = HAPAX_OP_RENEW;
	assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
	op.type = HAPAX_OP_COMPLETE;
	assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
	op.type = HAPAX_OP_FORGET;
	assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
	assert_true(say("CONFIG SET maxmemory 0"));
	assert_int_equal(redis_case_run(scene->sound, &other), HAPAX_OK);
}

/* A master that becomes a replica serves no client; when it is master again, all continues. */
static void replica_is_not_written(void **state)
{
	struct redis_case *scene = *state;
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *store = NULL;
	struct hapax_store *other = NULL;
	struct hapax_error err = {0};
	char key[32];
	struct hapax_op op = redis_case_op(HAPAX_OP_CHECK, key, ++scene->number);

	assert_int_equal(hapax_store_open(scene->url, &options, &store, NULL), HAPAX_OK);
	assert_true(say("REPLICAOF 127.0.0.1 1"));
	assert_int_equal(redis_case_run(store, &op), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(
		hapax_store_open(scene->url, &options, &other, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "use the address of its master"));
	assert_true(say("REPLICAOF NO ONE"));
	assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	op = redis_case_op(HAPAX_OP_CHECK, key, ++scene->number);
	/* The store that was refused comes back by itself. */
	for (int i = 0; redis_case_run(store, &op) != HAPAX_OK; i++)
		assert_true(i < 100);
	hapax_store_close(store);
}

static void refused(const char *more, enum hapax_status status, const char *hint)
{
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[400];

	redis_case_url(url, sizeof(url), more);
	assert_int_equal(hapax_store_open(url, &options, &store, &err), status);
	assert_null(store);
	if (!strstr(err.message, hint))
		printf("# %s\n", err.message);
	assert_non_null(strstr(err.message, hint));
}

static void accepted(const char *more)
{
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[400];

	redis_case_url(url, sizeof(url), more);
	if (hapax_store_open(url, &options, &store, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	hapax_store_close(store);
}

static void settings_are_checked(void **state)
{
	struct redis_case *scene = *state;
	char text[256];

	assert_true(hapax_store_capabilities(scene->sound) & HAPAX_STORE_DURABLE);
	hapax_store_guarantee(scene->sound, text, sizeof(text));
	assert_string_equal(text, "answers survive a power cut");
	accepted("&require=durable");
	assert_true(say("CONFIG SET appendfsync everysec"));
	refused("&require=durable", HAPAX_ERR_UNSUPPORTED, "appendfsync always");
	accepted("");
	assert_true(say("CONFIG SET appendfsync always"));
	assert_true(say("CONFIG SET maxmemory 1gb"));
	assert_true(say("CONFIG SET maxmemory-policy allkeys-lru"));
	refused("", HAPAX_ERR_UNSUPPORTED, "noeviction");
	accepted("&allow=eviction");
	assert_true(say("CONFIG SET maxmemory-policy volatile-lru"));
	accepted("");
	assert_true(say("CONFIG SET maxmemory-policy noeviction"));
	assert_true(say("CONFIG SET maxmemory 0"));
	refused("&db=4711", HAPAX_ERR_INVALID, "no database 4711");
	refused("&db=4711", HAPAX_ERR_INVALID, "'databases'");
}

static void passwords_are_checked(void **state)
{
	struct hapax_store_options options = redis_case_options();
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[300];

	(void)state;
	(void)snprintf(
		url, sizeof(url), "redis+unix:%s?prefix=%s", getenv("HAPAX_TEST_REDIS"),
		redis_case_prefix);
	assert_true(say("CONFIG SET requirepass hush"));
	assert_int_equal(hapax_store_open(url, &options, &store, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "password"));
	assert_non_null(strstr(err.message, "redis://user:password@host"));
	assert_true(say("AUTH hush\r\nCONFIG SET requirepass \"\""));
	accepted("");
}

static void foreign_data_is_refused(void **state)
{
	struct redis_case *scene = *state;
	char key[32];
	char command[200];
	struct hapax_op op = redis_case_op(HAPAX_OP_CLAIM, key, ++scene->number);

	(void)snprintf(
		command, sizeof(command), "SET \"%s:default/default:key %llu\" x",
		redis_case_prefix, (unsigned long long)scene->number);
	assert_true(say(command));
	assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_ERR_CORRUPT);
	op = redis_case_op(HAPAX_OP_CLAIM, key, ++scene->number);
	(void)snprintf(
		command, sizeof(command), "HSET \"%s:default/default:key %llu\" state odd",
		redis_case_prefix, (unsigned long long)scene->number);
	assert_true(say(command));
	assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_ERR_CORRUPT);
	(void)snprintf(command, sizeof(command), "HSET %s:meta version 2", redis_case_prefix);
	assert_true(say(command));
	refused("", HAPAX_ERR_UNSUPPORTED, "use a newer hapax");
	(void)snprintf(command, sizeof(command), "HSET %s:meta version x", redis_case_prefix);
	assert_true(say(command));
	refused("", HAPAX_ERR_CORRUPT, "?prefix=NAME");
}

/* A10: a version without events made a mark of a failed claim, and left the claim's event there. */
static void stale_event_of_a_mark_is_ignored(void **state)
{
	static const enum hapax_op_type types[] = {
		HAPAX_OP_LOOKUP, HAPAX_OP_CLAIM, HAPAX_OP_CHECK, HAPAX_OP_EXPIRE};
	const struct hapax_cause cause = {.id = hapax_bytes_from_text("stale")};
	struct redis_case *scene = *state;
	struct hapax_buf *buf = hapax_buf_new(65536);
	struct hapax_record record;
	unsigned char packed[HAPAX_CAUSE_SIZE_MAX];
	struct hapax_bytes bytes = hapax_cause_write(&cause, packed);
	char key[32], hex[4 * HAPAX_CAUSE_SIZE_MAX + 1], command[4096];
	struct hapax_op op;

	for (size_t i = 0; i < bytes.size; i++)
		(void)snprintf(hex + 4 * i, 5, "\\x%02x", packed[i]);
	for (int is_set = 0; is_set < 2; is_set++) {
		op = redis_case_op(HAPAX_OP_CHECK, key, ++scene->number);
		assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
		(void)snprintf(
			command, sizeof(command),
			"HSET \"%s:default/default:key %llu\" origin %s cause \"%s\"",
			redis_case_prefix, (unsigned long long)scene->number,
			is_set ? "set" : "check", hex);
		assert_true(say(command));
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			op = redis_case_op(types[i], key, scene->number);
			op.ttl_ms = 60000;
			op.record = &record;
			op.buf = buf;
			assert_int_equal(redis_case_run(scene->sound, &op), HAPAX_OK);
			assert_int_equal(record.state, HAPAX_STATE_DONE);
			assert_int_equal(record.cause.size, 0);
		}
	}
	hapax_buf_free(buf);
}

/* E16: how far the ledger's clock is from ours. */
static void skew_is_told(void **state)
{
	const int64_t hour_ms = 3600000;
	const struct hapax_clock *clock = hapax_clock_system();
	struct redis_case *scene = *state;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	int64_t before_ms = clock->wall_ms(clock->context);
	char command[200];

	/* The same clock, asked a moment before; it counts in whole milliseconds. */
	assert_int_equal(hapax_store_stats(scene->sound, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_true(stats.skew_ms <= 1);
	assert_true(stats.skew_ms >= before_ms - clock->wall_ms(clock->context) - 1);
	/* The server's clock was an hour ahead when it wrote last: that is where the ledger stays. */
	before_ms = clock->wall_ms(clock->context);
	(void)snprintf(
		command, sizeof(command), "HSET %s:meta now %lld", redis_case_prefix,
		(long long)(before_ms + hour_ms));
	assert_true(say(command));
	assert_int_equal(hapax_store_stats(scene->sound, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_true(stats.skew_ms <= hour_ms);
	assert_true(stats.skew_ms >= hour_ms + before_ms - clock->wall_ms(clock->context));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, redis_case_set_up, redis_case_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(forgotten_scripts_are_loaded_again),
		CASE(full_server_lets_claims_end),
		CASE(replica_is_not_written),
		CASE(settings_are_checked),
		CASE(passwords_are_checked),
		CASE(foreign_data_is_refused),
		CASE(stale_event_of_a_mark_is_ignored),
		CASE(skew_is_told),
	};

	return cmocka_run_group_tests_name("redis_server", tests, NULL, NULL);
}
