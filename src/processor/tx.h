/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tx.h - hapax_process() within the caller's transaction.
 *
 *	outer savepoint ── claim ── inner savepoint: the handler ── complete ── outer ends
 *
 *  (1) The inner savepoint is what the handler did: undone when it fails, so that a
 *      released or parked record is all that is left of the run.
 *  (2) It is ended before the outcome is stored, which shows that the transaction is
 *      still the one in which the claim was made. If it is not, nothing more is stored:
 *      the store has latched, or does so now (PostgreSQL, where the end of the inner savepoint, the
 *      outcome and the end of the outer one travel together, and the first that fails stops the rest).
 *  (3) The outer savepoint is kept when the outcome is stored, else undone: claim, changes
 *      and result are there together, or none of them.
 *
 * Where the store has no savepoints each of these does nothing.
 */
#ifndef HX_PROCESSOR_TX_H
#define HX_PROCESSOR_TX_H

#include <hapax/processor.h>

struct hx_tx {
	struct hapax_store *store;  /* NULL: it shares no transaction */
	struct hapax_error failure; /* status OK: none; else why a savepoint could not be ended */
};

/* Not all of it is written: most calls need no more than this. */
static inline void hx_tx_init(struct hx_tx *tx)
{
	tx->store = NULL;
	tx->failure.status = HAPAX_OK;
}

/* On an error nothing is open. */
enum hapax_status hx_tx_begin(struct hx_tx *tx, struct hapax_store *store, struct hapax_error *err);

/* Run the handler. An outcome that cannot be kept is turned into a failure that says why. */
enum hapax_run_outcome hx_tx_handle(
	struct hx_tx *tx, struct hapax_work *work, hapax_handler_fn *handler, void *context);

/* End it as answer says how the run ended; if that fails, answer says so, and tx->failure why. */
void hx_tx_end(struct hx_tx *tx, struct hapax_answer *answer);

/* Nothing was begun after all. */
void hx_tx_cancel(struct hx_tx *tx);

#endif
