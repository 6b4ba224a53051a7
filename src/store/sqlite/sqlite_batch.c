/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_batch.c - answer submits in one transaction.
 *
 * One transaction answers all waiting submits, so that one sync of the log serves them all. A
 * batch is decided up to three times, and only the last time counts:
 *
 *  (1) Reading only, if it may be that nothing must be written: duplicates and lookups then
 *      neither wait for the write lock nor sync.
 *  (2) With the write lock.
 *  (3) If that failed because the disk is full or the lock was unavailable: reading only, and
 *      operations that must write get that status. A full disk thus does not stop replays, and
 *      one large result does not fail other submits.
 *
 * On a full disk the ends of claims are written first, one submit at a time, in the space that the
 * reserve holds (sqlite_reserve.h); then (3) answers what is left.
 *
 * Data read in (1) and (3) is durable: see hx_sqlite_connection_accept().
 */
#include "store/sqlite/sqlite_batch.h"

#include <assert.h>

#include "base/clock.h"
#include "store/core.h"

/* The largest result that is kept while the disk is full. */
enum { RESULT_SIZE_SHORT = 16 * 1024 };

/* How an attempt ended. */
struct attempt {
	bool told; /* policy TELL: it must write */
	enum hapax_status status;
};

static int run_requests(
	struct hx_sqlite_batch *batch, struct hx_sqlite_transaction *transaction,
	struct hx_sqlite_request *requests, struct hx_sqlite_group group, bool *ret_told)
{
	*ret_told = false;
	for (struct hx_sqlite_request *request = requests; request != NULL;
	     request = request->next) {
		size_t end;

		for (size_t first = 0; first < request->count; first = end) {
			int code;

			end = hx_store_group_end(request->ops, request->count, first);
			group.ops = request->ops + first;
			group.count = end - first;
			code = hx_sqlite_group_run(
				&batch->workspace, transaction, &group, ret_told);
			if (code != SQLITE_OK || *ret_told)
				return code;
		}
	}
	return SQLITE_OK;
}

static struct attempt try(
	struct hx_sqlite_batch *batch, struct hx_sqlite_request *requests,
	enum hx_sqlite_write_policy policy, enum hapax_status refusal)
{
	enum hx_sqlite_access access =
		policy == HX_SQLITE_WRITE_APPLY || policy == HX_SQLITE_WRITE_ENDS ? HX_SQLITE_WRITE
										  : HX_SQLITE_READ;
	struct hx_sqlite_group group = {
		.policy = policy,
		.refusal = refusal,
		.result_size_max = RESULT_SIZE_SHORT,
	};
	struct attempt attempt = {.told = false, .status = HAPAX_OK};
	struct hx_sqlite_transaction transaction;
	int code = hx_sqlite_transaction_begin(
		&transaction, batch->connection, batch->workspace.options, access);

	if (code != SQLITE_OK)
		goto out;
	if (transaction.needs_write && policy == HX_SQLITE_WRITE_TELL)
		attempt.told = true;
	else
		code = run_requests(batch, &transaction, requests, group, &attempt.told);
	if (code != SQLITE_OK || attempt.told)
		hx_sqlite_transaction_abort(&transaction);
	else
		code = hx_sqlite_transaction_commit(&transaction);
	if (code == SQLITE_OK && !attempt.told && transaction.removed != 0)
		atomic_fetch_add_explicit(batch->swept, transaction.removed, memory_order_relaxed);
out:
	if (code != SQLITE_OK)
		attempt.status = hx_sqlite_connection_fail(
			batch->connection, code, transaction.stage,
			"could not store the operations", NULL);
	return attempt;
}

/* A claim or check may be a duplicate; an operation with a token usually writes. */
static bool may_be_read_only(const struct hx_sqlite_request *requests)
{
	for (; requests != NULL; requests = requests->next) {
		for (size_t i = 0; i < requests->count; i++) {
			enum hapax_op_type type = requests->ops[i].type;

			if (type != HAPAX_OP_LOOKUP && type != HAPAX_OP_CLAIM &&
			    type != HAPAX_OP_CHECK)
				return false;
		}
	}
	return true;
}

static void fail_all(struct hx_sqlite_request *requests, enum hapax_status status)
{
	for (; requests != NULL; requests = requests->next)
		hx_sqlite_ops_fail(requests->ops, requests->count, status);
}

/* Read only if that may be enough, else take the write lock. */
static struct attempt try_to_apply(
	struct hx_sqlite_batch *batch, struct hx_sqlite_request *requests)
{
	bool is_nested = sqlite3_get_autocommit(batch->connection->db) == 0;
	struct attempt attempt = {.told = true};
	bool may_write;

	if (!is_nested && may_be_read_only(requests))
		attempt = try(batch, requests, HX_SQLITE_WRITE_TELL, HAPAX_OK);
	may_write = attempt.told;
	if (attempt.told && !is_nested && !hx_sqlite_connection_has_space(batch->connection))
		return (struct attempt){.status = HAPAX_ERR_LIMIT};
	if (attempt.told)
		attempt = try(batch, requests, HX_SQLITE_WRITE_APPLY, HAPAX_OK);
	if (attempt.status == HAPAX_OK && may_write && batch->connection->is_short != 0)
		batch->connection->is_short = 0;
	return attempt;
}

/* One submit on a full disk. LIMIT: its ends do not fit. */
static void end_one(struct hx_sqlite_batch *batch, struct hx_sqlite_request *request)
{
	struct hx_sqlite_request *next = request->next;
	struct attempt attempt;

	request->next = NULL;
	do
		attempt = try(batch, request, HX_SQLITE_WRITE_ENDS, HAPAX_ERR_LIMIT);
	while (attempt.status == HAPAX_ERR_LIMIT &&
	       hx_sqlite_connection_make_space(batch->connection));
	if (attempt.status == HAPAX_ERR_LIMIT)
		attempt = try(batch, request, HX_SQLITE_WRITE_REFUSE, HAPAX_ERR_LIMIT);
	if (attempt.status != HAPAX_OK)
		hx_sqlite_ops_fail(request->ops, request->count, attempt.status);
	request->next = next;
	hx_sqlite_connection_checkpoint(batch->connection);
}

/* The disk is full. Every request has its answer afterwards. */
static void end_all(struct hx_sqlite_batch *batch, struct hx_sqlite_request *requests)
{
	for (; requests != NULL; requests = requests->next)
		end_one(batch, requests);
}

/*
 * If the lock was unavailable until the first request's deadline, later requests have time left:
 * cut the list before the first of them.
 */
static struct hx_sqlite_request *cut_off_unexpired(struct hx_sqlite_request *requests)
{
	int64_t now_ns = hx_clock_mono_ns();
	struct hx_sqlite_request *last = requests;
	struct hx_sqlite_request *rest;

	if (requests->deadline_ns > now_ns)
		return NULL;
	while (last->next != NULL && last->next->deadline_ns <= now_ns)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	return rest;
}

struct hx_sqlite_request *hx_sqlite_batch_run(
	struct hx_sqlite_batch *batch, struct hx_sqlite_request *requests)
{
	bool is_nested = sqlite3_get_autocommit(batch->connection->db) == 0;
	struct hx_sqlite_request *rest = NULL;
	struct attempt attempt = {.status = HAPAX_ERR_FAILED};

	assert(requests != NULL);
	hx_sqlite_connection_set_deadline(batch->connection, requests->deadline_ns);
	if (!hx_sqlite_connection_is_failed(batch->connection))
		attempt = try_to_apply(batch, requests);
	if (is_nested && sqlite3_get_autocommit(batch->connection->db) != 0) {
		/*
		 * SQLite has ended the caller's transaction, with the caller's changes and our
		 * claims, as it may when the disk is full. The caller's next statement would
		 * commit alone, so the store is latched.
		 */
		atomic_store(batch->connection->is_failed, 1);
	} else if (attempt.status == HAPAX_ERR_LIMIT && batch->connection->has_reserve) {
		batch->connection->is_short = 1;
		end_all(batch, requests);
		attempt.status = HAPAX_OK;
	} else if (attempt.status == HAPAX_ERR_UNAVAILABLE || attempt.status == HAPAX_ERR_LIMIT) {
		if (attempt.status == HAPAX_ERR_UNAVAILABLE)
			rest = cut_off_unexpired(requests);
		attempt = try(batch, requests, HX_SQLITE_WRITE_REFUSE, attempt.status);
	}
	if (attempt.status != HAPAX_OK)
		fail_all(requests, attempt.status);
	hx_sqlite_workspace_trim(&batch->workspace);
	return rest;
}
