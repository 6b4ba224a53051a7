/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_fault.h - SQLite's codes as statuses of error.h.
 *
 * Functions in this folder return SQLite's extended result codes. They become a status at the end
 * of a transaction, because only there is it known whether nothing was done or the outcome is
 * unknown.
 *
 * Threads: any.
 */
#ifndef HX_STORE_SQLITE_SQLITE_FAULT_H
#define HX_STORE_SQLITE_SQLITE_FAULT_H

#include <stdbool.h>

#include <hapax/error.h>

/* The stage at which a transaction failed. */
enum hx_sqlite_stage {
	HX_SQLITE_BEFORE_COMMIT, /* it is rolled back: nothing was done */
	HX_SQLITE_IN_COMMIT,     /* only codes from before the first write are definite */
};

/* The status of a failed transaction. code is not SQLITE_OK. */
enum hapax_status hx_sqlite_status(int code, enum hx_sqlite_stage stage);

/* Another connection holds a lock; the same call may succeed a moment later. */
bool hx_sqlite_is_busy(int code);

/* Writes of this handle can no longer be trusted (I11). */
bool hx_sqlite_is_fatal(int code);

/* A clause for messages: the code in the user's terms. Never NULL. */
const char *hx_sqlite_reason(int code);

#endif
