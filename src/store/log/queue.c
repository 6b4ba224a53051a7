/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - who waits for the log, and who writes it.
 *
 *  (1) While is_led, somebody works off a list, or has been told to (a captain, the
 *      thread); a list that is not empty is never without one.
 *  (2) Every request ends once: with its completion, or when its list is finished.
 */
#include "store/log/queue.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum { LIST_CAPACITY_FIRST = 64 };

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

/* Work off the list that has gathered. own: the captain's own event, which nobody need set. */
static void lead_list(struct hx_log_queue *queue, const struct hx_log_captain *own)
{
	struct hx_log_captain *captain;
	struct hx_log_list list;
	uint32_t number;

	hx_mutex_lock(&queue->mutex);
	list = queue->filling;
	queue->filling = queue->working;
	queue->filling.count = 0;
	queue->working = list;
	number = queue->number++;
	captain = queue->captain;
	queue->captain = NULL;
	queue->completions = 0;
	hx_mutex_unlock(&queue->mutex);
	queue->lead(queue->context, list.requests, list.count);
	hx_ratchet_raise(&queue->finished[number & 1], number);
	if (captain != NULL && captain != own)
		hx_event_set(&captain->event);
}

/* Give the lead away. True: the caller has to go on. */
static bool pass_on(struct hx_log_queue *queue, bool is_thread)
{
	struct hx_log_captain *captain = NULL;
	bool goes_on = false;

	hx_mutex_lock(&queue->mutex);
	if (queue->filling.count == 0) {
		queue->is_led = false;
	} else if (queue->captain != NULL && queue->completions == 0) {
		captain = queue->captain;
		captain->leads = true;
	} else if (queue->has_thread && !is_thread) {
		queue->is_called = true;
		hx_cond_signal(&queue->wake);
	} else {
		goes_on = true;
	}
	hx_mutex_unlock(&queue->mutex);
	if (captain != NULL)
		hx_event_set(&captain->event);
	return goes_on;
}

static void lead(struct hx_log_queue *queue, bool is_thread, const struct hx_log_captain *own)
{
	do
		lead_list(queue, own);
	while (pass_on(queue, is_thread));
}

bool hx_log_queue_submit(struct hx_log_queue *queue, const struct hx_log_request *request)
{
	bool leads = false;
	bool is_taken;

	hx_mutex_lock(&queue->mutex);
	is_taken = push(&queue->filling, request);
	if (is_taken) {
		queue->completions++;
		leads = !queue->is_led;
		queue->is_led = true;
		if (leads && queue->has_thread) {
			queue->is_called = true;
			hx_cond_signal(&queue->wake);
			leads = false;
		}
	}
	hx_mutex_unlock(&queue->mutex);
	if (leads)
		lead(queue, false, NULL);
	return is_taken;
}

bool hx_log_queue_run(struct hx_log_queue *queue, const struct hx_log_request *request)
{
	struct hx_log_captain self = {.leads = false};
	bool is_captain = false;
	uint32_t number;

	hx_mutex_lock(&queue->mutex);
	if (!push(&queue->filling, request)) {
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
	if (self.leads)
		lead(queue, false, &self);
	else if (!is_captain)
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
		lead(queue, true, NULL);
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
