/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tx.h - claim, your SQL, completion and result in one transaction: exactly once.
 *
 * For effects that live in the database in which the ledger lives, too. Join your
 * connection (hapax_sqlite_join(), hapax_postgres_join()), make a processor on the joined store,
 * and let it call a handler that writes by the same connection:
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
 * There is no lease, no token to hand on and nothing to settle afterwards: a crash at any
 * moment leaves all of it or none of it, and the next delivery finds out by itself.
 *
 * Whose transaction
 * - None is open on the connection: the call begins one, with the lock that writing
 *   needs, and commits it. When it returns, it is done, as durable as the connection's
 *   own settings make a COMMIT.
 * - One is open: the call works in a savepoint of it, and what it did stands or falls
 *   with your COMMIT. Acknowledge after that. In SQLite begin it with BEGIN IMMEDIATE: one
 *   that has read before may find that it cannot write any more (UNAVAILABLE).
 *
 * What is kept
 *	handler returns   its changes   the record
 *	ok, definitive    kept          DONE, with the result, for 7 days unless options say else
 *	transient         undone        FAILED, with attempts and error; the next delivery runs
 *	ambiguous         undone        FAILED, or PARKED if on_lapse says so: it is for effects
 *	                                elsewhere, since here nothing is ambiguous
 *	anything, and it  undone        none: as if it had never been asked for
 *	cannot be stored
 * A definitive failure is a result: undo what you do not want of it by a savepoint of your
 * own. What your transaction did before the call is never touched.
 *
 * Duplicates
 * - Done before: REPLAY, and the handler does not run.
 * - At the same time: the second waits for the lock of the first, up to the timeout_ms of
 *   the store's options (5 s), then replays. After that it is told UNAVAILABLE (in
 *   PostgreSQL, where the record itself is locked, IN_PROGRESS), and nothing was done. So
 *   keep handlers short: whoever writes to the same SQLite file waits, too.
 *
 * Caveats
 * - Threads: a joined store and its processors belong to the thread that uses the
 *   connection.
 * - The handler must not end the transaction (COMMIT, ROLLBACK), nor leave a statement
 *   that writes in progress. The first is HAPAX_ERR_FAILED, and the connection must be
 *   joined anew; the second is the handler's failure.
 * - Effects elsewhere (a mail, a call of another service) are not undone. What must happen
 *   there once goes through an outbox, or carries the key.
 * - It may call itself, for another key, on the same processor: one within the other.
 */
#ifndef HAPAX_TX_H
#define HAPAX_TX_H

#include <hapax/processor.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * hapax_process() for a processor whose store is joined to the caller's connection; all
 * that is said there about request, answer and buf holds here. context is the way of the
 * connection to the handler.
 *
 * HAPAX_OK: answered, as answer->outcome says; and ACQUIRED: the changes, the completion
 * and the result are committed, or will be by your COMMIT. HAPAX_ERR_HANDLER: the handler
 * failed, or its changes break a constraint that is checked at the commit; they are
 * undone. HAPAX_ERR_UNAVAILABLE, LIMIT, NO_MEMORY: nothing was done, or it was undone.
 * HAPAX_ERR_UNCERTAIN: the COMMIT failed in a way that leaves open whether it counts; the
 * next delivery finds out. HAPAX_ERR_FAILED: the transaction is not there any more.
 * HAPAX_ERR_UNSUPPORTED: the store shares no transaction. In none of these is the delivery
 * to be acknowledged.
 *
 * hapax_process() and hapax_registry_process() on such a processor do the same; this one
 * refuses every other. Blocks.
 */
HAPAX_API enum hapax_status hapax_tx_process(
	struct hapax_processor *processor, const struct hapax_request *request,
	hapax_handler_fn *handler, void *context, struct hapax_answer *answer,
	struct hapax_buf *buf, struct hapax_error *err);

#ifdef __cplusplus
}
#endif

#endif
