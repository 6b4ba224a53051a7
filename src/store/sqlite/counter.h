/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter.h - decisions per hour and scope, in hapax_counter.
 */
#ifndef HX_STORE_SQLITE_COUNTER_H
#define HX_STORE_SQLITE_COUNTER_H

#include <hapax/store.h>

#include "base/thread.h"
#include "store/sqlite/sqlite_connection.h"

/* Add rows to the kept counts; drops hours older than 30 days. The commit is not synced. */
enum hapax_status hx_sqlite_counter_add(
	struct hx_sqlite_connection *connection, const struct hapax_store_options *options,
	const struct hapax_counters *rows, size_t count, struct hapax_error *err);

/* The sum of all rows. Within a transaction. */
int hx_sqlite_counter_sum(
	struct hx_sqlite_connection *connection, uint64_t ret_counts[HAPAX_DECISION_COUNT]);

/* Hand out all rows, each() without a lock. mutex guards the connection, or is NULL. */
enum hapax_status hx_sqlite_counter_list(
	struct hx_sqlite_connection *connection, struct hx_mutex *mutex,
	const struct hapax_store_options *options, hapax_counters_fn *each, void *context,
	struct hapax_error *err);

#endif
