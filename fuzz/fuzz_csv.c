/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: comma-separated values (src/wire/csv.c).
 *
 * The pieces in which input arrives change nothing: one byte at a time gives the same records, or the
 * same fault, as all of it. Records that are written again, all in quotes, are read as the same.
 */
#include <stdlib.h>

#include "base/bytes.h"
#include "wire/csv.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

/* Read on in pieces of that size; *at moves. */
static enum hx_csv_result next(
	struct hx_csv *csv, const unsigned char *data, size_t size, size_t step, size_t *at)
{
	for (;;) {
		size_t left = size - *at;
		size_t piece_size = left < step ? left : step;
		struct hapax_bytes piece = hx_bytes(data + *at, piece_size);
		enum hx_csv_result result = hx_csv_read(csv, &piece, piece_size == left);

		*at += piece_size - piece.size;
		if (result != HX_CSV_MORE)
			return result;
		must(piece.size == 0 && *at < size);
	}
}

static void write_again(const struct hx_csv *csv, struct hapax_buf *out)
{
	for (size_t i = 0; i < csv->count; i++) {
		struct hapax_bytes field = hx_csv_field(csv, i);
		const unsigned char *bytes = field.data;

		must(hx_buf_printf(out, i == 0 ? "\"" : ",\"") == HAPAX_OK);
		for (size_t j = 0; j < field.size; j++) {
			must(hx_buf_append_byte(out, bytes[j]) == HAPAX_OK);
			if (bytes[j] == '"')
				must(hx_buf_append_byte(out, '"') == HAPAX_OK);
		}
		must(hx_buf_append_byte(out, '"') == HAPAX_OK);
	}
	must(hx_buf_append_byte(out, '\n') == HAPAX_OK);
}

static void same_record(const struct hx_csv *a, const struct hx_csv *b)
{
	must(a->count == b->count);
	for (size_t i = 0; i < a->count; i++)
		must(hx_bytes_equal(hx_csv_field(a, i), hx_csv_field(b, i)));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hx_csv whole, bytewise, again;
	struct hapax_buf out;
	size_t whole_at = 0, bytewise_at = 0, again_at = 0;
	enum hx_csv_result result;

	hx_csv_init(&whole);
	hx_csv_init(&bytewise);
	hx_buf_init(&out, 4 * size + 1024);
	while ((result = next(&whole, data, size, size + 1, &whole_at)) == HX_CSV_RECORD) {
		must(next(&bytewise, data, size, 1, &bytewise_at) == HX_CSV_RECORD);
		same_record(&whole, &bytewise);
		must(whole.line == bytewise.line && whole.count > 0);
		hx_csv_init(&again);
		hx_buf_clear(&out);
		write_again(&whole, &out);
		again_at = 0;
		must(next(&again, out.data, out.size, 3, &again_at) == HX_CSV_RECORD);
		same_record(&whole, &again);
		must(next(&again, out.data, out.size, 3, &again_at) == HX_CSV_END);
		hx_csv_done(&again);
	}
	must(next(&bytewise, data, size, 1, &bytewise_at) == result);
	if (result == HX_CSV_BAD)
		must(whole.fault_line == bytewise.fault_line &&
		     whole.fault_column == bytewise.fault_column && whole.why != NULL);
	hx_csv_done(&whole);
	hx_csv_done(&bytewise);
	hx_buf_done(&out);
	return 0;
}
