/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_sqlite.h - the ledger inside the caller's own SQLite transaction.
 *
 * With the ledger in the same database as the business data, claim, the caller's
 * SQL and complete commit together or not at all: the one case in which an effect
 * outside of hapax's own records happens exactly once.
 *
 * Caveats
 * - The way to use it is hapax_tx_process() (tx.h), which sets savepoints around claim, handler and
 *   completion; what follows is for those who call the store themselves.
 * - Every call runs at once, on the calling thread and on the caller's connection;
 *   use the joined store only on the thread that uses the connection.
 * - Outside of BEGIN … COMMIT each operation is a transaction of its own. Prefer
 *   BEGIN IMMEDIATE: a transaction that began by reading may find the ledger locked.
 * - A claim has no lease here: until COMMIT nobody sees it, after COMMIT without
 *   complete it counts as lapsed.
 * - An answer is durable only when the caller's COMMIT has returned, and only as
 *   far as the connection's own journal_mode and synchronous promise. So is a
 *   token: the number of a claim that was rolled back may be given to another.
 * - SQLite may end the caller's transaction by itself, as when the disk is full
 *   (sqlite3_get_autocommit() tells). The operation then fails, and every later one
 *   with HAPAX_ERR_FAILED until the caller joins again.
 * - Counters of decisions live in this process only.
 */
#ifndef HAPAX_SQLITE_H
#define HAPAX_SQLITE_H

#include <hapax/store.h>

struct sqlite3;

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Join db, which the caller opened and keeps. The ledger's tables are made in its
 * main database if they are not there; a newer schema is refused with
 * HAPAX_ERR_UNSUPPORTED. Join outside of a transaction where tables are to be made,
 * or it is HAPAX_ERR_INVALID. What hapax_store_guarantee() says follows from the settings
 * that db has now. Capability HAPAX_STORE_TRANSACTIONS. options may be NULL.
 *
 * Owned: *ret_store, by the caller; close it before db. Close does not touch the
 * transaction.
 */
HAPAX_API enum hapax_status hapax_sqlite_join(
	struct sqlite3 *db, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
