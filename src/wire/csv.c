/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/csv.h"

enum state {
	BEGIN,  /* of a field */
	PLAIN,  /* in a field without quotes */
	QUOTED, /* in a field with quotes */
	CLOSED, /* after a quote in such a field: its end, or a doubled quote */
	RETURN, /* after a CR */
};

static const unsigned char byte_order_mark[] = {0xef, 0xbb, 0xbf};

void hx_csv_init(struct hx_csv *csv)
{
	*csv = (struct hx_csv){.is_record_due = true, .at_line = 1, .at_column = 1};
	hx_buf_init(&csv->text, HX_CSV_RECORD_SIZE_MAX);
}

void hx_csv_done(struct hx_csv *csv)
{
	hx_buf_done(&csv->text);
}

static enum hx_csv_result csv_bad(struct hx_csv *csv, const char *why)
{
	csv->fault_line = csv->at_line;
	csv->fault_column = csv->at_column;
	csv->why = why;
	return HX_CSV_BAD;
}

/* Append the front of piece, up to the first byte that stops a field of this kind. */
static bool csv_append_run(struct hx_csv *csv, struct hapax_bytes *piece)
{
	const unsigned char *at = piece->data;
	size_t size = 0;

	while (size < piece->size && at[size] != '"' &&
	       (csv->state == QUOTED ? at[size] != '\n'
				     : at[size] != ',' && at[size] != '\n' && at[size] != '\r'))
		size++;
	if (size > 0 && hx_buf_append(&csv->text, at, size) != HAPAX_OK)
		return false;
	csv->at_column += size;
	piece->data = at + size;
	piece->size -= size;
	return true;
}

static bool csv_end_field(struct hx_csv *csv)
{
	if (csv->count == HX_CSV_FIELDS_MAX)
		return false;
	csv->ends[csv->count++] = csv->text.size;
	csv->state = BEGIN;
	return true;
}

/* A line end outside of quotes. An empty line is not a record. */
static enum hx_csv_result csv_end_record(struct hx_csv *csv)
{
	csv->is_record_due = true;
	if (csv->is_blank) {
		csv->state = BEGIN;
		return HX_CSV_MORE;
	}
	if (!csv_end_field(csv))
		return csv_bad(csv, "the record has more than 128 fields");
	return HX_CSV_RECORD;
}

static bool csv_is_empty(const struct hx_csv *csv)
{
	return csv->count == 0 && csv->text.size == 0 && csv->state == BEGIN;
}

/* One byte that has a meaning. MORE: continue. */
static enum hx_csv_result csv_take(struct hx_csv *csv, unsigned char byte)
{
	if (csv->state == QUOTED) {
		if (byte == '"')
			csv->state = CLOSED;
		else if (hx_buf_append_byte(&csv->text, byte) != HAPAX_OK)
			return csv_bad(csv, "the record is too large");
		return HX_CSV_MORE;
	}
	if (csv->state == RETURN && byte != '\n')
		return csv_bad(csv, "a CR must be followed by LF");
	switch (byte) {
	case '\n': csv->is_blank = csv->is_blank || csv_is_empty(csv); return csv_end_record(csv);
	case '\r':
		csv->is_blank = csv_is_empty(csv);
		csv->state = RETURN;
		return HX_CSV_MORE;
	case ',':
		return csv_end_field(csv) ? HX_CSV_MORE
					  : csv_bad(csv, "the record has more than 128 fields");
	case '"':
		if (csv->state == PLAIN)
			return csv_bad(csv, "a quote must begin the field");
		if (csv->state == CLOSED && hx_buf_append_byte(&csv->text, byte) != HAPAX_OK)
			return csv_bad(csv, "the record is too large");
		csv->state = QUOTED;
		return HX_CSV_MORE;
	default: return csv_bad(csv, "a comma or a line end must follow the closing quote");
	}
}

/* Skip what is there of a byte order mark at the very beginning. */
static void csv_skip_mark(struct hx_csv *csv, struct hapax_bytes *piece)
{
	const unsigned char *at = piece->data;

	while (piece->size > 0 && csv->at_line == 1 && csv->at_column == 1 &&
	       csv->mark_size < sizeof(byte_order_mark) && *at == byte_order_mark[csv->mark_size]) {
		csv->mark_size++;
		at++;
		piece->data = at;
		piece->size--;
	}
}

static void csv_begin_record(struct hx_csv *csv)
{
	hx_buf_clear(&csv->text);
	csv->count = 0;
	csv->line = csv->at_line;
	csv->is_record_due = false;
	csv->is_blank = false;
}

/* The skipped bytes begin another character: they are text. */
static bool csv_give_mark_back(struct hx_csv *csv)
{
	csv_begin_record(csv);
	csv->state = PLAIN;
	csv->at_column += csv->mark_size;
	if (hx_buf_append(&csv->text, byte_order_mark, csv->mark_size) != HAPAX_OK)
		return false;
	csv->mark_size = 0;
	return true;
}

static enum hx_csv_result csv_finish(struct hx_csv *csv)
{
	if (csv->state == QUOTED)
		return csv_bad(csv, "the closing quote is missing");
	if (csv->state == RETURN)
		return csv_bad(csv, "a CR must be followed by LF");
	if (csv->is_record_due || csv_is_empty(csv))
		return HX_CSV_END;
	return csv_end_record(csv);
}

enum hx_csv_result hx_csv_read(struct hx_csv *csv, struct hapax_bytes *piece, bool is_last)
{
	csv_skip_mark(csv, piece);
	if (csv->mark_size > 0 && csv->mark_size < sizeof(byte_order_mark) &&
	    (piece->size > 0 || is_last) && !csv_give_mark_back(csv))
		return csv_bad(csv, "the record is too large");
	while (piece->size > 0) {
		enum hx_csv_result result = HX_CSV_MORE;
		unsigned char byte;

		if (csv->is_record_due)
			csv_begin_record(csv);
		byte = *(const unsigned char *)piece->data;
		if (csv->state == BEGIN && byte != '"' && byte != ',' && byte != '\r' &&
		    byte != '\n')
			csv->state = PLAIN;
		if ((csv->state == PLAIN || csv->state == QUOTED) && !csv_append_run(csv, piece))
			return csv_bad(csv, "the record is too large");
		if (piece->size == 0)
			break;
		byte = *(const unsigned char *)piece->data;
		result = csv_take(csv, byte);
		if (result == HX_CSV_BAD)
			return result;
		piece->data = (const unsigned char *)piece->data + 1;
		piece->size--;
		csv->at_column++;
		if (byte == '\n') {
			csv->at_line++;
			csv->at_column = 1;
		}
		if (result == HX_CSV_RECORD)
			return result;
	}
	return is_last ? csv_finish(csv) : HX_CSV_MORE;
}
