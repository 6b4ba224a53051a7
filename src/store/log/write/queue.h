/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - the queue of requests for the log, and the choice of the leader.
 *
 * Requests gather in a list while another list is worked off by the leader; there is one leader
 * at a time. A waiting caller that finds no leader leads itself: no other thread has to wake up.
 * The first caller that waits for the next list is its candidate, and gets the lead when the
 * list's turn comes. One call wakes all others when the list is done. Only the queue's own
 * thread leads lists with completions: a completion may take a mutex that some caller of
 * hx_log_queue_run() holds. Without a thread, the submitter leads.
 *
 * Callers that were just answered submit again in a moment, and one frame for all of them costs
 * little more than one for the first. So the leader takes in new requests while it decides, and
 * then waits a moment more (hx_log_queue_grow()). A lone caller never waits.
 *
 * Threads: any.
 */
#ifndef HX_STORE_LOG_WRITE_QUEUE_H
#define HX_STORE_LOG_WRITE_QUEUE_H

#include <hapax/store.h>

#include "base/thread.h"

/*
 * Work for the leader other than operations: adds to the frame. Its status, unless OK, is the
 * task's. If it finds write_ahead.is_full, it is called again and continues where it left off.
 */
typedef enum hapax_status hx_log_task_fn(void *context);

struct hx_log_task {
	hx_log_task_fn *run;
	void *context;
	enum hapax_status status; /* out */
};

struct hx_log_request {
	struct hapax_op *ops; /* NULL: a task */
	size_t count;
	size_t decided;                     /* of count */
	size_t durable;                     /* of these */
	struct hapax_completion completion; /* fn is NULL: a caller waits */
	struct hx_log_task *task;
};

/* Work off a list: every request ends. Calls completions, but does not wake waiting callers. */
typedef void hx_log_lead_fn(void *context, struct hx_log_request *requests, size_t count);

struct hx_log_list {
	struct hx_log_request *requests;
	size_t count;
	size_t capacity;
};

struct hx_log_candidate;

/* A list that is being worked off, with the requests that were taken in. */
struct hx_log_turn {
	struct hx_log_list list;
	struct hx_log_candidate *candidates; /* callers that wait on events of their own */
	uint32_t first;                      /* numbers of its lists */
	uint32_t last;
	bool is_thread; /* the queue's thread leads */
	bool has_grown;
	int64_t begin_ns;
	int64_t grown_ns;  /* when it last grew */
	int64_t closed_ns; /* when it was clear that it stops growing */
};

struct hx_log_queue {
	hx_log_lead_fn *lead;
	void *context;
	struct hx_ratchet calls; /* how often the thread was given the lead, or told to stop */
	_Atomic uint32_t stops;
	struct hx_lock lock; /* guards what follows, except the leader's members */
	struct hx_log_list filling;
	struct hx_log_list working; /* the leader's */
	struct hx_log_turn turn;    /* the leader's */
	uint32_t number;            /* of the list that is being filled */
	size_t completions;         /* requests in it that have one */
	struct hx_log_candidate *candidate;
	bool is_led;
	bool has_thread;
	struct hx_thread thread;
	struct hx_ratchet finished[2]; /* the last finished list, of even and odd ones */
	_Atomic uint32_t filled;       /* requests in the list that is being filled */
	uint32_t outstanding;          /* the leader's: requests recently in progress */
	int64_t lead_ns;               /* the leader's: the approximate time of a list */
};

void hx_log_queue_init(struct hx_log_queue *queue, hx_log_lead_fn *lead, void *context);

enum hapax_status hx_log_queue_start(struct hx_log_queue *queue, struct hapax_error *err);

/* Stop the thread, if there is one. The queue is empty. */
void hx_log_queue_stop(struct hx_log_queue *queue);

void hx_log_queue_done(struct hx_log_queue *queue);

/* False: no memory, and the request was not taken. With a thread, returns at once. */
bool hx_log_queue_submit(struct hx_log_queue *queue, const struct hx_log_request *request);

/* The same, and wait until it is done. Neither the leader nor a completion may call this. */
bool hx_log_queue_run(struct hx_log_queue *queue, const struct hx_log_request *request);

/*
 * For the leader, after it has decided all requests and before it writes: wait for more if that
 * pays, and append them. The requests may move. False: there are no more, and the list is final.
 */
bool hx_log_queue_grow(struct hx_log_queue *queue, struct hx_log_request **requests, size_t *count);

/* Run a task, wait for its end and return its status, or NO_MEMORY. */
enum hapax_status hx_log_queue_task(struct hx_log_queue *queue, hx_log_task_fn *run, void *context);

#endif
