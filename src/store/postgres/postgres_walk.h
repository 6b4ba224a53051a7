/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_walk.h - operations on the whole ledger: scan, stats, sweep, counters.
 *
 * Each calls functions of postgres_walk.sql in bounded pieces. The client's pool or a joined
 * connection runs the statements.
 *
 * Threads: those of the pool or connection.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_WALK_H
#define HX_STORE_POSTGRES_POSTGRES_WALK_H

#include <hapax/store.h>

#include "store/postgres/postgres_request.h"
#include "store/postgres/postgres_session.h"

struct hx_postgres_walk {
	/* Run a statement. OK: call->result holds rows. Owned: by the caller. */
	enum hapax_status (*run)(
		void *context, struct hx_postgres_call *call, struct hapax_error *err);
	void *context;
	const struct hx_postgres_session *session;
	const struct hapax_store_options *options; /* complete */
	const char *schema;
};

enum hapax_status hx_postgres_scan(
	const struct hx_postgres_walk *walk, const struct hapax_scan *scan,
	struct hapax_cursor *cursor, hapax_scan_fn *each, void *context, struct hapax_error *err);

/* each may be NULL; other processes' counters are then only summed up. */
enum hapax_status hx_postgres_stats(
	const struct hx_postgres_walk *walk, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err);

enum hapax_status hx_postgres_sweep(
	const struct hx_postgres_walk *walk, struct hapax_sweep *sweep, struct hapax_error *err);

enum hapax_status hx_postgres_count(
	const struct hx_postgres_walk *walk, const struct hapax_counters *rows, size_t count,
	struct hapax_error *err);

#endif
