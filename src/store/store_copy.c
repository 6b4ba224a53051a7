/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_copy.c - copy all records of one store into another, by scan and load.
 *
 * A marker, a FAILED record with the token that the target's tokens must exceed, goes in first
 * and is forgotten last. So the target's tokens are above the source's before it holds any other
 * record. An interrupted copy does not open as if it were whole: the keys that it lacks would
 * run again.
 */
#include "store/store_copy.h"

#include <hapax/copy.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "store/load_batch.h"

#define TOKEN_DISTANCE (UINT64_C(1) << 40)

/* Records per scan of the source. */
enum { SCAN_RECORDS = 1024 };

/*
 * No caller uses these keys: doors take text, and Redis clients do not begin keys with NUL. A
 * store that holds the first holds part of a copy and does not open. The second only carries a
 * token: leaving it behind is harmless.
 */
static const struct hapax_bytes copy_marker = {"\0hapax copy", 11};
static const struct hapax_bytes token_marker = {"\0hapax token", 12};

struct copying {
	struct hx_load_batch *batch;
	int64_t shift_ms; /* how far the target's clock is ahead */
	enum hapax_status status;
};

static int store_copy_take(const struct hapax_record *record, void *context)
{
	struct copying *copying = context;

	if (hx_bytes_equal(record->key, copy_marker) || hx_bytes_equal(record->key, token_marker))
		return 0;
	copying->status = hx_load_batch_add(copying->batch, record, copying->shift_ms);
	return copying->status != HAPAX_OK || hx_load_batch_is_full(copying->batch);
}

/* Run, or report which store refused. */
static enum hapax_status run_one(
	struct hapax_store *target, struct hapax_op *op, struct hapax_error *err)
{
	struct hapax_error cause = {.status = HAPAX_OK};
	enum hapax_status status = hapax_store_run(target, op, 1, &cause);

	if (status == HAPAX_OK)
		return HAPAX_OK;
	return hx_error_set(
		err, status, cause.os_errno, "could not copy into '%.200s': %.200s",
		hapax_store_url(target), cause.message);
}

static enum hapax_status put_marker(
	struct hapax_store *target, struct hapax_bytes key, uint64_t token, int64_t now_ms,
	struct hapax_error *err)
{
	struct hapax_record marker = {
		.state = HAPAX_STATE_FAILED,
		.origin = HAPAX_ORIGIN_CLAIM,
		.attempt = 1,
		.token = token,
		.first_seen_ms = now_ms,
		.changed_ms = now_ms,
		.expires_ms = HAPAX_TIME_NEVER,
		.ttl_ms = HAPAX_TTL_FOREVER,
		.error = HX_BYTES_LIT(
			"a copy into this store did not finish; delete the store and copy again"),
	};
	struct hapax_op op = {.type = HAPAX_OP_LOAD, .key = key, .load = &marker};

	return run_one(target, &op, err);
}

static enum hapax_status remove_marker(
	struct hapax_store *target, struct hapax_bytes key, struct hapax_error *err)
{
	struct hapax_op op = {.type = HAPAX_OP_FORGET, .key = key};

	return run_one(target, &op, err);
}

/* The token that is the distance above a store's last one, unless there is none. */
static enum hapax_status token_above(
	const struct hapax_store *store, uint64_t token, uint64_t *ret_token,
	struct hapax_error *err)
{
	if (token > HX_TOKEN_MAX - TOKEN_DISTANCE)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0,
			"tokens of '%.200s' have reached %llu; the limit is 2^53",
			hapax_store_url(store), (unsigned long long)token);
	*ret_token = token + TOKEN_DISTANCE;
	return HAPAX_OK;
}

static enum hapax_status copy_all(
	struct hapax_store *source, struct hapax_store *target, struct copying *copying,
	struct hapax_copy *copy, struct hapax_error *err)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {.size = 0};
	enum hapax_status status = HAPAX_OK;

	scan.count_max = SCAN_RECORDS;
	while (status == HAPAX_OK && !cursor.done) {
		size_t count, bytes;

		status = hapax_store_scan(source, &scan, &cursor, store_copy_take, copying, err);
		if (status == HAPAX_OK && copying->status != HAPAX_OK)
			status = hx_error_set(
				err, copying->status, 0,
				"not enough memory for a record of the copy");
		count = hx_load_batch_count(copying->batch);
		bytes = hx_load_batch_bytes(copying->batch);
		if (status == HAPAX_OK)
			status = hx_load_batch_run(copying->batch, target, NULL, err);
		if (status != HAPAX_OK)
			break;
		copy->records += count;
		copy->bytes += bytes;
		if (copy->progress != NULL && copy->progress(copy, copy->context) != 0)
			status = hx_error_set(err, HAPAX_ERR_HANDLER, 0, "the copy was stopped");
	}
	return status;
}

/* Read everything needed from both stores before anything is written. */
static enum hapax_status prepare(
	struct hapax_store *source, struct hapax_store *target, struct hapax_copy *copy,
	struct hapax_stats *ret_target, int64_t *ret_shift_ms, struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status = hapax_store_stats(source, &stats, NULL, NULL, err);

	if (status == HAPAX_OK)
		status = hapax_store_stats(target, ret_target, NULL, NULL, err);
	if (status != HAPAX_OK)
		return status;
	if (ret_target->keys != 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"'%.200s' has %llu keys; copy into an empty store", hapax_store_url(target),
			(unsigned long long)ret_target->keys);
	*ret_shift_ms = ret_target->now_ms > stats.now_ms ? ret_target->now_ms - stats.now_ms : 0;
	copy->total = stats.keys;
	copy->records = copy->bytes = 0;
	return token_above(
		source, stats.token > ret_target->token ? stats.token : ret_target->token,
		&copy->token, err);
}

enum hapax_status hapax_store_copy(
	struct hapax_store *source, struct hapax_store *target, struct hapax_copy *copy,
	struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct copying copying = {.batch = NULL};
	enum hapax_status status;

	if (source == NULL || target == NULL || source == target || copy == NULL ||
	    copy->size != sizeof(*copy))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"two stores and a copy of a known size are required");
	status = prepare(source, target, copy, &stats, &copying.shift_ms, err);
	if (status != HAPAX_OK)
		return status;
	copying.batch = hx_load_batch_new();
	if (copying.batch == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to copy a store");
	status = put_marker(target, copy_marker, copy->token, stats.now_ms, err);
	if (status == HAPAX_OK)
		status = copy_all(source, target, &copying, copy, err);
	if (status == HAPAX_OK)
		status = remove_marker(target, copy_marker, err);
	hx_load_batch_free(copying.batch);
	return status;
}

enum hapax_status hx_store_refuse_part(struct hapax_store *store, struct hapax_error *err)
{
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .key = copy_marker};
	enum hapax_status status = hapax_store_run(store, &op, 1, err);

	/* A caller limited to one tenant cannot see the marker, and did not make the copy. */
	if (status == HAPAX_ERR_INVALID)
		return HAPAX_OK;
	if (status != HAPAX_OK || op.outcome != HAPAX_OUTCOME_FOUND)
		return status;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"'%.128s' has part of an unfinished copy; delete it and copy again",
		hapax_store_url(store));
}

enum hapax_status hx_store_raise_token(
	struct hapax_store *store, uint64_t token, uint64_t *ret_token, struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status = hapax_store_stats(store, &stats, NULL, NULL, err);
	uint64_t last = 0;

	if (status == HAPAX_OK)
		status = token_above(store, token > stats.token ? token : stats.token, &last, err);
	if (status == HAPAX_OK)
		status = put_marker(store, token_marker, last, stats.now_ms, err);
	if (status == HAPAX_OK)
		status = remove_marker(store, token_marker, err);
	if (status == HAPAX_OK)
		*ret_token = last;
	return status;
}

enum hapax_status hapax_store_restored(
	struct hapax_store *store, uint64_t *ret_token, struct hapax_error *err)
{
	enum hapax_status status;
	uint64_t token = 0;

	if (store == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a store is required");
	status = hx_store_raise_token(store, 0, &token, err);
	if (status == HAPAX_OK && ret_token != NULL)
		*ret_token = token;
	return status;
}
