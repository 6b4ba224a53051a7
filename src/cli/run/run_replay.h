/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_replay.h - what a command wrote, once more.
 */
#ifndef HX_CLI_RUN_RUN_REPLAY_H
#define HX_CLI_RUN_RUN_REPLAY_H

#include <hapax/record.h>

#include "cli/run/run_ledger.h"

/*
 * Write the output of a result of kind exec to standard output and error, byte for
 * byte and in its order, and return its exit code; *ret_signal: what ended it, or 0.
 * Of another kind there is nothing to write: 0, or 1 when it failed, after saying why.
 * HX_EXIT_WRAPPER after saying what went wrong; HX_EXIT_SIGNAL and its number when a
 * signal asked us to end. The store is not needed for it.
 */
int hx_cmd_run_replay(
	const struct hx_cmd_run_ledger *ledger, const struct hapax_result *result, int *ret_signal);

#endif
