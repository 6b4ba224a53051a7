/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_csv.c - rows of a file of comma-separated values, whose first line names the columns.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"
#include "cli/import/import.h"
#include "cli/input/input.h"
#include "wire/csv.h"

static int take_record(struct hx_import *import, const struct hx_csv *csv)
{
	struct hapax_bytes fields[HX_CSV_FIELDS_MAX];

	for (size_t i = 0; i < csv->count; i++)
		fields[i] = hx_csv_field(csv, i);
	(void)snprintf(import->place, sizeof(import->place), "line %" PRIu64, csv->line);
	if (import->source_columns == 0)
		return hx_import_columns(import, fields, csv->count);
	return hx_import_take_fields(import, fields, csv->count);
}

static int read_piece(
	struct hx_import *import, struct hx_csv *csv, struct hx_input *input, bool *ret_is_at_end)
{
	struct hapax_bytes piece;
	int code = hx_input_piece(input, &piece);
	double before = (double)(input->offset - piece.size);

	*ret_is_at_end = input->is_at_end;
	if (code == HX_EXIT_OK && hx_interrupt_signal() != 0)
		return HX_EXIT_SIGNAL + hx_interrupt_signal();
	while (code == HX_EXIT_OK) {
		if (input->size > 0)
			import->share = before / (double)input->size;
		switch (hx_csv_read(csv, &piece, input->is_at_end)) {
		case HX_CSV_RECORD: code = take_record(import, csv); break;
		case HX_CSV_BAD:
			hx_progress_done(&import->progress);
			hx_report(
				import->inv->command->name,
				"'%s' is not CSV at line %" PRIu64 ", column %" PRIu64 ": %s",
				input->name, csv->fault_line, csv->fault_column, csv->why);
			return HX_EXIT_DATA;
		case HX_CSV_MORE:
		case HX_CSV_END: return HX_EXIT_OK;
		}
	}
	return code;
}

int hx_import_csv(struct hx_import *import, const char *path)
{
	struct hx_input input;
	struct hx_csv csv;
	bool is_at_end = false;
	int code = hx_input_open(&input, import->inv->command->name, path);

	hx_csv_init(&csv);
	while (code == HX_EXIT_OK && !is_at_end)
		code = read_piece(import, &csv, &input, &is_at_end);
	if (code == HX_EXIT_OK && import->source_columns == 0) {
		hx_report(
			import->inv->command->name,
			"'%s' is empty: the first line must name the columns", input.name);
		code = HX_EXIT_DATA;
	}
	hx_csv_done(&csv);
	hx_input_close(&input);
	return code;
}
