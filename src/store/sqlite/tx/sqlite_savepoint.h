/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_savepoint.h - parts of the caller's transaction that can be undone by themselves.
 *
 *  (1) A savepoint is named by its depth, or, if no transaction was open, the
 *      transaction itself, which is then ours to commit.
 *  (2) When one of ours is gone, the transaction was ended or cut back behind our back,
 *      by the caller's own SQL or by SQLite. From then on the store is latched, and
 *      nothing is kept.
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
	unsigned depth;     /* that are open */
	unsigned own_depth; /* of the one that began the transaction; 0: it is the caller's */
	bool is_lost;
};

/* As hapax_store_savepoint_fn. */
enum hapax_status hx_sqlite_savepoint(
	struct hx_sqlite_savepoints *savepoints, enum hapax_savepoint savepoint,
	struct hapax_error *err);

#endif
