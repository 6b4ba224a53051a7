/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_batch.c - batches of records to load into a store.
 */
#include "store/load_batch.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"

enum {
	RECORDS_MAX = 1024,

	/* A batch of large records is full early; the last record may exceed this. */
	BYTES_MAX = 4 * 1024 * 1024,
};

struct hx_load_batch {
	size_t count;
	size_t bytes;
	struct hapax_op ops[RECORDS_MAX];
	struct hapax_record records[RECORDS_MAX];
	struct hapax_buf bufs[RECORDS_MAX];
};

struct hx_load_batch *hx_load_batch_new(void)
{
	struct hx_load_batch *batch = hx_alloc_zero(1, sizeof(*batch));

	for (size_t i = 0; batch != NULL && i < RECORDS_MAX; i++)
		hx_buf_init(&batch->bufs[i], HX_RECORD_SIZE_MAX);
	return batch;
}

void hx_load_batch_free(struct hx_load_batch *batch)
{
	for (size_t i = 0; batch != NULL && i < RECORDS_MAX; i++)
		hx_buf_done(&batch->bufs[i]);
	hx_free(batch);
}

size_t hx_load_batch_count(const struct hx_load_batch *batch)
{
	return batch->count;
}

size_t hx_load_batch_bytes(const struct hx_load_batch *batch)
{
	return batch->bytes;
}

bool hx_load_batch_is_full(const struct hx_load_batch *batch)
{
	return batch->count == RECORDS_MAX || batch->bytes >= BYTES_MAX;
}

static int64_t shifted(int64_t ms, int64_t shift_ms)
{
	return ms == HAPAX_TIME_NEVER || ms == 0 ? ms : ms + shift_ms;
}

enum hapax_status hx_load_batch_add(
	struct hx_load_batch *batch, const struct hapax_record *record, int64_t shift_ms)
{
	struct hapax_record *copy = &batch->records[batch->count];
	enum hapax_status status;

	assert(!hx_load_batch_is_full(batch));
	status = hx_record_copy(record, copy, &batch->bufs[batch->count]);
	if (status != HAPAX_OK)
		return status;
	copy->expires_ms = shifted(copy->expires_ms, shift_ms);
	copy->lease_ends_ms = shifted(copy->lease_ends_ms, shift_ms);
	batch->ops[batch->count++] = (struct hapax_op){
		.type = HAPAX_OP_LOAD,
		.tenant = copy->tenant,
		.group = copy->group,
		.key = copy->key,
		.load = copy,
	};
	batch->bytes += copy->key.size + copy->result.headers.size + copy->result.body.size;
	return HAPAX_OK;
}

/* The first status that is neither OK nor an allowed INVALID. */
static enum hapax_status judge(
	const struct hapax_op *ops, size_t count, enum hapax_status status, uint64_t *ret_invalid)
{
	if (status == HAPAX_OK || ret_invalid == NULL)
		return status;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].status == HAPAX_ERR_INVALID)
			++*ret_invalid;
		else if (ops[i].status != HAPAX_OK)
			return ops[i].status;
	}
	return HAPAX_OK;
}

enum hapax_status hx_load_batch_run(
	struct hx_load_batch *batch, struct hapax_store *target, uint64_t *ret_invalid,
	struct hapax_error *err)
{
	struct hapax_error cause = {.status = HAPAX_OK};
	enum hapax_status status = HAPAX_OK;

	if (ret_invalid != NULL)
		*ret_invalid = 0;
	if (batch->count != 0)
		status = hapax_store_run(target, batch->ops, batch->count, &cause);
	status = judge(batch->ops, batch->count, status, ret_invalid);
	batch->count = batch->bytes = 0;
	if (status == HAPAX_OK)
		return HAPAX_OK;
	return hx_error_set(
		err, status, cause.os_errno, "could not copy into '%.200s': %.200s",
		hapax_store_url(target), cause.message);
}
