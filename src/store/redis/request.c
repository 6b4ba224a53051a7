/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - requests on their way to the I/O thread.
 */
#include "store/redis/request.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum {
	BLOCK_REQUESTS = 64,

	/* Whoever has a million submits in flight has lost count of them. */
	REQUESTS_MAX = 1 << 20,
};

struct hx_redis_request_block {
	struct hx_redis_request_block *next;
	struct hx_redis_request requests[BLOCK_REQUESTS];
};

/* Locks: mutex held, or the queue is not shared yet. */
static enum hapax_status grow(struct hx_redis_request_queue *queue)
{
	struct hx_redis_request_block *block;

	if (queue->request_count >= REQUESTS_MAX)
		return HAPAX_ERR_LIMIT;
	block = hx_alloc(sizeof(*block));
	if (block == NULL)
		return HAPAX_ERR_NO_MEMORY;
	block->next = queue->blocks;
	queue->blocks = block;
	for (size_t i = 0; i < BLOCK_REQUESTS; i++) {
		block->requests[i].next = queue->free;
		queue->free = &block->requests[i];
	}
	queue->request_count += BLOCK_REQUESTS;
	return HAPAX_OK;
}

enum hapax_status hx_redis_request_queue_init(struct hx_redis_request_queue *queue)
{
	enum hapax_status status;

	memset(queue, 0, sizeof(*queue));
	status = grow(queue);
	if (status == HAPAX_OK)
		hx_mutex_init(&queue->mutex);
	return status;
}

void hx_redis_request_queue_done(struct hx_redis_request_queue *queue)
{
	assert(queue->first == NULL);
	while (queue->blocks != NULL) {
		struct hx_redis_request_block *block = queue->blocks;

		queue->blocks = block->next;
		hx_free(block);
	}
	hx_mutex_done(&queue->mutex);
}

struct hx_redis_request *hx_redis_request_borrow(struct hx_redis_request_queue *queue)
{
	struct hx_redis_request *request = NULL;

	hx_mutex_lock(&queue->mutex);
	if (queue->free != NULL || grow(queue) == HAPAX_OK) {
		request = queue->free;
		queue->free = request->next;
		memset(request, 0, sizeof(*request));
	}
	hx_mutex_unlock(&queue->mutex);
	return request;
}

enum hapax_status hx_redis_request_push(
	struct hx_redis_request_queue *queue, const struct hx_redis_request *request)
{
	enum hapax_status status = HAPAX_OK;

	hx_mutex_lock(&queue->mutex);
	if (queue->free == NULL)
		status = grow(queue);
	if (status == HAPAX_OK) {
		struct hx_redis_request *taken = queue->free;

		queue->free = taken->next;
		*taken = *request;
		taken->next = NULL;
		if (queue->first == NULL)
			queue->first = taken;
		else
			queue->last->next = taken;
		queue->last = taken;
	}
	hx_mutex_unlock(&queue->mutex);
	return status;
}

struct hx_redis_request *hx_redis_request_take(struct hx_redis_request_queue *queue)
{
	struct hx_redis_request *requests;

	hx_mutex_lock(&queue->mutex);
	requests = queue->first;
	queue->first = NULL;
	queue->last = NULL;
	hx_mutex_unlock(&queue->mutex);
	return requests;
}

void hx_redis_request_give_back(
	struct hx_redis_request_queue *queue, struct hx_redis_request *request)
{
	hx_mutex_lock(&queue->mutex);
	request->next = queue->free;
	queue->free = request;
	hx_mutex_unlock(&queue->mutex);
}
