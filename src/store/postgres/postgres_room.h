/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres_room.h - shared by arguments and answers of an operation: its result, and its room
 * between an answer that asks for more and the repeat.
 */
#ifndef HX_STORE_POSTGRES_POSTGRES_ROOM_H
#define HX_STORE_POSTGRES_POSTGRES_ROOM_H

#include <hapax/store.h>

/* In op->private_state. */
enum {
	ROOM_IS_ALL = 1 << 0,    /* the buffer cannot grow ... */
	ROOM_NO_MEMORY = 1 << 1, /* ... because memory ran out, not because of its limit */
};

/* NULL: none. */
static inline const struct hapax_result *hx_postgres_result_of(const struct hapax_op *op)
{
	if (op->type == HAPAX_OP_LOAD)
		return &op->load->result;
	return op->type == HAPAX_OP_COMPLETE || op->type == HAPAX_OP_SET ? op->result : NULL;
}

#endif
