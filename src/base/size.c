/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.c - numbers of bytes as people write them.
 */
#include "base/size.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/error.h"

struct unit {
	const char *name;
	uint64_t bytes;
};

/* Large to small, and binary first: among equally short texts the first is written. */
static const struct unit units[] = {
	{"PiB", UINT64_C(1) << 50},
	{"TiB", UINT64_C(1) << 40},
	{"GiB", UINT64_C(1) << 30},
	{"MiB", UINT64_C(1) << 20},
	{"KiB", UINT64_C(1) << 10},
	{"PB", UINT64_C(1000000000000000)},
	{"TB", UINT64_C(1000000000000)},
	{"GB", UINT64_C(1000000000)},
	{"MB", UINT64_C(1000000)},
	{"KB", UINT64_C(1000)},
	{"kB", UINT64_C(1000)},
	{"", 1},
	{"B", 1},
};

enum { UNITS = HX_COUNT(units) };

/* How much of a wrong text is worth repeating in the message. */
enum { QUOTED_MAX = 48 };

static enum hapax_status size_refuse(
	struct hapax_bytes text, size_t position, const char *why, struct hapax_error *err)
{
	int quoted = text.size < QUOTED_MAX ? (int)text.size : QUOTED_MAX;

	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"invalid size '%.*s': %s at position %zu; use bytes, KiB, MB or GiB, as in 512 or "
		"64KiB",
		quoted, (const char *)text.data, why, position);
}

static const struct unit *find_unit(struct hapax_bytes name)
{
	for (size_t i = 0; i < UNITS; i++) {
		if (hx_bytes_equal(name, hapax_bytes_from_text(units[i].name)))
			return &units[i];
	}
	return NULL;
}

enum hapax_status hx_size_parse(
	struct hapax_bytes text, uint64_t *ret_bytes, struct hapax_error *err)
{
	const unsigned char *bytes = text.data;
	const struct unit *unit;
	bool overflow = false;
	uint64_t value = 0;
	size_t end = 0;

	if (text.size == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid size '': it is empty; use bytes, KiB, MB or GiB, as in 512 or 64KiB");
	for (; end < text.size && bytes[end] >= '0' && bytes[end] <= '9'; end++) {
		overflow = overflow || hx_mul_u64(value, 10, &value) ||
			hx_add_u64(value, (uint64_t)(bytes[end] - '0'), &value);
	}
	unit = find_unit(hx_bytes(bytes + end, text.size - end));
	if (end == 0)
		return size_refuse(text, 0, "expected a whole number", err);
	if (unit == NULL)
		return size_refuse(text, end, "expected a unit", err);
	if (overflow || hx_mul_u64(value, unit->bytes, &value))
		return size_refuse(text, 0, "number is too large", err);
	*ret_bytes = value;
	return HAPAX_OK;
}

void hx_size_format(uint64_t bytes, char out[HX_SIZE_TEXT_SIZE])
{
	char text[HX_SIZE_TEXT_SIZE];
	size_t shortest = SIZE_MAX;

	if (bytes == 0) {
		memcpy(out, "0", sizeof("0"));
		return;
	}
	for (size_t i = 0; i < UNITS; i++) {
		if (bytes % units[i].bytes != 0)
			continue;
		(void)snprintf(
			text, sizeof(text), "%" PRIu64 "%s", bytes / units[i].bytes, units[i].name);
		if (strlen(text) < shortest) {
			shortest = strlen(text);
			memcpy(out, text, sizeof(text));
		}
	}
}
