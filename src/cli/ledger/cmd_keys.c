/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_keys.c - hapax keys: list the records.
 */
#include <hapax/hapax.h>

#include "base/duration.h"
#include "base/macros.h"
#include "cli/input/key_text.h"
#include "cli/frame/report.h"
#include "cli/ledger/key_listing.h"

enum {
	OPTION_STATE = 1,
	OPTION_PREFIX,
	OPTION_LIMIT,
};

/* In the order of enum hapax_state, from 1. */
static const char *const states[] = {"claimed", "done", "failed", "parked", NULL};

static const struct hx_option options[] = {
	{OPTION_STATE, "state", 0, HX_OPTION_CHOICE, "claimed|done|failed|parked",
	 "only keys in this state", states},
	{OPTION_PREFIX, "prefix", 0, HX_OPTION_TEXT, "P", "only keys that start with P", NULL},
	{OPTION_LIMIT, "limit", 'n', HX_OPTION_COUNT, "N", "at most N keys", NULL},
	{.name = NULL},
};

static const struct hx_column columns[] = {
	{"KEY", false},    {"SCOPE", false}, {"STATE", false},
	{"ATTEMPT", true}, {"AGE", true},    {"EXPIRES-IN", true},
};

static void add_cells(struct hx_key_listing *listing, const struct hapax_record *record)
{
	struct hx_columns *table = &listing->table;
	char span[HX_DURATION_TEXT_SIZE];

	hx_columns_count(table, record->attempt);
	hx_duration_span(listing->now_ms - record->first_seen_ms, span);
	hx_columns_text(table, HX_COLOR_NONE, span);
	if (record->state == HAPAX_STATE_CLAIMED || record->state == HAPAX_STATE_PARKED) {
		hx_columns_text(table, HX_COLOR_NONE, "-");
	} else if (record->expires_ms == HAPAX_TIME_NEVER) {
		hx_columns_text(table, HX_COLOR_NONE, "never");
	} else {
		hx_duration_span(record->expires_ms - listing->now_ms, span);
		hx_columns_text(table, HX_COLOR_NONE, span);
	}
}

static int list(struct hx_invocation *inv, const struct hapax_scan *scan, uint64_t count_max)
{
	struct hx_key_listing listing = {
		.inv = inv,
		.columns = columns,
		.column_count = HX_COUNT(columns),
		.add_cells = add_cells,
		.count_max = count_max,
	};
	struct hapax_store *store;
	int code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);

	if (code != HX_EXIT_OK)
		return code;
	if (inv->settings.format == HX_FORMAT_TEXT)
		hx_report_line("store: %s", hapax_store_url(store));
	code = hx_key_listing_print(&listing, store, scan);
	hapax_store_close(store);
	return code;
}

static int run_keys(struct hx_invocation *inv)
{
	const struct hx_option_value *state = hx_options_get(&inv->options, OPTION_STATE);
	const char *prefix = hx_options_text(&inv->options, OPTION_PREFIX);
	int64_t limit = hx_options_number(&inv->options, OPTION_LIMIT);
	uint64_t count_max = limit != 0 ? (uint64_t)limit : UINT64_MAX;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	int code = HX_EXIT_OK;

	scan.count_max = count_max < HX_KEY_LISTING_PAGE_ROWS ? (size_t)count_max + 1
							      : HX_KEY_LISTING_PAGE_ROWS;
	if (inv->settings.scope_given) {
		scan.tenant = inv->settings.tenant;
		scan.group = inv->settings.group;
	}
	if (state != NULL)
		scan.state = (enum hapax_state)(state->number + 1);
	if (prefix != NULL && prefix[0] != '\0')
		code = hx_key_text_read(inv->command->name, "--prefix", prefix, &scan.prefix);
	return code == HX_EXIT_OK ? list(inv, &scan, count_max) : code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "the keys were listed"},
	{HX_EXIT_SIGNAL, "and above: a signal stopped the listing (130: INT, 143: TERM)"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax keys", "list all keys"},
	{"hapax keys --state done --prefix order- --limit 20", "list some of them"},
	{"hapax keys -o json | head -n 3", "print one JSON document per line"},
	{NULL, NULL},
};

const struct command hx_cmd_keys = {
	.name = "keys",
	.summary = "list keys",
	.usage = "[--state S] [--prefix P] [--limit N] [OPTION]...",
	.description =
		"Lists the records that have not expired, in all scopes or in the one of --scope, in no\n"
		"particular order. With -o json, prints one JSON document per line. Control characters in\n"
		"a key are escaped as in C (\\x07), or as \\u0007 in JSON; there, a key that is not UTF-8\n"
		"is key_base64.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_keys,
};
