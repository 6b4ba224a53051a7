/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement.h - every SQL statement that runs more than once, prepared on first use.
 *
 * All names are qualified with main, so that the caller's temporary tables cannot replace ours.
 * Parameters are numbered in the order of the statement's comment.
 */
#ifndef HX_STORE_SQLITE_STATEMENT_H
#define HX_STORE_SQLITE_STATEMENT_H

#include <sqlite3.h>

#include <hapax/bytes.h>

struct hx_sqlite_connection;

enum hx_sqlite_statement {
	/* Transactions. */
	HX_SQLITE_BEGIN_READ,
	HX_SQLITE_BEGIN_WRITE,
	HX_SQLITE_COMMIT,
	HX_SQLITE_ROLLBACK,
	HX_SQLITE_SAVEPOINT,
	HX_SQLITE_SAVEPOINT_RELEASE,
	HX_SQLITE_SAVEPOINT_ROLLBACK,

	/* The one row of the ledger itself; see meta.c. */
	HX_SQLITE_META_LOAD,
	HX_SQLITE_META_SAVE,

	/* Records; see row.c. FIND: tenant, group, key. READ: id. */
	HX_SQLITE_RECORD_FIND, /* the row without headers and body */
	HX_SQLITE_RECORD_FIND_WHOLE,
	HX_SQLITE_RECORD_READ_WHOLE,
	HX_SQLITE_RECORD_INSERT, /* the row; tenant, group, key */
	HX_SQLITE_RECORD_UPDATE, /* the row; id */
	HX_SQLITE_RECORD_DELETE, /* id */

	/* Records due for the sweep: now, how many to skip. */
	HX_SQLITE_DUE_NEXT,  /* the row without headers and body; tenant, group, key */
	HX_SQLITE_DUE_COUNT, /* expired ones, counted up to a bound: now, bound */

	/* Parked records of a scope: tenant, group. */
	HX_SQLITE_SCOPE_PARKED,
	HX_SQLITE_SCOPE_PARK,
	HX_SQLITE_SCOPE_UNPARK,
	HX_SQLITE_SCOPE_DROP,

	/* Keys in order, from a place on: tenant, group, key, count. */
	HX_SQLITE_SCAN_ALL,
	HX_SQLITE_SCAN_TENANT, /* only this tenant */
	HX_SQLITE_SCAN_SCOPE,  /* only this scope */

	/* Decisions; see counter.c. */
	HX_SQLITE_COUNTER_ADD,
	HX_SQLITE_COUNTER_DROP, /* before which hour */
	HX_SQLITE_COUNTER_SUM,
	HX_SQLITE_COUNTER_LIST, /* after hour, tenant, group: count */

	/* Pages of the database, the unused ones, and their size. */
	HX_SQLITE_PAGE_COUNT,
	HX_SQLITE_PAGE_FREE,
	HX_SQLITE_PAGE_SIZE,

	HX_SQLITE_STATEMENT_COUNT,
};

/* Borrowed from connection; reset and ready for its parameters. */
int hx_sqlite_statement(
	struct hx_sqlite_connection *connection, enum hx_sqlite_statement which,
	sqlite3_stmt **ret_statement);

/* Run a prepared statement that returns no row. It is reset afterwards. */
int hx_sqlite_finish(sqlite3_stmt *statement);

/* Look up and run a statement that has no parameters and returns no row. */
int hx_sqlite_run(struct hx_sqlite_connection *connection, enum hx_sqlite_statement which);

/* Look up and run a statement that has no parameters and returns one number. */
int hx_sqlite_run_number(
	struct hx_sqlite_connection *connection, enum hx_sqlite_statement which,
	int64_t *ret_number);

/* Bind bytes that must not move until the statement is reset. Empty is x'', not NULL. */
int hx_sqlite_bind_bytes(sqlite3_stmt *statement, int index, struct hapax_bytes bytes);

/* Bytes of a column, valid until the next step or reset. SQLITE_NOMEM: no memory. */
int hx_sqlite_column_bytes(sqlite3_stmt *statement, int index, struct hapax_bytes *ret_bytes);

void hx_sqlite_statements_done(struct hx_sqlite_connection *connection);

#endif
