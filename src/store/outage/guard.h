/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - the internals of a guarded store, for guard.c and outage_forward.c.
 */
#ifndef HX_STORE_OUTAGE_GUARD_H
#define HX_STORE_OUTAGE_GUARD_H

#include <stdatomic.h>

#include <hapax/ext/store_ops.h>
#include <hapax/outage.h>

#include "base/thread.h"
#include "store/front.h"
#include "store/outage/breaker.h"

struct hx_claim_notes;
struct hx_outage_forward;

struct hx_guard {
	struct hx_front front;
	struct hapax_outage_options options;
	struct hx_claim_notes *notes; /* NULL: no journal */

	/* Nonzero: some operations need a route. Read without the lock. */
	_Atomic uint32_t is_troubled;

	struct hx_mutex mutex;
	struct hx_breaker breaker;  /* Locks: mutex */
	bool uses_journal;          /* Locks: mutex. The journal may hold records */
	uint64_t journalling;       /* Locks: mutex. Submits that may use the journal now */
	uint64_t entered;           /* Locks: mutex. Total of such submits */
	int64_t reconcile_ms;       /* Locks: mutex. When to check the journal again */
	struct hapax_outage outage; /* Locks: mutex. Reported to callers */
	struct hx_outage_forward *free_relays; /* Locks: mutex */

	struct hx_cond wake; /* wakes the retry thread */
	struct hx_thread thread;
	bool runs;
	bool stops; /* Locks: mutex */
};

/* Record whether the store answered. */
void hx_guard_note(struct hx_guard *guard, bool has_answered);

void hx_guard_look(struct hx_guard *guard, bool *ret_is_away, bool *ret_uses_journal);

/* Add to a counter in guard->outage. */
void hx_guard_count(struct hx_guard *guard, uint64_t *number, uint64_t count);

/* From now until hx_guard_leave_journal(), the caller may write to the journal. */
void hx_guard_enter_journal(struct hx_guard *guard);
void hx_guard_leave_journal(struct hx_guard *guard);

/* May op continue without the store? */
bool hx_guard_continues(const struct hx_guard *guard, const struct hapax_op *op);

/* See hapax_store_submit_fn. */
void hx_outage_forward_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion);

void hx_outage_forwards_free(struct hx_guard *guard);

#endif
