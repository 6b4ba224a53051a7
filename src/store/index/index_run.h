/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_run.h - a submit's operations, one after the other, on the index.
 */
#ifndef HX_STORE_INDEX_INDEX_RUN_H
#define HX_STORE_INDEX_INDEX_RUN_H

#include "store/index/work.h"

/* Operations on their own and groups. */
static inline bool hx_run_is_grouped(const struct hapax_op *op)
{
	return (op->flags & (HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING)) != 0;
}

/* One operation on its own. Between hx_epoch_enter() and leave. */
void hx_index_run_one(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op);

/*
 * Run the operations; those that the check refused are left alone. Returns how many,
 * fewer than count only if the journal is full: then the rest is as it was.
 */
size_t hx_index_run_all(const struct hx_work_context *context, struct hapax_op *ops, size_t count);

#endif
