/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_completion.c - hapax completion: print a completion script for a shell.
 *
 * Everything comes from the tables of help and the parser, so it is always current.
 */
#include <string.h>

#include "base/macros.h"
#include "cli/frame/command.h"
#include "cli/tools/completion.h"
#include "cli/frame/report.h"
#include "base/suggest.h"

static const struct {
	const char *name;
	hx_completion_fn *write;
} shells[] = {
	{"bash", hx_completion_bash},
	{"zsh", hx_completion_zsh},
	{"fish", hx_completion_fish},
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
	.operands_min = 1,
	.operands_max = 1,
	.examples = examples,
	.run = run_completion,
};
