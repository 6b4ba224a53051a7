/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - who waits for the log, and who writes it.
 *
 * Requests gather in a list while another list is worked off. Whoever works one off
 * leads; there is one leader at a time. A caller that waits, and finds nobody
 * leading, leads itself: no other thread has to wake up. Of those who wait for the
 * next list the first is its candidate, and is given the lead when the list's turn
 * comes; all others are woken by one call when the list is done. Lists with
 * requests that have a completion are led by the queue's own thread, and by no other: a
 * completion may take a mutex that some caller of hx_log_queue_run() holds. Without a
 * thread, the submitter leads.
 *
 * Those who were just answered come again in a moment, and one frame for all of them
 * costs little more than one for the first. So whoever leads takes in what comes while
 * he decides, and gives it a moment more (hx_log_queue_grow()). A lone caller never waits.
 *
 * Threads: any.
 */
#ifndef HX_STORE_LOG_WRITE_QUEUE_H
#define HX_STORE_LOG_WRITE_QUEUE_H

#include <hapax/store.h>

#include "base/thread.h"

/*
 * Something else than operations that has to be done by who leads. run adds to the
 * frame; its status, unless OK, is the task's. When it finds journal.is_full it is
 * run again, from where it left off.
 */
struct hx_log_task {
	enum hapax_status (*run)(struct hx_log_task *task);
	void *context;
	enum hapax_status status; /* out */
};

struct hx_log_request {
	struct hapax_op *ops; /* NULL: a task */
	size_t count;
	size_t decided;                     /* of count */
	size_t durable;                     /* of these */
	struct hapax_completion completion; /* fn is NULL: somebody waits */
	struct hx_log_task *task;
};

/* Work off a list: every request ends. Completions are called, waiting callers are not woken. */
typedef void hx_log_lead_fn(void *context, struct hx_log_request *requests, size_t count);

struct hx_log_list {
	struct hx_log_request *requests;
	size_t count;
	size_t capacity;
};

struct hx_log_candidate;

/* A list that is being worked off, with those that were taken in. */
struct hx_log_turn {
	struct hx_log_list list;
	struct hx_log_candidate *candidates; /* who wait for its end on events of their own */
	uint32_t first;                      /* numbers of its lists */
	uint32_t last;
	bool is_thread; /* the queue's thread leads */
	bool has_grown;
	int64_t begin_ns;
	int64_t grown_ns;  /* when it last grew */
	int64_t closed_ns; /* when it was clear that it does not grow any more */
};

struct hx_log_queue {
	hx_log_lead_fn *lead;
	void *context;
	struct hx_ratchet calls; /* how often the thread was given the lead, or told to end */
	_Atomic uint32_t stops;
	struct hx_lock lock; /* guards what follows, but for what is the leader's */
	struct hx_log_list filling;
	struct hx_log_list working; /* the leader's */
	struct hx_log_turn turn;    /* the leader's */
	uint32_t number;            /* of the list that is being filled */
	size_t completions;         /* requests in it that have one */
	struct hx_log_candidate *candidate;
	bool is_led;
	bool has_thread;
	struct hx_thread thread;
	struct hx_ratchet finished[2]; /* the last list that is done, of even and odd ones */
	_Atomic uint32_t filled;       /* requests in the list that is being filled */
	uint32_t outstanding;          /* the leader's: requests that were under way lately */
	int64_t lead_ns;               /* the leader's: about how long a list takes */
};

void hx_log_queue_init(struct hx_log_queue *queue, hx_log_lead_fn *lead, void *context);

enum hapax_status hx_log_queue_start(struct hx_log_queue *queue, struct hapax_error *err);

/* End the thread, if there is one. Nothing is in the queue. */
void hx_log_queue_stop(struct hx_log_queue *queue);

void hx_log_queue_done(struct hx_log_queue *queue);

/* False: no memory, and the request was not taken. With a thread, returns at once. */
bool hx_log_queue_submit(struct hx_log_queue *queue, const struct hx_log_request *request);

/* The same, and wait until it is done. Must not be called by who leads, nor by a completion. */
bool hx_log_queue_run(struct hx_log_queue *queue, const struct hx_log_request *request);

/*
 * For who leads, while he has decided on all of the requests and written nothing: wait for
 * more if that is worth while, and take them in at the end. The requests may move. False:
 * there are no more, and the list is what it is.
 */
bool hx_log_queue_grow(struct hx_log_queue *queue, struct hx_log_request **requests, size_t *count);

/* Run a task and return its status, or NO_MEMORY. */
enum hapax_status hx_log_queue_task(struct hx_log_queue *queue, struct hx_log_task *task);

#endif
