/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark.h - the fast lane: checks of keys that are new, or marked already.
 */
#ifndef HX_STORE_INDEX_MARK_H
#define HX_STORE_INDEX_MARK_H

#include "store/index/work.h"

/*
 * Answer op if it is such a check, as hx_work would. False: nothing was done, go
 * the long way. Between hx_epoch_enter() and leave.
 */
bool hx_mark_run(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op);

/* The same for what is marked already, and nothing else: nothing is ever written. */
bool hx_mark_read(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op);

#endif
