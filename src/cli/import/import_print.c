/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_print.c - what an import has found: counts, the first rows, conflicts and bad rows.
 */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "cli/frame/report.h"
#include "cli/import/import.h"
#include "cli/print/columns.h"
#include "cli/print/text.h"
#include "wire/json/json_write.h"

static struct hapax_bytes scope_of(const struct hx_import_sample *sample)
{
	return hx_bytes(sample->name.data, sample->key_at);
}

static struct hapax_bytes key_of(const struct hx_import_sample *sample)
{
	return hx_bytes(sample->name.data + sample->key_at, sample->name.size - sample->key_at);
}

static size_t kept(const struct hx_import_notes *notes)
{
	return notes->count < HX_IMPORT_NOTES_MAX ? (size_t)notes->count : HX_IMPORT_NOTES_MAX;
}

/* ------------------------------------------------------------------ JSON */

static void notes_json(
	struct hx_json_write *json, const char *name, const char *place,
	const struct hx_import_notes *notes)
{
	hx_json_write_begin(json, name, '[');
	for (size_t i = 0; i < kept(notes); i++) {
		hx_json_write_begin(json, NULL, '{');
		hx_json_write_any(json, place, hapax_bytes_from_text(notes->notes[i].place));
		hx_json_write_any(json, "reason", hapax_bytes_from_text(notes->notes[i].why));
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, ']');
}

static void samples_json(struct hx_json_write *json, const struct hx_import *import)
{
	hx_json_write_begin(json, "first", '[');
	for (size_t i = 0; i < import->sample_count; i++) {
		const struct hx_import_sample *sample = &import->samples[i];

		hx_json_write_begin(json, NULL, '{');
		hx_json_write_bytes(json, "key", key_of(sample));
		hx_json_write_bytes(json, "scope", scope_of(sample));
		hx_json_write_text(json, "kind", sample->is_mark ? "mark" : "result");
		hx_json_write_time(json, "expires_at", sample->ends_ms);
		hx_json_write_end(json, '}');
	}
	hx_json_write_end(json, ']');
}

static void print_json(struct hx_import *import, bool is_complete)
{
	struct hx_json_write json;
	bool has_end = import->last_end_ms != 0;

	hx_out_json(&json, &import->inv->out);
	hx_json_write_boolean(&json, "dry_run", !import->is_written);
	hx_json_write_boolean(&json, "complete", is_complete);
	hx_json_write_unsigned(&json, "rows", import->rows);
	hx_json_write_unsigned(&json, "new", import->marks + import->results);
	hx_json_write_unsigned(&json, "marks", import->marks);
	hx_json_write_unsigned(&json, "results", import->results);
	hx_json_write_unsigned(&json, "existing", import->existing);
	hx_json_write_unsigned(&json, "repeated", import->repeated);
	hx_json_write_unsigned(&json, "expired", import->expired);
	hx_json_write_unsigned(&json, "conflicts", import->conflicts.count);
	hx_json_write_unsigned(&json, "bad", import->bad.count);
	hx_json_write_unsigned(&json, "forever", import->forever);
	hx_json_write_time(&json, "first_expiry", has_end ? import->first_end_ms : INT64_MAX);
	hx_json_write_time(&json, "last_expiry", has_end ? import->last_end_ms : INT64_MAX);
	hx_json_write_signed(
		&json, "duration_ms", (hx_clock_mono_ns() - import->begin_ns) / HX_NS_PER_MS);
	hx_json_write_bytes(
		&json, "ignored_columns", hx_bytes(import->ignored.data, import->ignored.size));
	if (import->name.size > 0)
		hx_json_write_bytes(&json, "name", hx_bytes(import->name.data, import->name.size));
	if (!import->is_written)
		samples_json(&json, import);
	notes_json(&json, "conflict_rows", "key", &import->conflicts);
	notes_json(&json, "bad_rows", "place", &import->bad);
	hx_json_write_end(&json, '}');
}

/* ------------------------------------------------------------------ text */

static void notes_text(struct hx_out *out, const char *heading, const struct hx_import_notes *notes)
{
	if (notes->count == 0)
		return;
	hx_out_printf(out, "\n%s:\n", heading);
	for (size_t i = 0; i < kept(notes); i++) {
		hx_out_text(out, "  ");
		hx_out_escaped(out, hapax_bytes_from_text(notes->notes[i].place));
		hx_out_text(out, ": ");
		hx_out_escaped(out, hapax_bytes_from_text(notes->notes[i].why));
		hx_out_text(out, "\n");
	}
	if (notes->count > HX_IMPORT_NOTES_MAX)
		hx_out_printf(out, "  and %" PRIu64 " more\n", notes->count - HX_IMPORT_NOTES_MAX);
}

static void samples_text(struct hx_import *import)
{
	static const struct hx_column columns[] = {
		{"KEY", false}, {"SCOPE", false}, {"KIND", false}, {"EXPIRES", false}};
	struct hx_columns table;
	char time[HX_TEXT_SIZE];

	if (import->sample_count == 0)
		return;
	hx_out_text(&import->inv->out, "\n");
	hx_columns_init(&table, columns, HX_COUNT(columns));
	for (size_t i = 0; i < import->sample_count; i++) {
		const struct hx_import_sample *sample = &import->samples[i];

		hx_columns_bytes(&table, key_of(sample));
		hx_columns_bytes(&table, scope_of(sample));
		hx_columns_text(&table, HX_COLOR_NONE, sample->is_mark ? "mark" : "result");
		hx_text_time(sample->ends_ms, time);
		hx_columns_text(&table, HX_COLOR_NONE, time);
	}
	(void)hx_columns_print(&table, &import->inv->out);
	hx_columns_done(&table);
}

static void print_text(struct hx_import *import, bool is_complete)
{
	struct hx_out *out = &import->inv->out;
	char first[HX_TEXT_SIZE], last[HX_TEXT_SIZE];

	hx_out_line(out, "rows", "%" PRIu64 "%s", import->rows, is_complete ? "" : " (stopped)");
	hx_out_line(
		out, import->is_written ? "written" : "new",
		"%" PRIu64 " (%" PRIu64 " marks, %" PRIu64 " results)",
		import->marks + import->results, import->marks, import->results);
	hx_out_line(out, "existing", "%" PRIu64, import->existing);
	hx_out_line(out, "repeated", "%" PRIu64, import->repeated);
	hx_out_line(out, "expired", "%" PRIu64, import->expired);
	hx_out_line(out, "conflicts", "%" PRIu64, import->conflicts.count);
	hx_out_line(out, "bad", "%" PRIu64, import->bad.count);
	if (import->last_end_ms != 0) {
		hx_text_time(import->first_end_ms, first);
		hx_text_time(import->last_end_ms, last);
		hx_out_line(out, "expiry", "%s to %s", first, last);
	}
	if (import->forever > 0)
		hx_out_line(out, "forever", "%" PRIu64, import->forever);
	if (import->ignored.size > 0)
		hx_out_line_escaped(
			out, "not used", hx_bytes(import->ignored.data, import->ignored.size));
	if (import->name.size > 0)
		hx_out_line_escaped(out, "name", hx_bytes(import->name.data, import->name.size));
	if (!import->is_written)
		samples_text(import);
	notes_text(out, "conflicts; the store keeps what it has", &import->conflicts);
	notes_text(out, "bad rows", &import->bad);
}

void hx_import_print(struct hx_import *import, bool is_complete)
{
	const char *command = import->inv->command->name;

	if (import->inv->settings.format == HX_FORMAT_JSON)
		print_json(import, is_complete);
	else
		print_text(import, is_complete);
	hx_out_flush(&import->inv->out);
	if (import->has_forgotten)
		hx_report(
			command,
			"note: there are more than %zu keys; later rows of a key count as existing",
			import->seen.count);
	if (!import->is_written && is_complete)
		hx_report(command, "note: this was a dry run; add --write to import");
	else if (
		import->is_written && !is_complete && (import->bad.count == 0 || import->skips_bad))
		hx_report(command, "note: repeat the command to continue");
}
