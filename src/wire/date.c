/* SPDX-License-Identifier: Apache-2.0 */
/*
 * date.c - read RFC 3339, write dates by a format; in UTC.
 */
#include "wire/date.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/calendar.h"
#include "base/error.h"

enum { MS_PER_DAY = 24 * 3600 * 1000 };

struct civil {
	struct hx_date date;
	int year_day; /* 1 to 366 */
	int week_day; /* 1, Monday, to 7 */
	int hour;
	int minute;
	int second;
};

static void civil_of(int64_t ms, struct civil *ret)
{
	int64_t days = ms / MS_PER_DAY - (ms % MS_PER_DAY < 0);
	int64_t in_day = ms - days * MS_PER_DAY;

	ret->date = hx_calendar_date(days);
	ret->year_day = (int)(days - hx_calendar_day((struct hx_date){ret->date.year, 1, 1})) + 1;
	ret->week_day = (int)(((days + 3) % 7 + 7) % 7) + 1;
	ret->hour = (int)(in_day / 3600000);
	ret->minute = (int)(in_day / 60000 % 60);
	ret->second = (int)(in_day / 1000 % 60);
}

/* The first week of a year is the one with its first Thursday (ISO 8601). */
static void iso_week(const struct civil *civil, int *ret_year, int *ret_week)
{
	int64_t today = hx_calendar_day(civil->date);
	int64_t thursday = today - civil->week_day + 4;
	struct civil at;

	civil_of(thursday * MS_PER_DAY, &at);
	*ret_year = at.date.year;
	*ret_week = (at.year_day - 1) / 7 + 1;
}

/* The width of a conversion; 0: unknown. */
static size_t width_of(char letter)
{
	switch (letter) {
	case 'Y':
	case 'G': return 4;
	case 'm':
	case 'd':
	case 'H':
	case 'M':
	case 'S':
	case 'V': return 2;
	case 'j': return 3;
	case 'u':
	case '%': return 1;
	case 'F': return 10;
	case 'T': return 8;
	default: return 0;
	}
}

enum hapax_status hx_date_check(struct hapax_bytes format, struct hapax_error *err)
{
	const char *text = format.data;
	size_t size = 0;

	for (size_t i = 0; i < format.size; i++) {
		size_t width = 1;

		if (text[i] == '%') {
			i++;
			width = i < format.size ? width_of(text[i]) : 0;
		}
		if (width == 0) {
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"date '%.*s' has an unknown conversion; use %%Y %%m %%d %%H %%M "
				"%%S %%j %%F %%T %%G %%V %%u %%%%",
				(int)(format.size < 64 ? format.size : 64), text);
		}
		size += width;
	}
	if (size == 0 || size > HX_DATE_TEXT_MAX) {
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"date format gives %zu characters; it must give 1 to %d", size,
			HX_DATE_TEXT_MAX);
	}
	return HAPAX_OK;
}

static void put_number(char *to, size_t width, int value)
{
	while (width > 0) {
		to[--width] = (char)('0' + value % 10);
		value /= 10;
	}
	assert(value == 0);
}

static void put_conversion(char letter, const struct civil *civil, char *to)
{
	int iso_year;
	int week;

	iso_week(civil, &iso_year, &week);
	switch (letter) {
	case 'Y': put_number(to, 4, civil->date.year); break;
	case 'm': put_number(to, 2, civil->date.month); break;
	case 'd': put_number(to, 2, civil->date.day); break;
	case 'H': put_number(to, 2, civil->hour); break;
	case 'M': put_number(to, 2, civil->minute); break;
	case 'S': put_number(to, 2, civil->second); break;
	case 'j': put_number(to, 3, civil->year_day); break;
	case 'u': put_number(to, 1, civil->week_day); break;
	case 'G': put_number(to, 4, iso_year); break;
	case 'V': put_number(to, 2, week); break;
	case '%': *to = '%'; break;
	case 'F':
		put_number(to, 4, civil->date.year);
		to[4] = '-';
		put_number(to + 5, 2, civil->date.month);
		to[7] = '-';
		put_number(to + 8, 2, civil->date.day);
		break;
	case 'T':
		put_number(to, 2, civil->hour);
		to[2] = ':';
		put_number(to + 3, 2, civil->minute);
		to[5] = ':';
		put_number(to + 6, 2, civil->second);
		break;
	default: assert(false);
	}
}

size_t hx_date_format(struct hapax_bytes format, int64_t ms, char out[HX_DATE_TEXT_MAX])
{
	static const int64_t begin_ms = INT64_C(-62135596800000); /* year 1 */
	static const int64_t end_ms = INT64_C(253402214400000);   /* the last day of year 9999 */
	const char *text = format.data;
	struct civil civil;
	size_t size = 0;

	if (ms < begin_ms + 7 * (int64_t)MS_PER_DAY || ms >= end_ms - 7 * (int64_t)MS_PER_DAY)
		return 0; /* a week from either end, so that the ISO year also has four digits */
	civil_of(ms, &civil);
	for (size_t i = 0; i < format.size; i++) {
		if (text[i] != '%') {
			out[size++] = text[i];
			continue;
		}
		i++;
		put_conversion(text[i], &civil, out + size);
		size += width_of(text[i]);
	}
	assert(size <= HX_DATE_TEXT_MAX);
	return size;
}

/* Read count digits at *at as a number between low and high. */
static bool read_number(
	const char *text, size_t size, size_t *at, size_t count, int low, int high, int *ret)
{
	int value = 0;

	if (size - *at < count)
		return false;
	for (size_t i = 0; i < count; i++) {
		char digit = text[*at + i];

		if (digit < '0' || digit > '9')
			return false;
		value = value * 10 + (digit - '0');
	}
	*at += count;
	*ret = value;
	return value >= low && value <= high;
}

static bool read_byte(const char *text, size_t size, size_t *at, const char *one_of)
{
	if (*at == size || text[*at] == '\0' || strchr(one_of, text[*at]) == NULL)
		return false;
	(*at)++;
	return true;
}

/* .123456 as whole milliseconds, rounded down; 0 without a fraction. */
static bool read_fraction(const char *text, size_t size, size_t *at, int *ret_ms)
{
	int scale = 100;
	size_t begin;

	*ret_ms = 0;
	if (!read_byte(text, size, at, "."))
		return true;
	begin = *at;
	while (*at < size && text[*at] >= '0' && text[*at] <= '9') {
		*ret_ms += scale * (text[*at] - '0');
		scale /= 10;
		(*at)++;
	}
	return *at > begin;
}

/* Z or +hh:mm, in minutes. */
static bool read_offset(const char *text, size_t size, size_t *at, int *ret_minutes)
{
	int hours;
	int minutes;
	bool negative = *at < size && text[*at] == '-';

	*ret_minutes = 0;
	if (read_byte(text, size, at, "Zz"))
		return true;
	if (!read_byte(text, size, at, "+-") || !read_number(text, size, at, 2, 0, 23, &hours) ||
	    !read_byte(text, size, at, ":") || !read_number(text, size, at, 2, 0, 59, &minutes))
		return false;
	*ret_minutes = (hours * 60 + minutes) * (negative ? -1 : 1);
	return true;
}

bool hx_date_parse(struct hapax_bytes bytes, int64_t *ret_ms)
{
	const char *text = bytes.data;
	size_t size = bytes.size;
	size_t at = 0;
	struct civil c = {0};
	int64_t days;
	int fraction_ms;
	int offset;

	if (!read_number(text, size, &at, 4, 1, 9999, &c.date.year) ||
	    !read_byte(text, size, &at, "-") ||
	    !read_number(text, size, &at, 2, 1, 12, &c.date.month) ||
	    !read_byte(text, size, &at, "-") ||
	    !read_number(text, size, &at, 2, 1, 31, &c.date.day) ||
	    !read_byte(text, size, &at, "Tt ") ||
	    !read_number(text, size, &at, 2, 0, 23, &c.hour) || !read_byte(text, size, &at, ":") ||
	    !read_number(text, size, &at, 2, 0, 59, &c.minute) ||
	    !read_byte(text, size, &at, ":") ||
	    !read_number(text, size, &at, 2, 0, 60, &c.second) ||
	    !read_fraction(text, size, &at, &fraction_ms) ||
	    !read_offset(text, size, &at, &offset) || at != size)
		return false;
	days = hx_calendar_day(c.date);
	if (hx_calendar_date(days).day != c.date.day)
		return false; /* 30 February */
	*ret_ms = days * MS_PER_DAY + ((int64_t)c.hour * 60 + c.minute - offset) * 60000 +
		(int64_t)c.second * 1000 + fraction_ms;
	return true;
}
