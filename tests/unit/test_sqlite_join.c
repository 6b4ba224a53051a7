/* SPDX-License-Identifier: Apache-2.0 */
/* B4: claim, the caller's SQL and complete in one transaction, or nothing of it. */
#include <hapax/sqlite.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "support/store_case.h"

/* store_case's own store is the joined one; db is the application's connection. */
struct joined {
	struct store_case c;
	sqlite3 *db;
	char path[300];
};

static void exec(sqlite3 *db, const char *text)
{
	char *message = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", text, message);
}

static int64_t number(sqlite3 *db, const char *text)
{
	sqlite3_stmt *statement;
	int64_t result;

	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	result = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return result;
}

static void join(struct joined *j)
{
	struct hapax_error err = {0};

	if (hapax_sqlite_join(j->db, &j->c.options, &j->c.store, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static int set_up(void **state)
{
	struct joined *j = calloc(1, sizeof(*j));

	if (!j)
		return -1;
	store_case_init(&j->c, "sqlite:");
	snprintf(j->path, sizeof(j->path), "%s", j->c.url + strlen("sqlite:"));
	if (sqlite3_open(j->path, &j->db) != SQLITE_OK)
		return -1;
	exec(j->db,
	     "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO account VALUES (1, 100)");
	join(j);
	*state = j;
	return 0;
}

static int tear_down(void **state)
{
	struct joined *j = *state;

	hapax_store_close(j->c.store);
	j->c.store = NULL;
	if (sqlite3_close(j->db) != SQLITE_OK)
		return -1;
	store_case_done(&j->c);
	free(j);
	return 0;
}

static int64_t balance(struct joined *j)
{
	return number(j->db, "SELECT balance FROM account WHERE id = 1");
}

static void says_what_it_can(void **state)
{
	struct joined *j = *state;
	unsigned capabilities = hapax_store_capabilities(j->c.store);

	assert_string_equal(hapax_store_name(j->c.store), "sqlite");
	assert_true(capabilities & HAPAX_STORE_TRANSACTIONS);
	assert_true(capabilities & HAPAX_STORE_MULTI_KEY);
	assert_true(capabilities & HAPAX_STORE_TOKEN_GLOBAL);
	/* That is for the caller's COMMIT to promise. */
	assert_false(capabilities & HAPAX_STORE_DURABLE);
}

static void expect_said(sqlite3 *db, const char *pragmas, const char *part)
{
	static const char head[] = "after your transaction has committed: ";
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	char text[256];

	exec(db, pragmas);
	if (hapax_sqlite_join(db, &options, &store, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	hapax_store_guarantee(store, text, sizeof(text));
	if (strncmp(text, head, strlen(head)) != 0 || strstr(text, part) == NULL)
		fail_msg("%s: no '%s' in '%s'", pragmas, part, text);
	hapax_store_close(store);
}

/* What it survives is what the caller's own COMMIT does, by the settings of the caller's connection. */
static void guarantee_is_that_of_the_commit(void **state)
{
	struct joined *j = *state;
	sqlite3 *memory;

	expect_said(
		j->db, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL",
		"unless it happens immediately");
	expect_said(j->db, "PRAGMA synchronous = EXTRA", ": answers survive a power cut");
	expect_said(j->db, "PRAGMA synchronous = NORMAL", "may damage the database");
	expect_said(
		j->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
		"may lose the latest answers");
	expect_said(j->db, "PRAGMA synchronous = FULL", ": answers survive a power cut");
	expect_said(j->db, "PRAGMA synchronous = OFF", "may damage the database");
	assert_int_equal(sqlite3_open(":memory:", &memory), SQLITE_OK);
	expect_said(memory, "SELECT 1", "nothing survives the connection");
	assert_int_equal(sqlite3_close(memory), SQLITE_OK);
}

/* B4, B5: all of it commits; the repeat gets the stored result and changes nothing. */
static void a_commit_keeps_all_of_it(void **state)
{
	struct joined *j = *state;
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {"paid", 4}};
	uint64_t token;

	for (int delivery = 0; delivery < 3; delivery++) {
		exec(j->db, "BEGIN IMMEDIATE");
		enum hapax_outcome outcome = case_claim(&j->c, "payment-1", &token);
		if (outcome == HAPAX_OUTCOME_ACQUIRED) {
			exec(j->db, "UPDATE account SET balance = balance - 10 WHERE id = 1");
			struct hapax_op op =
				case_op_token(&j->c, HAPAX_OP_COMPLETE, "payment-1", token);
			op.result = &result;
			assert_int_equal(case_run(&j->c, &op), HAPAX_OK);
		} else {
			assert_int_equal(outcome, HAPAX_OUTCOME_REPLAY);
			assert_true(case_bytes_are(j->c.record.result.body, "paid", 4));
		}
		exec(j->db, "COMMIT");
	}
	assert_int_equal(balance(j), 90);
}

/* B4: a rollback undoes both, and leaves no record. */
static void a_rollback_undoes_all_of_it(void **state)
{
	struct joined *j = *state;
	uint64_t token;

	exec(j->db, "BEGIN");
	assert_int_equal(case_claim(&j->c, "k", &token), HAPAX_OUTCOME_ACQUIRED);
	exec(j->db, "UPDATE account SET balance = 0 WHERE id = 1");
	assert_int_equal(case_complete(&j->c, "k", token), HAPAX_OK);
	assert_int_equal(case_state(&j->c, "k"), HAPAX_STATE_DONE);
	exec(j->db, "ROLLBACK");
	assert_int_equal(balance(j), 100);
	assert_int_equal(case_state(&j->c, "k"), HAPAX_STATE_ABSENT);
	assert_int_equal(number(j->db, "SELECT count(*) FROM hapax_record"), 0);
	assert_int_equal(case_stats(&j->c).keys, 0);
	/* And the next delivery runs. */
	assert_int_equal(case_claim(&j->c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
}

/* B6: until COMMIT no other sees it; another transaction waits for it and then replays. */
static void others_see_it_after_the_commit(void **state)
{
	struct joined *j = *state;
	struct hapax_store *other;
	struct hapax_op op;
	uint64_t token;

	exec(j->db, "PRAGMA journal_mode = WAL");
	j->c.options.timeout_ms = 40;
	assert_int_equal(hapax_store_open(j->c.url, &j->c.options, &other, NULL), HAPAX_OK);
	exec(j->db, "BEGIN IMMEDIATE");
	assert_int_equal(case_claim(&j->c, "k", &token), HAPAX_OUTCOME_ACQUIRED);
	op = case_op(&j->c, HAPAX_OP_LOOKUP, "k");
	assert_int_equal(hapax_store_run(other, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ABSENT);
	op = case_op(&j->c, HAPAX_OP_CLAIM, "k");
	assert_int_equal(hapax_store_run(other, &op, 1, NULL), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(case_complete(&j->c, "k", token), HAPAX_OK);
	exec(j->db, "COMMIT");
	op = case_op(&j->c, HAPAX_OP_CLAIM, "k");
	assert_int_equal(hapax_store_run(other, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_REPLAY);
	hapax_store_close(other);
}

/* A claim that was committed without complete has no lease: the next one takes it over. */
static void a_claim_without_complete_counts_as_lapsed(void **state)
{
	struct joined *j = *state;
	struct hapax_op op;
	uint64_t first, second;

	exec(j->db, "BEGIN");
	assert_int_equal(case_claim(&j->c, "k", &first), HAPAX_OUTCOME_ACQUIRED);
	exec(j->db, "COMMIT");
	assert_int_equal(case_claim(&j->c, "k", &second), HAPAX_OUTCOME_ACQUIRED);
	assert_true(second > first);
	assert_int_equal(j->c.record.attempt, 2);
	/* I5: the first holder is fenced. */
	assert_int_equal(case_complete(&j->c, "k", first), HAPAX_ERR_FENCED);

	op = case_op(&j->c, HAPAX_OP_CLAIM, "p");
	op.on_lapse = HAPAX_ON_LAPSE_PARK;
	assert_int_equal(case_run(&j->c, &op), HAPAX_OK);
	assert_int_equal(case_claim(&j->c, "p", NULL), HAPAX_OUTCOME_PARKED);
}

/* Outside of a transaction each submit is one of its own. */
static void outside_each_submit_is_a_transaction(void **state)
{
	struct joined *j = *state;

	assert_int_equal(case_claim(&j->c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_not_equal(sqlite3_get_autocommit(j->db), 0);
	exec(j->db, "BEGIN");
	exec(j->db, "ROLLBACK");
	assert_int_equal(case_state(&j->c, "k"), HAPAX_STATE_CLAIMED);
}

/* A submit that fails leaves the caller's transaction and its own earlier work alone. */
static void a_failed_submit_is_undone_alone(void **state)
{
	struct joined *j = *state;
	uint64_t token;

	exec(j->db, "BEGIN IMMEDIATE");
	exec(j->db, "UPDATE account SET balance = 55 WHERE id = 1");
	assert_int_equal(case_claim(&j->c, "k", &token), HAPAX_OUTCOME_ACQUIRED);
	/* An abort in the middle of our write, by the caller's own trigger. */
	exec(j->db,
	     "CREATE TEMP TRIGGER stop BEFORE INSERT ON main.hapax_record"
	     " BEGIN SELECT RAISE(ABORT, 'no'); END");
	struct hapax_op op = case_op(&j->c, HAPAX_OP_CLAIM, "other");
	assert_int_not_equal(case_run(&j->c, &op), HAPAX_OK);
	exec(j->db, "DROP TRIGGER temp.stop");
	assert_int_equal(sqlite3_get_autocommit(j->db), 0);
	exec(j->db, "COMMIT");
	/* I11: what should not have happened latches the joined store; join again. */
	struct hapax_stats stats = HAPAX_STATS_INIT;
	op = case_op(&j->c, HAPAX_OP_LOOKUP, "k");
	assert_int_equal(case_run(&j->c, &op), HAPAX_ERR_FAILED);
	assert_int_equal(hapax_store_stats(j->c.store, &stats, NULL, NULL, NULL), HAPAX_ERR_FAILED);
	hapax_store_close(j->c.store);
	join(j);
	assert_int_equal(case_state(&j->c, "k"), HAPAX_STATE_CLAIMED);
	assert_int_equal(balance(j), 55);
	assert_int_equal(number(j->db, "SELECT count(*) FROM hapax_record"), 1);
	assert_int_equal(number(j->db, "SELECT claimed FROM hapax_meta"), 1);
}

/*
 * When the disk is full SQLite may end the caller's transaction. He must not be told
 * FENCED, as if another had taken over, and must not go on as if he still had it.
 */
static void a_transaction_that_sqlite_ended_is_not_gone_on_with(void **state)
{
	struct joined *j = *state;
	char body[65536];
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {body, sizeof(body)}};
	struct hapax_op op;
	uint64_t token;

	memset(body, 'x', sizeof(body));
	exec(j->db, "PRAGMA max_page_count = 1");
	exec(j->db, "BEGIN IMMEDIATE");
	exec(j->db, "UPDATE account SET balance = 55 WHERE id = 1");
	assert_int_equal(case_claim(&j->c, "k", &token), HAPAX_OUTCOME_ACQUIRED);
	op = case_op_token(&j->c, HAPAX_OP_COMPLETE, "k", token);
	op.result = &result;
	assert_int_equal(case_run(&j->c, &op), HAPAX_ERR_LIMIT);
	assert_int_equal(sqlite3_get_autocommit(j->db), 1);
	assert_int_equal(case_complete(&j->c, "k", token), HAPAX_ERR_FAILED);
	hapax_store_close(j->c.store);
	exec(j->db, "PRAGMA max_page_count = 1000000");
	join(j);
	assert_int_equal(case_state(&j->c, "k"), HAPAX_STATE_ABSENT);
	assert_int_equal(balance(j), 100);
}

/* A transaction that began by reading may not be able to write: nothing was done. */
static void a_stale_snapshot_is_unavailable(void **state)
{
	struct joined *j = *state;
	sqlite3 *other;

	exec(j->db, "PRAGMA journal_mode = WAL");
	assert_int_equal(sqlite3_open(j->path, &other), SQLITE_OK);
	exec(j->db, "BEGIN");
	assert_int_equal(balance(j), 100);
	exec(other, "UPDATE account SET balance = 70");
	struct hapax_op op = case_op(&j->c, HAPAX_OP_CLAIM, "k");
	assert_int_equal(case_run(&j->c, &op), HAPAX_ERR_UNAVAILABLE);
	exec(j->db, "ROLLBACK");
	op = case_op(&j->c, HAPAX_OP_CLAIM, "k");
	assert_int_equal(case_run(&j->c, &op), HAPAX_OK);
	sqlite3_close(other);
}

/* I5: tokens rise over joins and openings, and a rolled back one is not given out again here. */
static void tokens_rise_over_joins(void **state)
{
	struct joined *j = *state;
	uint64_t first, second;

	assert_int_equal(case_claim(&j->c, "a", &first), HAPAX_OUTCOME_ACQUIRED);
	exec(j->db, "BEGIN");
	assert_int_equal(case_claim(&j->c, "b", &second), HAPAX_OUTCOME_ACQUIRED);
	assert_true(second > first);
	exec(j->db, "ROLLBACK");
	assert_int_equal(case_claim(&j->c, "b", &first), HAPAX_OUTCOME_ACQUIRED);
	assert_true(first > second);
	hapax_store_close(j->c.store);
	join(j);
	assert_int_equal(case_claim(&j->c, "b", &second), HAPAX_OUTCOME_ACQUIRED);
	assert_true(second > first);
	struct hapax_store *store;
	struct hapax_op op = case_op(&j->c, HAPAX_OP_CLAIM, "c");
	assert_int_equal(hapax_store_open(j->c.url, &j->c.options, &store, NULL), HAPAX_OK);
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	assert_true(op.token > second);
	hapax_store_close(store);
}

/* Joining, using and leaving change nothing that is the caller's. */
static void the_callers_settings_stay(void **state)
{
	struct joined *j = *state;
	int64_t version = number(j->db, "PRAGMA user_version");

	assert_int_equal(number(j->db, "PRAGMA application_id"), 0);
	assert_int_equal(version, 0);
	assert_int_equal(
		number(j->db,
		       "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'delete'"),
		1);
	exec(j->db, "INSERT INTO account VALUES (77, 1)");
	assert_int_equal(case_claim(&j->c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(sqlite3_last_insert_rowid(j->db), 77);
	/* A temporary table of the caller's does not stand in for ours. */
	exec(j->db, "CREATE TEMP TABLE hapax_record (x); CREATE TEMP TABLE hapax_meta (x)");
	assert_int_equal(case_claim(&j->c, "k2", NULL), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(number(j->db, "SELECT count(*) FROM main.hapax_record"), 2);
	exec(j->db, "DROP TABLE temp.hapax_record; DROP TABLE temp.hapax_meta");
	/* Closing in the middle of a transaction leaves it open. */
	exec(j->db, "BEGIN");
	assert_int_equal(case_claim(&j->c, "k3", NULL), HAPAX_OUTCOME_ACQUIRED);
	hapax_store_close(j->c.store);
	j->c.store = NULL;
	assert_int_equal(sqlite3_get_autocommit(j->db), 0);
	exec(j->db, "COMMIT");
	assert_int_equal(number(j->db, "SELECT count(*) FROM hapax_record"), 3);
}

static void joining_inside_a_transaction(void **state)
{
	struct joined *j = *state;
	struct hapax_error err;
	struct hapax_store *store = NULL;
	sqlite3 *db;

	/* With the tables there, it does not matter. */
	hapax_store_close(j->c.store);
	exec(j->db, "BEGIN");
	join(j);
	assert_int_equal(case_claim(&j->c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
	exec(j->db, "ROLLBACK");
	assert_int_equal(case_state(&j->c, "k"), HAPAX_STATE_ABSENT);

	/* Without them a rollback would take them away again. */
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	exec(db, "BEGIN");
	assert_int_equal(hapax_sqlite_join(db, &j->c.options, &store, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "outside of a transaction"));
	exec(db, "COMMIT");
	assert_int_equal(hapax_sqlite_join(db, &j->c.options, &store, &err), HAPAX_OK);
	hapax_store_close(store);
	exec(db, "UPDATE hapax_meta SET version = 99");
	assert_int_equal(hapax_sqlite_join(db, &j->c.options, &store, &err), HAPAX_ERR_UNSUPPORTED);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	j->c.options.flags |= HAPAX_STORE_MUST_EXIST;
	assert_int_equal(hapax_sqlite_join(db, &j->c.options, &store, &err), HAPAX_ERR_UNAVAILABLE);
	j->c.options.evict = HAPAX_EVICT_LRU;
	assert_int_equal(hapax_sqlite_join(db, &j->c.options, &store, &err), HAPAX_ERR_UNSUPPORTED);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(hapax_sqlite_join(NULL, NULL, &store, &err), HAPAX_ERR_INVALID);
}

static int count_one(const struct hapax_record *record, void *context)
{
	(void)record;
	++*(int *)context;
	return 0;
}

/* Scan, statistics and sweep see the caller's uncommitted work, for it is the caller's. */
static void the_rest_works_in_a_transaction_too(void **state)
{
	struct joined *j = *state;
	struct hapax_cursor cursor = {0};
	struct hapax_op op = case_op(&j->c, HAPAX_OP_CHECK, "marked");
	int seen = 0;

	exec(j->db, "BEGIN");
	assert_int_equal(case_run(&j->c, &op), HAPAX_OK);
	assert_int_equal(
		hapax_store_scan(j->c.store, NULL, &cursor, count_one, &seen, NULL), HAPAX_OK);
	assert_int_equal(seen, 1);
	assert_int_equal(case_stats(&j->c).done, 1);
	assert_int_equal(case_stats(&j->c).counts[HAPAX_DECISION_ACQUIRED], 1);
	store_case_advance(&j->c, 60000);
	assert_int_equal(case_sweep(&j->c).removed, 1);
	assert_int_equal(sqlite3_get_autocommit(j->db), 0);
	exec(j->db, "ROLLBACK");
	assert_int_equal(case_state(&j->c, "marked"), HAPAX_STATE_ABSENT);
	/* In this process only: the caller's transactions are not for counters. */
	assert_int_equal(number(j->db, "SELECT count(*) FROM hapax_counter"), 0);
}

/* Two keys in one step, inside and outside. */
static void several_keys_in_one_step(void **state)
{
	struct joined *j = *state;

	for (int nested = 0; nested < 2; nested++) {
		struct hapax_op ops[2] = {
			case_op(&j->c, HAPAX_OP_CLAIM, nested ? "c" : "a"),
			case_op(&j->c, HAPAX_OP_CLAIM, nested ? "d" : "b")};
		enum hapax_outcome outcome;
		size_t index;

		if (nested)
			exec(j->db, "BEGIN");
		assert_int_equal(
			hapax_store_claim_all(j->c.store, ops, 2, &outcome, &index, NULL),
			HAPAX_OK);
		assert_int_equal(outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(ops[0].token, ops[1].token);
		if (nested)
			exec(j->db, "COMMIT");
	}
	assert_int_equal(number(j->db, "SELECT count(*) FROM hapax_record"), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(says_what_it_can, set_up, tear_down),
		cmocka_unit_test_setup_teardown(guarantee_is_that_of_the_commit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_commit_keeps_all_of_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_rollback_undoes_all_of_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_see_it_after_the_commit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_claim_without_complete_counts_as_lapsed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			outside_each_submit_is_a_transaction, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failed_submit_is_undone_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_transaction_that_sqlite_ended_is_not_gone_on_with, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_stale_snapshot_is_unavailable, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tokens_rise_over_joins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_callers_settings_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(joining_inside_a_transaction, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_rest_works_in_a_transaction_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(several_keys_in_one_step, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("sqlite_join", tests, NULL, NULL);
}
