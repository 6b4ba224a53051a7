/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hapax.h - the whole API of the library. Read this page first.
 *
 * Queues, webhooks and clients deliver at least once. hapax makes the effect happen once: one
 * caller gets the claim, all others get the stored result, and another caller can take over failed
 * or crashed work.
 *
 *	struct hapax_error err;
 *	struct hapax_store *store;
 *	enum hapax_outcome outcome;
 *
 *	if (hapax_store_open("sqlite:orders.db", NULL, &store, &err) != HAPAX_OK)
 *		return report(err.message);
 *	if (hapax_store_check(
 *		    store, hapax_bytes_from_text("order-17"), 0, &outcome, &err) != HAPAX_OK)
 *		return report(err.message);
 *	if (outcome == HAPAX_OUTCOME_ACQUIRED)
 *		ship_order(17);
 *	hapax_store_close(store);
 *
 * This is at most once: a crash between check and ship_order() loses the order. If the work must
 * not be lost, use hapax_process() (processor.h): it claims, runs and completes.
 *
 * This header does not include sqlite.h and postgres.h, which exist if the library was built with
 * these databases, nor ext/, which is for authors of stores and sources.
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

/* The version of the loaded library: "0.1.0". */
HAPAX_API const char *hapax_version(void);

/* The memory functions of the library. Set all three or none. */
struct hapax_allocator {
	void *(*allocate)(size_t size);
	void *(*reallocate)(void *memory, size_t size);
	void (*release)(void *memory);
};

/*
 * Replace malloc, realloc and free. Call it before any other function, from one thread.
 * HAPAX_ERR_INVALID: the library has already allocated memory.
 */
HAPAX_API enum hapax_status hapax_init(const struct hapax_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
