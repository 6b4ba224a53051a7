/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hapax.h - the whole of the library's API, and the page to read first.
 *
 * Queues, webhooks and clients deliver at least once. hapax makes the effect
 * happen once: it gives one caller the right to run, replays the stored result to
 * all others, and lets failed or crashed work be taken over.
 *
 *	struct hapax_error err;
 *	struct hapax_store *store;
 *	enum hapax_outcome outcome;
 *
 *	if (hapax_store_open("sqlite:orders.db", NULL, &store, &err) != HAPAX_OK)
 *		return report(err.message);
 *	if (hapax_store_check(store, hapax_bytes_from_text("order-17"), 0, &outcome, &err) != HAPAX_OK)
 *		return report(err.message);
 *	if (outcome == HAPAX_OUTCOME_ACQUIRED)
 *		ship_order(17);
 *	hapax_store_close(store);
 *
 * This is at most once: a crash between check and ship_order() loses the order. Work
 * that must not be lost goes through hapax_process() (processor.h), which claims, runs
 * and completes.
 *
 * Apart stand outbox_sqlite.h and outbox_postgres.h, which are there if the library was built with
 * these databases, and ext/, for authors of stores and sources.
 *
 * The library never logs, prints, exits or installs a signal handler.
 */
#ifndef HAPAX_HAPAX_H
#define HAPAX_HAPAX_H

#include <hapax/bytes.h>
#include <hapax/clock.h>
#include <hapax/copy.h>
#include <hapax/error.h>
#include <hapax/fsck.h>
#include <hapax/key.h>
#include <hapax/near.h>
#include <hapax/outage.h>
#include <hapax/outbox.h>
#include <hapax/processor.h>
#include <hapax/record.h>
#include <hapax/source.h>
#include <hapax/store.h>
#include <hapax/tx.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAPAX_VERSION_MAJOR 0
#define HAPAX_VERSION_MINOR 1
#define HAPAX_VERSION_PATCH 0

/* "0.1.0", of the library that is loaded. */
HAPAX_API const char *hapax_version(void);

/* Where the library takes its memory from. All three or none. */
struct hapax_allocator {
	void *(*allocate)(size_t size);
	void *(*reallocate)(void *memory, size_t size);
	void (*release)(void *memory);
};

/*
 * Replace malloc, realloc and free. Call it before anything else, from one thread.
 * HAPAX_ERR_INVALID when memory has been taken already.
 */
HAPAX_API enum hapax_status hapax_init(const struct hapax_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
