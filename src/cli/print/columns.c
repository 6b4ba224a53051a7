/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c - rows in columns.
 */
#include "cli/print/columns.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "cli/print/text.h"

/* A page of a thousand rows with the longest keys, all escaped. */
enum { CELLS_SIZE_MAX = 64 * 1024 * 1024 };

enum { GAP = 2 };

void hx_columns_init(struct hx_columns *table, const struct hx_column *columns, size_t column_count)
{
	assert(column_count >= 1 && column_count <= HX_COLUMNS_MAX);
	*table = (struct hx_columns){.columns = columns, .column_count = column_count};
	for (size_t i = 0; i < column_count; i++)
		table->widths[i] = hx_text_columns(columns[i].heading);
	hx_buf_init(&table->cells, CELLS_SIZE_MAX);
}

void hx_columns_done(struct hx_columns *table)
{
	hx_buf_done(&table->cells);
}

/* Begin and end a cell; text written in between is its content. */
static void cell_begin(struct hx_columns *table, enum hx_color color)
{
	if (table->status == HAPAX_OK)
		table->status = hx_buf_append_byte(&table->cells, (unsigned char)color);
}

static void cell_end(struct hx_columns *table, size_t text_at)
{
	size_t *width = &table->widths[table->cell_count % table->column_count];
	size_t columns;

	if (table->status == HAPAX_OK)
		table->status = hx_buf_append_byte(&table->cells, '\0');
	if (table->status != HAPAX_OK)
		return;
	columns = hx_text_columns((const char *)table->cells.data + text_at);
	if (columns > *width)
		*width = columns;
	table->cell_count++;
}

void hx_columns_bytes(struct hx_columns *table, struct hapax_bytes text)
{
	size_t text_at = table->cells.size + 1;

	cell_begin(table, HX_COLOR_NONE);
	if (table->status == HAPAX_OK)
		table->status = hx_text_escape(&table->cells, text);
	cell_end(table, text_at);
}

void hx_columns_text(struct hx_columns *table, enum hx_color color, const char *text)
{
	size_t text_at = table->cells.size + 1;

	cell_begin(table, color);
	if (table->status == HAPAX_OK)
		table->status = hx_buf_append(&table->cells, text, strlen(text));
	cell_end(table, text_at);
}

void hx_columns_count(struct hx_columns *table, uint64_t count)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, count);
	hx_columns_text(table, HX_COLOR_NONE, text);
}

static void print_cell(
	const struct hx_columns *table, struct hx_out *out, size_t column, enum hx_color color,
	const char *text)
{
	size_t padding = table->widths[column] - hx_text_columns(text);
	bool is_last = column + 1 == table->column_count;

	if (table->columns[column].is_right)
		hx_out_spaces(out, padding);
	hx_out_colored(out, color, text);
	if (is_last)
		hx_out_text(out, "\n");
	else
		hx_out_spaces(out, GAP + (table->columns[column].is_right ? 0 : padding));
}

enum hapax_status hx_columns_print(struct hx_columns *table, struct hx_out *out)
{
	const char *cell = (const char *)table->cells.data;

	if (table->status != HAPAX_OK)
		return table->status;
	assert(table->cell_count % table->column_count == 0);
	if (!table->has_heading)
		for (size_t i = 0; i < table->column_count; i++)
			print_cell(table, out, i, HX_COLOR_NONE, table->columns[i].heading);
	table->has_heading = true;
	for (size_t i = 0; i < table->cell_count; i++) {
		print_cell(
			table, out, i % table->column_count, (enum hx_color)(unsigned char)cell[0],
			cell + 1);
		cell += 1 + strlen(cell + 1) + 1;
	}
	hx_buf_clear(&table->cells);
	table->cell_count = 0;
	return HAPAX_OK;
}
