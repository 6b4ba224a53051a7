/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tx_session.h - functions that run in a transaction of the database which has the ledger, too.
 *
 * Each worker that needs one takes a transaction session: a connection of its own, and the ledger joined to
 * it (hapax/postgres.h). Claim, what the function writes, its result and the offset commit
 * together. The consumer itself claims nothing then: what hapax_tx_process() answers is left
 * in the message, and settled as the answer to a claim of its own would be.
 *
 *  (1) The offset that is set is one below which all is done once this transaction is
 *      committed: in_flight->position, taken when its run begins. So a message that fails, or is
 *      slower than those behind it, holds it back.
 *  (2) A partition begins where the database says, if it says so: after it was restored from
 *      a copy, what it lost is read again, whatever the broker has as committed.
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
	const char *group;                     /* of the offsets; NULL: there are none */
	struct hx_lock lock;
	struct hx_tx_session *spare; /* Locks: lock */
};

/*
 * group is borrowed, as the store. UNSUPPORTED: it is not in PostgreSQL, or this build has none.
 * A first connection is made, so that what is wrong is known here. Blocks.
 */
enum hapax_status hx_tx_sessions_open(
	struct hx_tx_sessions *tx_sessions, const struct hapax_store *store, const char *group,
	struct hapax_error *err);

/* Nothing runs. Zeros are allowed. */
void hx_tx_sessions_close(struct hx_tx_sessions *tx_sessions);

/* The function of a route; context: struct hx_tx_sessions. It calls the route's inner one. Blocks. */
enum hapax_run_outcome hx_tx_session_run_work(struct hapax_work *work, void *context);

/* Where a partition begins; -1: the database does not say. Blocks. */
enum hapax_status hx_tx_sessions_offset(
	struct hx_tx_sessions *tx_sessions, const char *topic, int32_t partition, int64_t *ret_next,
	struct hapax_error *err);

#endif
