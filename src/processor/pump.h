/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.h - carries out decisions: asks the store and reports steps, without the mutex.
 *
 * Every public function enters a pump and leaves it at its end. Decisions in between go into lists;
 * leaving processes the lists until they are empty. A thread may already be inside a pump of this
 * processor: a store answered at once, or a step finished its run. The outer pump then gets the
 * lists, so a chain of a thousand runs does not need a thousand stack frames.
 *
 * Threads: a pump belongs to one thread; several pumps work at the same time.
 */
#ifndef HX_PROCESSOR_PUMP_H
#define HX_PROCESSOR_PUMP_H

#include <hapax/processor.h>

#include "base/list.h"

struct hx_pump {
	struct hapax_processor *processor;
	struct hx_pump *target;         /* the pump whose lists are used: itself or an outer one */
	struct hx_pump *outer;          /* the pump that this thread was in before */
	HX_LIST(struct hapax_run) list; /* questions */
	HX_LIST(struct hapax_run) tell; /* steps */
};

/* Locks: enter takes the mutex, leave releases it. */
void hx_pump_enter(struct hx_pump *pump, struct hapax_processor *processor);
void hx_pump_leave(struct hx_pump *pump);

/* Ask the run's question when the pump is left. */
void hx_pump_ask(struct hx_pump *pump, struct hapax_run *run);

/* Report the step when the pump is left, or in the next tick. */
void hx_pump_tell(struct hx_pump *pump, struct hapax_run *run, enum hapax_step step);

/* Report the steps that wait for a tick. Locks: the mutex is held, but not during a step. */
void hx_pump_tell_waiting(struct hx_pump *pump);

/* The memory of its submits; none is in progress. */
void hx_pump_batches_free(struct hapax_processor *processor);

#endif
