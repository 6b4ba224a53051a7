/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_savepoint.h - parts of the caller's transaction that can be undone by themselves.
 *
 *  (1) A savepoint is named by its depth, or, if no transaction was open, the
 *      transaction itself, which is then ours to commit.
 *  (2) When one of ours is gone, or a claim turns out to be another transaction's, the transaction was
 *      ended behind our back, by the caller's own SQL. From then on nothing is kept, and the store is latched.
 *  (3) If no transaction was open when the first began, none is when it has ended.
 *  (4) What begins or releases a savepoint travels with the next operation, and the
 *      savepoint of the handler with the claim before it, so that a run costs two round trips:
 *
 *		BEGIN, claim, SAVEPOINT │ the handler │ complete, COMMIT
 *
 *      What is put off is in `pending`. It is sent before the caller's SQL comes. The savepoint of a handler
 *      that is kept is released by the end of the run.
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
	/* A word or two, and ten digits. */
	HX_POSTGRES_SAVEPOINT_SQL_SIZE = 60,
};

struct hx_postgres_savepoints {
	PGconn *conn;
	unsigned depth;     /* that are open */
	unsigned own_depth; /* of the one that began the transaction; 0: it is the caller's */
	bool is_lost;       /* join again */
	bool is_fresh;      /* nothing was done in the innermost one */
	bool is_ahead;      /* the savepoint of the next one is there already */
	bool has_handlers;  /* the savepoint of a handler that was kept is still there */
	bool is_last;       /* the next submit ends the innermost one */
	bool is_kept;       /* ... and did so; the outcome is in kept */
	struct hapax_error kept;
	unsigned pending_count;
	char pending[HX_POSTGRES_PENDING_MAX][HX_POSTGRES_SAVEPOINT_SQL_SIZE];
};

/*
 * What savepoints say most often is prepared when the connection is joined, under these names: the server then has
 * nothing to parse. NULL behind the last one.
 */
struct hx_postgres_savepoint_statement {
	const char *name;
	const char *sql;
};
extern const struct hx_postgres_savepoint_statement hx_postgres_savepoint_statements[];

/* As hapax_store_savepoint_fn. */
enum hapax_status hx_postgres_savepoint(
	struct hx_postgres_savepoints *savepoints, enum hapax_savepoint savepoint,
	struct hapax_error *err);

/* Is the transaction there, or about to be? */
bool hx_postgres_savepoints_are_open(const struct hx_postgres_savepoints *savepoints);

/* What comes next does not see by itself whether the transaction is the same: the savepoint tells. */
void hx_postgres_savepoints_release_handlers(struct hx_postgres_savepoints *savepoints);

/* Send what is pending. False: it was not all sent. */
bool hx_postgres_savepoints_send_pending(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip);

/* The savepoint of the handler, behind a claim. */
bool hx_postgres_savepoints_send_ahead(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip);

/* The end of the savepoint, behind what is last in it. */
bool hx_postgres_savepoints_send_end(
	struct hx_postgres_savepoints *savepoints, struct hx_postgres_trip *trip);

/*
 * What was pending has been answered, as the first results of trip. Not OK: the operation
 * behind it was not done, and what becomes of it is returned.
 */
enum hapax_status hx_postgres_savepoints_take_pending(
	struct hx_postgres_savepoints *savepoints, const struct hx_postgres_trip *trip);

/* The end has been answered, or was lost. Returns what it comes to. */
enum hapax_status hx_postgres_savepoints_take_end(
	struct hx_postgres_savepoints *savepoints, PGresult *result);

/* The transaction was ended behind our back. */
void hx_postgres_savepoints_lose(struct hx_postgres_savepoints *savepoints);

/* The first statement of a fresh savepoint failed: make it as if it had not been. False: it cannot be. */
bool hx_postgres_savepoints_mend(struct hx_postgres_savepoints *savepoints);

#endif
