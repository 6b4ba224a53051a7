/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_group.h - linked operations, in one step.
 */
#ifndef HX_STORE_INDEX_INDEX_GROUP_H
#define HX_STORE_INDEX_INDEX_GROUP_H

#include "store/index/work.h"

/*
 * Run the operations of one group. False: the journal is full; the operations are unchanged, and
 * must be run again in the next frame.
 */
bool hx_index_group(const struct hx_work_context *context, struct hapax_op *ops, size_t count);

#endif
