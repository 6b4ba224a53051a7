/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_batch.h - operations that go to the store together, and all that they point at.
 *
 * A batch gathers what the commands of many connections ask for, is submitted once,
 * and holds the answers until every connection has read its own. Keys and values are
 * copied into it, so that a connection may go away, or read on, while the store works.
 * Memory is kept for the next time: a busy door allocates nothing.
 *
 * Between add and seal an operation is addressed by its index, since the array may
 * move; seal makes the pointers.
 *
 * Threads: one at a time; between submit and completion the store's.
 */
#ifndef HX_RESP_RESP_BATCH_H
#define HX_RESP_RESP_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/store.h>

#include "base/buf.h"

struct hx_resp_chunk;

/* Where the store writes a record. */
struct hx_resp_slot {
	struct hapax_record record;
	struct hapax_buf buf;
};

struct hx_resp_batch {
	struct hapax_op *ops;
	struct hapax_result *results; /* of the operation with the same index: what set writes */
	size_t count;
	size_t capacity;

	struct hx_resp_slot *slots;
	size_t slot_count;
	size_t slot_capacity;
	size_t slot_ready; /* as many have a buffer that was made ready */

	struct hx_resp_chunk *chunks; /* in use, the newest first */
	struct hx_resp_chunk *spare;

	struct hx_budget
		*budget;   /* of arrays and copies; NULL: none. Set before anything is added */
	size_t held_bytes; /* of it */
	struct hx_budget *records; /* of the records of what is added next; NULL: none */
};

/* Allocates nothing. */
void hx_resp_batch_init(struct hx_resp_batch *batch);
void hx_resp_batch_done(struct hx_resp_batch *batch);

/* Empty it; memory is kept, but for what is unusually large. */
void hx_resp_batch_clear(struct hx_resp_batch *batch);

/*
 * One more operation, zeroed but for its type, and with wants_record a place for its
 * record. NULL: no memory, or no room for more than the store takes at a time. Valid
 * until the next call.
 */
struct hapax_op *hx_resp_batch_add(
	struct hx_resp_batch *batch, enum hapax_op_type type, bool wants_record);

/*
 * The record of op was read: its memory, if it is much, goes back to where it was taken
 * from. Whoever sets `records` calls it before that budget goes away.
 */
void hx_resp_batch_drop_record(struct hapax_op *op);

/* The last operation is taken back. */
void hx_resp_batch_cut(struct hx_resp_batch *batch, size_t count);

/* A copy that lives until clear. False: no memory. */
bool hx_resp_batch_keep(
	struct hx_resp_batch *batch, struct hapax_bytes bytes, struct hapax_bytes *ret_copy);

/* The value of the set operation that was added last. */
void hx_resp_batch_set_value(struct hx_resp_batch *batch, struct hapax_bytes kept);

/* Of the operation added last, whose value is set: whether it counts as one, and its class. */
void hx_resp_batch_set_class(
	struct hx_resp_batch *batch, bool has_value, enum hapax_result_class result_class);

/* Nothing is added any more: make it ready for hapax_store_submit(). */
void hx_resp_batch_seal(struct hx_resp_batch *batch);

#endif
