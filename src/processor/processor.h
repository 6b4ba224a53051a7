/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h - declarations that the files of the processor share.
 *
 * The mutex guards everything that changes. It is held for a few dozen instructions at a time,
 * never across a call to the store, a step, or other foreign code. Decisions made under it
 * (questions for the store, steps to report) go into the lists of a pump, which processes them
 * without the mutex.
 */
#ifndef HX_PROCESSOR_H
#define HX_PROCESSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hapax/ext/store_ops.h>
#include <hapax/processor.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/thread.h"
#include "base/timer_heap.h"
#include "processor/key_queue.h"
#include "processor/ticker.h"

struct hx_batch;
struct hx_pump;
struct hx_run_origin;

struct hapax_processor {
	struct hapax_store *store;
	struct hapax_watcher watcher;
	struct hapax_processor_options options; /* complete */
	char owner[HX_OWNER_SIZE_MAX + 1];
	bool has_lease; /* claims outlive the caller's transaction */
	uint64_t random_key[2];
	_Atomic uint64_t random_count; /* random numbers made so far */

	struct hx_mutex mutex;
	struct hx_key_queues queues;
	struct hx_timer_heap timers;
	struct hapax_run *pool; /* runs for the next requests */
	size_t pool_count;
	struct hapax_run *all;          /* all runs */
	struct hx_batch *batches;       /* free batches */
	struct hx_batch *all_batches;   /* all batches */
	HX_LIST(struct hapax_run) tell; /* with STEPS_IN_TICK: runs whose steps wait for a tick */
	uint64_t sequence;
	int64_t tick_at_ms; /* what the last tick returned */
	bool is_wake_due;   /* the next tick must come sooner */
	bool is_ticking;
	unsigned pumps;      /* active pumps */
	struct hx_cond idle; /* signaled when pumps is 0 */
	struct hapax_processor_stats stats;

	struct hx_ticker ticker;
};

/* The processor's time. Locks: none needed. */
static inline int64_t hx_processor_now(const struct hapax_processor *processor)
{
	return processor->options.clock->boot_ms(processor->options.clock->context);
}

/* from_ms plus span_ms; saturates at never. */
static inline int64_t hx_time_after(int64_t from_ms, int64_t span_ms)
{
	int64_t at_ms;

	return __builtin_add_overflow(from_ms, span_ms, &at_ms) ? HAPAX_TIME_NEVER : at_ms;
}

/*
 * A number that cannot be guessed or repeated without the key. It is a keyed hash of a counter: a
 * system call per claim would cost more than the claim. Locks: none needed.
 */
uint64_t hx_processor_random(struct hapax_processor *processor);

void hx_processor_attempt_id(
	struct hapax_processor *processor, unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE]);

/* Ask the caller to tick. Locks: the mutex is held. */
void hx_processor_wake(struct hapax_processor *processor);

/*
 * Free a processor as a crash would leave it: unfinished runs disappear without a step. For
 * simulations; the store must have no operation of it in progress.
 */
void hx_processor_abandon(struct hapax_processor *processor);

/* Fill in every default, or report an invalid option. */
enum hapax_status hx_run_options_complete(
	const struct hapax_processor *processor, const struct hapax_run_options *options,
	struct hapax_run_options *ret_options, struct hapax_error *err);

/* A claim that was answered before its run began. */
struct hx_early_claim {
	const struct hapax_op *op;
	int64_t sent_ms;
};

/*
 * Like hapax_processor_begin(), for one request. A registration may have made it (origin), and its
 * claim may already be ACQUIRED (claim). Both may be NULL.
 */
enum hapax_status hx_processor_begin_one(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, const struct hx_early_claim *claim,
	struct hapax_error *err);

#endif
