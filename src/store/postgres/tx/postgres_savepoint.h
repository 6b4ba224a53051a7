/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_savepoint.h - parts of the caller's transaction that can be rolled back alone.
 *
 *  (1) A savepoint is named by its depth. If no transaction was open, it is the transaction
 *      itself, which is then ours to commit.
 *  (2) If one of our savepoints is gone, or a claim belongs to another transaction, the caller's
 *      own SQL has ended ours. From then on nothing is kept, and the store is latched.
 *  (3) If no transaction was open when the first began, none is when it has ended.
 *  (4) The statements that begin or release a savepoint travel with the next operation, and the
 *      handler's savepoint with the claim before it, so that a run costs two round trips:
 *
 *		BEGIN, claim, SAVEPOINT │ the handler │ complete, COMMIT
 *
 *      `pending` holds the postponed statements. They are sent before the caller's SQL. The end
 *      of the run releases the savepoint of a handler that is kept.
 *
 * Threads: the one that uses the connection.
 */
#ifndef HX_STORE_POSTGRES_TX_POSTGRES_SAVEPOINT_H
#define HX_STORE_POSTGRES_TX_POSTGRES_SAVEPOINT_H

#include <stdbool.h>

#include <libpq-fe.h>

#include <hapax/ext/store_ops.h>

#include "store/postgres/trip.h"

enum {
	HX_POSTGRES_PENDING_MAX = 3,
	/* One or two words, and ten digits. */
	HX_POSTGRES_SAVEPOINT_SQL_SIZE = 60,
};

struct hx_postgres_savepoints {
	PGconn *conn;
	unsigned depth;     /* of open savepoints */
	unsigned own_depth; /* of the one that began the transaction; 0: it is the caller's */
	bool is_lost;       /* join again */
	bool is_fresh;      /* nothing was done in the innermost one */
	bool is_ahead;      /* the next one's savepoint already exists */
	bool has_handlers;  /* the savepoint of a kept handler still exists */
	bool is_last;       /* the next submit ends the innermost one */
	bool is_kept;       /* ... and did so; the outcome is in kept */
	struct hapax_error kept;
	unsigned pending_count;
	char pending[HX_POSTGRES_PENDING_MAX][HX_POSTGRES_SAVEPOINT_SQL_SIZE];
};

/*
 * The most common statements, prepared under these names when the connection is joined, so that
 * the server has nothing to parse. NULL ends the list.
 */
struct hx_postgres_savepoint_statement {
	const char *name;
	const char *sql;
};
extern const struct hx_postgres_savepoint_statement hx_postgres_savepoint_statements[];

/* See hapax_store_savepoint_fn. */
enum hapax_status hx_postgres_savepoint(
	struct hx_postgres_savepoints *savepoints, enum hapax_savepoint savepoint,
	struct hapax_error *err);

/* Is the transaction open, or about to be? */
bool hx_postgres_savepoints_are_open(const struct hx_postgres_savepoints *savepoints);

/* The next operation cannot tell whether the transaction is still the same: the savepoint can. */
void hx_postgres_savepoints_release_handlers(struct hx_postgres_savepoints *savepoints);

/* False: not all pending statements were sent. */
bool hx_postgres_savepoints_send_pending(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip);

/* Send the handler's savepoint after a claim. */
bool hx_postgres_savepoints_send_ahead(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip);

/* Send the savepoint's end after its last operation. */
bool hx_postgres_savepoints_send_end(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip);

/*
 * The first results of trip answer the pending statements. Not OK: the operation after them was
 * not done, and gets this status.
 */
enum hapax_status hx_postgres_savepoints_take_pending(
	struct hx_postgres_savepoints *savepoints, const struct hx_postgres_trip *trip);

/* The end was answered or lost. Returns its status. */
enum hapax_status hx_postgres_savepoints_take_end(
	struct hx_postgres_savepoints *savepoints, PGresult *result);

/* The caller's SQL has ended the transaction. */
void hx_postgres_savepoints_lose(struct hx_postgres_savepoints *savepoints);

/* Undo the failed first statement of a fresh savepoint. False: that is impossible. */
bool hx_postgres_savepoints_mend(struct hx_postgres_savepoints *savepoints);

#endif
