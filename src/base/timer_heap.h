/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer_heap.h - many timers in a heap, the next due one first.
 *
 * A timer is embedded in its owner and is set for one moment at a time. The heap gets room when a
 * timer is introduced, so that setting one cannot fail. Setting a timer again moves it; a timer
 * that is due and was taken out is unset. Equal moments come in the order in which they were set.
 * Moments have the unit of the caller, one for all timers of a heap: reactors count nanoseconds,
 * the processor milliseconds.
 *
 *	hx_timer_introduce(&reactor->timers, &peer->timer, on_timer, peer);
 *	hx_timer_set(&reactor->timers, &peer->timer, hx_reactor_now_ns(reactor) + wait_ns);
 *	hx_timer_heap_run(&reactor->timers, now_ns);	calls on_timer(&peer->timer) when due
 *	hx_timer_retire(&reactor->timers, &peer->timer);
 *
 * Threads: one at a time.
 */
#ifndef HX_TIMER_HEAP_H
#define HX_TIMER_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/time.h"

struct hx_timer;

typedef void hx_timer_fn(struct hx_timer *timer);

struct hx_timer {
	int64_t at;
	uint64_t order; /* of setting */
	size_t place;   /* in the heap, from 1; 0: not set */
	hx_timer_fn *fn;
	void *context;
};

struct hx_timer_heap {
	struct hx_timer **timers; /* from 1: children of n are 2n and 2n + 1 */
	size_t count;
	size_t capacity;
	size_t introduced;
	uint64_t order;
};

void hx_timer_heap_init(struct hx_timer_heap *heap);

/* Timers that are still set are dropped: their owners are gone. */
void hx_timer_heap_done(struct hx_timer_heap *heap);

/* Make room for one more timer than before. NO_MEMORY: nothing was done. */
enum hapax_status hx_timer_introduce(
	struct hx_timer_heap *heap, struct hx_timer *timer, hx_timer_fn *fn, void *context);

/* Remove the timer and its room. Does nothing for a timer of zeros. */
void hx_timer_retire(struct hx_timer_heap *heap, struct hx_timer *timer);

/*
 * The same, without a function, for timers that the caller takes with hx_timer_heap_take() and
 * identifies itself: room for one more, and for one less, which is not set.
 */
enum hapax_status hx_timer_heap_reserve(struct hx_timer_heap *heap);
void hx_timer_heap_unreserve(struct hx_timer_heap *heap);

void hx_timer_set(struct hx_timer_heap *heap, struct hx_timer *timer, int64_t at);

/* Does nothing for a timer that is not set. */
void hx_timer_clear(struct hx_timer_heap *heap, struct hx_timer *timer);

static inline bool hx_timer_is_set(const struct hx_timer *timer)
{
	return timer->place != 0;
}

/* When the first timer is due, or INT64_MAX. */
static inline int64_t hx_timer_heap_next(const struct hx_timer_heap *heap)
{
	return heap->count == 0 ? INT64_MAX : heap->timers[1]->at;
}

/* Unset the first timer that is due at now; NULL: none is. */
struct hx_timer *hx_timer_heap_take(struct hx_timer_heap *heap, int64_t now);

/* Run all timers due at now, in order of time. Timers set meanwhile wait for the next call. */
void hx_timer_heap_run(struct hx_timer_heap *heap, int64_t now);

#endif
