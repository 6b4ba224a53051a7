/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_group.h - decide and apply a group of operations within a transaction.
 *
 * A group is a run of linked operations; one that is not linked is a group of its
 * own. All of it is decided before any of it is written, so a group that does not
 * go, and an operation that does not fit its buffer, leave nothing behind.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_SQLITE_SQLITE_GROUP_H
#define HX_STORE_SQLITE_SQLITE_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/store.h>

#include "store/sqlite/transaction.h"

struct hx_sqlite_slot;

/* What is used again for each group. Zero it, then set the first two members. */
struct hx_sqlite_workspace {
	const struct hapax_store_options *options; /* complete */
	bool without_lease;                        /* see struct hx_transition_rules */
	uint64_t token; /* the last one given out here, by whatever transaction */
	struct hx_sqlite_slot *slots;
	size_t slot_count;
};

void hx_sqlite_workspace_done(struct hx_sqlite_workspace *workspace);

/* Give back memory that an unusually large group or record took. */
void hx_sqlite_workspace_trim(struct hx_sqlite_workspace *workspace);

/* How a group ends when it would have to write. */
enum hx_sqlite_write_policy {
	HX_SQLITE_WRITE_APPLY,  /* write */
	HX_SQLITE_WRITE_TELL,   /* decide nothing and say so */
	HX_SQLITE_WRITE_REFUSE, /* answer with the given status */
};

struct hx_sqlite_group {
	struct hapax_op *ops;
	size_t count;
	enum hx_sqlite_write_policy policy;
	enum hapax_status refusal; /* for REFUSE */
};

/*
 * Answer the operations of a group. *ret_told is true when the policy is TELL and it
 * would have to write. A code other than SQLITE_OK fails the whole transaction.
 */
int hx_sqlite_group_run(
	struct hx_sqlite_workspace *workspace, struct hx_sqlite_transaction *transaction,
	const struct hx_sqlite_group *group, bool *ret_told);

/*
 * Operations that the check in store.c refused are to be left alone. Their status
 * says so only until others have a status of their own: remember it now.
 */
void hx_sqlite_ops_begin(struct hapax_op *ops, size_t count);

/* End all operations but the refused ones with a status that is not HAPAX_OK. */
void hx_sqlite_ops_fail(struct hapax_op *ops, size_t count, enum hapax_status status);

#endif
