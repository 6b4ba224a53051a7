/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_postgres_manage.c - administration of an outbox in PostgreSQL.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "outbox/postgres/outbox_postgres.h"
#include "store/postgres/postgres_fault.h"
#include "store/postgres/postgres_operation.h"

enum { BYTEA_OID = 17 }; /* pg_type.h is the server's */

static struct hx_outbox_postgres *outbox_postgres_manage_of(struct hapax_outbox *outbox)
{
	struct hx_outbox_postgres *mine = (struct hx_outbox_postgres *)outbox;

	hx_outbox_postgres_assert(mine);
	return mine;
}

enum hapax_status hx_outbox_postgres_retry(
	struct hapax_outbox *outbox, const char *id, const char *ordering_key, uint64_t *count,
	struct hapax_error *err)
{
	const void *values[] = {id, ordering_key};

	return hx_outbox_postgres_call(
		outbox_postgres_manage_of(outbox),
		"SELECT @@hapax_outbox_retry($1::text, $2::text)", "tt", values,
		"could not retry events", (int64_t *)count, err);
}

enum hapax_status hx_outbox_postgres_park(
	struct hapax_outbox *outbox, const char *id, uint64_t *count, struct hapax_error *err)
{
	const void *values[] = {id};

	return hx_outbox_postgres_call(
		outbox_postgres_manage_of(outbox), "SELECT @@hapax_outbox_park($1::text)", "t",
		values, "could not park the event", (int64_t *)count, err);
}

enum hapax_status hx_outbox_postgres_purge(
	struct hapax_outbox *outbox, const char *relay, int64_t age_ms, unsigned limit,
	uint64_t *count, struct hapax_error *err)
{
	int64_t rows = limit;
	const void *values[] = {&age_ms, &rows, relay};

	assert(age_ms >= 0);
	assert(limit > 0);
	return hx_outbox_postgres_call(
		outbox_postgres_manage_of(outbox),
		"SELECT CASE WHEN $3::text IS NULL OR EXISTS (SELECT FROM @@hapax_outbox_part WHERE part = 0"
		" AND relay = $3::text AND until_ms > @@hapax_outbox_now())"
		" THEN @@hapax_outbox_purge($1::bigint, $2::integer) ELSE 0 END",
		"nnt", values, "could not purge events", (int64_t *)count, err);
}

enum hapax_status hx_outbox_postgres_adopt(
	struct hapax_outbox *base, const struct hapax_outbox_table *table, bool with_existing,
	uint64_t *count, struct hapax_error *err)
{
	struct hx_outbox_postgres *outbox = outbox_postgres_manage_of(base);
	const void *values[] = {
		table->table,
		table->id,
		table->topic,
		table->topic_prefix == NULL ? "" : table->topic_prefix,
		table->ordering_key,
		table->type,
		table->payload,
		table->status,
		table->pending,
		table->processed,
		with_existing ? "t" : "f"};
	enum hapax_status status;

	assert(!outbox->is_patient);
	status = hx_outbox_postgres_be_patient(outbox, true, err);
	if (status != HAPAX_OK)
		return status;
	status = hx_outbox_postgres_call(
		outbox,
		"SELECT @@hapax_outbox_adopt($1::text, $2::text, $3::text, $4::text, $5::text, $6::text,"
		" $7::text, $8::text, $9::text, $10::text, $11::boolean)",
		"ttttttttttt", values, "could not adopt the table", (int64_t *)count, err);
	(void)hx_outbox_postgres_be_patient(outbox, false, NULL);
	return status;
}

/* Run the caller's SQL, as text. On our own connection it may take long, and must not write. */
static PGresult *ask(struct hx_outbox_postgres *outbox, const char *value)
{
	bool is_callers = value == NULL && !outbox->is_joined;
	PGresult *result;

	assert(outbox->conn != NULL);
	assert(outbox->sql.data[outbox->sql.size - 1] == '\0');
	(void)PQsetnonblocking(outbox->conn, 0);
	if (is_callers)
		PQclear(PQexec(outbox->conn, "BEGIN READ ONLY; SET LOCAL statement_timeout = 0"));
	result = PQexecParams(
		outbox->conn, (const char *)outbox->sql.data, value == NULL ? 0 : 1, NULL, &value,
		NULL, NULL, 0);
	if (is_callers)
		PQclear(PQexec(outbox->conn, "ROLLBACK"));
	if (!outbox->is_joined)
		(void)PQsetnonblocking(outbox->conn, 1);
	hx_outbox_postgres_assert(outbox);
	return result;
}

/* Report the server's error about a caller's query, unchanged. */
static enum hapax_status query_error(
	struct hx_outbox_postgres *outbox, const PGresult *result, struct hapax_error *err)
{
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (PQresultStatus(result) != PGRES_FATAL_ERROR ||
	    hx_postgres_fault(result) != HX_POSTGRES_FAULT_LOST)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the query failed: %s",
			text == NULL ? "it has no result set; use a SELECT" : text);
	hx_outbox_postgres_disconnect(outbox);
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "the query was not answered: %s",
		text == NULL ? "the connection to PostgreSQL was lost" : text);
}

/* Pass one row as texts; bytea as raw bytes, not in SQL notation. False: no memory. */
static bool hand_out(
	const PGresult *result, int number, hapax_outbox_row_fn *row, void *context, bool *ret_ends)
{
	struct hapax_field fields[HX_OUTBOX_COLUMNS_MAX];
	unsigned char *bytes[HX_OUTBOX_COLUMNS_MAX] = {NULL};
	int columns = PQnfields(result);
	bool is_good = true;

	assert(columns <= HX_OUTBOX_COLUMNS_MAX);
	assert(number < PQntuples(result));
	for (int i = 0; i < columns; i++) {
		fields[i].name = hapax_bytes_from_text(PQfname(result, i));
		fields[i].value = hx_postgres_get_bytes(result, number, i);
		if (PQftype(result, i) != BYTEA_OID || fields[i].value.data == NULL)
			continue;
		bytes[i] = PQunescapeBytea(fields[i].value.data, &fields[i].value.size);
		fields[i].value.data = bytes[i];
		is_good = is_good && bytes[i] != NULL;
	}
	if (is_good)
		*ret_ends = row(context, fields, (size_t)columns) != 0;
	for (int i = 0; i < columns; i++)
		PQfreemem(bytes[i]);
	return is_good;
}

enum hapax_status hx_outbox_postgres_query(
	struct hapax_outbox *base, const char *sql, const char *value, hapax_outbox_row_fn *row,
	void *context, struct hapax_error *err)
{
	struct hx_outbox_postgres *outbox = outbox_postgres_manage_of(base);
	enum hapax_status status =
		outbox->is_joined ? HAPAX_OK : hx_outbox_postgres_connect(outbox, err);
	bool ends = false;
	PGresult *result;

	if (status != HAPAX_OK)
		return status;
	hx_buf_clear(&outbox->sql);
	status = value == NULL ? hx_buf_printf(&outbox->sql, "%s%c", sql, '\0')
			       : hx_postgres_sql_append(&outbox->sql, outbox->place.schema, sql);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "the query is too long");
	result = ask(outbox, value);
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		status = query_error(outbox, result, err);
	else if (PQnfields(result) > HX_OUTBOX_COLUMNS_MAX)
		status = hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the query has %d columns: limit %d",
			PQnfields(result), HX_OUTBOX_COLUMNS_MAX);
	for (int i = 0; status == HAPAX_OK && !ends && i < PQntuples(result); i++)
		if (!hand_out(result, i, row, context, &ends))
			status = hx_error_set(
				err, HAPAX_ERR_NO_MEMORY, 0,
				"not enough memory for a row of the query");
	PQclear(result);
	return status;
}

/* ------------------------------------------------------------------ audit */

/*
 * The query's rows and the outbox in one statement, so that both have one state and only figures
 * travel. A comment at the end of the query ends with its line.
 */
static enum hapax_status write_audit(
	struct hx_outbox_postgres *outbox, const struct hx_outbox_audit *audit)
{
	size_t size = strlen(audit->query);
	char head[512];
	enum hapax_status status;

	while (size > 0 && strchr("; \t\r\n", audit->query[size - 1]) != NULL)
		size--;
	(void)snprintf(
		head, sizeof(head),
		"SELECT count(*), count(*) FILTER (WHERE NOT r.has_event), min(r.value) FILTER (WHERE NOT"
		" r.has_event) FROM (SELECT q.hapax_value::text AS value, EXISTS (SELECT FROM @@hapax_outbox"
		" o WHERE o.%s = q.hapax_value::text) AS has_event FROM (\n",
		audit->by);
	hx_buf_clear(&outbox->sql);
	status = hx_postgres_sql_append(&outbox->sql, outbox->place.schema, head);
	if (status != HAPAX_OK)
		return status;
	outbox->sql.size--; /* its NUL */
	return hx_buf_printf(
		&outbox->sql, "%.*s\n) AS q (hapax_value)) AS r%c", (int)size, audit->query, '\0');
}

static enum hapax_status count_missing(
	struct hx_outbox_postgres *outbox, struct hx_outbox_audit *audit, struct hapax_error *err)
{
	const void *values[] = {&audit->timeout_ms};
	enum hapax_status status = hx_outbox_postgres_call(
		outbox, "SELECT set_config('statement_timeout', $1, true)", "n", values,
		"could not begin the audit", NULL, err);
	struct hapax_bytes example;
	PGresult *result;

	if (status != HAPAX_OK)
		return status;
	if (write_audit(outbox, audit) != HAPAX_OK)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the query is too long");
	result = hx_outbox_postgres_ask(outbox);
	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1 ||
	    PQnfields(result) != 3) {
		status = query_error(outbox, result, err);
	} else {
		audit->checked = (uint64_t)hx_postgres_number(result, 0, 0);
		audit->missing = (uint64_t)hx_postgres_number(result, 0, 1);
		example = hx_postgres_get_bytes(result, 0, 2);
		(void)snprintf(
			audit->example, sizeof(audit->example), "%.*s", (int)example.size,
			example.size == 0 ? "" : (const char *)example.data);
	}
	PQclear(result);
	return status;
}

enum hapax_status hx_outbox_postgres_audit(
	struct hapax_outbox *base, struct hx_outbox_audit *audit, struct hapax_error *err)
{
	struct hx_outbox_postgres *outbox = outbox_postgres_manage_of(base);
	enum hapax_status status = hx_outbox_postgres_run(
		outbox, "BEGIN READ ONLY", NULL, 0, "could not begin the audit", NULL, err);

	if (status != HAPAX_OK)
		return status;
	outbox->limit_ns = audit->timeout_ms * HX_NS_PER_MS;
	outbox->stop = audit->stop;
	status = count_missing(outbox, audit, err);
	outbox->limit_ns = 0;
	outbox->stop = NULL;
	/* A connection that cannot roll back is not used again. */
	if (outbox->conn != NULL &&
	    hx_outbox_postgres_run(
		    outbox, "ROLLBACK", NULL, 0, "could not end the audit", NULL, NULL) != HAPAX_OK)
		hx_outbox_postgres_disconnect(outbox);
	return status;
}
