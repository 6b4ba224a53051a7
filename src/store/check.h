/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - operations as callers hand them in: checked, completed, reset.
 */
#ifndef HX_STORE_CHECK_H
#define HX_STORE_CHECK_H

#include <hapax/ext/store_ops.h>

/*
 * Prepare operations for the backend: reset what comes out, fill in defaults,
 * intern scopes. One that breaks the contract gets its status here, and so does
 * the rest of an all-or-nothing group. Returns how many are left to be decided.
 */
size_t hx_check_ops(struct hapax_store *store, struct hapax_op *ops, size_t count);

#endif
