/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_journal.c - hapax journal: keys that ran while the store was unavailable, and which ran
 * twice.
 */
#include <inttypes.h>
#include <string.h>

#include <hapax/hapax.h>
#include <hapax/outage.h>

#include "base/duration.h"
#include "base/macros.h"
#include "cli/ledger/key_listing.h"
#include "cli/frame/interrupt.h"
#include "wire/json/json_write.h"
#include "cli/frame/progress.h"
#include "cli/print/record_out.h"
#include "cli/frame/report.h"

enum { JOURNALS_MAX = 256 };

/* The journal issues tokens above this; outage.h keeps them apart. */
#define JOURNAL_TOKEN (UINT64_C(1) << 52)

static const char *claim_of(const struct hapax_record *record)
{
	return record->token > JOURNAL_TOKEN ? "journal" : "store";
}

/* ------------------------------------------------------------------ list */

static const struct hx_column list_columns[] = {
	{"KEY", false}, {"SCOPE", false}, {"STATE", false}, {"CLAIM", false}, {"AGE", true},
};

static void add_cells(struct hx_key_listing *listing, const struct hapax_record *record)
{
	char span[HX_DURATION_TEXT_SIZE];

	hx_columns_text(&listing->table, HX_COLOR_NONE, claim_of(record));
	hx_duration_span(listing->now_ms - record->first_seen_ms, span);
	hx_columns_text(&listing->table, HX_COLOR_NONE, span);
}

static void add_members(struct hx_json_write *json, const struct hapax_record *record)
{
	hx_json_write_text(json, "claim", claim_of(record));
}

static int run_list(struct hx_invocation *inv)
{
	struct hx_key_listing listing = {
		.inv = inv,
		.columns = list_columns,
		.column_count = HX_COUNT(list_columns),
		.add_cells = add_cells,
		.add_members = add_members,
		.count_max = UINT64_MAX,
	};
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_store *journal = NULL;
	int code = hx_settings_open_url(inv, inv->options.operands[0], HX_OPEN_EXISTING, &journal);

	if (code != HX_EXIT_OK)
		return code;
	scan.count_max = HX_KEY_LISTING_PAGE_ROWS;
	code = hx_key_listing_print(&listing, journal, &scan);
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
	struct hx_progress progress;
	const char *journal;
	uint64_t count; /* of this journal, so far */
	uint64_t total; /* in this journal at the beginning */
	uint64_t rows;  /* that wait to be printed */
	bool has_any;   /* in any journal */
	enum hapax_status status;
};

static enum hx_color color_of(enum hapax_reconciled verdict)
{
	switch (verdict) {
	case HAPAX_RECONCILED_KEPT: return HX_COLOR_GREEN;
	case HAPAX_RECONCILED_TWICE:
	case HAPAX_RECONCILED_MISMATCH: return HX_COLOR_RED;
	case HAPAX_RECONCILED_FAILED:
	case HAPAX_RECONCILED_LATER: break;
	}
	return HX_COLOR_YELLOW;
}

/* Rows are printed a page at a time; a journal may hold millions. */
static void print_rows(struct reconciling *work)
{
	hx_progress_done(&work->progress);
	if (work->inv->settings.format == HX_FORMAT_TEXT && work->status == HAPAX_OK)
		work->status = hx_columns_print(&work->table, &work->inv->out);
	hx_out_flush(&work->inv->out);
	work->rows = 0;
}

static void print_json(
	struct reconciling *work, const struct hapax_record *record, enum hapax_reconciled verdict)
{
	struct hx_json_write json;

	hx_out_json(&json, &work->inv->out);
	hx_record_out_name(&json, record->tenant, record->group, record->key);
	hx_json_write_text(&json, "became", hapax_reconciled_name(verdict));
	hx_json_write_text(&json, "journal", work->journal);
	hx_json_write_end(&json, '}');
}

static void reconcile_each(
	const struct hapax_record *record, enum hapax_reconciled verdict, void *context)
{
	struct reconciling *work = context;
	struct hx_columns *table = &work->table;

	if (work->inv->settings.format == HX_FORMAT_JSON) {
		print_json(work, record, verdict);
	} else {
		hx_key_listing_add_name(table, record);
		hx_columns_text(table, color_of(verdict), hapax_reconciled_name(verdict));
		hx_columns_text(table, HX_COLOR_NONE, work->journal);
	}
	work->has_any = true;
	work->count++;
	if (++work->rows == HX_KEY_LISTING_PAGE_ROWS)
		print_rows(work);
	hx_progress_bar(&work->progress, "records", work->count, work->total);
}

static int reconcile_one(
	struct reconciling *work, struct hapax_store *store, struct hapax_reconcile *reconcile)
{
	struct hx_invocation *inv = work->inv;
	struct hapax_store *journal = NULL;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_error err;
	enum hapax_status status;
	int code = hx_settings_open_url(inv, work->journal, HX_OPEN_EXISTING, &journal);

	if (code != HX_EXIT_OK)
		return code;
	work->count = 0;
	status = hapax_store_stats(journal, &stats, NULL, NULL, &err);
	work->total = stats.keys;
	if (status == HAPAX_OK)
		status = hapax_journal_reconcile(journal, store, reconcile, &err);
	hapax_store_close(journal);
	print_rows(work);
	if (status != HAPAX_OK)
		return hx_report_error(inv->command->name, &err);
	if (work->status != HAPAX_OK)
		return hx_report_no_memory(inv->command->name);
	return HX_EXIT_OK;
}

static void print_counts(const struct hapax_reconcile *reconcile)
{
	hx_report_line(
		"%" PRIu64 " kept, %" PRIu64 " ran twice, %" PRIu64
		" with a different payload, %" PRIu64 " failed, %" PRIu64 " for later",
		reconcile->counts[HAPAX_RECONCILED_KEPT], reconcile->counts[HAPAX_RECONCILED_TWICE],
		reconcile->counts[HAPAX_RECONCILED_MISMATCH],
		reconcile->counts[HAPAX_RECONCILED_FAILED],
		reconcile->counts[HAPAX_RECONCILED_LATER]);
}

static int run_reconcile(struct hx_invocation *inv)
{
	struct reconciling work = {.inv = inv};
	struct hapax_reconcile reconcile = HAPAX_RECONCILE_INIT;
	struct hapax_store *store = NULL;
	int code = hx_settings_open(inv, HX_OPEN_CREATE, &store);

	if (code != HX_EXIT_OK)
		return code;
	hx_progress_init(&work.progress);
	hx_interrupt_watch();
	reconcile.each = reconcile_each;
	reconcile.context = &work;
	hx_columns_init(&work.table, reconcile_columns, HX_COUNT(reconcile_columns));
	for (size_t i = 0; i < inv->options.operand_count && code == HX_EXIT_OK; i++) {
		work.journal = inv->options.operands[i];
		code = reconcile_one(&work, store, &reconcile);
		if (code == HX_EXIT_OK && hx_interrupt_signal() != 0)
			code = HX_EXIT_SIGNAL + hx_interrupt_signal();
	}
	/* Also after an error: keys settled so far stay settled. */
	if (inv->settings.format == HX_FORMAT_TEXT && (code == HX_EXIT_OK || work.has_any))
		print_counts(&reconcile);
	hx_columns_done(&work.table);
	hapax_store_close(store);
	return code;
}

/* ------------------------------------------------------------------ the command */

static const struct command_exit list_exits[] = {
	{HX_EXIT_OK, "the journal was listed"},
	{HX_EXIT_SIGNAL, "and above: a signal stopped it (130: INT, 143: TERM)"},
	{0, NULL},
};

static const struct command_exit reconcile_exits[] = {
	{HX_EXIT_OK, "every journal was reconciled, with or without conflicts"},
	{HX_EXIT_SIGNAL, "and above: a signal stopped it between journals (130: INT, 143: TERM)"},
	{0, NULL},
};

static const struct command_action actions[] = {
	{.name = "list",
	 .summary = "list the keys in a journal",
	 .usage = "JOURNAL [OPTION]...",
	 .description =
		 "Lists the keys that ran while the store was unavailable and that have not been\n"
		 "reconciled. JOURNAL is the URL in the setting store.journal of the daemon.\n",
	 .operands = {1, 1},
	 .exits = list_exits,
	 .run = run_list},
	{.name = "reconcile",
	 .summary = "move the keys of journals to the store, and report conflicts",
	 .usage = "JOURNAL... [OPTION]...",
	 .description =
		 "Records the keys of each journal in the store as done, and reports what became of\n"
		 "each key: kept, ran twice, ran with a different payload, failed, or left for later.\n"
		 "It is safe to repeat. A daemon reconciles its own journal when the store is\n"
		 "available again; use this for daemons that did not return.\n",
	 .operands = {1, JOURNALS_MAX},
	 .exits = reconcile_exits,
	 .run = run_reconcile},
	{.name = NULL},
};

static const struct command_example examples[] = {
	{"hapax journal list sqlite:journal.db", "the keys that ran during an outage"},
	{"hapax journal reconcile sqlite:a.db sqlite:b.db --store \"$HAPAX_STORE\"",
	 "move the keys of two daemons to the store; see which ran twice"},
	{NULL, NULL},
};

const struct command hx_cmd_journal = {
	.name = "journal",
	.summary = "list and reconcile what ran while the store was unavailable",
	.usage = "ACTION JOURNAL... [OPTION]...",
	.description =
		"A daemon with 'on_store_failure: continue' records the keys that it runs while its\n"
		"store is unavailable in a journal, and reconciles them when the store is available\n"
		"again.\n",
	.flags = COMMAND_STORE | COMMAND_STORE_OPERANDS,
	.exits = list_exits,
	.examples = examples,
	.actions = actions,
};
