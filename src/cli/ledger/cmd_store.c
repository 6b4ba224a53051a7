/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_store.c - hapax store: show, copy or migrate a store, import keys, or record a restored
 * backup.
 */
#include <inttypes.h>
#include <string.h>

#include <hapax/copy.h>
#include <hapax/hapax.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/thread.h"
#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "wire/json/json_write.h"
#include "cli/frame/progress.h"
#include "cli/frame/report.h"
#include "cli/import/import.h"
#include "cli/print/text.h"

/* ------------------------------------------------------------------ info */

static const struct {
	enum hapax_store_capability capability;
	const char *name;
	const char *meaning;
} capabilities[] = {
	{HAPAX_STORE_DURABLE, "durable", "an answer survives a power cut"},
	{HAPAX_STORE_TOKEN_GLOBAL, "token_global", "tokens rise over the whole store"},
	{HAPAX_STORE_TRANSACTIONS, "transactions", "operations join the caller's transaction"},
	{HAPAX_STORE_MULTI_KEY, "multi_key", "several keys in one step"},
	{HAPAX_STORE_CLOCK, "store_clock", "all users share the store's clock"},
};
enum { GUARANTEE_SIZE = 512 };
enum { CAPABILITIES = HX_COUNT(capabilities) };

/* The live share of the files, in percent. */
static unsigned live_percent(const struct hapax_files *files)
{
	uint64_t bytes = files->log_bytes + files->class_bytes;

	return bytes == 0 ? 0 : (unsigned)(100.0 * (double)files->live_bytes / (double)bytes);
}

static const char *state_of(const struct hapax_files *files)
{
	return files->was_closed ? "closed" : "recovered";
}

static void files_json(struct hx_json_write *json, const struct hapax_files *files)
{
	if (files->size == 0)
		return;
	hx_json_write_begin(json, "files", '{');
	hx_json_write_text(json, "state", state_of(files));
	hx_json_write_unsigned(json, "log_segments", files->log_segments);
	hx_json_write_unsigned(json, "log_bytes", files->log_bytes);
	hx_json_write_unsigned(json, "class_segments", files->class_segments);
	hx_json_write_unsigned(json, "class_bytes", files->class_bytes);
	hx_json_write_unsigned(json, "live_bytes", files->live_bytes);
	hx_json_write_unsigned(json, "live_percent", live_percent(files));
	hx_json_write_unsigned(json, "lsn", files->lsn);
	hx_json_write_unsigned(json, "durable_lsn", files->durable_lsn);
	hx_json_write_signed(json, "owed_ms", files->owed_ms);
	hx_json_write_end(json, '}');
}

static void files_text(struct hx_out *out, const struct hapax_files *files)
{
	char log[HX_TEXT_SIZE], classes[HX_TEXT_SIZE], live[HX_TEXT_SIZE];

	if (files->size == 0)
		return;
	hx_text_bytes(files->log_bytes, log);
	hx_text_bytes(files->class_bytes, classes);
	hx_text_bytes(files->live_bytes, live);
	hx_out_field(out, "segments");
	hx_out_printf(
		out, "%" PRIu64 " of the log, %s; %" PRIu64 " by expiry, %s\n", files->log_segments,
		log, files->class_segments, classes);
	hx_out_line(out, "live", "%s, %u %% of the files", live, live_percent(files));
	hx_out_line(
		out, "next LSN", "%" PRIu64 ", all below %" PRIu64 " synced", files->lsn,
		files->durable_lsn);
	hx_out_line(out, "clock owes", "%" PRId64 " ms", files->owed_ms);
	hx_out_field(out, "state");
	hx_out_text(
		out,
		files->was_closed
			? "intact; closed cleanly\n"
			: "intact; recovered, because the last process did not close it\n");
}

/*
 * Whether the store's clock stands still: a process with a boot clock that was ahead has moved it
 * there, and it waits until the boot clock of this host has come as far. It is ahead until then, so
 * other stores are not looked at twice.
 */
static bool is_frozen(struct hapax_store *store, const struct hapax_stats *stats)
{
	enum { AHEAD_MS = 1000, LOOK_MS = 50 };
	struct hapax_stats later = HAPAX_STATS_INIT;
	struct hx_event never;

	if (stats->skew_ms < AHEAD_MS)
		return false;
	hx_event_init(&never);
	(void)hx_event_wait_until_ns(&never, hx_clock_mono_ns() + LOOK_MS * HX_NS_PER_MS);
	return hapax_store_stats(store, &later, NULL, NULL, NULL) == HAPAX_OK &&
		later.now_ms == stats->now_ms;
}

static void info_json(
	struct hx_out *out, struct hapax_store *store, const struct hapax_stats *stats,
	const struct hapax_files *files)
{
	struct hx_json_write json;
	char guarantee[GUARANTEE_SIZE];

	hx_out_json(&json, out);
	hx_json_write_text(&json, "store", hapax_store_url(store));
	hx_json_write_text(&json, "kind", hapax_store_name(store));
	hx_json_write_begin(&json, "capabilities", '[');
	for (size_t i = 0; i < CAPABILITIES; i++)
		if (hapax_store_capabilities(store) & capabilities[i].capability)
			hx_json_write_text(&json, NULL, capabilities[i].name);
	hx_json_write_end(&json, ']');
	hapax_store_guarantee(store, guarantee, sizeof(guarantee));
	hx_json_write_text(&json, "guarantee", guarantee);
	hx_json_write_unsigned(&json, "keys", stats->keys);
	hx_json_write_unsigned(&json, "claimed", stats->claimed);
	hx_json_write_unsigned(&json, "done", stats->done);
	hx_json_write_unsigned(&json, "failed", stats->failed);
	hx_json_write_unsigned(&json, "parked", stats->parked);
	hx_json_write_unsigned(&json, "bytes", stats->bytes);
	hx_json_write_unsigned(&json, "reserve_bytes", stats->reserve_bytes);
	hx_json_write_boolean(&json, "disk_full", stats->disk_full != 0);
	hx_json_write_unsigned(&json, "token", stats->token);
	hx_json_write_time(&json, "now", stats->now_ms);
	hx_json_write_signed(&json, "skew_ms", stats->skew_ms);
	hx_json_write_boolean(&json, "clock_frozen", is_frozen(store, stats));
	files_json(&json, files);
	hx_json_write_end(&json, '}');
}

static void info_text(
	struct hx_out *out, struct hapax_store *store, const struct hapax_stats *stats,
	const struct hapax_files *files)
{
	char text[HX_TEXT_SIZE];
	char guarantee[GUARANTEE_SIZE];
	bool is_first = true;

	hx_out_line_escaped(out, "store", hapax_bytes_from_text(hapax_store_url(store)));
	hx_out_line(out, "kind", "%s", hapax_store_name(store));
	hapax_store_guarantee(store, guarantee, sizeof(guarantee));
	hx_out_line(out, "guarantee", "%s", guarantee);
	for (size_t i = 0; i < CAPABILITIES; i++) {
		if (!(hapax_store_capabilities(store) & capabilities[i].capability) ||
		    capabilities[i].capability == HAPAX_STORE_DURABLE)
			continue;
		hx_out_line(out, is_first ? "promises" : "", "%s", capabilities[i].meaning);
		is_first = false;
	}
	hx_out_line(
		out, "keys",
		"%" PRIu64 " (%" PRIu64 " claimed, %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64
		" parked)",
		stats->keys, stats->claimed, stats->done, stats->failed, stats->parked);
	hx_text_bytes(stats->bytes, text);
	hx_out_line(out, "size", "%s", text);
	hx_text_bytes(stats->reserve_bytes, text);
	if (stats->disk_full != 0)
		hx_out_line(
			out, "disk", "full: new keys are refused; %s are reserved for live claims",
			text);
	else if (stats->reserve_bytes != 0)
		hx_out_line(out, "reserve", "%s, for live claims when the disk is full", text);
	hx_out_line(out, "last token", "%" PRIu64, stats->token);
	hx_text_time(stats->now_ms, text);
	hx_out_line(out, "clock", "%s (%+" PRId64 " ms)", text, stats->skew_ms);
	if (is_frozen(store, stats)) {
		hx_out_line(out, "", "it stands still until then: no key expires, no lease lapses");
		hx_out_line(out, "", "to get back, stop its users and copy it: 'hapax store copy'");
	}
	files_text(out, files);
}

static int run_info(struct hx_invocation *inv)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_files files = HAPAX_FILES_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err;
	enum hapax_status status;
	int code = hx_settings_open_url(
		inv, hx_options_operand(&inv->options, 0), HX_OPEN_EXISTING, &store);

	if (code != HX_EXIT_OK)
		return code;
	status = hapax_store_stats(store, &stats, NULL, NULL, &err);
	if (status == HAPAX_OK)
		status = hapax_store_files(store, &files, &err);
	/* Not every store has segments. */
	if (status == HAPAX_ERR_UNSUPPORTED) {
		files.size = 0;
		status = HAPAX_OK;
	}
	if (status != HAPAX_OK)
		code = hx_report_error(inv->command->name, &err);
	else if (inv->settings.format == HX_FORMAT_JSON)
		info_json(&inv->out, store, &stats, &files);
	else
		info_text(&inv->out, store, &stats, &files);
	hapax_store_close(store);
	return code;
}

/* ------------------------------------------------------------------ copy */

static int show_copy(const struct hapax_copy *copy, void *context)
{
	hx_progress_bar(context, "records", copy->records, copy->total);
	return hx_interrupt_signal() != 0;
}

static void print_copy(struct hx_invocation *inv, const struct hapax_copy *copy)
{
	struct hx_json_write json;

	if (inv->settings.format == HX_FORMAT_TEXT) {
		hx_out_line(&inv->out, "records", "%" PRIu64, copy->records);
		hx_out_line(&inv->out, "last token", "%" PRIu64, copy->token);
		return;
	}
	hx_out_json(&json, &inv->out);
	hx_json_write_unsigned(&json, "records", copy->records);
	hx_json_write_unsigned(&json, "bytes", copy->bytes);
	hx_json_write_unsigned(&json, "token", copy->token);
	hx_json_write_end(&json, '}');
}

static int copy_records(
	struct hx_invocation *inv, struct hapax_store *source, struct hapax_store *target)
{
	struct hapax_copy copy = HAPAX_COPY_INIT;
	struct hx_progress progress;
	struct hapax_error err;
	enum hapax_status status;

	hx_progress_init(&progress);
	hx_interrupt_watch();
	copy.progress = show_copy;
	copy.context = &progress;
	status = hapax_store_copy(source, target, &copy, &err);
	hx_progress_done(&progress);
	if (status == HAPAX_OK) {
		print_copy(inv, &copy);
		return HX_EXIT_OK;
	}
	if (status == HAPAX_ERR_HANDLER) {
		hx_report(
			inv->command->name,
			"stopped after %" PRIu64 " record%s; the target is incomplete",
			copy.records, hx_text_plural(copy.records));
		hx_report_hint("delete the target before you copy again");
		return HX_EXIT_SIGNAL + hx_interrupt_signal();
	}
	return hx_report_error(inv->command->name, &err);
}

static int run_copy(struct hx_invocation *inv)
{
	struct hapax_store *source = NULL;
	struct hapax_store *target = NULL;
	char **operands = inv->options.operands;
	int code;

	if (strcmp(operands[0], operands[1]) == 0)
		return hx_report_usage(
			inv->command->name, "source and target must be different stores");
	code = hx_settings_open_url(inv, operands[0], HX_OPEN_EXISTING, &source);
	if (code == HX_EXIT_OK)
		code = hx_settings_open_url(inv, operands[1], HX_OPEN_CREATE, &target);
	if (code == HX_EXIT_OK)
		code = copy_records(inv, source, target);
	hapax_store_close(target);
	hapax_store_close(source);
	return code;
}

/* ------------------------------------------------------------------ restored */

static int run_restored(struct hx_invocation *inv)
{
	struct hapax_store *store = NULL;
	struct hx_json_write json;
	struct hapax_error err;
	uint64_t token = 0;
	int code = hx_settings_open_url(
		inv, hx_options_operand(&inv->options, 0), HX_OPEN_EXISTING, &store);

	if (code != HX_EXIT_OK)
		return code;
	if (hapax_store_restored(store, &token, &err) != HAPAX_OK) {
		code = hx_report_error(inv->command->name, &err);
	} else if (inv->settings.format == HX_FORMAT_JSON) {
		hx_out_json(&json, &inv->out);
		hx_json_write_text(&json, "store", hapax_store_url(store));
		hx_json_write_unsigned(&json, "token", token);
		hx_json_write_end(&json, '}');
	} else {
		hx_out_line_escaped(
			&inv->out, "store", hapax_bytes_from_text(hapax_store_url(store)));
		hx_out_line(&inv->out, "last token", "%" PRIu64, token);
	}
	hapax_store_close(store);
	return code;
}

/* ------------------------------------------------------------------ migrate */

static int run_migrate(struct hx_invocation *inv)
{
	const char *named = hx_options_operand(&inv->options, 0);
	struct hapax_migration migration = {0, 0};
	struct hx_json_write json;
	struct hapax_error err;

	if (hapax_store_migrate(
		    named != NULL ? named : inv->settings.store_url, &migration, &err) != HAPAX_OK)
		return hx_report_error(inv->command->name, &err);
	if (inv->settings.format == HX_FORMAT_JSON) {
		hx_out_json(&json, &inv->out);
		hx_json_write_signed(&json, "from", migration.from);
		hx_json_write_signed(&json, "to", migration.to);
		hx_json_write_end(&json, '}');
	} else if (migration.to == 0) {
		hx_out_text(&inv->out, "nothing to do: this store is migrated when it is opened\n");
	} else if (migration.from == migration.to) {
		hx_out_printf(
			&inv->out, "the store is up to date: version %" PRId64 "\n", migration.to);
	} else {
		hx_out_printf(
			&inv->out, "migrated from version %" PRId64 " to %" PRId64 "\n",
			migration.from, migration.to);
	}
	return HX_EXIT_OK;
}

/* ------------------------------------------------------------------ the command */

static const struct command_exit done_exits[] = {
	{HX_EXIT_OK, "done"},
	{0, NULL},
};

static const struct command_exit copy_exits[] = {
	{HX_EXIT_OK, "every record was copied"},
	{HX_EXIT_SIGNAL, "and above: a signal stopped the copy (130: INT, 143: TERM)"},
	{0, NULL},
};

static const struct command_exit import_exits[] = {
	{HX_EXIT_OK, "every row was imported or counted; or the dry run found no bad row"},
	{HX_EXIT_NO, "rows are in conflict with the store or each other; the others were imported"},
	{HX_EXIT_DATA, "a row is bad; rows before it were imported"},
	{HX_EXIT_NO_INPUT, "the file could not be read"},
	{HX_EXIT_SIGNAL, "and above: a signal stopped the import (130: INT, 143: TERM)"},
	{0, NULL},
};

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "done"},
	{HX_EXIT_NO, "import: rows are in conflict"},
	{HX_EXIT_DATA, "import: a row is bad"},
	{HX_EXIT_NO_INPUT, "import: the file could not be read"},
	{HX_EXIT_SIGNAL, "and above: a signal stopped a copy or import (130: INT, 143: TERM)"},
	{0, NULL},
};

static const struct command_action actions[] = {
	{.name = "info",
	 .summary = "show the kind, guarantees and contents of a store",
	 .usage = "[URL] [OPTION]...",
	 .description =
		 "Shows what kind of store it is, what it guarantees and how much it holds. For a\n"
		 "file: store, also its segments, how much of them is live, its marks and how it was\n"
		 "closed. A damaged store does not open: see 'hapax help fsck'.\n",
	 .operands = {0, 1},
	 .exits = done_exits,
	 .run = run_info},
	{.name = "copy",
	 .summary = "copy every record to another, empty store",
	 .usage = "SOURCE TARGET [OPTION]...",
	 .description =
		 "Copies every record that has not expired to another store, of any kind, which must\n"
		 "be empty. Records keep their tokens, so that work in progress can be completed\n"
		 "there; new tokens start 2^40 above the last one. Stop the users of the source first.\n"
		 "\n"
		 "If a store is a daemon, its API token is read from --auth-file, or from the file in\n"
		 "its URL: http://HOST:8099?auth_file=FILE.\n",
	 .operands = {2, 2},
	 .exits = copy_exits,
	 .run = run_copy},
	{.name = "import",
	 .summary = "take over the keys that another system has processed",
	 .usage = "--from SOURCE [--write] [OPTION]...",
	 .description =
		 "Reads keys of another system from a CSV file, a PostgreSQL query or a Redis server and\n"
		 "writes them with the time that they have left, so that none of them runs again. A row\n"
		 "without result and event becomes a mark. Without --write nothing is written: it counts,\n"
		 "and shows the first rows, conflicts and bad rows.\n"
		 "\n"
		 "A key that the store has done, claimed or parked is never changed. An import that was\n"
		 "stopped is continued by the same command. A bad row stops it, unless --skip-bad is given.\n"
		 "\n"
		 "Columns: key; tenant, group (default: --scope); result; status (success, failed, or an\n"
		 "HTTP status); expires_at, or processed_at and --ttl; event_id, event_type, event_source,\n"
		 "event_time. A time without an offset is UTC. In Redis, the time left is the key's own;\n"
		 "--ttl is for keys without one.\n",
	 .flags = COMMAND_SCOPE | COMMAND_TTL,
	 .operands = {0, 0},
	 .exits = import_exits,
	 .run = hx_import_action},
	{.name = "migrate",
	 .summary = "create or update the tables of a PostgreSQL store",
	 .usage = "[URL] [OPTION]...",
	 .description =
		 "Creates the tables in a PostgreSQL database, or updates them, in one transaction.\n"
		 "Opening a store never changes a database. Run this as the role that must own the\n"
		 "tables.\n",
	 .operands = {0, 1},
	 .exits = done_exits,
	 .run = run_migrate},
	{.name = "restored",
	 .summary = "record that a backup was restored",
	 .usage = "[URL] [OPTION]...",
	 .description =
		 "Raises the tokens of a store by 2^40. A restored backup does not know the tokens\n"
		 "that were issued after it was made: without this step, they would be issued again.\n",
	 .operands = {0, 1},
	 .exits = done_exits,
	 .run = run_restored},
	{.name = NULL},
};

static const struct hx_option options[] = {HX_IMPORT_OPTION_ROWS, {.name = NULL}};

static const struct command_example examples[] = {
	{"hapax store info", "what the store is, guarantees and holds"},
	{"hapax store copy \"$HAPAX_STORE\" sqlite:copy.db", "copy all records to a new store"},
	{"printf 'key,expires_at\\norder-17,2030-01-01T00:00:00Z\\n' | hapax store import --from -",
	 "what an import of these rows would write"},
	{"hapax store migrate", "create the tables in a database, or update them"},
	{"hapax store restored", "after a backup was restored"},
	{NULL, NULL},
};

const struct command hx_cmd_store = {
	.name = "store",
	.summary = "show, copy or migrate a store, import keys, or record a restored backup",
	.usage = "ACTION [ARGUMENT]... [OPTION]...",
	.flags = COMMAND_STORE | COMMAND_STORE_OPERANDS,
	.options = options,
	.exits = exits,
	.examples = examples,
	.actions = actions,
};
