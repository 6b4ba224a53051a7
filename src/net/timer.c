/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.c - a binary heap of timers.
 *
 *  (1) timers[place] is the timer whose place it is; places are 1 .. count.
 *  (2) No timer is due before its parent.
 *  (3) capacity > introduced >= count, so that setting needs no memory.
 */
#include "net/timer.h"

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
	assert(heap->count == 0 && heap->introduced == 0);
	hx_free(heap->timers);
	hx_timer_heap_init(heap);
}

enum hapax_status hx_timer_introduce(
	struct hx_timer_heap *heap, struct hx_timer *timer, hx_timer_fn *fn, void *context)
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
	*timer = (struct hx_timer){.fn = fn, .context = context};
	return HAPAX_OK;
}

static void put(struct hx_timer_heap *heap, size_t place, struct hx_timer *timer)
{
	heap->timers[place] = timer;
	timer->place = place;
}

static void rise(struct hx_timer_heap *heap, size_t place, struct hx_timer *timer)
{
	while (place > 1 && heap->timers[place / 2]->at_ns > timer->at_ns) {
		put(heap, place, heap->timers[place / 2]);
		place /= 2;
	}
	put(heap, place, timer);
}

static void sink(struct hx_timer_heap *heap, size_t place, struct hx_timer *timer)
{
	for (;;) {
		size_t child = 2 * place;

		if (child > heap->count)
			break;
		if (child < heap->count &&
		    heap->timers[child + 1]->at_ns < heap->timers[child]->at_ns)
			child++;
		if (heap->timers[child]->at_ns >= timer->at_ns)
			break;
		put(heap, place, heap->timers[child]);
		place = child;
	}
	put(heap, place, timer);
}

void hx_timer_clear(struct hx_timer_heap *heap, struct hx_timer *timer)
{
	size_t place = timer->place;
	struct hx_timer *last;

	if (place == 0)
		return;
	assert(heap->timers[place] == timer);
	last = heap->timers[heap->count--];
	timer->place = 0;
	if (last == timer)
		return;
	if (place > 1 && heap->timers[place / 2]->at_ns > last->at_ns)
		rise(heap, place, last);
	else
		sink(heap, place, last);
}

void hx_timer_set(struct hx_timer_heap *heap, struct hx_timer *timer, int64_t at_ns)
{
	assert(timer->fn != NULL);
	hx_timer_clear(heap, timer);
	timer->at_ns = at_ns;
	heap->count++;
	rise(heap, heap->count, timer);
}

void hx_timer_retire(struct hx_timer_heap *heap, struct hx_timer *timer)
{
	if (timer->fn == NULL)
		return;
	hx_timer_clear(heap, timer);
	assert(heap->introduced > 0);
	heap->introduced--;
	timer->fn = NULL;
}

int64_t hx_timer_heap_next_ns(const struct hx_timer_heap *heap)
{
	return heap->count == 0 ? INT64_MAX : heap->timers[1]->at_ns;
}

void hx_timer_heap_run(struct hx_timer_heap *heap, int64_t now_ns)
{
	/* One that sets itself to now again must not keep the loop here for ever. */
	size_t limit = heap->count;

	while (limit-- > 0 && heap->count > 0 && heap->timers[1]->at_ns <= now_ns) {
		struct hx_timer *timer = heap->timers[1];

		hx_timer_clear(heap, timer);
		timer->fn(timer);
	}
}
