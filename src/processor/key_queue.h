/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_queue.h - the queue of a key: the run of this process that holds it, and its waiters.
 *
 * A queue exists as long as a run of this process uses its key. It is found by the key's text,
 * which it borrows from one of those runs. A run joins the queue of its key before it asks the
 * store. It therefore misses no change in this process between question and answer: turns counts
 * them.
 *
 *  (1) A run waits in one queue at most, in the order of its sequence number.
 *  (2) holder is a run that has the claim and has not finished, been fenced or let its lease lapse;
 *      without a holder, the queue's timer claims again.
 *  (3) scout, if any, is a run that left the queue to claim on behalf of all waiters.
 *
 * Threads: the processor's mutex is held.
 */
#ifndef HX_PROCESSOR_KEY_QUEUE_H
#define HX_PROCESSOR_KEY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/bytes.h>

#include "base/timer_heap.h"

struct hapax_run;
struct hx_run_key;

struct hx_key_queue {
	uint64_t hash;
	struct hx_key_queue *next;  /* in its bucket or the free list */
	struct hx_run_key *members; /* runs that use the key */
	struct hapax_run *first;    /* waiters, the oldest first */
	struct hapax_run *last;
	struct hapax_run *holder;
	struct hapax_run *scout;
	uint64_t turns;        /* how often a run of this process gave up or settled the key */
	struct hx_timer timer; /* its context is NULL, unlike that of a run */
};

struct hx_key_queues {
	struct hx_key_queue **buckets;
	size_t bucket_count; /* a power of two, or 0 */
	size_t count;
	struct hx_key_queue *spare;
	size_t spare_count;
	uint64_t hash_key[2];
};

void hx_key_queues_done(struct hx_key_queues *queues);

uint64_t hx_key_queues_hash(const struct hx_key_queues *queues, const struct hx_run_key *key);

/* Add key to the queue of its text; create the queue if needed. False: no memory. */
bool hx_key_queues_join(
	struct hx_key_queues *queues, struct hx_timer_heap *timers, struct hx_run_key *key);

/* Undo hx_key_queues_join(). The last member frees the queue. */
void hx_key_queues_quit(
	struct hx_key_queues *queues, struct hx_timer_heap *timers, struct hx_run_key *key);

/* The queue of a key, or NULL. */
struct hx_key_queue *hx_key_queues_find(
	const struct hx_key_queues *queues, const struct hx_run_key *key);

/* Wait in the queue, in order of age; and leave it. */
void hx_key_queue_wait(struct hx_key_queue *queue, struct hapax_run *run);
void hx_key_queue_step_out(struct hx_key_queue *queue, struct hapax_run *run);

/*
 * Assert the rules above for a queue in use. It looks at the ends of its lists only. Not while a
 * member changes its state.
 */
void hx_key_queue_assert(const struct hx_key_queue *queue);

/* Assert the counts of the table; walks nothing. */
void hx_key_queues_assert(const struct hx_key_queues *queues);

#endif
