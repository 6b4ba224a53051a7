/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_postgres_cause.c - the event of a claim in PostgreSQL, where the cases of all stores do not
 * reach: runs in the caller's transaction, too little room, and databases that are not UTF-8.
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

#include <hapax/hapax.h>

#include "base/bytes.h"
#include "store/core.h"
#include "support/postgres_case.h"
#include "support/postgres_store_case.h"
#include "support/trade_case.h"

/* The bytes of an event with that id. Valid until the next call. */
static struct hapax_bytes event(const char *id)
{
	static unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	const struct hapax_cause cause = {
		.id = hapax_bytes_from_text(id),
		.type = hapax_bytes_from_text("rfq.executed"),
		.source = hapax_bytes_from_text("/desk"),
		.time_ms = INT64_C(1767225600123),
	};

	return hapax_cause_write(&cause, buffer);
}

/* Run one operation, and compare the event of the record that it returns with that id. */
static void must_return(
	struct hapax_store *store, struct hapax_op *op, enum hapax_outcome outcome, const char *id)
{
	struct hapax_record record = {0};
	struct hapax_buf *buf = hapax_buf_new(1 << 16);

	op->record = &record;
	op->buf = buf;
	assert_int_equal(hapax_store_run(store, op, 1, NULL), HAPAX_OK);
	assert_int_equal(op->outcome, outcome);
	assert_true(hx_bytes_equal(record.cause, event(id)));
	hapax_buf_free(buf);
}

static void must_look(struct hapax_store *store, const char *key, const char *id)
{
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .key = hapax_bytes_from_text(key)};

	must_return(store, &op, HAPAX_OUTCOME_FOUND, id);
}

/* A store whose tokens have caught up with the clock: only then is a new key claimed the short way. */
static struct hapax_store *join(PGconn *conn)
{
	struct hapax_store *store = trade_case_join(conn, 1000);
	uint64_t token;

	assert_int_equal(trade_case_claim(store, "other", &token), HAPAX_OUTCOME_ACQUIRED);
	return store;
}

static void savepoint(struct hapax_store *store, enum hapax_savepoint savepoint)
{
	assert_int_equal(hx_store_savepoint(store, savepoint, NULL), HAPAX_OK);
}

/* A run in a savepoint has statements of its own: hapax_tx_take(), _claim() and _finish(). */
static void a_joined_run_keeps_its_event(void **state)
{
	struct hapax_store *store = join(*state);
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op = trade_case_claim_of("order", attempt_id);
	struct hapax_op release = {.type = HAPAX_OP_RELEASE, .key = op.key};

	savepoint(store, HAPAX_SAVEPOINT_BEGIN);
	op.cause = event("first");
	must_return(store, &op, HAPAX_OUTCOME_ACQUIRED, "first");
	release.token = op.token;
	assert_int_equal(hapax_store_run(store, &release, 1, NULL), HAPAX_OK);
	savepoint(store, HAPAX_SAVEPOINT_KEEP);
	must_look(store, "order", "first");

	/* The event is that of the last run, and stays with its result. */
	savepoint(store, HAPAX_SAVEPOINT_BEGIN);
	op = trade_case_claim_of("order", attempt_id);
	op.cause = event("second");
	must_return(store, &op, HAPAX_OUTCOME_ACQUIRED, "second");
	savepoint(store, HAPAX_SAVEPOINT_LAST);
	assert_int_equal(trade_case_complete(store, "order", op.token), HAPAX_OK);
	savepoint(store, HAPAX_SAVEPOINT_KEEP);
	must_look(store, "order", "second");
	savepoint(store, HAPAX_SAVEPOINT_BEGIN);
	op = trade_case_claim_of("order", attempt_id);
	op.cause = event("third");
	must_return(store, &op, HAPAX_OUTCOME_REPLAY, "second");
	savepoint(store, HAPAX_SAVEPOINT_UNDO);
	hapax_store_close(store);
}

/* A record whose event does not fit the caller's buffer: nothing was done. */
static void too_little_room_claims_nothing(void **state)
{
	struct hapax_store *store = join(*state);
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_record record = {0};
	struct hapax_buf *buf = hapax_buf_new(64);

	for (int is_run = 0; is_run < 2; is_run++) {
		struct hapax_op op = trade_case_claim_of("order", attempt_id);
		struct hapax_op look = {.type = HAPAX_OP_LOOKUP, .key = op.key};
		char id[101];

		memset(id, 'i', sizeof(id) - 1);
		id[sizeof(id) - 1] = '\0';
		if (is_run)
			savepoint(store, HAPAX_SAVEPOINT_BEGIN);
		op.cause = event(id);
		op.record = &record;
		op.buf = buf;
		assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_ERR_LIMIT);
		if (is_run)
			savepoint(store, HAPAX_SAVEPOINT_KEEP);
		assert_int_equal(hapax_store_run(store, &look, 1, NULL), HAPAX_OK);
		assert_int_equal(look.outcome, HAPAX_OUTCOME_ABSENT);
	}
	hapax_buf_free(buf);
	hapax_store_close(store);
}

/* SQL can pass any bytes where a database has no encoding: a claim does not fail for them. */
static void must_leave_out(PGconn *conn)
{
	postgres_case_query(conn, "SET client_encoding = SQL_ASCII");
	assert_string_equal(
		postgres_case_query(
			conn,
			"SELECT hapax_complete('sql', token) FROM hapax_claim('sql', "
			"p_event_id => E'\\xff', p_event_type => 'typed', "
			"p_event_source => repeat('\xf0\x9f\x8e\xab', 100)); "
			"SELECT event_type || coalesce(event_id, ', no id, ') || length(event_source) "
			"FROM hapax_processed_events WHERE idempotency_key = 'sql'"),
		"typed, no id, 252");
	assert_string_equal(
		postgres_case_query(conn, "SELECT length(hapax_cause_text(repeat(E'\\xff', 300)))"),
		"0");
}

/*
 * A database need not have a character for every text of an event. The claim succeeds, the record
 * has the text, and the view shows what cannot be said there escaped.
 */
static void any_encoding_keeps_any_text(void **state)
{
	static const char *const encodings[] = {"LATIN1", "SQL_ASCII"};
	const char *place = getenv("HAPAX_TEST_POSTGRES");
	PGconn *conn = *state;

	for (size_t i = 0; i < 2; i++) {
		unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
		struct hapax_op op = trade_case_claim_of("order", attempt_id);
		struct hapax_error err = {0};
		struct hapax_store *store;
		char url[512];
		PGconn *there;

		postgres_case_query(conn, "DROP DATABASE IF EXISTS encoded");
		postgres_case_query(
			conn,
			"CREATE DATABASE encoded ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
			encodings[i]);
		snprintf(url, sizeof(url), "postgres:///encoded%s", place == NULL ? "" : place);
		assert_int_equal(hapax_store_migrate(url, NULL, &err), HAPAX_OK);
		store = postgres_store_open(url, &err);
		assert_non_null(store);
		op.cause = event("ü 🎫");
		must_return(store, &op, HAPAX_OUTCOME_ACQUIRED, "ü 🎫");
		assert_int_equal(trade_case_complete(store, "order", op.token), HAPAX_OK);
		must_look(store, "order", "ü 🎫");
		hapax_store_close(store);

		there = PQconnectdb(url);
		assert_string_equal(
			postgres_case_query(
				there, "SELECT event_type || event_id FROM hapax_processed_events"),
			i == 0 ? "rfq.executed\\303\\274 \\360\\237\\216\\253" : "rfq.executedü 🎫");
		if (i == 1)
			must_leave_out(there);
		PQfinish(there);
	}
	postgres_case_query(conn, "DROP DATABASE encoded");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_joined_run_keeps_its_event, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			too_little_room_claims_nothing, trade_case_set_up, trade_case_tear_down),
		cmocka_unit_test_setup_teardown(
			any_encoding_keeps_any_text, trade_case_set_up, trade_case_tear_down),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
