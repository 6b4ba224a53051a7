/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres.h - a store inside the caller's own PostgreSQL transaction.
 *
 * If the store is in the same database as the business data, claim, the caller's SQL and complete
 * commit together or not at all. An effect in that database then happens exactly once. A concurrent
 * duplicate waits until the transaction that holds the key ends, and then gets its outcome.
 *
 * Caveats
 * - Use hapax_tx_process() (tx.h), which sets savepoints around claim, handler and completion. The
 *   points below are for callers that use the store directly.
 * - Every call runs at once, on the calling thread and the caller's connection, in one round trip.
 *   Use the joined store only on the thread that uses the connection, and not while the connection
 *   is in pipeline mode or has unread results.
 * - Outside of BEGIN … COMMIT each submit is a transaction of its own. Inside, each is a savepoint:
 *   if it fails, hapax's writes are undone and the caller's changes stay.
 * - A claim has no lease here. It is invisible until COMMIT; after a COMMIT without complete it
 *   counts as lapsed.
 * - A claim waits up to options.timeout_ms (lock_timeout) for another transaction that holds its
 *   key. Then it answers IN_PROGRESS, without details of the holder. Any other operation that waits
 *   longer is UNAVAILABLE, and nothing was done.
 * - In REPEATABLE READ and SERIALIZABLE a key that another transaction took since the
 *   snapshot is UNAVAILABLE: roll back and begin again. READ COMMITTED has no such case.
 * - An answer is durable only after the caller's COMMIT, and only as far as synchronous_commit
 *   promises. If the connection is lost in COMMIT, the outcome is unknown. Claim again on a new
 *   connection: the answer is REPLAY if the transaction was committed.
 * - If a transaction claims several keys, claim them in the same order everywhere, as for any row
 *   locks.
 * - Decision counters live in this process only.
 */
#ifndef HAPAX_POSTGRES_H
#define HAPAX_POSTGRES_H

#include <hapax/store.h>

struct pg_conn; /* PGconn of libpq */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Join conn, which the caller opened and keeps. The store is the first one in its search_path;
 * hapax_store_migrate() creates it. HAPAX_ERR_UNAVAILABLE: there is none. HAPAX_ERR_UNSUPPORTED: it
 * has a different version. Statements whose names begin with "hapax_" are prepared on conn; leave
 * them there. hapax_store_guarantee() reports the settings that conn has now. Capability
 * HAPAX_STORE_TRANSACTIONS. options may be NULL.
 *
 * Owned: *ret_store, by the caller; close it before conn. Close does not touch the transaction.
 */
HAPAX_API enum hapax_status hapax_postgres_join(
	struct pg_conn *conn, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

struct hapax_work;

/*
 * The connection of the handler's transaction, which belongs to hapax_tx_process() or to a consumer
 * with HAPAX_CONSUMER_TRANSACTIONS (source.h). NULL: there is no transaction. Borrowed for the run;
 * the handler must not call BEGIN, COMMIT or ROLLBACK.
 */
HAPAX_API struct pg_conn *hapax_postgres_of_work(const struct hapax_work *work);

#ifdef __cplusplus
}
#endif

#endif
