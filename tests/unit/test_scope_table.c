/* SPDX-License-Identifier: Apache-2.0 */
#include "store/scope_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "support/crowd.h"
#include "support/scale.h"

static struct hx_scope *intern(struct hx_scope_table *table, const char *tenant, const char *group)
{
	enum hapax_status status = HAPAX_ERR_HANDLER;
	struct hx_scope *scope = hx_scope_table_intern(
		table, hapax_bytes_from_text(tenant), hapax_bytes_from_text(group), &status);

	assert_non_null(scope);
	assert_int_equal(status, HAPAX_OK);
	return scope;
}

static void same_names_are_the_same_scope(void **state)
{
	struct hx_scope_table table;

	(void)state;
	assert_int_equal(hx_scope_table_init(&table), HAPAX_OK);
	struct hx_scope *first = intern(&table, "", "");
	assert_int_equal(first->id, 0);
	assert_true(hx_bytes_equal(first->tenant, HX_BYTES_LIT("default")));
	assert_true(hx_bytes_equal(first->group, HX_BYTES_LIT("default")));
	assert_ptr_equal(intern(&table, "default", ""), first);
	assert_ptr_equal(intern(&table, "", "default"), first);
	assert_ptr_equal(intern(&table, "default", "default"), first);
	assert_ptr_equal(hx_scope_table_get(&table, 0), first);

	struct hx_scope *ab_c = intern(&table, "ab", "c");
	struct hx_scope *a_bc = intern(&table, "a", "bc");
	assert_ptr_not_equal(ab_c, a_bc);
	assert_ptr_equal(intern(&table, "ab", "c"), ab_c);
	assert_ptr_equal(hx_scope_table_get(&table, ab_c->id), ab_c);
	assert_ptr_equal(hx_scope_table_get(&table, a_bc->id), a_bc);
	hx_scope_table_done(&table);
}

static void names_are_bytes(void **state)
{
	static const struct hapax_bytes names[] = {
		{"a", 1}, {"a\0", 2}, {"\0a", 2}, {"\0", 1}, {"A", 1}, {"\xff", 1},
	};
	unsigned char longest[HX_SCOPE_PART_SIZE_MAX];
	struct hx_scope_table table;
	enum hapax_status status;

	(void)state;
	assert_int_equal(hx_scope_table_init(&table), HAPAX_OK);
	for (uint32_t i = 0; i < 6; i++) {
		for (uint32_t k = 0; k < 6; k++) {
			struct hx_scope *scope =
				hx_scope_table_intern(&table, names[i], names[k], &status);

			assert_non_null(scope);
			assert_int_equal(scope->id, HX_SCOPE_NOWHERE + 1 + i * 6 + k);
			assert_true(hx_bytes_equal(scope->tenant, names[i]));
			assert_true(hx_bytes_equal(scope->group, names[k]));
		}
	}
	memset(longest, 'x', sizeof(longest));
	struct hapax_bytes name = {longest, sizeof(longest)};
	struct hx_scope *scope = hx_scope_table_intern(&table, name, name, &status);
	assert_non_null(scope);
	assert_int_equal(scope->tenant.size, sizeof(longest));
	assert_ptr_equal(hx_scope_table_intern(&table, name, name, &status), scope);
	hx_scope_table_done(&table);
}

static void many_scopes_keep_their_numbers(void **state)
{
	enum { COUNT = 20000 };
	struct hx_scope_table table;
	char name[32];

	(void)state;
	assert_int_equal(hx_scope_table_init(&table), HAPAX_OK);
	struct hx_scope *early = intern(&table, "t2", "g");
	for (uint32_t i = HX_SCOPE_NOWHERE + 1; i <= COUNT; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		assert_int_equal(intern(&table, name, "g")->id, i);
	}
	for (uint32_t i = COUNT; i > HX_SCOPE_NOWHERE; i--) {
		snprintf(name, sizeof(name), "t%u", i);
		struct hx_scope *scope = intern(&table, name, "g");
		assert_int_equal(scope->id, i);
		assert_ptr_equal(hx_scope_table_get(&table, i), scope);
	}
	/* Nothing has moved. */
	assert_ptr_equal(hx_scope_table_get(&table, 2), early);
	hx_scope_table_done(&table);
}

static void full_table_says_limit(void **state)
{
	struct hx_scope_table table;
	enum hapax_status status = HAPAX_OK;
	uint32_t name = 0;

	(void)state;
	assert_int_equal(hx_scope_table_init(&table), HAPAX_OK);
	for (name = HX_SCOPE_NOWHERE + 1; name < HX_SCOPES_MAX; name++)
		assert_non_null(hx_scope_table_intern(
			&table, hx_bytes(&name, sizeof(name)), HX_BYTES_LIT("g"), &status));
	assert_null(hx_scope_table_intern(
		&table, hx_bytes(&name, sizeof(name)), HX_BYTES_LIT("g"), &status));
	assert_int_equal(status, HAPAX_ERR_LIMIT);
	name = 17;
	assert_int_equal(
		hx_scope_table_intern(
			&table, hx_bytes(&name, sizeof(name)), HX_BYTES_LIT("g"), &status)
			->id,
		17);
	hx_scope_table_done(&table);
}

/* A lookup adds nothing, and never finds the scope that is nowhere. */
static void asking_does_not_fill_the_table(void **state)
{
	struct hx_scope_table table;

	(void)state;
	assert_int_equal(hx_scope_table_init(&table), HAPAX_OK);
	uint32_t count = atomic_load(&table.count);
	assert_null(hx_scope_table_find(&table, HX_BYTES_LIT("t"), HX_BYTES_LIT("g")));
	assert_int_equal(atomic_load(&table.count), count);
	struct hx_scope *scope = intern(&table, "t", "g");
	assert_ptr_equal(hx_scope_table_find(&table, HX_BYTES_LIT("t"), HX_BYTES_LIT("g")), scope);
	assert_int_equal(
		hx_scope_table_find(&table, hx_bytes(NULL, 0), hx_bytes(NULL, 0))->id,
		HX_SCOPE_DEFAULT);
	assert_int_equal(hx_scope_table_get(&table, HX_SCOPE_NOWHERE)->tenant.size, 0);
	hx_scope_table_done(&table);
}

/* The n-th allocation fails: the table is as before, and goes on when there is memory. */
static void failed_allocations_do_no_harm(void **state)
{
	int64_t live = hx_alloc_live();

	(void)state;
	for (uint64_t nth = 1; nth < 400; nth++) {
		struct hx_scope_table table;
		char name[32];
		uint32_t expected = HX_SCOPE_NOWHERE + 1;

		hx_alloc_fail_at(nth, 0);
		enum hapax_status status = hx_scope_table_init(&table);
		if (status != HAPAX_OK) {
			hx_alloc_fail_at(0, 0);
			assert_int_equal(status, HAPAX_ERR_NO_MEMORY);
			assert_int_equal(hx_alloc_live(), live);
			continue;
		}
		for (int i = 0; i < 200; i++) {
			struct hx_scope *scope;

			snprintf(name, sizeof(name), "t%d", i);
			scope = hx_scope_table_intern(
				&table, hapax_bytes_from_text(name), HX_BYTES_LIT("g"), &status);
			if (!scope) {
				assert_int_equal(status, HAPAX_ERR_NO_MEMORY);
				scope = intern(&table, name, "g");
			}
			assert_int_equal(scope->id, expected++);
		}
		hx_alloc_fail_at(0, 0);
		hx_scope_table_done(&table);
		assert_int_equal(hx_alloc_live(), live);
	}
}

enum { CROWD = 8, SHARED_NAMES = 3000 };

struct meeting {
	struct hx_scope_table table;
	struct hx_scope *seen[CROWD][SHARED_NAMES];
};

static void intern_all(size_t index, void *context)
{
	struct meeting *meeting = context;
	enum hapax_status status;

	for (uint32_t i = 0; i < SHARED_NAMES; i++) {
		/* Each thread in another order. */
		uint32_t name = (uint32_t)((i * 7 + index * 131) % SHARED_NAMES);

		meeting->seen[index][name] = hx_scope_table_intern(
			&meeting->table, hx_bytes(&name, sizeof(name)), HX_BYTES_LIT("g"), &status);
	}
}

static void threads_agree_on_numbers(void **state)
{
	static struct meeting meeting;
	struct crowd crowd;

	(void)state;
	assert_int_equal(hx_scope_table_init(&meeting.table), HAPAX_OK);
	crowd_init(&crowd, CROWD);
	crowd_run(&crowd, intern_all, &meeting);
	crowd_done(&crowd);
	assert_int_equal(atomic_load(&meeting.table.count), SHARED_NAMES + 2);
	for (uint32_t i = 0; i < SHARED_NAMES; i++) {
		struct hx_scope *scope = meeting.seen[0][i];

		assert_non_null(scope);
		for (size_t k = 1; k < CROWD; k++)
			assert_ptr_equal(meeting.seen[k][i], scope);
		assert_true(hx_bytes_equal(scope->tenant, hx_bytes(&i, sizeof(i))));
		assert_ptr_equal(hx_scope_table_get(&meeting.table, scope->id), scope);
	}
	hx_scope_table_done(&meeting.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_names_are_the_same_scope),
		cmocka_unit_test(names_are_bytes),
		cmocka_unit_test(many_scopes_keep_their_numbers),
		cmocka_unit_test(full_table_says_limit),
		cmocka_unit_test(asking_does_not_fill_the_table),
		cmocka_unit_test(failed_allocations_do_no_harm),
		cmocka_unit_test(threads_agree_on_numbers),
	};

	return cmocka_run_group_tests_name("scope_table", tests, NULL, NULL);
}
