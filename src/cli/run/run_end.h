/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_end.h - how the command ended: judge, store, report, in this order.
 */
#ifndef HX_CLI_RUN_RUN_END_H
#define HX_CLI_RUN_RUN_END_H

#include "cli/run/run_child.h"
#include "cli/run/run_report.h"

/* Store how it ended, whether or not our output is read. Prints nothing. */
void hx_cmd_run_end_store(struct hx_cmd_run_report *report, struct hx_cmd_run_child *child);

/* Report what went wrong. Returns the exit code. */
int hx_cmd_run_end_tell(struct hx_cmd_run_report *report, const struct hx_cmd_run_child *child);

#endif
