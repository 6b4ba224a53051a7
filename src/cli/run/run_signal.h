/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_signal.h - signals that `run` passes on to its command, as bytes in a pipe.
 *
 * A handler can do next to nothing and a loop waits for descriptors anyway; so each
 * signal becomes a byte, and is dealt with in its turn. A signal that was ignored when
 * we were started stays so, for us and for the command: nohup means both.
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

/* Begin to watch. The descriptor that can be read when there is one, or a negative errno. */
int hx_cmd_run_signal_watch(void);

/* The next one; false when there is none. Never blocks. */
bool hx_cmd_run_signal_next(struct hx_cmd_run_signal *ret);

/*
 * From now on a signal ends a write that waits. Until then it does not: a store is in the
 * middle of something, and the loop waits for descriptors anyway.
 */
void hx_cmd_run_signal_end_writes(void);

/* Take signals up to the first that asks us to end: its number; 0: there was none. */
int hx_cmd_run_signal_asked(void);

/* Does it ask a program to end? */
bool hx_cmd_run_signal_is_end(int number);

#endif
