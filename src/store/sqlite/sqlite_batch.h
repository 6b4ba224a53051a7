/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_batch.h - answer submits in one transaction.
 */
#ifndef HX_STORE_SQLITE_SQLITE_BATCH_H
#define HX_STORE_SQLITE_SQLITE_BATCH_H

#include <stdatomic.h>

#include "store/sqlite/sqlite_connection.h"
#include "store/sqlite/sqlite_group.h"

/* One submit on its way to the I/O thread. */
struct hx_sqlite_request {
	struct hx_sqlite_request *next;
	struct hapax_op *ops;
	size_t count;
	struct hapax_completion completion;
	int64_t deadline_ns; /* when its wait for locks ends; includes the time in the queue */
};

struct hx_sqlite_batch {
	struct hx_sqlite_connection *connection;
	struct hx_sqlite_workspace workspace;
	_Atomic uint64_t *swept; /* the store's count of expired records removed */
};

/*
 * Answer a nonempty list of submits, whose operations went through hx_sqlite_ops_begin(); their
 * completions are not called. On return, every operation has its status, as durable as the
 * connection makes it.
 *
 * Returns the unanswered end of the list, cut off: requests that may wait longer for a lock than
 * the first. Mostly NULL.
 */
struct hx_sqlite_request *hx_sqlite_batch_run(
	struct hx_sqlite_batch *batch, struct hx_sqlite_request *requests);

#endif
