/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion.h - the commands and options as a script for a shell.
 */
#ifndef HX_CLI_TOOLS_COMPLETION_H
#define HX_CLI_TOOLS_COMPLETION_H

#include "cli/frame/command.h"

typedef void hx_completion_fn(struct hx_out *out);

hx_completion_fn hx_completion_bash;
hx_completion_fn hx_completion_zsh;
hx_completion_fn hx_completion_fish;

/* Called for each option of a command, including the common ones and --help. */
typedef void hx_completion_option_fn(
	struct hx_out *out, const struct command *command, const struct hx_option *option);

void hx_completion_each_option(
	struct hx_out *out, const struct command *command, hx_completion_option_fn *each);

#endif
