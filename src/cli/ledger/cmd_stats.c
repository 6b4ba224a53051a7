/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_stats.c - hapax stats: totals of a store, and its recent decisions.
 *
 * The store returns a row of counts per scope and hour, unordered. Rows of the last 24 hours are
 * collected; when the buffer is full and at the end, they are sorted by scope and added up. A store
 * shared by many processes may have more scopes than are useful; the last of them are shown as one.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "cli/print/columns.h"
#include "cli/frame/command.h"
#include "cli/print/record_out.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"
#include "wire/json/json_object.h"
#include "wire/record/stats_json.h"

#define HOUR_MS INT64_C(3600000)
enum { HOURS = 24 };

struct row {
	uint16_t scope_size;
	char scope[HX_SCOPE_SIZE_MAX];
	uint64_t counts[HAPAX_DECISION_COUNT];
};

/* 46 MB at most: this many scopes, and the same again for their hours. */
enum { SCOPES_MAX = 64 * 1024, ROWS_MAX = 2 * SCOPES_MAX };

static const char others[] = "other/other";

struct collector {
	const struct hx_settings *settings;
	struct hapax_buf rows; /* struct row */
	int64_t since_ms;
	bool is_crowded;          /* there were more than SCOPES_MAX scopes */
	enum hapax_status status; /* the first failure */
};

/* The conditions of a daemon. */
struct conditions {
	struct hapax_buf reply;
	struct hapax_buf text; /* of one member */
	struct hx_json_reader reader;
	bool are_known; /* false: a store by itself has none */
};

static int compare_rows(const void *a, const void *b)
{
	const struct row *left = a;
	const struct row *right = b;

	return hx_bytes_compare(
		hx_bytes(left->scope, left->scope_size), hx_bytes(right->scope, right->scope_size));
}

/* Sort, and add up the rows of each scope in place. Returns how many are left. */
static size_t add_up(struct row *rows, size_t count)
{
	size_t left = 0;

	if (count == 0)
		return 0;
	qsort(rows, count, sizeof(*rows), compare_rows);
	for (size_t i = 1; i < count; i++) {
		if (compare_rows(&rows[left], &rows[i]) != 0) {
			rows[++left] = rows[i];
			continue;
		}
		for (size_t d = 0; d < HAPAX_DECISION_COUNT; d++)
			rows[left].counts[d] += rows[i].counts[d];
	}
	return left + 1;
}

/* Merge all scopes above SCOPES_MAX into the last row. Returns how many are left. */
static size_t fold(struct row *rows, size_t count)
{
	for (size_t i = SCOPES_MAX; i < count; i++) {
		rows[i].scope_size = sizeof(others) - 1;
		memcpy(rows[i].scope, others, sizeof(others) - 1);
	}
	return add_up(rows, count);
}

static void compact(struct collector *collector)
{
	struct row *rows = (struct row *)(void *)collector->rows.data;
	size_t count = add_up(rows, collector->rows.size / sizeof(*rows));

	if (count > SCOPES_MAX) {
		count = fold(rows, count);
		collector->is_crowded = true;
	}
	collector->rows.size = count * sizeof(*rows);
}

static bool is_wanted(const struct collector *collector, const struct hapax_counters *counters)
{
	const struct hx_settings *settings = collector->settings;

	if (counters->hour_ms < collector->since_ms)
		return false;
	return !settings->scope_given ||
		(hx_bytes_equal(counters->tenant, settings->tenant) &&
		 hx_bytes_equal(counters->group, settings->group));
}

static int collect(const struct hapax_counters *counters, void *context)
{
	struct collector *collector = context;
	struct row row = {.scope_size = sizeof(others) - 1};

	if (!is_wanted(collector, counters))
		return 0;
	if (collector->rows.size == ROWS_MAX * sizeof(row))
		compact(collector);
	if (collector->is_crowded)
		memcpy(row.scope, others, sizeof(others) - 1);
	else
		row.scope_size =
			(uint16_t)hx_record_out_scope(counters->tenant, counters->group, row.scope)
				.size;
	memcpy(row.counts, counters->counts, sizeof(row.counts));
	collector->status = hx_buf_append(&collector->rows, &row, sizeof(row));
	return collector->status != HAPAX_OK;
}

/* ------------------------------------------------------------------ conditions */

static const struct hx_column condition_columns[] = {
	{"CONDITION", false}, {"SUBJECT", false}, {"SEVERITY", false},
	{"SINCE", false},     {"REASON", false},
};
static const char *const condition_members[] = {"name", "subject", "severity", "since", "reason"};

static enum hapax_status ask_conditions(
	struct hapax_store *store, const char *url, struct conditions *conditions,
	struct hapax_error *err)
{
	enum { REPLY_SIZE_MAX = 1024 * 1024 };
	enum hapax_status status = HAPAX_OK;

	hx_buf_init(&conditions->reply, REPLY_SIZE_MAX);
	hx_buf_init(&conditions->text, REPLY_SIZE_MAX);
	hx_json_reader_init(&conditions->reader, REPLY_SIZE_MAX, NULL);
	conditions->are_known = strncmp(url, "http", 4) == 0;
	if (conditions->are_known)
		status = hapax_store_call(
			store, "GET", "/conditions", hx_bytes(NULL, 0), &conditions->reply, err);
	if (conditions->are_known && status == HAPAX_OK)
		status = hx_json_reader_read(
			&conditions->reader, hapax_buf_bytes(&conditions->reply), err);
	return status;
}

static void conditions_done(struct conditions *conditions)
{
	hx_buf_done(&conditions->reply);
	hx_buf_done(&conditions->text);
	hx_json_reader_done(&conditions->reader);
}

/* The first one, or 0; the others follow as next. */
static uint32_t first_condition(const struct conditions *conditions)
{
	const struct hx_json_tree *tree = &conditions->reader.tree;
	const struct hx_json_node *list =
		hx_json_tree_member(tree, &tree->nodes[0], HX_BYTES_LIT("conditions"));

	return list == NULL ? 0 : list->child;
}

/* Borrowed until the next call. data is NULL if it has no such member. */
static struct hapax_bytes condition_member(
	struct conditions *conditions, uint32_t at, const char *name)
{
	const struct hx_json_tree *tree = &conditions->reader.tree;
	const struct hx_json_node *node =
		hx_json_tree_member(tree, &tree->nodes[at], hapax_bytes_from_text(name));
	struct hx_json_string string;

	if (node == NULL || node->token.type != HX_JSON_STRING)
		return hx_bytes(NULL, 0);
	string = hx_json_node_string(tree, node);
	hx_buf_clear(&conditions->text);
	if (hx_buf_reserve(&conditions->text, string.size) != HAPAX_OK)
		return HX_BYTES_LIT("?");
	return hx_bytes(conditions->text.data, hx_json_string_value(string, conditions->text.data));
}

static void write_conditions(struct hx_json_write *json, struct conditions *conditions)
{
	const struct hx_json_tree *tree = &conditions->reader.tree;

	hx_json_write_begin(json, "conditions", '[');
	for (uint32_t at = first_condition(conditions); at != 0; at = tree->nodes[at].next) {
		hx_json_write_begin(json, NULL, '{');
		for (size_t i = 0; i < HX_COUNT(condition_members); i++) {
			struct hapax_bytes value =
				condition_member(conditions, at, condition_members[i]);

			if (value.data != NULL)
				hx_json_write_any(json, condition_members[i], value);
		}
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, ']');
}

static enum hapax_status print_conditions(struct hx_out *out, struct conditions *conditions)
{
	const struct hx_json_tree *tree = &conditions->reader.tree;
	struct hx_columns table;
	enum hapax_status status;

	if (first_condition(conditions) == 0) {
		hx_out_line(out, "conditions", "none");
		return HAPAX_OK;
	}
	hx_columns_init(&table, condition_columns, HX_COUNT(condition_columns));
	for (uint32_t at = first_condition(conditions); at != 0; at = tree->nodes[at].next) {
		for (size_t i = 0; i < HX_COUNT(condition_members); i++) {
			struct hapax_bytes value =
				condition_member(conditions, at, condition_members[i]);

			hx_columns_bytes(&table, value.data == NULL ? HX_BYTES_LIT("-") : value);
		}
	}
	hx_out_text(out, "\n");
	status = hx_columns_print(&table, out);
	hx_columns_done(&table);
	return status;
}

/* ------------------------------------------------------------------ figures */

static void format_hit_rate(const uint64_t *counts, char out[HX_TEXT_SIZE])
{
	double first = (double)counts[HAPAX_DECISION_ACQUIRED];
	double duplicate = (double)counts[HAPAX_DECISION_REPLAY];

	if (first + duplicate == 0)
		(void)snprintf(out, HX_TEXT_SIZE, "-");
	else
		(void)snprintf(out, HX_TEXT_SIZE, "%.1f%%", 100 * duplicate / (first + duplicate));
}

static void print_json(
	struct hx_out *out, const char *url, const struct hapax_stats *stats,
	const struct row *rows, size_t count, struct conditions *conditions)
{
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_any(&json, "store", hapax_bytes_from_text(url));
	hx_stats_json_write(&json, stats, 0);
	hx_stats_json_write_decisions(&json, stats->counts);
	hx_json_write_begin(&json, "last_24h", '[');
	for (size_t i = 0; i < count; i++) {
		hx_json_write_begin(&json, NULL, '{');
		hx_json_write_any(&json, "scope", hx_bytes(rows[i].scope, rows[i].scope_size));
		hx_stats_json_write_decisions(&json, rows[i].counts);
		hx_json_write_end(&json, '}');
	}
	hx_json_write_end(&json, ']');
	if (conditions->are_known)
		write_conditions(&json, conditions);
	hx_json_write_end(&json, '}');
}

static void print_limits(struct hx_out *out, const struct hapax_stats *stats)
{
	char text[HX_TEXT_SIZE];

	hx_out_field(out, "limits");
	if (stats->keys_max == 0 && stats->bytes_max == 0)
		hx_out_text(out, "none");
	if (stats->keys_max != 0)
		hx_out_printf(
			out, "%" PRIu64 " key%s", stats->keys_max, hx_text_plural(stats->keys_max));
	if (stats->keys_max != 0 && stats->bytes_max != 0)
		hx_out_text(out, ", ");
	if (stats->bytes_max != 0) {
		hx_text_bytes(stats->bytes_max, text);
		hx_out_text(out, text);
	}
	hx_out_text(out, "\n");
}

static void print_totals(struct hx_out *out, const char *url, const struct hapax_stats *stats)
{
	char text[HX_TEXT_SIZE];

	hx_out_line_escaped(out, "store", hapax_bytes_from_text(url));
	hx_out_line(
		out, "keys",
		"%" PRIu64 "  (claimed %" PRIu64 ", done %" PRIu64 ", failed %" PRIu64
		", parked %" PRIu64 ")",
		stats->keys, stats->claimed, stats->done, stats->failed, stats->parked);
	hx_out_line(out, "expired", "%" PRIu64 " known, not yet removed", stats->expired);
	hx_text_bytes(stats->bytes, text);
	hx_out_line(out, "size", "%s", text);
	print_limits(out, stats);
	format_hit_rate(stats->counts, text);
	hx_out_line(
		out, "hit rate", "%s  (%" PRIu64 " first, %" PRIu64 " duplicate)", text,
		stats->counts[HAPAX_DECISION_ACQUIRED], stats->counts[HAPAX_DECISION_REPLAY]);
	hx_out_line(out, "last token", "%" PRIu64, stats->token);
}

static const struct hx_column columns[] = {
	{"SCOPE (LAST 24 H)", false}, {"ACQUIRED", true}, {"REPLAY", true}, {"IN-PROGRESS", true},
	{"MISMATCH", true},           {"PARKED", true},   {"FENCED", true}, {"LIMIT", true},
	{"HIT-RATE", true},
};

static enum hapax_status print_scopes(struct hx_out *out, const struct row *rows, size_t count)
{
	static const enum hapax_decision shown[] = {
		HAPAX_DECISION_ACQUIRED, HAPAX_DECISION_REPLAY, HAPAX_DECISION_IN_PROGRESS,
		HAPAX_DECISION_MISMATCH, HAPAX_DECISION_PARKED, HAPAX_DECISION_FENCED,
		HAPAX_DECISION_LIMIT,
	};
	char text[HX_TEXT_SIZE];
	struct hx_columns table;
	enum hapax_status status;

	hx_columns_init(&table, columns, HX_COUNT(columns));
	for (size_t i = 0; i < count; i++) {
		hx_columns_bytes(&table, hx_bytes(rows[i].scope, rows[i].scope_size));
		for (size_t d = 0; d < HX_COUNT(shown); d++)
			hx_columns_count(&table, rows[i].counts[shown[d]]);
		format_hit_rate(rows[i].counts, text);
		hx_columns_text(&table, HX_COLOR_NONE, text);
	}
	hx_out_text(out, "\n");
	status = hx_columns_print(&table, out);
	hx_columns_done(&table);
	return status;
}

static int print(
	struct hx_invocation *inv, struct hapax_store *store, const struct hapax_stats *stats,
	struct collector *collector, struct conditions *conditions)
{
	const struct row *rows;
	size_t count;
	enum hapax_status status = HAPAX_OK;

	compact(collector);
	rows = (const struct row *)(const void *)collector->rows.data;
	count = collector->rows.size / sizeof(*rows);
	if (collector->is_crowded)
		hx_report(
			inv->command->name, "note: more than %d scopes; the rest are counted as %s",
			SCOPES_MAX, others);
	if (inv->settings.format == HX_FORMAT_JSON) {
		print_json(&inv->out, hapax_store_url(store), stats, rows, count, conditions);
	} else {
		print_totals(&inv->out, hapax_store_url(store), stats);
		if (conditions->are_known)
			status = print_conditions(&inv->out, conditions);
		if (count > 0 && status == HAPAX_OK)
			status = print_scopes(&inv->out, rows, count);
	}
	if (status == HAPAX_OK)
		return HX_EXIT_OK;
	return hx_report_no_memory(inv->command->name);
}

static int run_stats(struct hx_invocation *inv)
{
	struct collector collector = {.settings = &inv->settings};
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct conditions conditions;
	struct hapax_store *store;
	struct hapax_error err;
	enum hapax_status status;
	int code = hx_settings_open(inv, HX_OPEN_EXISTING, &store);

	if (code != HX_EXIT_OK)
		return code;
	collector.since_ms = hx_settings_now_ms(store) / HOUR_MS * HOUR_MS - (HOURS - 1) * HOUR_MS;
	hx_buf_init(&collector.rows, ROWS_MAX * sizeof(struct row));
	status = ask_conditions(store, inv->settings.store_url, &conditions, &err);
	if (status == HAPAX_OK)
		status = hapax_store_stats(store, &stats, collect, &collector, &err);
	if (status != HAPAX_OK) {
		code = hx_report_error(inv->command->name, &err);
	} else if (collector.status != HAPAX_OK) {
		code = hx_report_no_memory(inv->command->name);
	} else {
		code = print(inv, store, &stats, &collector, &conditions);
	}
	hapax_store_close(store);
	conditions_done(&conditions);
	hx_buf_done(&collector.rows);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "printed"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax stats", "show totals, and decisions per scope"},
	{"hapax stats --scope default/default -o json", "print all numbers of one scope"},
	{NULL, NULL},
};

const struct command hx_cmd_stats = {
	.name = "stats",
	.summary = "show totals, hit rate and decisions per scope",
	.usage = "[OPTION]...",
	.description =
		"Shows the number of keys per state, the size of the store, and its decisions: in total,\n"
		"and per scope for this hour and the 23 hours before. --scope limits that table; totals\n"
		"include the whole store. With --server, the conditions of the daemon are listed, too: what\n"
		"is wrong with it, since when, and why.\n"
		"\n"
		"The hit rate is duplicates / (first + duplicates). Above 5 %, a sender repeats too much.\n"
		"At 0 % for weeks, the key is probably wrong: it never repeats.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.exits = exits,
	.examples = examples,
	.run = run_stats,
};
