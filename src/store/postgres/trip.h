/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trip.h - several statements in one round trip, on the caller's own connection.
 *
 * Statements after a failed one are not executed; their result is PGRES_PIPELINE_ABORTED. If the
 * connection is lost, results are missing.
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
	int count; /* statements sent */
	PGresult *results[HX_POSTGRES_TRIP_MAX];
};

/* False: the connection cannot be used now. */
bool hx_postgres_trip_begin(struct hx_postgres_trip *trip, PGconn *conn);

/* False: not sent; no memory, or the connection is lost. */
bool hx_postgres_trip_send(struct hx_postgres_trip *trip, const char *sql);
bool hx_postgres_trip_send_prepared(
	struct hx_postgres_trip *trip, const char *name, int count, const char *const *values,
	const int *lengths, const int *formats);

/* Wait for the results; call it after every failure, too. Restores the connection's state. */
void hx_postgres_trip_end(struct hx_postgres_trip *trip);

/* Did the statement with that number, from 0, succeed? */
bool hx_postgres_trip_is_good(const struct hx_postgres_trip *trip, int number);

void hx_postgres_trip_clear(struct hx_postgres_trip *trip);

#endif
