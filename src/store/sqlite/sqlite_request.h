/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_request.h - one submit on its way to the I/O thread.
 */
#ifndef HX_STORE_SQLITE_SQLITE_REQUEST_H
#define HX_STORE_SQLITE_SQLITE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

struct hx_sqlite_request {
	struct hx_sqlite_request *next;
	struct hapax_op *ops;
	size_t count;
	struct hapax_completion completion;
	int64_t deadline_ns; /* when its wait for locks ends; includes the time in the queue */
};

#endif
