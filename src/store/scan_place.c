/* SPDX-License-Identifier: Apache-2.0 */
#include "store/scan_place.h"

#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/record.h"

enum { PARTS = 3, PARTITION_AT = 2 * PARTS, HEAD_SIZE = PARTITION_AT + 2 };

_Static_assert(
	HEAD_SIZE + 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX <
		sizeof(((struct hapax_cursor *)0)->place),
	"any place fits a cursor");

static void put_u16(unsigned char *at, size_t number)
{
	at[0] = (unsigned char)number;
	at[1] = (unsigned char)(number >> 8);
}

static size_t get_u16(const unsigned char *at)
{
	return (size_t)at[0] | (size_t)at[1] << 8;
}

static bool fits(const struct hx_scan_place *place)
{
	return place->tenant.size <= HX_SCOPE_PART_SIZE_MAX &&
		place->group.size <= HX_SCOPE_PART_SIZE_MAX && place->key.size <= HX_KEY_SIZE_MAX;
}

struct hx_scan_place hx_scan_place_first(const struct hapax_scan *scan)
{
	struct hx_scan_place place = {.tenant = scan->tenant};

	if (scan->tenant.size != 0)
		place.group = scan->group;
	if (place.group.size != 0)
		place.key = scan->prefix;
	return place;
}

bool hx_scan_place_put(
	struct hapax_cursor *cursor, unsigned partition, const struct hx_scan_place *place)
{
	const struct hapax_bytes parts[PARTS] = {place->tenant, place->group, place->key};
	struct hapax_cursor next = {.size = HEAD_SIZE};

	if (!fits(place))
		return false;
	put_u16(next.place + PARTITION_AT, partition);
	for (size_t i = 0; i < PARTS; i++) {
		put_u16(next.place + 2 * i, parts[i].size);
		if (parts[i].size > 0)
			memcpy(next.place + next.size, parts[i].data, parts[i].size);
		next.size += (uint32_t)parts[i].size;
	}
	*cursor = next;
	return true;
}

bool hx_scan_place_get(const struct hapax_cursor *cursor, struct hx_scan_place *ret_place)
{
	const unsigned char *at = cursor->place;
	const unsigned char *names = at + HEAD_SIZE;

	ret_place->tenant = hx_bytes(names, get_u16(at));
	ret_place->group = hx_bytes(names + ret_place->tenant.size, get_u16(at + 2));
	ret_place->key =
		hx_bytes(names + ret_place->tenant.size + ret_place->group.size, get_u16(at + 4));
	return fits(ret_place) &&
		cursor->size ==
		HEAD_SIZE + ret_place->tenant.size + ret_place->group.size + ret_place->key.size;
}

unsigned hx_scan_place_partition(const struct hapax_cursor *cursor)
{
	return cursor->size < HEAD_SIZE ? 0 : (unsigned)get_u16(cursor->place + PARTITION_AT);
}

static bool has_prefix(struct hapax_bytes key, struct hapax_bytes prefix)
{
	return key.size >= prefix.size && hx_bytes_equal(hx_bytes(key.data, prefix.size), prefix);
}

bool hx_scan_place_accepts(
	const struct hapax_scan *scan, const struct hapax_record *record, int64_t now_ms)
{
	if (!(scan->flags & HAPAX_SCAN_EXPIRED) && hx_record_is_expired(record, now_ms))
		return false;
	if (scan->state != HAPAX_STATE_ABSENT && scan->state != record->state)
		return false;
	if (scan->tenant.size != 0 && !hx_bytes_equal(scan->tenant, record->tenant))
		return false;
	if (scan->group.size != 0 && !hx_bytes_equal(scan->group, record->group))
		return false;
	return has_prefix(record->key, scan->prefix);
}

bool hx_scan_place_is_behind(const struct hapax_scan *scan, const struct hx_scan_place *place)
{
	if (scan->tenant.size == 0 || scan->group.size == 0)
		return false;
	if (!hx_bytes_equal(scan->tenant, place->tenant) ||
	    !hx_bytes_equal(scan->group, place->group))
		return true;
	return !has_prefix(place->key, scan->prefix) &&
		hx_bytes_compare(place->key, scan->prefix) > 0;
}
