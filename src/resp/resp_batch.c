/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/resp_batch.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/limits.h"

enum {
	OPS_FIRST = 64,
	SLOTS_FIRST = 16,

	/* The largest arrays kept for the next batch. */
	OPS_KEPT_MAX = 8192,

	CHUNK_SIZE = 64 * 1024,
	CHUNKS_KEPT_MAX = 16,

	/* The largest buffer kept for a record, not counted: deduplication values are short. */
	BUF_KEPT_MAX = HX_BUF_FREE_MAX,

	/* A result with its headers, the names and the message texts. */
	RECORD_SIZE_MAX = HX_RESULT_SIZE_LIMIT + 2 * HX_RESULT_HEADERS_SIZE_MAX,
};

struct hx_resp_chunk {
	struct hx_resp_chunk *next;
	size_t size; /* in use */
	size_t capacity;
	unsigned char data[];
};

static void hold(struct hx_resp_batch *batch, size_t bytes)
{
	batch->held_bytes += bytes;
	hx_budget_note(batch->budget, bytes);
}

static void let_go(struct hx_resp_batch *batch, size_t bytes)
{
	assert(batch->held_bytes >= bytes);
	batch->held_bytes -= bytes;
	hx_budget_give(batch->budget, bytes);
}

/* The size of arrays of count elements, with the largest buffers that slots keep. */
static size_t ops_bytes(size_t count)
{
	return count * (sizeof(struct hapax_op) + sizeof(struct hapax_result));
}

static size_t slots_bytes(size_t count)
{
	return count * (sizeof(struct hx_resp_slot) + BUF_KEPT_MAX);
}

void hx_resp_batch_init(struct hx_resp_batch *batch)
{
	memset(batch, 0, sizeof(*batch));
}

static void free_chunk(struct hx_resp_batch *batch, struct hx_resp_chunk *chunk)
{
	let_go(batch, sizeof(*chunk) + chunk->capacity);
	hx_free(chunk);
}

static void free_chunks(struct hx_resp_batch *batch, struct hx_resp_chunk *chunk)
{
	while (chunk != NULL) {
		struct hx_resp_chunk *next = chunk->next;

		free_chunk(batch, chunk);
		chunk = next;
	}
}

static void free_arrays(struct hx_resp_batch *batch)
{
	for (size_t i = 0; i < batch->slot_ready; i++)
		hx_buf_done(&batch->slots[i].buf);
	hx_free(batch->slots);
	hx_free(batch->ops);
	hx_free(batch->results);
	let_go(batch, ops_bytes(batch->capacity) + slots_bytes(batch->slot_capacity));
	batch->slots = NULL;
	batch->ops = NULL;
	batch->results = NULL;
	batch->capacity = batch->slot_capacity = batch->slot_ready = 0;
}

void hx_resp_batch_done(struct hx_resp_batch *batch)
{
	free_arrays(batch);
	free_chunks(batch, batch->chunks);
	free_chunks(batch, batch->spare);
	assert(batch->held_bytes == 0);
	hx_resp_batch_init(batch);
}

void hx_resp_batch_clear(struct hx_resp_batch *batch)
{
	/* Every loop has two batches. If total memory is small, no memory is kept for reuse. */
	size_t kept_max = hx_budget_share(batch->budget) / 8;
	size_t kept = 0;

	for (size_t i = 0; i < batch->slot_count; i++) {
		if (batch->slots[i].buf.capacity > BUF_KEPT_MAX)
			hx_buf_done(&batch->slots[i].buf);
	}
	batch->count = 0;
	batch->slot_count = 0;
	if (batch->capacity > OPS_KEPT_MAX || batch->slot_capacity > OPS_KEPT_MAX ||
	    batch->held_bytes > kept_max)
		free_arrays(batch);
	for (struct hx_resp_chunk *chunk = batch->spare; chunk != NULL; chunk = chunk->next)
		kept++;
	while (batch->chunks != NULL) {
		struct hx_resp_chunk *chunk = batch->chunks;

		batch->chunks = chunk->next;
		if (chunk->capacity > CHUNK_SIZE || kept >= CHUNKS_KEPT_MAX ||
		    batch->held_bytes > kept_max) {
			free_chunk(batch, chunk);
			continue;
		}
		chunk->size = 0;
		chunk->next = batch->spare;
		batch->spare = chunk;
		kept++;
	}
}

static bool grow_ops(struct hx_resp_batch *batch)
{
	size_t capacity = batch->capacity == 0 ? OPS_FIRST : 2 * batch->capacity;
	struct hapax_op *ops;
	struct hapax_result *results;

	if (capacity > HX_SUBMIT_OPS_MAX)
		capacity = HX_SUBMIT_OPS_MAX;
	if (capacity == batch->capacity)
		return false;
	ops = hx_realloc(batch->ops, capacity * sizeof(*ops));
	if (ops == NULL)
		return false;
	batch->ops = ops;
	results = hx_realloc(batch->results, capacity * sizeof(*results));
	if (results == NULL)
		return false;
	batch->results = results;
	hold(batch, ops_bytes(capacity) - ops_bytes(batch->capacity));
	batch->capacity = capacity;
	return true;
}

static bool grow_slots(struct hx_resp_batch *batch)
{
	size_t capacity = batch->slot_capacity == 0 ? SLOTS_FIRST : 2 * batch->slot_capacity;
	struct hx_resp_slot *slots = hx_realloc(batch->slots, capacity * sizeof(*slots));

	if (slots == NULL)
		return false;
	batch->slots = slots;
	hold(batch, slots_bytes(capacity) - slots_bytes(batch->slot_capacity));
	batch->slot_capacity = capacity;
	return true;
}

struct hapax_op *hx_resp_batch_add(
	struct hx_resp_batch *batch, enum hapax_op_type type, bool wants_record)
{
	struct hapax_op *op;

	if (batch->count == batch->capacity && !grow_ops(batch))
		return NULL;
	if (wants_record && batch->slot_count == batch->slot_capacity && !grow_slots(batch))
		return NULL;
	op = &batch->ops[batch->count++];
	memset(op, 0, sizeof(*op));
	op->type = type;
	if (wants_record) {
		struct hx_resp_slot *slot = &batch->slots[batch->slot_count++];

		if (batch->slot_ready < batch->slot_count) {
			hx_buf_init(&slot->buf, RECORD_SIZE_MAX);
			batch->slot_ready++;
		}
		assert(slot->buf.capacity <= BUF_KEPT_MAX);
		slot->buf.budget = batch->records;
		/* The store does not write it if there is no record. */
		memset(&slot->record, 0, sizeof(slot->record));
		/* The slot number; seal replaces it with a pointer. */
		op->private_state = (uint32_t)batch->slot_count;
	}
	return op;
}

void hx_resp_batch_drop_record(struct hapax_op *op)
{
	if (op->record == NULL || op->buf == NULL)
		return;
	memset(op->record, 0, sizeof(*op->record));
	if (op->buf->capacity > BUF_KEPT_MAX)
		hx_buf_done(op->buf);
	op->buf->budget = NULL;
}

void hx_resp_batch_cut(struct hx_resp_batch *batch, size_t count)
{
	assert(count <= batch->count);
	while (batch->count > count) {
		batch->count--;
		if (batch->ops[batch->count].private_state != 0)
			batch->slot_count--;
	}
}

bool hx_resp_batch_keep(
	struct hx_resp_batch *batch, struct hapax_bytes bytes, struct hapax_bytes *ret_copy)
{
	struct hx_resp_chunk *chunk = batch->chunks;

	if (bytes.size == 0) {
		*ret_copy = hx_bytes(NULL, 0);
		return true;
	}
	if (chunk == NULL || chunk->capacity - chunk->size < bytes.size) {
		size_t capacity = bytes.size > CHUNK_SIZE ? bytes.size : CHUNK_SIZE;

		if (capacity == CHUNK_SIZE && batch->spare != NULL) {
			chunk = batch->spare;
			batch->spare = chunk->next;
		} else {
			chunk = hx_alloc(sizeof(*chunk) + capacity);
			if (chunk == NULL)
				return false;
			chunk->size = 0;
			chunk->capacity = capacity;
			hold(batch, sizeof(*chunk) + capacity);
		}
		chunk->next = batch->chunks;
		batch->chunks = chunk;
	}
	memcpy(chunk->data + chunk->size, bytes.data, bytes.size);
	*ret_copy = hx_bytes(chunk->data + chunk->size, bytes.size);
	chunk->size += bytes.size;
	return true;
}

void hx_resp_batch_set_value(struct hx_resp_batch *batch, struct hapax_bytes kept)
{
	struct hapax_result *result = &batch->results[batch->count - 1];

	memset(result, 0, sizeof(*result));
	result->kind = HAPAX_RESULT_BYTES;
	result->body = kept;
}

void hx_resp_batch_set_class(
	struct hx_resp_batch *batch, bool has_value, enum hapax_result_class result_class)
{
	struct hapax_result *result = &batch->results[batch->count - 1];

	result->kind = has_value ? HAPAX_RESULT_BYTES : HAPAX_RESULT_NONE;
	result->result_class = result_class;
}

void hx_resp_batch_seal(struct hx_resp_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct hapax_op *op = &batch->ops[i];

		if (op->type == HAPAX_OP_SET || op->type == HAPAX_OP_COMPLETE)
			op->result = &batch->results[i];
		if (op->private_state != 0) {
			struct hx_resp_slot *slot = &batch->slots[op->private_state - 1];

			op->record = &slot->record;
			op->buf = &slot->buf;
			op->private_state = 0;
		}
	}
}
