/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - who waits for the log, and who writes it.
 *
 *  (1) While is_led, somebody works off a list, or has been told to (a captain, the
 *      thread); a list that is not empty is never without one.
 *  (2) Every request ends once: with its completion, or when its list is finished.
 *  (3) Where there is a thread, completions run on it.
 */
#include "store/log/queue.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
	LIST_CAPACITY_FIRST = 64,
	/* Of the time that a list takes, how long the next request is waited for at first. */
	GATHER_DIVISOR = 8,
	/* Spinning longer than this is worse than another list, however slow the disk is. */
	GATHER_NS_MAX = 100000,
	LEAD_SMOOTHING = 4,
};

struct hx_log_captain {
	struct hx_event event;
	bool leads; /* else: the list is done */
};

void hx_log_queue_init(struct hx_log_queue *queue, hx_log_lead_fn *lead, void *context)
{
	memset(queue, 0, sizeof(*queue));
	queue->lead = lead;
	queue->context = context;
	queue->number = 2;
	hx_mutex_init(&queue->mutex);
	hx_cond_init(&queue->wake);
	hx_ratchet_init(&queue->finished[0], 0);
	hx_ratchet_init(&queue->finished[1], 1);
}

void hx_log_queue_done(struct hx_log_queue *queue)
{
	if (queue->lead == NULL)
		return;
	assert(!queue->has_thread && queue->filling.count == 0);
	hx_free(queue->filling.requests);
	hx_free(queue->working.requests);
	hx_cond_done(&queue->wake);
	hx_mutex_done(&queue->mutex);
	memset(queue, 0, sizeof(*queue));
}

static bool push(struct hx_log_list *list, const struct hx_log_request *request)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity != 0 ? list->capacity * 2 : LIST_CAPACITY_FIRST;
		struct hx_log_request *requests =
			hx_realloc(list->requests, capacity * sizeof(*requests));

		if (requests == NULL)
			return false;
		list->requests = requests;
		list->capacity = capacity;
	}
	list->requests[list->count++] = *request;
	return true;
}

/*
 * Let the list grow. With n requests in it, a moment more delays all of them by that moment
 * and saves the next one a list's time, so the next one is waited for as long as
 * lead_ns / n; the first one has to wake up, too. Nobody sleeps: the wait is shorter than that.
 */
static void gather(struct hx_log_queue *queue)
{
	uint32_t count = atomic_load_explicit(&queue->filled, memory_order_relaxed);
	int64_t begin_ns, last_ns, patience_ns;

	if (!queue->has_thread || count >= queue->outstanding)
		return;
	begin_ns = last_ns = hx_clock_mono_ns();
	patience_ns = queue->lead_ns / GATHER_DIVISOR;
	while (count < queue->outstanding) {
		int64_t now_ns = hx_clock_mono_ns();
		uint32_t now = atomic_load_explicit(&queue->filled, memory_order_relaxed);

		if (now != count) {
			count = now;
			last_ns = now_ns;
			patience_ns = queue->lead_ns / count;
		}
		if (now_ns - last_ns > patience_ns || now_ns - begin_ns > queue->lead_ns / 2 ||
		    now_ns - begin_ns > GATHER_NS_MAX)
			return;
		hx_thread_yield();
	}
}

/* After is_called was set, without the mutex: who wakes up wants it. */
static void call_thread(struct hx_log_queue *queue)
{
	hx_cond_signal(&queue->wake);
}

/*
 * Work off the list that has gathered. own: the captain's own event, which nobody need set.
 * False: there are completions in it, and they are the thread's; it was called.
 */
static bool lead_list(struct hx_log_queue *queue, bool is_thread, const struct hx_log_captain *own)
{
	struct hx_log_captain *captain;
	struct hx_log_list list;
	int64_t begin_ns;
	uint32_t number;

	gather(queue);
	hx_mutex_lock(&queue->mutex);
	if (queue->completions != 0 && queue->has_thread && !is_thread) {
		if (queue->captain == own)
			queue->captain = NULL;
		queue->is_called = true;
		hx_mutex_unlock(&queue->mutex);
		call_thread(queue);
		return false;
	}
	list = queue->filling;
	queue->filling = queue->working;
	queue->filling.count = 0;
	queue->working = list;
	number = queue->number++;
	captain = queue->captain;
	queue->captain = NULL;
	queue->completions = 0;
	atomic_store_explicit(&queue->filled, 0, memory_order_relaxed);
	hx_mutex_unlock(&queue->mutex);
	begin_ns = hx_clock_mono_ns();
	queue->lead(queue->context, list.requests, list.count);
	queue->lead_ns += (hx_clock_mono_ns() - begin_ns - queue->lead_ns) / LEAD_SMOOTHING;
	queue->outstanding =
		(uint32_t)list.count + atomic_load_explicit(&queue->filled, memory_order_relaxed);
	hx_ratchet_raise(&queue->finished[number & 1], number);
	if (captain != NULL && captain != own)
		hx_event_set(&captain->event);
	return true;
}

/* Give the lead away. True: the caller has to go on. */
static bool pass_on(struct hx_log_queue *queue, bool is_thread)
{
	struct hx_log_captain *captain = NULL;
	bool goes_on = false;
	bool calls = false;

	hx_mutex_lock(&queue->mutex);
	if (queue->filling.count == 0) {
		queue->is_led = false;
	} else if (queue->captain != NULL && queue->completions == 0) {
		captain = queue->captain;
		captain->leads = true;
	} else if (queue->has_thread && !is_thread) {
		queue->is_called = true;
		calls = true;
	} else {
		goes_on = true;
	}
	hx_mutex_unlock(&queue->mutex);
	if (captain != NULL)
		hx_event_set(&captain->event);
	if (calls)
		call_thread(queue);
	return goes_on;
}

/* False: the first list was left to the thread. */
static bool lead(struct hx_log_queue *queue, bool is_thread, const struct hx_log_captain *own)
{
	do {
		if (!lead_list(queue, is_thread, own))
			return false;
	} while (pass_on(queue, is_thread));
	return true;
}

static bool push_locked(struct hx_log_queue *queue, const struct hx_log_request *request)
{
	if (!push(&queue->filling, request))
		return false;
	atomic_store_explicit(&queue->filled, (uint32_t)queue->filling.count, memory_order_relaxed);
	return true;
}

bool hx_log_queue_submit(struct hx_log_queue *queue, const struct hx_log_request *request)
{
	bool leads = false;
	bool calls = false;
	bool is_taken;

	hx_mutex_lock(&queue->mutex);
	is_taken = push_locked(queue, request);
	if (is_taken) {
		queue->completions++;
		leads = !queue->is_led;
		queue->is_led = true;
		if (leads && queue->has_thread) {
			queue->is_called = true;
			calls = true;
			leads = false;
		}
	}
	hx_mutex_unlock(&queue->mutex);
	if (calls)
		call_thread(queue);
	if (leads)
		(void)lead(queue, false, NULL);
	return is_taken;
}

bool hx_log_queue_run(struct hx_log_queue *queue, const struct hx_log_request *request)
{
	struct hx_log_captain self = {.leads = false};
	bool is_captain = false;
	uint32_t number;

	hx_mutex_lock(&queue->mutex);
	if (!push_locked(queue, request)) {
		hx_mutex_unlock(&queue->mutex);
		return false;
	}
	number = queue->number;
	if (!queue->is_led) {
		queue->is_led = true;
		self.leads = true;
	} else if (queue->captain == NULL) {
		hx_event_init(&self.event);
		queue->captain = &self;
		is_captain = true;
	}
	hx_mutex_unlock(&queue->mutex);
	if (is_captain)
		hx_event_wait(&self.event);
	/* A captain who does not lead has seen the end of his list. */
	if (self.leads ? !lead(queue, false, &self) : !is_captain)
		hx_ratchet_wait(&queue->finished[number & 1], number);
	return true;
}

enum hapax_status hx_log_queue_task(struct hx_log_queue *queue, struct hx_log_task *task)
{
	struct hx_log_request request = {.task = task};

	task->status = HAPAX_OK;
	return hx_log_queue_run(queue, &request) ? task->status : HAPAX_ERR_NO_MEMORY;
}

static void run_thread(void *arg)
{
	struct hx_log_queue *queue = arg;

	for (;;) {
		bool is_called;

		hx_mutex_lock(&queue->mutex);
		while (!queue->is_called && !queue->stops)
			hx_cond_wait(&queue->wake, &queue->mutex);
		is_called = queue->is_called;
		queue->is_called = false;
		hx_mutex_unlock(&queue->mutex);
		if (!is_called)
			return;
		(void)lead(queue, true, NULL);
	}
}

enum hapax_status hx_log_queue_start(struct hx_log_queue *queue, struct hapax_error *err)
{
	enum hapax_status status =
		hx_thread_start(&queue->thread, run_thread, queue, "hapax-writer", err);

	queue->has_thread = status == HAPAX_OK;
	return status;
}

void hx_log_queue_stop(struct hx_log_queue *queue)
{
	if (!queue->has_thread)
		return;
	hx_mutex_lock(&queue->mutex);
	queue->stops = true;
	hx_cond_signal(&queue->wake);
	hx_mutex_unlock(&queue->mutex);
	hx_thread_join(&queue->thread);
	queue->has_thread = false;
}
