/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - the insides of a guarded store, for guard.c and relay.c.
 */
#ifndef HX_STORE_OUTAGE_GUARD_H
#define HX_STORE_OUTAGE_GUARD_H

#include <stdatomic.h>

#include <hapax/ext/store_ops.h>
#include <hapax/outage.h>

#include "base/thread.h"
#include "store/outage/breaker.h"

struct hx_claim_notes;
struct hx_outage_forward;

struct hx_guard {
	struct hapax_store base;
	struct hapax_store_ops ops; /* its own: capabilities are those of the guarded store */
	struct hapax_store *store;
	struct hapax_outage_options options;
	struct hx_claim_notes *notes; /* NULL: there is no journal */

	/* Not zero: not everything simply goes to the store. Read without the lock. */
	_Atomic uint32_t is_troubled;

	struct hx_mutex mutex;
	struct hx_breaker breaker;  /* Locks: mutex */
	bool uses_journal;          /* Locks: mutex. It may hold something */
	uint64_t journalling;       /* Locks: mutex. Submits that may use the journal now */
	uint64_t entered;           /* Locks: mutex. Those that ever could */
	int64_t reconcile_ms;       /* Locks: mutex. When to look at the journal again */
	struct hapax_outage outage; /* Locks: mutex. For who asks */
	struct hx_outage_forward *free_relays; /* Locks: mutex */

	struct hapax_watcher watcher; /* of the store, once somebody watches us */

	struct hx_cond wake; /* of the thread that tries again */
	struct hx_thread thread;
	bool runs;
	bool stops; /* Locks: mutex */
};

/* The clock's boot time: what intervals are measured by. */
int64_t hx_guard_now_ms(const struct hx_guard *guard);

/* The store did, or did not answer. */
void hx_guard_note(struct hx_guard *guard, bool has_answered);

void hx_guard_look(struct hx_guard *guard, bool *ret_is_away, bool *ret_uses_journal);

/* Add to a number of guard->outage. */
void hx_guard_count(struct hx_guard *guard, uint64_t *number, uint64_t count);

/* Something may go to the journal from now on, until hx_guard_leave_journal(). */
void hx_guard_enter_journal(struct hx_guard *guard);
void hx_guard_leave_journal(struct hx_guard *guard);

/* May op go on without the store? */
bool hx_guard_continues(const struct hx_guard *guard, const struct hapax_op *op);

/* As hapax_store_submit_fn. */
void hx_outage_forward_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

void hx_outage_forwards_free(struct hx_guard *guard);

#endif
