/* SPDX-License-Identifier: Apache-2.0 */
#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
	int number;
	struct item *next;
	struct item *other_next;
};

struct items {
	struct item *first;
	struct item *last;
};

/* What a list holds, as digits. */
static int digits(const struct items *list)
{
	int number = 0;
	const struct item *last = NULL;

	for (const struct item *item = list->first; item != NULL; item = item->next) {
		number = number * 10 + item->number;
		last = item;
	}
	assert_ptr_equal(list->last, last);
	return number;
}

static void items_leave_in_the_order_in_which_they_came(void **state)
{
	struct items list = {NULL, NULL};
	struct item items[] = {{.number = 1}, {.number = 2}, {.number = 3}};
	struct item *taken;

	(void)state;
	HX_LIST_TAKE(&list, taken, next);
	assert_null(taken);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++)
			HX_LIST_ADD(&list, &items[i], next);
		assert_int_equal(digits(&list), 123);
		for (int i = 0; i < 3; i++) {
			HX_LIST_TAKE(&list, taken, next);
			assert_ptr_equal(taken, &items[i]);
		}
		HX_LIST_TAKE(&list, taken, next);
		assert_null(taken);
		assert_int_equal(digits(&list), 0);
	}
}

static void all_are_taken_at_once(void **state)
{
	struct items list = {NULL, NULL};
	struct item items[] = {{.number = 1}, {.number = 2}};
	struct item *all;

	(void)state;
	HX_LIST_TAKE_ALL(&list, all);
	assert_null(all);
	HX_LIST_ADD(&list, &items[0], next);
	HX_LIST_ADD(&list, &items[1], next);
	HX_LIST_TAKE_ALL(&list, all);
	assert_ptr_equal(all, &items[0]);
	assert_ptr_equal(all->next, &items[1]);
	assert_int_equal(digits(&list), 0);
	HX_LIST_ADD(&list, &items[1], next);
	assert_int_equal(digits(&list), 2);
}

static void a_list_is_joined_behind_another(void **state)
{
	struct items list = {NULL, NULL}, other = {NULL, NULL};
	struct item items[] = {{.number = 1}, {.number = 2}, {.number = 3}};

	(void)state;
	HX_LIST_JOIN(&list, &other, next);
	assert_int_equal(digits(&list), 0);
	HX_LIST_ADD(&other, &items[0], next);
	HX_LIST_JOIN(&list, &other, next);
	assert_int_equal(digits(&list), 1);
	assert_int_equal(digits(&other), 0);
	HX_LIST_JOIN(&list, &other, next);
	assert_int_equal(digits(&list), 1);
	HX_LIST_ADD(&other, &items[1], next);
	HX_LIST_ADD(&other, &items[2], next);
	HX_LIST_JOIN(&list, &other, next);
	assert_int_equal(digits(&list), 123);
	assert_int_equal(digits(&other), 0);
}

static void an_item_may_be_in_two_lists(void **state)
{
	struct items list = {NULL, NULL};
	HX_LIST(struct item) other = {NULL, NULL};
	struct item items[] = {{.number = 1}, {.number = 2}};
	struct item *taken;

	(void)state;
	HX_LIST_ADD(&list, &items[0], next);
	HX_LIST_ADD(&list, &items[1], next);
	HX_LIST_ADD(&other, &items[1], other_next);
	HX_LIST_ADD(&other, &items[0], other_next);
	HX_LIST_TAKE(&other, taken, other_next);
	assert_ptr_equal(taken, &items[1]);
	HX_LIST_TAKE(&other, taken, other_next);
	assert_ptr_equal(taken, &items[0]);
	assert_int_equal(digits(&list), 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_leave_in_the_order_in_which_they_came),
		cmocka_unit_test(all_are_taken_at_once),
		cmocka_unit_test(a_list_is_joined_behind_another),
		cmocka_unit_test(an_item_may_be_in_two_lists),
	};

	return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
