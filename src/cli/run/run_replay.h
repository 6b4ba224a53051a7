/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_replay.h - replay the output of a command.
 */
#ifndef HX_CLI_RUN_RUN_REPLAY_H
#define HX_CLI_RUN_RUN_REPLAY_H

#include <hapax/record.h>

#include "cli/run/run_ledger.h"

/*
 * Write the output of a result of kind exec to standard output and error, byte for byte and in
 * order. Returns its exit code; *ret_signal: the signal that ended it, or 0. A result of another
 * kind has no output: 0, or 1 after a message if it failed. HX_EXIT_WRAPPER after an error message;
 * HX_EXIT_SIGNAL plus the number if a signal asked us to end. Does not need the store.
 */
int hx_cmd_run_replay(
	const struct hx_cmd_run_ledger *ledger, const struct hapax_result *result, int *ret_signal);

#endif
