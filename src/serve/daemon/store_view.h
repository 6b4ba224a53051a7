/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_view.h - what is known of the store, without waiting for it.
 *
 * Asking a store for its stats blocks, and while it is away for as long as its timeout
 * says. So a thread of its own asks, and whoever wants to know takes a copy of what it
 * heard last: when that was, whether it is still waiting for an answer, and since when.
 *
 * Questions are numbered. Who wants to know how it stands now asks, and is content with
 * any answer to a question of that number or a later one; those who ask while a question
 * is out share the next.
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

/* What was known at one moment. Times are hx_clock_mono_ns(). */
struct hx_store_facts {
	uint64_t answered;        /* the number of the last question that was answered; 0: none */
	int64_t answered_ns;      /* when */
	enum hapax_status status; /* what the store said to it */
	struct hapax_error error; /* and why, unless it is HAPAX_OK */
	int64_t asked_ns;         /* since when a question is out; INT64_MAX: none is */

	bool has_stats; /* it has said HAPAX_OK at least once */
	struct hapax_stats stats;
	int64_t stats_ns; /* when it was asked for them */

	bool has_journal;
	enum hapax_status journal_status;
	uint64_t journal_records;
	bool has_outage; /* the store is guarded: how that stands now, not when it was asked */
	struct hapax_outage outage;
};

struct hx_store_view {
	const struct hx_store_stack *stack;
	struct hapax_store *store;
	void (*told)(void *context); /* a question was answered; on the view's thread */
	void *context;
	struct hx_tenant_keys keys; /* limit NULL: nobody counts them. Set before start */
	struct hx_worker worker;
	struct hx_job question; /* in its queue while begun < wanted */

	struct hx_mutex mutex;
	/* Locks: mutex. */
	uint64_t wanted; /* the last question that somebody waits for */
	uint64_t begun;
	struct hx_store_facts facts;
};

/* view is zeros. store is the uppermost of stack; both outlive it. */
enum hapax_status hx_store_view_start(
	struct hx_store_view *view, const struct hx_store_stack *stack, struct hapax_store *store,
	void (*told)(void *context), void *context, struct hapax_error *err);

/* Ask the store, now or when the question that is out was answered. Returns its number. */
uint64_t hx_store_view_ask(struct hx_store_view *view);

void hx_store_view_look(struct hx_store_view *view, struct hx_store_facts *ret_facts);

/*
 * Stop asking. False: the store has not answered by deadline_ns, so the thread is still
 * in it, and it must not be closed. Does nothing for one that was not started.
 */
bool hx_store_view_stop(struct hx_store_view *view, int64_t deadline_ns);

#endif
