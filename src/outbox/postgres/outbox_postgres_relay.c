/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_postgres_relay.c - the operations of a relay on an outbox in PostgreSQL.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "outbox/postgres/outbox_postgres.h"
#include "store/postgres/postgres_operation.h"

static struct hx_outbox_postgres *outbox_postgres_relay_of(struct hapax_outbox *outbox)
{
	struct hx_outbox_postgres *mine = (struct hx_outbox_postgres *)outbox;

	hx_outbox_postgres_assert(mine);
	/* A relay has a connection of its own, and no transaction between two calls. */
	assert(!mine->is_joined);
	assert(mine->depth == 0);
	return mine;
}

enum hapax_status hx_outbox_postgres_renew(
	struct hapax_outbox *outbox, const char *relay, const char *owner, int64_t lease_ms,
	bool is_idle, unsigned *ret_partitions, struct hapax_error *err)
{
	const void *values[] = {relay, owner, &lease_ms, is_idle ? "t" : "f"};
	int64_t partitions = 0;
	enum hapax_status status;

	assert(lease_ms > 0);
	status = hx_outbox_postgres_call(
		outbox_postgres_relay_of(outbox),
		"SELECT @@hapax_outbox_tend($1, $2, $3::bigint, $4::boolean)", "ttnt", values,
		"could not lease partitions", &partitions, err);
	if (status == HAPAX_OK)
		*ret_partitions = (unsigned)partitions;
	return status;
}

enum hapax_status hx_outbox_postgres_settle(
	struct hapax_outbox *outbox, const char *relay, int64_t pause_ms_max,
	struct hapax_error *err)
{
	const void *values[] = {relay, &pause_ms_max};

	assert(pause_ms_max > 0);
	return hx_outbox_postgres_call(
		outbox_postgres_relay_of(outbox), "SELECT @@hapax_outbox_settle($1, $2::bigint)",
		"tn", values, "could not check waiting rows", NULL, err);
}

enum hapax_status hx_outbox_postgres_leave(
	struct hapax_outbox *outbox, const char *relay, struct hapax_error *err)
{
	const void *values[] = {relay};

	return hx_outbox_postgres_call(
		outbox_postgres_relay_of(outbox), "SELECT @@hapax_outbox_leave($1)", "t", values,
		"could not give back the partitions", NULL, err);
}

enum hapax_status hx_outbox_postgres_set_idle(
	struct hapax_outbox *outbox, const char *relay, bool is_idle, struct hapax_error *err)
{
	const void *values[] = {relay, is_idle ? "t" : "f"};

	return hx_outbox_postgres_call(
		outbox_postgres_relay_of(outbox), "SELECT @@hapax_outbox_set_idle($1, $2::boolean)",
		"tt", values, "could not tell the outbox that the relay is idle", NULL, err);
}

static void free_result(void *result)
{
	PQclear(result);
}

/* In the order of hapax_outbox_fetch(). */
static void read_row(struct hx_outbox_row *row, const PGresult *result, int number)
{
	row->seq = hx_postgres_number(result, number, 0);
	row->token = hx_postgres_number(result, number, 1);
	row->attempts = hx_postgres_number(result, number, 2);
	row->created_ms = hx_postgres_number(result, number, 3);
	for (int i = 0; i < HX_OUTBOX_TEXTS; i++)
		*hx_outbox_row_text(row, i) = hx_postgres_get_bytes(result, number, 4 + i);
}

enum hapax_status hx_outbox_postgres_fetch(
	struct hapax_outbox *outbox, const char *relay, unsigned limit,
	struct hx_outbox_batch *batch, struct hapax_error *err)
{
	char limit_text[24], bytes_text[24];
	struct hx_outbox_argument arguments[] = {
		{relay, 0, false}, {limit_text, 0, false}, {bytes_text, 0, false}};
	PGresult *result = NULL;
	enum hapax_status status;

	assert(limit > 0);
	assert(limit <= HX_OUTBOX_BATCH_MAX);
	PQclear(batch->result);
	batch->result = NULL;
	batch->count = 0;
	(void)snprintf(limit_text, sizeof(limit_text), "%u", limit);
	(void)snprintf(bytes_text, sizeof(bytes_text), "%d", HX_OUTBOX_BATCH_BYTES);
	status = hx_outbox_postgres_run(
		outbox_postgres_relay_of(outbox),
		"SELECT * FROM @@hapax_outbox_fetch($1, $2::integer, $3::bigint)", arguments, 3,
		"could not read the outbox", &result, err);
	if (status != HAPAX_OK)
		return status;
	batch->result = result;
	batch->result_free = free_result;
	batch->count = (size_t)PQntuples(result);
	/* The function in the server keeps the limit; one that does not must not write beyond it. */
	if (batch->count > limit)
		batch->count = limit;
	for (size_t i = 0; i < batch->count; i++)
		read_row(&batch->rows[i], result, (int)i);
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ mark */

/* The arguments of hapax_outbox_mark(): arrays in PostgreSQL's notation, each with a NUL. */
enum {
	MARK_SENT,
	MARK_FAILED,
	MARK_TOKENS,
	MARK_ATTEMPTS,
	MARK_PARKED,
	MARK_ERRORS,
	MARK_PAUSES,
	MARKS
};

static enum hapax_status append_quoted(struct hapax_buf *buf, const char *text)
{
	size_t size = buf->size + strlen(text);
	enum hapax_status status = hx_buf_append_byte(buf, '"');

	for (; *text != '\0' && status == HAPAX_OK; text++) {
		if (*text == '"' || *text == '\\')
			status = hx_buf_append_byte(buf, '\\');
		if (status == HAPAX_OK)
			status = hx_buf_append_byte(buf, (unsigned char)*text);
	}
	if (status == HAPAX_OK)
		status = hx_buf_append_byte(buf, '"');
	assert(status != HAPAX_OK || buf->size >= size + 2);
	return status;
}

/* Append an element; quoted, if it is a text. */
static enum hapax_status append_mark(struct hapax_buf *buf, int64_t number, const char *text)
{
	const char *comma = buf->size == 1 ? "" : ",";
	enum hapax_status status;

	if (text == NULL)
		return hx_buf_printf(buf, "%s%" PRId64, comma, number);
	status = hx_buf_printf(buf, "%s", comma);
	return status == HAPAX_OK ? append_quoted(buf, text) : status;
}

static enum hapax_status append_row(struct hapax_buf *marks, const struct hx_outbox_row *row)
{
	const int64_t numbers[MARKS] = {
		[MARK_FAILED] = row->seq,
		[MARK_TOKENS] = row->token,
		[MARK_ATTEMPTS] = row->attempts,
		[MARK_PAUSES] = row->pause_ms};
	const char *const texts[MARKS] = {
		[MARK_PARKED] = row->is_parked ? "t" : "f", [MARK_ERRORS] = row->error};
	enum hapax_status status = HAPAX_OK;

	assert(row->outcome <= HX_OUTBOX_REFUSED);
	if (row->outcome == HX_OUTBOX_UNDECIDED)
		return HAPAX_OK;
	if (row->outcome == HX_OUTBOX_SENT)
		return append_mark(&marks[MARK_SENT], row->seq, NULL);
	assert(row->is_parked == (row->pause_ms == 0));
	assert(row->outcome != HX_OUTBOX_REFUSED || row->is_parked);
	/* The arrays grow together: the server pairs their elements. */
	for (size_t i = MARK_FAILED; i < MARKS && status == HAPAX_OK; i++) {
		assert((marks[i].size == 1) == (marks[MARK_PAUSES].size == 1));
		status = append_mark(&marks[i], numbers[i], texts[i]);
	}
	return status;
}

static enum hapax_status write_marks(struct hapax_buf *marks, const struct hx_outbox_batch *batch)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < MARKS && status == HAPAX_OK; i++)
		status = hx_buf_append_byte(&marks[i], '{');
	for (size_t i = 0; i < batch->count && status == HAPAX_OK; i++)
		status = append_row(marks, &batch->rows[i]);
	for (size_t i = 0; i < MARKS && status == HAPAX_OK; i++)
		status = hx_buf_append(&marks[i], "}", 2);
	return status;
}

enum hapax_status hx_outbox_postgres_mark(
	struct hapax_outbox *outbox, struct hx_outbox_batch *batch, struct hapax_error *err)
{
	struct hapax_buf marks[MARKS];
	const void *values[MARKS];
	enum hapax_status status;

	assert(batch->count <= HX_OUTBOX_BATCH_MAX);
	for (size_t i = 0; i < MARKS; i++)
		hx_buf_init(
			&marks[i], (size_t)HX_OUTBOX_BATCH_MAX * (2 * HX_OUTBOX_ERROR_SIZE + 4));
	status = write_marks(marks, batch);
	for (size_t i = 0; i < MARKS; i++)
		values[i] = marks[i].data;
	if (status != HAPAX_OK)
		status = hx_error_set(err, status, 0, "not enough memory to mark rows");
	else
		status = hx_outbox_postgres_call(
			outbox_postgres_relay_of(outbox),
			"SELECT @@hapax_outbox_mark($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[],"
			" $5::boolean[], $6::text[], $7::bigint[])",
			"ttttttt", values, "could not mark rows", NULL, err);
	for (size_t i = 0; i < MARKS; i++)
		hx_buf_done(&marks[i]);
	return status;
}
