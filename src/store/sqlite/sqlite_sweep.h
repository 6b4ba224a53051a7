/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_sweep.h - remove expired records, settle lapsed claims.
 */
#ifndef HX_STORE_SQLITE_SQLITE_SWEEP_H
#define HX_STORE_SQLITE_SQLITE_SWEEP_H

#include <hapax/store.h>

#include "store/sqlite/transaction.h"

/*
 * Check up to count_max due records, within a write transaction. Adds to looked, removed and
 * lapsed; sets done when no record is due.
 */
int hx_sqlite_sweep_some(
	struct hx_sqlite_transaction *transaction, size_t count_max, struct hapax_sweep *sweep);

/*
 * See hapax_store_sweep(); runs in transactions of a few hundred records, with gaps between them.
 */
enum hapax_status hx_sqlite_sweep(
	struct hx_sqlite_connection *connection, const struct hapax_store_options *options,
	struct hapax_sweep *sweep, struct hapax_error *err);

#endif
