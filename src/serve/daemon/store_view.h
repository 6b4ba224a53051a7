/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_view.h - the last known state of the store, without waiting for it.
 *
 * Asking a store for its stats blocks, up to its timeout while it is unavailable. So a separate
 * thread asks, and callers take a copy of the last answer: when it came, whether a question is
 * pending, and since when.
 *
 * Questions are numbered. A caller that needs the current state asks, and accepts any answer to a
 * question of that number or a later one. Callers that ask while a question is pending share the
 * next.
 *
 * Threads: any, but for start and stop.
 */
#ifndef HX_SERVE_DAEMON_STORE_VIEW_H
#define HX_SERVE_DAEMON_STORE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/outage.h>
#include <hapax/store.h>

#include "base/worker.h"
#include "serve/daemon/tenant_keys.h"

struct hx_store_stack;

/* The known state at one moment. Times are hx_clock_mono_ns(). */
struct hx_store_facts {
	uint64_t answered;        /* the number of the last answered question; 0: none */
	int64_t answered_ns;      /* when */
	int64_t took_ns;          /* how long that took */
	enum hapax_status status; /* the store's answer to it */
	struct hapax_error error; /* the reason, unless it is HAPAX_OK */
	int64_t asked_ns;         /* since when a question is pending; INT64_MAX: none is */

	bool has_stats; /* it has answered HAPAX_OK at least once */
	struct hapax_stats stats;
	int64_t stats_ns; /* when the stats were requested */

	bool has_journal;
	enum hapax_status journal_status;
	uint64_t journal_records;
	bool has_outage; /* the store is guarded; the current outage, not that of the question */
	struct hapax_outage outage;
};

struct hx_store_view {
	const struct hx_store_stack *stack;
	struct hapax_store *store;
	void (*told)(void *context); /* a question was answered; called on the view's thread */
	void *context;
	struct hx_tenant_keys keys; /* its settings are set before start */
	struct hx_worker worker;
	struct hx_job question; /* queued while begun < wanted */

	struct hx_mutex mutex;
	/* Locks: mutex. */
	uint64_t wanted; /* the last question with a waiter */
	uint64_t begun;
	struct hx_store_facts facts;
};

/* view is zeros. store is the topmost of stack; both outlive it. */
enum hapax_status hx_store_view_start(
	struct hx_store_view *view, const struct hx_store_stack *stack, struct hapax_store *store,
	void (*told)(void *context), void *context, struct hapax_error *err);

/* Asks the store, now or after the pending question. Returns the number of the question. */
uint64_t hx_store_view_ask(struct hx_store_view *view);

void hx_store_view_look(struct hx_store_view *view, struct hx_store_facts *ret_facts);

/*
 * Stops asking. False: the store has not answered by deadline_ns, so the thread still uses it, and
 * it must not be closed. Does nothing if the view was not started.
 */
bool hx_store_view_stop(struct hx_store_view *view, int64_t deadline_ns);

#endif
