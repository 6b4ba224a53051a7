/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_group.h - decide and apply a group of operations within a transaction.
 *
 * A group is a run of linked operations; an unlinked one is a group of its own. All of it is
 * decided before any of it is written, so a failing group, or an operation that does not fit its
 * buffer, leaves nothing behind.
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

/* Reused for each group. Zero it, then set the first two members. */
struct hx_sqlite_workspace {
	const struct hapax_store_options *options; /* complete */
	bool without_lease;                        /* see struct hx_transition_rules */
	uint64_t token; /* the last one granted here, by any transaction */
	struct hx_sqlite_slot *slots;
	size_t slot_count;
};

void hx_sqlite_workspace_done(struct hx_sqlite_workspace *workspace);

/* Free memory that an unusually large group or record took. */
void hx_sqlite_workspace_trim(struct hx_sqlite_workspace *workspace);

/* How a group ends if it must write. */
enum hx_sqlite_write_policy {
	HX_SQLITE_WRITE_APPLY,  /* write */
	HX_SQLITE_WRITE_TELL,   /* decide nothing and report it */
	HX_SQLITE_WRITE_REFUSE, /* answer with the given status */
	HX_SQLITE_WRITE_ENDS,   /* write the ends of claims, refuse the rest: the disk is full */
};

struct hx_sqlite_group {
	struct hapax_op *ops;
	size_t count;
	enum hx_sqlite_write_policy policy;
	enum hapax_status refusal; /* for REFUSE and ENDS */
	size_t result_size_max;    /* for ENDS: larger results are left out */
};

/*
 * Answer the operations of a group. *ret_told: the policy is TELL and it must write. A code other
 * than SQLITE_OK fails the whole transaction.
 */
int hx_sqlite_group_run(
	struct hx_sqlite_workspace *workspace, struct hx_sqlite_transaction *transaction,
	const struct hx_sqlite_group *group, bool *ret_told);

/*
 * Remember the operations that the check in store.c refused, to leave them alone. Their status
 * shows it only until others have one, too.
 */
void hx_sqlite_ops_begin(struct hapax_op *ops, size_t count);

/* End all operations except the refused ones with a status other than HAPAX_OK. */
void hx_sqlite_ops_fail(struct hapax_op *ops, size_t count, enum hapax_status status);

#endif
