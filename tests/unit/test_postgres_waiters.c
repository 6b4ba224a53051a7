/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_postgres_waiters.c - who waits for a run of another process on PostgreSQL is woken by its
 * end, not by asking now and then; and by asking when nothing can be heard.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/thread.h"
#include "support/postgres_case.h"

/* Longer than the test may take: a waiter that is not woken hangs. */
enum { LONG_MS = 3600 * 1000 };

#define LISTENERS                                                    \
	"SELECT count(*) FROM pg_stat_activity WHERE state = 'idle'" \
	" AND query LIKE '%hapax_listen()' AND pid <> pg_backend_pid()"

static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {7};

static char url[300];

static struct hapax_store *open_store(void)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	if (hapax_store_open(url, &options, &store, &err) != HAPAX_OK) {
		printf("# %s\n", err.message);
		abort();
	}
	return store;
}

/* The other process: claims, says so, and ends the claim as it is told. */
static void hold(int from, int to)
{
	struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("theirs")};
	struct hapax_store *store = open_store();
	struct hapax_op op = {
		.type = HAPAX_OP_CLAIM,
		.tenant = hapax_bytes_from_text("acme"),
		.key = hapax_bytes_from_text("secret order"),
		.attempt_id = attempt_id,
		.lease_ms = LONG_MS};
	char command = 0;

	if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK || write(to, "c", 1) != 1 ||
	    read(from, &command, 1) != 1)
		_exit(1);
	op.type = HAPAX_OP_COMPLETE;
	if (command == 'd')
		op.result = &result;
	if (command == 'r')
		op.type = HAPAX_OP_RELEASE;
	if (command == 'f') {
		op.type = HAPAX_OP_FORGET;
		op.flags = HAPAX_OP_FORCE;
	}
	if (hapax_store_run(store, &op, 1, NULL) != HAPAX_OK)
		_exit(1);
	hapax_store_close(store);
	_exit(0);
}

struct waiter {
	PGconn *conn; /* of the test, beside */
	struct hapax_processor *processor;
	struct hapax_answer answer;
	struct hapax_buf *buf;
	enum hapax_status status;
	unsigned runs;
	uint64_t polled;
};

static enum hapax_run_outcome run_it(struct hapax_work *work, void *context)
{
	struct waiter *waiter = context;

	waiter->runs++;
	(void)hapax_work_write(work, "ours", 4);
	return HAPAX_RUN_OK;
}

static void wait_for_it(void *arg)
{
	struct waiter *waiter = arg;
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_run_options options = HAPAX_RUN_OPTIONS_INIT;

	options.wait_ms = LONG_MS;
	request.options = &options;
	request.tenant = hapax_bytes_from_text("acme");
	request.key = hapax_bytes_from_text("secret order");
	waiter->status = hapax_process(
		waiter->processor, &request, run_it, waiter, &waiter->answer, waiter->buf, NULL);
}

static void wait_for_listeners(PGconn *conn, long long count)
{
	const struct timespec pause = {.tv_nsec = 5000000};

	while (postgres_case_number(conn, LISTENERS) != count)
		nanosleep(&pause, NULL);
}

typedef void meanwhile_fn(struct waiter *waiter);

/*
 * A duplicate here waits for a claim that another process holds, and is about to be ended by
 * command; before that something happens to the listener.
 */
static void wait_while(
	char command, int64_t poll_ms, meanwhile_fn *before, meanwhile_fn *after,
	struct waiter *waiter)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_processor_stats stats = HAPAX_PROCESSOR_STATS_INIT;
	struct hx_thread thread;
	struct hapax_store *store;
	int to_child[2], to_parent[2];
	char said = 0;
	int status = 0;
	pid_t child;

	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(to_parent), 0);
	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		hold(to_child[0], to_parent[1]);
	assert_int_equal(read(to_parent[0], &said, 1), 1);
	*waiter = (struct waiter){
		.answer = HAPAX_ANSWER_INIT,
		.buf = hapax_buf_new(65536),
		.conn = postgres_case_connect()};
	if (before != NULL)
		before(waiter);
	store = open_store();
	options.poll_ms = poll_ms;
	assert_int_equal(hapax_processor_new(store, &options, &waiter->processor, NULL), HAPAX_OK);
	/* Not before there is a waiter. */
	assert_int_equal(postgres_case_number(waiter->conn, LISTENERS), 0);
	assert_int_equal(hx_thread_start(&thread, wait_for_it, waiter, "waiter", NULL), HAPAX_OK);
	if (before == NULL)
		wait_for_listeners(waiter->conn, 1);
	while (stats.waiting == 0)
		hapax_processor_stats(waiter->processor, &stats);
	/* Who waited before it listened has asked again, and is to be told. */
	while (before == NULL &&
	       postgres_case_number(
		       waiter->conn, "SELECT count(*) FROM waiters.hapax_record WHERE awaited") ==
		       0)
		;
	if (after != NULL)
		after(waiter);
	assert_int_equal(write(to_child[1], &command, 1), 1);
	hx_thread_join(&thread);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	hapax_processor_stats(waiter->processor, &stats);
	waiter->polled = stats.polled;
	hapax_processor_free(waiter->processor);
	hapax_store_close(store);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(to_parent[i]);
	}
}

static int set_up(void **state)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_error err;

	(void)state;
	postgres_case_query(conn, "DROP SCHEMA IF EXISTS waiters CASCADE");
	postgres_case_url(url, sizeof(url), "&schema=waiters");
	assert_int_equal(hapax_store_migrate(url, NULL, &err), HAPAX_OK);
	PQfinish(conn);
	return 0;
}

static void expect_replay(struct waiter *waiter)
{
	assert_int_equal(waiter->status, HAPAX_OK);
	assert_int_equal(waiter->answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(waiter->runs, 0);
	assert_int_equal(waiter->answer.result.body.size, 6);
	assert_memory_equal(waiter->answer.result.body.data, "theirs", 6);
}

static void waiter_done(struct waiter *waiter)
{
	hapax_buf_free(waiter->buf);
	PQfinish(waiter->conn);
}

static void listen_too(struct waiter *waiter)
{
	postgres_case_query(waiter->conn, "SELECT waiters.hapax_listen()");
}

/* Others hear the token, and nothing of the key. */
static void done_elsewhere_is_replayed(void **state)
{
	struct waiter waiter;
	PGnotify *notice = NULL;
	char token[32];

	(void)state;
	wait_while('d', LONG_MS, NULL, listen_too, &waiter);
	expect_replay(&waiter);
	snprintf(
		token, sizeof(token), "%s",
		postgres_case_query(waiter.conn, "SELECT token FROM waiters.hapax_record"));
	while ((notice = PQnotifies(waiter.conn)) == NULL) {
		struct pollfd ready = {.fd = PQsocket(waiter.conn), .events = POLLIN};

		assert_int_equal(poll(&ready, 1, -1), 1);
		assert_int_equal(PQconsumeInput(waiter.conn), 1);
	}
	assert_string_equal(notice->extra, token);
	PQfreemem(notice);
	waiter_done(&waiter);
}

static void failed_elsewhere_runs_here(void **state)
{
	struct waiter waiter;

	(void)state;
	wait_while('r', LONG_MS, NULL, NULL, &waiter);
	assert_int_equal(waiter.status, HAPAX_OK);
	assert_int_equal(waiter.answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(waiter.runs, 1);
	waiter_done(&waiter);
}

static void forgotten_elsewhere_runs_here(void **state)
{
	struct waiter waiter;

	(void)state;
	wait_while('f', LONG_MS, NULL, NULL, &waiter);
	assert_int_equal(waiter.status, HAPAX_OK);
	assert_int_equal(waiter.runs, 1);
	waiter_done(&waiter);
}

/* Its backend, and no other session, is ended; what happens until it is back is asked for then. */
static void end_listener(struct waiter *waiter)
{
	postgres_case_query(
		waiter->conn,
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
		" WHERE query LIKE '%%hapax_listen()' AND pid <> pg_backend_pid()");
}

static void a_lost_listener_comes_back(void **state)
{
	struct waiter waiter;

	(void)state;
	wait_while('d', LONG_MS, NULL, end_listener, &waiter);
	expect_replay(&waiter);
	waiter_done(&waiter);
}

static void forbid_listening(struct waiter *waiter)
{
	postgres_case_query(waiter->conn, "DROP FUNCTION waiters.hapax_listen()");
}

/* Without LISTEN, the waiter polls; and nothing is written for waiters. */
static void without_a_listener_it_is_polled(void **state)
{
	struct waiter waiter;

	(void)state;
	wait_while('d', 20, forbid_listening, NULL, &waiter);
	expect_replay(&waiter);
	assert_true(waiter.polled > 0);
	assert_int_equal(
		postgres_case_number(
			waiter.conn,
			"SELECT count(*) FROM waiters.hapax_record WHERE awaited IS NOT NULL"),
		0);
	waiter_done(&waiter);
}

/* Without waiters nothing is notified, since that would make commits wait for each other. */
static void nobody_waits_nothing_is_told(void **state)
{
	PGconn *conn = postgres_case_connect();
	struct hapax_store *store = open_store();
	struct hapax_op op = {
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text("alone"),
		.attempt_id = attempt_id};

	(void)state;
	postgres_case_query(conn, "SELECT waiters.hapax_listen()");
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	op.type = HAPAX_OP_COMPLETE;
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	/* What was told before this is heard by the end of it. */
	postgres_case_query(conn, "NOTIFY waiters_end");
	postgres_case_query(conn, "SELECT 1");
	assert_null(PQnotifies(conn));
	hapax_store_close(store);
	PQfinish(conn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(done_elsewhere_is_replayed, set_up),
		cmocka_unit_test_setup(failed_elsewhere_runs_here, set_up),
		cmocka_unit_test_setup(forgotten_elsewhere_runs_here, set_up),
		cmocka_unit_test_setup(a_lost_listener_comes_back, set_up),
		cmocka_unit_test_setup(without_a_listener_it_is_polled, set_up),
		cmocka_unit_test_setup(nobody_waits_nothing_is_told, set_up),
	};

	return cmocka_run_group_tests_name("postgres_waiters", tests, NULL, NULL);
}
