/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reactor.c - the loop: wait, then run everything that is ready.
 *
 *  (1) A task is in at most one list: is_posted says so.
 *  (2) events[event_next .. event_count) are not dispatched yet; an event whose watch was removed
 *      has data NULL.
 */
#include "net/reactor.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/list.h"

static void waker_ready(struct hx_watch *watch, unsigned ready)
{
	struct hx_reactor *reactor = watch->context;

	(void)ready;
	reactor->net->ops->waker_clear(reactor->net->context, watch->fd);
}

enum hapax_status hx_reactor_init(
	struct hx_reactor *reactor, const struct hx_net *net, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	int waker;

	memset(reactor, 0, sizeof(*reactor));
	reactor->net = net;
	reactor->waker.fd = -1;
	hx_lock_init(&reactor->post_lock);
	hx_timer_heap_init(&reactor->timers);
	hx_block_pool_init(&reactor->blocks);
	reactor->now_ns = net->ops->now_ns(net->context);
	reactor->poller = net->ops->poller_open(net->context);
	if (reactor->poller < 0)
		return hx_error_set(
			err, hx_error_status_of(-reactor->poller), -reactor->poller,
			"could not create a poller");
	waker = net->ops->waker_open(net->context);
	if (waker < 0)
		status = hx_error_set(
			err, hx_error_status_of(-waker), -waker, "could not create a waker");
	reactor->waker = (struct hx_watch){.fd = waker, .fn = waker_ready, .context = reactor};
	if (status == HAPAX_OK)
		status = hx_reactor_watch(reactor, &reactor->waker, HX_READY_IN, err);
	if (status != HAPAX_OK) {
		if (waker >= 0)
			net->ops->close(net->context, waker);
		net->ops->close(net->context, reactor->poller);
	}
	return status;
}

void hx_reactor_done(struct hx_reactor *reactor)
{
	hx_reactor_unwatch(reactor, &reactor->waker);
	reactor->net->ops->close(reactor->net->context, reactor->waker.fd);
	reactor->net->ops->close(reactor->net->context, reactor->poller);
	assert(reactor->timers.introduced == 0 && "every timer was retired");
	hx_timer_heap_done(&reactor->timers);
	hx_block_pool_done(&reactor->blocks);
}

static bool remove_from(struct hx_tasks *list, struct hx_task *task)
{
	struct hx_task *before = NULL;

	for (struct hx_task *item = list->first; item != NULL; before = item, item = item->next) {
		if (item != task)
			continue;
		if (before == NULL)
			list->first = item->next;
		else
			before->next = item->next;
		if (list->last == item)
			list->last = before;
		return true;
	}
	return false;
}

void hx_reactor_post(struct hx_reactor *reactor, struct hx_task *task)
{
	if (atomic_exchange(&task->is_posted, 1) != 0)
		return;
	hx_lock_acquire(&reactor->post_lock);
	HX_LIST_ADD(&reactor->posted, task, next);
	hx_lock_release(&reactor->post_lock);
	if (atomic_exchange(&reactor->is_asleep, 0) != 0)
		reactor->net->ops->waker_set(reactor->net->context, reactor->waker.fd);
}

void hx_reactor_defer(struct hx_reactor *reactor, struct hx_task *task)
{
	if (atomic_exchange_explicit(&task->is_posted, 1, memory_order_relaxed) != 0)
		return;
	HX_LIST_ADD(&reactor->deferred, task, next);
}

void hx_reactor_cancel(struct hx_reactor *reactor, struct hx_task *task)
{
	bool found;

	if (atomic_load(&task->is_posted) == 0)
		return;
	found = remove_from(&reactor->deferred, task);
	if (!found) {
		hx_lock_acquire(&reactor->post_lock);
		found = remove_from(&reactor->posted, task);
		hx_lock_release(&reactor->post_lock);
	}
	if (found)
		atomic_store(&task->is_posted, 0);
}

static struct hx_task *pop_posted(struct hx_reactor *reactor)
{
	struct hx_task *task;

	hx_lock_acquire(&reactor->post_lock);
	task = reactor->posted.first;
	if (task != NULL)
		reactor->posted.first = task->next;
	hx_lock_release(&reactor->post_lock);
	return task;
}

/* One by one from the head, so that a task may cancel another. Tasks posted meanwhile wait. */
static void run_posted(struct hx_reactor *reactor)
{
	struct hx_task *last;
	struct hx_task *task;

	hx_lock_acquire(&reactor->post_lock);
	last = reactor->posted.first == NULL ? NULL : reactor->posted.last;
	hx_lock_release(&reactor->post_lock);
	if (last == NULL)
		return;
	while ((task = pop_posted(reactor)) != NULL) {
		bool is_last = task == last;

		atomic_store(&task->is_posted, 0);
		task->fn(task);
		if (is_last)
			return;
	}
}

/* A deferred task may defer more (a close after a flush); this always ends. */
static void run_deferred(struct hx_reactor *reactor)
{
	struct hx_task *task;

	while ((task = reactor->deferred.first) != NULL) {
		reactor->deferred.first = task->next;
		atomic_store_explicit(&task->is_posted, 0, memory_order_relaxed);
		task->fn(task);
	}
}

static bool has_posted(struct hx_reactor *reactor)
{
	bool any;

	hx_lock_acquire(&reactor->post_lock);
	any = reactor->posted.first != NULL;
	hx_lock_release(&reactor->post_lock);
	return any;
}

/* Until the first timer, but at most wait_ns. */
static int64_t time_to_wait(const struct hx_reactor *reactor, int64_t wait_ns)
{
	int64_t next_ns = hx_timer_heap_next(&reactor->timers);
	int64_t now_ns;

	if (next_ns == INT64_MAX)
		return wait_ns;
	now_ns = reactor->net->ops->now_ns(reactor->net->context);
	if (next_ns <= now_ns)
		return 0;
	return wait_ns < 0 || next_ns - now_ns < wait_ns ? next_ns - now_ns : wait_ns;
}

static void wait_for_events(struct hx_reactor *reactor, int64_t wait_ns)
{
	const struct hx_net *net = reactor->net;
	int count;

	/*
	 * Set is_asleep first, then check: a thread that posts after the check sees that it must
	 * wake.
	 */
	atomic_store(&reactor->is_asleep, 1);
	if (has_posted(reactor) || reactor->deferred.first != NULL ||
	    atomic_load(&reactor->is_stopped) != 0)
		wait_ns = 0;
	count = net->ops->poller_wait(
		net->context, reactor->poller, reactor->events, HX_REACTOR_EVENTS_MAX,
		time_to_wait(reactor, wait_ns));
	atomic_store(&reactor->is_asleep, 0);
	/* The only possible errors are a wrong descriptor or address. */
	assert(count >= 0);
	reactor->event_next = 0;
	reactor->event_count = count;
	reactor->now_ns = net->ops->now_ns(net->context);
}

static void run_events(struct hx_reactor *reactor)
{
	while (reactor->event_next < reactor->event_count) {
		struct hx_ready_event event = reactor->events[reactor->event_next++];
		struct hx_watch *watch = event.data;

		/* Prefetch the next one while the kernel works on this one. */
		if (reactor->event_next < reactor->event_count)
			__builtin_prefetch(reactor->events[reactor->event_next].data);
		if (watch != NULL)
			watch->fn(watch, event.ready);
	}
}

void hx_reactor_turn(struct hx_reactor *reactor, int64_t wait_ns)
{
	wait_for_events(reactor, wait_ns);
	run_events(reactor);
	run_posted(reactor);
	hx_timer_heap_run(&reactor->timers, reactor->now_ns);
	run_deferred(reactor);
}

void hx_reactor_run(struct hx_reactor *reactor)
{
	while (atomic_load(&reactor->is_stopped) == 0)
		hx_reactor_turn(reactor, -1);
}

void hx_reactor_stop(struct hx_reactor *reactor)
{
	atomic_store(&reactor->is_stopped, 1);
	if (atomic_exchange(&reactor->is_asleep, 0) != 0)
		reactor->net->ops->waker_set(reactor->net->context, reactor->waker.fd);
}

enum hapax_status hx_reactor_watch(
	struct hx_reactor *reactor, struct hx_watch *watch, unsigned ready, struct hapax_error *err)
{
	int code;

	assert(watch->fd >= 0 && watch->fn != NULL);
	code = reactor->net->ops->poller_add(
		reactor->net->context, reactor->poller, watch->fd, ready, watch);
	if (code < 0)
		return hx_error_set(
			err, hx_error_status_of(-code), -code,
			"could not watch a file descriptor%s",
			code == -ENOSPC ? " (limit: sysctl fs.epoll.max_user_watches)" : "");
	watch->ready = ready;
	return HAPAX_OK;
}

void hx_reactor_rewatch(struct hx_reactor *reactor, struct hx_watch *watch, unsigned ready)
{
	int code;

	if (watch->ready == ready)
		return;
	code = reactor->net->ops->poller_change(
		reactor->net->context, reactor->poller, watch->fd, ready, watch);
	assert(code == 0);
	(void)code;
	watch->ready = ready;
}

void hx_reactor_unwatch(struct hx_reactor *reactor, struct hx_watch *watch)
{
	(void)reactor->net->ops->poller_remove(reactor->net->context, reactor->poller, watch->fd);
	for (int i = reactor->event_next; i < reactor->event_count; i++) {
		if (reactor->events[i].data == watch)
			reactor->events[i].data = NULL;
	}
}
