/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark.h - the fast lane: checks of keys that are new, or marked already.
 */
#ifndef HX_STORE_INDEX_MARK_H
#define HX_STORE_INDEX_MARK_H

#include "store/index/work.h"

/* Can op be answered from packed bytes, if its record is a mark or absent? */
static inline bool hx_mark_fits(const struct hapax_op *op)
{
	return op->type == HAPAX_OP_CHECK && op->record == NULL && op->ttl_ms != HAPAX_TTL_FOREVER;
}

/*
 * Answer op as hx_work would. False: nothing was done, use hx_work. Between hx_epoch_enter() and
 * leave.
 */
bool hx_mark_run(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op);

/*
 * The same for several operations that all fit, at most 32, with keys that were probed. Each
 * shard is locked once for all its new keys. Returns as bits the operations for which nothing
 * was done, and all later ones on their keys; hx_work runs them in order.
 */
unsigned hx_mark_run_all(
	const struct hx_work_context *context, const struct hx_index_key *keys,
	struct hapax_op *ops, unsigned count);

/* The same for keys that are already marked, and nothing else: never writes. */
bool hx_mark_read(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op);

#endif
