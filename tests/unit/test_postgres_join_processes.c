/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_postgres_join_processes.c - processes that trade at the same moment on a joined ledger in
 * PostgreSQL, beside the statements of document B, and processes that are killed at every step of a
 * trade.
 *
 * Children are forked while this process has no store and no thread, and end with _exit().
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "support/pay_case.h"
#include "support/postgres_case.h"
#include "support/scale.h"
#include "support/trade_case.h"

enum { CHILD_GOOD = 0, CHILD_BAD = 1 };

/* ---------------------------------------------------------------- two processes, one key */

struct meeting {
	pthread_barrier_t barrier;
	_Atomic uint64_t acquired;
	_Atomic uint64_t replayed;
};

typedef bool round_fn(
	PGconn *conn, struct hapax_store *store, struct meeting *meeting, const char *key);

static bool trade_with_hapax(
	PGconn *conn, struct hapax_store *store, struct meeting *meeting, const char *key)
{
	uint64_t token = 0;
	enum hapax_outcome outcome;

	postgres_case_query(conn, "BEGIN");
	outcome = trade_case_claim(store, key, &token);
	if (outcome == HAPAX_OUTCOME_ACQUIRED) {
		postgres_case_query(
			conn, "INSERT INTO work.trade VALUES ('%s', %d)", key, (int)getpid());
		if (trade_case_complete(store, key, token) != HAPAX_OK)
			return false;
		meeting->acquired++;
	} else if (outcome == HAPAX_OUTCOME_REPLAY) {
		meeting->replayed++;
	} else {
		printf("# %s: %s\n", key, hapax_outcome_name(outcome));
		return false;
	}
	postgres_case_query(conn, "COMMIT");
	return true;
}

/* The same by hapax_tx_process(), in a transaction of its own. */
static bool trade_by_process(
	PGconn *conn, struct hapax_store *store, struct meeting *meeting, const char *key)
{
	enum hapax_outcome outcome = HAPAX_OUTCOME_NONE;

	if (pay_case_trade(conn, store, key, &outcome) != HAPAX_OK)
		return false;
	meeting->acquired += outcome == HAPAX_OUTCOME_ACQUIRED;
	meeting->replayed += outcome == HAPAX_OUTCOME_REPLAY;
	return true;
}

/*
 * As document B has them; tenant and metadata are left out, which changes no lock. Both have asked
 * before one of them goes on: nothing that they asked for keeps the other from it.
 */
static bool trade_as_document_b(
	PGconn *conn, struct hapax_store *store, struct meeting *meeting, const char *key)
{
	bool is_done;

	(void)store;
	postgres_case_query(conn, "BEGIN");
	is_done = postgres_case_query(
			  conn,
			  "SELECT 1 FROM work.processed_events WHERE idempotency_key = '%s'"
			  " AND consumer_group = 'g' FOR UPDATE SKIP LOCKED",
			  key)[0] != '\0';
	pthread_barrier_wait(&meeting->barrier);
	if (is_done) {
		postgres_case_query(conn, "ROLLBACK");
		return true;
	}
	postgres_case_query(conn, "INSERT INTO work.trade VALUES ('%s', %d)", key, (int)getpid());
	postgres_case_query(
		conn,
		"INSERT INTO work.processed_events (idempotency_key, consumer_group) VALUES ('%s', 'g')"
		" ON CONFLICT (idempotency_key, consumer_group) DO NOTHING",
		key);
	postgres_case_query(conn, "COMMIT");
	meeting->acquired++;
	return true;
}

static void run_rounds(struct meeting *meeting, uint64_t rounds, round_fn *trade)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_store *store = trade_case_join(conn, 60000);
	bool is_good = true;

	for (uint64_t i = 0; i < rounds; i++) {
		char key[32];

		snprintf(key, sizeof(key), "order %llu", (unsigned long long)i);
		pthread_barrier_wait(&meeting->barrier);
		is_good = is_good && trade(conn, store, meeting, key);
	}
	hapax_store_close(store);
	PQfinish(conn);
	fflush(stdout);
	_exit(is_good ? CHILD_GOOD : CHILD_BAD);
}

static void run_two(struct meeting *meeting, uint64_t rounds, round_fn *trade)
{
	pthread_barrierattr_t attributes;
	pid_t children[2];

	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&meeting->barrier, &attributes, 2);
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0)
			run_rounds(meeting, rounds, trade);
	}
	for (int i = 0; i < 2; i++) {
		int status = -1;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_GOOD);
	}
	pthread_barrier_destroy(&meeting->barrier);
}

/* B4 to B6: exactly one business row for each key; the statements of document B make two. */
static void two_processes_trade_once(void **state)
{
	PGconn *conn = *state;
	uint64_t rounds = scale_count(10000, 1000);
	struct meeting *meeting = mmap(
		NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double begun = scale_seconds();
	long long rows, keys;
	bool is_good;

	assert_true(meeting != MAP_FAILED);
	run_two(meeting, rounds, trade_with_hapax);
	rows = postgres_case_number(conn, "SELECT count(*) FROM work.trade");
	keys = postgres_case_number(conn, "SELECT count(DISTINCT key) FROM work.trade");
	is_good = rows == (long long)rounds && keys == rows;
	scale_report(
		"two processes, one key: rounds with one business row", rounds,
		scale_seconds() - begun, is_good);
	assert_int_equal(rows, rounds);
	assert_int_equal(keys, rounds);
	assert_int_equal(meeting->acquired, rounds);
	assert_int_equal(meeting->replayed, rounds);

	trade_case_begin(conn);
	meeting->acquired = meeting->replayed = 0;
	begun = scale_seconds();
	run_two(meeting, rounds, trade_by_process);
	rows = postgres_case_number(conn, "SELECT count(*) FROM work.trade");
	keys = postgres_case_number(conn, "SELECT count(DISTINCT key) FROM work.trade");
	is_good = rows == (long long)rounds && keys == rows;
	scale_report(
		"two processes, one key, hapax_tx_process(): rounds with one business row", rounds,
		scale_seconds() - begun, is_good);
	assert_true(is_good);
	assert_int_equal(meeting->acquired, rounds);
	assert_int_equal(meeting->replayed, rounds);

	postgres_case_query(conn, "TRUNCATE work.trade");
	meeting->acquired = 0;
	rounds = rounds < 500 ? rounds : 500;
	run_two(meeting, rounds, trade_as_document_b);
	rows = postgres_case_number(conn, "SELECT count(*) FROM work.trade");
	printf("# document B's statements: %lld rows for %llu keys\n", rows,
	       (unsigned long long)rounds);
	assert_int_equal(rows, 2 * rounds);
	munmap(meeting, sizeof(*meeting));
}

/* ---------------------------------------------------------------- killed at every step */

enum { STEPS = 6 };

/* A child that trades one key and stands still before a step, until it is told to go on. */
static void trade_in_steps(int orders, int steps, const char *key)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_store *store = trade_case_join(conn, 60000);
	uint64_t token = 0;

	for (int step = 0; step < STEPS; step++) {
		char byte = (char)step;
		int pid = PQbackendPID(conn);

		(void)!write(steps, &pid, sizeof(pid));
		if (read(orders, &byte, 1) != 1)
			_exit(CHILD_BAD);
		switch (step) {
		case 0: PQclear(PQexec(conn, "BEGIN")); break;
		case 1: (void)trade_case_claim(store, key, &token); break;
		case 2:
			PQclear(
				PQexec(conn,
				       "INSERT INTO work.trade SELECT key, pg_backend_pid() FROM"
				       " (VALUES (current_setting('work.key'))) v (key)"));
			break;
		case 3: (void)trade_case_complete(store, key, token); break;
		case 4: PQclear(PQexec(conn, "COMMIT")); break;
		default: break;
		}
		if (step == 0) {
			char sql[96];

			snprintf(sql, sizeof(sql), "SET LOCAL work.key = '%s'", key);
			PQclear(PQexec(conn, sql));
		}
	}
	_exit(CHILD_GOOD);
}

/* Kill the child, or its session, before step; then trade again. */
static void kill_at(PGconn *conn, int step, bool kills_session, const char *key)
{
	struct meeting meeting = {.acquired = 0};
	struct hapax_store *store;
	int orders[2], steps[2];
	int session = 0;
	char sql[128];
	pid_t child;

	assert_int_equal(pipe(orders), 0);
	assert_int_equal(pipe(steps), 0);
	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(orders[1]);
		trade_in_steps(orders[0], steps[1], key);
	}
	for (int i = 0; i <= step; i++) {
		assert_int_equal(read(steps[0], &session, sizeof(session)), sizeof(session));
		if (i < step)
			assert_int_equal(write(orders[1], "", 1), 1);
	}
	snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%d)", session);
	if (kills_session)
		postgres_case_query(conn, "%s", sql);
	else
		kill(child, SIGKILL);
	close(orders[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	/* The retry waits for what is left of the session. */
	store = trade_case_join(conn, 60000);
	assert_true(trade_with_hapax(conn, store, &meeting, key));
	hapax_store_close(store);
	close(orders[0]);
	close(steps[0]);
	close(steps[1]);
}

/* kill -9 and pg_terminate_backend before every step: never two, never lost. */
static void killed_at_every_step(void **state)
{
	PGconn *conn = *state;
	uint64_t rounds = scale_count(50, 2);
	double begun = scale_seconds();
	long long expected = 0;

	for (uint64_t round = 0; round < rounds; round++) {
		for (int step = 0; step < STEPS; step++) {
			for (int kind = 0; kind < 2; kind++) {
				char key[48];

				snprintf(
					key, sizeof(key), "kill %llu/%d/%d",
					(unsigned long long)round, step, kind);
				kill_at(conn, step, kind == 0, key);
				expected++;
			}
		}
	}
	assert_int_equal(
		postgres_case_number(conn, "SELECT count(DISTINCT key) FROM work.trade"), expected);
	assert_int_equal(postgres_case_number(conn, "SELECT count(*) FROM work.trade"), expected);
	scale_report(
		"trades killed at every step, retried: one row each", (uint64_t)expected,
		scale_seconds() - begun, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			two_processes_trade_once, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			killed_at_every_step, trade_case_set_up, trade_case_tear_down),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
