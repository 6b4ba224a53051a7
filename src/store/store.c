/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - checked dispatch: the only caller of a store's table of operations.
 *
 * A submit goes through store_check.c, then to the backend, which ends it with
 * hapax_store_complete(). The blocking calls are submits that wait.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/thread.h"
#include "store/store_check.h"
#include "store/core.h"
#include "store/core_private.h"
#include "store/counting.h"

enum { SCAN_COUNT_DEFAULT = 1000, SWEEP_COUNT_DEFAULT = 10000 };

static void hide_run(struct hapax_record *record)
{
	memset(&record->result, 0, sizeof(record->result));
	record->owner = hx_bytes(NULL, 0);
	record->error = hx_bytes(NULL, 0);
	record->cause = hx_bytes(NULL, 0);
}

/*
 * Postconditions of every backend: an answer is a status and, when OK, an outcome. A caller with
 * a different payload never gets what the run with the key has stored (I7).
 */
static void check_answers(struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert((ops[i].status == HAPAX_OK) == (ops[i].outcome != HAPAX_OUTCOME_NONE));
		if (ops[i].outcome == HAPAX_OUTCOME_MISMATCH && ops[i].record != NULL)
			hide_run(ops[i].record);
	}
}

void hapax_store_complete(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	check_answers(ops, count);
	hx_counting_add(store, ops, count);
	completion.fn(ops, count, completion.context);
}

void hapax_store_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	assert(store != NULL && completion.fn != NULL);
	if (count == 0) {
		completion.fn(ops, 0, completion.context);
		return;
	}
	if (count > HX_SUBMIT_OPS_MAX) {
		for (size_t i = 0; i < count; i++) {
			ops[i].outcome = HAPAX_OUTCOME_NONE;
			ops[i].status = HAPAX_ERR_INVALID;
		}
		completion.fn(ops, count, completion.context);
		return;
	}
	if (hx_store_check_ops(store, ops, count) == 0)
		hapax_store_complete(store, ops, count, completion);
	else
		store->ops->submit(store, ops, count, completion);
}

static void ignore(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	(void)count;
	(void)context;
}

static void wake(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	(void)count;
	hx_event_set(context);
}

/* The meaning of a status for an operation, as a sentence that does not repeat its key. */
static const char *explain(struct hapax_store *store, const struct hapax_op *op)
{
	switch (op->status) {
	case HAPAX_OK: break;
	case HAPAX_ERR_INVALID:
		if (op->key.size == 0 || op->key.size > HX_KEY_SIZE_MAX)
			return "the key must be 1 to 1,024 bytes long";
		if (strstr(hapax_store_url(store), "tenant=") != NULL)
			return "the operation is malformed, or its tenant differs from "
			       "?tenant= in the store URL; use that tenant in the scope";
		return "the operation is malformed";
	case HAPAX_ERR_NO_MEMORY: return "not enough memory; nothing changed";
	case HAPAX_ERR_LIMIT: return "the store is full or a limit was reached; nothing changed";
	case HAPAX_ERR_UNAVAILABLE: return "could not reach the store in time; nothing changed";
	case HAPAX_ERR_UNCERTAIN:
		return "the store failed during a write; it is unknown whether the operation "
		       "took effect";
	case HAPAX_ERR_FENCED: return "the token does not hold the key; stop the work";
	case HAPAX_ERR_CORRUPT:
		return "stored data is damaged; check a file: store with 'hapax fsck', or restore "
		       "a backup";
	case HAPAX_ERR_UNSUPPORTED:
		return "operation not supported by this store, or not allowed without an API token";
	case HAPAX_ERR_HANDLER: return "the handler failed";
	case HAPAX_ERR_FAILED: return "the store stopped after an I/O error; nothing changed";
	}
	return "unknown status";
}

/* LIMIT by the disk has another remedy than a limit of the store. */
static bool disk_is_full(struct hapax_store *store)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	return store->ops->stats(store, &stats, NULL, NULL, NULL) == HAPAX_OK &&
		stats.disk_full != 0;
}

static enum hapax_status report_refusal(
	struct hapax_store *store, const struct hapax_op *op, struct hapax_error *err)
{
	if (err == NULL || op->status != HAPAX_ERR_LIMIT || !disk_is_full(store))
		return hx_error_set(err, op->status, 0, "%s", explain(store, op));
	hx_error_set(err, op->status, 0, "the disk is full; nothing changed");
	/* For a hint; the message says it already. */
	err->os_errno = ENOSPC;
	return op->status;
}

enum hapax_status hapax_store_run(
	struct hapax_store *store, struct hapax_op *ops, size_t count, struct hapax_error *err)
{
	struct hx_event done;

	if (store == NULL || (ops == NULL && count != 0))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a store and operations are required");
	if (count > HX_SUBMIT_OPS_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"too many operations in one submit: %zu, limit %d", count,
			HX_SUBMIT_OPS_MAX);
	if (store->ops->run != NULL && count != 0) {
		if (hx_store_check_ops(store, ops, count) != 0)
			store->ops->run(store, ops, count);
		hapax_store_complete(store, ops, count, (struct hapax_completion){ignore, NULL});
	} else if (store->ops->is_synchronous) {
		hapax_store_submit(store, ops, count, (struct hapax_completion){ignore, NULL});
	} else {
		hx_event_init(&done);
		hapax_store_submit(store, ops, count, (struct hapax_completion){wake, &done});
		hx_event_wait(&done);
	}
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status != HAPAX_OK)
			return report_refusal(store, &ops[i], err);
	}
	return HAPAX_OK;
}

enum hapax_status hapax_store_check(
	struct hapax_store *store, struct hapax_bytes key, int64_t ttl_ms,
	enum hapax_outcome *ret_outcome, struct hapax_error *err)
{
	struct hapax_op op = {.type = HAPAX_OP_CHECK, .key = key, .ttl_ms = ttl_ms};
	enum hapax_status status;

	/* A caller that cannot receive the outcome must not mark the key. */
	if (ret_outcome == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "space for the outcome is required");
	status = hapax_store_run(store, &op, 1, err);
	if (status == HAPAX_OK)
		*ret_outcome = op.outcome;
	return status;
}

void hapax_attempt_id(unsigned char ret_attempt_id[HAPAX_ATTEMPT_ID_SIZE])
{
	hx_random_bytes(ret_attempt_id, HAPAX_ATTEMPT_ID_SIZE);
}

/* Insertion sort: lists are short and mostly sorted, and nothing is allocated. */
static void sort_by_key(struct hapax_op *ops, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct hapax_op op = ops[i];
		size_t at = i;

		for (; at > 0 && hx_store_compare_names(&ops[at - 1], &op) > 0; at--)
			ops[at] = ops[at - 1];
		ops[at] = op;
	}
}

static void summarize(
	const struct hapax_op *ops, size_t count, enum hapax_outcome *ret_outcome,
	size_t *ret_index)
{
	*ret_outcome = HAPAX_OUTCOME_ACQUIRED;
	*ret_index = 0;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].outcome == HAPAX_OUTCOME_MISMATCH) {
			*ret_outcome = HAPAX_OUTCOME_MISMATCH;
			*ret_index = i;
			return;
		}
		if (*ret_outcome == HAPAX_OUTCOME_ACQUIRED &&
		    ops[i].outcome != HAPAX_OUTCOME_ACQUIRED &&
		    ops[i].outcome != HAPAX_OUTCOME_SKIPPED) {
			*ret_outcome = ops[i].outcome;
			*ret_index = i;
		}
	}
}

enum hapax_status hapax_store_claim_all(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	enum hapax_outcome *ret_outcome, size_t *ret_index, struct hapax_error *err)
{
	enum hapax_status status;

	if (store == NULL || ops == NULL || count == 0 || ret_outcome == NULL || ret_index == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a store, at least one key and space for the outcome are required");
	if (count > HX_GROUP_OPS_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "too many keys in one claim: %zu, limit %d",
			count, HX_GROUP_OPS_MAX);
	for (size_t i = 0; i < count; i++) {
		ops[i].type = HAPAX_OP_CLAIM;
		ops[i].attempt_id = ops[0].attempt_id;
		ops[i].owner = ops[0].owner;
		ops[i].cause = ops[0].cause;
		ops[i].lease_ms = ops[0].lease_ms;
		ops[i].ttl_ms = ops[0].ttl_ms;
		ops[i].on_lapse = ops[0].on_lapse;
	}
	sort_by_key(ops, count);
	for (size_t i = 0; i < count; i++) {
		ops[i].flags = i == 0 ? (unsigned)HAPAX_OP_ALL_OR_NOTHING : 0;
		if (i + 1 < count)
			ops[i].flags |= HAPAX_OP_LINKED;
	}
	status = hapax_store_run(store, ops, count, err);
	if (status == HAPAX_OK)
		summarize(ops, count, ret_outcome, ret_index);
	return status;
}

bool hx_store_has_savepoints(const struct hapax_store *store)
{
	return (store->ops->capabilities & HAPAX_STORE_TRANSACTIONS) != 0 &&
		store->ops->savepoint != NULL;
}

enum hapax_status hx_store_savepoint(
	struct hapax_store *store, enum hapax_savepoint savepoint, struct hapax_error *err)
{
	assert(hx_store_has_savepoints(store));
	return store->ops->savepoint(store, savepoint, err);
}

enum hapax_status hapax_store_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct hapax_scan complete = HAPAX_SCAN_INIT;

	if (store == NULL || cursor == NULL || each == NULL || cursor->size > sizeof(cursor->place))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "a store, a cursor and a function are required");
	if (scan != NULL) {
		if (scan->size < sizeof(scan->size) || scan->size > sizeof(complete))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "the scan has an unknown size");
		memcpy(&complete, scan, scan->size);
	}
	if (!hx_store_check_bytes(complete.tenant, HX_SCOPE_PART_SIZE_MAX) ||
	    !hx_store_check_bytes(complete.group, HX_SCOPE_PART_SIZE_MAX) ||
	    !hx_store_check_bytes(complete.prefix, HX_KEY_SIZE_MAX) ||
	    (unsigned)complete.state > HAPAX_STATE_PARKED)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the scan has conditions that no record can meet");
	if (complete.count_max == 0)
		complete.count_max = SCAN_COUNT_DEFAULT;
	if (cursor->done)
		return HAPAX_OK;
	return store->ops->scan(store, &complete, cursor, each, context, err);
}

enum hapax_status hapax_store_stats(
	struct hapax_store *store, struct hapax_stats *ret_stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status;

	if (store == NULL || ret_stats == NULL || ret_stats->size < sizeof(stats.size) ||
	    ret_stats->size > sizeof(stats))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a store and stats of a known size are required");
	/*
	 * Counters that cannot be kept now are kept later; the other statistics are still
	 * reported.
	 */
	(void)hx_counting_flush(store, NULL);
	stats.bytes_max = hx_store_options(store)->bytes_max;
	stats.keys_max = hx_store_options(store)->keys_max;
	status = store->ops->stats(store, &stats, each, context, err);
	if (status != HAPAX_OK)
		return status;
	if (store->ops->count == NULL)
		hx_counting_report(store, &stats, each, context);
	hx_housekeeper_report(store, &stats);
	stats.size = ret_stats->size;
	memcpy(ret_stats, &stats, ret_stats->size);
	return HAPAX_OK;
}

enum hapax_status hapax_store_files(
	struct hapax_store *store, struct hapax_files *ret_files, struct hapax_error *err)
{
	struct hapax_files files = HAPAX_FILES_INIT;
	enum hapax_status status;

	if (store == NULL || ret_files == NULL || ret_files->size != sizeof(files))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a store and files of a known size are required");
	if (store->ops->files == NULL)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0, "'%s' has no segments", store->ops->name);
	status = store->ops->files(store, &files, err);
	if (status == HAPAX_OK)
		*ret_files = files;
	return status;
}

enum hapax_status hapax_store_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct hapax_sweep work = HAPAX_SWEEP_INIT;
	enum hapax_status status;

	if (store == NULL || sweep == NULL || sweep->size < sizeof(sweep->size) ||
	    sweep->size > sizeof(work))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a store and a sweep of a known size are required");
	work.count_max = sweep->count_max == 0 ? SWEEP_COUNT_DEFAULT : sweep->count_max;
	status = store->ops->sweep(store, &work, err);
	if (status != HAPAX_OK)
		return status;
	work.size = sweep->size;
	work.count_max = sweep->count_max;
	memcpy(sweep, &work, sweep->size);
	return HAPAX_OK;
}

void hx_store_fail(struct hapax_op *ops, size_t count, enum hapax_status status)
{
	assert(status != HAPAX_OK);
	for (size_t i = 0; i < count; i++) {
		if (ops[i].private_scope != HX_SCOPE_REFUSED)
			hx_store_refuse(&ops[i], status);
	}
}

void hx_store_fail_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion, enum hapax_status status)
{
	hx_store_fail(ops, count, status);
	hapax_store_complete(store, ops, count, completion);
}

size_t hx_store_group_end(const struct hapax_op *ops, size_t count, size_t first)
{
	size_t end = first;

	assert(first < count);
	while (end + 1 < count && (ops[end].flags & HAPAX_OP_LINKED))
		end++;
	return end + 1;
}

void hx_store_skip(struct hapax_op *op)
{
	if (!hx_transition_is_go(op))
		return;
	hx_store_refuse(op, HAPAX_OK);
	op->outcome = HAPAX_OUTCOME_SKIPPED;
}

void hx_store_skip_group(struct hapax_op *ops, size_t first, size_t last)
{
	for (size_t i = first; i < last; i++)
		hx_store_skip(&ops[i]);
}
