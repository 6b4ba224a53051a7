/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_pool.h - blocks of memory that connections borrow while they have something
 * to hold, and byte queues made of them.
 *
 * A connection that waits holds nothing; a busy one holds a block each way, which is
 * returned as soon as it is empty. So ten thousand idle connections cost what their
 * descriptors cost.
 *
 * The pool counts the bytes that are lent, and those that others hold for the same loop
 * and tell it of. It takes them from the budget that all loops share, HX_POOL_GRAIN bytes
 * ahead at a time, so that most requests touch no memory of other loops.
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
	/* Taken from the budget ahead of need, and given back when twice as much is not needed. */
	HX_POOL_GRAIN = 64 * 1024,
	/* A pipelined batch of small requests, or most of an HTTP message. */
	HX_BLOCK_SIZE = 16 * 1024,
	/* Kept for the next busy moment; more are given back to the system. */
	HX_BLOCKS_KEPT_MAX = 256,
};

/* What is free is listed here, not in the blocks: to be lent, a block need not be in the caches. */
struct hx_block_pool {
	unsigned char *free[HX_BLOCKS_KEPT_MAX];
	size_t free_count;
	size_t lent_count;
	size_t held_bytes;        /* in queues, and noted */
	size_t taken_bytes;       /* from the budget: at least held_bytes */
	struct hx_budget *budget; /* NULL: none. Set before anything is held */
};

/* The slow half of hold; not for callers. */
void hx_block_pool_settle(struct hx_block_pool *pool);

/* held_bytes becomes so many. */
static inline void hx_block_pool_hold(struct hx_block_pool *pool, size_t bytes)
{
	pool->held_bytes = bytes;
	if (pool->budget != NULL &&
	    (bytes > pool->taken_bytes || pool->taken_bytes - bytes > (size_t)2 * HX_POOL_GRAIN))
		hx_block_pool_settle(pool);
}

/* So many bytes are held somewhere else; *noted is what was told before, 0 at first. */
static inline void hx_block_pool_note(struct hx_block_pool *pool, size_t *noted, size_t bytes)
{
	hx_block_pool_hold(pool, pool->held_bytes - *noted + bytes);
	*noted = bytes;
}

void hx_block_pool_init(struct hx_block_pool *pool);

/* Every block has been returned. */
void hx_block_pool_done(struct hx_block_pool *pool);

/* Bytes in at the end, out at the front; contiguous, and at most size_max of them. */
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

/* Have room for size more bytes behind the end. LIMIT above size_max, or NO_MEMORY. */
enum hapax_status hx_byte_queue_reserve(struct hx_byte_queue *queue, size_t size);

/*
 * Where to write, and how much fits there: at least one byte after a reserve that
 * succeeded. Then say how many were written.
 */
unsigned char *hx_byte_queue_space(const struct hx_byte_queue *queue, size_t *ret_size);
void hx_byte_queue_grow(struct hx_byte_queue *queue, size_t size);

/* As a whole or not at all. */
enum hapax_status hx_byte_queue_append(struct hx_byte_queue *queue, const void *data, size_t size);

/* Take size bytes from the front; the memory goes back when nothing is left. */
void hx_byte_queue_consume(struct hx_byte_queue *queue, size_t size);

/* Take the last size bytes back. */
void hx_byte_queue_cut(struct hx_byte_queue *queue, size_t size);

#endif
