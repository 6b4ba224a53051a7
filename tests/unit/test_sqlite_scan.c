/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the records, in the order of their keys. */
#include "store/sqlite/scan.h"

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

static int count_one(const struct hapax_record *record, void *context)
{
	(void)record;
	++*(size_t *)context;
	return 0;
}

/* A scan says so once, and goes on behind it. */
static void a_scan_goes_on_behind_a_damaged_row(void **state)
{
	struct store_case *c = *state;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {0};
	sqlite3 *db = open_beside(c);
	size_t seen = 0;
	int errors = 0;

	for (int i = 0; i < 3; i++)
		assert_int_equal(
			case_claim(c, (const char *[]){"a", "b", "c"}[i], NULL),
			HAPAX_OUTCOME_ACQUIRED);
	exec(db, "UPDATE hapax_record SET attempt = 0 WHERE key = x'62'");
	sqlite3_close(db);
	scan.count_max = 1;
	while (!cursor.done) {
		size_t before = seen;
		enum hapax_status status =
			hapax_store_scan(c->store, &scan, &cursor, count_one, &seen, NULL);

		if (status == HAPAX_OK)
			continue;
		assert_int_equal(status, HAPAX_ERR_CORRUPT);
		assert_int_equal(seen, before);
		errors++;
	}
	assert_int_equal(errors, 1);
	assert_int_equal(seen, 2);
}

/* A prefix within a scope is a range: the scan ends where it ends. */
static void a_scan_of_a_prefix_is_a_range(void **state)
{
	struct store_case *c = *state;
	static const struct hapax_bytes keys[] = {{"a", 1},    {"b", 1},     {"b\0", 2},
						  {"b\0x", 3}, {"b\377", 2}, {"b\377\377", 3},
						  {"c", 1},    {"\377", 1}};
	struct hapax_scan scan = HAPAX_SCAN_INIT;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		for (int scope = 0; scope < 3; scope++) {
			struct hapax_op op = {.type = HAPAX_OP_CHECK, .key = keys[i]};

			op.group = hapax_bytes_from_text((const char *[]){"f", "g", "h"}[scope]);
			op.tenant = hapax_bytes_from_text(scope == 2 ? "u" : "t");
			assert_int_equal(hapax_store_run(c->store, &op, 1, NULL), HAPAX_OK);
		}
	}
	for (size_t page = 1; page < 5; page++) {
		scan = (struct hapax_scan)HAPAX_SCAN_INIT;
		scan.count_max = page;
		assert_int_equal(case_scan_count(c, &scan), 24);
		scan.tenant = hapax_bytes_from_text("t");
		assert_int_equal(case_scan_count(c, &scan), 16);
		scan.prefix = hapax_bytes_from_text("b");
		assert_int_equal(case_scan_count(c, &scan), 10);
		scan.group = hapax_bytes_from_text("f");
		assert_int_equal(case_scan_count(c, &scan), 5);
		scan.prefix = (struct hapax_bytes){"b\377", 2};
		assert_int_equal(case_scan_count(c, &scan), 2);
		scan.prefix = (struct hapax_bytes){"\377", 1};
		assert_int_equal(case_scan_count(c, &scan), 1);
		scan.tenant.size = 0;
		assert_int_equal(case_scan_count(c, &scan), 1);
		scan.group = hapax_bytes_from_text("none");
		assert_int_equal(case_scan_count(c, &scan), 0);
	}
}

static void a_cursor_from_elsewhere_is_refused(void **state)
{
	struct store_case *c = *state;
	struct hapax_cursor cursor = {.size = 4};
	size_t seen = 0;

	assert_int_equal(
		hapax_store_scan(c->store, NULL, &cursor, count_one, &seen, NULL),
		HAPAX_ERR_INVALID);
	cursor = (struct hapax_cursor){.size = 100, .place = {255, 255, 255, 255, 255, 255}};
	assert_int_equal(
		hapax_store_scan(c->store, NULL, &cursor, count_one, &seen, NULL),
		HAPAX_ERR_INVALID);
	assert_int_equal(seen, 0);
	assert_int_equal(case_claim(c, "k", NULL), HAPAX_OUTCOME_ACQUIRED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_scan_goes_on_behind_a_damaged_row, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_scan_of_a_prefix_is_a_range, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_cursor_from_elsewhere_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("sqlite_scan", tests, NULL, NULL);
}
