/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_processor_join.c - the processor within the caller's own SQLite transaction:
 * B4, claim, the caller's SQL and complete commit together, or nothing of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sqlite3.h>

#include <hapax/hapax.h>
#include <hapax/sqlite.h>

#include "processor/processor.h"
#include "support/store_case.h"

static struct temp_dir dir;
static sqlite3 *db;
static struct hapax_store *store;
static struct hapax_processor *processor;
static struct hapax_buf *buf;

static void sql(const char *text)
{
	char *message = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", text, message);
}

static int64_t balance(void)
{
	sqlite3_stmt *statement;
	int64_t result;

	assert_int_equal(
		sqlite3_prepare_v2(db, "SELECT balance FROM account", -1, &statement, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	result = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return result;
}

static int begin(void **state)
{
	char path[256];

	(void)state;
	temp_dir_init(&dir);
	snprintf(path, sizeof(path), "%s/bank.db", dir.path);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		return -1;
	sql("CREATE TABLE account (balance INTEGER); INSERT INTO account VALUES (100)");
	buf = hapax_buf_new(1 << 16);
	return hapax_sqlite_join(db, NULL, &store, NULL) != HAPAX_OK ||
		hapax_processor_new(store, NULL, &processor, NULL) != HAPAX_OK;
}

static int end(void **state)
{
	(void)state;
	hapax_processor_free(processor);
	hapax_store_close(store);
	sqlite3_close(db);
	hapax_buf_free(buf);
	temp_dir_done(&dir);
	return 0;
}

static enum hapax_run_outcome withdraw(struct hapax_work *work, void *context)
{
	(void)context;
	sql("UPDATE account SET balance = balance - 10");
	(void)hapax_work_write(work, "paid", 4);
	return HAPAX_RUN_OK;
}

static enum hapax_outcome process(const char *end_of_transaction)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	request.key = hapax_bytes_from_text("order-17");
	sql("BEGIN IMMEDIATE");
	assert_int_equal(
		hapax_process(processor, &request, withdraw, NULL, &answer, buf, NULL), HAPAX_OK);
	sql(end_of_transaction);
	assert_true(case_bytes_are(answer.result.body, "paid", 4));
	return answer.outcome;
}

static void effect_and_completion_commit_together(void **state)
{
	(void)state;
	assert_int_equal(process("COMMIT"), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(process("COMMIT"), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(balance(), 90);
}

static void a_rollback_undoes_both(void **state)
{
	(void)state;
	assert_int_equal(process("ROLLBACK"), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(balance(), 100);
	assert_int_equal(process("COMMIT"), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(balance(), 90);
}

/* The connection belongs to the caller's thread: no other may touch it. */
static void no_thread_and_no_timer_are_started(void **state)
{
	(void)state;
	assert_int_equal(process("COMMIT"), HAPAX_OUTCOME_ACQUIRED);
	assert_false(processor->ticker.runs);
	assert_int_equal(hapax_processor_tick(processor), HAPAX_TIME_NEVER);
}

/* Steps that wait for a tick get one, although nothing else is ever due here. */
static void steps_in_tick_are_told(void **state)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;

	(void)state;
	hapax_processor_free(processor);
	options.flags = HAPAX_PROCESSOR_STEPS_IN_TICK;
	assert_int_equal(hapax_processor_new(store, &options, &processor, NULL), HAPAX_OK);
	assert_int_equal(process("COMMIT"), HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(process("COMMIT"), HAPAX_OUTCOME_REPLAY);
	assert_int_equal(balance(), 90);
}

/* Redeliveries come from as long as brokers keep messages. */
static void results_are_kept_for_seven_days(void **state)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;

	(void)state;
	request.key = hapax_bytes_from_text("k");
	assert_int_equal(
		hapax_process(processor, &request, withdraw, NULL, &answer, buf, NULL), HAPAX_OK);
	assert_in_range(
		answer.expires_ms - answer.first_seen_ms, INT64_C(7) * 24 * 3600 * 1000,
		INT64_C(7) * 24 * 3600 * 1000 + 600000);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(effect_and_completion_commit_together), CASE(a_rollback_undoes_both),
		CASE(no_thread_and_no_timer_are_started),    CASE(steps_in_tick_are_told),
		CASE(results_are_kept_for_seven_days),
	};

	return cmocka_run_group_tests_name("processor_join", tests, NULL, NULL);
}
