/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_run.h - a submit's operations on the index, one after the other.
 */
#ifndef HX_STORE_INDEX_INDEX_RUN_H
#define HX_STORE_INDEX_INDEX_RUN_H

#include "store/index/work.h"

/* Single operations and groups. */
static inline bool hx_run_is_grouped(const struct hapax_op *op)
{
	return (op->flags & (HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING)) != 0;
}

/* One single operation. Between hx_epoch_enter() and leave. */
void hx_index_run_one(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op);

/*
 * Run the operations; operations that the check refused are not changed. Returns how many. Fewer
 * than count means that the journal is full: the rest is unchanged.
 */
size_t hx_index_run_all(const struct hx_work_context *context, struct hapax_op *ops, size_t count);

#endif
