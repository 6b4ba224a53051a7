/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.c - columns and rows of a source, and the action that reads one.
 */
#include "cli/import/import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"

enum {
	/* Results of a batch; one more row may exceed it. */
	BATCH_BYTES = 8 * 1024 * 1024,
	ENTRY_SIZE_MAX = HX_RESULT_SIZE_LIMIT + 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX,
	IGNORED_SIZE = 1024,
	NAME_SIZE = 2048,
	/* For about four million keys. */
	SEEN_BYTES = 320 * 1024 * 1024,
};

/* The first row of a key; later ones are compared with it. */
struct seen {
	struct hx_digest name;
	uint64_t content;
	int64_t ends_ms;
};

static const char *const column_names[HX_IMPORT_COLUMNS] = {
	[HX_IMPORT_KEY] = "key",
	[HX_IMPORT_TENANT] = "tenant",
	[HX_IMPORT_GROUP] = "group",
	[HX_IMPORT_RESULT] = "result",
	[HX_IMPORT_STATUS] = "status",
	[HX_IMPORT_EXPIRES_AT] = "expires_at",
	[HX_IMPORT_PROCESSED_AT] = "processed_at",
	[HX_IMPORT_EVENT_ID] = "event_id",
	[HX_IMPORT_EVENT_TYPE] = "event_type",
	[HX_IMPORT_EVENT_SOURCE] = "event_source",
	[HX_IMPORT_EVENT_TIME] = "event_time",
};

#define COLUMN_NAMES                                                                           \
	"key, tenant, group, result, status, expires_at, processed_at, event_id, event_type, " \
	"event_source and event_time"

/* ------------------------------------------------------------------ notes */

void hx_import_note(struct hx_import_notes *notes, struct hapax_bytes place, const char *why)
{
	if (notes->count < HX_IMPORT_NOTES_MAX) {
		struct hx_import_note *note = &notes->notes[notes->count];

		(void)snprintf(
			note->place, sizeof(note->place), "%.*s", (int)place.size,
			(const char *)place.data);
		(void)snprintf(note->why, sizeof(note->why), "%s", why);
	}
	notes->count++;
}

int hx_import_bad(struct hx_import *import, const char *format, ...)
{
	char why[HX_IMPORT_WHY_SIZE];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	hx_import_note(&import->bad, hapax_bytes_from_text(import->place), why);
	if (import->skips_bad || !import->is_written)
		return HX_EXIT_OK;
	hx_progress_done(&import->progress);
	hx_report(import->inv->command->name, "%s: %s", import->place, why);
	hx_report_hint("correct the row and repeat the command, or add --skip-bad");
	return HX_EXIT_DATA;
}

/* ------------------------------------------------------------------ columns */

static bool is_name(struct hapax_bytes name, const char *text)
{
	return hx_bytes_equal(name, hapax_bytes_from_text(text));
}

/* The meaning of --column FIELD=NAME, or COLUMNS. *ret_name: the name of the source's column. */
static enum hx_import_column meaning_of(const char *option, const char **ret_name)
{
	const char *equals = strchr(option, '=');

	for (int i = 0; equals != NULL && i < HX_IMPORT_COLUMNS; i++) {
		if (!is_name(hx_bytes(option, (size_t)(equals - option)), column_names[i]))
			continue;
		*ret_name = equals + 1;
		return (enum hx_import_column)i;
	}
	return HX_IMPORT_COLUMNS;
}

/* A column that an option names has that meaning only. A field that an option gives has no other. */
static enum hx_import_column find_meaning(const struct hx_import *import, struct hapax_bytes name)
{
	const char *texts[HX_OPTION_VALUES_MAX];
	size_t count = hx_options_all(
		&import->inv->options, HX_IMPORT_COLUMN, texts, HX_OPTION_VALUES_MAX);
	bool is_given[HX_IMPORT_COLUMNS] = {false};

	for (size_t i = 0; i < count; i++) {
		const char *column = "";
		enum hx_import_column meaning = meaning_of(texts[i], &column);

		if (is_name(name, column))
			return meaning;
		is_given[meaning] = true;
	}
	for (int i = 0; i < HX_IMPORT_COLUMNS; i++)
		if (!is_given[i] && is_name(name, column_names[i]))
			return (enum hx_import_column)i;
	return HX_IMPORT_COLUMNS;
}

static int check_column_options(const struct hx_invocation *inv)
{
	const char *texts[HX_OPTION_VALUES_MAX];
	size_t count = hx_options_all(&inv->options, HX_IMPORT_COLUMN, texts, HX_OPTION_VALUES_MAX);

	for (size_t i = 0; i < count; i++) {
		const char *name = "";

		if (meaning_of(texts[i], &name) == HX_IMPORT_COLUMNS || name[0] == '\0')
			return hx_report_misuse(
				inv->command->name, "the fields are " COLUMN_NAMES,
				"--column: '%s' is not FIELD=NAME", texts[i]);
	}
	return HX_EXIT_OK;
}

static bool has_column(const struct hx_import *import, enum hx_import_column meaning)
{
	for (size_t i = 0; i < import->source_columns; i++)
		if (import->meanings[i] == meaning)
			return true;
	return false;
}

/* Every name of --column is one of the source's. */
static int check_named(
	const struct hx_import *import, const struct hapax_bytes *names, size_t count)
{
	const char *command = import->inv->command->name;
	const char *texts[HX_OPTION_VALUES_MAX];
	size_t options = hx_options_all(
		&import->inv->options, HX_IMPORT_COLUMN, texts, HX_OPTION_VALUES_MAX);

	for (size_t i = 0; i < options; i++) {
		const char *column = "";
		bool is_there = false;

		(void)meaning_of(texts[i], &column);
		for (size_t j = 0; j < count; j++)
			is_there = is_there || is_name(names[j], column);
		if (!is_there)
			return hx_report_usage(
				command, "--column: the source has no column '%s'", column);
	}
	return HX_EXIT_OK;
}

int hx_import_columns(struct hx_import *import, const struct hapax_bytes *names, size_t count)
{
	const char *command = import->inv->command->name;
	int code;

	/* Before names is read: it has no more. */
	if (count > HX_IMPORT_SOURCE_COLUMNS_MAX)
		return hx_report_usage(
			command, "the source has too many columns: the limit is %d",
			HX_IMPORT_SOURCE_COLUMNS_MAX);
	code = check_named(import, names, count);
	if (code != HX_EXIT_OK)
		return code;
	for (size_t i = 0; i < count; i++) {
		enum hx_import_column meaning = find_meaning(import, names[i]);

		if (meaning == HX_IMPORT_COLUMNS)
			(void)hx_buf_printf(
				&import->ignored, "%s%.*s", import->ignored.size == 0 ? "" : ", ",
				(int)names[i].size, (const char *)names[i].data);
		else if (has_column(import, meaning))
			return hx_report_usage(
				command, "the source has two columns '%s'", column_names[meaning]);
		import->meanings[i] = meaning;
		import->source_columns = i + 1;
	}
	if (!has_column(import, HX_IMPORT_KEY))
		return hx_report_misuse(
			command, "rename a column with AS, or add --column key=NAME",
			"the source has no column 'key'");
	if (!has_column(import, HX_IMPORT_EXPIRES_AT) && import->ttl_ms == 0)
		return hx_report_misuse(
			command,
			"add a column expires_at; or --ttl D, which counts from the column "
			"processed_at or from now",
			"the source does not say when its keys expire");
	return hx_import_open(import);
}

int hx_import_open(struct hx_import *import)
{
	struct hx_invocation *inv = import->inv;

	/* A result that the other system could store is not cut here. */
	inv->settings.result_size_max = HX_RESULT_SIZE_LIMIT;
	import->has_begun = true;
	if (import->is_written)
		return hx_settings_open(inv, HX_OPEN_CREATE, &import->store);
	if (hx_settings_is_missing(inv))
		return HX_EXIT_OK;
	return hx_settings_open(inv, HX_OPEN_EXISTING, &import->store);
}

/* ------------------------------------------------------------------ rows */

/* Was there an earlier row of the same key? */
static bool is_repeated(struct hx_import *import, const struct hx_import_entry *entry)
{
	struct seen *seen;
	uint64_t content;
	bool is_new;

	if (import->has_forgotten)
		return false;
	memcpy(&content, entry->digest, sizeof(content));
	seen = hx_digest_table_at(&import->seen, &entry->name, &is_new);
	if (seen == NULL) {
		import->has_forgotten = true;
		return false;
	}
	if (is_new) {
		seen->content = content;
		seen->ends_ms = entry->ends_ms;
	} else if (seen->content != content) {
		hx_import_note(
			&import->conflicts, entry->key, "the source has two different rows of it");
	} else if (hx_import_is_longer(entry, seen->ends_ms)) {
		hx_import_note(
			&import->conflicts, entry->key,
			"the source has two rows of it, and the first one expires earlier");
	} else {
		import->repeated++;
	}
	return !is_new;
}

static void show_progress(struct hx_import *import)
{
	hx_progress_rate(
		&import->progress, "rows", import->share, import->rows,
		hx_clock_mono_ns() - import->begin_ns);
}

int hx_import_take(struct hx_import *import, const struct hx_import_row *row)
{
	struct hx_import_entry *entry = &import->batch[import->batch_count];
	char why[HX_IMPORT_WHY_SIZE];
	int code = HX_EXIT_OK;

	import->rows++;
	show_progress(import);
	if (hx_interrupt_signal() != 0)
		return HX_EXIT_SIGNAL + hx_interrupt_signal();
	if (!hx_import_row_read(import, row, entry, why))
		return hx_import_bad(import, "%s", why);
	if (entry->ends_ms <= hx_clock_wall_ms()) {
		import->expired++;
		return HX_EXIT_OK;
	}
	if (is_repeated(import, entry))
		return HX_EXIT_OK;
	import->batch_count++;
	import->batch_bytes += entry->bytes.size;
	if (import->batch_count == HX_IMPORT_BATCH_MAX || import->batch_bytes >= BATCH_BYTES)
		code = hx_import_flush(import);
	return code;
}

int hx_import_take_fields(struct hx_import *import, const struct hapax_bytes *fields, size_t count)
{
	struct hx_import_row row = {.left_ms = 0};

	if (count != import->source_columns) {
		import->rows++;
		return hx_import_bad(
			import, "it has %zu fields, and the source has %zu columns", count,
			import->source_columns);
	}
	for (size_t i = 0; i < count; i++)
		if (import->meanings[i] != HX_IMPORT_COLUMNS)
			row.values[import->meanings[i]] = fields[i];
	return hx_import_take(import, &row);
}

/* ------------------------------------------------------------------ the action */

static bool begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_postgres(const char *from)
{
	return begins(from, "postgres://") || begins(from, "postgresql://");
}

static bool is_redis(const char *from)
{
	return begins(from, "redis://") || begins(from, "rediss://") || begins(from, "redis+unix:");
}

/* Options that the chosen source does not read. */
static int check_options(const struct hx_invocation *inv, const char *from)
{
	static const struct {
		int id;
		const char *name;
		bool of_redis;
	} rows[] = {
		{HX_IMPORT_NAME, "name", true},
		{HX_IMPORT_RESULT_NAME, "result-name", true},
		{HX_IMPORT_MATCH, "match", true},
		{HX_IMPORT_COLUMN, "column", false},
	};
	const char *command = inv->command->name;

	for (size_t i = 0; i < HX_COUNT(rows); i++)
		if (rows[i].of_redis != is_redis(from) && hx_options_has(&inv->options, rows[i].id))
			return hx_report_usage(
				command, "--%s is for %s", rows[i].name,
				rows[i].of_redis ? "redis://" : "files and postgres://");
	if (is_postgres(from) != hx_options_has(&inv->options, HX_IMPORT_QUERY))
		return hx_report_usage(
			command,
			is_postgres(from) ? "missing option --query"
					  : "--query is for postgres://");
	if (hx_options_has(&inv->options, HX_IMPORT_WRITE) &&
	    hx_options_has(&inv->options, HX_IMPORT_DRY_RUN))
		return hx_report_usage(command, "cannot use --write together with --dry-run");
	if (strstr(from, "://") != NULL && !is_postgres(from) && !is_redis(from))
		return hx_report_misuse(
			command,
			"use FILE.csv, postgres://HOST/DB, redis://HOST, rediss://HOST or "
			"redis+unix:PATH; of a Redis Cluster, import each primary",
			"--from: unknown kind of source");
	return check_column_options(inv);
}

static void import_done(struct hx_import *import)
{
	for (size_t i = 0; import->batch != NULL && i < HX_IMPORT_BATCH_MAX; i++) {
		hx_buf_done(&import->batch[i].bytes);
		hx_buf_done(&import->batch[i].record_bytes);
	}
	for (size_t i = 0; i < import->sample_count; i++)
		hx_buf_done(&import->samples[i].name);
	hx_free(import->batch);
	hx_free(import->ops);
	hx_buf_done(&import->ignored);
	hx_buf_done(&import->name);
	hx_digest_table_done(&import->seen);
	hx_sha256_done(&import->sha);
	hapax_store_close(import->store);
}

static int import_init(struct hx_import *import, struct hx_invocation *inv)
{
	*import = (struct hx_import){
		.inv = inv,
		.is_written = hx_options_has(&inv->options, HX_IMPORT_WRITE),
		.skips_bad = hx_options_has(&inv->options, HX_IMPORT_SKIP_BAD),
		.ttl_ms = inv->settings.ttl_ms,
		.begin_ns = hx_clock_mono_ns(),
	};
	hx_buf_init(&import->ignored, IGNORED_SIZE);
	hx_buf_init(&import->name, NAME_SIZE);
	hx_digest_table_init(&import->seen, sizeof(struct seen), SEEN_BYTES);
	hx_progress_init(&import->progress);
	import->batch = hx_alloc_zero(HX_IMPORT_BATCH_MAX, sizeof(*import->batch));
	import->ops = hx_alloc_zero(HX_IMPORT_BATCH_MAX, sizeof(*import->ops));
	if (import->batch == NULL || import->ops == NULL ||
	    hx_sha256_init(&import->sha) != HAPAX_OK)
		return hx_report_no_memory(inv->command->name);
	for (size_t i = 0; i < HX_IMPORT_BATCH_MAX; i++) {
		hx_buf_init(&import->batch[i].bytes, ENTRY_SIZE_MAX);
		hx_buf_init(&import->batch[i].record_bytes, HX_RECORD_SIZE_MAX);
	}
	return HX_EXIT_OK;
}

static int read_source(struct hx_import *import, const char *from)
{
	int code = is_postgres(from) ? hx_import_postgres(import, from)
		: is_redis(from)     ? hx_import_redis(import, from)
				     : hx_import_csv(import, from);
	int flushed = HX_EXIT_OK;

	/* Rows before the place where it stopped are not lost, unless the store has failed. */
	if (code == HX_EXIT_OK || code == HX_EXIT_DATA || code > HX_EXIT_SIGNAL)
		flushed = hx_import_flush(import);
	hx_progress_done(&import->progress);
	return code == HX_EXIT_OK ? flushed : code;
}

int hx_import_action(struct hx_invocation *inv)
{
	const char *from = hx_options_text(&inv->options, HX_IMPORT_FROM);
	struct hx_import import;
	int code;

	if (from == NULL)
		return hx_report_misuse(
			inv->command->name, "use FILE.csv, postgres://HOST/DB or redis://HOST",
			"missing option --from");
	code = check_options(inv, from);
	if (code != HX_EXIT_OK)
		return code;
	code = import_init(&import, inv);
	if (code == HX_EXIT_OK) {
		hx_interrupt_watch();
		code = read_source(&import, from);
		if (import.has_begun)
			hx_import_print(&import, code == HX_EXIT_OK);
	}
	if (code == HX_EXIT_OK && import.bad.count > 0 && !import.skips_bad)
		code = HX_EXIT_DATA;
	if (code == HX_EXIT_OK && import.conflicts.count > 0)
		code = HX_EXIT_NO;
	import_done(&import);
	return code;
}
