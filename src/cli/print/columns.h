/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - rows in columns, for people.
 *
 * Rows are collected and printed a page at a time, so that a listing of ten million keys needs the
 * memory of one page. Columns grow from page to page, never shrink.
 */
#ifndef HX_CLI_PRINT_COLUMNS_H
#define HX_CLI_PRINT_COLUMNS_H

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/buf.h"
#include "cli/print/out.h"

enum { HX_COLUMNS_MAX = 12 };

struct hx_column {
	const char *heading;
	bool is_right; /* align right, for numbers */
};

struct hx_columns {
	const struct hx_column *columns;
	size_t column_count;
	size_t widths[HX_COLUMNS_MAX];
	bool has_heading;       /* printed already */
	struct hapax_buf cells; /* of the waiting rows: color byte, text, NUL */
	size_t cell_count;
	enum hapax_status status; /* the first failure; nothing is collected after it */
};

void hx_columns_init(
	struct hx_columns *table, const struct hx_column *columns, size_t column_count);
void hx_columns_done(struct hx_columns *table);

/* Add the next cell, from left to right and row by row. */
void hx_columns_bytes(struct hx_columns *table, struct hapax_bytes text);
void hx_columns_text(struct hx_columns *table, enum hx_color color, const char *text);
void hx_columns_count(struct hx_columns *table, uint64_t count);

/* Print the rows collected since the last call, with the heading before the first. */
enum hapax_status hx_columns_print(struct hx_columns *table, struct hx_out *out);

#endif
