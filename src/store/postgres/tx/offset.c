/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/tx/offset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/postgres/postgres_fault.h"
#include "store/postgres/postgres_place.h"

#define GET_STATEMENT "hapax_offset_get"
#define SET_STATEMENT "hapax_offset_set"

enum { ARGUMENTS_MAX = 4, NUMBER_SIZE = 24 };

static enum hapax_status prepare(
	PGconn *conn, const char *schema, const char *name, const char *text,
	struct hapax_error *err)
{
	struct hapax_buf sql;
	enum hapax_status status;
	PGresult *result;

	hx_buf_init(&sql, 4096);
	status = hx_postgres_sql_append(&sql, schema, text);
	if (status != HAPAX_OK) {
		hx_buf_done(&sql);
		return hx_error_set(err, status, 0, "not enough memory for offsets");
	}
	result = PQprepare(conn, name, (const char *)sql.data, 0, NULL);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		status = hx_postgres_result_error(
			result,
			"the store has no table for offsets; run 'hapax store migrate "
			"URL'",
			err);
	PQclear(result);
	hx_buf_done(&sql);
	return status;
}

enum hapax_status hx_postgres_offset_prepare(
	PGconn *conn, const char *schema, struct hapax_error *err)
{
	enum hapax_status status =
		prepare(conn, schema, GET_STATEMENT,
			"SELECT next FROM @@hapax_offset WHERE grp = $1::text"
			" AND topic = $2::text AND part = $3::integer",
			err);

	if (status == HAPAX_OK)
		status = prepare(
			conn, schema, SET_STATEMENT,
			"SELECT @@hapax_offset_set($1::text, $2::text, $3::integer, $4::bigint)",
			err);
	return status;
}

static enum hapax_status execute(
	PGconn *conn, const char *name, const struct hx_postgres_offset *offset, const char *next,
	PGresult **ret_result, struct hapax_error *err)
{
	char partition[NUMBER_SIZE];
	const char *values[ARGUMENTS_MAX] = {offset->group, offset->topic, partition, next};
	enum hapax_status status;
	PGresult *result;

	(void)snprintf(partition, sizeof(partition), "%" PRId32, offset->partition);
	result = PQexecPrepared(conn, name, next == NULL ? 3 : 4, values, NULL, NULL, 0);
	if (PQresultStatus(result) == PGRES_TUPLES_OK) {
		*ret_result = result;
		return HAPAX_OK;
	}
	status = hx_postgres_result_error(result, "could not store or read an offset", err);
	PQclear(result);
	return status;
}

enum hapax_status hx_postgres_offset_get(
	PGconn *conn, const struct hx_postgres_offset *offset, int64_t *ret_next,
	struct hapax_error *err)
{
	PGresult *result = NULL;
	enum hapax_status status = execute(conn, GET_STATEMENT, offset, NULL, &result, err);

	if (status != HAPAX_OK)
		return status;
	*ret_next = PQntuples(result) == 1 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : -1;
	PQclear(result);
	return HAPAX_OK;
}

enum hapax_status hx_postgres_offset_set(
	PGconn *conn, const struct hx_postgres_offset *offset, int64_t next,
	struct hapax_error *err)
{
	char text[NUMBER_SIZE];
	PGresult *result = NULL;
	enum hapax_status status;

	(void)snprintf(text, sizeof(text), "%" PRId64, next);
	status = execute(conn, SET_STATEMENT, offset, text, &result, err);
	if (status == HAPAX_OK)
		PQclear(result);
	return status;
}
