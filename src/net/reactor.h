/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reactor.h - one loop that waits for many descriptors, timers and other threads.
 *
 * One reactor per thread. Everything that it calls runs on that thread, one at a time, and must not
 * block. Other threads post tasks to it. A struct hx_task is embedded in its owner, so posting
 * never fails and allocates nothing.
 *
 * A turn waits, then runs ready watches, posted tasks, timers, and finally the tasks deferred
 * during the turn (hx_reactor_defer), so that writes of one turn go out together.
 *
 * Threads: the owner thread, except hx_reactor_post() and hx_reactor_stop(): any.
 */
#ifndef HX_NET_REACTOR_H
#define HX_NET_REACTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/thread.h"
#include "base/timer_heap.h"
#include "net/block_pool.h"
#include "net/system.h"

struct hx_reactor;
struct hx_task;
struct hx_watch;

/* ready: enum hx_ready. It may unwatch any watch, including its own. */
typedef void hx_watch_fn(struct hx_watch *watch, unsigned ready);

struct hx_watch {
	int fd;         /* -1: none */
	unsigned ready; /* the events it waits for */
	hx_watch_fn *fn;
	void *context;
};

/* It may post or defer its task again, or free it. */
typedef void hx_task_fn(struct hx_task *task);

struct hx_task {
	struct hx_task *next;
	hx_task_fn *fn;
	void *context;
	_Atomic uint32_t is_posted;
};

struct hx_tasks {
	struct hx_task *first;
	struct hx_task *last;
};

enum { HX_REACTOR_EVENTS_MAX = 256 };

struct hx_reactor {
	const struct hx_net *net;
	int poller;
	int64_t now_ns; /* of this turn */
	struct hx_timer_heap timers;
	struct hx_block_pool blocks;

	struct hx_watch waker;
	struct hx_lock post_lock;
	struct hx_tasks posted; /* Locks: post_lock. First in, first out */
	struct hx_tasks deferred;
	_Atomic uint32_t is_stopped;
	_Atomic uint32_t is_asleep; /* a post must wake it */

	/* The events of this turn that are not dispatched yet. */
	struct hx_ready_event events[HX_REACTOR_EVENTS_MAX];
	int event_next;
	int event_count;
};

/* net must outlive the reactor. On failure nothing is left behind. */
enum hapax_status hx_reactor_init(
	struct hx_reactor *reactor, const struct hx_net *net, struct hapax_error *err);

/* Nothing may be watched. Posted tasks that did not run are dropped. */
void hx_reactor_done(struct hx_reactor *reactor);

/* Run turns until stopped. */
void hx_reactor_run(struct hx_reactor *reactor);

/* Run one turn that waits at most wait_ns; 0: no wait, negative: no limit. */
void hx_reactor_turn(struct hx_reactor *reactor, int64_t wait_ns);

/* Make hx_reactor_run() return after its turn. Threads: any. */
void hx_reactor_stop(struct hx_reactor *reactor);

/* Run task in a later turn. An already posted task keeps its place. Threads: any. */
void hx_reactor_post(struct hx_reactor *reactor, struct hx_task *task);

/* Run task at the end of this turn. Like post, but for the owner thread, and cheaper. */
void hx_reactor_defer(struct hx_reactor *reactor, struct hx_task *task);

/* Cancel a deferred or posted task. Does nothing if it is neither. */
void hx_reactor_cancel(struct hx_reactor *reactor, struct hx_task *task);

/* watch->fd, fn and context are set. ready: the events to wait for, may be 0. */
enum hapax_status hx_reactor_watch(
	struct hx_reactor *reactor, struct hx_watch *watch, unsigned ready,
	struct hapax_error *err);

/* Change the events to wait for. Costs nothing if they are the same. */
void hx_reactor_rewatch(struct hx_reactor *reactor, struct hx_watch *watch, unsigned ready);

/* Its function is no longer called, not even in this turn. The descriptor stays open. */
void hx_reactor_unwatch(struct hx_reactor *reactor, struct hx_watch *watch);

/* The time used by timers. */
static inline int64_t hx_reactor_now_ns(const struct hx_reactor *reactor)
{
	return reactor->now_ns;
}

#endif
