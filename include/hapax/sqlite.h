/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.h - a store inside the caller's own SQLite transaction.
 *
 * If the store is in the same database as the business data, claim, the caller's SQL and complete
 * commit together or not at all. Only then does an effect outside of hapax's own records happen
 * exactly once.
 *
 * Caveats
 * - Use hapax_tx_process() (tx.h), which sets savepoints around claim, handler and completion. The
 *   points below are for callers that use the store directly.
 * - Every call runs at once, on the calling thread and the caller's connection. Use the joined
 *   store only on the thread that uses the connection.
 * - Outside of BEGIN … COMMIT each operation is a transaction of its own. Prefer
 *   BEGIN IMMEDIATE: a transaction that began by reading may find the store locked.
 * - A claim has no lease here. It is invisible until COMMIT; after a COMMIT without complete it
 *   counts as lapsed.
 * - An answer is durable only after the caller's COMMIT, and only as far as the connection's
 *   journal_mode and synchronous promise. The same holds for a token: after a rollback, another
 *   claim may get the same number.
 * - SQLite may end the caller's transaction by itself, for example on a full disk
 *   (sqlite3_get_autocommit() detects it). The operation then fails. Later ones fail with
 *   HAPAX_ERR_FAILED until the caller joins again.
 * - Decision counters live in this process only.
 */
#ifndef HAPAX_SQLITE_H
#define HAPAX_SQLITE_H

#include <hapax/store.h>

struct sqlite3;

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Join db, which the caller opened and keeps. Creates missing tables in its main database.
 * HAPAX_ERR_UNSUPPORTED: the schema is newer. HAPAX_ERR_INVALID: tables are missing and a
 * transaction is open. hapax_store_guarantee() reports the settings that db has now. Capability
 * HAPAX_STORE_TRANSACTIONS. options may be NULL.
 *
 * Owned: *ret_store, by the caller; close it before db. Close does not touch the transaction.
 */
HAPAX_API enum hapax_status hapax_sqlite_join(
	struct sqlite3 *db, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
