/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/trip.h"

#include <assert.h>
#include <string.h>

bool hx_postgres_trip_begin(struct hx_postgres_trip *trip, PGconn *conn)
{
	memset(trip, 0, sizeof(*trip));
	trip->conn = conn;
	return PQenterPipelineMode(conn) == 1;
}

bool hx_postgres_trip_send(struct hx_postgres_trip *trip, const char *sql)
{
	assert(trip->count < HX_POSTGRES_TRIP_MAX);
	if (PQsendQueryParams(trip->conn, sql, 0, NULL, NULL, NULL, NULL, 0) != 1)
		return false;
	trip->count++;
	return true;
}

bool hx_postgres_trip_send_prepared(
	struct hx_postgres_trip *trip, const char *name, int count, const char *const *values,
	const int *lengths, const int *formats)
{
	assert(trip->count < HX_POSTGRES_TRIP_MAX);
	if (PQsendQueryPrepared(trip->conn, name, count, values, lengths, formats, 1) != 1)
		return false;
	trip->count++;
	return true;
}

/*
 * An error that arrives with the sync. Outside a transaction it is the commit's: the last
 * statement was undone.
 */
static bool is_undone(const struct hx_postgres_trip *trip, int number, const PGresult *result)
{
	return number >= trip->count && trip->count > 0 &&
		PQresultStatus(result) == PGRES_FATAL_ERROR &&
		PQresultStatus(trip->results[trip->count - 1]) == PGRES_TUPLES_OK;
}

void hx_postgres_trip_end(struct hx_postgres_trip *trip)
{
	bool is_synced = PQpipelineSync(trip->conn) != 1;
	int number = 0;

	while (!is_synced) {
		PGresult *result = PQgetResult(trip->conn);

		if (result == NULL) {
			/* The end of one statement, or of the connection. */
			if (PQstatus(trip->conn) == CONNECTION_BAD)
				break;
			number++;
			continue;
		}
		is_synced = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		if (is_undone(trip, number, result)) {
			PQclear(trip->results[trip->count - 1]);
			trip->results[trip->count - 1] = NULL;
			number = trip->count - 1;
		}
		if (!is_synced && number < trip->count && trip->results[number] == NULL)
			trip->results[number] = result;
		else
			PQclear(result);
	}
	(void)PQexitPipelineMode(trip->conn);
}

bool hx_postgres_trip_is_good(const struct hx_postgres_trip *trip, int number)
{
	ExecStatusType kind = PQresultStatus(trip->results[number]);

	return kind == PGRES_COMMAND_OK || kind == PGRES_TUPLES_OK;
}

void hx_postgres_trip_clear(struct hx_postgres_trip *trip)
{
	for (int i = 0; i < HX_POSTGRES_TRIP_MAX; i++) {
		PQclear(trip->results[i]);
		trip->results[i] = NULL;
	}
}
