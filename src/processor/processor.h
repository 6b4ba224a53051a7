/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h - what the files of the processor share.
 *
 * The mutex guards everything that changes. It is held for a few dozen instructions
 * at a time, never across a call to the store, a step, or anything else that is not
 * ours. Whatever is decided under it, questions for the store and steps to tell, goes
 * into the lists of a pump, which works them off without it.
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
	_Atomic uint64_t random_count; /* numbers that were made */

	struct hx_mutex mutex;
	struct hx_key_queues queues;
	struct hx_timer_heap timers;
	struct hapax_run *pool; /* runs for the next requests */
	size_t pool_count;
	struct hapax_run *all;          /* every run there is */
	struct hx_batch *batches;       /* free ones */
	struct hx_batch *all_batches;   /* every batch there is */
	HX_LIST(struct hapax_run) tell; /* with STEPS_IN_TICK: runs whose steps wait for it */
	uint64_t sequence;
	int64_t tick_at_ms; /* what tick last said */
	bool is_wake_due;   /* tick must come sooner than that */
	bool is_ticking;
	unsigned pumps;      /* that are at work */
	struct hx_cond idle; /* no pump is */
	struct hapax_processor_stats stats;

	struct hx_ticker ticker;
};

/* The processor's time. Locks: none needed. */
static inline int64_t hx_processor_now(const struct hapax_processor *processor)
{
	return processor->options.clock->boot_ms(processor->options.clock->context);
}

/* a moment after another; saturates at never. */
static inline int64_t hx_time_after(int64_t from_ms, int64_t span_ms)
{
	int64_t at_ms;

	return __builtin_add_overflow(from_ms, span_ms, &at_ms) ? HAPAX_TIME_NEVER : at_ms;
}

/*
 * A number that nobody can guess or repeat without the key: a keyed hash of a count,
 * because a system call for each claim would cost more than the claim. Locks: none
 * needed.
 */
uint64_t hx_processor_random(struct hapax_processor *processor);

void hx_processor_attempt_id(
	struct hapax_processor *processor, unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE]);

/* Let tick be called. Locks: the mutex is held. */
void hx_processor_wake(struct hapax_processor *processor);

/*
 * Free a processor as a crash would leave it: runs that have not ended are gone
 * without a word. For simulations; no operation of it is with the store, or will be
 * answered.
 */
void hx_processor_abandon(struct hapax_processor *processor);

/* Options with every default filled in, or what is wrong with them. */
enum hapax_status hx_run_options_complete(
	const struct hapax_processor *processor, const struct hapax_run_options *options,
	struct hapax_run_options *ret_options, struct hapax_error *err);

/* A claim that was answered before its run was begun. */
struct hx_early_claim {
	const struct hapax_op *op;
	int64_t sent_ms;
};

/*
 * As hapax_processor_begin() for one request, which a registration may have made, and
 * whose claim may be answered already: ACQUIRED. origin and claim may be NULL.
 */
enum hapax_status hx_processor_begin_one(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, const struct hx_early_claim *claim,
	struct hapax_error *err);

#endif
