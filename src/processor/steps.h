/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - the events that advance a run: answers to its questions, and timers.
 *
 * Each file covers one part of a run's life: claim.c until it runs or is refused, lease.c while it
 * runs, finish.c after that.
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

/* The combined answer to a group of operations; op is the operation that decided. */
struct hx_verdict {
	enum hapax_status status;
	enum hapax_outcome outcome; /* when status is OK */
	size_t index;               /* of the key that decided */
};

/* Whether the same operation may get a different answer a little later. */
bool hx_claim_is_worth_repeating(enum hapax_status status);

/* Milliseconds until the next repetition: doubles each time, up to a bound, with jitter. */
int64_t hx_claim_repeat_after(struct hapax_run *run, int64_t bound_ms);

/* If an answer was lost, the outcome is unknown: return UNCERTAIN. */
static inline enum hapax_status hx_final_status(
	const struct hapax_run *run, enum hapax_status status)
{
	return run->is_uncertain && status != HAPAX_OK ? HAPAX_ERR_UNCERTAIN : status;
}

/* claim.c */
void hx_claim_answered(
	struct hx_pump *pump, struct hapax_run *run, struct hx_verdict verdict,
	const struct hapax_op *op);
void hx_claim_due(struct hx_pump *pump, struct hapax_run *run, int64_t now_ms);

/*
 * Whether the claim still holds when step RUN is due: the answer or the step may have come late. If
 * not, the run claims again and no step is reported.
 */
bool hx_claim_is_good(struct hx_pump *pump, struct hapax_run *run);
void hx_key_queue_due(struct hx_pump *pump, struct hx_key_queue *queue);

/* Why the run no longer holds its keys; decides which waiters wake. */
enum hx_parting {
	HX_PARTING_SETTLED, /* done or parked: all wake */
	HX_PARTING_FREE,    /* released: the oldest runs */
	HX_PARTING_LOST,    /* fenced, lapsed or given up: ask the store */
};
void hx_claim_part(struct hx_pump *pump, struct hapax_run *run, enum hx_parting parting);

/* lease.c */
void hx_lease_begin(struct hapax_run *run);

/*
 * Whether the run holds its keys by its own clock. Other runs need not wait after that, nor when it
 * is overdue: its key may then be parked already.
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

/* Release a claim that came too late. */
void hx_finish_give_back(struct hx_pump *pump, struct hapax_run *run);

/* Report the last step. */
void hx_run_end(struct hx_pump *pump, struct hapax_run *run, enum hapax_status status);

#endif
