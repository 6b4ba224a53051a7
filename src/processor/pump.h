/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.h - from decisions to deeds: asks the store and tells steps, without the mutex.
 *
 * Every way into the processor enters a pump and leaves it at its end. What is
 * decided in between is listed; leaving works the lists off until they are empty. On
 * a thread that is within a pump of this processor already (a store that answers at
 * once, a step that finishes its run) the outer pump gets the lists, so that a chain
 * of a thousand runs, each set off by the one before, needs no thousand frames.
 *
 * Threads: a pump belongs to one; several work at the same time.
 */
#ifndef HX_PROCESSOR_PUMP_H
#define HX_PROCESSOR_PUMP_H

#include <hapax/processor.h>

#include "base/list.h"

struct hx_pump {
	struct hapax_processor *processor;
	struct hx_pump *target;         /* the one whose lists are used: itself, or an outer one */
	struct hx_pump *outer;          /* the pump that this thread was in before */
	HX_LIST(struct hapax_run) list; /* questions */
	HX_LIST(struct hapax_run) tell; /* steps */
};

/* Locks: enter takes the mutex, leave gives it back. */
void hx_pump_enter(struct hx_pump *pump, struct hapax_processor *processor);
void hx_pump_leave(struct hx_pump *pump);

/* The run asks its question when the pump is left. */
void hx_pump_ask(struct hx_pump *pump, struct hapax_run *run);

/* The run is told the step when the pump is left, or in the next tick. */
void hx_pump_tell(struct hx_pump *pump, struct hapax_run *run, enum hapax_step step);

/* Tell the steps that wait for a tick. Locks: the mutex is held, and not meanwhile. */
void hx_pump_tell_waiting(struct hx_pump *pump);

#endif
