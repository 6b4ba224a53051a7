/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_batch.h - answer submits in one transaction.
 */
#ifndef HX_STORE_SQLITE_SQLITE_BATCH_H
#define HX_STORE_SQLITE_SQLITE_BATCH_H

#include <stdatomic.h>

#include "store/sqlite/sqlite_connection.h"
#include "store/sqlite/sqlite_group.h"
#include "store/sqlite/sqlite_request.h"

struct hx_sqlite_batch {
	struct hx_sqlite_connection *connection;
	struct hx_sqlite_workspace workspace;
	_Atomic uint64_t *swept; /* the store's count of expired records removed */
};

/*
 * Answer a list of submits, which is not empty and whose operations went through
 * hx_sqlite_ops_begin(); their completions are not called. When it returns, every
 * operation has its status, and what it says is durable as far as the connection
 * makes it so.
 *
 * Returns the end of the list, cut off from it, that was not answered: those who
 * may wait for a lock for longer than the first could. Mostly NULL.
 */
struct hx_sqlite_request *hx_sqlite_batch_run(
	struct hx_sqlite_batch *batch, struct hx_sqlite_request *requests);

#endif
