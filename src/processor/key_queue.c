/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/key_queue.h"

#include <assert.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/siphash.h"
#include "processor/run.h"

enum {
	BUCKETS_FIRST = 64,
	/* Spare queues to keep; after a burst, the rest is freed. */
	SPARE_MAX = 4096,
};

void hx_key_queue_assert(const struct hx_key_queue *queue)
{
	const struct hapax_run *holder = queue->holder;

	/* The queue borrows the text of its first member. */
	assert(queue->members != NULL);
	assert(queue->members->queue == queue);
	assert(queue->members->member_back == NULL);
	/* (1) */
	assert((queue->first == NULL) == (queue->last == NULL));
	if (queue->first != NULL) {
		assert(queue->first->wait_back == NULL);
		assert(queue->last->wait_next == NULL);
		assert(queue->first->sequence <= queue->last->sequence);
		assert(queue->first->state == HX_RUN_WAITING);
		assert(queue->last->state == HX_RUN_WAITING);
	}
	/* (2) */
	if (holder != NULL) {
		assert(holder->state == HX_RUN_RUNNING || holder->state == HX_RUN_FINISHING);
		assert(!holder->is_fenced);
		assert(!holder->is_lapsed);
		assert(!holder->is_parked);
	}
	/* (3) */
	assert(queue->scout == NULL || queue->scout->state == HX_RUN_CLAIMING);
	/* The end of the holder, or the scout's answer, wakes the waiters. */
	assert(queue->timer.place == 0 || (holder == NULL && queue->scout == NULL));
	assert(queue->timer.context == NULL);
}

void hx_key_queues_assert(const struct hx_key_queues *queues)
{
	assert((queues->bucket_count & (queues->bucket_count - 1)) == 0);
	assert((queues->buckets == NULL) == (queues->bucket_count == 0));
	assert(queues->count == 0 || queues->buckets != NULL);
	assert(queues->spare_count <= SPARE_MAX);
	assert((queues->spare == NULL) == (queues->spare_count == 0));
}

uint64_t hx_key_queues_hash(const struct hx_key_queues *queues, const struct hx_run_key *key)
{
	uint64_t hash = hx_siphash13(queues->hash_key, key->key.data, key->key.size);

	/* Odd multiples, so that swapping tenant and group changes the hash. */
	hash += 3 * hx_siphash13(queues->hash_key, key->tenant.data, key->tenant.size);
	hash += 5 * hx_siphash13(queues->hash_key, key->group.data, key->group.size);
	return hash;
}

static bool is_same(const struct hx_run_key *a, const struct hx_run_key *b)
{
	return hx_bytes_equal(a->key, b->key) && hx_bytes_equal(a->tenant, b->tenant) &&
		hx_bytes_equal(a->group, b->group);
}

static struct hx_key_queue **bucket_of(const struct hx_key_queues *queues, uint64_t hash)
{
	assert(queues->bucket_count > 0);
	return &queues->buckets[hash & (queues->bucket_count - 1)];
}

/* Longer chains are slower, not wrong: only the first allocation must succeed. */
static bool grow(struct hx_key_queues *queues)
{
	size_t count = queues->bucket_count == 0 ? BUCKETS_FIRST : queues->bucket_count * 2;
	struct hx_key_queue **old = queues->buckets;
	size_t old_count = queues->bucket_count;
	struct hx_key_queue **buckets;

	if (queues->count < queues->bucket_count)
		return true;
	buckets = hx_alloc_zero(count, sizeof(struct hx_key_queue *));
	if (buckets == NULL)
		return old != NULL;
	queues->buckets = buckets;
	queues->bucket_count = count;
	for (size_t i = 0; i < old_count; i++) {
		while (old[i] != NULL) {
			struct hx_key_queue *queue = old[i];
			struct hx_key_queue **bucket = bucket_of(queues, queue->hash);

			old[i] = queue->next;
			queue->next = *bucket;
			*bucket = queue;
		}
	}
	hx_free(old);
	hx_key_queues_assert(queues);
	assert(queues->count < queues->bucket_count);
	return true;
}

static struct hx_key_queue *take_spare(struct hx_key_queues *queues, struct hx_timer_heap *timers)
{
	struct hx_key_queue *queue = queues->spare;

	if (queue != NULL) {
		assert(queues->spare_count > 0);
		assert(queue->members == NULL);
		queues->spare = queue->next;
		queues->spare_count--;
		return queue;
	}
	queue = hx_alloc_zero(1, sizeof(*queue));
	if (queue == NULL)
		return NULL;
	if (hx_timer_heap_reserve(timers) != HAPAX_OK) {
		hx_free(queue);
		return NULL;
	}
	return queue;
}

static void free_chain(struct hx_key_queue *queue)
{
	while (queue != NULL) {
		struct hx_key_queue *next = queue->next;

		hx_free(queue);
		queue = next;
	}
}

void hx_key_queues_done(struct hx_key_queues *queues)
{
	hx_key_queues_assert(queues);
	for (size_t i = 0; i < queues->bucket_count; i++)
		free_chain(queues->buckets[i]);
	free_chain(queues->spare);
	hx_free(queues->buckets);
	queues->buckets = NULL;
	queues->spare = NULL;
	queues->spare_count = 0;
	queues->bucket_count = 0;
	queues->count = 0;
}

static struct hx_key_queue *find(
	const struct hx_key_queues *queues, uint64_t hash, const struct hx_run_key *key)
{
	struct hx_key_queue *queue = queues->bucket_count == 0 ? NULL : *bucket_of(queues, hash);

	while (queue != NULL && (queue->hash != hash || !is_same(queue->members, key)))
		queue = queue->next;
	return queue;
}

struct hx_key_queue *hx_key_queues_find(
	const struct hx_key_queues *queues, const struct hx_run_key *key)
{
	return queues->count == 0 ? NULL : find(queues, hx_key_queues_hash(queues, key), key);
}

bool hx_key_queues_join(
	struct hx_key_queues *queues, struct hx_timer_heap *timers, struct hx_run_key *key)
{
	uint64_t hash = hx_key_queues_hash(queues, key);
	struct hx_key_queue *queue = find(queues, hash, key);

	assert(key->queue == NULL);
	if (queue == NULL) {
		struct hx_key_queue **bucket;

		if (!grow(queues))
			return false;
		queue = take_spare(queues, timers);
		if (queue == NULL)
			return false;
		*queue = (struct hx_key_queue){.hash = hash};
		bucket = bucket_of(queues, hash);
		queue->next = *bucket;
		*bucket = queue;
		queues->count++;
	}
	key->queue = queue;
	key->member_back = NULL;
	key->member_next = queue->members;
	if (queue->members != NULL)
		queue->members->member_back = key;
	queue->members = key;
	/* A caller with the same text finds the queue by its new member. */
	assert(queue->hash == hash);
	assert(queues->count > 0);
	return true;
}

static void drop(
	struct hx_key_queues *queues, struct hx_timer_heap *timers, struct hx_key_queue *queue)
{
	struct hx_key_queue **at = bucket_of(queues, queue->hash);

	assert(queue->first == NULL);
	assert(queue->last == NULL);
	assert(queue->holder == NULL);
	assert(queue->scout == NULL);
	assert(queues->count > 0);
	while (*at != queue)
		at = &(*at)->next;
	*at = queue->next;
	hx_timer_clear(timers, &queue->timer);
	queues->count--;
	if (queues->spare_count == SPARE_MAX) {
		hx_timer_heap_unreserve(timers);
		hx_free(queue);
		return;
	}
	queue->next = queues->spare;
	queues->spare = queue;
	queues->spare_count++;
}

void hx_key_queues_quit(
	struct hx_key_queues *queues, struct hx_timer_heap *timers, struct hx_run_key *key)
{
	struct hx_key_queue *queue = key->queue;

	if (queue == NULL)
		return;
	assert((key->member_back == NULL) == (queue->members == key));
	assert(key->member_next == NULL || key->member_next->member_back == key);
	/* (1): the run does not wait any more. */
	assert(queue->first != key->run);
	assert(queue->last != key->run);
	if (key->member_back != NULL)
		key->member_back->member_next = key->member_next;
	else
		queue->members = key->member_next;
	if (key->member_next != NULL)
		key->member_next->member_back = key->member_back;
	key->queue = NULL;
	if (queue->members == NULL)
		drop(queues, timers, queue);
}

void hx_key_queue_wait(struct hx_key_queue *queue, struct hapax_run *run)
{
	struct hapax_run *after = queue->last;

	assert(run->state == HX_RUN_WAITING);
	assert(run->wait_back == NULL);
	assert(run->wait_next == NULL);
	/* A new run is the youngest; a run that claimed in vain is among the oldest. */
	if (after != NULL && after->sequence > run->sequence) {
		after = NULL;
		for (struct hapax_run *at = queue->first; at->sequence < run->sequence;
		     at = at->wait_next)
			after = at;
	}
	run->wait_back = after;
	run->wait_next = after == NULL ? queue->first : after->wait_next;
	if (run->wait_next != NULL)
		run->wait_next->wait_back = run;
	else
		queue->last = run;
	if (after != NULL)
		after->wait_next = run;
	else
		queue->first = run;
	assert(run->wait_back == NULL || run->wait_back->sequence < run->sequence);
	assert(run->wait_next == NULL || run->wait_next->sequence > run->sequence);
}

void hx_key_queue_step_out(struct hx_key_queue *queue, struct hapax_run *run)
{
	assert((run->wait_back == NULL) == (queue->first == run));
	assert((run->wait_next == NULL) == (queue->last == run));
	if (run->wait_back != NULL)
		run->wait_back->wait_next = run->wait_next;
	else
		queue->first = run->wait_next;
	if (run->wait_next != NULL)
		run->wait_next->wait_back = run->wait_back;
	else
		queue->last = run->wait_back;
	run->wait_back = NULL;
	run->wait_next = NULL;
}
