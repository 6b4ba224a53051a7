/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h - parse comma-separated values (RFC 4180) that arrive in pieces.
 *
 *	while ((result = hx_csv_read(&csv, &piece, is_last)) == HX_CSV_RECORD)
 *		use(hx_csv_field(&csv, 0));
 *
 * Lines end with LF or CRLF. A field in quotes may contain commas, line ends, and quotes, which are
 * doubled. Empty lines and a byte order mark at the beginning are skipped. Nothing else is
 * forgiven: a quote in a plain field, text after a closing quote, and a CR alone are faults.
 *
 * Threads: one at a time.
 */
#ifndef HX_WIRE_CSV_H
#define HX_WIRE_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	HX_CSV_FIELDS_MAX = 128,
	HX_CSV_RECORD_SIZE_MAX = 32 * 1024 * 1024, /* of its values */
};

enum hx_csv_result {
	HX_CSV_MORE,   /* the piece is used up; pass the next one */
	HX_CSV_RECORD, /* one record is complete; the rest of the piece follows it */
	HX_CSV_END,    /* the last piece is used up */
	HX_CSV_BAD,    /* why, at fault_line and fault_column; nothing more can be read */
};

struct hx_csv {
	struct hapax_buf text; /* the values of the record, one after the other */
	size_t ends[HX_CSV_FIELDS_MAX];
	size_t count;  /* fields of the record */
	uint64_t line; /* in which the record begins, from 1 */
	uint64_t fault_line;
	uint64_t fault_column; /* in bytes, from 1 */
	const char *why;
	/* Private. */
	int state;
	bool is_record_due; /* the next byte begins a record */
	bool is_blank;      /* the record has nothing before its line end */
	uint64_t at_line;
	uint64_t at_column;
	unsigned mark_size; /* bytes of the byte order mark that were skipped */
};

void hx_csv_init(struct hx_csv *csv);
void hx_csv_done(struct hx_csv *csv);

/* Read up to the end of a record; *piece moves past the bytes read. is_last: no piece follows. */
enum hx_csv_result hx_csv_read(struct hx_csv *csv, struct hapax_bytes *piece, bool is_last);

/* A field of the record; valid until the next call of read. */
static inline struct hapax_bytes hx_csv_field(const struct hx_csv *csv, size_t index)
{
	size_t begin = index == 0 ? 0 : csv->ends[index - 1];

	assert(index < csv->count);
	/* Every field is empty. */
	if (csv->text.data == NULL)
		return (struct hapax_bytes){NULL, 0};
	return (struct hapax_bytes){csv->text.data + begin, csv->ends[index] - begin};
}

#endif
