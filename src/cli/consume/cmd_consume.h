/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_consume.h - shared by hapax consume and its actions.
 */
#ifndef HX_CLI_CONSUME_CMD_CONSUME_H
#define HX_CLI_CONSUME_CMD_CONSUME_H

#include "cli/frame/command.h"

enum hx_consume_option {
	HX_CONSUME_REASON = 100, /* after those of the command itself */
	HX_CONSUME_MATCH,
	HX_CONSUME_ALL,
	HX_CONSUME_LIMIT,
	HX_CONSUME_YES,
	HX_CONSUME_FROM_TIME,
	HX_CONSUME_SHARED_SCOPE,
	HX_CONSUME_EMPTY_SCOPE,
};

enum { HX_CONSUME_FROM = 1 }; /* of the command itself, and of rebuild */

/* The actions; ends without a name. */
extern const struct command_action hx_consume_actions[];

#endif
