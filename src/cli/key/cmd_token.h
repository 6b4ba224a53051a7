/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_token.h - print the result of an operation with a token.
 */
#ifndef HX_CLI_KEY_CMD_TOKEN_H
#define HX_CLI_KEY_CMD_TOKEN_H

#include "cli/frame/key_command.h"

/* Print the record's new state, or why op was fenced, after a lookup. Returns the exit code. */
hx_key_command_fn hx_cmd_token_answer;

#endif
