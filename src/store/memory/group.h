/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - linked operations, in one step.
 */
#ifndef HX_STORE_MEMORY_GROUP_H
#define HX_STORE_MEMORY_GROUP_H

#include "store/memory/work.h"

/* Run the operations of one group. */
void hx_memory_group(const struct hx_work_context *context, struct hapax_op *ops, size_t count);

#endif
