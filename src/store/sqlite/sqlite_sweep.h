/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_sweep.h - remove what has expired, settle claims that nobody took up.
 */
#ifndef HX_STORE_SQLITE_SQLITE_SWEEP_H
#define HX_STORE_SQLITE_SQLITE_SWEEP_H

#include <hapax/store.h>

#include "store/sqlite/transaction.h"

/*
 * Look at up to count_max records that are due, within a write transaction. Adds to
 * looked, removed and lapsed; done is set when nothing is due any more.
 */
int hx_sqlite_sweep_some(
	struct hx_sqlite_transaction *transaction, size_t count_max, struct hapax_sweep *sweep);

/* As hapax_store_sweep(), in transactions of a few hundred records with room between them. */
enum hapax_status hx_sqlite_sweep(
	struct hx_sqlite_connection *connection, const struct hapax_store_options *options,
	struct hapax_sweep *sweep, struct hapax_error *err);

#endif
