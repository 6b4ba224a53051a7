/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_listing.c - the records of a store, in rows or as JSON documents.
 */
#include "cli/ledger/key_listing.h"

#include <inttypes.h>

#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"
#include "cli/print/record_out.h"
#include "cli/print/text.h"

void hx_key_listing_add_name(struct hx_columns *table, const struct hapax_record *record)
{
	char scope[HX_SCOPE_SIZE_MAX];

	hx_columns_bytes(table, record->key);
	hx_columns_bytes(table, hx_record_out_scope(record->tenant, record->group, scope));
}

static int each(const struct hapax_record *record, void *context)
{
	struct hx_key_listing *listing = context;
	struct hx_json_write json;

	if (listing->count == listing->count_max) {
		listing->has_more = true;
		return 1;
	}
	listing->count++;
	if (listing->inv->settings.format == HX_FORMAT_TEXT) {
		hx_key_listing_add_name(&listing->table, record);
		hx_columns_text(
			&listing->table, hx_record_out_color(record->state),
			hapax_state_name(record->state));
		listing->add_cells(listing, record);
	} else {
		hx_out_json(&json, &listing->inv->out);
		hx_record_out_name(&json, record->tenant, record->group, record->key);
		hx_record_write_json(&json, record, HX_RECORD_JSON_BRIEF);
		if (listing->add_members != NULL)
			listing->add_members(&json, record);
		hx_json_write_end(&json, '}');
	}
	return hx_interrupt_signal() != 0 || listing->inv->out.os_errno != 0;
}

static int print_pages(
	struct hx_key_listing *listing, struct hapax_store *store, const struct hapax_scan *scan)
{
	struct hx_invocation *inv = listing->inv;
	struct hapax_cursor cursor = {.size = 0};
	struct hapax_error err;

	do {
		if (hapax_store_scan(store, scan, &cursor, each, listing, &err) != HAPAX_OK)
			return hx_report_error(inv->command->name, &err);
		if (inv->settings.format == HX_FORMAT_TEXT &&
		    hx_columns_print(&listing->table, &inv->out) != HAPAX_OK)
			return hx_report_no_memory(inv->command->name);
		if (hx_interrupt_signal() != 0)
			return HX_EXIT_SIGNAL + hx_interrupt_signal();
	} while (!cursor.done && !listing->has_more && inv->out.os_errno == 0);
	return HX_EXIT_OK;
}

static void print_total(const struct hx_key_listing *listing)
{
	if (listing->inv->out.os_errno != 0)
		return;
	if (listing->has_more)
		hx_report_line(
			"only the first %" PRIu64 " key%s shown", listing->count,
			listing->count == 1 ? " is" : "s are");
	else if (listing->inv->settings.format == HX_FORMAT_TEXT)
		hx_report_line("%" PRIu64 " key%s", listing->count, hx_text_plural(listing->count));
}

int hx_key_listing_print(
	struct hx_key_listing *listing, struct hapax_store *store, const struct hapax_scan *scan)
{
	int code;

	hx_interrupt_watch();
	listing->now_ms = hx_settings_now_ms(store);
	hx_columns_init(&listing->table, listing->columns, listing->column_count);
	code = print_pages(listing, store, scan);
	/* The rows first: on a terminal both streams share the screen. */
	hx_out_flush(&listing->inv->out);
	if (code == HX_EXIT_OK)
		print_total(listing);
	hx_columns_done(&listing->table);
	return code;
}
