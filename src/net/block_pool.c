/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_pool.c - memory blocks on loan, and byte queues.
 *
 * A queue of up to HX_BLOCK_SIZE bytes uses a block of the pool, a larger one has its own memory.
 */
#include "net/block_pool.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

void hx_block_pool_init(struct hx_block_pool *pool)
{
	memset(pool, 0, sizeof(*pool));
}

void hx_block_pool_done(struct hx_block_pool *pool)
{
	assert(pool->lent_count == 0);
	while (pool->free_count > 0)
		hx_free(pool->free[--pool->free_count]);
	if (pool->budget != NULL)
		hx_budget_give(pool->budget, pool->taken_bytes);
	pool->taken_bytes = 0;
}

/* Memory already held cannot be refused: the budget is checked before starting new work. */
void hx_block_pool_settle(struct hx_block_pool *pool)
{
	size_t wanted = pool->held_bytes == 0 ? 0 : pool->held_bytes + HX_POOL_GRAIN;

	if (wanted > pool->taken_bytes)
		hx_budget_note(pool->budget, wanted - pool->taken_bytes);
	else
		hx_budget_give(pool->budget, pool->taken_bytes - wanted);
	pool->taken_bytes = wanted;
	assert(pool->taken_bytes >= pool->held_bytes);
}

static unsigned char *lend(struct hx_block_pool *pool)
{
	unsigned char *block =
		pool->free_count > 0 ? pool->free[--pool->free_count] : hx_alloc(HX_BLOCK_SIZE);

	pool->lent_count += block != NULL;
	return block;
}

static void take_back(struct hx_block_pool *pool, unsigned char *data)
{
	assert(pool->lent_count > 0);
	pool->lent_count--;
	if (pool->free_count == HX_BLOCKS_KEPT_MAX)
		hx_free(data);
	else
		pool->free[pool->free_count++] = data;
}

void hx_byte_queue_init(struct hx_byte_queue *queue, struct hx_block_pool *pool, size_t size_max)
{
	*queue = (struct hx_byte_queue){.pool = pool, .size_max = size_max};
}

static void drop_memory(struct hx_byte_queue *queue)
{
	if (queue->data == NULL)
		return;
	hx_block_pool_hold(queue->pool, queue->pool->held_bytes - queue->capacity);
	if (queue->capacity == HX_BLOCK_SIZE)
		take_back(queue->pool, queue->data);
	else
		hx_free(queue->data);
	queue->data = NULL;
	queue->capacity = 0;
}

void hx_byte_queue_done(struct hx_byte_queue *queue)
{
	drop_memory(queue);
	queue->begin = 0;
	queue->end = 0;
}

/* Memory for capacity bytes; a block's worth comes from the pool. */
static unsigned char *get_memory(struct hx_byte_queue *queue, size_t capacity)
{
	return capacity == HX_BLOCK_SIZE ? lend(queue->pool) : hx_alloc(capacity);
}

static enum hapax_status move_to(struct hx_byte_queue *queue, size_t capacity)
{
	unsigned char *data = get_memory(queue, capacity);
	size_t size = hx_byte_queue_size(queue);

	if (data == NULL)
		return HAPAX_ERR_NO_MEMORY;
	if (size > 0)
		memcpy(data, queue->data + queue->begin, size);
	drop_memory(queue);
	hx_block_pool_hold(queue->pool, queue->pool->held_bytes + capacity);
	queue->data = data;
	queue->capacity = capacity;
	queue->begin = 0;
	queue->end = size;
	return HAPAX_OK;
}

enum hapax_status hx_byte_queue_reserve(struct hx_byte_queue *queue, size_t size)
{
	size_t capacity = HX_BLOCK_SIZE;
	size_t held = hx_byte_queue_size(queue);
	size_t needed;

	if (hx_add_size(held, size, &needed) || needed > queue->size_max)
		return HAPAX_ERR_LIMIT;
	if (size <= queue->capacity - queue->end)
		return HAPAX_OK;
	/* Move the bytes to the front only if they fill at most half of the memory. */
	if (needed <= queue->capacity && held <= queue->capacity / 2) {
		memmove(queue->data, queue->data + queue->begin, held);
		queue->begin = 0;
		queue->end = held;
		return HAPAX_OK;
	}
	while (capacity < needed || capacity <= queue->capacity)
		capacity *= 2;
	return move_to(queue, capacity);
}

unsigned char *hx_byte_queue_space(const struct hx_byte_queue *queue, size_t *ret_size)
{
	size_t left = queue->size_max - hx_byte_queue_size(queue);

	*ret_size = queue->capacity - queue->end;
	if (*ret_size > left)
		*ret_size = left;
	return queue->data + queue->end;
}

void hx_byte_queue_grow(struct hx_byte_queue *queue, size_t size)
{
	assert(size <= queue->capacity - queue->end);
	queue->end += size;
}

static void rewind_if_empty(struct hx_byte_queue *queue)
{
	if (queue->begin != queue->end)
		return;
	queue->begin = 0;
	queue->end = 0;
	if (queue->capacity > queue->keep_size)
		drop_memory(queue);
}

void hx_byte_queue_consume(struct hx_byte_queue *queue, size_t size)
{
	assert(size <= hx_byte_queue_size(queue));
	queue->begin += size;
	rewind_if_empty(queue);
}
