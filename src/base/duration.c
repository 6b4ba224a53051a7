/* SPDX-License-Identifier: Apache-2.0 */
/*
 * duration.c - lengths of time as people write them.
 */
#include "base/duration.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/error.h"

struct unit {
	const char *name;
	int64_t ms;
};

/* Largest first: the order in which they are written, and read. */
static const struct unit units[] = {
	{"w", INT64_C(7) * 24 * 3600 * 1000},
	{"d", INT64_C(24) * 3600 * 1000},
	{"h", INT64_C(3600) * 1000},
	{"m", INT64_C(60) * 1000},
	{"s", 1000},
	{"ms", 1},
};

enum { UNITS = HX_COUNT(units) };

/* How much of a wrong text is worth repeating in the message. */
enum { QUOTED_MAX = 48 };

static enum hapax_status duration_refuse(
	struct hapax_bytes text, size_t position, const char *why, struct hapax_error *err)
{
	int quoted = text.size < QUOTED_MAX ? (int)text.size : QUOTED_MAX;

	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"invalid duration '%.*s': %s at position %zu; use w, d, h, m, s or ms, as in 90s "
		"or 1h30m",
		quoted, (const char *)text.data, why, position);
}

static bool is_digit(unsigned char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Where the run of digits, or of anything else, that begins at position ends. */
static size_t run_end(struct hapax_bytes text, size_t position, bool digits)
{
	const unsigned char *bytes = text.data;

	while (position < text.size && is_digit(bytes[position]) == digits)
		position++;
	return position;
}

/* False when it does not fit. */
static bool read_number(struct hapax_bytes digits, int64_t *ret)
{
	const unsigned char *bytes = digits.data;
	int64_t value = 0;

	for (size_t i = 0; i < digits.size; i++) {
		if (hx_mul_i64(value, 10, &value) || hx_add_i64(value, bytes[i] - '0', &value))
			return false;
	}
	*ret = value;
	return true;
}

/*
 * Add the fraction of unit that digits name, at most nine of them. False if that is not a whole number
 * of milliseconds.
 */
static bool add_fraction(struct hapax_bytes digits, const struct unit *unit, int64_t *value)
{
	int64_t numerator = 0;
	int64_t denominator = 1;

	if (digits.size > 9 || !read_number(digits, &numerator))
		return false;
	for (size_t i = 0; i < digits.size; i++)
		denominator *= 10;
	/* A week has fewer than 10^9 ms: the product fits. */
	numerator *= unit->ms;
	return numerator % denominator == 0 && !hx_add_i64(*value, numerator / denominator, value);
}

/* The index of the unit with this name, or UNITS. */
static size_t find_unit(struct hapax_bytes name)
{
	size_t i = 0;

	while (i < UNITS && !hx_bytes_equal(name, hapax_bytes_from_text(units[i].name)))
		i++;
	return i;
}

enum hapax_status hx_duration_parse(
	struct hapax_bytes text, int64_t *ret_ms, struct hapax_error *err)
{
	const unsigned char *bytes = text.data;
	size_t position = 0, unit_next = 0;
	int64_t total = 0;

	if (text.size == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid duration '': it is empty; use w, d, h, m, s or ms, as in 90s or 1h30m");
	while (position < text.size) {
		size_t point = run_end(text, position, true);
		bool has_point = point > position && point < text.size && bytes[point] == '.';
		size_t fraction = point + has_point;
		size_t unit_at = has_point ? run_end(text, fraction, true) : point;
		size_t end = run_end(text, unit_at, false);
		size_t unit = find_unit(hx_bytes(bytes + unit_at, end - unit_at));
		int64_t value;

		if (point == position)
			return duration_refuse(text, position, "expected a number", err);
		if (has_point && unit_at == fraction)
			return duration_refuse(text, unit_at, "expected a digit", err);
		if (unit == UNITS)
			return duration_refuse(text, unit_at, "expected a unit", err);
		if (unit < unit_next)
			return duration_refuse(text, unit_at, "expected a smaller unit", err);
		if (!read_number(hx_bytes(bytes + position, point - position), &value) ||
		    hx_mul_i64(value, units[unit].ms, &value))
			return duration_refuse(text, position, "number is too large", err);
		if (!add_fraction(
			    hx_bytes(bytes + fraction, unit_at - fraction), &units[unit], &value))
			return duration_refuse(text, fraction, "expected whole milliseconds", err);
		if (hx_add_i64(total, value, &total))
			return duration_refuse(text, position, "number is too large", err);
		unit_next = unit + 1;
		position = end;
	}
	*ret_ms = total;
	return HAPAX_OK;
}

static void format_one_unit(int64_t ms, char out[HX_DURATION_TEXT_SIZE])
{
	size_t unit = 0;

	while (ms % units[unit].ms != 0)
		unit++;
	(void)snprintf(
		out, HX_DURATION_TEXT_SIZE, "%" PRId64 "%s", ms / units[unit].ms, units[unit].name);
}

static void format_all_units(int64_t ms, char out[HX_DURATION_TEXT_SIZE])
{
	size_t size = 0;

	for (size_t unit = 0; unit < UNITS; unit++) {
		int64_t value = ms / units[unit].ms;

		ms %= units[unit].ms;
		if (value != 0)
			size += (size_t)snprintf(
				out + size, HX_DURATION_TEXT_SIZE - size, "%" PRId64 "%s", value,
				units[unit].name);
		assert(size < HX_DURATION_TEXT_SIZE);
	}
}

void hx_duration_format(int64_t ms, char out[HX_DURATION_TEXT_SIZE])
{
	char all[HX_DURATION_TEXT_SIZE];

	assert(ms >= 0);
	if (ms == 0) {
		memcpy(out, "0s", sizeof("0s"));
		return;
	}
	format_one_unit(ms, out);
	format_all_units(ms, all);
	if (strlen(all) < strlen(out))
		memcpy(out, all, sizeof(all));
}

void hx_duration_two_units(int64_t ms, char out[HX_DURATION_TEXT_SIZE])
{
	const struct unit *unit = &units[1]; /* days: weeks are not told */
	int64_t small;

	if (ms < 0)
		ms = 0;
	while (unit->ms > 1 && ms < unit->ms)
		unit++;
	small = unit->ms == 1 ? 0 : ms % unit->ms / unit[1].ms;
	if (small == 0)
		(void)snprintf(
			out, HX_DURATION_TEXT_SIZE, "%" PRId64 "%s", ms / unit->ms, unit->name);
	else
		(void)snprintf(
			out, HX_DURATION_TEXT_SIZE, "%" PRId64 "%s%" PRId64 "%s", ms / unit->ms,
			unit->name, small, unit[1].name);
}

void hx_duration_span(int64_t ms, char out[HX_DURATION_TEXT_SIZE])
{
	if (ms < 1000)
		memcpy(out, "<1s", 4);
	else
		hx_duration_two_units(ms - ms % 1000, out);
}
