/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - one operation on the index, in steps: decide, prepare, then commit or
 * cancel. A group runs each step for all of its operations before the next.
 *
 * Locks: the lock of the key's shard, from decide to commit or cancel.
 */
#ifndef HX_STORE_INDEX_WORK_H
#define HX_STORE_INDEX_WORK_H

#include "record/transition.h"
#include "store/index/index.h"

struct hx_write_ahead;

/* The common part of a submit's operations. */
struct hx_work_context {
	struct hx_index *index;
	struct hx_write_ahead *write_ahead; /* NULL: the index is the whole store */
	struct hx_transition_rules rules;
	uint64_t parked_max;
};

struct hx_work {
	struct hapax_op *op;
	const struct hx_index_key *key;
	uint32_t place;  /* of the record that was found; 0: none */
	uint32_t staged; /* of the new record; 0: none */
	bool is_admitted;
	struct hapax_record record; /* at place */
	struct hx_transition transition;
};

/*
 * Does op have a record whose result is still to be read? *ret_elsewhere says where it is, and
 * *ret_data where its bytes belong: the end of op->buf, where op->record expects them. The
 * caller that has read them, or has given up, calls hx_work_forget_place().
 */
bool hx_work_read_back(
	const struct hapax_op *op, struct hx_elsewhere *ret_elsewhere, unsigned char **ret_data,
	size_t *ret_size);

/* Nothing remains to be read for op; may be called at any time. */
void hx_work_forget_place(struct hapax_op *op, struct hx_elsewhere_users *users);

/* Bind op and its key to work. */
void hx_work_bind(struct hx_work *work, const struct hx_index_key *key, struct hapax_op *op);

/*
 * Try to answer without a lock, which is possible if nothing has to be written. Between
 * hx_epoch_enter() and leave.
 */
bool hx_work_read(struct hx_work *work, const struct hx_work_context *context);

/* Find the record and answer; limits are checked, nothing is written. */
void hx_work_decide(struct hx_work *work, const struct hx_work_context *context);

/* The maximum size of op's record, with a result up to that size. */
uint64_t hx_work_bytes(const struct hapax_op *op, uint64_t result_size_max);

/*
 * Do all that can fail. token is used if one is taken; staged counts the records of the group
 * that are staged in the same shard, this one included. may_evict is for a single operation. On
 * failure op holds the status, and nothing is left. An operation that ends a claim does not fail
 * by a limit: its record leaves out what does not fit.
 */
enum hapax_status hx_work_prepare(
	struct hx_work *work, const struct hx_work_context *context, uint64_t token,
	unsigned staged, bool may_evict);

/* Between begin and end of the shard's table. */
void hx_work_commit(struct hx_work *work, const struct hx_work_context *context);

void hx_work_cancel(struct hx_work *work, const struct hx_work_context *context);

/* After decide, or after cancel: end op as part of a group that fails. */
void hx_work_skip(struct hx_work *work, const struct hx_work_context *context);

/*
 * Settle a lapsed claim that no caller took over, if that is still so. LIMIT and NO_MEMORY: not
 * now. *ret_is_settled: it was. Takes the lock itself.
 */
enum hapax_status hx_work_settle(
	const struct hx_work_context *context, const struct hx_index_key *key,
	bool *ret_is_settled);

/* Single operations and groups. */
static inline bool hx_work_is_grouped(const struct hapax_op *op)
{
	return (op->flags & (HAPAX_OP_LINKED | HAPAX_OP_ALL_OR_NOTHING)) != 0;
}

/* One single operation, all steps. Between hx_epoch_enter() and leave. */
void hx_index_run_one(
	const struct hx_work_context *context, const struct hx_index_key *key, struct hapax_op *op);

/*
 * Run the operations of a submit; operations that the check refused are not changed. Returns how
 * many. Fewer than count means that the journal is full: the rest is unchanged.
 */
size_t hx_index_run_all(const struct hx_work_context *context, struct hapax_op *ops, size_t count);

#endif
