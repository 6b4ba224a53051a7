/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a ledger in PostgreSQL says when something is wrong, what it keeps apart, and what it knows
 * when a connection is lost.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/thread.h"
#include "store/postgres/postgres_session.h"
#include "support/cut_proxy.h"
#include "support/postgres_case.h"
#include "support/postgres_store_case.h"
#include "support/scale.h"
#include "support/store_case.h"
#include "support/trade_case.h"

/* ---------------------------------------------------------------- bad input */

static void bad_urls_are_refused(void **state)
{
	(void)state;
	postgres_store_must_refuse("postgres://[", HAPAX_ERR_INVALID, "postgres://user@host");
	postgres_store_must_refuse("postgres://u:secret@[", HAPAX_ERR_INVALID, "percent-encode");
	postgres_store_must_refuse("postgres:///x?pool=0", HAPAX_ERR_INVALID, "pool=1..64");
	postgres_store_must_refuse("postgres:///x?pool=65", HAPAX_ERR_INVALID, "pool=1..64");
	postgres_store_must_refuse("postgres:///x?schema=", HAPAX_ERR_INVALID, "schema=NAME");
	postgres_store_must_refuse("postgres:///x?schema=it's", HAPAX_ERR_INVALID, "schema=NAME");
	postgres_store_must_refuse("postgres:///x?schema=a%25I", HAPAX_ERR_INVALID, "schema=NAME");
	postgres_store_must_refuse("postgres:///x?tenant=*", HAPAX_ERR_INVALID, "tenant=NAME");
	postgres_store_must_refuse(
		"postgres:///x?require=luck", HAPAX_ERR_INVALID, "require=durable");
	postgres_store_must_refuse(
		"postgres:///x?nonsense=1", HAPAX_ERR_INVALID, "postgres://user@host");
}

/* Wrong password, role, database, place; too many connections. */
static void what_is_wrong_is_said(void **state)
{
	PGconn *conn = postgres_case_connect();
	const char *port = getenv("HAPAX_TEST_POSTGRES_PORT");
	char url[256];

	(void)state;
	postgres_case_query(conn, "DROP ROLE IF EXISTS app");
	postgres_case_query(conn, "CREATE ROLE app LOGIN PASSWORD 'right'");
	snprintf(url, sizeof(url), "postgres://app:secret@127.0.0.1:%s/postgres", port);
	postgres_store_must_refuse(url, HAPAX_ERR_UNAVAILABLE, "check user and password");
	snprintf(url, sizeof(url), "postgres://app@127.0.0.1:%s/postgres", port);
	postgres_store_must_refuse(url, HAPAX_ERR_UNAVAILABLE, "PGPASSWORD or ~/.pgpass");
	snprintf(url, sizeof(url), "postgres://app:right@127.0.0.1:%s/nowhere", port);
	postgres_store_must_refuse(url, HAPAX_ERR_UNAVAILABLE, "createdb");
	postgres_store_must_refuse(
		"postgres://127.0.0.1:1/postgres", HAPAX_ERR_UNAVAILABLE,
		"check that the server is running");
	postgres_store_must_refuse(
		"postgres:///x?host=/nowhere", HAPAX_ERR_UNAVAILABLE,
		"check that the server is running");
	PQfinish(conn);
}

static void limits_are_refused(void **state)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char url[256];

	(void)state;
	postgres_case_url(url, sizeof(url), "");
	options.keys_max = 5;
	assert_int_equal(hapax_store_open(url, &options, &store, &err), HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "tablespace"));
	options.keys_max = 0;
	options.evict = HAPAX_EVICT_LRU;
	assert_int_equal(hapax_store_open(url, &options, &store, &err), HAPAX_ERR_UNSUPPORTED);
}

/* ---------------------------------------------------------------- what it promises */

/* The sentence follows from the settings, and only what survives a power cut is called durable. */
static void guarantee_follows_from_settings(void **state)
{
	static const struct {
		struct hx_postgres_server server;
		bool is_durable;
		const char *part;
	} cases[] = {
		{{.syncs = true, .writes_whole_pages = true, .is_logged = true, .commit = "on"},
		 true,
		 "failover may lose"},
		{{.writes_whole_pages = true, .is_logged = true, .commit = "on"},
		 false,
		 "fsync = off"},
		{{.syncs = true, .is_logged = true, .commit = "on"},
		 false,
		 "full_page_writes = off"},
		{{.syncs = true, .writes_whole_pages = true, .commit = "on"}, false, "UNLOGGED"},
		{{true, true, true, true, "on"}, true, "a standby has synced"},
		{{true, true, true, true, "remote_apply"}, true, "a standby has synced"},
		{{true, true, true, true, "remote_write"}, true, "unless the host of the standby"},
		{{true, true, true, true, "local"}, true, "synchronous_commit = local"},
		{{true, true, true, true, "off"}, false, "synchronous_commit = off"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[HX_POSTGRES_GUARANTEE_SIZE];

		assert_int_equal(
			hx_postgres_guarantee(&cases[i].server, text), cases[i].is_durable);
		if (strstr(text, cases[i].part) == NULL)
			fail_msg("no '%s' in '%s'", cases[i].part, text);
	}
}

static void expect_guarantee(const char *url, const char *part, bool is_durable)
{
	struct hapax_error err = {0};
	struct hapax_store *store = postgres_store_open(url, &err);
	char text[HX_POSTGRES_GUARANTEE_SIZE];

	if (store == NULL)
		printf("# %s\n", err.message);
	assert_non_null(store);
	hapax_store_guarantee(store, text, sizeof(text));
	if (strstr(text, part) == NULL)
		printf("# %s\n", text);
	assert_non_null(strstr(text, part));
	assert_int_equal((hapax_store_capabilities(store) & HAPAX_STORE_DURABLE) != 0, is_durable);
	hapax_store_close(store);
}

static void set_server(PGconn *conn, const char *setting, const char *value)
{
	postgres_case_query(conn, "ALTER SYSTEM SET %s = %s", setting, value);
	postgres_case_query(conn, "SELECT pg_reload_conf()");
	/* Until a new session sees it. */
	for (;;) {
		PGconn *other = postgres_case_connect();
		bool is_set = strcmp(postgres_case_query(other, "SHOW %s", setting), value) == 0;

		PQfinish(other);
		if (is_set)
			return;
	}
}

/* A real server, set in every way; require=durable refuses, and says why. */
static void durable_is_refused_where_it_is_not(void **state)
{
	PGconn *conn = postgres_case_connect();
	char url[512], durable[512];

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS lasting CASCADE");
	postgres_store_migrate("&schema=lasting");
	postgres_case_url(url, sizeof(url), "&schema=lasting");
	postgres_case_url(durable, sizeof(durable), "&schema=lasting&require=durable");
	expect_guarantee(durable, "answers survive a power cut", true);
	/* Off by default; our sessions commit durably all the same. */
	set_server(conn, "synchronous_commit", "off");
	expect_guarantee(durable, "answers survive a power cut", true);
	set_server(conn, "synchronous_commit", "on");
	set_server(conn, "full_page_writes", "off");
	expect_guarantee(url, "full_page_writes", false);
	postgres_store_must_refuse(durable, HAPAX_ERR_UNSUPPORTED, "full_page_writes = off");
	set_server(conn, "full_page_writes", "on");
	set_server(conn, "fsync", "off");
	expect_guarantee(url, "fsync = off", false);
	postgres_store_must_refuse(durable, HAPAX_ERR_UNSUPPORTED, "remove ?require=durable");
	set_server(conn, "fsync", "on");
	postgres_case_query(conn, "ALTER TABLE lasting.hapax_record_3 SET UNLOGGED");
	expect_guarantee(url, "UNLOGGED", false);
	postgres_store_must_refuse(durable, HAPAX_ERR_UNSUPPORTED, "UNLOGGED");
	postgres_case_query(conn, "ALTER TABLE lasting.hapax_record_3 SET LOGGED");
	expect_guarantee(durable, "answers survive a power cut", true);
	PQfinish(conn);
}

static void expect_joined(PGconn *conn, const char *setting, const char *part)
{
	static const char head[] = "after your transaction has committed: ";
	struct hapax_store *store;
	char text[256];

	postgres_case_query(conn, "SET synchronous_commit = %s", setting);
	store = trade_case_join(conn, 1000);
	hapax_store_guarantee(store, text, sizeof(text));
	if (strncmp(text, head, strlen(head)) != 0 || strstr(text, part) == NULL)
		fail_msg("no '%s' in '%s'", part, text);
	assert_false(hapax_store_capabilities(store) & HAPAX_STORE_DURABLE);
	hapax_store_close(store);
}

/* What it survives is what the caller's own COMMIT does, by the settings of the caller's session. */
static void joined_guarantee_is_that_of_the_commit(void **state)
{
	PGconn *conn = postgres_case_connect();

	(void)state;
	trade_case_begin(conn);
	expect_joined(conn, "on", "answers survive a power cut; a failover may lose");
	expect_joined(conn, "off", "may lose the latest answers (synchronous_commit = off)");
	expect_joined(conn, "local", "answers survive a power cut; a failover may lose");
	postgres_case_query(conn, "ALTER TABLE ledger.hapax_record_3 SET UNLOGGED");
	expect_joined(conn, "on", "UNLOGGED");
	PQfinish(conn);
}

/* ---------------------------------------------------------------- clocks */

struct asking {
	struct hapax_store *store;
	struct hapax_stats stats;
	enum hapax_status status;
};

static void ask_stats(void *arg)
{
	struct asking *asking = arg;

	asking->status = hapax_store_stats(asking->store, &asking->stats, NULL, NULL, NULL);
}

/* E16: how long the counting takes is not taken for a wrong clock. */
static void skew_is_measured_by_itself(void **state)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct asking asking = {.stats = HAPAX_STATS_INIT};
	struct hx_thread thread;
	int64_t begun_ms, held_ms;
	char url[512];

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS skew CASCADE");
	postgres_store_migrate("&schema=skew");
	postgres_case_url(url, sizeof(url), "&schema=skew");
	options.timeout_ms = 60000;
	assert_int_equal(hapax_store_open(url, &options, &asking.store, NULL), HAPAX_OK);
	postgres_case_query(conn, "BEGIN; LOCK TABLE skew.hapax_record_0");
	assert_int_equal(hx_thread_start(&thread, ask_stats, &asking, "stats", NULL), HAPAX_OK);
	while (postgres_case_number(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
		;
	begun_ms = hx_clock_mono_ns() / 1000000;
	do {
		held_ms = hx_clock_mono_ns() / 1000000 - begun_ms;
	} while (held_ms < 600);
	postgres_case_query(conn, "COMMIT");
	hx_thread_join(&thread);
	assert_int_equal(asking.status, HAPAX_OK);
	printf("# skew %lld ms, counting was held up for %lld ms\n",
	       (long long)asking.stats.skew_ms, (long long)held_ms);
	/* One machine has one clock: what is left is the way there and back. */
	assert_true(asking.stats.skew_ms > -held_ms / 2 && asking.stats.skew_ms < held_ms / 2);
	hapax_store_close(asking.store);
	PQfinish(conn);
}

/* ---------------------------------------------------------------- lost connections */

/* What an operation said is true, or it said that it does not know. */
static void judge_claim(
	struct hapax_store *truth, const struct hapax_op *said, const unsigned char *attempt_id,
	uint64_t *uncertain)
{
	struct hapax_op look = {.type = HAPAX_OP_LOOKUP, .key = said->key};
	struct hapax_op again = {
		.type = HAPAX_OP_CLAIM, .key = said->key, .attempt_id = attempt_id};
	bool is_there;

	assert_int_equal(hapax_store_run(truth, &look, 1, NULL), HAPAX_OK);
	is_there = look.outcome == HAPAX_OUTCOME_FOUND;
	switch (said->status) {
	case HAPAX_OK:
		assert_true(is_there);
		assert_int_equal(look.token, said->token);
		break;
	case HAPAX_ERR_UNAVAILABLE: assert_false(is_there); break;
	case HAPAX_ERR_UNCERTAIN: ++*uncertain; break;
	default: fail_msg("%s", hapax_status_name(said->status));
	}
	/* Settled by the same attempt_id: the claim is ours, and there is one. */
	assert_int_equal(hapax_store_run(truth, &again, 1, NULL), HAPAX_OK);
	assert_int_equal(again.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(again.attempt, 1);
	if (is_there)
		assert_int_equal(again.token, look.token);
}

/* T11: the exchange of a claim cut at every byte, both ways. */
static void cut_at_every_byte(void **state)
{
	const char *port = getenv("HAPAX_TEST_POSTGRES_PORT");
	PGconn *conn = postgres_case_connect();
	char url[256], truth_url[256];
	struct cut_proxy proxy;
	struct hapax_store *store, *truth;
	struct hapax_error err = {0};
	uint64_t cuts = 0, uncertain = 0;
	double begun = scale_seconds();
	int64_t step = scale_is_proof() ? 1 : 23;

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS cut CASCADE");
	postgres_store_migrate("&schema=cut");
	postgres_case_query(conn, "ALTER ROLE postgres PASSWORD 'right'");
	postgres_case_url(truth_url, sizeof(truth_url), "&schema=cut");
	truth = postgres_store_open(truth_url, &err);
	assert_non_null(truth);
	cut_proxy_start(&proxy, (int)strtol(port, NULL, 10));
	snprintf(
		url, sizeof(url),
		"postgres://postgres:right@127.0.0.1:%d/postgres?schema=cut&pool=1"
		"&sslmode=disable&gssencmode=disable",
		proxy.port);
	store = postgres_store_open(url, &err);
	if (store == NULL)
		printf("# %s\n", err.message);
	assert_non_null(store);
	assert_non_null(strstr(hapax_store_url(store), "postgres://postgres:***@127.0.0.1"));
	for (int way = CUT_TO_SERVER; way <= CUT_TO_CLIENT; way++) {
		bool is_whole = false;

		for (int64_t bytes = 0; !is_whole; bytes += step) {
			unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
			char key[32];
			struct hapax_op op = {.type = HAPAX_OP_CLAIM, .attempt_id = attempt_id};

			snprintf(key, sizeof(key), "cut %d/%lld", way, (long long)bytes);
			hapax_attempt_id(attempt_id);
			op.key = hapax_bytes_from_text(key);
			/* Something goes through first, so that the line is up. */
			struct hapax_op ping = {.type = HAPAX_OP_LOOKUP, .key = op.key};
			assert_int_equal(hapax_store_run(store, &ping, 1, NULL), HAPAX_OK);
			cut_proxy_arm(&proxy, (enum cut_way)way, bytes);
			(void)hapax_store_run(store, &op, 1, NULL);
			/* Nothing was cut: this way is done. */
			is_whole = atomic_load(&proxy.left[way]) >= 0;
			cut_proxy_disarm(&proxy);
			judge_claim(truth, &op, attempt_id, &uncertain);
			cuts += !is_whole;
		}
	}
	scale_report("exchanges with PostgreSQL cut", cuts, scale_seconds() - begun, true);
	printf("# %llu of them uncertain\n", (unsigned long long)uncertain);
	assert_true(cuts > 10);
	assert_true(uncertain > 0);
	hapax_store_close(store);
	hapax_store_close(truth);
	cut_proxy_stop(&proxy);
	PQfinish(conn);
}

/* All sessions of the store ended again and again under load; once, the server crashes. */
static void sessions_end_under_load(void **state)
{
	PGconn *conn = postgres_case_connect();
	const char *restart = getenv("HAPAX_TEST_POSTGRES_RESTART");
	uint64_t rounds = scale_count(2000, 60);
	char url[256];
	struct hapax_store *store;
	struct hapax_error err = {0};
	uint64_t uncertain = 0;
	double begun = scale_seconds();

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS ended CASCADE");
	postgres_store_migrate("&schema=ended");
	postgres_case_url(url, sizeof(url), "&schema=ended&application_name=victim");
	store = postgres_store_open(url, &err);
	assert_non_null(store);
	for (uint64_t round = 0; round < rounds; round++) {
		unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
		char key[32];
		struct hapax_op op = {.type = HAPAX_OP_CLAIM, .attempt_id = attempt_id};
		enum hapax_status status;

		snprintf(key, sizeof(key), "ended %llu", (unsigned long long)round);
		hapax_attempt_id(attempt_id);
		op.key = hapax_bytes_from_text(key);
		if (round == rounds / 2) {
			PQfinish(conn);
			assert_int_equal(system(restart), 0);
			conn = postgres_case_connect();
		} else {
			/* Sent without waiting: it meets the claim somewhere. */
			PQsendQuery(
				conn,
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
				" WHERE application_name = 'victim'");
		}
		do {
			status = hapax_store_run(store, &op, 1, NULL);
			uncertain += status == HAPAX_ERR_UNCERTAIN;
			assert_true(
				status == HAPAX_OK || status == HAPAX_ERR_UNCERTAIN ||
				status == HAPAX_ERR_UNAVAILABLE);
		} while (status != HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(op.attempt, 1);
		for (PGresult *result; (result = PQgetResult(conn)) != NULL;)
			PQclear(result);
	}
	scale_report(
		"claims while sessions end, settled by attempt_id", rounds, scale_seconds() - begun,
		true);
	printf("# %llu answers uncertain on the way\n", (unsigned long long)uncertain);
	assert_int_equal(
		postgres_case_number(
			conn, "SELECT count(*) FROM ended.hapax_record WHERE attempt = 1"),
		rounds);
	hapax_store_close(store);
	PQfinish(conn);
}

/* The ledger taken away while it is open: nothing was done, and it comes back. */
static void ledger_goes_and_comes_back(void **state)
{
	PGconn *conn = postgres_case_connect();
	char url[256];
	struct hapax_store *store;
	struct hapax_error err = {0};
	enum hapax_outcome outcome;
	enum hapax_status status;

	(void)state;
	postgres_store_migrate("&schema=gone");
	postgres_case_url(url, sizeof(url), "&schema=gone");
	store = postgres_store_open(url, &err);
	assert_non_null(store);
	postgres_case_query(conn, "DROP SCHEMA gone CASCADE");
	status = postgres_store_check(store, "t", "key", &outcome);
	assert_int_equal(status, HAPAX_ERR_UNAVAILABLE);
	postgres_store_migrate("&schema=gone");
	for (int i = 0; i < 100 && status != HAPAX_OK; i++)
		status = postgres_store_check(store, "t", "key", &outcome);
	assert_int_equal(status, HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(store);
	PQfinish(conn);
}

/* A key that an application's transaction holds is in progress; others go on. */
static void held_key_is_in_progress(void **state)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	char url[256];
	struct hapax_store *store = NULL;
	struct hapax_op ops[3];

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS held CASCADE");
	postgres_store_migrate("&schema=held");
	postgres_case_url(url, sizeof(url), "&schema=held");
	options.timeout_ms = 400;
	assert_int_equal(hapax_store_open(url, &options, &store, NULL), HAPAX_OK);
	postgres_case_query(conn, "SET search_path = held; BEGIN");
	postgres_case_query(conn, "SELECT hapax_check('b')");
	for (int i = 0; i < 3; i++)
		ops[i] = (struct hapax_op){
			.type = HAPAX_OP_CHECK,
			.key = hapax_bytes_from_text((const char *[]){"a", "b", "c"}[i])};
	(void)hapax_store_run(store, ops, 3, NULL);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_ACQUIRED);
	postgres_case_query(conn, "ROLLBACK");
	assert_int_equal(hapax_store_run(store, &ops[1], 1, NULL), HAPAX_OK);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(store);
	PQfinish(conn);
}

/* Many keys that an application's transaction holds: a call does not wait for each of them in turn. */
static void held_keys_are_not_waited_for_one_by_one(void **state)
{
	enum { KEYS = 64 };
	PGconn *conn = postgres_case_connect();
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_op ops[KEYS];
	char keys[KEYS][8];
	char url[256];

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS held CASCADE");
	postgres_store_migrate("&schema=held");
	postgres_case_url(url, sizeof(url), "&schema=held");
	options.timeout_ms = 1000;
	assert_int_equal(hapax_store_open(url, &options, &store, NULL), HAPAX_OK);
	postgres_case_query(conn, "SET search_path = held; BEGIN");
	for (int i = 0; i < KEYS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%02d", i);
		postgres_case_query(conn, "SELECT hapax_check('%s')", keys[i]);
		ops[i] = (struct hapax_op){
			.type = HAPAX_OP_CHECK, .key = hapax_bytes_from_text(keys[i])};
	}
	(void)hapax_store_run(store, ops, KEYS, NULL);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_IN_PROGRESS);
	/* A quarter of the time for each is far more than the time that there is. */
	assert_int_equal(ops[KEYS - 1].status, HAPAX_ERR_UNAVAILABLE);
	postgres_case_query(conn, "ROLLBACK");
	hapax_store_close(store);
	assert_int_equal(hapax_store_open(url, NULL, &store, NULL), HAPAX_OK);
	assert_int_equal(hapax_store_run(store, ops, KEYS, NULL), HAPAX_OK);
	assert_int_equal(ops[KEYS - 1].outcome, HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(store);
	PQfinish(conn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_urls_are_refused),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(limits_are_refused),
		cmocka_unit_test(guarantee_follows_from_settings),
		cmocka_unit_test(durable_is_refused_where_it_is_not),
		cmocka_unit_test(joined_guarantee_is_that_of_the_commit),
		cmocka_unit_test(skew_is_measured_by_itself),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(sessions_end_under_load),
		cmocka_unit_test(ledger_goes_and_comes_back),
		cmocka_unit_test(held_key_is_in_progress),
		cmocka_unit_test(held_keys_are_not_waited_for_one_by_one),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
