/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_queue.c - the queue of requests for the I/O thread of a store.
 *
 * A block is its head, then slots; a slot is its head, then the request:
 *
 *	block │ slot │ request │ slot │ request │ ...
 */
#include "store/request_queue.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"

enum {
	BLOCK_REQUESTS = 64,

	/* A caller with a million submits in flight has lost count of them. */
	REQUESTS_MAX = 1 << 20,
};

struct hx_request_slot {
	alignas(max_align_t) struct hx_request_slot *next;
};

struct hx_request_block {
	alignas(max_align_t) struct hx_request_block *next;
};

static void *request_of(struct hx_request_slot *slot)
{
	return slot == NULL ? NULL : slot + 1;
}

static struct hx_request_slot *slot_of(void *request)
{
	return (struct hx_request_slot *)request - 1;
}

static size_t slot_size(const struct hx_request_queue *queue)
{
	size_t unit = alignof(max_align_t);

	return sizeof(struct hx_request_slot) + (queue->request_size + unit - 1) / unit * unit;
}

/* Locks: mutex held, or the queue is not shared yet. */
static enum hapax_status grow(struct hx_request_queue *queue)
{
	struct hx_request_block *block;
	unsigned char *at;

	assert(queue->free == NULL);
	if (queue->request_count >= REQUESTS_MAX)
		return HAPAX_ERR_LIMIT;
	block = hx_alloc(sizeof(*block) + BLOCK_REQUESTS * slot_size(queue));
	if (block == NULL)
		return HAPAX_ERR_NO_MEMORY;
	block->next = queue->blocks;
	queue->blocks = block;
	at = (unsigned char *)(block + 1);
	for (size_t i = 0; i < BLOCK_REQUESTS; i++, at += slot_size(queue)) {
		struct hx_request_slot *slot = (void *)at;

		slot->next = queue->free;
		queue->free = slot;
	}
	queue->request_count += BLOCK_REQUESTS;
	return HAPAX_OK;
}

/* Locks: mutex held. */
static enum hapax_status take_free(struct hx_request_queue *queue, struct hx_request_slot **ret)
{
	enum hapax_status status = queue->free == NULL ? grow(queue) : HAPAX_OK;

	if (status != HAPAX_OK)
		return status;
	*ret = queue->free;
	queue->free = (*ret)->next;
	(*ret)->next = NULL;
	return HAPAX_OK;
}

enum hapax_status hx_request_queue_init(struct hx_request_queue *queue, size_t request_size)
{
	enum hapax_status status;

	memset(queue, 0, sizeof(*queue));
	queue->request_size = request_size;
	status = grow(queue);
	if (status != HAPAX_OK)
		return status;
	hx_mutex_init(&queue->mutex);
	hx_cond_init(&queue->wake);
	return HAPAX_OK;
}

void hx_request_queue_done(struct hx_request_queue *queue)
{
	assert(queue->first == NULL);
	while (queue->blocks != NULL) {
		struct hx_request_block *block = queue->blocks;

		queue->blocks = block->next;
		hx_free(block);
	}
	hx_mutex_done(&queue->mutex);
	hx_cond_done(&queue->wake);
}

enum hapax_status hx_request_queue_push(struct hx_request_queue *queue, const void *request)
{
	struct hx_request_slot *slot;
	enum hapax_status status;

	hx_mutex_lock(&queue->mutex);
	status = take_free(queue, &slot);
	if (status == HAPAX_OK) {
		memcpy(request_of(slot), request, queue->request_size);
		HX_LIST_ADD(queue, slot, next);
		if (queue->is_waiting)
			hx_cond_signal(&queue->wake);
	}
	hx_mutex_unlock(&queue->mutex);
	return status;
}

/* Locks: mutex held. */
static void *take_all(struct hx_request_queue *queue)
{
	struct hx_request_slot *slot;

	HX_LIST_TAKE_ALL(queue, slot);
	return request_of(slot);
}

void *hx_request_queue_take(struct hx_request_queue *queue)
{
	void *request;

	hx_mutex_lock(&queue->mutex);
	request = take_all(queue);
	hx_mutex_unlock(&queue->mutex);
	return request;
}

void *hx_request_queue_next(const void *request)
{
	return request_of(((const struct hx_request_slot *)request - 1)->next);
}

void *hx_request_queue_wait(struct hx_request_queue *queue)
{
	void *request;

	hx_mutex_lock(&queue->mutex);
	queue->is_waiting = true;
	while (queue->first == NULL && !queue->is_stopped)
		hx_cond_wait(&queue->wake, &queue->mutex);
	queue->is_waiting = false;
	request = take_all(queue);
	hx_mutex_unlock(&queue->mutex);
	return request;
}

void hx_request_queue_stop(struct hx_request_queue *queue)
{
	hx_mutex_lock(&queue->mutex);
	queue->is_stopped = true;
	hx_cond_signal(&queue->wake);
	hx_mutex_unlock(&queue->mutex);
}

void *hx_request_queue_borrow(struct hx_request_queue *queue)
{
	struct hx_request_slot *slot = NULL;

	hx_mutex_lock(&queue->mutex);
	(void)take_free(queue, &slot);
	hx_mutex_unlock(&queue->mutex);
	return slot == NULL ? NULL : memset(request_of(slot), 0, queue->request_size);
}

void hx_request_queue_give_back(struct hx_request_queue *queue, void *request)
{
	struct hx_request_slot *slot = slot_of(request);

	hx_mutex_lock(&queue->mutex);
	slot->next = queue->free;
	queue->free = slot;
	hx_mutex_unlock(&queue->mutex);
}
