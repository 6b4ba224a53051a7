/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.h - things to do at a time, in a heap.
 *
 * A timer lives inside of what it is for; setting one that the heap has room for
 * cannot fail, and the heap gets room when timers are introduced, not when they are
 * set. Setting a timer again moves it; a timer that ran is unset.
 *
 * Threads: one at a time.
 */
#ifndef HX_NET_TIMER_H
#define HX_NET_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

struct hx_timer;

typedef void hx_timer_fn(struct hx_timer *timer);

struct hx_timer {
	int64_t at_ns;
	hx_timer_fn *fn;
	void *context;
	size_t place; /* in the heap, from 1; 0: not set */
};

struct hx_timer_heap {
	struct hx_timer **timers; /* from 1: children of n are 2n and 2n + 1 */
	size_t count;
	size_t capacity;
	size_t introduced;
};

void hx_timer_heap_init(struct hx_timer_heap *heap);
void hx_timer_heap_done(struct hx_timer_heap *heap);

/* Make room for one more timer than before. NO_MEMORY: nothing was done. */
enum hapax_status hx_timer_introduce(
	struct hx_timer_heap *heap, struct hx_timer *timer, hx_timer_fn *fn, void *context);

/* Take the timer and its room back. Does nothing for a timer of zeros. */
void hx_timer_retire(struct hx_timer_heap *heap, struct hx_timer *timer);

void hx_timer_set(struct hx_timer_heap *heap, struct hx_timer *timer, int64_t at_ns);
void hx_timer_clear(struct hx_timer_heap *heap, struct hx_timer *timer);

static inline bool hx_timer_is_set(const struct hx_timer *timer)
{
	return timer->place != 0;
}

/* When the first timer is due, or INT64_MAX. */
int64_t hx_timer_heap_next_ns(const struct hx_timer_heap *heap);

/* Run what is due at now_ns, in order of time. Timers set meanwhile wait for the next call. */
void hx_timer_heap_run(struct hx_timer_heap *heap, int64_t now_ns);

#endif
