/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_check.h - check, complete and reset the operations of callers.
 */
#ifndef HX_STORE_STORE_CHECK_H
#define HX_STORE_STORE_CHECK_H

#include <stdbool.h>

#include <hapax/ext/store_ops.h>

/* Groups are checked for repeated keys pair by pair, so they must be small. */
enum { HX_GROUP_OPS_MAX = 1024 };

/* Within the allowed length, and no length without its data. */
bool hx_store_check_bytes(struct hapax_bytes bytes, size_t size_max);

/*
 * Prepare operations for the backend: reset the out-members, fill in defaults, find scopes, add
 * scopes that will be written to. An operation that breaks the contract gets its status here,
 * and so does the rest of its all-or-nothing group. Returns the number left to decide.
 */
size_t hx_store_check_ops(struct hapax_store *store, struct hapax_op *ops, size_t count);

#endif
