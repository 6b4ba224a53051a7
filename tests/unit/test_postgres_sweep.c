/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clean-up of a ledger in PostgreSQL: in pieces, by one process at a time, without blocking others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include <hapax/hapax.h>
#include <hapax/postgres.h>

#include "support/postgres_case.h"
#include "support/store_case.h"

enum { EXPIRED = 450, BATCH = 100 };

static long long records(PGconn *conn)
{
	return postgres_case_number(conn, "SELECT count(*) FROM swept.hapax_record");
}

/* Marks that expire as soon as they are made. */
static void make_expired(PGconn *conn)
{
	char url[512];

	postgres_case_query(conn, "DROP SCHEMA IF EXISTS swept CASCADE");
	postgres_case_url(url, sizeof(url), "&schema=swept");
	assert_int_equal(hapax_store_migrate(url, NULL, NULL), HAPAX_OK);
	postgres_case_query(
		conn,
		"SET search_path = swept; SELECT count(*) FROM hapax_check_all("
		"ARRAY(SELECT 'e' || n FROM generate_series(1, %d) n), p_ttl => '1 ms')",
		EXPIRED);
	while (postgres_case_number(
		       conn, "SELECT count(*) FROM hapax_record WHERE expires > hapax_now()") > 0)
		;
}

/* B8: bounded pieces, one process at a time; it waits for no other, and claims continue. */
static void sweeps_take_turns(void **state)
{
	PGconn *conn = postgres_case_connect();
	PGconn *other = postgres_case_connect();
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_error err = {0};
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	enum hapax_outcome outcome;
	char url[512];

	(void)state;
	make_expired(conn);
	postgres_case_url(url, sizeof(url), "&schema=swept");
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	assert_int_equal(hapax_store_open(url, &options, &store, &err), HAPAX_OK);
	/* Another session holds one of them, and another process is in the middle of a piece. */
	postgres_case_query(
		other, "BEGIN; SELECT 1 FROM swept.hapax_record WHERE key = 'e7' FOR UPDATE");
	postgres_case_query(conn, "BEGIN");
	assert_int_equal(
		postgres_case_number(conn, "SELECT removed FROM hapax_sweep(NULL, 100)"), BATCH);
	assert_int_equal(hapax_store_sweep(store, &sweep, &err), HAPAX_OK);
	assert_int_equal(sweep.removed, 0);
	assert_int_equal(sweep.done, 1);
	assert_int_equal(
		hapax_store_check(store, hapax_bytes_from_text("meanwhile"), 0, &outcome, &err),
		HAPAX_OK);
	assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	postgres_case_query(conn, "COMMIT");
	assert_int_equal(hapax_store_sweep(store, &sweep, &err), HAPAX_OK);
	assert_int_equal(sweep.removed, EXPIRED - BATCH - 1);
	assert_int_equal(sweep.remaining, 2);
	postgres_case_query(other, "COMMIT");
	assert_int_equal(hapax_store_sweep(store, &sweep, &err), HAPAX_OK);
	assert_int_equal(sweep.removed, 1);
	hapax_store_close(store);
	PQfinish(other);
	PQfinish(conn);
}

/* B8: on a schedule, without being asked, by two processes' stores. */
static void housekeeping_sweeps_by_itself(void **state)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	PGconn *conn = postgres_case_connect();
	struct hapax_store *stores[2] = {NULL, NULL};
	struct hapax_error err = {0};
	char url[512];

	(void)state;
	make_expired(conn);
	postgres_case_url(url, sizeof(url), "&schema=swept");
	options.sweep_interval_ms = 10;
	for (int i = 0; i < 2; i++)
		assert_int_equal(hapax_store_open(url, &options, &stores[i], &err), HAPAX_OK);
	while (records(conn) > 0)
		;
	for (int i = 0; i < 2; i++)
		hapax_store_close(stores[i]);
	PQfinish(conn);
}

/* A claim from another store with times at the ends of their range: kept, judged and swept. */
static void any_times_are_swept(void **state)
{
	static const struct {
		int64_t lease_ends_ms, ttl_ms;
		bool is_held, lapses;
	} claims[] = {
		{INT64_MIN, HAPAX_TTL_FOREVER, false, false}, {INT64_MIN, 60000, false, true},
		{INT64_MIN, INT64_MAX - 1, false, true},      {-1, 60000, false, true},
		{INT64_MAX, HAPAX_TTL_FOREVER, true, false},  {INT64_MAX, 60000, true, false},
	};
	struct store_case c;

	(void)state;
	store_case_begin(&c, "postgres:");
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		struct hapax_record record = {
			.state = HAPAX_STATE_CLAIMED,
			.attempt = 1,
			.token = 5,
			.first_seen_ms = CASE_EPOCH_MS,
			.changed_ms = CASE_EPOCH_MS,
			.lease_ends_ms = claims[i].lease_ends_ms,
			.expires_ms = HAPAX_TIME_NEVER,
			.ttl_ms = claims[i].ttl_ms,
			.attempt_id = {9},
		};
		struct hapax_op load = {
			.type = HAPAX_OP_LOAD, .key = hapax_bytes_from_text("k"), .load = &record};

		assert_int_equal(hapax_store_run(c.store, &load, 1, NULL), HAPAX_OK);
		assert_int_equal(case_state(&c, "k"), HAPAX_STATE_CLAIMED);
		assert_int_equal(c.record.lease_ends_ms, record.lease_ends_ms);
		assert_int_equal(
			case_claim(&c, "k", NULL),
			claims[i].is_held ? HAPAX_OUTCOME_IN_PROGRESS : HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(hapax_store_run(c.store, &load, 1, NULL), HAPAX_OK);
		assert_int_equal(case_sweep(&c).lapsed, claims[i].lapses);
	}
	store_case_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweeps_take_turns),
		cmocka_unit_test(housekeeping_sweeps_by_itself),
		cmocka_unit_test(any_times_are_swept),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
