/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_queue.h - the queue at a key: which run of this process holds it, which wait, in
 * which order.
 *
 * A queue is there as long as some run of this process has to do with its key, and
 * is found by the key's text, which it borrows from one of those runs. All runs
 * that ask for a key join its queue before they ask the store, so that nothing that
 * happens to the key in this process between question and answer is missed: its
 * number of turns tells.
 *
 *  (1) A run waits in one queue at most, in the order of its sequence number.
 *  (2) holder is a run that was given the claim and has not finished, been fenced
 *      or let its lease lapse; without one the queue's timer asks again.
 *  (3) scout, if any, is a run that left the queue to ask on behalf of all in it.
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
	struct hx_key_queue *next;  /* in its bucket, or among the free ones */
	struct hx_run_key *members; /* runs that have to do with the key */
	struct hapax_run *first;    /* those that wait, the oldest first */
	struct hapax_run *last;
	struct hapax_run *holder;
	struct hapax_run *scout;
	uint64_t turns;        /* how often a run of this process gave the key up or settled it */
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

/*
 * Make key a member of the queue of its text, a new one if there is none. False: no
 * memory.
 */
bool hx_key_queues_join(
	struct hx_key_queues *queues, struct hx_timer_heap *timers, struct hx_run_key *key);

/* Undo it. The queue goes with its last member. */
void hx_key_queues_quit(
	struct hx_key_queues *queues, struct hx_timer_heap *timers, struct hx_run_key *key);

/* The queue of a key; NULL: there is none. */
struct hx_key_queue *hx_key_queues_find(
	const struct hx_key_queues *queues, const struct hx_run_key *key);

/* wait in the queue, by age; and step out of it. */
void hx_key_queue_wait(struct hx_key_queue *queue, struct hapax_run *run);
void hx_key_queue_step_out(struct hx_key_queue *queue, struct hapax_run *run);

#endif
