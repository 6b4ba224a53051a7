/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - all records of one store into another, by scan and load.
 *
 * A marker, a FAILED record with the token that the target's tokens shall begin
 * above, goes in first and is forgotten last. So the tokens of the target are above
 * the source's before it holds anything, and a copy that was cut short can be told
 * from a whole one.
 */
#include "store/copy.h"

#include <assert.h>
#include <string.h>

#include <hapax/copy.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"

enum {
	/* Records in one submit to the target, and so in one sync there. */
	BATCH_RECORDS = 1024,

	/* A batch ends early when its records are large; the last one may exceed it. */
	BATCH_BYTES = 4 * 1024 * 1024,

	RECORD_BYTES_MAX = 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + HX_OWNER_SIZE_MAX +
		HX_ERROR_TEXT_SIZE_MAX + HX_RESULT_HEADERS_SIZE_MAX + HX_RESULT_SIZE_LIMIT,
};

#define TOKEN_DISTANCE (UINT64_C(1) << 40)

/* Nobody's key: doors take text, and Redis clients do not begin keys with NUL. */
static const struct hapax_bytes marker_key = {"\0hapax copy", 11};

struct batch {
	size_t count;
	size_t bytes;
	int64_t shift_ms; /* how far the target's clock is ahead */
	enum hapax_status status;
	struct hapax_op ops[BATCH_RECORDS];
	struct hapax_record records[BATCH_RECORDS];
	struct hapax_buf bufs[BATCH_RECORDS];
};

static struct batch *batch_new(void)
{
	struct batch *batch = hx_alloc_zero(1, sizeof(*batch));

	for (size_t i = 0; batch != NULL && i < BATCH_RECORDS; i++)
		hx_buf_init(&batch->bufs[i], RECORD_BYTES_MAX);
	return batch;
}

static void batch_free(struct batch *batch)
{
	for (size_t i = 0; batch != NULL && i < BATCH_RECORDS; i++)
		hx_buf_done(&batch->bufs[i]);
	hx_free(batch);
}

static int64_t shifted(int64_t ms, int64_t shift_ms)
{
	return ms == HAPAX_TIME_NEVER || ms == 0 ? ms : ms + shift_ms;
}

static size_t bytes_of(const struct hapax_record *record)
{
	return record->key.size + record->result.headers.size + record->result.body.size;
}

static int take(const struct hapax_record *record, void *context)
{
	struct batch *batch = context;
	struct hapax_record *copy = &batch->records[batch->count];

	if (hx_bytes_equal(record->key, marker_key))
		return 0;
	batch->status = hx_record_copy(record, copy, &batch->bufs[batch->count]);
	if (batch->status != HAPAX_OK)
		return 1;
	copy->expires_ms = shifted(copy->expires_ms, batch->shift_ms);
	copy->lease_ends_ms = shifted(copy->lease_ends_ms, batch->shift_ms);
	batch->ops[batch->count++] = (struct hapax_op){
		.type = HAPAX_OP_LOAD,
		.tenant = copy->tenant,
		.group = copy->group,
		.key = copy->key,
		.load = copy,
	};
	batch->bytes += bytes_of(copy);
	return batch->count == BATCH_RECORDS || batch->bytes >= BATCH_BYTES;
}

/* Load, or say which store it was that refused. */
static enum hapax_status load(
	struct hapax_store *target, struct hapax_op *ops, size_t count, struct hapax_error *err)
{
	struct hapax_error cause = {.status = HAPAX_OK};
	enum hapax_status status = hapax_store_run(target, ops, count, &cause);

	if (status == HAPAX_OK)
		return HAPAX_OK;
	return hx_error_set(
		err, status, cause.os_errno, "'%.200s' did not take the copy: %.200s",
		hapax_store_url(target), cause.message);
}

static enum hapax_status put_marker(
	struct hapax_store *target, uint64_t token, int64_t now_ms, struct hapax_error *err)
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
		.error = HX_BYTES_LIT("a copy into this store was not finished: remove the store"),
	};
	struct hapax_op op = {.type = HAPAX_OP_LOAD, .key = marker_key, .load = &marker};

	return load(target, &op, 1, err);
}

static enum hapax_status remove_marker(struct hapax_store *target, struct hapax_error *err)
{
	struct hapax_op op = {.type = HAPAX_OP_FORGET, .key = marker_key};

	return load(target, &op, 1, err);
}

/* The token that lies the distance above the last one of a store, unless there is none. */
static enum hapax_status token_above(
	const struct hapax_store *store, uint64_t token, uint64_t *ret_token,
	struct hapax_error *err)
{
	if (token > HX_TOKEN_MAX - TOKEN_DISTANCE)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0,
			"tokens of '%.200s' have come to %llu, and may not pass 2^53",
			hapax_store_url(store), (unsigned long long)token);
	*ret_token = token + TOKEN_DISTANCE;
	return HAPAX_OK;
}

static enum hapax_status copy_all(
	struct hapax_store *source, struct hapax_store *target, struct batch *batch,
	struct hapax_copy *copy, struct hapax_error *err)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {.size = 0};
	enum hapax_status status = HAPAX_OK;

	scan.count_max = BATCH_RECORDS;
	while (status == HAPAX_OK && !cursor.done) {
		batch->count = batch->bytes = 0;
		status = hapax_store_scan(source, &scan, &cursor, take, batch, err);
		if (status == HAPAX_OK && batch->status != HAPAX_OK)
			status = hx_error_set(
				err, batch->status, 0, "no memory for a record of the copy");
		if (status == HAPAX_OK && batch->count > 0)
			status = load(target, batch->ops, batch->count, err);
		if (status != HAPAX_OK)
			break;
		copy->records += batch->count;
		copy->bytes += batch->bytes;
		if (copy->progress != NULL && copy->progress(copy, copy->context) != 0)
			status = hx_error_set(err, HAPAX_ERR_HANDLER, 0, "the copy was ended");
	}
	return status;
}

/* What must be known of both before anything is written. */
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
			"'%.200s' holds %llu keys, and a copy goes into an empty store",
			hapax_store_url(target), (unsigned long long)ret_target->keys);
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
	struct batch *batch = NULL;
	enum hapax_status status;
	int64_t shift_ms = 0;

	if (source == NULL || target == NULL || source == target || copy == NULL ||
	    copy->size != sizeof(*copy))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"two stores and a copy of a known size are needed");
	status = prepare(source, target, copy, &stats, &shift_ms, err);
	if (status != HAPAX_OK)
		return status;
	batch = batch_new();
	if (batch == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "no memory to copy a store");
	batch->shift_ms = shift_ms;
	status = put_marker(target, copy->token, stats.now_ms, err);
	if (status == HAPAX_OK)
		status = copy_all(source, target, batch, copy, err);
	if (status == HAPAX_OK)
		status = remove_marker(target, err);
	batch_free(batch);
	return status;
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
		status = put_marker(store, last, stats.now_ms, err);
	if (status == HAPAX_OK)
		status = remove_marker(store, err);
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
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a store is needed");
	status = hx_store_raise_token(store, 0, &token, err);
	if (status == HAPAX_OK && ret_token != NULL)
		*ret_token = token;
	return status;
}
