/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action.h - the actions of a command, such as relay in `hapax outbox relay`.
 *
 * A command with actions has a table of them (command.h). Its first operand names the action. A
 * command that also has a run function of its own runs it without operands (`hapax consume`). The frame checks the operands and options of that action before it
 * reads settings, then calls its run function. `hapax COMMAND ACTION --help` shows the action only.
 *
 *	static const struct command_action actions[] = {
 *		{.name = "copy", .summary = "copy every record to another store",
 *		 .usage = "SOURCE TARGET", .operands = {2, 2}, .run = run_copy},
 *		{.name = NULL},
 *	};
 *
 * An option belongs to the actions that its summary names before a colon ("add, retry: ..."); the
 * command's name there is the command itself. An option without such names belongs to all of them,
 * or, if the command has its own run function, to that. Examples belong to the action in their line.
 *
 * Threads: the main thread.
 */
#ifndef HX_CLI_FRAME_ACTION_H
#define HX_CLI_FRAME_ACTION_H

#include "cli/frame/command.h"

/* The action with that name, or NULL. */
const struct command_action *hx_action_find(const struct command *command, const char *name);

/*
 * Check the action, its operands and its options, and add its flags to inv. HX_EXIT_OK, or
 * HX_EXIT_USAGE after a message.
 */
int hx_action_check(struct hx_invocation *inv);

/* Run the action, which hx_action_check() has accepted. Returns the exit code. */
int hx_action_run(struct hx_invocation *inv);

/* The action as a command of its own, for help. Borrowed until the next call. */
const struct command *hx_action_as_command(
	const struct command *command, const struct command_action *action);

#endif
