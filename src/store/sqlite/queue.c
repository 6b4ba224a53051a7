/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - submits on their way to the I/O thread.
 */
#include "store/sqlite/queue.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum {
	BLOCK_REQUESTS = 64,

	/* Whoever has a million submits in flight has lost count of them. */
	REQUESTS_MAX = 1 << 20,
};

struct hx_sqlite_queue_block {
	struct hx_sqlite_queue_block *next;
	struct hx_sqlite_request requests[BLOCK_REQUESTS];
};

/* Locks: mutex held, or the queue is not shared yet. */
static enum hapax_status grow(struct hx_sqlite_queue *queue)
{
	struct hx_sqlite_queue_block *block;

	assert(queue->free == NULL);
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

enum hapax_status hx_sqlite_queue_init(struct hx_sqlite_queue *queue)
{
	enum hapax_status status;

	memset(queue, 0, sizeof(*queue));
	status = grow(queue);
	if (status != HAPAX_OK)
		return status;
	hx_mutex_init(&queue->mutex);
	hx_cond_init(&queue->wake);
	return HAPAX_OK;
}

void hx_sqlite_queue_done(struct hx_sqlite_queue *queue)
{
	struct hx_sqlite_queue_block *next;

	assert(queue->first == NULL);
	for (struct hx_sqlite_queue_block *block = queue->blocks; block != NULL; block = next) {
		next = block->next;
		hx_free(block);
	}
	hx_mutex_done(&queue->mutex);
	hx_cond_done(&queue->wake);
}

enum hapax_status hx_sqlite_queue_push(
	struct hx_sqlite_queue *queue, struct hapax_op *ops, size_t count,
	struct hapax_completion completion, int64_t deadline_ns)
{
	struct hx_sqlite_request *request;
	enum hapax_status status = HAPAX_OK;

	hx_mutex_lock(&queue->mutex);
	if (queue->free == NULL)
		status = grow(queue);
	if (status == HAPAX_OK) {
		request = queue->free;
		queue->free = request->next;
		*request = (struct hx_sqlite_request){NULL, ops, count, completion, deadline_ns};
		if (queue->last == NULL)
			queue->first = request;
		else
			queue->last->next = request;
		queue->last = request;
		if (queue->is_waiting)
			hx_cond_signal(&queue->wake);
	}
	hx_mutex_unlock(&queue->mutex);
	return status;
}

/* Locks: mutex held. */
static struct hx_sqlite_request *cut_front(struct hx_sqlite_queue *queue, size_t ops_max)
{
	struct hx_sqlite_request *front = queue->first;
	struct hx_sqlite_request *end = front;
	size_t ops = front->count;

	while (end->next != NULL && ops + end->next->count <= ops_max) {
		end = end->next;
		ops += end->count;
	}
	queue->first = end->next;
	if (queue->first == NULL)
		queue->last = NULL;
	end->next = NULL;
	return front;
}

struct hx_sqlite_request *hx_sqlite_queue_take(struct hx_sqlite_queue *queue, size_t ops_max)
{
	struct hx_sqlite_request *requests = NULL;

	hx_mutex_lock(&queue->mutex);
	queue->is_waiting = true;
	while (queue->first == NULL && !queue->is_stopped)
		hx_cond_wait(&queue->wake, &queue->mutex);
	queue->is_waiting = false;
	if (queue->first != NULL)
		requests = cut_front(queue, ops_max);
	hx_mutex_unlock(&queue->mutex);
	return requests;
}

void hx_sqlite_queue_give_back(struct hx_sqlite_queue *queue, struct hx_sqlite_request *requests)
{
	struct hx_sqlite_request *end = requests;

	assert(requests != NULL);
	while (end->next != NULL)
		end = end->next;
	hx_mutex_lock(&queue->mutex);
	end->next = queue->free;
	queue->free = requests;
	hx_mutex_unlock(&queue->mutex);
}

void hx_sqlite_queue_stop(struct hx_sqlite_queue *queue)
{
	hx_mutex_lock(&queue->mutex);
	queue->is_stopped = true;
	hx_cond_signal(&queue->wake);
	hx_mutex_unlock(&queue->mutex);
}
