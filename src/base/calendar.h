/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calendar.h - days and dates of the Gregorian calendar, extended backwards.
 *
 * Threads: any.
 */
#ifndef HX_CALENDAR_H
#define HX_CALENDAR_H

#include <stdint.h>

struct hx_date {
	int year;
	int month; /* 1 to 12 */
	int day;   /* 1 to 31 */
};

/* The date of a day, which is counted from 1970-01-01. */
struct hx_date hx_calendar_date(int64_t day);

/* The day of a date. One that does not exist, such as 30 February, is a later date's. */
int64_t hx_calendar_day(struct hx_date date);

#endif
