/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_savepoint.h - parts of the caller's transaction that can be rolled back alone.
 *
 *  (1) A savepoint is named by its depth. If no transaction was open, it is the transaction
 *      itself, which is then ours to commit.
 *  (2) If one of our savepoints is gone, the caller's own SQL or SQLite has ended or cut back the
 *      transaction. From then on the store is latched, and nothing is kept.
 *  (3) If no transaction was open when the first began, none is when it has ended.
 *
 * Threads: the one that uses the connection.
 */
#ifndef HX_STORE_SQLITE_TX_SQLITE_SAVEPOINT_H
#define HX_STORE_SQLITE_TX_SQLITE_SAVEPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/ext/store_ops.h>

#include "store/sqlite/sqlite_connection.h"

struct hx_sqlite_savepoints {
	struct hx_sqlite_connection *connection;
	int64_t timeout_ms; /* how long to wait for a lock */
	unsigned depth;     /* of open savepoints */
	unsigned own_depth; /* of the one that began the transaction; 0: it is the caller's */
	bool is_lost;
};

/* See hapax_store_savepoint_fn. */
enum hapax_status hx_sqlite_savepoint(
	struct hx_sqlite_savepoints *savepoints, enum hapax_savepoint savepoint,
	struct hapax_error *err);

#endif
