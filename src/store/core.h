/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - the part of store.c's state that backends may use.
 */
#ifndef HX_STORE_CORE_H
#define HX_STORE_CORE_H

#include <stdbool.h>

#include <hapax/ext/store_ops.h>

#include "base/bytes.h"
#include "record/transition.h"
#include "store/scope_table.h"

/* The store's options, with every default filled in; clock is never NULL. */
const struct hapax_store_options *hx_store_options(const struct hapax_store *store);

/* The scopes that operations name by private_scope. */
struct hx_scope_table *hx_store_scopes(const struct hapax_store *store);

/* hapax_store_attach() in two steps, for a store that needs its core before it can be swept. */
enum hapax_status hx_store_attach_quietly(
	struct hapax_store *store, const struct hapax_store_ops *ops, const char *url,
	const struct hapax_store_options *options, struct hapax_error *err);
enum hapax_status hx_store_start_housekeeping(struct hapax_store *store, struct hapax_error *err);

/* Can the store undo parts of the caller's transaction, as hapax_store_savepoint_fn says? */
bool hx_store_has_savepoints(const struct hapax_store *store);

/* Begin, keep or undo a savepoint; the store has savepoints. */
enum hapax_status hx_store_savepoint(
	struct hapax_store *store, enum hapax_savepoint savepoint, struct hapax_error *err);

/* Copy options with defaults filled in, or report what is wrong with them. options may be NULL. */
enum hapax_status hx_store_options_complete(
	const struct hapax_store_options *options, struct hapax_store_options *ret_options,
	struct hapax_error *err);

/* End op with status and without an answer: reset everything that a decision wrote. */
static inline void hx_store_refuse(struct hapax_op *op, enum hapax_status status)
{
	op->status = status;
	op->outcome = HAPAX_OUTCOME_NONE;
	op->attempt = 0;
	op->unverified = 0;
	op->repeated = 0;
	op->first_seen_ms = 0;
	op->expires_ms = HAPAX_TIME_NEVER;
	op->lease_left_ms = 0;
	/* An input token stays; an output token is cleared. */
	if (!hx_transition_has_token(op))
		op->token = 0;
}

/* End op with status, unless it has its answer or was refused. */
static inline void hx_store_fail_undecided(struct hapax_op *op, enum hapax_status status)
{
	if (op->status == HAPAX_OK && op->outcome == HAPAX_OUTCOME_NONE)
		hx_store_refuse(op, status);
}

/* By tenant, group and key: below, equal or above zero. */
static inline int hx_store_compare_names(const struct hapax_op *a, const struct hapax_op *b)
{
	int order = hx_bytes_compare(a->tenant, b->tenant);

	if (order == 0)
		order = hx_bytes_compare(a->group, b->group);
	return order != 0 ? order : hx_bytes_compare(a->key, b->key);
}

/*
 * Set every operation that the check did not refuse to status, whatever its answer was: FENCED
 * and LIMIT may also depend on a change that was never written.
 */
void hx_store_fail(struct hapax_op *ops, size_t count, enum hapax_status status);

/* The same for a submit that went nowhere, which then completes. */
void hx_store_fail_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion, enum hapax_status status);

/*
 * End op as part of an all-or-nothing group that fails. If op would have succeeded, it becomes
 * SKIPPED, and everything that a decision wrote is reset.
 */
void hx_store_skip(struct hapax_op *op);

/* The same for all of group [first, last). */
void hx_store_skip_group(struct hapax_op *ops, size_t first, size_t last);

/* One past the last operation of the group that begins at first. */
size_t hx_store_group_end(const struct hapax_op *ops, size_t count, size_t first);

#endif
