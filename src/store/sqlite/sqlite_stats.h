/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_stats.h - statistics of the ledger.
 */
#ifndef HX_STORE_SQLITE_SQLITE_STATS_H
#define HX_STORE_SQLITE_SQLITE_STATS_H

#include <hapax/store.h>

#include "store/sqlite/sqlite_connection.h"

/* Fill the members that come from the database. Never counts the rows of the whole table. */
enum hapax_status hx_sqlite_stats(
	struct hx_sqlite_connection *connection, const struct hapax_store_options *options,
	struct hapax_stats *stats, struct hapax_error *err);

#endif
