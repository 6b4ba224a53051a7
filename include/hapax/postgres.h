/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox_postgres.h - the ledger inside the caller's own PostgreSQL transaction.
 *
 * With the ledger in the same database as the business data, claim, the caller's
 * SQL and complete commit together or not at all: an effect in that database then
 * happens exactly once. A concurrent duplicate waits for the end of the transaction
 * that holds the key, and is then told what became of it.
 *
 * Caveats
 * - The way to use it is hapax_tx_process() (tx.h), which sets savepoints around claim, handler and
 *   completion; what follows is for those who call the store themselves.
 * - Every call runs at once, on the calling thread and on the caller's connection,
 *   in one round trip; use the joined store only on the thread that uses the
 *   connection, and not while it is in pipeline mode or has results to be read.
 * - Outside of BEGIN … COMMIT each submit is a transaction of its own. Inside, each is
 *   a savepoint: if it fails, what hapax wrote is undone and the caller's changes stay.
 * - A claim has no lease here: until COMMIT nobody sees it, after COMMIT without
 *   complete it counts as lapsed.
 * - options.timeout_ms is how long a claim waits for another transaction that holds
 *   its key (lock_timeout); then it is IN_PROGRESS, with nothing known of the holder.
 *   Everything else that waits longer is UNAVAILABLE, and nothing was done.
 * - In REPEATABLE READ and SERIALIZABLE a key that another transaction took since the
 *   snapshot is UNAVAILABLE: roll back and begin again. READ COMMITTED has no such case.
 * - An answer is durable only when the caller's COMMIT has returned, and only as far
 *   as synchronous_commit promises. A connection lost in COMMIT leaves it unknown: ask
 *   again with a new connection; the claim answers REPLAY if it was committed.
 * - Claim keys of one transaction in the same order everywhere, as for any row locks.
 * - Counters of decisions live in this process only.
 */
#ifndef HAPAX_POSTGRES_H
#define HAPAX_POSTGRES_H

#include <hapax/store.h>

struct pg_conn; /* PGconn of libpq */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Join conn, which the caller opened and keeps. The ledger is the first one in its
 * search_path (hapax_store_migrate() makes it); none is HAPAX_ERR_UNAVAILABLE, one of
 * another version HAPAX_ERR_UNSUPPORTED. Statements whose names begin with "hapax_" are
 * prepared on conn; leave them there. What hapax_store_guarantee() says follows from the
 * settings that conn has now.
 * Capability HAPAX_STORE_TRANSACTIONS. options may be NULL.
 *
 * Owned: *ret_store, by the caller; close it before conn. Close does not touch the
 * transaction.
 */
HAPAX_API enum hapax_status hapax_postgres_join(
	struct pg_conn *conn, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

struct hapax_work;

/*
 * The connection of the transaction in which a handler runs: of hapax_tx_process(), or of a
 * consumer with HAPAX_CONSUMER_TRANSACTIONS (source.h). NULL: it runs in none. Borrowed for
 * the run; BEGIN, COMMIT and ROLLBACK are not the handler's.
 */
HAPAX_API struct pg_conn *hapax_postgres_of_work(const struct hapax_work *work);

#ifdef __cplusplus
}
#endif

#endif
