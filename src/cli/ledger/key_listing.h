/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_listing.h - the records of a store, in rows or as JSON documents.
 *
 * The listing is read and printed a page at a time. It needs the memory of one page and shows the
 * first rows at once. A signal, a full disk or a closed reader stops it between two rows.
 *
 *	struct hx_key_listing listing = {
 *		.inv = inv, .columns = columns, .column_count = HX_COUNT(columns),
 *		.add_cells = add_cells, .count_max = UINT64_MAX};
 *
 *	code = hx_key_listing_print(&listing, store, &scan);
 *
 * Threads: the main thread.
 */
#ifndef HX_CLI_LEDGER_KEY_LISTING_H
#define HX_CLI_LEDGER_KEY_LISTING_H

#include <hapax/store.h>

#include "cli/frame/command.h"
#include "cli/print/columns.h"

enum { HX_KEY_LISTING_PAGE_ROWS = 1000 };

struct hx_key_listing {
	struct hx_invocation *inv;
	const struct hx_column *columns; /* the first three are key, scope and state */
	size_t column_count;
	/* Add the other cells of a row. */
	void (*add_cells)(struct hx_key_listing *listing, const struct hapax_record *record);
	/* Add members to the document of a record; NULL: none. */
	void (*add_members)(struct hx_json_write *json, const struct hapax_record *record);
	uint64_t count_max;
	struct hx_columns table;
	int64_t now_ms; /* by the clock of the store */
	uint64_t count;
	bool has_more; /* than count_max */
};

/* Add the cells key and scope. */
void hx_key_listing_add_name(struct hx_columns *table, const struct hapax_record *record);

/* Print all that scan finds in store, and how many they are. Returns the exit code. */
int hx_key_listing_print(
	struct hx_key_listing *listing, struct hapax_store *store, const struct hapax_scan *scan);

#endif
