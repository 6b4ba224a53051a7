/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_consume.h - shared by hapax consume and its actions.
 */
#ifndef HX_CLI_CONSUME_CMD_CONSUME_H
#define HX_CLI_CONSUME_CMD_CONSUME_H

#include "cli/frame/command.h"

enum hx_consume_option {
	HX_CONSUME_REASON = 100, /* after those of the command itself */
};

/* The actions. */
command_run_fn hx_consume_list;
command_run_fn hx_consume_pause;
command_run_fn hx_consume_resume;

#endif
