/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_keys.c - hapax keys: list the records.
 *
 * The listing is read and printed a page at a time. It needs the memory of one page and shows the
 * first rows at once. A signal, a full disk or a closed reader stops it between two rows.
 */
#include <inttypes.h>

#include <hapax/hapax.h>

#include "base/duration.h"
#include "base/macros.h"
#include "cli/print/columns.h"
#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "cli/input/key_text.h"
#include "cli/print/record_out.h"
#include "cli/frame/report.h"

enum { PAGE_ROWS = 1000 };

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

struct listing {
	struct hx_invocation *inv;
	struct hx_columns table;
	int64_t now_ms;
	uint64_t count_max;
	uint64_t count;
	bool has_more; /* than count_max */
};

static void add_row(struct listing *listing, const struct hapax_record *record)
{
	struct hx_columns *table = &listing->table;
	char scope[HX_SCOPE_SIZE_MAX];
	char span[HX_DURATION_TEXT_SIZE];

	hx_columns_bytes(table, record->key);
	hx_columns_bytes(table, hx_record_out_scope(record->tenant, record->group, scope));
	hx_columns_text(table, hx_record_out_color(record->state), hapax_state_name(record->state));
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

static int each(const struct hapax_record *record, void *context)
{
	struct listing *listing = context;
	struct hx_json_write json;

	if (listing->count == listing->count_max) {
		listing->has_more = true;
		return 1;
	}
	listing->count++;
	if (listing->inv->settings.format == HX_FORMAT_TEXT) {
		add_row(listing, record);
	} else {
		hx_out_json(&json, &listing->inv->out);
		hx_json_write_begin(&json, NULL, '{');
		hx_record_out_name(&json, record->tenant, record->group, record->key);
		hx_record_write_json(&json, record, HX_RECORD_JSON_BRIEF);
		hx_json_write_end(&json, '}');
	}
	return hx_interrupt_signal() != 0 || listing->inv->out.os_errno != 0;
}

static int print_pages(struct listing *listing, struct hapax_store *store, struct hapax_scan *scan)
{
	struct hx_invocation *inv = listing->inv;
	struct hapax_cursor cursor = {.size = 0};
	struct hapax_error err;

	do {
		if (hapax_store_scan(store, scan, &cursor, each, listing, &err) != HAPAX_OK)
			return hx_report_error(inv->command->name, &err);
		if (inv->settings.format == HX_FORMAT_TEXT &&
		    hx_columns_print(&listing->table, &inv->out) != HAPAX_OK) {
			hx_report(inv->command->name, "not enough memory");
			return HX_EXIT_OS;
		}
		if (hx_interrupt_signal() != 0)
			return HX_EXIT_SIGNAL + hx_interrupt_signal();
	} while (!cursor.done && !listing->has_more && inv->out.os_errno == 0);
	return HX_EXIT_OK;
}

static void print_total(const struct listing *listing)
{
	if (listing->inv->out.os_errno != 0)
		return;
	if (listing->has_more)
		hx_report_line("only the first %" PRIu64 " keys are shown", listing->count);
	else if (listing->inv->settings.format == HX_FORMAT_TEXT)
		hx_report_line("%" PRIu64 " key%s", listing->count, listing->count == 1 ? "" : "s");
}

static int list(struct hx_invocation *inv, struct hapax_scan *scan, uint64_t count_max)
{
	struct listing listing = {.inv = inv, .count_max = count_max};
	struct hapax_store *store;
	int code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);

	if (code != HX_EXIT_OK)
		return code;
	hx_interrupt_watch();
	listing.now_ms = hx_settings_now_ms(store);
	if (inv->settings.format == HX_FORMAT_TEXT)
		hx_report_line("store: %s", hapax_store_url(store));
	hx_columns_init(&listing.table, columns, HX_COUNT(columns));
	code = print_pages(&listing, store, scan);
	/* The rows first: on a terminal both streams share the screen. */
	hx_out_flush(&inv->out);
	if (code == HX_EXIT_OK)
		print_total(&listing);
	hx_columns_done(&listing.table);
	hapax_store_close(store);
	return code;
}

static int run_keys(struct hx_invocation *inv)
{
	const struct hx_option_value *state = hx_options_get(&inv->options, OPTION_STATE);
	const struct hx_option_value *prefix = hx_options_get(&inv->options, OPTION_PREFIX);
	const struct hx_option_value *limit = hx_options_get(&inv->options, OPTION_LIMIT);
	uint64_t count_max = limit != NULL ? (uint64_t)limit->number : UINT64_MAX;
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	int code = HX_EXIT_OK;

	scan.count_max = count_max < PAGE_ROWS ? (size_t)count_max + 1 : PAGE_ROWS;
	if (inv->settings.scope_given) {
		scan.tenant = inv->settings.tenant;
		scan.group = inv->settings.group;
	}
	if (state != NULL)
		scan.state = (enum hapax_state)(state->number + 1);
	if (prefix != NULL && prefix->text[0] != '\0')
		code = hx_key_text_read(inv->command->name, "--prefix", prefix->text, &scan.prefix);
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
