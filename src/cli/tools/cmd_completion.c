/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_completion.c - hapax completion: print a completion script for a shell.
 *
 * Everything comes from the tables of help and the parser, so it is always current.
 */
#include <string.h>

#include "base/macros.h"
#include "cli/frame/command.h"
#include "cli/frame/report.h"
#include "base/suggest.h"

static const struct hx_option help_option = {
	.name = "help", .letter = 'h', .kind = HX_OPTION_FLAG, .summary = "show help"};

/* Called for each option of a command, including the common ones and --help. */
typedef void option_fn(
	struct hx_out *out, const struct command *command, const struct hx_option *option);

static void each_option(struct hx_out *out, const struct command *command, option_fn *each)
{
	if (command->options != NULL)
		for (const struct hx_option *o = command->options; o->name != NULL; o++)
			each(out, command, o);
	if (command->flags & COMMAND_STORE)
		for (const struct hx_option *o = hx_common_options; o->name != NULL; o++)
			each(out, command, o);
	for (const struct hx_option *o = hx_every_options; o->name != NULL; o++)
		each(out, command, o);
	each(out, command, &help_option);
}

/* Does it take a value as a separate word? */
static bool takes_word(const struct hx_option *option)
{
	return option->kind != HX_OPTION_FLAG && option->kind != HX_OPTION_MAYBE;
}

static bool takes_file(const struct hx_option *option)
{
	return option->value != NULL && strncmp(option->value, "FILE", 4) == 0;
}

static void write_command_names(struct hx_out *out)
{
	for (size_t i = 0; hx_commands[i] != NULL; i++)
		hx_out_printf(out, "%s%s", i > 0 ? " " : "", hx_commands[i]->name);
}

static void write_choices(struct hx_out *out, const struct hx_option *option)
{
	for (size_t i = 0; option->choices[i] != NULL; i++)
		hx_out_printf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
}

/* Write text on one line, for single quotes; characters in special get a backslash. */
static void write_quoted(struct hx_out *out, const char *text, const char *special)
{
	for (; *text != '\0'; text++) {
		if (*text == '\n')
			hx_out_text(out, " ");
		else if (*text == '\'')
			hx_out_text(out, "'\\''");
		else if (strchr(special, *text) != NULL)
			hx_out_printf(out, "\\%c", *text);
		else
			hx_out_write(out, text, 1);
	}
}

static void bash_option(
	struct hx_out *out, const struct command *command, const struct hx_option *option)
{
	(void)command;
	hx_out_printf(out, " --%s%s", option->name, option->kind == HX_OPTION_MAYBE ? " " : "");
	if (option->kind == HX_OPTION_MAYBE)
		hx_out_printf(out, "--%s=", option->name);
}

static void bash_values(
	struct hx_out *out, const struct command *command, const struct hx_option *option)
{
	if (!takes_word(option) || takes_file(option))
		return;
	hx_out_printf(out, "\t'%s --%s'", command->name, option->name);
	if (option->letter != 0)
		hx_out_printf(out, " | '%s -%c'", command->name, option->letter);
	hx_out_text(out, ") words='");
	if (option->kind == HX_OPTION_CHOICE)
		write_choices(out, option);
	hx_out_text(out, "' ;;\n");
}

static void write_bash(struct hx_out *out)
{
	hx_out_text(
		out,
		"# hapax completion bash\n"
		"_hapax() {\n"
		"\tlocal current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words= i\n"
		"\tCOMPREPLY=()\n"
		"\tif ((COMP_CWORD == 1)); then\n"
		"\t\tCOMPREPLY=($(compgen -W '");
	write_command_names(out);
	hx_out_text(
		out,
		"' -- \"$current\"))\n"
		"\t\treturn\n"
		"\tfi\n"
		"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		"\t\t[[ ${COMP_WORDS[i]} == -- ]] || continue\n"
		"\t\t((i + 1 < COMP_CWORD)) || COMPREPLY=($(compgen -c -- \"$current\"))\n"
		"\t\treturn\n"
		"\tdone\n"
		"\tcase \"$command ${COMP_WORDS[COMP_CWORD - 1]}\" in\n");
	for (size_t i = 0; hx_commands[i] != NULL; i++)
		each_option(out, hx_commands[i], bash_values);
	hx_out_text(out, "\t'help help') words='");
	write_command_names(out);
	hx_out_text(
		out,
		"' ;;\n"
		"\t'completion completion') words='bash zsh fish' ;;\n"
		"\t*)\n"
		"\t\t[[ $current == -* ]] || return\n"
		"\t\tcase $command in\n");
	for (size_t i = 0; hx_commands[i] != NULL; i++) {
		hx_out_printf(out, "\t\t%s) words='", hx_commands[i]->name);
		each_option(out, hx_commands[i], bash_option);
		hx_out_text(out, "' ;;\n");
	}
	hx_out_text(
		out,
		"\t\tesac ;;\n"
		"\tesac\n"
		"\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
		"}\n"
		"complete -o default -F _hapax hapax\n");
}

static void zsh_value(struct hx_out *out, const struct hx_option *option)
{
	write_quoted(out, option->value, ":\\");
	if (option->kind == HX_OPTION_CHOICE) {
		hx_out_text(out, ":(");
		write_choices(out, option);
		hx_out_text(out, ")");
	} else {
		hx_out_text(out, takes_file(option) ? ":_files" : ": ");
	}
}

/* Write the part after an option's name; colons say whether a value must or may follow. */
static void zsh_spec(struct hx_out *out, const char *colons, const struct hx_option *option)
{
	hx_out_text(out, "'[");
	write_quoted(out, option->summary, "[]\\");
	hx_out_printf(out, "]%s", colons);
	if (colons[0] != '\0')
		zsh_value(out, option);
	hx_out_text(out, "'");
}

static void zsh_option(
	struct hx_out *out, const struct command *command, const struct hx_option *option)
{
	static const char line[] = " \\\n\t\t\t";
	char letter = option->letter;

	(void)command;
	hx_out_text(out, line);
	if (option->kind == HX_OPTION_MAYBE) {
		/* The value belongs to the long name only. */
		if (letter != 0) {
			hx_out_printf(out, "-%c", letter);
			zsh_spec(out, "", option);
			hx_out_text(out, line);
		}
		hx_out_printf(out, "--%s=-", option->name);
		zsh_spec(out, "::", option);
		return;
	}
	if (letter != 0)
		hx_out_printf(
			out, "'(-%c --%s)'{-%c,--%s}", letter, option->name, letter, option->name);
	else
		hx_out_printf(out, "--%s", option->name);
	zsh_spec(out, takes_word(option) ? ":" : "", option);
}

/* The completion of a command's operands. */
static const char *zsh_operands(const struct command *command)
{
	if (command->flags & COMMAND_WRAPPER)
		return "'*::command:_normal'";
	if (command == &hx_cmd_help)
		return "'1:command:(${=commands_only})'";
	if (command == &hx_cmd_completion)
		return "'1:shell:(bash zsh fish)'";
	return command->flags & COMMAND_STORE ? "'*: :'" : "'*:file:_files'";
}

static void write_zsh(struct hx_out *out)
{
	hx_out_text(
		out,
		"#compdef hapax\n"
		"_hapax() {\n"
		"\tlocal -a commands\n"
		"\tlocal commands_only='");
	write_command_names(out);
	hx_out_text(out, "'\n\tcommands=(\n");
	for (size_t i = 0; hx_commands[i] != NULL; i++) {
		hx_out_printf(out, "\t\t'%s:", hx_commands[i]->name);
		write_quoted(out, hx_commands[i]->summary, ":\\");
		hx_out_text(out, "'\n");
	}
	hx_out_text(
		out,
		"\t)\n"
		"\tif ((CURRENT == 2)); then\n"
		"\t\t_describe -t commands 'hapax command' commands\n"
		"\t\treturn\n"
		"\tfi\n"
		"\tlocal command=$words[2]\n"
		"\tshift words\n"
		"\t((CURRENT--))\n"
		"\tcase $command in\n");
	for (size_t i = 0; hx_commands[i] != NULL; i++) {
		hx_out_printf(out, "\t%s)\n\t\t_arguments -s", hx_commands[i]->name);
		each_option(out, hx_commands[i], zsh_option);
		hx_out_printf(out, " \\\n\t\t\t%s ;;\n", zsh_operands(hx_commands[i]));
	}
	hx_out_text(
		out,
		"\tesac\n"
		"}\n"
		"if [[ $funcstack[1] == _hapax ]]; then _hapax \"$@\"; else compdef _hapax hapax; fi\n");
}

static void fish_option(
	struct hx_out *out, const struct command *command, const struct hx_option *option)
{
	hx_out_printf(
		out, "complete -c hapax -n '__fish_seen_subcommand_from %s' -l %s", command->name,
		option->name);
	if (option->letter != 0)
		hx_out_printf(out, " -s %c", option->letter);
	if (takes_word(option))
		hx_out_text(out, takes_file(option) ? " -r -F" : " -x");
	if (option->kind == HX_OPTION_CHOICE) {
		hx_out_text(out, " -a '");
		write_choices(out, option);
		hx_out_text(out, "'");
	}
	hx_out_text(out, " -d '");
	write_quoted(out, option->summary, "");
	hx_out_text(out, "'\n");
}

static void write_fish(struct hx_out *out)
{
	hx_out_text(out, "# hapax completion fish\n");
	for (size_t i = 0; hx_commands[i] != NULL; i++) {
		const struct command *command = hx_commands[i];

		hx_out_printf(
			out, "complete -c hapax -f -n __fish_use_subcommand -a %s -d '",
			command->name);
		write_quoted(out, command->summary, "");
		hx_out_text(out, "'\n");
		each_option(out, command, fish_option);
	}
	hx_out_text(out, "complete -c hapax -f -n '__fish_seen_subcommand_from help' -a '");
	write_command_names(out);
	hx_out_text(
		out,
		"'\n"
		"complete -c hapax -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh "
		"fish'\n"
		"complete -c hapax -n '__fish_seen_subcommand_from run' -a "
		"'(__fish_complete_subcommand)'\n");
}

static const struct {
	const char *name;
	void (*write)(struct hx_out *out);
} shells[] = {
	{"bash", write_bash},
	{"zsh", write_zsh},
	{"fish", write_fish},
};

static int run_completion(struct hx_invocation *inv)
{
	const char *name = inv->options.operands[0];
	struct hx_suggest suggest;

	hx_suggest_init(&suggest, name);
	for (size_t i = 0; i < HX_COUNT(shells); i++) {
		if (strcmp(shells[i].name, name) == 0) {
			shells[i].write(&inv->out);
			return HX_EXIT_OK;
		}
		hx_suggest_consider(&suggest, shells[i].name);
	}
	(void)hx_report_usage(inv->command->name, "'%s' is not one of bash, zsh, fish", name);
	if (suggest.best != NULL)
		hx_report_hint("did you mean '%s'?", suggest.best);
	return HX_EXIT_USAGE;
}

static const struct command_example examples[] = {
	{"hapax completion bash > hapax.bash", "then, in bash: . ./hapax.bash"},
	{"hapax completion fish", "for ~/.config/fish/completions/hapax.fish"},
	{NULL, NULL},
};

const struct command hx_cmd_completion = {
	.name = "completion",
	.summary = "print a completion script for bash, zsh or fish",
	.usage = "bash|zsh|fish",
	.description = "  bash  . <(hapax completion bash), or install it as "
		       "/etc/bash_completion.d/hapax\n  zsh   hapax completion zsh > "
		       "DIRECTORY_IN_FPATH/_hapax\n  fish  hapax completion fish > "
		       "~/.config/fish/completions/hapax.fish\n",
	.operands = {1, 1},
	.examples = examples,
	.run = run_completion,
};
