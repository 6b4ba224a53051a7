/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_timer.h - what is due next, among many: a heap of moments.
 *
 * A timer is embedded in what it belongs to and is armed for one moment at a time.
 * Room in the heap is made when that object is made, so that arming cannot fail.
 * Equal moments come out in the order in which they were armed.
 *
 * Threads: one at a time.
 */
#ifndef HX_PROCESSOR_RUN_TIMER_H
#define HX_PROCESSOR_RUN_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hx_timer_owner {
	HX_TIMER_RUN,
	HX_TIMER_LINE,
};

struct hx_timer {
	enum hx_timer_owner owner;
	int64_t at_ms;
	uint64_t order;
	size_t place; /* in the heap, from 1; 0: not armed */
};

struct hx_timers {
	struct hx_timer **heap;
	size_t count;
	size_t capacity;
	size_t users; /* timers that there are, armed or not */
	uint64_t order;
};

/* One more timer will be used. False: no memory. */
bool hx_timers_reserve(struct hx_timers *timers);

/* One of them, which is not armed, will not be used any more. */
void hx_timers_unreserve(struct hx_timers *timers);

void hx_timers_done(struct hx_timers *timers);

/* Arm it, or arm it anew. */
void hx_timers_set(struct hx_timers *timers, struct hx_timer *timer, int64_t at_ms);

/* Nothing happens if it is not armed. */
void hx_timers_clear(struct hx_timers *timers, struct hx_timer *timer);

/* Take out the first that is due at now_ms, or NULL. */
struct hx_timer *hx_timers_due(struct hx_timers *timers, int64_t now_ms);

/* When the first is due, or HAPAX_TIME_NEVER. */
int64_t hx_timers_next(const struct hx_timers *timers);

#endif
