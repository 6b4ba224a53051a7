/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_help.c - hapax help: print help, all of it from the tables.
 */
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "cli/frame/action.h"
#include "cli/frame/command.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"

/* The second column of a list. */
enum { LIST_COLUMN = 28 };

/* Exit codes of every command that uses a store, besides its own. */
static const struct command_exit store_exits[] = {
	{HX_EXIT_USAGE, "invalid command line or setting; nothing changed"},
	{HX_EXIT_STORE, "the store is unavailable, full or too new; nothing changed"},
	{HX_EXIT_IO, "I/O error: stored data is corrupt, or the outcome is unknown"},
	{0, NULL},
};

/* Of the other commands. */
static const struct command_exit plain_exits[] = {
	{HX_EXIT_USAGE, "invalid command line; nothing changed"},
	{HX_EXIT_IO, "standard output could not be written"},
	{0, NULL},
};

static const struct command_exit no_exits[] = {{0, NULL}};

static const struct command_exit *common_exits(const struct command *command)
{
	if (command->flags & COMMAND_WRAPPER)
		return no_exits;
	return command->flags & COMMAND_STORE ? store_exits : plain_exits;
}

void hx_cmd_help_item(struct hx_out *out, const char *name, const char *summary)
{
	size_t columns = 2 + hx_text_columns(name);

	hx_out_printf(out, "  %s", name);
	if (columns + 2 > LIST_COLUMN) {
		hx_out_text(out, "\n");
		columns = 0;
	}
	for (;;) {
		size_t size = strcspn(summary, "\n");

		hx_out_spaces(out, LIST_COLUMN - columns);
		hx_out_printf(out, "%.*s\n", (int)size, summary);
		if (summary[size] == '\0')
			return;
		summary += size + 1;
		columns = 0;
	}
}

static void list_option(struct hx_out *out, const struct hx_option *option)
{
	char name[64];
	char letter[] = "    ";

	if (option->letter != 0)
		(void)snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	if (option->kind == HX_OPTION_MAYBE)
		(void)snprintf(
			name, sizeof(name), "%s--%s[=%s]", letter, option->name, option->value);
	else
		(void)snprintf(
			name, sizeof(name), "%s--%s%s%s", letter, option->name,
			option->value != NULL ? " " : "",
			option->value != NULL ? option->value : "");
	hx_cmd_help_item(out, name, option->summary);
}

/* Does this option have an effect on the command? */
static bool is_used(const struct command *command, const struct hx_option *option)
{
	if (option->id == HX_OPTION_SCOPE)
		return (command->flags & COMMAND_SCOPE) != 0;
	return option->id != HX_OPTION_TTL || (command->flags & COMMAND_TTL) != 0;
}

/* Only names: every command that uses a store has these options. */
static void list_common_options(struct hx_out *out, const struct command *command)
{
	char names[96] = "    ";
	size_t used = strlen(names);

	for (const struct hx_option *o = hx_common_options; o->name != NULL; o++)
		if (is_used(command, o))
			used += (size_t)snprintf(
				names + used, sizeof(names) - used, "%s--%s", used > 4 ? ", " : "",
				o->name);
	hx_cmd_help_item(out, names, "see 'hapax --help'");
}

static void list_options(struct hx_out *out, const struct command *command)
{
	hx_out_text(out, "\nOptions:\n");
	if (command->options != NULL)
		for (const struct hx_option *o = command->options; o->name != NULL; o++)
			list_option(out, o);
	if (command->flags & COMMAND_STORE)
		list_common_options(out, command);
	for (const struct hx_option *o = hx_every_options; o->name != NULL; o++)
		list_option(out, o);
	hx_cmd_help_item(out, "-h, --help", "show this help");
}

/* Merge two ascending lists; a code in both has the command's own meaning. */
static void list_exits(
	struct hx_out *out, const struct command_exit *own, const struct command_exit *common)
{
	hx_out_text(out, "\nExit status:\n");
	while (own->meaning != NULL || common->meaning != NULL) {
		bool is_own = common->meaning == NULL ||
			(own->meaning != NULL && own->code <= common->code);
		const struct command_exit *next = is_own ? own++ : common;

		if (common->meaning != NULL && next->code == common->code)
			common++;
		hx_out_printf(out, "  %-4d%s\n", next->code, next->meaning);
	}
}

static void list_actions(struct hx_out *out, const struct command *command)
{
	if (command->actions == NULL)
		return;
	hx_out_printf(out, "\nActions (see 'hapax %s ACTION --help'):\n", command->name);
	for (const struct command_action *action = command->actions; action->name != NULL; action++)
		hx_cmd_help_item(out, action->name, action->summary);
}

void hx_cmd_help_command(struct hx_out *out, const struct command *command)
{
	hx_out_printf(
		out, "hapax %s - %s\n\nUsage: hapax %s%s%s\n", command->name, command->summary,
		command->name, command->usage[0] != '\0' ? " " : "", command->usage);
	if (command->description != NULL)
		hx_out_printf(out, "\n%s", command->description);
	if (command->list != NULL)
		command->list(out);
	list_actions(out, command);
	list_options(out, command);
	if (command->exits != NULL)
		list_exits(out, command->exits, common_exits(command));
	hx_out_text(out, "\nExamples:\n");
	for (const struct command_example *e = command->examples; e->line != NULL; e++)
		hx_out_printf(out, "  %s\n      %s\n", e->line, e->summary);
}

/* Headings of the list of commands, each before its first command. */
static const struct {
	const struct command *first;
	const char *heading;
} groups[] = {
	{&hx_cmd_run, "Run work once:"},
	{&hx_cmd_claim, "Claim and inspect keys:"},
	{&hx_cmd_key, "Design keys:"},
	{&hx_cmd_store, "Manage stores and settings:"},
};

static void list_commands(struct hx_out *out)
{
	for (size_t i = 0; hx_commands[i] != NULL; i++) {
		for (size_t j = 0; j < HX_COUNT(groups); j++)
			if (groups[j].first == hx_commands[i])
				hx_out_printf(out, "%s\n", groups[j].heading);
		hx_out_printf(out, "  %-15s%s\n", hx_commands[i]->name, hx_commands[i]->summary);
	}
}

void hx_cmd_help_overview(struct hx_out *out)
{
	hx_out_text(
		out,
		"hapax - make each request, event or job complete once, however often it is "
		"delivered\n"
		"\n"
		"Usage: hapax COMMAND [ARGUMENT]... [OPTION]...\n"
		"\n");
	list_commands(out);
	hx_out_text(out, "\nOptions for commands that use a store:\n");
	for (const struct hx_option *o = hx_common_options; o->name != NULL; o++)
		list_option(out, o);
	hx_out_text(out, "\nOptions for all commands:\n");
	for (const struct hx_option *o = hx_every_options; o->name != NULL; o++)
		list_option(out, o);
	hx_out_text(
		out,
		"\n"
		"Environment:\n"
		"  HAPAX_STORE, HAPAX_SERVER, HAPAX_AUTH_FILE, HAPAX_TTL, HAPAX_TOKEN\n"
		"                            defaults for --store, --server, --auth-file, --ttl, "
		"--token\n"
		"  IDEMPOTENCY_TTL           default for --ttl if HAPAX_TTL is not set\n"
		"  NO_COLOR                  disable colors\n"
		"\n"
		"Run 'hapax help COMMAND' for details and examples, or see 'man hapax'.\n");
}

static int run_help(struct hx_invocation *inv)
{
	const struct command_action *action;
	const struct command *command;

	if (inv->options.operand_count == 0) {
		hx_cmd_help_overview(&inv->out);
		return HX_EXIT_OK;
	}
	command = hx_command_find(inv->options.operands[0]);
	if (command == NULL)
		return hx_command_unknown(inv->options.operands[0]);
	if (inv->options.operand_count == 2) {
		action = command->actions == NULL
			? NULL
			: hx_action_find(command, inv->options.operands[1]);
		if (action == NULL) {
			(void)hx_report_usage(
				inv->command->name, "'%s' has no action '%s'", command->name,
				inv->options.operands[1]);
			hx_report_hint("'hapax help %s' describes the command", command->name);
			return HX_EXIT_USAGE;
		}
		command = hx_action_as_command(command, action);
	}
	hx_cmd_help_command(&inv->out, command);
	return HX_EXIT_OK;
}

static const struct command_example examples[] = {
	{"hapax help", "list the commands"},
	{"hapax help check", "describe one command, like 'hapax check --help'"},
	{"hapax help store copy", "describe one action, like 'hapax store copy --help'"},
	{NULL, NULL},
};

const struct command hx_cmd_help = {
	.name = "help",
	.summary = "show help for hapax, a command or an action",
	.usage = "[COMMAND [ACTION]]",
	.operands = {0, 2},
	.examples = examples,
	.run = run_help,
};
