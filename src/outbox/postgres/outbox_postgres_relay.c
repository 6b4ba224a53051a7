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

/* Columns of hapax_outbox_fetch(). */
enum column {
	COLUMN_SEQ,
	COLUMN_TOKEN,
	COLUMN_ATTEMPTS,
	COLUMN_CREATED,
	COLUMN_ID,
	COLUMN_TOPIC,
	COLUMN_KEY,
	COLUMN_TYPE,
	COLUMN_SOURCE,
	COLUMN_SUBJECT,
	COLUMN_CONTENT_TYPE,
	COLUMN_HEADERS,
	COLUMN_PAYLOAD,
};

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
	char lease[24];
	struct hx_outbox_argument arguments[] = {
		{relay, 0, false},
		{owner, 0, false},
		{lease, 0, false},
		{is_idle ? "t" : "f", 0, false}};
	PGresult *result = NULL;
	enum hapax_status status;

	assert(lease_ms > 0);
	(void)snprintf(lease, sizeof(lease), "%" PRId64, lease_ms);
	status = hx_outbox_postgres_run(
		outbox_postgres_relay_of(outbox),
		"SELECT @@hapax_outbox_tend($1, $2, $3::bigint, $4::boolean)", arguments, 4,
		"could not lease partitions", &result, err);
	if (status != HAPAX_OK)
		return status;
	*ret_partitions = (unsigned)hx_outbox_postgres_number(result, 0, 0);
	PQclear(result);
	return HAPAX_OK;
}

enum hapax_status hx_outbox_postgres_settle(
	struct hapax_outbox *outbox, const char *relay, int64_t pause_ms_max,
	struct hapax_error *err)
{
	char pause[24];
	struct hx_outbox_argument arguments[] = {{relay, 0, false}, {pause, 0, false}};

	assert(pause_ms_max > 0);
	(void)snprintf(pause, sizeof(pause), "%" PRId64, pause_ms_max);
	return hx_outbox_postgres_run(
		outbox_postgres_relay_of(outbox), "SELECT @@hapax_outbox_settle($1, $2::bigint)",
		arguments, 2, "could not check waiting rows", NULL, err);
}

enum hapax_status hx_outbox_postgres_leave(
	struct hapax_outbox *outbox, const char *relay, struct hapax_error *err)
{
	struct hx_outbox_argument arguments[] = {{relay, 0, false}};

	return hx_outbox_postgres_run(
		outbox_postgres_relay_of(outbox), "SELECT @@hapax_outbox_leave($1)", arguments, 1,
		"could not give back the partitions", NULL, err);
}

enum hapax_status hx_outbox_postgres_set_idle(
	struct hapax_outbox *outbox, const char *relay, bool is_idle, struct hapax_error *err)
{
	struct hx_outbox_argument arguments[] = {
		{relay, 0, false}, {is_idle ? "t" : "f", 0, false}};

	return hx_outbox_postgres_run(
		outbox_postgres_relay_of(outbox), "SELECT @@hapax_outbox_set_idle($1, $2::boolean)",
		arguments, 2, "could not tell the outbox that the relay is idle", NULL, err);
}

static void free_result(void *result)
{
	PQclear(result);
}

static void read_row(struct hx_outbox_row *row, const PGresult *result, int number)
{
	row->seq = hx_outbox_postgres_number(result, number, COLUMN_SEQ);
	row->token = hx_outbox_postgres_number(result, number, COLUMN_TOKEN);
	row->attempts = hx_outbox_postgres_number(result, number, COLUMN_ATTEMPTS);
	row->created_ms = hx_outbox_postgres_number(result, number, COLUMN_CREATED);
	row->id = hx_outbox_postgres_bytes(result, number, COLUMN_ID);
	row->topic = hx_outbox_postgres_bytes(result, number, COLUMN_TOPIC);
	row->ordering_key = hx_outbox_postgres_bytes(result, number, COLUMN_KEY);
	row->type = hx_outbox_postgres_bytes(result, number, COLUMN_TYPE);
	row->source = hx_outbox_postgres_bytes(result, number, COLUMN_SOURCE);
	row->subject = hx_outbox_postgres_bytes(result, number, COLUMN_SUBJECT);
	row->content_type = hx_outbox_postgres_bytes(result, number, COLUMN_CONTENT_TYPE);
	row->headers = hx_outbox_postgres_bytes(result, number, COLUMN_HEADERS);
	row->payload = hx_outbox_postgres_bytes(result, number, COLUMN_PAYLOAD);
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

/* Arrays in PostgreSQL's notation; each ends with a NUL. */
struct marks {
	struct hapax_buf sent, failed, tokens, attempts, parked, errors, pauses;
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

static enum hapax_status append_failed(struct marks *marks, const struct hx_outbox_row *row)
{
	const char *comma = marks->failed.size == 1 ? "" : ",";
	enum hapax_status status = hx_buf_printf(&marks->failed, "%s%" PRId64, comma, row->seq);

	/* The arrays grow together: the server pairs their elements. */
	assert((marks->tokens.size == 1) == (comma[0] == 0));
	assert(row->is_parked == (row->pause_ms == 0));
	assert(row->outcome != HX_OUTBOX_REFUSED || row->is_parked);
	if (status == HAPAX_OK)
		status = hx_buf_printf(&marks->tokens, "%s%" PRId64, comma, row->token);
	if (status == HAPAX_OK)
		status = hx_buf_printf(&marks->attempts, "%s%" PRId64, comma, row->attempts);
	if (status == HAPAX_OK)
		status = hx_buf_printf(&marks->parked, "%s%s", comma, row->is_parked ? "t" : "f");
	if (status == HAPAX_OK)
		status = hx_buf_printf(&marks->pauses, "%s%" PRId64, comma, row->pause_ms);
	if (status == HAPAX_OK)
		status = hx_buf_printf(&marks->errors, "%s", comma);
	if (status == HAPAX_OK)
		status = append_quoted(&marks->errors, row->error);
	return status;
}

static enum hapax_status append_row(struct marks *marks, const struct hx_outbox_row *row)
{
	assert(row->outcome <= HX_OUTBOX_REFUSED);
	switch (row->outcome) {
	case HX_OUTBOX_UNDECIDED: return HAPAX_OK;
	case HX_OUTBOX_SENT:
		return hx_buf_printf(
			&marks->sent, "%s%" PRId64, marks->sent.size == 1 ? "" : ",", row->seq);
	case HX_OUTBOX_FAILED:
	case HX_OUTBOX_REFUSED: return append_failed(marks, row);
	}
	return HAPAX_OK;
}

static enum hapax_status write_marks(
	struct hapax_buf *const *bufs, size_t count, struct marks *marks,
	const struct hx_outbox_batch *batch)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = hx_buf_append_byte(bufs[i], '{');
	for (size_t i = 0; i < batch->count && status == HAPAX_OK; i++)
		status = append_row(marks, &batch->rows[i]);
	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = hx_buf_append(bufs[i], "}", 2);
	return status;
}

enum hapax_status hx_outbox_postgres_mark(
	struct hapax_outbox *outbox, struct hx_outbox_batch *batch, struct hapax_error *err)
{
	struct marks marks;
	struct hapax_buf *const bufs[] = {&marks.sent,     &marks.failed, &marks.tokens,
					  &marks.attempts, &marks.parked, &marks.errors,
					  &marks.pauses};
	enum { ARRAYS = HX_COUNT(bufs) };
	struct hx_outbox_argument arguments[ARRAYS];
	enum hapax_status status;

	_Static_assert(
		(int)ARRAYS <= (int)HX_OUTBOX_POSTGRES_ARGUMENTS_MAX, "each array is an argument");
	assert(batch->count <= HX_OUTBOX_BATCH_MAX);
	for (size_t i = 0; i < ARRAYS; i++)
		hx_buf_init(bufs[i], (size_t)HX_OUTBOX_BATCH_MAX * (2 * HX_OUTBOX_ERROR_SIZE + 4));
	status = write_marks(bufs, ARRAYS, &marks, batch);
	for (size_t i = 0; i < ARRAYS; i++)
		arguments[i] = (struct hx_outbox_argument){bufs[i]->data, 0, false};
	if (status != HAPAX_OK)
		status = hx_error_set(err, status, 0, "not enough memory to mark rows");
	else
		status = hx_outbox_postgres_run(
			outbox_postgres_relay_of(outbox),
			"SELECT @@hapax_outbox_mark($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[],"
			" $5::boolean[], $6::text[], $7::bigint[])",
			arguments, ARRAYS, "could not mark rows", NULL, err);
	for (size_t i = 0; i < ARRAYS; i++)
		hx_buf_done(bufs[i]);
	return status;
}
