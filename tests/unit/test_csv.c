/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comma-separated values: RFC 4180 and what it leaves open, limits, and the place of a fault.
 */
#include "wire/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

struct csv_case {
	const char *text;
	const char *records; /* fields in brackets, a blank after each record */
	unsigned line;       /* of a fault after them; 0: none */
	unsigned column;
};

/* clang-format off */
static const struct csv_case cases[] = {
	{"", "", 0, 0},
	{"a", "[a] ", 0, 0},
	{"a,b\n", "[a][b] ", 0, 0},
	{"a,b\r\nc,d\r\n", "[a][b] [c][d] ", 0, 0},
	{",\n", "[][] ", 0, 0},
	{"a,", "[a][] ", 0, 0},
	{"\n\r\na\n\n", "[a] ", 0, 0},
	{"\"\"\n", "[] ", 0, 0},
	{"\"\"\r\n", "[] ", 0, 0},
	{"\"a,b\",\"c\nd\",\"e\"\"f\"", "[a,b][c\nd][e\"f] ", 0, 0},
	{"\"\"\"\"", "[\"] ", 0, 0},
	{"\"\r\"\n", "[\r] ", 0, 0},
	{" a , b \n", "[ a ][ b ] ", 0, 0},
	{"\xef\xbb\xbf" "a\n", "[a] ", 0, 0},
	{"\xef\xbb", "[\xef\xbb] ", 0, 0},
	{"\xef\xbb\xb4,b\n", "[\xef\xbb\xb4][b] ", 0, 0},
	{"\xef\xbc\xa1\"", "", 1, 4},
	{"\xef\xbc\xa1\n\xef\xbb\xbf\n", "[\xef\xbc\xa1] [\xef\xbb\xbf] ", 0, 0},
	{"a\n\xef\xbb\xbf\n", "[a] [\xef\xbb\xbf] ", 0, 0},
	{"a\"", "", 1, 2},
	{"a\nb,c\"d\n", "[a] ", 2, 4},
	{"\"a\"b", "", 1, 4},
	{"\"a\" ,b", "", 1, 4},
	{"\"a", "", 1, 3},
	{"\"a\nb", "", 2, 2},
	{"a\rb", "", 1, 3},
	{"a\r", "", 1, 3},
};
/* clang-format on */

/* Read text in pieces of that size; what was read goes to out. */
static enum hx_csv_result read_all(
	struct hx_csv *csv, const char *text, size_t size, size_t step, struct hapax_buf *out)
{
	size_t at = 0;

	for (;;) {
		size_t left = size - at;
		size_t piece_size = left < step ? left : step;
		struct hapax_bytes piece = hx_bytes(text + at, piece_size);
		enum hx_csv_result result = hx_csv_read(csv, &piece, piece_size == left);

		at += piece_size - piece.size;
		if (result == HX_CSV_END || result == HX_CSV_BAD)
			return result;
		for (size_t i = 0; result == HX_CSV_RECORD && i < csv->count; i++) {
			struct hapax_bytes field = hx_csv_field(csv, i);

			(void)hx_buf_append_byte(out, '[');
			(void)hx_buf_append(out, field.data, field.size);
			(void)hx_buf_append_byte(out, ']');
		}
		if (result == HX_CSV_RECORD)
			(void)hx_buf_printf(out, " ");
	}
}

static void records_and_faults_do_not_depend_on_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t step = 1; step < 16; step++) {
			const struct csv_case *one = &cases[i];
			struct hapax_buf out;
			struct hx_csv csv;
			enum hx_csv_result result;

			hx_csv_init(&csv);
			hx_buf_init(&out, 1024);
			result = read_all(&csv, one->text, strlen(one->text), step, &out);
			if (!hx_bytes_equal(
				    hx_bytes(out.data, out.size),
				    hapax_bytes_from_text(one->records)) ||
			    (result == HX_CSV_BAD) != (one->line != 0) ||
			    (one->line != 0 &&
			     (csv.fault_line != one->line || csv.fault_column != one->column)))
				fail_msg(
					"'%s' by %zu: '%.*s', line %d, column %d", one->text, step,
					(int)out.size, (const char *)out.data, (int)csv.fault_line,
					(int)csv.fault_column);
			hx_buf_done(&out);
			hx_csv_done(&csv);
		}
}

static void a_record_has_a_limit_of_fields(void **state)
{
	char text[HX_CSV_FIELDS_MAX + 2];
	struct hapax_bytes piece = hx_bytes(text, HX_CSV_FIELDS_MAX);
	struct hx_csv csv;

	(void)state;
	memset(text, ',', sizeof(text));
	text[HX_CSV_FIELDS_MAX - 1] = '\n';
	hx_csv_init(&csv);
	assert_int_equal(hx_csv_read(&csv, &piece, true), HX_CSV_RECORD);
	assert_int_equal(csv.count, HX_CSV_FIELDS_MAX);
	hx_csv_done(&csv);
	text[HX_CSV_FIELDS_MAX - 1] = ',';
	text[HX_CSV_FIELDS_MAX] = '\n';
	piece = hx_bytes(text, HX_CSV_FIELDS_MAX + 1);
	hx_csv_init(&csv);
	assert_int_equal(hx_csv_read(&csv, &piece, true), HX_CSV_BAD);
	hx_csv_done(&csv);
}

static void a_record_has_a_limit_of_bytes(void **state)
{
	static char text[1024 * 1024];
	enum hx_csv_result result = HX_CSV_MORE;
	struct hx_csv csv;
	size_t count = 0;

	(void)state;
	memset(text, 'a', sizeof(text));
	hx_csv_init(&csv);
	while (result == HX_CSV_MORE) {
		struct hapax_bytes piece = hx_bytes(text, sizeof(text));

		result = hx_csv_read(&csv, &piece, false);
		count++;
	}
	assert_int_equal(result, HX_CSV_BAD);
	assert_int_equal(count, HX_CSV_RECORD_SIZE_MAX / sizeof(text) + 1);
	hx_csv_done(&csv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_and_faults_do_not_depend_on_pieces),
		cmocka_unit_test(a_record_has_a_limit_of_fields),
		cmocka_unit_test(a_record_has_a_limit_of_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
