/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h - the record of an operation that a server decides: room for it, then the record.
 *
 * A record must fit the caller's buffer before anything is done: a server that has decided cannot
 * take it back. Room is therefore reserved before an operation is sent, and its size goes with
 * it. The size of an old value (set, forget, expire) is unknown then; a server that needs more
 * does nothing and asks for it, and the operation is sent again.
 *
 *	status = hx_room_reserve(op);			before it is sent; private_state is 0
 *	... send hx_room_size(op) and hx_room_is_all(op)
 *	hx_room_make(op, size)				the server asks for more: send it again
 *	hx_store_refuse(op, hx_room_status(op))		it needs more than there can be
 *	hx_room_fill(op, &record)			the answer
 *
 * Threads: one at a time for an operation.
 */
#ifndef HX_STORE_ROOM_H
#define HX_STORE_ROOM_H

#include <stdbool.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "base/limits.h"

/* Enough for most old values, and for the texts of a record beside its name and result. */
enum {
	HX_ROOM_FIRST = 4096,
	HX_ROOM_PEOPLE_MAX = HX_OWNER_SIZE_MAX + HX_ERROR_TEXT_SIZE_MAX + HX_CAUSE_SIZE_MAX,
};

/* In op->private_state. */
enum hx_room_flags {
	HX_ROOM_IS_ALL = 1 << 0,    /* the buffer cannot grow ... */
	HX_ROOM_NO_MEMORY = 1 << 1, /* ... because memory ran out, not because of its limit */
};

/* The bytes of its tenant, group and key. */
static inline size_t hx_room_name_size(const struct hapax_op *op)
{
	return op->tenant.size + op->group.size + op->key.size;
}

/* May a server ask for more room? */
static inline bool hx_room_may_grow(const struct hapax_op *op)
{
	return op->record != NULL &&
		(op->type == HAPAX_OP_SET || op->type == HAPAX_OP_FORGET ||
		 op->type == HAPAX_OP_EXPIRE);
}

/* The room for the record's texts. */
static inline size_t hx_room_size(const struct hapax_op *op)
{
	if (op->record == NULL)
		return 0;
	return op->buf->capacity < op->buf->size_max ? op->buf->capacity : op->buf->size_max;
}

static inline bool hx_room_is_all(const struct hapax_op *op)
{
	return (op->private_state & HX_ROOM_IS_ALL) != 0;
}

/* LIMIT, NO_MEMORY: op has that status and must not be sent. */
enum hapax_status hx_room_reserve(struct hapax_op *op);

/* Make room of that size, or all there can be. False: op has no such question to answer. */
bool hx_room_make(struct hapax_op *op, size_t size);

/* Why there is not enough. */
enum hapax_status hx_room_status(const struct hapax_op *op);

/* Hand out a record without its name. CORRUPT: it is not valid. */
void hx_room_fill(struct hapax_op *op, struct hapax_record *record);

/* Hand out the record that a claim or check has just made: all but its times is in op. */
void hx_room_fill_made(struct hapax_op *op, int64_t now_ms, int64_t lease_ends_ms);

#endif
