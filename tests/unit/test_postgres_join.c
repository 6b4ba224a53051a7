/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger inside the caller's own transaction: rollbacks, savepoints, who waits, and runs that are
 * cut off. Processes that race and are killed: test_postgres_join_processes.c.
 *
 * A child is forked while this process has no store and no thread, and ends with _exit().
 */
#include <hapax/postgres.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "support/cut_proxy.h"
#include "support/pay_case.h"
#include "support/postgres_case.h"
#include "support/scale.h"
#include "support/trade_case.h"

/* ---------------------------------------------------------------- one transaction */

/* A rollback takes claim, completion and business row; the next one runs. */
static void rollback_undoes_both(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *store = trade_case_join(conn, 1000);
	uint64_t token = 0, later = 0;

	postgres_case_query(conn, "BEGIN");
	assert_int_equal(trade_case_claim(store, "order", &token), HAPAX_OUTCOME_ACQUIRED);
	postgres_case_query(conn, "INSERT INTO work.trade VALUES ('order', 1)");
	assert_int_equal(trade_case_complete(store, "order", token), HAPAX_OK);
	postgres_case_query(conn, "ROLLBACK");
	assert_int_equal(postgres_case_number(conn, "SELECT count(*) FROM work.trade"), 0);
	postgres_case_query(conn, "BEGIN");
	assert_int_equal(trade_case_claim(store, "order", &later), HAPAX_OUTCOME_ACQUIRED);
	assert_true(later > token);
	assert_int_equal(trade_case_complete(store, "order", token), HAPAX_ERR_FENCED);
	assert_int_equal(trade_case_complete(store, "order", later), HAPAX_OK);
	postgres_case_query(conn, "COMMIT");
	assert_int_equal(trade_case_claim(store, "order", &token), HAPAX_OUTCOME_REPLAY);
	assert_true(hapax_store_capabilities(store) & HAPAX_STORE_TRANSACTIONS);
	hapax_store_close(store);
}

/* A caller that waits longer than its timeout gets IN_PROGRESS; its changes stay. */
static void waiting_ends(void **state)
{
	PGconn *conn = *state;
	PGconn *other = postgres_case_connect();
	struct hapax_store *first = trade_case_join(conn, 60000);
	struct hapax_store *second = trade_case_join(other, 50);
	uint64_t token = 0, none = 0;

	postgres_case_query(conn, "BEGIN");
	assert_int_equal(trade_case_claim(first, "order", &token), HAPAX_OUTCOME_ACQUIRED);
	postgres_case_query(other, "SET lock_timeout = '77s'; BEGIN");
	postgres_case_query(other, "INSERT INTO work.trade VALUES ('before', 1)");
	assert_int_equal(trade_case_claim(second, "order", &none), HAPAX_OUTCOME_IN_PROGRESS);
	/* Neither the transaction nor its settings suffered. */
	assert_string_equal(postgres_case_query(other, "SHOW lock_timeout"), "77s");
	assert_int_equal(trade_case_claim(second, "another", &none), HAPAX_OUTCOME_ACQUIRED);
	postgres_case_query(other, "COMMIT");
	assert_int_equal(trade_case_complete(first, "order", token), HAPAX_OK);
	postgres_case_query(conn, "COMMIT");
	assert_int_equal(postgres_case_number(conn, "SELECT count(*) FROM work.trade"), 1);
	assert_int_equal(trade_case_claim(second, "order", &none), HAPAX_OUTCOME_REPLAY);
	/* A claim that was committed and not completed has lapsed. */
	assert_int_equal(trade_case_claim(first, "another", &none), HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(second);
	hapax_store_close(first);
	PQfinish(other);
}

/* The claim of a process of its own; its token goes to the pipe. */
static void claim_elsewhere(int out, bool by_process)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_store *store = trade_case_join(conn, 60000);
	uint64_t token = 0;

	if (by_process)
		token = pay_case_token(conn, store, "order");
	else if (trade_case_claim(store, "order", &token) != HAPAX_OUTCOME_ACQUIRED)
		token = 0;
	(void)!write(out, &token, sizeof(token));
	_exit(0);
}

/* I5: one that waited for a claim that came to nothing has the larger token. */
static void token_is_taken_when_the_key_is_held(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *store = trade_case_join(conn, 60000);

	for (int by_process = 0; by_process < 2; by_process++) {
		uint64_t token = 0, next = 0, theirs = 0;
		int pipes[2];
		pid_t child;

		postgres_case_query(conn, "DELETE FROM ledger.hapax_record");
		postgres_case_query(conn, "BEGIN");
		assert_int_equal(trade_case_claim(store, "order", &token), HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(pipe(pipes), 0);
		fflush(stdout);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			claim_elsewhere(pipes[1], by_process != 0);
		/* Until it waits for us. */
		while (postgres_case_number(
			       conn,
			       "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'") ==
		       0)
			usleep(1000);
		/* Tokens go on meanwhile, as other keys are claimed; ours grows too, and is then taken back. */
		assert_int_equal(trade_case_claim(store, "second", &next), HAPAX_OUTCOME_ACQUIRED);
		postgres_case_query(conn, "ROLLBACK");
		assert_int_equal(read(pipes[0], &theirs, sizeof(theirs)), sizeof(theirs));
		assert_true(theirs > next);
		assert_int_equal(waitpid(child, NULL, 0), child);
		close(pipes[0]);
		close(pipes[1]);
	}
	hapax_store_close(store);
}

/* A transaction that has failed, a busy connection, a ledger that is not there. */
static void unusable_connections_are_refused(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *store = trade_case_join(conn, 1000);
	struct hapax_store *none = NULL;
	struct hapax_error err = {0};
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op = trade_case_claim_of("order", attempt_id);

	postgres_case_query(conn, "BEGIN");
	PQclear(PQexec(conn, "SELECT nonsense"));
	assert_int_equal(hapax_store_run(store, &op, 1, &err), HAPAX_ERR_UNAVAILABLE);
	postgres_case_query(conn, "ROLLBACK");
	assert_int_equal(hapax_store_run(store, &op, 1, &err), HAPAX_OK);
	hapax_store_close(store);
	postgres_case_query(conn, "SET search_path = work");
	assert_int_equal(hapax_postgres_join(conn, NULL, &none, &err), HAPAX_ERR_UNAVAILABLE);
	assert_non_null(strstr(err.message, "hapax store migrate"));
	assert_int_equal(hapax_postgres_join(NULL, NULL, &none, &err), HAPAX_ERR_INVALID);
}

/* ---------------------------------------------------------------- hapax_tx_process() */

static long long paid(PGconn *conn)
{
	return postgres_case_number(conn, "SELECT count(*) FROM work.trade");
}

/* However the handler ends: its row and the record stay together, and the connection is of use. */
static void handlers_end_in_every_way(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *store = trade_case_join(conn, 1000);
	struct pay_case bank = {.conn = conn, .manner = PAY};
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	assert_int_equal(pay_case_process(store, &bank, "order", &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	assert_int_equal(pay_case_process(store, &bank, "order", &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(bank.calls, 1);
	assert_int_equal(paid(conn), 1);

	for (enum pay_manner manner = FAIL; manner <= BREAK_AND_FAIL; manner++) {
		bank.manner = manner;
		assert_int_equal(
			pay_case_process(store, &bank, "failing", &answer), HAPAX_ERR_HANDLER);
		assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
		assert_int_equal(paid(conn), 1);
	}
	/* All of them are remembered as attempts. */
	bank.manner = PAY;
	assert_int_equal(pay_case_process(store, &bank, "failing", &answer), HAPAX_OK);
	assert_int_equal(answer.attempt, 4);
	assert_int_equal(paid(conn), 2);

	/* A constraint that is judged at the commit. */
	postgres_case_query(
		conn, "CREATE TABLE work.later (n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)");
	bank.manner = VIOLATE_LATER;
	assert_int_equal(pay_case_process(store, &bank, "later", &answer), HAPAX_ERR_HANDLER);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	assert_int_equal(paid(conn), 2);
	/* The same by a trigger, which has words of its own for it. */
	postgres_case_query(
		conn,
		"CREATE TABLE work.balanced (n integer);"
		" CREATE FUNCTION work.balance() RETURNS trigger LANGUAGE plpgsql AS"
		" $$BEGIN RAISE EXCEPTION 'the books do not balance'; END$$;"
		" CREATE CONSTRAINT TRIGGER balance AFTER INSERT ON work.balanced DEFERRABLE"
		" INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION work.balance()");
	bank.manner = RAISE_LATER;
	assert_int_equal(pay_case_process(store, &bank, "raised", &answer), HAPAX_ERR_HANDLER);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	assert_int_equal(paid(conn), 2);

	/* Its claim is not there any more: the COMMIT behind the completion must not happen. */
	bank.manner = LOSE_ITS_CLAIM;
	assert_int_equal(pay_case_process(store, &bank, "lost", &answer), HAPAX_ERR_FENCED);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	assert_int_equal(paid(conn), 2);
	bank.manner = PAY;
	assert_int_equal(pay_case_process(store, &bank, "order", &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_REPLAY);
	hapax_store_close(store);
}

/* Whatever is inserted into table fails when it is to be committed; or its session ends then. */
static void break_commits(PGconn *conn, const char *table, const char *how)
{
	postgres_case_query(
		conn,
		"CREATE OR REPLACE FUNCTION work.break_commit() RETURNS trigger LANGUAGE plpgsql AS"
		" $$ BEGIN %s; RETURN NULL; END $$;"
		" CREATE CONSTRAINT TRIGGER breaks AFTER INSERT ON %s DEFERRABLE INITIALLY DEFERRED"
		" FOR EACH ROW EXECUTE FUNCTION work.break_commit()",
		how, table);
}

/* Outside of a transaction an operation commits by itself. What that commit refuses was not done. */
static void a_commit_that_fails_is_no_answer(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *store = trade_case_join(conn, 1000);
	/* A transaction that has to be repeated; another server that a trigger has lost. */
	static const char *const codes[] = {"40001", "08006"};
	uint64_t token = 0;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		char body[128];

		snprintf(
			body, sizeof(body), "RAISE EXCEPTION 'undone' USING ERRCODE = '%s'",
			codes[i]);
		break_commits(conn, "ledger.hapax_record", body);
		assert_int_equal(trade_case_claim(store, "order", &token), HAPAX_OUTCOME_NONE);
		assert_int_equal(
			postgres_case_number(conn, "SELECT count(*) FROM hapax_record"), 0);
		postgres_case_query(conn, "DROP TRIGGER breaks ON hapax_record");
	}
	assert_int_equal(trade_case_claim(store, "order", &token), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(trade_case_complete(store, "order", token), HAPAX_OK);
	hapax_store_close(store);
}

/* A session that ends in COMMIT: no answer says that nothing was committed. */
static void a_session_that_ends_in_commit_is_not_judged(void **state)
{
	PGconn *conn = *state;
	PGconn *line = postgres_case_connect();
	struct hapax_store *store = trade_case_join(line, 1000);
	struct pay_case bank = {.conn = line, .manner = PAY};
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	break_commits(
		conn, "work.trade", "PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(60)");
	assert_int_equal(pay_case_process(store, &bank, "order", &answer), HAPAX_ERR_UNCERTAIN);
	assert_non_null(strstr(bank.err.message, "it is unknown whether"));
	hapax_store_close(store);
	PQfinish(line);
}

/* In a transaction of the caller's: it stands or falls with that. */
static void a_transaction_of_the_callers(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *store = trade_case_join(conn, 1000);
	struct pay_case bank = {.conn = conn, .manner = PAY};
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	/* A setting of theirs stays, whether the key is new or done. */
	postgres_case_query(conn, "BEGIN; SET LOCAL lock_timeout = '77s'");
	for (int i = 0; i < 4; i++) {
		const char *key = i % 2 == 0 ? "order" : "first";

		assert_int_equal(pay_case_process(store, &bank, key, &answer), HAPAX_OK);
		assert_string_equal(postgres_case_query(conn, "SHOW lock_timeout"), "77s");
	}
	assert_int_equal(paid(conn), 2);
	postgres_case_query(conn, "ROLLBACK; BEGIN");
	assert_int_equal(pay_case_process(store, &bank, "order", &answer), HAPAX_OK);
	bank.manner = BREAK_AND_FAIL;
	assert_int_equal(pay_case_process(store, &bank, "other", &answer), HAPAX_ERR_HANDLER);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_INTRANS);
	assert_int_equal(paid(conn), 1);
	postgres_case_query(conn, "ROLLBACK");
	assert_int_equal(paid(conn), 0);
	bank.manner = PAY;
	postgres_case_query(conn, "BEGIN");
	assert_int_equal(pay_case_process(store, &bank, "order", &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	postgres_case_query(conn, "COMMIT");
	assert_int_equal(paid(conn), 1);

	/* A handler that ends the transaction itself: it must be joined again. */
	bank.manner = COMMIT_ITSELF;
	assert_int_equal(pay_case_process(store, &bank, "wild", &answer), HAPAX_ERR_FAILED);
	bank.manner = PAY;
	assert_int_equal(pay_case_process(store, &bank, "tame", &answer), HAPAX_ERR_FAILED);
	hapax_store_close(store);
	store = trade_case_join(conn, 1000);
	assert_int_equal(pay_case_process(store, &bank, "tame", &answer), HAPAX_OK);
	/* And one that also begins another: it looks as before, and is not. */
	bank.manner = ROLL_BACK_AND_BEGIN;
	assert_int_equal(pay_case_process(store, &bank, "wilder", &answer), HAPAX_ERR_FENCED);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	bank.manner = BEGIN_ANEW;
	assert_int_equal(pay_case_process(store, &bank, "wildest", &answer), HAPAX_ERR_FAILED);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	hapax_store_close(store);
	/* The same where the transaction is the caller's. */
	store = trade_case_join(conn, 1000);
	postgres_case_query(conn, "BEGIN");
	assert_int_equal(pay_case_process(store, &bank, "wild again", &answer), HAPAX_ERR_FAILED);
	postgres_case_query(conn, "ROLLBACK");
	hapax_store_close(store);
}

/* Runs within runs: the inner one's failure is its own, and all stands or falls with the outer one. */
static void runs_within_runs(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *store = trade_case_join(conn, 1000);
	struct pay_case bank = {.conn = conn, .manner = FAIL_ANOTHER, .store = store};
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	uint64_t token;

	assert_int_equal(pay_case_process(store, &bank, "outer", &answer), HAPAX_OK);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	assert_int_equal(paid(conn), 1);
	bank.manner = PAY_ANOTHER;
	assert_int_equal(pay_case_process(store, &bank, "second", &answer), HAPAX_OK);
	assert_int_equal(paid(conn), 3);
	assert_int_equal(trade_case_claim(store, "outer", &token), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(trade_case_claim(store, "second", &token), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(trade_case_claim(store, "within", &token), HAPAX_OUTCOME_REPLAY);
	hapax_store_close(store);
}

/* How often a caller waits for the server, by libpq's own account. */
static int count_trips(FILE *trace)
{
	char line[4096];
	int trips = 0;

	rewind(trace);
	while (fgets(line, sizeof(line), trace) != NULL)
		trips += strstr(line, "F\t") != NULL &&
			(strstr(line, "\tSync") != NULL || strstr(line, "\tQuery") != NULL);
	return trips;
}

/* A run takes two round trips beside the handler's own; in the caller's transaction, too. */
static void a_run_takes_two_trips(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *store = trade_case_join(conn, 1000);
	struct pay_case bank = {.conn = conn, .manner = PAY};
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	for (int is_ours = 0; is_ours < 2; is_ours++) {
		FILE *trace = tmpfile();

		assert_non_null(trace);
		if (is_ours)
			postgres_case_query(conn, "BEGIN");
		PQtrace(conn, trace);
		PQsetTraceFlags(conn, PQTRACE_SUPPRESS_TIMESTAMPS);
		assert_int_equal(
			pay_case_process(store, &bank, is_ours ? "ours" : "own", &answer),
			HAPAX_OK);
		PQuntrace(conn);
		assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(count_trips(trace), 1 + 2);
		fclose(trace);
		if (is_ours)
			postgres_case_query(conn, "COMMIT");
	}
	assert_int_equal(paid(conn), 2);
	hapax_store_close(store);
}

/* ---------------------------------------------------------------- cut at every byte */

/* What was said is true: done is done once, not done is not done; what is unknown is found out. */
static void judge_trade(
	PGconn *conn, struct hapax_store *truth, const char *key, enum hapax_status status,
	uint64_t *uncertain)
{
	enum hapax_outcome outcome;
	char sql[128];
	long long rows;

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM work.trade WHERE key = '%s'", key);
	/* The retry waits for what is left of the session. */
	if (status == HAPAX_ERR_UNCERTAIN)
		++*uncertain;
	else
		assert_true(
			status == HAPAX_OK || status == HAPAX_ERR_UNAVAILABLE ||
			status == HAPAX_ERR_HANDLER);
	rows = postgres_case_number(conn, sql);
	assert_int_equal(pay_case_trade(conn, truth, key, &outcome), HAPAX_OK);
	if (status == HAPAX_OK)
		assert_int_equal(rows, 1);
	else if (status != HAPAX_ERR_UNCERTAIN)
		assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(postgres_case_number(conn, sql), 1);
}

/* The exchange of a whole run cut at every byte, both ways: never two rows, never one that is lost. */
static void a_run_is_cut_at_every_byte(void **state)
{
	PGconn *conn = *state;
	struct hapax_store *truth = trade_case_join(conn, 60000);
	const char *port = getenv("HAPAX_TEST_POSTGRES_PORT");
	int64_t step = scale_is_proof() ? 1 : 61;
	uint64_t cuts = 0, uncertain = 0;
	double begun = scale_seconds();
	struct cut_proxy proxy;
	char url[256];

	postgres_case_query(conn, "ALTER ROLE postgres PASSWORD 'right'");
	cut_proxy_start(&proxy, (int)strtol(port, NULL, 10));
	snprintf(
		url, sizeof(url),
		"postgres://postgres:right@127.0.0.1:%d/postgres?sslmode=disable&gssencmode=disable",
		proxy.port);
	for (int way = CUT_TO_SERVER; way <= CUT_TO_CLIENT; way++) {
		bool is_whole = false;

		for (int64_t bytes = 0; !is_whole; bytes += step) {
			PGconn *line = PQconnectdb(url);
			struct hapax_store *store;
			enum hapax_outcome outcome;
			enum hapax_status status;
			char key[32];

			assert_int_equal(PQstatus(line), CONNECTION_OK);
			store = trade_case_join(line, 60000);
			snprintf(key, sizeof(key), "cut %d/%lld", way, (long long)bytes);
			cut_proxy_arm(&proxy, (enum cut_way)way, bytes);
			status = pay_case_trade(line, store, key, &outcome);
			is_whole = atomic_load(&proxy.left[way]) >= 0;
			cut_proxy_disarm(&proxy);
			hapax_store_close(store);
			PQfinish(line);
			if (is_whole)
				assert_int_equal(status, HAPAX_OK);
			judge_trade(conn, truth, key, status, &uncertain);
			cuts += !is_whole;
		}
	}
	scale_report("runs in a transaction cut", cuts, scale_seconds() - begun, true);
	printf("# %llu of them uncertain\n", (unsigned long long)uncertain);
	assert_true(cuts > 10);
	assert_true(uncertain > 0 && uncertain < cuts);
	hapax_store_close(truth);
	cut_proxy_stop(&proxy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			rollback_undoes_both, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			waiting_ends, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			token_is_taken_when_the_key_is_held, trade_case_set_up,
			trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			unusable_connections_are_refused, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			handlers_end_in_every_way, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			a_commit_that_fails_is_no_answer, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			a_session_that_ends_in_commit_is_not_judged, trade_case_set_up,
			trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			a_transaction_of_the_callers, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			runs_within_runs, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			a_run_takes_two_trips, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			a_run_is_cut_at_every_byte, trade_case_set_up, trade_case_tear_down),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
