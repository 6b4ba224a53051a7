/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_place.h - the cursor and the filter of a scan, for stores that walk records by name.
 *
 * Such a store reads records in the order of tenant, group and key, in pages. The cursor holds
 * the place of the last record that was seen, and in a store of several partitions the number of
 * the one it is in:
 *
 *	sizes of tenant, group, key │ partition │ tenant │ group │ key		u16, little endian
 *
 *	from = hx_scan_place_first(scan);			a new scan, or
 *	if (cursor->size != 0 && !hx_scan_place_get(cursor, &from))
 *		it is another store's cursor
 *	for each record behind from:
 *		hx_scan_place_put(cursor, partition, &place of the record);
 *		if (hx_scan_place_is_behind(scan, &place)) the scan ends
 *		if (hx_scan_place_accepts(scan, &record, now_ms)) hand it out
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_STORE_SCAN_PLACE_H
#define HX_STORE_SCAN_PLACE_H

#include <stdbool.h>

#include <hapax/store.h>

struct hx_scan_place {
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	struct hapax_bytes key;
};

/* The first place that the scan can match. */
struct hx_scan_place hx_scan_place_first(const struct hapax_scan *scan);

/*
 * Remember the place, which may lie in the cursor. False: no record of hapax has such a name, so
 * the cursor stays. At least one byte of the cursor stays free behind the key.
 */
bool hx_scan_place_put(
	struct hapax_cursor *cursor, unsigned partition, const struct hx_scan_place *place);

/* Borrows from cursor. False: it was not made here. */
bool hx_scan_place_get(const struct hapax_cursor *cursor, struct hx_scan_place *ret_place);

/* 0 for a new cursor. */
unsigned hx_scan_place_partition(const struct hapax_cursor *cursor);

/* Does the record pass the filter? */
bool hx_scan_place_accepts(
	const struct hapax_scan *scan, const struct hapax_record *record, int64_t now_ms);

/* Is the place behind everything that the scan can match? */
bool hx_scan_place_is_behind(const struct hapax_scan *scan, const struct hx_scan_place *place);

#endif
