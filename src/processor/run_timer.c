/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/run_timer.h"

#include <assert.h>

#include <hapax/record.h>

#include "base/alloc.h"

enum { CAPACITY_FIRST = 64 };

bool hx_timers_reserve(struct hx_timers *timers)
{
	size_t capacity = timers->capacity == 0 ? CAPACITY_FIRST : timers->capacity * 2;
	struct hx_timer **heap;

	if (timers->users < timers->capacity) {
		timers->users++;
		return true;
	}
	heap = hx_realloc(timers->heap, capacity * sizeof(struct hx_timer *));
	if (heap == NULL)
		return false;
	timers->heap = heap;
	timers->capacity = capacity;
	timers->users++;
	return true;
}

void hx_timers_unreserve(struct hx_timers *timers)
{
	assert(timers->users > timers->count);
	timers->users--;
}

void hx_timers_done(struct hx_timers *timers)
{
	hx_free(timers->heap);
	*timers = (struct hx_timers){0};
}

static bool is_before(const struct hx_timer *a, const struct hx_timer *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void put(struct hx_timers *timers, size_t place, struct hx_timer *timer)
{
	timers->heap[place - 1] = timer;
	timer->place = place;
}

/* Move what stands at place up, then down, to where it belongs. */
static void settle(struct hx_timers *timers, size_t place)
{
	struct hx_timer *timer = timers->heap[place - 1];

	while (place > 1 && is_before(timer, timers->heap[place / 2 - 1])) {
		put(timers, place, timers->heap[place / 2 - 1]);
		place /= 2;
	}
	for (;;) {
		size_t child = place * 2;

		if (child > timers->count)
			break;
		if (child < timers->count &&
		    is_before(timers->heap[child], timers->heap[child - 1]))
			child++;
		if (!is_before(timers->heap[child - 1], timer))
			break;
		put(timers, place, timers->heap[child - 1]);
		place = child;
	}
	put(timers, place, timer);
}

void hx_timers_set(struct hx_timers *timers, struct hx_timer *timer, int64_t at_ms)
{
	timer->at_ms = at_ms;
	timer->order = timers->order++;
	if (timer->place == 0) {
		assert(timers->count < timers->capacity);
		timers->count++;
		put(timers, timers->count, timer);
	}
	settle(timers, timer->place);
}

void hx_timers_clear(struct hx_timers *timers, struct hx_timer *timer)
{
	size_t place = timer->place;
	struct hx_timer *last;

	if (place == 0)
		return;
	assert(timers->heap[place - 1] == timer);
	last = timers->heap[timers->count - 1];
	timers->count--;
	timer->place = 0;
	if (last == timer)
		return;
	put(timers, place, last);
	settle(timers, place);
}

struct hx_timer *hx_timers_due(struct hx_timers *timers, int64_t now_ms)
{
	struct hx_timer *first;

	if (timers->count == 0 || timers->heap[0]->at_ms > now_ms)
		return NULL;
	first = timers->heap[0];
	hx_timers_clear(timers, first);
	return first;
}

int64_t hx_timers_next(const struct hx_timers *timers)
{
	return timers->count == 0 ? HAPAX_TIME_NEVER : timers->heap[0]->at_ms;
}
