/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calendar.c - calendar arithmetic.
 *
 * A year is counted from its first of March: the leap day then comes last, and the
 * lengths of the months before it follow (153 * month + 2) / 5. An era is the 400
 * years after which the calendar repeats.
 */
#include "base/calendar.h"

enum {
	YEARS_PER_ERA = 400,
	DAYS_PER_ERA = 146097,
	/* From 1 March of the year 0 to 1 January 1970. */
	DAYS_BEFORE_1970 = 719468,
};

/* Rounded down. */
static int64_t divide(int64_t value, int64_t by)
{
	return value / by - (value % by < 0);
}

struct hx_date hx_calendar_date(int64_t day)
{
	int64_t shifted = day + DAYS_BEFORE_1970;
	int64_t era = divide(shifted, DAYS_PER_ERA);
	int64_t day_of_era = shifted - era * DAYS_PER_ERA;
	int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
			       day_of_era / (DAYS_PER_ERA - 1)) /
		365;
	int64_t day_of_year =
		day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t from_march = (5 * day_of_year + 2) / 153;
	struct hx_date date;

	date.day = (int)(day_of_year - (153 * from_march + 2) / 5 + 1);
	date.month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
	date.year = (int)(year_of_era + era * YEARS_PER_ERA + (date.month <= 2));
	return date;
}

int64_t hx_calendar_day(struct hx_date date)
{
	int64_t year = (int64_t)date.year - (date.month <= 2);
	int64_t era = divide(year, YEARS_PER_ERA);
	int64_t year_of_era = year - era * YEARS_PER_ERA;
	int64_t day_of_year = (153 * ((date.month + 9) % 12) + 2) / 5 + date.day - 1;

	return era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
		day_of_year - DAYS_BEFORE_1970;
}
