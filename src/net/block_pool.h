/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_pool.h - memory blocks that connections borrow while they hold data, and byte queues made
 * of them.
 *
 * An idle connection holds nothing. A busy one holds a block in each direction, and returns it as
 * soon as it is empty. So ten thousand idle connections cost only their descriptors.
 *
 * The pool counts the bytes on loan, and bytes that other holders in the same loop report to it. It
 * reserves them in the budget that all loops share, HX_POOL_GRAIN bytes ahead at a time, so that
 * most requests touch no memory of other loops.
 *
 * Threads: one at a time; a pool belongs to a reactor.
 */
#ifndef HX_NET_BLOCK_POOL_H
#define HX_NET_BLOCK_POOL_H

#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/budget.h"

enum {
	/* Reserved in the budget ahead of need, and returned when twice as much is not needed. */
	HX_POOL_GRAIN = 64 * 1024,
	/* A pipelined batch of small requests, or most of an HTTP message. */
	HX_BLOCK_SIZE = 16 * 1024,
	/* Kept for the next busy moment; more are returned to the system. */
	HX_BLOCKS_KEPT_MAX = 256,
};

/* The free list is here, not in the blocks: lending a block does not touch its memory. */
struct hx_block_pool {
	unsigned char *free[HX_BLOCKS_KEPT_MAX];
	size_t free_count;
	size_t lent_count;
	size_t held_bytes;        /* in queues, and reported */
	size_t taken_bytes;       /* from the budget: at least held_bytes */
	struct hx_budget *budget; /* NULL: none. Set before anything is held */
};

/* The slow half of hold; not for callers. */
void hx_block_pool_settle(struct hx_block_pool *pool);

/* Set held_bytes. */
static inline void hx_block_pool_hold(struct hx_block_pool *pool, size_t bytes)
{
	pool->held_bytes = bytes;
	if (pool->budget != NULL &&
	    (bytes > pool->taken_bytes || pool->taken_bytes - bytes > (size_t)2 * HX_POOL_GRAIN))
		hx_block_pool_settle(pool);
}

/* Report bytes held elsewhere; *noted is the last reported number, 0 at first. */
static inline void hx_block_pool_note(struct hx_block_pool *pool, size_t *noted, size_t bytes)
{
	hx_block_pool_hold(pool, pool->held_bytes - *noted + bytes);
	*noted = bytes;
}

void hx_block_pool_init(struct hx_block_pool *pool);

/* Every block has been returned. */
void hx_block_pool_done(struct hx_block_pool *pool);

/* Bytes are added at the end and taken from the front; contiguous, at most size_max. */
struct hx_byte_queue {
	struct hx_block_pool *pool;
	unsigned char *data; /* NULL while empty */
	size_t begin;
	size_t end;
	size_t capacity;
	size_t size_max;
	size_t keep_size; /* memory up to this is not returned when empty */
};

/* Allocates nothing. */
void hx_byte_queue_init(struct hx_byte_queue *queue, struct hx_block_pool *pool, size_t size_max);
void hx_byte_queue_done(struct hx_byte_queue *queue);

static inline struct hapax_bytes hx_byte_queue_bytes(const struct hx_byte_queue *queue)
{
	return (struct hapax_bytes){
		queue->data == NULL ? NULL : queue->data + queue->begin, queue->end - queue->begin};
}

static inline size_t hx_byte_queue_size(const struct hx_byte_queue *queue)
{
	return queue->end - queue->begin;
}

/* Make room for size more bytes at the end. LIMIT: above size_max. NO_MEMORY. */
enum hapax_status hx_byte_queue_reserve(struct hx_byte_queue *queue, size_t size);

/*
 * The place to write to, and its size: at least one byte after a successful reserve. Then report
 * the number of bytes written.
 */
unsigned char *hx_byte_queue_space(const struct hx_byte_queue *queue, size_t *ret_size);
void hx_byte_queue_grow(struct hx_byte_queue *queue, size_t size);

/* Remove size bytes from the front; the memory is returned when the queue is empty. */
void hx_byte_queue_consume(struct hx_byte_queue *queue, size_t size);

#endif
