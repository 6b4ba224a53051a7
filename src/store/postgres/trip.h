/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trip.h - several statements in one round trip, on the caller's own connection.
 *
 * What follows one that fails is not executed; its result says so
 * (PGRES_PIPELINE_ABORTED). Of a trip on which the connection was lost, results are missing.
 *
 * Threads: the one that uses the connection. Blocks.
 */
#ifndef HX_STORE_POSTGRES_TRIP_H
#define HX_STORE_POSTGRES_TRIP_H

#include <stdbool.h>

#include <libpq-fe.h>

enum { HX_POSTGRES_TRIP_MAX = 8 };

struct hx_postgres_trip {
	PGconn *conn;
	int count; /* statements that were sent */
	PGresult *results[HX_POSTGRES_TRIP_MAX];
};

/* False: the connection is not to be used now. */
bool hx_postgres_trip_begin(struct hx_postgres_trip *trip, PGconn *conn);

/* False: it was not sent, for want of memory or because the connection is lost. */
bool hx_postgres_trip_send(struct hx_postgres_trip *trip, const char *sql);
bool hx_postgres_trip_send_prepared(
	struct hx_postgres_trip *trip, const char *name, int count, const char *const *values,
	const int *lengths, const int *formats);

/* Wait for the results; to be called whatever failed. The connection is as before the trip. */
void hx_postgres_trip_end(struct hx_postgres_trip *trip);

/* Did the statement with that number, from 0, do what it says? */
bool hx_postgres_trip_is_good(const struct hx_postgres_trip *trip, int number);

void hx_postgres_trip_clear(struct hx_postgres_trip *trip);

#endif
