/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: rows of a hostile PostgreSQL server as answers (src/store/postgres/postgres_answer.c).
 *
 * The input is a table: a byte that chooses the reader, one for the number of columns, then values,
 * each a byte of length (255: NULL) and its bytes; a row ends with its columns. libpq itself is not
 * tested. After rows were read, every operation has an outcome or a status.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "store/postgres/postgres_operation.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { OPS = 2, COLUMNS_MAX = 40, ROWS_MAX = 4, BYTES_MAX = 1 << 20, LENGTH_NULL = 255 };

static void must(int condition)
{
	if (!condition)
		abort();
}

static PGresult *make_rows(const unsigned char *data, size_t size, int columns)
{
	static char names[COLUMNS_MAX][2] = {{'c'}};
	PGresAttDesc attributes[COLUMNS_MAX];
	PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	size_t at = 0;

	memset(attributes, 0, sizeof(attributes));
	for (int i = 0; i < columns; i++) {
		attributes[i].name = names[i];
		attributes[i].format = 1;
	}
	must(rows != NULL && PQsetResultAttrs(rows, columns, attributes));
	for (int row = 0; row < ROWS_MAX && at < size; row++) {
		for (int i = 0; i < columns; i++) {
			size_t length = at < size ? data[at++] : LENGTH_NULL;
			bool is_null = length == LENGTH_NULL || length > size - at;
			char value[LENGTH_NULL];

			if (!is_null)
				memcpy(value, data + at, length);
			must(PQsetvalue(
				rows, row, i, is_null ? NULL : value, is_null ? -1 : (int)length));
			at += is_null ? 0 : length;
		}
	}
	return rows;
}

struct group {
	struct hapax_op ops[OPS];
	struct hapax_op *pointers[OPS];
	struct hapax_record records[OPS];
	struct hapax_buf bufs[OPS];
};

static void group_init(struct group *group, unsigned kind)
{
	static const unsigned char id[HAPAX_ATTEMPT_ID_SIZE] = {1};

	memset(group, 0, sizeof(*group));
	for (size_t i = 0; i < OPS; i++) {
		struct hapax_op *op = &group->ops[i];

		group->pointers[i] = op;
		op->type = (enum hapax_op_type)((kind + i) % HAPAX_OP_LOAD);
		op->key = HX_BYTES_LIT("key");
		op->attempt_id = id;
		op->token = 7;
		op->record = &group->records[i];
		op->buf = &group->bufs[i];
		hx_buf_init(&group->bufs[i], BYTES_MAX);
	}
}

static void read_rows(const PGresult *rows, unsigned reader, struct group *group)
{
	struct hapax_record record = {0};
	size_t place;
	size_t read = 0;

	switch (reader) {
	case 0:
		if (hx_postgres_answers_decode(rows, group->pointers, OPS)) {
			read = OPS;
			for (int i = 0; i < PQntuples(rows); i++)
				(void)hx_postgres_answer_holder(rows, i, &place);
		}
		break;
	case 1: read = hx_postgres_taken_decode(rows, &group->ops[0]); break;
	case 2: read = hx_postgres_finished_decode(rows, &group->ops[0]); break;
	default:
		if (PQntuples(rows) > 0)
			(void)hx_postgres_record_read(rows, 0, 0, &group->ops[0], &record);
		break;
	}
	for (size_t i = 0; i < read; i++)
		must(group->ops[i].status != HAPAX_OK ||
		     group->ops[i].outcome != HAPAX_OUTCOME_NONE);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct group group;
	PGresult *rows;

	if (size < 2 || data[1] % (COLUMNS_MAX + 1) == 0)
		return 0;
	rows = make_rows(data + 2, size - 2, data[1] % (COLUMNS_MAX + 1));
	group_init(&group, data[0] / 4);
	read_rows(rows, data[0] % 4, &group);
	for (size_t i = 0; i < OPS; i++)
		hx_buf_done(&group.bufs[i]);
	PQclear(rows);
	return 0;
}
