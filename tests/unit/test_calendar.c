/* SPDX-License-Identifier: Apache-2.0 */
#include "base/calendar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

static bool is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* One day after the other, counted by hand, from before the year 0 to after 9999. */
static void days_follow_each_other(void **state)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	struct hx_date date = {-1, 1, 1};
	int64_t day = hx_calendar_day(date);

	(void)state;
	for (; date.year <= 10000; day++) {
		struct hx_date found = hx_calendar_date(day);

		assert_int_equal(found.year, date.year);
		assert_int_equal(found.month, date.month);
		assert_int_equal(found.day, date.day);
		assert_int_equal(hx_calendar_day(date), day);
		if (++date.day <= lengths[date.month - 1] + (date.month == 2 && is_leap(date.year)))
			continue;
		date.day = 1;
		if (++date.month <= 12)
			continue;
		date.month = 1;
		date.year++;
	}
}

static void days_are_counted_from_1970(void **state)
{
	(void)state;
	assert_int_equal(hx_calendar_day((struct hx_date){1970, 1, 1}), 0);
	assert_int_equal(hx_calendar_day((struct hx_date){1969, 12, 31}), -1);
	assert_int_equal(hx_calendar_day((struct hx_date){2000, 2, 29}), 11016);
	/* A day that does not exist comes back as another one. */
	assert_int_equal(hx_calendar_date(hx_calendar_day((struct hx_date){1970, 2, 30})).month, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(days_follow_each_other),
		cmocka_unit_test(days_are_counted_from_1970),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
