/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tx.h - hapax_process() within the caller's transaction.
 *
 *	outer savepoint ── claim ── inner savepoint: the handler ── complete ── outer ends
 *
 *  (1) The inner savepoint covers the handler. It is undone when the handler fails, so that only a
 *      released or parked record is left of the run.
 *  (2) It ends before the outcome is stored, which proves that the transaction is still that of the
 *      claim. If it is not, nothing more is stored: the store has latched, or does so now.
 *      (PostgreSQL sends the end of the inner savepoint, the outcome and the end of the outer one
 *      together; the first that fails stops the rest.)
 *  (3) The outer savepoint is kept if the outcome is stored, and otherwise undone: claim, changes
 *      and result exist together or not at all.
 *
 * On a store without savepoints, each of these does nothing.
 */
#ifndef HX_PROCESSOR_TX_H
#define HX_PROCESSOR_TX_H

#include <hapax/processor.h>

struct hx_tx {
	struct hapax_store *store;  /* NULL: shares no transaction */
	struct hapax_error failure; /* status OK: none; else why a savepoint could not be ended */
};

/* Sets only the fields that most calls need. */
static inline void hx_tx_init(struct hx_tx *tx)
{
	tx->store = NULL;
	tx->failure.status = HAPAX_OK;
}

/* On an error nothing is open. */
enum hapax_status hx_tx_begin(struct hx_tx *tx, struct hapax_store *store, struct hapax_error *err);

/* Run the handler. An outcome that cannot be kept becomes a failure that says why. */
enum hapax_run_outcome hx_tx_handle(
	struct hx_tx *tx, struct hapax_work *work, hapax_handler_fn *handler, void *context);

/* End it by the outcome in answer. If that fails, answer says so and tx->failure why. */
void hx_tx_end(struct hx_tx *tx, struct hapax_answer *answer);

/* Undo hx_tx_begin() if no run began. */
void hx_tx_cancel(struct hx_tx *tx);

#endif
