/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_fault.h - what SQLite answers, in the words of error.h.
 *
 * Inside this folder functions return SQLite's extended result codes; they become
 * a status where a transaction ends, because only there is it known whether
 * nothing was done or nobody knows.
 *
 * Threads: any.
 */
#ifndef HX_STORE_SQLITE_SQLITE_FAULT_H
#define HX_STORE_SQLITE_SQLITE_FAULT_H

#include <stdbool.h>

#include <hapax/error.h>

/* Where a transaction stood when it failed. */
enum hx_sqlite_stage {
	HX_SQLITE_BEFORE_COMMIT, /* it is rolled back: nothing was done */
	HX_SQLITE_IN_COMMIT,     /* only a code that SQLite answers before it writes is definite */
};

/* The status of a failed transaction. code is not SQLITE_OK. */
enum hapax_status hx_sqlite_status(int code, enum hx_sqlite_stage stage);

/* Somebody else holds a lock; the same call may succeed a moment later. */
bool hx_sqlite_is_busy(int code);

/* Nothing that this handle writes can be trusted any more (I11). */
bool hx_sqlite_is_fatal(int code);

/* A clause for messages: what the code means for a user. Never NULL. */
const char *hx_sqlite_reason(int code);

#endif
