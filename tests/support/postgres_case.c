/* SPDX-License-Identifier: Apache-2.0 */
#include "support/postgres_case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void postgres_case_url(char *url, size_t size, const char *options)
{
	const char *place = getenv("HAPAX_TEST_POSTGRES");

	snprintf(url, size, "postgres:///postgres%s%s", place ? place : "", options);
}

static void ignore_notice(void *context, const char *message)
{
	(void)context;
	(void)message;
}

PGconn *postgres_case_connect(void)
{
	char url[256];
	PGconn *conn;

	postgres_case_url(url, sizeof(url), "");
	conn = PQconnectdb(url);
	if (PQstatus(conn) != CONNECTION_OK) {
		printf("# %s: %s\n", url, PQerrorMessage(conn));
		abort();
	}
	PQsetNoticeProcessor(conn, ignore_notice, NULL);
	return conn;
}

const char *postgres_case_query(PGconn *conn, const char *format, ...)
{
	static char answer[4096];
	char sql[4096];
	va_list arguments;
	PGresult *result;

	va_start(arguments, format);
	vsnprintf(sql, sizeof(sql), format, arguments);
	va_end(arguments);
	result = PQexec(conn, sql);
	if (PQresultStatus(result) != PGRES_TUPLES_OK &&
	    PQresultStatus(result) != PGRES_COMMAND_OK) {
		printf("# %s: %s\n", sql, PQerrorMessage(conn));
		fflush(stdout);
		abort();
	}
	snprintf(
		answer, sizeof(answer), "%s",
		PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
	PQclear(result);
	return answer;
}

long long postgres_case_number(PGconn *conn, const char *sql)
{
	return strtoll(postgres_case_query(conn, "%s", sql), NULL, 10);
}
