/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - the queue of requests for the log, and the choice of the leader.
 *
 *  (1) While is_led, a leader works off a list, or one has been called (a candidate, the
 *      thread); a list that is not empty always has a leader.
 *  (2) Every request ends once: with its completion, or when its list is finished.
 *  (3) If there is a thread, completions run on it.
 */
#include "store/log/write/queue.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
	LIST_CAPACITY_FIRST = 64,
	/* The part of a list's time for which the leader first waits for the next request. */
	GATHER_DIVISOR = 8,
	/* Spinning longer than this is worse than another list, however slow the disk is. */
	GATHER_NS_MAX = 100000,
	DRAIN_NS_MAX = 20000,
	LEAD_SMOOTHING = 4,
};

struct hx_log_candidate {
	struct hx_event event;
	struct hx_log_candidate *next; /* next candidate for the same turn */
	bool leads;                    /* else: the turn is done */
};

/* Locks: queue->lock. */
static void queue_assert(const struct hx_log_queue *queue)
{
	const struct hx_log_list *list = &queue->filling;

	assert(atomic_load_explicit(&queue->lock.state, memory_order_relaxed) != HX_LOCK_FREE);
	assert(atomic_load_explicit(&queue->filled, memory_order_relaxed) == list->count);
	assert(queue->completions <= list->count);
	/* (1): a list that is not empty has a leader, or one was called. */
	assert(queue->is_led || list->count == 0);
	/* A candidate waits for the list that is being filled, with its request. */
	assert(queue->candidate == NULL || list->count > queue->completions);
}

void hx_log_queue_init(struct hx_log_queue *queue, hx_log_lead_fn *lead, void *context)
{
	memset(queue, 0, sizeof(*queue));
	queue->lead = lead;
	queue->context = context;
	queue->number = 2;
	hx_lock_init(&queue->lock);
	hx_ratchet_init(&queue->calls, 0);
	hx_ratchet_init(&queue->finished[0], 0);
	hx_ratchet_init(&queue->finished[1], 1);
}

void hx_log_queue_done(struct hx_log_queue *queue)
{
	if (queue->lead == NULL)
		return;
	assert(!queue->has_thread);
	assert(!queue->is_led);
	assert(queue->candidate == NULL);
	assert(queue->filling.count == 0);
	assert(queue->completions == 0);
	hx_free(queue->filling.requests);
	hx_free(queue->working.requests);
	memset(queue, 0, sizeof(*queue));
}

static bool reserve(struct hx_log_list *list, size_t more)
{
	size_t capacity = list->capacity != 0 ? list->capacity : LIST_CAPACITY_FIRST;
	struct hx_log_request *requests;

	assert(list->count <= list->capacity);
	if (list->capacity - list->count >= more)
		return true;
	while (capacity - list->count < more)
		capacity *= 2;
	requests = hx_realloc(list->requests, capacity * sizeof(*requests));
	if (requests == NULL)
		return false;
	list->requests = requests;
	list->capacity = capacity;
	return true;
}

/* Locks: queue->lock. */
static inline bool push(struct hx_log_queue *queue, const struct hx_log_request *request)
{
	struct hx_log_list *list = &queue->filling;

	if (!reserve(list, 1))
		return false;
	list->requests[list->count++] = *request;
	atomic_store_explicit(&queue->filled, (uint32_t)list->count, memory_order_relaxed);
	return true;
}

/* Call the thread to lead. The caller gives up the lead, and does not hold the lock. */
static void call_thread(struct hx_log_queue *queue)
{
	assert(queue->has_thread);
	hx_ratchet_raise(&queue->calls, hx_ratchet_value(&queue->calls) + 1);
}

/* The list being filled joins the turn; a new one begins. Locks: queue->lock. */
static void begin_list(struct hx_log_queue *queue, struct hx_log_turn *turn)
{
	struct hx_log_candidate *candidate = queue->candidate;

	assert(queue->is_led);
	/* A turn holds its first list, or grows by the next one. */
	assert(turn->candidates == NULL || turn->last + 1 == queue->number);
	if (candidate != NULL) {
		candidate->next = turn->candidates;
		turn->candidates = candidate;
	}
	queue->candidate = NULL;
	turn->last = queue->number++;
	queue->completions = 0;
	queue->filling.count = 0;
	atomic_store_explicit(&queue->filled, 0, memory_order_relaxed);
}

/*
 * Take the gathered list. False: it holds completions, which belong to the thread. The thread
 * was called, and own is no longer the candidate.
 */
static bool take_list(
	struct hx_log_queue *queue, bool is_thread, const struct hx_log_candidate *own)
{
	struct hx_log_turn *turn = &queue->turn;
	struct hx_log_list list;

	hx_lock_acquire(&queue->lock);
	if (queue->candidate == own)
		queue->candidate = NULL;
	if (queue->completions != 0 && queue->has_thread && !is_thread) {
		hx_lock_release(&queue->lock);
		call_thread(queue);
		return false;
	}
	assert(queue->filling.count != 0);
	list = queue->filling;
	queue->filling = queue->working;
	queue->working = list;
	*turn = (struct hx_log_turn){.list = list, .first = queue->number, .is_thread = is_thread};
	begin_list(queue, turn);
	hx_lock_release(&queue->lock);
	turn->begin_ns = turn->grown_ns = turn->closed_ns = hx_clock_mono_ns();
	return true;
}

/* False: the list is not this leader's, or there is no memory; it becomes the next list. */
static bool absorb(struct hx_log_queue *queue)
{
	struct hx_log_turn *turn = &queue->turn;
	struct hx_log_list *filling = &queue->filling;
	bool is_taken;

	hx_lock_acquire(&queue->lock);
	queue_assert(queue);
	assert(queue->is_led);
	assert(turn->list.count <= turn->list.capacity);
	/* Lists are worked off in their order; numbers wrap around. */
	assert((int32_t)(turn->last - turn->first) >= 0);
	assert(turn->last + 1 == queue->number);
	is_taken = (queue->completions == 0 || turn->is_thread) &&
		reserve(&turn->list, filling->count);
	if (is_taken) {
		memcpy(turn->list.requests + turn->list.count, filling->requests,
		       filling->count * sizeof(*filling->requests));
		turn->list.count += filling->count;
		assert(turn->list.count <= turn->list.capacity);
		begin_list(queue, turn);
	}
	queue->working = turn->list;
	hx_lock_release(&queue->lock);
	return is_taken;
}

/*
 * While a list is written, other requests gather anyway, and the callers just answered return
 * one by one. Waiting for one more of N in all delays every request by its gap, and saves an
 * N-th of a list's time. So the leader waits that long. It waits longer below half of N, and for
 * the first caller, which has to wake up. Beyond N it takes only requests that arrive together.
 */
static int64_t patience_ns(const struct hx_log_queue *queue)
{
	const struct hx_log_turn *turn = &queue->turn;
	uint32_t outstanding = queue->outstanding;

	if (turn->list.count >= outstanding)
		return turn->has_grown ? queue->lead_ns / outstanding / 2 : 0;
	if (turn->has_grown && turn->list.count >= outstanding / 2)
		return queue->lead_ns / outstanding;
	return queue->lead_ns / GATHER_DIVISOR;
}

/*
 * The leader does not sleep here: that would take as long. It takes in several requests at a
 * time, so that deciding overlaps submitting and the lock is not taken for each of them.
 */
bool hx_log_queue_grow(struct hx_log_queue *queue, struct hx_log_request **requests, size_t *count)
{
	struct hx_log_turn *turn = &queue->turn;
	uint32_t enough = queue->outstanding / (turn->is_thread ? GATHER_DIVISOR : 2) + 1;
	int64_t patience = patience_ns(queue);
	uint32_t seen = 0;

	if (!queue->has_thread || patience == 0)
		return false;
	assert(patience > 0);
	assert(*count == turn->list.count);
	for (;;) {
		uint32_t now = atomic_load_explicit(&queue->filled, memory_order_relaxed);
		int64_t now_ns = hx_clock_mono_ns();

		turn->closed_ns = now_ns;
		if (now != seen)
			turn->grown_ns = now_ns;
		seen = now;
		if (seen >= enough || now_ns - turn->grown_ns > patience ||
		    now_ns - turn->begin_ns > queue->lead_ns / 2 ||
		    now_ns - turn->begin_ns > GATHER_NS_MAX)
			break;
		hx_thread_yield();
	}
	if (seen == 0 || !absorb(queue))
		return false;
	turn->has_grown = true;
	assert(turn->list.count > *count);
	*requests = turn->list.requests;
	*count = turn->list.count;
	return true;
}

static void work_off(struct hx_log_queue *queue)
{
	struct hx_log_turn *turn = &queue->turn;

	queue->lead(queue->context, turn->list.requests, turn->list.count);
	queue->lead_ns += (hx_clock_mono_ns() - turn->closed_ns - queue->lead_ns) / LEAD_SMOOTHING;
	/* Answered callers may already have submitted again, so the counts are not added up. */
	queue->outstanding = atomic_load_explicit(&queue->filled, memory_order_relaxed);
	if (queue->outstanding < turn->list.count)
		queue->outstanding = (uint32_t)turn->list.count;
}

/* Give the lead away. True: the caller must continue. */
static bool pass_on(struct hx_log_queue *queue, bool is_thread)
{
	struct hx_log_candidate *candidate = NULL;
	bool goes_on = false;
	bool calls = false;

	hx_lock_acquire(&queue->lock);
	assert(queue->is_led);
	if (queue->filling.count == 0) {
		queue->is_led = false;
		hx_lock_release(&queue->lock);
		return false;
	}
	queue_assert(queue);
	if (queue->candidate != NULL && queue->completions == 0) {
		candidate = queue->candidate;
		candidate->leads = true;
	} else if (queue->has_thread && !is_thread) {
		calls = true;
	} else {
		goes_on = true;
	}
	/* Exactly one leads on. */
	assert((candidate != NULL) + calls + goes_on == 1);
	hx_lock_release(&queue->lock);
	if (candidate != NULL)
		hx_event_set(&candidate->event);
	if (calls)
		call_thread(queue);
	return goes_on;
}

/*
 * After answering, the thread spins briefly for callers that submit again. Falling asleep and
 * being woken at once costs both sides more.
 */
static void drain(struct hx_log_queue *queue)
{
	int64_t patience = queue->lead_ns / GATHER_DIVISOR;
	int64_t end_ns = hx_clock_mono_ns() + (patience < DRAIN_NS_MAX ? patience : DRAIN_NS_MAX);

	while (atomic_load_explicit(&queue->filled, memory_order_relaxed) == 0 &&
	       hx_clock_mono_ns() < end_ns)
		hx_thread_yield();
}

static void wake_waiters(struct hx_log_queue *queue, const struct hx_log_turn *turn)
{
	struct hx_log_candidate *candidate = turn->candidates;

	hx_ratchet_raise(&queue->finished[turn->last & 1], turn->last);
	if (turn->last != turn->first)
		hx_ratchet_raise(&queue->finished[(turn->last - 1) & 1], turn->last - 1);
	while (candidate != NULL) {
		struct hx_log_candidate *next = candidate->next;

		hx_event_set(&candidate->event);
		candidate = next;
	}
}

/* False: the first list was left to the thread. */
static bool lead(struct hx_log_queue *queue, bool is_thread, const struct hx_log_candidate *own)
{
	bool goes_on = true;

	while (goes_on) {
		struct hx_log_turn turn;

		if (!take_list(queue, is_thread, own))
			return false;
		assert(queue->turn.is_thread == is_thread);
		work_off(queue);
		turn = queue->turn;
		if (is_thread) {
			wake_waiters(queue, &turn);
			drain(queue);
		}
		goes_on = pass_on(queue, is_thread);
		/* After the next list has started: waking many callers takes as long as a write. */
		if (!is_thread)
			wake_waiters(queue, &turn);
	}
	return true;
}

bool hx_log_queue_submit(struct hx_log_queue *queue, const struct hx_log_request *request)
{
	bool leads = false;
	bool calls = false;
	bool is_taken;

	hx_lock_acquire(&queue->lock);
	is_taken = push(queue, request);
	if (is_taken) {
		queue->completions++;
		leads = !queue->is_led;
		queue->is_led = true;
		if (leads && queue->has_thread) {
			calls = true;
			leads = false;
		}
	}
	assert(!(calls && leads));
	queue_assert(queue);
	hx_lock_release(&queue->lock);
	if (calls)
		call_thread(queue);
	if (leads)
		(void)lead(queue, false, NULL);
	return is_taken;
}

bool hx_log_queue_run(struct hx_log_queue *queue, const struct hx_log_request *request)
{
	struct hx_log_candidate self = {.leads = false};
	bool is_candidate = false;
	uint32_t number;

	assert(request->completion.fn == NULL);
	hx_lock_acquire(&queue->lock);
	if (!push(queue, request)) {
		hx_lock_release(&queue->lock);
		return false;
	}
	number = queue->number;
	if (!queue->is_led) {
		queue->is_led = true;
		self.leads = true;
	} else if (queue->candidate == NULL) {
		hx_event_init(&self.event);
		queue->candidate = &self;
		is_candidate = true;
	}
	hx_lock_release(&queue->lock);
	if (is_candidate)
		hx_event_wait(&self.event);
	/* A candidate that does not lead has seen the end of its list. */
	if (self.leads ? !lead(queue, false, &self) : !is_candidate)
		hx_ratchet_wait(&queue->finished[number & 1], number);
	return true;
}

enum hapax_status hx_log_queue_task(struct hx_log_queue *queue, hx_log_task_fn *run, void *context)
{
	struct hx_log_task task = {run, context, HAPAX_OK};
	struct hx_log_request request = {.task = &task};

	assert(run != NULL);
	return hx_log_queue_run(queue, &request) ? task.status : HAPAX_ERR_NO_MEMORY;
}

static void run_thread(void *arg)
{
	struct hx_log_queue *queue = arg;

	for (uint32_t call = 1;; call++) {
		hx_ratchet_wait(&queue->calls, call);
		if (atomic_load_explicit(&queue->stops, memory_order_relaxed) != 0)
			return;
		(void)lead(queue, true, NULL);
	}
}

enum hapax_status hx_log_queue_start(struct hx_log_queue *queue, struct hapax_error *err)
{
	enum hapax_status status =
		hx_thread_start(&queue->thread, run_thread, queue, "hapax-writer", err);

	assert(!queue->has_thread);
	queue->has_thread = status == HAPAX_OK;
	return status;
}

void hx_log_queue_stop(struct hx_log_queue *queue)
{
	if (!queue->has_thread)
		return;
	assert(atomic_load_explicit(&queue->stops, memory_order_relaxed) == 0);
	atomic_store_explicit(&queue->stops, 1, memory_order_relaxed);
	call_thread(queue);
	hx_thread_join(&queue->thread);
	queue->has_thread = false;
}
