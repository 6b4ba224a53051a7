/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_journal.c - hapax journal: what nodes let through while the store was away, and
 * what of it ran twice.
 */
#include <inttypes.h>
#include <string.h>

#include <hapax/hapax.h>
#include <hapax/outage.h>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/record_out.h"
#include "cli/report.h"
#include "cli/text.h"

enum {
	PAGE_ROWS = 1000,
	JOURNALS_MAX = 256,
};

/* Tokens above this were given out by the journal; outage.h keeps them apart. */
#define JOURNAL_TOKEN (UINT64_C(1) << 52)

struct listing {
	struct hx_invocation *inv;
	struct hx_columns table;
	int64_t now_ms;
	uint64_t count;
};

static const char *claim_of(const struct hapax_record *record)
{
	return record->token > JOURNAL_TOKEN ? "journal" : "store";
}

/* ------------------------------------------------------------------ list */

static const struct hx_column list_columns[] = {
	{"KEY", false}, {"SCOPE", false}, {"STATE", false}, {"CLAIM", false}, {"AGE", true},
};

static int list_each(const struct hapax_record *record, void *context)
{
	struct listing *listing = context;
	struct hx_columns *table = &listing->table;
	char scope[HX_SCOPE_SIZE_MAX];
	char span[HX_TEXT_SIZE];
	struct hx_json_out json;

	listing->count++;
	if (listing->inv->settings.format == HX_FORMAT_JSON) {
		hx_json_out_init(&json, &listing->inv->out);
		hx_json_out_object_begin(&json, NULL);
		hx_record_out_json(&json, record, false);
		hx_json_out_text(&json, "claim", claim_of(record));
		hx_json_out_object_end(&json);
	} else {
		hx_columns_bytes(table, record->key);
		hx_columns_bytes(table, hx_record_out_scope(record->tenant, record->group, scope));
		hx_columns_text(
			table, hx_record_out_colour(record->state),
			hapax_state_name(record->state));
		hx_columns_text(table, HX_COLOUR_NONE, claim_of(record));
		hx_text_span(listing->now_ms - record->first_seen_ms, span);
		hx_columns_text(table, HX_COLOUR_NONE, span);
	}
	return hx_interrupt_signal() != 0 || listing->inv->out.os_errno != 0;
}

static int list_pages(struct listing *listing, struct hapax_store *journal)
{
	struct hx_invocation *inv = listing->inv;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {.size = 0};
	struct hapax_error err;

	scan.count_max = PAGE_ROWS;
	do {
		if (hapax_store_scan(journal, &scan, &cursor, list_each, listing, &err) != HAPAX_OK)
			return hx_report_error(inv->command->name, &err);
		if (inv->settings.format == HX_FORMAT_TEXT &&
		    hx_columns_print(&listing->table, &inv->out) != HAPAX_OK) {
			hx_report(inv->command->name, "memory ran out");
			return HX_EXIT_OS;
		}
		if (hx_interrupt_signal() != 0)
			return HX_EXIT_SIGNAL + hx_interrupt_signal();
	} while (!cursor.done && inv->out.os_errno == 0);
	return HX_EXIT_OK;
}

static int run_list(struct hx_invocation *inv, char **urls, size_t count)
{
	struct listing listing = {.inv = inv};
	struct hapax_store *journal = NULL;
	int code = hx_settings_open_url(inv, urls[0], HX_OPEN_EXISTING, &journal);

	(void)count;
	if (code != HX_EXIT_OK)
		return code;
	hx_interrupt_watch();
	listing.now_ms = hx_settings_now_ms(journal);
	hx_columns_init(
		&listing.table, list_columns, sizeof(list_columns) / sizeof(list_columns[0]));
	code = list_pages(&listing, journal);
	hx_out_flush(&inv->out);
	if (code == HX_EXIT_OK && inv->settings.format == HX_FORMAT_TEXT)
		hx_report_line("%" PRIu64 " key%s", listing.count, listing.count == 1 ? "" : "s");
	hx_columns_done(&listing.table);
	hapax_store_close(journal);
	return code;
}

/* ------------------------------------------------------------------ reconcile */

static const struct hx_column reconcile_columns[] = {
	{"KEY", false},
	{"SCOPE", false},
	{"BECAME", false},
	{"JOURNAL", false},
};

struct reconciling {
	struct hx_invocation *inv;
	struct hx_columns table;
	const char *journal;
};

static enum hx_colour colour_of(enum hapax_reconciled verdict)
{
	switch (verdict) {
	case HAPAX_RECONCILED_KEPT: return HX_COLOUR_GREEN;
	case HAPAX_RECONCILED_TWICE:
	case HAPAX_RECONCILED_MISMATCH: return HX_COLOUR_RED;
	case HAPAX_RECONCILED_FAILED:
	case HAPAX_RECONCILED_LATER: break;
	}
	return HX_COLOUR_YELLOW;
}

static void reconcile_each(
	const struct hapax_record *record, enum hapax_reconciled verdict, void *context)
{
	struct reconciling *work = context;
	char scope[HX_SCOPE_SIZE_MAX];
	struct hx_json_out json;

	if (work->inv->settings.format == HX_FORMAT_JSON) {
		hx_json_out_init(&json, &work->inv->out);
		hx_json_out_object_begin(&json, NULL);
		hx_record_out_name(&json, record->tenant, record->group, record->key);
		hx_json_out_text(&json, "became", hapax_reconciled_name(verdict));
		hx_json_out_text(&json, "journal", work->journal);
		hx_json_out_object_end(&json);
		return;
	}
	hx_columns_bytes(&work->table, record->key);
	hx_columns_bytes(&work->table, hx_record_out_scope(record->tenant, record->group, scope));
	hx_columns_text(&work->table, colour_of(verdict), hapax_reconciled_name(verdict));
	hx_columns_text(&work->table, HX_COLOUR_NONE, work->journal);
}

static int reconcile_one(
	struct reconciling *work, struct hapax_store *store, struct hapax_reconcile *reconcile)
{
	struct hx_invocation *inv = work->inv;
	struct hapax_store *journal = NULL;
	struct hapax_error err;
	int code = hx_settings_open_url(inv, work->journal, HX_OPEN_EXISTING, &journal);

	if (code != HX_EXIT_OK)
		return code;
	if (hapax_journal_reconcile(journal, store, reconcile, &err) != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	hapax_store_close(journal);
	if (inv->settings.format == HX_FORMAT_TEXT &&
	    hx_columns_print(&work->table, &inv->out) != HAPAX_OK && code == HX_EXIT_OK)
		code = HX_EXIT_OS;
	return code;
}

static void print_counts(const struct hapax_reconcile *reconcile)
{
	hx_report_line(
		"%" PRIu64 " kept, %" PRIu64 " ran twice, %" PRIu64
		" with another payload, %" PRIu64 " failed, %" PRIu64 " for later",
		reconcile->counts[HAPAX_RECONCILED_KEPT], reconcile->counts[HAPAX_RECONCILED_TWICE],
		reconcile->counts[HAPAX_RECONCILED_MISMATCH],
		reconcile->counts[HAPAX_RECONCILED_FAILED],
		reconcile->counts[HAPAX_RECONCILED_LATER]);
}

static int run_reconcile(struct hx_invocation *inv, char **urls, size_t count)
{
	struct reconciling work = {.inv = inv};
	struct hapax_reconcile reconcile = HAPAX_RECONCILE_INIT;
	struct hapax_store *store = NULL;
	int code = hx_settings_open(inv, HX_OPEN_CREATE, &store);

	if (code != HX_EXIT_OK)
		return code;
	hx_interrupt_watch();
	reconcile.each = reconcile_each;
	reconcile.context = &work;
	hx_columns_init(
		&work.table, reconcile_columns,
		sizeof(reconcile_columns) / sizeof(reconcile_columns[0]));
	for (size_t i = 0; i < count && code == HX_EXIT_OK; i++) {
		work.journal = urls[i];
		code = reconcile_one(&work, store, &reconcile);
		if (code == HX_EXIT_OK && hx_interrupt_signal() != 0)
			code = HX_EXIT_SIGNAL + hx_interrupt_signal();
	}
	hx_out_flush(&inv->out);
	if (inv->settings.format == HX_FORMAT_TEXT && code == HX_EXIT_OK)
		print_counts(&reconcile);
	hx_columns_done(&work.table);
	hapax_store_close(store);
	return code;
}

/* ------------------------------------------------------------------ the command */

static int run(struct hx_invocation *inv)
{
	const char *name = inv->options.operands[0];
	char **urls = inv->options.operands + 1;
	size_t count = inv->options.operand_count - 1;
	bool is_list = strcmp(name, "list") == 0;

	if (!is_list && strcmp(name, "reconcile") != 0) {
		(void)hx_report_usage(inv->command->name, "unknown action '%s'", name);
		hx_report_hint("there are list and reconcile");
		return HX_EXIT_USAGE;
	}
	if (count == 0 || (is_list && count > 1)) {
		(void)hx_report_usage(
			inv->command->name, "%s",
			count == 0 ? "the journal's URL was missing" : "list takes one journal");
		hx_report_hint(
			"usage: hapax journal %s",
			is_list ? "list JOURNAL" : "reconcile JOURNAL...");
		return HX_EXIT_USAGE;
	}
	return is_list ? run_list(inv, urls, count) : run_reconcile(inv, urls, count);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "it was listed or reconciled, whatever was found"},
	{HX_EXIT_SIGNAL, "and above: a signal ended it between two journals (130 INT, 143 TERM)"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax journal list sqlite:journal.db", "what was let through"},
	{"hapax journal reconcile sqlite:a.db sqlite:b.db --store \"$HAPAX_STORE\"",
         "write two nodes' journals into the store, and see what ran twice"},
	{NULL, NULL},
};

const struct command hx_cmd_journal = {
	.name = "journal",
	.summary = "list and reconcile what ran while the store was away",
	.usage = "list JOURNAL | reconcile JOURNAL...",
	.description =
		"A node that goes on while its store is away writes down in a journal what it let\n"
		"through, and reconciles it by itself when the store is back. For nodes that did\n"
		"not come back, reconcile does it: it writes what their journals hold into the\n"
		"store as done, and says of each key whether it was kept, ran twice, had another\n"
		"payload, failed, or has to wait. It may be repeated.\n",
	.flags = COMMAND_STORE,
	.operands_min = 1,
	.operands_max = JOURNALS_MAX + 1,
	.exits = exits,
	.examples = examples,
	.run = run,
};
