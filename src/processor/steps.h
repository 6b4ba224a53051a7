/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - what moves a run on: the answers to its questions, and the time.
 *
 * Each file has the functions of one part of a run's life: claim.c until it runs or
 * is told why not, lease.c while it runs, finish.c after that.
 *
 * Threads: the mutex is held; questions and steps go into the pump.
 */
#ifndef HX_PROCESSOR_STEPS_H
#define HX_PROCESSOR_STEPS_H

#include <stddef.h>

#include <hapax/processor.h>

#include "processor/key_queue.h"
#include "processor/pump.h"
#include "processor/run.h"

/* The answer to a group of operations, as one; op is the operation that decided. */
struct hx_verdict {
	enum hapax_status status;
	enum hapax_outcome outcome; /* when status is OK */
	size_t index;               /* of the key that decided */
};

/* May the same operation be answered differently a little later? */
bool hx_claim_is_worth_repeating(enum hapax_status status);

/* Milliseconds until the next repetition: twice as long each time, up to a bound, with jitter. */
int64_t hx_claim_repeat_after(struct hapax_run *run, int64_t bound_ms);

/* Nobody knows any more whether an answer that was lost took effect: say so. */
static inline enum hapax_status hx_final_status(
	const struct hapax_run *run, enum hapax_status status)
{
	return run->is_uncertain && status != HAPAX_OK ? HAPAX_ERR_UNCERTAIN : status;
}

/* claim.c */
void hx_claim_ask(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms);
void hx_claim_answered(
	struct hx_pump *pump, struct hapax_run *run, struct hx_verdict verdict,
	const struct hapax_op *op);
void hx_claim_due(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms);

/*
 * Is its claim good, now that it is to be told to run? The answer may have come late, or
 * the telling. If not, it is asked for again, and nothing is told.
 */
bool hx_claim_is_good(struct hx_pump *pump, struct hapax_run *run);
void hx_claim_leave(struct hx_pump *pump, struct hapax_run *run);
void hx_key_queue_due(struct hx_pump *pump, struct hx_key_queue *queue);

/* Stand in the queue of a run of this process without asking, if that will do. */
bool hx_claim_attach(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms);

/* The oldest that waits asks; all do. */
void hx_key_queue_wake_one(struct hx_pump *pump, struct hx_key_queue *queue);
void hx_key_queue_wake_all(struct hx_pump *pump, struct hx_key_queue *queue);

/* Nobody in this process holds the key: ask again at that time, if anybody waits. */
void hx_key_queue_watch(struct hx_pump *pump, struct hx_key_queue *queue, int64_t at_ms);

/* The run holds its keys no longer, and says so to those who wait. */
enum hx_parting {
	HX_PARTING_SETTLED, /* done or parked: all may know */
	HX_PARTING_FREE,    /* released: the oldest runs */
	HX_PARTING_LOST,    /* fenced, lapsed or given up: ask the store */
};
void hx_claim_part(struct hx_pump *pump, struct hapax_run *run, enum hx_parting parting);

/* lease.c */
void hx_lease_begin(struct hapax_run *run);

/*
 * Does it hold its keys, by its own count? Others have no reason to hold back after that; nor
 * when it is overdue, for then its key may be parked already.
 */
bool hx_lease_lives(const struct hapax_run *run, int64_t now_ms);

void hx_lease_answered(struct hx_pump *pump, struct hapax_run *run, struct hx_verdict verdict);
void hx_lease_due(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms);

/* finish.c */
void hx_finish_ask(struct hx_pump *pump, struct hapax_run *run);
void hx_finish_answered(
	struct hx_pump *pump, struct hapax_run *run, struct hx_verdict verdict,
	const struct hapax_op *op);
void hx_finish_due(struct hx_pump *pump, struct hapax_run *run);

/* Give back a claim that came too late. */
void hx_finish_give_back(struct hx_pump *pump, struct hapax_run *run);

/* The last step. */
void hx_run_end(struct hx_pump *pump, struct hapax_run *run, enum hapax_status status);

#endif
