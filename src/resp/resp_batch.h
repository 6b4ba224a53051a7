/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_batch.h - operations that go to the store together, and all data they point at.
 *
 * A batch gathers the operations of many connections, is submitted once, and holds the answers
 * until every connection has read its own. Keys and values are copied into it, so a connection may
 * close or read more while the store works. Memory is kept for reuse: a busy door allocates
 * nothing.
 *
 * Between add and seal an operation is addressed by its index, since the array may move; seal makes
 * the pointers.
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

/* The buffer for a record from the store. */
struct hx_resp_slot {
	struct hapax_record record;
	struct hapax_buf buf;
};

struct hx_resp_batch {
	struct hapax_op *ops;
	struct hapax_result *results; /* the value that the operation with the same index sets */
	size_t count;
	size_t capacity;

	struct hx_resp_slot *slots;
	size_t slot_count;
	size_t slot_capacity;
	size_t slot_ready; /* number of slots with an initialized buffer */

	struct hx_resp_chunk *chunks; /* in use, newest first */
	struct hx_resp_chunk *spare;

	struct hx_budget *budget;  /* for arrays and copies; NULL: none. Set before the first add */
	size_t held_bytes;         /* taken from budget */
	struct hx_budget *records; /* for the records of the next operations; NULL: none */
};

/* Allocates nothing. */
void hx_resp_batch_init(struct hx_resp_batch *batch);
void hx_resp_batch_done(struct hx_resp_batch *batch);

/* Empties the batch; keeps its memory unless it is unusually large. */
void hx_resp_batch_clear(struct hx_resp_batch *batch);

/*
 * Adds an operation, zeroed except for its type; with wants_record it gets a slot. NULL: no memory,
 * or more than the store takes at a time. Valid until the next call.
 */
struct hapax_op *hx_resp_batch_add(
	struct hx_resp_batch *batch, enum hapax_op_type type, bool wants_record);

/*
 * The caller has read the record of op: a large buffer returns to its budget. A caller that sets
 * `records` calls this before that budget is freed.
 */
void hx_resp_batch_drop_record(struct hapax_op *op);

/* Removes the operations from index count on. */
void hx_resp_batch_cut(struct hx_resp_batch *batch, size_t count);

/* A copy that lives until clear. False: no memory. */
bool hx_resp_batch_keep(
	struct hx_resp_batch *batch, struct hapax_bytes bytes, struct hapax_bytes *ret_copy);

/* The value of the set operation that was added last. */
void hx_resp_batch_set_value(struct hx_resp_batch *batch, struct hapax_bytes kept);

/* Whether the operation added last has the value that was set, and its class. */
void hx_resp_batch_set_class(
	struct hx_resp_batch *batch, bool has_value, enum hapax_result_class result_class);

/* Prepares the batch for hapax_store_submit(). No operation may be added afterward. */
void hx_resp_batch_seal(struct hx_resp_batch *batch);

#endif
