/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_help.c - hapax help: print help, all of it from the tables.
 */
#include <stdio.h>
#include <string.h>

#include "cli/frame/command.h"
#include "cli/print/text.h"

/* The second column of a list. */
enum { LIST_COLUMN = 28 };

/* Exit codes of every command that uses a store, besides its own. */
static const struct command_exit common_exits[] = {
	{HX_EXIT_USAGE, "the command line or a setting was wrong; nothing was done"},
	{HX_EXIT_STORE, "the store was not reached, full or too new; nothing was done"},
	{HX_EXIT_IO, "I/O error: stored bytes are corrupt, or nobody knows what was done"},
	{0, NULL},
};

static const struct command_exit no_exits[] = {{0, NULL}};

void hx_cmd_help_item(struct hx_out *out, const char *name, const char *summary)
{
	size_t columns = 2 + hx_text_columns(name);

	hx_out_printf(out, "  %s", name);
	if (columns + 2 > LIST_COLUMN) {
		hx_out_text(out, "\n");
		columns = 0;
	}
	hx_out_spaces(out, LIST_COLUMN - columns);
	hx_out_printf(out, "%s\n", summary);
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

static void list_options(struct hx_out *out, const struct command *command)
{
	hx_out_text(out, "\nOptions:\n");
	if (command->options != NULL)
		for (const struct hx_option *o = command->options; o->name != NULL; o++)
			list_option(out, o);
	if (command->flags & COMMAND_STORE)
		for (const struct hx_option *o = hx_common_options; o->name != NULL; o++)
			list_option(out, o);
	hx_cmd_help_item(out, "-h, --help", "this text");
}

/* Merge two ascending lists. */
static void list_exits(
	struct hx_out *out, const struct command_exit *own, const struct command_exit *common)
{
	hx_out_text(out, "\nExit status:\n");
	while (own->meaning != NULL || common->meaning != NULL) {
		bool is_own = common->meaning == NULL ||
			(own->meaning != NULL && own->code < common->code);
		const struct command_exit *next = is_own ? own++ : common++;

		hx_out_printf(out, "  %-4d%s\n", next->code, next->meaning);
	}
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
	list_options(out, command);
	if (command->exits != NULL)
		list_exits(
			out, command->exits,
			command->flags & COMMAND_WRAPPER ? no_exits : common_exits);
	hx_out_text(out, "\nExamples:\n");
	for (const struct command_example *e = command->examples; e->line != NULL; e++)
		hx_out_printf(out, "  %s\n      %s\n", e->line, e->summary);
}

void hx_cmd_help_overview(struct hx_out *out)
{
	hx_out_text(
		out,
		"hapax - make the effects of at-least-once deliveries happen once\n"
		"\n"
		"Usage: hapax COMMAND [ARGUMENT] [OPTION]...\n"
		"\n"
		"Commands:\n");
	for (size_t i = 0; hx_commands[i] != NULL; i++)
		hx_out_printf(out, "  %-15s%s\n", hx_commands[i]->name, hx_commands[i]->summary);
	hx_out_text(out, "\nOptions of every command that uses a store:\n");
	for (const struct hx_option *o = hx_common_options; o->name != NULL; o++)
		list_option(out, o);
	hx_out_text(
		out,
		"\n"
		"Environment:\n"
		"  HAPAX_STORE               the store, where --store is not given; without either\n"
		"                            sqlite:$XDG_STATE_HOME/hapax/hapax.db is used\n"
		"  HAPAX_SERVER              the daemon, where neither it nor a store is given\n"
		"  HAPAX_TOKEN_FILE          of its token, where --token-file is not given\n"
		"  HAPAX_TTL                 the TTL, where --ttl is not given; then\n"
		"  IDEMPOTENCY_TTL           this one; without any of them it is 24h\n"
		"  HAPAX_TOKEN               the token, where --token is not given; run sets it\n"
		"  NO_COLOR                  no colours, not even on a terminal\n"
		"\n"
		"'hapax help COMMAND' tells more, with examples. See also: man hapax\n");
}

static int run_help(struct hx_invocation *inv)
{
	const struct command *command;

	if (inv->options.operand_count == 0) {
		hx_cmd_help_overview(&inv->out);
		return HX_EXIT_OK;
	}
	command = hx_command_find(inv->options.operands[0]);
	if (command == NULL)
		return hx_command_unknown(inv->options.operands[0]);
	hx_cmd_help_command(&inv->out, command);
	return HX_EXIT_OK;
}

static const struct command_example examples[] = {
	{"hapax help", "the list of commands"},
	{"hapax help check", "one command, the same as 'hapax check --help'"},
	{NULL, NULL},
};

const struct command hx_cmd_help = {
	.name = "help",
	.summary = "show what the program and its commands do",
	.usage = "[COMMAND]",
	.operands_max = 1,
	.examples = examples,
	.run = run_help,
};
