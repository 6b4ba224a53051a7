/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - let long work end between two steps when a signal asks for it.
 */
#ifndef HX_CLI_FRAME_INTERRUPT_H
#define HX_CLI_FRAME_INTERRUPT_H

#include <signal.h>

/*
 * A write to a reader that has gone, or beyond the file size limit, fails with an
 * error from now on instead of ending the process in the middle of its work.
 */
void hx_interrupt_ignore_writes(void);

/* The signals that are ignored only because of that: a child must not inherit it. */
void hx_interrupt_child_defaults(sigset_t *ret);

/*
 * From now on INT and TERM are remembered instead of ending the process. A second
 * one ends it at once, as if nobody watched.
 */
void hx_interrupt_watch(void);

/* The signal that came, or 0. */
int hx_interrupt_signal(void);

#endif
