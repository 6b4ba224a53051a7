/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_postgres.c - rows of a query, through a cursor in a read-only transaction.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/stream.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"
#include "cli/import/import.h"
#include "wire/postgres_url.h"

#if HX_HAVE_POSTGRES

#include <libpq-fe.h>

enum {
	BYTEA_OID = 17,  /* pg_type.h is the server's */
	SIGNAL_MS = 500, /* a signal is seen by then */
};

/* One snapshot for count and rows; times in a form that is read the same everywhere. */
static const char begin_sql[] =
	"BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
	"SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'; "
	"SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0";

static const char fetch_sql[] = "FETCH FORWARD 1000 FROM hapax_import";

static int fail(struct hx_import *import, PGconn *conn, const char *what, int code)
{
	static const char severity[] = "ERROR:  ";
	const char *text = PQerrorMessage(conn);
	size_t size;

	if (strncmp(text, severity, strlen(severity)) == 0)
		text += strlen(severity);
	size = strcspn(text, "\n");
	hx_progress_done(&import->progress);
	hx_report(
		import->inv->command->name, "%s: %.*s", what,
		(int)(size > 0 ? size : strlen("connection lost")),
		size > 0 ? text : "connection lost");
	return code;
}

/* The query does not go on in the server. */
static int cancel(PGconn *conn)
{
	char why[256];
	PGcancel *request = PQgetCancel(conn);

	(void)PQcancel(request, why, sizeof(why));
	PQfreeCancel(request);
	return HX_EXIT_SIGNAL + hx_interrupt_signal();
}

/*
 * Wait for the next result of what was sent; a signal ends it. Owned: *ret_result, by the caller;
 * NULL: there are no more.
 */
static int next_result(PGconn *conn, PGresult **ret_result)
{
	*ret_result = NULL;
	while (PQisBusy(conn)) {
		struct pollfd wait = {.fd = PQsocket(conn), .events = POLLIN};

		if (hx_interrupt_signal() != 0)
			return cancel(conn);
		if (hx_stream_wait(&wait, 1, hx_stream_after_ms(SIGNAL_MS)) > 0 &&
		    PQconsumeInput(conn) == 0)
			break;
	}
	*ret_result = PQgetResult(conn);
	return HX_EXIT_OK;
}

/* The columns or fields of a row; bytea as its bytes. */
static int take_row(struct hx_import *import, const PGresult *result)
{
	const int row = 0;
	struct hapax_bytes fields[HX_IMPORT_SOURCE_COLUMNS_MAX];
	unsigned char *owned[HX_IMPORT_SOURCE_COLUMNS_MAX] = {NULL};
	int count = PQnfields(result);
	int code = HX_EXIT_OK;

	for (int i = 0; i < count; i++) {
		fields[i] = hx_bytes(NULL, 0);
		if (PQgetisnull(result, row, i))
			continue;
		fields[i] =
			hx_bytes(PQgetvalue(result, row, i), (size_t)PQgetlength(result, row, i));
		if (PQftype(result, i) != BYTEA_OID)
			continue;
		owned[i] = PQunescapeBytea(fields[i].data, &fields[i].size);
		fields[i].data = owned[i];
		if (owned[i] == NULL)
			code = hx_report_no_memory(import->inv->command->name);
	}
	if (code == HX_EXIT_OK)
		code = hx_import_take_fields(import, fields, (size_t)count);
	for (int i = 0; i < count; i++)
		PQfreemem(owned[i]);
	return code;
}

static int name_columns(struct hx_import *import, const PGresult *result)
{
	struct hapax_bytes names[HX_IMPORT_SOURCE_COLUMNS_MAX];
	int count = PQnfields(result);

	for (int i = 0; i < count && i < HX_IMPORT_SOURCE_COLUMNS_MAX; i++)
		names[i] = hapax_bytes_from_text(PQfname(result, i));
	return hx_import_columns(import, names, (size_t)count);
}

/* A statement of ours around the caller's query. Owned: *ret_result, by the caller; may be NULL. */
static int run_query(
	struct hx_import *import, PGconn *conn, const char *before, const char *after,
	PGresult **ret_result)
{
	const char *query = hx_options_text(&import->inv->options, HX_IMPORT_QUERY);
	size_t size = strlen(query);
	struct hapax_buf sql;
	PGresult *result, *end;
	bool is_good;
	int code;

	while (size > 0 && strchr("; \t\r\n", query[size - 1]) != NULL)
		size--;
	hx_buf_init(&sql, 1024 * 1024);
	if (hx_buf_printf(&sql, "%s%.*s%s", before, (int)size, query, after) != HAPAX_OK ||
	    hx_buf_append_byte(&sql, '\0') != HAPAX_OK) {
		hx_buf_done(&sql);
		return hx_report_usage(import->inv->command->name, "--query is too long");
	}
	/* One statement only: a second one in the query is refused. */
	(void)PQsendQueryParams(conn, (const char *)sql.data, 0, NULL, NULL, NULL, NULL, 0);
	hx_buf_done(&sql);
	code = next_result(conn, &result);
	if (code != HX_EXIT_OK)
		return code;
	is_good = PQresultStatus(result) == PGRES_COMMAND_OK ||
		PQresultStatus(result) == PGRES_TUPLES_OK;
	if (is_good)
		code = next_result(conn, &end); /* none */
	if (ret_result != NULL && is_good)
		*ret_result = result;
	else
		PQclear(result);
	return is_good ? code : fail(import, conn, "--query failed", HX_EXIT_USAGE);
}

/* The rows of one FETCH, of which one is in memory at a time: it may be large. */
static int read_some(
	struct hx_import *import, PGconn *conn, double total, uint64_t *number, bool *ret_is_at_end)
{
	PGresult *result;
	int code;

	*ret_is_at_end = true;
	if (PQsendQuery(conn, fetch_sql) == 0 || PQsetSingleRowMode(conn) == 0)
		return fail(import, conn, "could not read rows", HX_EXIT_STORE);
	code = next_result(conn, &result);
	while (code == HX_EXIT_OK && result != NULL) {
		bool is_row = PQresultStatus(result) == PGRES_SINGLE_TUPLE;

		if (!is_row && PQresultStatus(result) != PGRES_TUPLES_OK)
			code = fail(import, conn, "could not read rows", HX_EXIT_STORE);
		else if (import->source_columns == 0)
			code = name_columns(import, result);
		if (code == HX_EXIT_OK && is_row) {
			(void)snprintf(
				import->place, sizeof(import->place), "row %" PRIu64, ++*number);
			import->share = total > 0 ? (double)*number / total : 0;
			code = take_row(import, result);
			*ret_is_at_end = false;
		}
		PQclear(result);
		if (code == HX_EXIT_OK)
			code = next_result(conn, &result);
	}
	return code;
}

static int read_rows(struct hx_import *import, PGconn *conn, double total)
{
	uint64_t number = 0;
	bool is_at_end = false;
	int code = HX_EXIT_OK;

	while (code == HX_EXIT_OK && !is_at_end)
		code = read_some(import, conn, total, &number, &is_at_end);
	return code;
}

static int read_query(struct hx_import *import, PGconn *conn)
{
	PGresult *result = PQexec(conn, begin_sql);
	bool has_begun = PQresultStatus(result) == PGRES_COMMAND_OK;
	double total = 0;
	int code;

	PQclear(result);
	result = NULL;
	if (!has_begun)
		return fail(import, conn, "could not begin a transaction", HX_EXIT_STORE);
	code = run_query(
		import, conn, "SELECT count(*)::float8 FROM (", "\n) AS hapax_rows", &result);
	if (code == HX_EXIT_OK)
		total = strtod(PQgetvalue(result, 0, 0), NULL);
	PQclear(result);
	if (code == HX_EXIT_OK)
		code = run_query(
			import, conn, "DECLARE hapax_import NO SCROLL CURSOR FOR ", "", NULL);
	return code == HX_EXIT_OK ? read_rows(import, conn, total) : code;
}

static int check_url(const struct hx_import *import, const char *url)
{
	/* libpq's message would repeat the URL, including the password. */
	PQconninfoOption *parsed = PQconninfoParse(url, NULL);
	bool is_good = parsed != NULL && hx_postgres_url_is_good(url);

	for (const PQconninfoOption *at = parsed; is_good && at->keyword != NULL; at++)
		is_good = hx_postgres_url_part_is_good(at->keyword, at->val);
	PQconninfoFree(parsed);
	if (is_good)
		return HX_EXIT_OK;
	return hx_report_misuse(
		import->inv->command->name,
		"use 'postgres://user@host:5432/database' and percent-encode special characters in "
		"user and password",
		"--from: invalid PostgreSQL URL");
}

int hx_import_postgres(struct hx_import *import, const char *url)
{
	const char *const names[] = {
		"connect_timeout", "dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {"15", url, "hapax import", "UTF8", NULL};
	int code = check_url(import, url);
	PGconn *conn;

	if (code != HX_EXIT_OK)
		return code;
	conn = PQconnectdbParams(names, values, 1);
	if (PQstatus(conn) == CONNECTION_OK)
		code = read_query(import, conn);
	else
		code = fail(import, conn, "could not connect to PostgreSQL", HX_EXIT_STORE);
	PQfinish(conn);
	return code;
}

#else

int hx_import_postgres(struct hx_import *import, const char *url)
{
	(void)url;
	hx_report(import->inv->command->name, "this hapax was built without PostgreSQL");
	return HX_EXIT_STORE;
}

#endif
