/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - walk the records in the order of tenant, group and key.
 */
#ifndef HX_STORE_SQLITE_SCAN_H
#define HX_STORE_SQLITE_SCAN_H

#include <hapax/store.h>

#include "base/thread.h"
#include "store/sqlite/sqlite_connection.h"

/*
 * See hapax_store_scan(). Records are read in pages and handed out between them, so that each()
 * runs without a lock or an open transaction. mutex guards the connection, or is NULL. A record
 * that fails its check ends the call with HAPAX_ERR_CORRUPT, with the cursor after it.
 */
enum hapax_status hx_sqlite_scan(
	struct hx_sqlite_connection *connection, struct hx_mutex *mutex,
	const struct hapax_store_options *options, const struct hapax_scan *scan,
	struct hapax_cursor *cursor, hapax_scan_fn *each, void *context, struct hapax_error *err);

#endif
