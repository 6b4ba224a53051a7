/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_signal.h - signals that `run` forwards to its command, as bytes in a pipe.
 *
 * A handler can do almost nothing, and the loop waits for descriptors anyway. So each signal
 * becomes a byte and is handled in its turn. A signal that was ignored at our start stays ignored,
 * for us and for the command: nohup means both.
 *
 * Threads: the main one. There is one pipe in a process.
 */
#ifndef HX_CLI_RUN_RUN_SIGNAL_H
#define HX_CLI_RUN_RUN_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

struct hx_cmd_run_signal {
	int number;            /* SIGCHLD included */
	bool is_from_terminal; /* every process of the foreground group got it */
};

/* Begin to watch. Returns a descriptor that is readable when a signal came, or a negative errno. */
int hx_cmd_run_signal_watch(void);

/* The next one; false when there is none. Never blocks. */
bool hx_cmd_run_signal_next(struct hx_cmd_run_signal *ret);

/*
 * From now on a signal interrupts a waiting write. Before, it does not: a store may be in the
 * middle of an operation, and the loop waits for descriptors anyway.
 */
void hx_cmd_run_signal_end_writes(void);

/* Take signals up to the first that asks us to end. Returns its number; 0: none. */
int hx_cmd_run_signal_asked(void);

/* Does it ask a program to end? */
bool hx_cmd_run_signal_is_end(int number);

#endif
