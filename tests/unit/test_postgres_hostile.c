/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_postgres_hostile.c - a PostgreSQL that is none, one whose functions answer nonsense, and a table
 * in which another program has written: no caller gets OK, and nothing is overrun.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libpq-fe.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/thread.h"
#include "support/postgres_case.h"

/* ---------------------------------------------------------------- a server that is none */

enum lie {
	NOT_POSTGRES,
	NO_RESULT,
	NO_ROW,
	ONE_COLUMN,
	ALL_NULL,
	ERROR_WITHOUT_WORDS,
	HUGE_MESSAGE,
	ENDLESS_ROW,
	LIES,
};

struct impostor {
	enum lie lie;
	int listener;
	int port;
	struct hapax_buf says;
	struct hx_thread thread;
};

/* A message of the protocol: its type, its size, which counts itself, and what it says. */
static void put_message(struct hapax_buf *buf, char type, const void *data, size_t size)
{
	const uint32_t length = htonl((uint32_t)size + 4);

	assert_int_equal(hx_buf_append(buf, &type, 1), HAPAX_OK);
	assert_int_equal(hx_buf_append(buf, &length, sizeof(length)), HAPAX_OK);
	if (size > 0)
		assert_int_equal(hx_buf_append(buf, data, size), HAPAX_OK);
}

/* So many columns of text, without a name, and one row of NULLs for each if there is to be one. */
static void put_rows(struct hapax_buf *buf, uint16_t columns, bool has_row)
{
	/* Name, table, column, type text, its size -1, modifier -1, as text. */
	static const unsigned char column[19] = {
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0};
	static const unsigned char null[4] = {0xff, 0xff, 0xff, 0xff};
	const uint16_t count = htons(columns);
	struct hapax_buf body;

	hx_buf_init(&body, 65536);
	assert_int_equal(hx_buf_append(&body, &count, 2), HAPAX_OK);
	for (int i = 0; i < columns; i++)
		assert_int_equal(hx_buf_append(&body, column, sizeof(column)), HAPAX_OK);
	put_message(buf, 'T', body.data, body.size);
	hx_buf_clear(&body);
	assert_int_equal(hx_buf_append(&body, &count, 2), HAPAX_OK);
	for (int i = 0; i < columns; i++)
		assert_int_equal(hx_buf_append(&body, null, sizeof(null)), HAPAX_OK);
	if (has_row)
		put_message(buf, 'D', body.data, body.size);
	put_message(buf, 'C', "SELECT 1", 9);
	hx_buf_done(&body);
}

/* The answer to the first question of a session. */
static void put_lie(struct hapax_buf *buf, enum lie lie)
{
	static const unsigned char huge_status[5] = {'S', 0x7f, 0xff, 0xff, 0xff};
	static const unsigned char huge_row[5] = {'D', 0x3f, 0xff, 0xff, 0xff};

	put_message(buf, '1', NULL, 0);
	put_message(buf, '2', NULL, 0);
	switch (lie) {
	case NO_RESULT:
		put_message(buf, 'n', NULL, 0);
		put_message(buf, 'C', "SET", 4);
		break;
	case NO_ROW: put_rows(buf, 16, false); break;
	case ONE_COLUMN: put_rows(buf, 1, true); break;
	case ALL_NULL: put_rows(buf, 16, true); break;
	case ERROR_WITHOUT_WORDS: put_message(buf, 'E', "", 1); break;
	case HUGE_MESSAGE:
		assert_int_equal(hx_buf_append(buf, huge_status, sizeof(huge_status)), HAPAX_OK);
		break;
	case ENDLESS_ROW:
		assert_int_equal(hx_buf_append(buf, huge_row, sizeof(huge_row)), HAPAX_OK);
		return;
	case NOT_POSTGRES:
	case LIES: break;
	}
	put_message(buf, 'Z', "I", 1);
}

static void say(int fd, const void *data, size_t size)
{
	(void)!send(fd, data, size, MSG_NOSIGNAL);
}

/* Read what the client says, to a Sync; the first message, which has no type, ends with a NUL. */
static bool hear(int fd, bool is_first)
{
	static const unsigned char sync[5] = {'S', 0, 0, 0, 4};
	unsigned char bytes[16384];
	size_t size = 0;

	for (;;) {
		ssize_t got = recv(fd, bytes + size, sizeof(bytes) - size, 0);

		if (got <= 0)
			return false;
		size += (size_t)got;
		if (is_first ? size > 4 && bytes[size - 1] == 0 && bytes[size - 2] == 0
			     : size >= 5 && memcmp(bytes + size - 5, sync, 5) == 0)
			return true;
	}
}

static void pretend(void *arg)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	static const unsigned char welcome[15] = {
		'R', 0, 0, 0, 8, 0, 0, 0, 0, 'Z', 0, 0, 0, 5, 'I'};
	struct impostor *impostor = arg;
	int fd = accept(impostor->listener, NULL, NULL);
	char sink[4096];

	if (hear(fd, true) && impostor->lie == NOT_POSTGRES)
		say(fd, http, sizeof(http) - 1);
	else
		say(fd, welcome, sizeof(welcome));
	if (impostor->lie != NOT_POSTGRES && hear(fd, false))
		say(fd, impostor->says.data, impostor->says.size);
	/* Until the client has had enough: it is it that closes. */
	for (bool is_over = false; !is_over;) {
		struct pollfd poll_fd = {fd, POLLIN, 0};

		if (impostor->lie == ENDLESS_ROW && poll(&poll_fd, 1, 1) == 0)
			say(fd, "x", 1);
		else
			is_over = recv(fd, sink, sizeof(sink), 0) <= 0;
	}
	close(fd);
}

static void impostor_start(struct impostor *impostor, enum lie lie)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);

	impostor->lie = lie;
	hx_buf_init(&impostor->says, 65536);
	put_lie(&impostor->says, lie);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	impostor->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(impostor->listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(impostor->listener, 1), 0);
	assert_int_equal(getsockname(impostor->listener, (struct sockaddr *)&address, &size), 0);
	impostor->port = ntohs(address.sin_port);
	assert_int_equal(
		hx_thread_start(&impostor->thread, pretend, impostor, "impostor", NULL), HAPAX_OK);
}

/* Oversize, of another type, endless: an error that says something, in time. */
static void hostile_greetings_are_refused(void **state)
{
	(void)state;
	for (int lie = 0; lie < LIES; lie++) {
		struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
		struct hapax_store *store = NULL;
		struct hapax_error err = {0};
		struct impostor impostor;
		char url[200];

		options.timeout_ms = 100;
		impostor_start(&impostor, (enum lie)lie);
		snprintf(
			url, sizeof(url),
			"postgres://me@127.0.0.1:%d/x?sslmode=disable&gssencmode=disable",
			impostor.port);
		if (hapax_store_open(url, &options, &store, &err) == HAPAX_OK)
			fail_msg("lie %d was believed", lie);
		assert_null(store);
		assert_true(
			err.status == HAPAX_ERR_UNAVAILABLE ||
			err.status == HAPAX_ERR_UNSUPPORTED || err.status == HAPAX_ERR_UNCERTAIN);
		if (strlen(err.message) < 20)
			fail_msg("lie %d: '%s'", lie, err.message);
		close(impostor.listener);
		hx_thread_join(&impostor.thread);
		hx_buf_done(&impostor.says);
	}
}

/* The same for an outbox (E4); an endless row takes it a quarter of a minute. */
static void hostile_greetings_have_no_outbox(void **state)
{
	(void)state;
	for (int lie = 0; lie < ENDLESS_ROW; lie++) {
		struct hapax_outbox *outbox = NULL;
		struct hapax_error err = {0};
		struct impostor impostor;
		char url[200];

		impostor_start(&impostor, (enum lie)lie);
		snprintf(
			url, sizeof(url),
			"postgres://me@127.0.0.1:%d/x?sslmode=disable&gssencmode=disable",
			impostor.port);
		if (hapax_outbox_open(url, &outbox, &err) == HAPAX_OK)
			fail_msg("lie %d was believed", lie);
		assert_null(outbox);
		if (strlen(err.message) < 20)
			fail_msg("lie %d: '%s'", lie, err.message);
		close(impostor.listener);
		hx_thread_join(&impostor.thread);
		hx_buf_done(&impostor.says);
	}
}

/* ---------------------------------------------------------------- functions that answer nonsense */

struct scene {
	PGconn *conn;
	struct hapax_store *store;
	char url[300];
};

static int set_up(void **state)
{
	struct scene *scene = test_calloc(1, sizeof(*scene));
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_error err = {0};

	*state = scene;
	scene->conn = postgres_case_connect();
	postgres_case_query(scene->conn, "DROP SCHEMA IF EXISTS lies CASCADE");
	postgres_case_url(scene->url, sizeof(scene->url), "&schema=lies");
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	if (hapax_store_migrate(scene->url, NULL, &err) == HAPAX_OK &&
	    hapax_store_open(scene->url, &options, &scene->store, &err) == HAPAX_OK)
		return 0;
	printf("# %s\n", err.message);
	return -1;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	hapax_store_close(scene->store);
	PQfinish(scene->conn);
	test_free(scene);
	return 0;
}

/* From now on every operation is answered with what stands in lies.lie. */
static void begin_to_lie(struct scene *scene)
{
	postgres_case_query(scene->conn, "CREATE TABLE lies.lie (rows text)");
	postgres_case_query(scene->conn, "INSERT INTO lies.lie VALUES ('[]')");
	postgres_case_query(
		scene->conn,
		"DO $do$ BEGIN EXECUTE format('CREATE OR REPLACE FUNCTION lies.hapax_operate(%%s)"
		" RETURNS SETOF lies.hapax_answer LANGUAGE sql AS %%L',"
		" pg_get_function_arguments('lies.hapax_operate'::regproc),"
		" 'SELECT * FROM jsonb_populate_recordset(NULL::lies.hapax_answer,"
		" (SELECT rows FROM lies.lie)::jsonb)'); END $do$");
}

static enum hapax_status ask(struct scene *scene, enum hapax_op_type type, const char *key)
{
	static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {7};
	struct hapax_op op = {
		.type = type,
		.key = hapax_bytes_from_text(key),
		.attempt_id = attempt_id,
		.token = 5,
	};
	enum hapax_status status = hapax_store_run(scene->store, &op, 1, NULL);

	if (status == HAPAX_OK)
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	return status;
}

/* No caller gets OK, or that nothing was done; what only reads has done nothing. */
static void hostile_answers_are_uncertain(void **state)
{
	static const struct {
		enum hapax_op_type type;
		const char *rows;
	} cases[] = {
		{HAPAX_OP_CLAIM, "[]"},
		{HAPAX_OP_CLAIM, "[{}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":1}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":1,\"outcome\":0}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":1,\"outcome\":99,\"token\":1,\"attempt\":1}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":1,\"outcome\":-99}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":2,\"outcome\":1,\"token\":1,\"attempt\":1}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":-1,\"outcome\":1,\"token\":1,\"attempt\":1}]"},
		/* The right to run, by a token that is none. */
		{HAPAX_OP_CLAIM, "[{\"place\":1,\"outcome\":1,\"attempt\":1}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":1,\"outcome\":1,\"token\":0,\"attempt\":1}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":1,\"outcome\":1,\"token\":-1,\"attempt\":1}]"},
		{HAPAX_OP_CLAIM,
		 "[{\"place\":1,\"outcome\":1,\"token\":9007199254740992,\"attempt\":1}]"},
		{HAPAX_OP_CLAIM, "[{\"place\":1,\"outcome\":1,\"token\":1,\"attempt\":0}]"},
		/* The answer to another question. */
		{HAPAX_OP_CLAIM, "[{\"place\":1,\"outcome\":6,\"token\":1,\"attempt\":1}]"},
		{HAPAX_OP_COMPLETE, "[{\"place\":1,\"outcome\":2,\"token\":1,\"attempt\":1}]"},
		{HAPAX_OP_COMPLETE, "[]"},
		{HAPAX_OP_RELEASE, "[{\"place\":1,\"outcome\":1,\"token\":1,\"attempt\":1}]"},
		/* More than was asked for. */
		{HAPAX_OP_CLAIM,
		 "[{\"place\":1,\"outcome\":1,\"token\":1,\"attempt\":1},"
		 "{\"place\":1,\"outcome\":1,\"token\":1,\"attempt\":1}]"},
	};
	struct scene *scene = *state;

	begin_to_lie(scene);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum hapax_status status;

		postgres_case_query(scene->conn, "UPDATE lies.lie SET rows = '%s'", cases[i].rows);
		status = ask(scene, cases[i].type, "key");
		if (status != HAPAX_ERR_UNCERTAIN)
			fail_msg("case %zu ended %s", i, hapax_status_name(status));
		assert_int_equal(ask(scene, HAPAX_OP_LOOKUP, "key"), HAPAX_ERR_UNAVAILABLE);
	}
	/* Two questions, and one of them is answered twice: neither answer counts. */
	struct hapax_op ops[2] = {
		{.type = HAPAX_OP_CHECK, .key = hapax_bytes_from_text("a")},
		{.type = HAPAX_OP_CHECK, .key = hapax_bytes_from_text("b")},
	};
	postgres_case_query(
		scene->conn,
		"UPDATE lies.lie SET rows = '[{\"place\":1,\"outcome\":1,\"token\":1,\"attempt\":1},"
		"{\"place\":1,\"outcome\":1,\"token\":1,\"attempt\":1}]'");
	(void)hapax_store_run(scene->store, ops, 2, NULL);
	assert_int_equal(ops[0].status, HAPAX_ERR_UNCERTAIN);
	assert_int_equal(ops[1].status, HAPAX_ERR_UNCERTAIN);
	/* When it has come to its senses, the same call settles it. */
	assert_int_equal(hapax_store_migrate(scene->url, NULL, NULL), HAPAX_OK);
	assert_int_equal(ask(scene, HAPAX_OP_CLAIM, "key"), HAPAX_OK);
}

static void hostile_statistics_are_refused(void **state)
{
	struct scene *scene = *state;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_error err = {0};

	postgres_case_query(scene->conn, "DROP FUNCTION lies.hapax_stats(bigint)");
	postgres_case_query(
		scene->conn,
		"CREATE FUNCTION lies.hapax_stats(bigint) RETURNS TABLE (now bigint, token bigint,"
		" bytes bigint, claimed bigint, done bigint, failed bigint, parked bigint, expired"
		" bigint) LANGUAGE sql AS 'SELECT 1, 1, 1, 1, 1, 1, 1, 1 WHERE false'");
	assert_int_equal(
		hapax_store_stats(scene->store, &stats, NULL, NULL, &err), HAPAX_ERR_CORRUPT);
	assert_non_null(strstr(err.message, "unexpected answer"));
}

/* ---------------------------------------------------------------- rows of other programs */

static int count_record(const struct hapax_record *record, void *context)
{
	(void)record;
	++*(int *)context;
	return 0;
}

/* The table has no constraints, and a program that may write to it may write anything. */
static void foreign_rows_are_refused(void **state)
{
	struct scene *scene = *state;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {0};
	struct hapax_error err = {0};
	int count = 0;

	assert_int_equal(ask(scene, HAPAX_OP_CLAIM, "a"), HAPAX_OK);
	postgres_case_query(
		scene->conn,
		"INSERT INTO lies.hapax_record VALUES ('default', 'default', repeat('b', 30000)::bytea,"
		" 2, 1, 0, 0, 0, false, 1, 7, 1, 1, 0, NULL, NULL, NULL, 0, 0)");
	assert_int_equal(
		hapax_store_scan(scene->store, &scan, &cursor, count_record, &count, &err),
		HAPAX_ERR_CORRUPT);
	assert_int_equal(count, 1);
	assert_non_null(strstr(err.message, "delete it"));
	/* Others are served as before. */
	assert_int_equal(ask(scene, HAPAX_OP_CLAIM, "c"), HAPAX_OK);
	postgres_case_query(scene->conn, "DELETE FROM lies.hapax_record WHERE length(key) > 1024");
	cursor = (struct hapax_cursor){0};
	count = 0;
	while (!cursor.done)
		assert_int_equal(
			hapax_store_scan(scene->store, &scan, &cursor, count_record, &count, &err),
			HAPAX_OK);
	assert_int_equal(count, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_greetings_are_refused),
		cmocka_unit_test(hostile_greetings_have_no_outbox),
		CASE(hostile_answers_are_uncertain),
		CASE(hostile_statistics_are_refused),
		CASE(foreign_rows_are_refused),
	};

	return cmocka_run_group_tests_name("postgres_hostile", tests, NULL, NULL);
}
