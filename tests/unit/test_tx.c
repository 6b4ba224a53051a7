/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tx.c - claim, the caller's SQL, completion and result in one SQLite transaction:
 * B4, B5, B6. What goes together stays together, in a transaction of either side and
 * however the handler ends.
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

#include "support/store_case.h"

static struct temp_dir dir;
static char path[256];
static sqlite3 *db;
static struct hapax_store_options options;
static struct hapax_store *store;
static struct hapax_processor *processor;
static struct hapax_buf *buf;
static struct hapax_error err;

static void sql(const char *text)
{
	char *message = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", text, message);
}

static int64_t number(const char *text)
{
	sqlite3_stmt *statement;
	int64_t result;

	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	result = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return result;
}

static int64_t rows(void)
{
	return number("SELECT count(*) FROM payment");
}

static bool is_in_transaction(void)
{
	return sqlite3_get_autocommit(db) == 0;
}

static void join(void)
{
	assert_int_equal(hapax_sqlite_join(db, &options, &store, &err), HAPAX_OK);
	assert_int_equal(hapax_processor_new(store, NULL, &processor, &err), HAPAX_OK);
}

static void part(void)
{
	hapax_processor_free(processor);
	hapax_store_close(store);
}

static int begin(void **state)
{
	(void)state;
	temp_dir_init(&dir);
	snprintf(path, sizeof(path), "%s/bank.db", dir.path);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		return -1;
	sql("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON;"
	    "CREATE TABLE payer (name TEXT PRIMARY KEY); INSERT INTO payer VALUES ('ann');"
	    "CREATE TABLE payment (id INTEGER PRIMARY KEY, payer TEXT"
	    " REFERENCES payer DEFERRABLE INITIALLY DEFERRED)");
	buf = hapax_buf_new(1 << 20);
	options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	join();
	return 0;
}

static int end(void **state)
{
	(void)state;
	part();
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	hapax_buf_free(buf);
	temp_dir_done(&dir);
	return 0;
}

/* What the handler does, and how it ends. */
struct plan {
	const char *sql;
	enum hapax_run_outcome outcome;
	struct plan *within; /* another key, processed within */
	const char *key;
	enum hapax_status status; /* of that one, out */
	sqlite3_stmt *left;       /* a statement that it leaves in progress, out */
	unsigned runs;
	uint32_t attempt;
};

static enum hapax_status process(struct plan *plan, struct hapax_answer *answer);

static enum hapax_run_outcome pay(struct hapax_work *work, void *context)
{
	struct plan *plan = context;

	plan->runs++;
	plan->attempt = work->attempt;
	assert_true(is_in_transaction());
	sql("INSERT INTO payment (payer) VALUES ('ann')");
	if (plan->sql)
		sql(plan->sql);
	if (plan->within) {
		struct hapax_answer answer = HAPAX_ANSWER_INIT;

		plan->within->status = process(plan->within, &answer);
	}
	if (plan->outcome == HAPAX_RUN_TRANSIENT || plan->outcome == HAPAX_RUN_AMBIGUOUS)
		return hapax_work_fail(work, plan->outcome, "the bank is closed");
	assert_int_equal(hapax_work_write(work, "paid", 4), HAPAX_OK);
	return plan->outcome;
}

static enum hapax_status process(struct plan *plan, struct hapax_answer *answer)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;

	request.key = hapax_bytes_from_text(plan->key ? plan->key : "order-17");
	memset(&err, 0, sizeof(err));
	*answer = (struct hapax_answer)HAPAX_ANSWER_INIT;
	return hapax_tx_process(
		processor, &request, pay, plan, answer, plan->key ? NULL : buf, &err);
}

static enum hapax_state state_of(const char *key)
{
	struct hapax_record record = {0};
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .key = hapax_bytes_from_text(key)};

	op.record = &record;
	op.buf = buf;
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	return op.outcome == HAPAX_OUTCOME_FOUND ? record.state : HAPAX_STATE_ABSENT;
}

static void expect_paid_once(void)
{
	struct hapax_answer answer;
	struct plan plan = {0};

	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_true(case_bytes_are(answer.result.body, "paid", 4));
	assert_int_equal(plan.runs, 0);
	assert_int_equal(rows(), 1);
}

/* B4, B5: without a transaction of the caller's the call is one. */
static void it_is_a_transaction_of_its_own(void **state)
{
	struct hapax_answer answer;
	struct plan plan = {0};

	(void)state;
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_false(is_in_transaction());
	assert_int_equal(state_of("order-17"), HAPAX_STATE_DONE);
	expect_paid_once();
	assert_false(is_in_transaction());
}

/* B4: within the caller's it stands or falls with that one. */
static void the_callers_transaction_decides(void **state)
{
	struct hapax_answer answer;
	struct plan plan = {0};

	(void)state;
	sql("BEGIN IMMEDIATE");
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_true(is_in_transaction());
	sql("ROLLBACK");
	assert_int_equal(rows(), 0);
	assert_int_equal(state_of("order-17"), HAPAX_STATE_ABSENT);
	sql("BEGIN IMMEDIATE");
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	sql("COMMIT");
	expect_paid_once();
}

/* The changes and the claim go; what the caller did before stays; the next one runs. */
static void a_failure_undoes_what_the_handler_did(void **state)
{
	struct hapax_answer answer;
	struct plan plan = {.outcome = HAPAX_RUN_TRANSIENT};

	for (int is_own = 0; is_own < 2; is_own++) {
		(void)state;
		if (!is_own)
			sql("BEGIN IMMEDIATE; INSERT INTO payer VALUES ('bob')");
		assert_int_equal(process(&plan, &answer), HAPAX_ERR_HANDLER);
		assert_string_equal(err.message, "the bank is closed");
		assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_int_equal(answer.run_outcome, HAPAX_RUN_TRANSIENT);
		if (!is_own) {
			assert_true(is_in_transaction());
			sql("COMMIT");
		}
		assert_false(is_in_transaction());
		assert_int_equal(rows(), 0);
		assert_int_equal(number("SELECT count(*) FROM payer"), 2);
		/* No claim, but a trace of it for people. */
		assert_int_equal(state_of("order-17"), HAPAX_STATE_FAILED);
	}
	plan.outcome = HAPAX_RUN_OK;
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(plan.attempt, 3);
	expect_paid_once();
}

/* A caller who rolls back after it keeps nothing at all. */
static void a_failure_that_is_rolled_back_leaves_nothing(void **state)
{
	struct hapax_answer answer;
	struct plan plan = {.outcome = HAPAX_RUN_TRANSIENT};

	(void)state;
	sql("BEGIN IMMEDIATE");
	assert_int_equal(process(&plan, &answer), HAPAX_ERR_HANDLER);
	sql("ROLLBACK");
	assert_int_equal(rows(), 0);
	assert_int_equal(state_of("order-17"), HAPAX_STATE_ABSENT);
}

static void a_definitive_failure_is_a_result(void **state)
{
	struct hapax_answer answer;
	struct plan plan = {.outcome = HAPAX_RUN_DEFINITIVE};

	(void)state;
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_int_equal(answer.result.result_class, HAPAX_RESULT_DEFINITIVE);
	assert_int_equal(rows(), 1);
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_REPLAY);
	assert_int_equal(answer.result.result_class, HAPAX_RESULT_DEFINITIVE);
	assert_int_equal(plan.runs, 1);
}

/* For effects elsewhere: its own are undone, and a person must decide about the others. */
static void an_ambiguous_one_is_undone_and_parked(void **state)
{
	struct hapax_processor_options parking = HAPAX_PROCESSOR_OPTIONS_INIT;
	struct hapax_answer answer;
	struct plan plan = {.outcome = HAPAX_RUN_AMBIGUOUS};

	(void)state;
	hapax_processor_free(processor);
	parking.run.on_lapse = HAPAX_ON_LAPSE_PARK;
	assert_int_equal(hapax_processor_new(store, &parking, &processor, NULL), HAPAX_OK);
	assert_int_equal(process(&plan, &answer), HAPAX_ERR_HANDLER);
	assert_int_equal(rows(), 0);
	assert_int_equal(state_of("order-17"), HAPAX_STATE_PARKED);
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_PARKED);
	assert_int_equal(plan.runs, 1);
}

/* Whatever it ended, nothing is asked of the store by the old token: it may be another's. */
static void a_handler_must_not_end_the_transaction(void **state)
{
	static const char *const ends[] = {"COMMIT", "ROLLBACK", "COMMIT; BEGIN"};
	struct hapax_answer answer;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (int is_failing = 0; is_failing < 2; is_failing++) {
			struct plan plan = {.sql = ends[i]};

			if (is_failing)
				plan.outcome = HAPAX_RUN_TRANSIENT;
			sql("DELETE FROM payment");
			assert_int_equal(process(&plan, &answer), HAPAX_ERR_FAILED);
			assert_non_null(strstr(err.message, "join the connection again"));
			assert_int_equal(answer.status, HAPAX_ERR_FAILED);
			/* None was open before. */
			assert_false(is_in_transaction());
			/* Not before it was joined again. */
			assert_int_equal(process(&plan, &answer), HAPAX_ERR_FAILED);
			assert_int_equal(plan.runs, 1);
			assert_int_equal(rows(), i == 1 ? 0 : 1);
			part();
			join();
			/* A claim that its own handler committed counts as lapsed. */
			assert_true(state_of("order-17") != HAPAX_STATE_DONE);
		}
	}
}

/* Rolled back to before it began, it is not taken for the one around it, which is lost, too. */
static void a_handler_must_not_undo_what_is_around_it(void **state)
{
	struct hapax_answer answer;
	struct plan inner = {.key = "inner", .sql = "ROLLBACK TO mine"};
	struct plan outer = {.sql = "SAVEPOINT mine", .within = &inner};

	(void)state;
	assert_int_equal(process(&outer, &answer), HAPAX_ERR_FAILED);
	assert_int_equal(inner.status, HAPAX_ERR_FAILED);
	assert_false(is_in_transaction());
	assert_int_equal(rows(), 0);
	part();
	join();
	assert_int_equal(state_of("order-17"), HAPAX_STATE_ABSENT);
	assert_int_equal(state_of("inner"), HAPAX_STATE_ABSENT);
}

static enum hapax_run_outcome leave_in_progress(struct hapax_work *work, void *context)
{
	sqlite3_stmt **left = context;

	(void)work;
	assert_int_equal(
		sqlite3_prepare_v2(
			db, "INSERT INTO payment (payer) VALUES ('ann'), ('ann') RETURNING payer",
			-1, left, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(*left), SQLITE_ROW);
	return HAPAX_RUN_OK;
}

/* SQLite could neither release nor commit: it is the handler's failure, and says what to do. */
static void a_statement_left_in_progress_is_a_failure(void **state)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	sqlite3_stmt *left = NULL;
	struct hapax_answer answer;
	struct plan plan = {0};

	(void)state;
	request.key = hapax_bytes_from_text("order-17");
	assert_int_equal(
		hapax_tx_process(processor, &request, leave_in_progress, &left, NULL, NULL, &err),
		HAPAX_ERR_HANDLER);
	assert_non_null(strstr(err.message, "still in progress"));
	sqlite3_finalize(left);
	assert_false(is_in_transaction());
	assert_int_equal(rows(), 0);
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	expect_paid_once();
}

/* Found at the commit: everything is undone, and the next delivery runs. */
static void a_deferred_constraint_is_the_handlers_failure(void **state)
{
	struct hapax_answer answer;
	struct plan plan = {.sql = "INSERT INTO payment (payer) VALUES ('eve')"};

	(void)state;
	assert_int_equal(process(&plan, &answer), HAPAX_ERR_HANDLER);
	assert_non_null(strstr(err.message, "FOREIGN KEY"));
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(answer.run_outcome, HAPAX_RUN_TRANSIENT);
	assert_false(is_in_transaction());
	assert_int_equal(rows(), 0);
	assert_int_equal(state_of("order-17"), HAPAX_STATE_ABSENT);
	plan.sql = NULL;
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	expect_paid_once();
}

static enum hapax_run_outcome pay_and_write_much(struct hapax_work *work, void *context)
{
	static char body[200000];

	(void)context;
	sql("INSERT INTO payment (payer) VALUES ('ann')");
	memset(body, 'x', sizeof(body));
	assert_int_equal(hapax_work_write(work, body, sizeof(body)), HAPAX_OK);
	return HAPAX_RUN_OK;
}

/* A full disk at the completion: SQLite ends the transaction, and all of it is gone. */
static void a_result_that_cannot_be_stored_undoes_the_work(void **state)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct plan plan = {0};
	char limit[64];

	(void)state;
	request.key = hapax_bytes_from_text("order-17");
	snprintf(
		limit, sizeof(limit), "PRAGMA max_page_count = %lld",
		(long long)number("PRAGMA page_count") + 3);
	(void)number(limit);
	assert_int_equal(
		hapax_tx_process(processor, &request, pay_and_write_much, NULL, &answer, buf, &err),
		HAPAX_ERR_FAILED);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_false(is_in_transaction());
	assert_int_equal(rows(), 0);
	(void)number("PRAGMA max_page_count = 1000000");
	part();
	join();
	assert_int_equal(state_of("order-17"), HAPAX_STATE_ABSENT);
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	expect_paid_once();
}

/* One key within another: each fails alone, and stands or falls with what is around it. */
static void they_nest(void **state)
{
	struct hapax_answer answer;
	struct plan inner = {.key = "inner", .outcome = HAPAX_RUN_TRANSIENT};
	struct plan outer = {.within = &inner};

	(void)state;
	assert_int_equal(process(&outer, &answer), HAPAX_OK);
	assert_int_equal(inner.status, HAPAX_ERR_HANDLER);
	assert_int_equal(rows(), 1);
	assert_int_equal(state_of("inner"), HAPAX_STATE_FAILED);
	assert_int_equal(state_of("order-17"), HAPAX_STATE_DONE);

	inner.outcome = HAPAX_RUN_OK;
	outer = (struct plan){.key = "outer", .within = &inner, .outcome = HAPAX_RUN_TRANSIENT};
	assert_int_equal(process(&outer, &answer), HAPAX_ERR_HANDLER);
	assert_int_equal(inner.status, HAPAX_OK);
	assert_false(is_in_transaction());
	assert_int_equal(rows(), 1);
	assert_int_equal(state_of("inner"), HAPAX_STATE_FAILED);
	assert_int_equal(state_of("outer"), HAPAX_STATE_FAILED);

	outer.outcome = HAPAX_RUN_OK;
	assert_int_equal(process(&outer, &answer), HAPAX_OK);
	assert_int_equal(rows(), 3);
	assert_int_equal(state_of("inner"), HAPAX_STATE_DONE);
}

static void several_keys_in_one_transaction(void **state)
{
	struct hapax_request_key keys[2] = {
		{.key = hapax_bytes_from_text("a")}, {.key = hapax_bytes_from_text("b")}};
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_answer answer = HAPAX_ANSWER_INIT;
	struct plan plan = {.outcome = HAPAX_RUN_TRANSIENT};

	(void)state;
	request.keys = keys;
	request.key_count = 2;
	assert_int_equal(
		hapax_tx_process(processor, &request, pay, &plan, &answer, buf, &err),
		HAPAX_ERR_HANDLER);
	assert_int_equal(rows(), 0);
	plan.outcome = HAPAX_RUN_OK;
	assert_int_equal(
		hapax_tx_process(processor, &request, pay, &plan, &answer, buf, &err), HAPAX_OK);
	assert_int_equal(rows(), 1);
	assert_int_equal(state_of("a"), HAPAX_STATE_DONE);
	assert_int_equal(state_of("b"), HAPAX_STATE_DONE);
}

/* B6: who cannot have the lock in time is told so; nothing ran. */
static void who_waits_too_long_is_told(void **state)
{
	struct hapax_answer answer;
	struct plan plan = {0};
	sqlite3 *other;

	(void)state;
	part();
	options.timeout_ms = 20;
	join();
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(process(&plan, &answer), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(answer.status, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_NONE);
	assert_non_null(strstr(err.message, "locked"));
	assert_int_equal(plan.runs, 0);
	assert_false(is_in_transaction());
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
}

/* With a rollback journal a reader stands in the way of the commit itself: all is undone. */
static void a_commit_that_a_reader_stops_is_undone(void **state)
{
	struct hapax_answer answer;
	struct plan plan = {0};
	sqlite3_stmt *reader;
	sqlite3 *other;

	(void)state;
	part();
	sql("PRAGMA journal_mode = DELETE");
	options.timeout_ms = 20;
	join();
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(other, "SELECT * FROM payer", -1, &reader, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(reader), SQLITE_ROW);
	assert_int_equal(process(&plan, &answer), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(plan.runs, 1);
	assert_int_equal(answer.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_false(is_in_transaction());
	sqlite3_finalize(reader);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	assert_int_equal(rows(), 0);
	assert_int_equal(process(&plan, &answer), HAPAX_OK);
	expect_paid_once();
}

static void bad_calls_are_refused(void **state)
{
	struct hapax_request request = HAPAX_REQUEST_INIT;
	struct hapax_processor *plain;
	struct hapax_store *memory;
	struct plan plan = {0};

	(void)state;
	/* A key is missing: nothing was begun, or is open. */
	assert_int_equal(
		hapax_tx_process(processor, &request, pay, &plan, NULL, NULL, &err),
		HAPAX_ERR_INVALID);
	assert_false(is_in_transaction());
	assert_int_equal(
		hapax_tx_process(NULL, &request, pay, &plan, NULL, NULL, &err), HAPAX_ERR_INVALID);
	assert_int_equal(hapax_store_open("memory:", NULL, &memory, NULL), HAPAX_OK);
	assert_int_equal(hapax_processor_new(memory, NULL, &plain, NULL), HAPAX_OK);
	request.key = hapax_bytes_from_text("k");
	assert_int_equal(
		hapax_tx_process(plain, &request, pay, &plan, NULL, NULL, &err),
		HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "join"));
	assert_int_equal(plan.runs, 0);
	hapax_processor_free(plain);
	hapax_store_close(memory);
}

/* B7: a table of handlers on a joined store is transactional, too. */
static void registered_handlers_share_the_transaction(void **state)
{
	struct hapax_registration row = HAPAX_REGISTRATION_INIT;
	struct hapax_event event = HAPAX_EVENT_INIT;
	struct hapax_registry *registry;
	struct plan plan = {.outcome = HAPAX_RUN_TRANSIENT};

	(void)state;
	row.type = "order.paid";
	row.strategy = "field:data.order";
	row.handler = pay;
	row.context = &plan;
	event.data = hapax_bytes_from_text("{\"order\":17}");
	assert_int_equal(hapax_registry_new(processor, &row, 1, &registry, &err), HAPAX_OK);
	for (int delivery = 0; delivery < 3; delivery++) {
		enum hapax_status status = hapax_registry_process(
			registry, hapax_bytes_from_text("order.paid"), &event, NULL, NULL, &err);

		assert_int_equal(status, delivery == 0 ? HAPAX_ERR_HANDLER : HAPAX_OK);
		assert_int_equal(rows(), delivery == 0 ? 0 : 1);
		plan.outcome = HAPAX_RUN_OK;
	}
	hapax_registry_free(registry);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_is_a_transaction_of_its_own),
		CASE(the_callers_transaction_decides),
		CASE(a_failure_undoes_what_the_handler_did),
		CASE(a_failure_that_is_rolled_back_leaves_nothing),
		CASE(a_definitive_failure_is_a_result),
		CASE(an_ambiguous_one_is_undone_and_parked),
		CASE(a_handler_must_not_end_the_transaction),
		CASE(a_handler_must_not_undo_what_is_around_it),
		CASE(a_statement_left_in_progress_is_a_failure),
		CASE(a_deferred_constraint_is_the_handlers_failure),
		CASE(a_result_that_cannot_be_stored_undoes_the_work),
		CASE(they_nest),
		CASE(several_keys_in_one_transaction),
		CASE(who_waits_too_long_is_told),
		CASE(a_commit_that_a_reader_stops_is_undone),
		CASE(bad_calls_are_refused),
		CASE(registered_handlers_share_the_transaction),
	};

	return cmocka_run_group_tests_name("tx", tests, NULL, NULL);
}
