/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - let a signal stop long work between two steps.
 */
#ifndef HX_CLI_FRAME_INTERRUPT_H
#define HX_CLI_FRAME_INTERRUPT_H

#include <signal.h>

/*
 * From now on, a write to a closed pipe or beyond the file size limit fails with an error. It no
 * longer ends the process in the middle of its work.
 */
void hx_interrupt_ignore_writes(void);

/* The signals that are ignored only because of this: a child must not inherit it. */
void hx_interrupt_child_defaults(sigset_t *ret);

/* From now on INT and TERM are remembered and do not end the process; a second one does. */
void hx_interrupt_watch(void);

/* The signal received, or 0. */
int hx_interrupt_signal(void);

#endif
