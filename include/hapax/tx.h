/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tx.h - claim, your SQL, completion and result in one transaction: exactly once.
 *
 * Use it for effects in the same database as the store. Join your connection (hapax_sqlite_join(),
 * hapax_postgres_join()), create a processor on the joined store, and write through the same
 * connection in the handler:
 *
 *	static enum hapax_run_outcome book(struct hapax_work *work, void *context)
 *	{
 *		struct bank *bank = context;
 *
 *		if (!bank_execute(bank->db, "UPDATE account SET ..."))
 *			return hapax_work_fail(work, HAPAX_RUN_TRANSIENT, bank_error(bank->db));
 *		hapax_work_write(work, "booked", 6);
 *		return HAPAX_RUN_OK;
 *	}
 *
 *	if (hapax_tx_process(processor, &request, book, bank, &answer, buf, &err) != HAPAX_OK)
 *		return try_later(err.message);
 *	acknowledge();
 *
 * There is no lease, no token to pass on and nothing to settle afterwards. A crash at any moment
 * leaves all of it or none of it, and the next delivery finds out by itself.
 *
 * Transaction
 * - If none is open on the connection, the call begins one, with a write lock, and commits it
 *   before it returns. It is as durable as a COMMIT under the connection's own settings.
 * - If one is open, the call works in a savepoint of it, and its changes depend on your COMMIT.
 *   Acknowledge after that. In SQLite use BEGIN IMMEDIATE: a transaction that began by reading may
 *   be unable to write (UNAVAILABLE).
 *
 * Changes and record after the handler
 *	handler returns   its changes   the record
 *	ok, definitive    kept          DONE, with the result, for 7 days by default
 *	transient         undone        FAILED, with attempts and error; the next delivery runs
 *	ambiguous         undone        FAILED, or PARKED with on_lapse park; for effects outside
 *	                                of this database
 *	any, but the      undone        none: as if it had never been requested
 *	store fails
 * A definitive failure is a result: its changes are kept, unless you undo them with a savepoint of
 * your own. Changes that your transaction made before the call are never touched.
 *
 * Duplicates
 * - Done before: REPLAY, and the handler does not run.
 * - At the same time: the second waits for the lock of the first, up to the timeout_ms of the
 *   store's options (5 s), then replays. After the timeout it gets UNAVAILABLE, and nothing was
 *   done. PostgreSQL locks the record itself and answers IN_PROGRESS. Keep handlers short: every
 *   writer of the same SQLite file waits.
 *
 * Caveats
 * - Threads: a joined store and its processors belong to the thread that uses the
 *   connection.
 * - The handler must not end the transaction (COMMIT, ROLLBACK), nor leave a writing statement in
 *   progress. The first is HAPAX_ERR_FAILED, and the connection must be joined again. The second
 *   counts as a failure of the handler.
 * - Effects elsewhere (an email, a call to another service) are not undone. To make them happen
 *   once, use an outbox, or send the key along.
 * - Calls nest: a handler may call it for another key, on the same processor.
 */
#ifndef HAPAX_TX_H
#define HAPAX_TX_H

#include <hapax/processor.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * hapax_process() for a processor whose store is joined to the caller's connection; request, answer
 * and buf are as there. Use context to pass the connection to the handler.
 *
 * HAPAX_OK: answered, as answer->outcome says. If it is ACQUIRED, the changes, the completion and
 * the result are committed, or will be by your COMMIT. Do not acknowledge the delivery after any
 * other status:
 * - HAPAX_ERR_HANDLER: the handler failed, or its changes break a constraint that is checked at the
 *   commit; they are undone.
 * - HAPAX_ERR_UNAVAILABLE, LIMIT, NO_MEMORY: nothing was done, or it was undone.
 * - HAPAX_ERR_UNCERTAIN: the COMMIT failed with an unknown outcome; the next delivery finds out.
 * - HAPAX_ERR_FAILED: the transaction no longer exists.
 * - HAPAX_ERR_UNSUPPORTED: the store does not join transactions.
 *
 * On such a processor, hapax_process() and hapax_registry_process() do the same; this function
 * refuses every other processor. Blocks.
 */
HAPAX_API enum hapax_status hapax_tx_process(
	struct hapax_processor *processor, const struct hapax_request *request,
	hapax_handler_fn *handler, void *context, struct hapax_answer *answer,
	struct hapax_buf *buf, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
