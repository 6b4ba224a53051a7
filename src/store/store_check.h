/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_check.h - operations as callers hand them in: checked, completed, reset.
 */
#ifndef HX_STORE_STORE_CHECK_H
#define HX_STORE_STORE_CHECK_H

#include <stdbool.h>

#include <hapax/ext/store_ops.h>

/* Groups are checked for repeated keys pair by pair, so they must be small. */
enum { HX_GROUP_OPS_MAX = 1024 };

/* Not longer than allowed, and no length without its data. */
bool hx_store_check_bytes(struct hapax_bytes bytes, size_t size_max);

/*
 * Prepare operations for the backend: reset what comes out, fill in defaults,
 * find scopes, adding those that will be written to. One that breaks the contract gets its status here, and so does
 * the rest of an all-or-nothing group. Returns how many are left to be decided.
 */
size_t hx_store_check_ops(struct hapax_store *store, struct hapax_op *ops, size_t count);

#endif
