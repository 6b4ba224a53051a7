/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that cannot be right, and numbers that must be: I10. */
#include "store/sqlite/row.h"

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

static int set_up(void **state)
{
	struct store_case *c = calloc(1, sizeof(*c));

	if (!c)
		return -1;
	store_case_begin(c, "sqlite:");
	*state = c;
	return 0;
}

static int tear_down(void **state)
{
	store_case_done(*state);
	free(*state);
	return 0;
}

static sqlite3 *open_beside(const struct store_case *c)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(c->url + strlen("sqlite:"), &db), SQLITE_OK);
	return db;
}

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

static void must_hold(struct store_case *c, const char *text)
{
	sqlite3 *db = open_beside(c);

	if (number(db, text) != 1)
		fail_msg("not so: %s", text);
	sqlite3_close(db);
}

/* I10: a row that fails its check is said to be corrupt, and is neither lost nor believed. */
static void a_damaged_row_is_told(void **state)
{
	struct store_case *c = *state;
	static const char *const damages[] = {
		"attempt = 0",
		"attempt = -1",
		"attempt = 4294967296",
		"token = 0",
		"token = -5",
		"origin = 3",
		"on_lapse = 2",
		"on_lapse = -1",
		"result_kind = 1",
		"result_class = 9",
		"fingerprint = x'0102'",
		"fingerprint = zeroblob(33)",
		"attempt_id = zeroblob(17)",
		"owner = zeroblob(129)",
		"error = zeroblob(1025)",
		"result_body = x'00'",
		"result_headers = x'00'",
		"ttl_ms = 0",
		"changed_ms = first_seen_ms - 1",
	};
	sqlite3 *db = open_beside(c);

	assert_int_equal(case_claim(c, "a", NULL), HAPAX_OUTCOME_ACQUIRED);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		char text[200];

		exec(db,
		     "DELETE FROM hapax_record WHERE key = x'62'; UPDATE hapax_meta SET claimed = 1");
		assert_int_equal(case_claim(c, "b", NULL), HAPAX_OUTCOME_ACQUIRED);
		snprintf(
			text, sizeof(text),
			"UPDATE hapax_record SET %s, due_ms = 1 WHERE key = x'62'", damages[i]);
		exec(db, text);
		for (unsigned type = HAPAX_OP_CLAIM; type <= HAPAX_OP_EXPIRE; type++) {
			struct hapax_op op = case_op_token(c, (enum hapax_op_type)type, "b", 2);

			if (case_run(c, &op) != HAPAX_ERR_CORRUPT)
				fail_msg("not noticed: %s", damages[i]);
		}
		/* The sweep passes it over, and others are not concerned. */
		assert_int_equal(case_sweep(c).removed, 0);
		assert_int_equal(case_claim(c, "a", NULL), HAPAX_OUTCOME_IN_PROGRESS);
	}
	assert_int_equal(number(db, "SELECT count(*) FROM hapax_record"), 2);
	sqlite3_close(db);
}

/* I10: nor is a ledger's row that cannot be right. */
static void a_damaged_ledger_fails(void **state)
{
	struct store_case *c = *state;
	static const char *const damages[] = {
		"UPDATE hapax_meta SET token = -1",
		"UPDATE hapax_meta SET token = 9007199254740992",
		"UPDATE hapax_meta SET owed_ms = -1",
		"DELETE FROM hapax_meta",
		"DROP TABLE hapax_record",
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct hapax_op op = case_op(c, HAPAX_OP_CLAIM, "k");
		sqlite3 *db = open_beside(c);

		exec(db, damages[i]);
		sqlite3_close(db);
		assert_int_equal(case_run(c, &op), HAPAX_ERR_FAILED);
		store_case_done(c);
		store_case_begin(c, "sqlite:");
	}
}

/* The numbers in hapax_meta and hapax_scope are those of the rows, whatever happens. */
static void numbers_follow_the_rows(void **state)
{
	struct store_case *c = *state;
	uint64_t tokens[40];
	char key[32];

	for (int i = 0; i < 40; i++) {
		struct hapax_op op;

		snprintf(key, sizeof(key), "k%d", i);
		op = case_op(c, HAPAX_OP_CLAIM, key);
		op.on_lapse = i % 2 ? HAPAX_ON_LAPSE_PARK : HAPAX_ON_LAPSE_RETRY;
		op.group = hapax_bytes_from_text(i % 3 ? "one" : "two");
		assert_int_equal(case_run(c, &op), HAPAX_OK);
		tokens[i] = op.token;
		if (i % 5 == 0)
			continue;
		op = case_op_token(
			c,
			(enum hapax_op_type[]){
				0, HAPAX_OP_COMPLETE, HAPAX_OP_RELEASE, HAPAX_OP_PARK,
				HAPAX_OP_RENEW}[i % 5],
			key, tokens[i]);
		op.group = hapax_bytes_from_text(i % 3 ? "one" : "two");
		assert_int_equal(case_run(c, &op), HAPAX_OK);
	}
	for (int i = 0; i < 40; i += 7) {
		struct hapax_op op;

		snprintf(key, sizeof(key), "k%d", i);
		op = case_op(c, HAPAX_OP_FORGET, key);
		op.flags = HAPAX_OP_FORCE;
		op.group = hapax_bytes_from_text(i % 3 ? "one" : "two");
		assert_int_equal(case_run(c, &op), HAPAX_OK);
	}
	static const char *const same =
		"SELECT (SELECT count(*) FROM hapax_record WHERE state = 1) = claimed"
		" AND (SELECT count(*) FROM hapax_record WHERE state = 2) = done"
		" AND (SELECT count(*) FROM hapax_record WHERE state = 3) = failed"
		" AND (SELECT count(*) FROM hapax_record WHERE state = 4) = parked"
		" AND (SELECT coalesce(sum(parked), 0) FROM hapax_scope) = parked"
		" AND NOT EXISTS (SELECT * FROM hapax_scope s WHERE parked <> (SELECT count(*) FROM hapax_record r"
		"   WHERE r.tenant = s.tenant AND r.grp = s.grp AND r.state = 4))"
		" AND (SELECT max(token) FROM hapax_record) <= token FROM hapax_meta";
	must_hold(c, same);
	/* The sweep: expired ones go, lapsed ones become FAILED or PARKED. */
	store_case_advance(c, 61000);
	struct hapax_sweep sweep = case_sweep(c);
	assert_true(sweep.removed > 0);
	assert_true(sweep.lapsed > 0);
	must_hold(c, same);
	assert_int_equal(case_stats(c).claimed, 0);
	assert_int_equal(case_stats(c).keys, sweep.remaining);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_damaged_row_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_ledger_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(numbers_follow_the_rows, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("sqlite_row", tests, NULL, NULL);
}
