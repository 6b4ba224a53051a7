/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action.c - the actions of a command.
 */
#include "cli/frame/action.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/frame/report.h"

/* Rows of the largest tables, and their end. */
enum { OPTIONS_MAX = 32, EXAMPLES_MAX = 16, NAMES_SIZE = 128 };

const struct command_action *hx_action_find(const struct command *command, const char *name)
{
	for (const struct command_action *action = command->actions; action->name != NULL; action++)
		if (strcmp(action->name, name) == 0)
			return action;
	return NULL;
}

/* Does names, which ends at end, contain name as a word? */
static bool has_name(const char *names, const char *end, const char *name)
{
	size_t size = strlen(name);

	while (names < end) {
		size_t word = strcspn(names, ",:");

		if (word == size && memcmp(names, name, size) == 0)
			return true;
		names += word + 1;
		names += strspn(names, " ");
	}
	return false;
}

/*
 * Does an option belong to that action, or to the command itself if it has the name of that?
 * *ret_rest is its summary without such names.
 */
static bool is_of(
	const struct command *command, const char *summary, const char *name, const char **ret_rest)
{
	const char *colon = strstr(summary, ": ");
	const char *end = summary + strcspn(summary, ",:");
	bool is_named = colon != NULL && has_name(summary, end, command->name);

	for (const struct command_action *action = command->actions;
	     colon != NULL && action->name != NULL; action++)
		is_named = is_named || has_name(summary, end, action->name);
	*ret_rest = is_named ? colon + 2 : summary;
	if (is_named)
		return has_name(summary, colon, name);
	/* Options of a command that also runs by itself are its own. */
	return command->run == NULL || strcmp(name, command->name) == 0;
}

/* Refuse an option without effect here: it was meant to have one. */
static int check_options(const struct hx_invocation *inv, const char *name)
{
	for (size_t i = 0; i < inv->options.count; i++) {
		const struct hx_option *option = inv->options.values[i].option;
		const char *rest;

		if (option->id >= HX_OPTION_COMMON ||
		    is_of(inv->command, option->summary, name, &rest))
			continue;
		(void)hx_report_usage(
			inv->command->name, "'%s' has no option '--%s'", name, option->name);
		if (strcmp(name, inv->command->name) == 0)
			hx_report_hint("it belongs to an action; see 'hapax help %s'", name);
		else
			hx_report_hint(
				"'hapax %s %s --help' lists its options", inv->command->name, name);
		return HX_EXIT_USAGE;
	}
	return HX_EXIT_OK;
}

/* The names of all actions, in the order of help. */
static void list_names(const struct command *command, char out[NAMES_SIZE])
{
	size_t used = 0;

	out[0] = '\0';
	for (const struct command_action *action = command->actions; action->name != NULL;
	     action++) {
		const char *before = action == command->actions ? ""
			: action[1].name == NULL                ? " or "
								: ", ";

		used += (size_t)snprintf(
			out + used, NAMES_SIZE - used, "%s%s", before, action->name);
		assert(used < NAMES_SIZE);
	}
}

static int report_unknown(const struct command *command, const char *name)
{
	char names[NAMES_SIZE];
	struct hx_suggest suggest;

	hx_suggest_init(&suggest, name);
	for (const struct command_action *action = command->actions; action->name != NULL; action++)
		hx_suggest_consider(&suggest, action->name);
	(void)hx_report_usage(command->name, "unknown action '%s'", name);
	list_names(command, names);
	if (suggest.best != NULL)
		hx_report_hint("did you mean 'hapax %s %s'?", command->name, suggest.best);
	else
		hx_report_hint("use %s", names);
	return HX_EXIT_USAGE;
}

int hx_action_check(struct hx_invocation *inv)
{
	const struct command *command = inv->command;
	const struct command_action *action;
	char names[NAMES_SIZE];
	size_t count;

	if (inv->options.operand_count == 0 && command->run != NULL)
		return check_options(inv, command->name);
	if (inv->options.operand_count == 0) {
		(void)hx_report_usage(command->name, "missing action");
		list_names(command, names);
		hx_report_hint("use %s", names);
		return HX_EXIT_USAGE;
	}
	action = hx_action_find(command, inv->options.operands[0]);
	if (action == NULL)
		return report_unknown(command, inv->options.operands[0]);
	inv->flags |= action->flags;
	count = inv->options.operand_count - 1;
	if (count >= action->operands.min && count <= action->operands.max)
		return check_options(inv, action->name);
	if (count < action->operands.min)
		(void)hx_report_usage(command->name, "missing argument");
	else
		(void)hx_report_usage(
			command->name, "unexpected argument '%s'",
			inv->options.operands[action->operands.max + 1]);
	hx_report_hint(
		"usage: hapax %s %s%s%s", command->name, action->name,
		action->usage[0] != '\0' ? " " : "", action->usage);
	return HX_EXIT_USAGE;
}

int hx_action_run(struct hx_invocation *inv)
{
	const struct command_action *action;

	if (inv->options.operand_count == 0)
		return inv->command->run(inv);
	action = hx_action_find(inv->command, inv->options.operands[0]);
	assert(action != NULL);
	inv->options.operands++;
	inv->options.operand_count--;
	return action->run(inv);
}

/* Is the line, or a part of a pipe, a call of this action? */
static bool is_call(const char *line, const char *call)
{
	const char *at = strstr(line, call);

	return at != NULL && (at[strlen(call)] == ' ' || at[strlen(call)] == '\0');
}

const struct command *hx_action_as_command(
	const struct command *command, const struct command_action *action)
{
	static struct hx_option options[OPTIONS_MAX];
	static struct command_example examples[EXAMPLES_MAX];
	static struct command result;
	static char name[32];
	char call[48];
	size_t count = 0;

	(void)snprintf(name, sizeof(name), "%s %s", command->name, action->name);
	(void)snprintf(call, sizeof(call), "hapax %s", name);
	for (const struct hx_option *row = command->options; row != NULL && row->name != NULL;
	     row++) {
		const char *rest;

		if (!is_of(command, row->summary, action->name, &rest))
			continue;
		assert(count + 1 < OPTIONS_MAX);
		options[count] = *row;
		options[count++].summary = rest;
	}
	options[count] = (struct hx_option){.name = NULL};
	count = 0;
	for (const struct command_example *row = command->examples; row->line != NULL; row++) {
		if (!is_call(row->line, call))
			continue;
		assert(count + 1 < EXAMPLES_MAX);
		examples[count++] = *row;
	}
	examples[count] = (struct command_example){NULL, NULL};
	result = (struct command){
		.name = name,
		.summary = action->summary,
		.usage = action->usage,
		.description = action->description,
		.flags = command->flags | action->flags,
		.options = options,
		.exits = action->exits,
		.examples = examples,
	};
	return &result;
}
