/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger inside the caller's own transaction: two processes and one key, with the
 * statements of document B beside; savepoints; who waits; who is killed at which step.
 *
 * Children are forked while this process has no store and no thread, and end with _exit().
 */
#include <hapax/postgres.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "support/cut_proxy.h"
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
	_exit(CHILD_GOOD);
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
			killed_at_every_step, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			a_run_is_cut_at_every_byte, trade_case_set_up, trade_case_tear_down),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
