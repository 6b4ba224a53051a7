/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - the list of commands, and the path from arguments to a run.
 */
#include "cli/frame/command.h"

#include <stdbool.h>
#include <string.h>

#include "cli/frame/action.h"
#include "cli/frame/report.h"
#include "base/suggest.h"

const struct command *const hx_commands[] = {
	&hx_cmd_run,
#if HX_HAVE_DAEMON
	&hx_cmd_serve,
#endif
	&hx_cmd_consume,
	&hx_cmd_claim,
	&hx_cmd_renew,
	&hx_cmd_complete,
	&hx_cmd_release,
	&hx_cmd_park,
	&hx_cmd_resolve,
	&hx_cmd_check,
	&hx_cmd_lookup,
	&hx_cmd_explain,
	&hx_cmd_forget,
	&hx_cmd_keys,
	&hx_cmd_stats,
	&hx_cmd_key,
	&hx_cmd_backtest,
	&hx_cmd_uuid7,
	&hx_cmd_store,
	&hx_cmd_gc,
	&hx_cmd_fsck,
	&hx_cmd_journal,
	&hx_cmd_decisions,
	&hx_cmd_outbox,
#if HX_HAVE_DAEMON
	&hx_cmd_config,
#endif
	&hx_cmd_demo_upstream,
	&hx_cmd_completion,
	&hx_cmd_help,
	&hx_cmd_version,
	NULL,
};

const struct command *hx_command_find(const char *name)
{
	for (size_t i = 0; hx_commands[i] != NULL; i++)
		if (strcmp(hx_commands[i]->name, name) == 0)
			return hx_commands[i];
	return NULL;
}

int hx_command_unknown(const char *name)
{
	struct hx_suggest suggest;

	hx_suggest_init(&suggest, name);
	for (size_t i = 0; hx_commands[i] != NULL; i++)
		hx_suggest_consider(&suggest, hx_commands[i]->name);
	(void)hx_report_usage(NULL, "unknown command '%s'", name);
	if (suggest.best != NULL)
		hx_report_hint("did you mean 'hapax %s'?", suggest.best);
	else
		hx_report_hint("'hapax help' lists the commands");
	return HX_EXIT_USAGE;
}

static int check_operands(const struct hx_invocation *inv)
{
	const struct command *command = inv->command;
	size_t count = inv->options.operand_count;

	if (count >= command->operands.min && count <= command->operands.max)
		return HX_EXIT_OK;
	if (count < command->operands.min)
		(void)hx_report_usage(command->name, "missing argument");
	else
		(void)hx_report_usage(
			command->name, "unexpected argument '%s'",
			inv->options.operands[command->operands.max]);
	hx_report_hint("usage: hapax %s %s", command->name, command->usage);
	return HX_EXIT_USAGE;
}

/* Of the action, if the operands before --help name one. */
static int print_help(struct hx_invocation *inv)
{
	const struct command *command = inv->command;
	const struct command_action *action = NULL;

	if (command->actions != NULL && inv->options.operand_count > 0)
		action = hx_action_find(command, inv->options.operands[0]);
	hx_cmd_help_command(
		&inv->out, action != NULL ? hx_action_as_command(command, action) : command);
	return hx_out_finish(&inv->out, command->name, HX_EXIT_OK);
}

/* Is -o json given? Asked before the options are read, whose faults are JSON, too. */
static bool wants_json(const struct command *command, int argc, char **argv)
{
	/* The rest may belong to another program. `config` lists faults as compilers do. */
	if ((command->flags & COMMAND_WRAPPER) || strcmp(command->name, "config") == 0)
		return false;
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		bool is_apart = strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0;

		if (strcmp(argv[i], "-ojson") == 0 || strcmp(argv[i], "--output=json") == 0 ||
		    (is_apart && i + 1 < argc && strcmp(argv[i + 1], "json") == 0))
			return true;
	}
	return false;
}

static int finish(struct hx_invocation *inv, int code)
{
	code = hx_out_finish(&inv->out, inv->command->name, code);
	hx_report_finish(code);
	return code;
}

int hx_command_run(const struct command *command, int argc, char **argv)
{
	bool is_json = wants_json(command, argc, argv), is_quiet;
	bool is_wrapper = (command->flags & COMMAND_WRAPPER) != 0;
	const struct hx_option *common = NULL;
	struct hx_invocation inv = {.command = command, .flags = command->flags};
	int code;

	hx_out_init(&inv.out, stdout);
	hx_report_configure(is_json, false);
	if (command->flags & COMMAND_STORE)
		common = hx_common_options;
	code = hx_options_parse(
		command->name, command->options, common, is_wrapper ? HX_OPTIONS_END_AT_OPERAND : 0,
		argc, argv, &inv.options);
	if (code == HX_EXIT_OK && inv.options.help)
		return print_help(&inv);
	is_quiet = hx_options_has(&inv.options, HX_OPTION_QUIET);
	hx_report_configure(is_json, is_quiet);
	inv.out.is_silent = is_quiet && (command->flags & COMMAND_ANSWERS);
	inv.settings.format = (enum hx_format)hx_options_number(&inv.options, HX_OPTION_OUTPUT);
	if (code == HX_EXIT_OK)
		code = command->actions != NULL ? hx_action_check(&inv) : check_operands(&inv);
	if (code == HX_EXIT_OK && command->flags & COMMAND_STORE)
		code = hx_settings_read(&inv);
	if (code == HX_EXIT_OK)
		code = command->actions != NULL ? hx_action_run(&inv) : command->run(&inv);
	else if (is_wrapper)
		code = HX_EXIT_WRAPPER;
	return finish(&inv, code);
}
