/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_release.c - hapax release: the work failed; the next claim runs.
 */
#include <hapax/hapax.h>

#include "cli/frame/command.h"
#include "cli/key/holder.h"

enum { OPTION_ERROR = 1 };

static const struct hx_option options[] = {
	HX_HOLDER_OPTION_ROW,
	{OPTION_ERROR, "error", 0, HX_OPTION_TEXT, "TEXT", "why it failed, for people to read",
         NULL},
	{.name = NULL},
};

static int run(struct hx_invocation *inv)
{
	const struct hx_option_value *error = hx_options_get(&inv->options, OPTION_ERROR);
	struct hapax_op op = {
		.type = HAPAX_OP_RELEASE,
		.error = hapax_bytes_from_text(error != NULL ? error->text : NULL),
	};

	return hx_holder_run(inv, &op);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "released: the next claim runs at once"},
	{HX_EXIT_FENCED,
         "fenced: the token does not hold the key, or it is done; nothing was changed"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"t=$(hapax claim order-33) && hapax release order-33 --token $t --error 'no stock'",
         "give it back"},
	{NULL, NULL},
};

const struct command hx_cmd_release = {
	.name = "release",
	.summary = "say that the work of a claim failed: the next claim runs",
	.usage = "KEY --token N [--error TEXT] [OPTION]...",
	.description =
		"Ends a claim without success. The number of attempts and the error are kept for\n"
		"the key's TTL, and the next claim runs. hapax never repeats work by itself.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.operands_min = 1,
	.operands_max = 1,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run,
};
