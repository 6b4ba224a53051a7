/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tx_session.h - runs functions in a transaction of the database that also has the ledger.
 *
 * Each worker that needs one takes a transaction session: its own connection, with the ledger
 * joined to it (hapax/postgres.h). Claim, the function's changes, its result and the offset commit
 * together. The consumer itself claims nothing then: the answer of hapax_tx_process() is left in
 * the message, and settled like the answer to a normal claim.
 *
 *  (1) The stored offset is one below which all is done once this transaction is committed:
 *      in_flight->position, taken when its run begins. A message that fails, or is slower than
 *      later ones, therefore holds it back.
 *  (2) A partition starts at the database's offset, if it has one. After a restore, lost messages
 *      are therefore read again, whatever the broker has committed.
 *
 * Threads: any, for run and offset; the rest is the consumer's.
 */
#ifndef HX_SOURCE_HANDLER_TX_SESSION_H
#define HX_SOURCE_HANDLER_TX_SESSION_H

#include <stdint.h>

#include <hapax/processor.h>
#include <hapax/store.h>

#include "base/thread.h"

struct hx_tx_session;
struct hx_postgres_place;

struct hx_tx_sessions {
	const struct hx_postgres_place *place; /* of the store; NULL: not open */
	const char *group;                     /* of the offsets; NULL: none */
	struct hx_lock lock;
	struct hx_tx_session *spare; /* Locks: lock */
};

/*
 * Borrows group and the store. Opens a first connection, to report errors here. UNSUPPORTED: the
 * store is not in PostgreSQL, or the build lacks it. Blocks.
 */
enum hapax_status hx_tx_sessions_open(
	struct hx_tx_sessions *tx_sessions, const struct hapax_store *store, const char *group,
	struct hapax_error *err);

/* Nothing runs. Zero is allowed. */
void hx_tx_sessions_close(struct hx_tx_sessions *tx_sessions);

/* The function of a route; context: struct hx_tx_sessions. Calls the route's inner. Blocks. */
enum hapax_run_outcome hx_tx_session_run_work(struct hapax_work *work, void *context);

/* The start offset of a partition; -1: not in the database. Blocks. */
enum hapax_status hx_tx_sessions_offset(
	struct hx_tx_sessions *tx_sessions, const char *topic, int32_t partition, int64_t *ret_next,
	struct hapax_error *err);

#endif
