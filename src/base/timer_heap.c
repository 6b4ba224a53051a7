/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer_heap.c - a binary heap of timers.
 *
 *  (1) timers[place] is the timer whose place it is; places are 1 .. count.
 *  (2) No timer is due before its parent.
 *  (3) capacity > introduced >= count, so that setting needs no memory.
 */
#include "base/timer_heap.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum { CAPACITY_FIRST = 64 };

void hx_timer_heap_init(struct hx_timer_heap *heap)
{
	memset(heap, 0, sizeof(*heap));
}

void hx_timer_heap_done(struct hx_timer_heap *heap)
{
	hx_free(heap->timers);
	hx_timer_heap_init(heap);
}

enum hapax_status hx_timer_heap_reserve(struct hx_timer_heap *heap)
{
	if (heap->introduced + 1 >= heap->capacity) {
		size_t capacity = heap->capacity == 0 ? CAPACITY_FIRST : 2 * heap->capacity;
		struct hx_timer **timers =
			hx_realloc(heap->timers, capacity * sizeof(struct hx_timer *));

		if (timers == NULL)
			return HAPAX_ERR_NO_MEMORY;
		heap->timers = timers;
		heap->capacity = capacity;
	}
	heap->introduced++;
	assert(heap->count < heap->introduced && heap->introduced < heap->capacity);
	return HAPAX_OK;
}

void hx_timer_heap_unreserve(struct hx_timer_heap *heap)
{
	assert(heap->introduced > heap->count);
	heap->introduced--;
}

enum hapax_status hx_timer_introduce(
	struct hx_timer_heap *heap, struct hx_timer *timer, hx_timer_fn *fn, void *context)
{
	enum hapax_status status = hx_timer_heap_reserve(heap);

	if (status == HAPAX_OK)
		*timer = (struct hx_timer){.fn = fn, .context = context};
	return status;
}

void hx_timer_retire(struct hx_timer_heap *heap, struct hx_timer *timer)
{
	if (timer->fn == NULL)
		return;
	hx_timer_clear(heap, timer);
	hx_timer_heap_unreserve(heap);
	timer->fn = NULL;
}

static bool is_before(const struct hx_timer *a, const struct hx_timer *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct hx_timer_heap *heap, size_t place, struct hx_timer *timer)
{
	heap->timers[place] = timer;
	timer->place = place;
}

/* Move timer from place up, then down, to where it belongs. */
static void settle(struct hx_timer_heap *heap, size_t place, struct hx_timer *timer)
{
	while (place > 1 && is_before(timer, heap->timers[place / 2])) {
		put(heap, place, heap->timers[place / 2]);
		place /= 2;
	}
	for (;;) {
		size_t child = 2 * place;

		if (child > heap->count)
			break;
		if (child < heap->count && is_before(heap->timers[child + 1], heap->timers[child]))
			child++;
		if (!is_before(heap->timers[child], timer))
			break;
		put(heap, place, heap->timers[child]);
		place = child;
	}
	put(heap, place, timer);
}

void hx_timer_set(struct hx_timer_heap *heap, struct hx_timer *timer, int64_t at)
{
	assert(timer->place == 0 || heap->timers[timer->place] == timer);
	timer->at = at;
	timer->order = heap->order++;
	if (timer->place == 0) {
		timer->place = ++heap->count;
		assert(heap->count <= heap->introduced);
	}
	settle(heap, timer->place, timer);
}

void hx_timer_clear(struct hx_timer_heap *heap, struct hx_timer *timer)
{
	size_t place = timer->place;
	struct hx_timer *last;

	if (place == 0)
		return;
	assert(place <= heap->count && heap->timers[place] == timer);
	last = heap->timers[heap->count--];
	timer->place = 0;
	if (last != timer)
		settle(heap, place, last);
}

struct hx_timer *hx_timer_heap_take(struct hx_timer_heap *heap, int64_t now)
{
	struct hx_timer *timer;

	if (heap->count == 0 || heap->timers[1]->at > now)
		return NULL;
	timer = heap->timers[1];
	hx_timer_clear(heap, timer);
	return timer;
}

void hx_timer_heap_run(struct hx_timer_heap *heap, int64_t now)
{
	/* A timer that sets itself to now again must not keep the loop here forever. */
	size_t limit = heap->count;
	struct hx_timer *timer;

	while (limit-- > 0 && (timer = hx_timer_heap_take(heap, now)) != NULL)
		timer->fn(timer);
}
