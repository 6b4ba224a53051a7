/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_park.c - hapax park: nobody knows whether it happened; a person decides.
 */
#include <hapax/hapax.h>

#include "cli/frame/command.h"
#include "cli/key/holder.h"

enum { OPTION_ERROR = 1 };

static const struct hx_option options[] = {
	HX_HOLDER_OPTION_ROW,
	{OPTION_ERROR, "error", 0, HX_OPTION_TEXT, "TEXT", "what is not known, for people to read",
         NULL},
	{.name = NULL},
};

static int run(struct hx_invocation *inv)
{
	const struct hx_option_value *error = hx_options_get(&inv->options, OPTION_ERROR);
	struct hapax_op op = {
		.type = HAPAX_OP_PARK,
		.error = hapax_bytes_from_text(error != NULL ? error->text : NULL),
	};

	return hx_holder_run(inv, &op);
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "parked: nobody runs until 'hapax resolve' decides"},
	{HX_EXIT_FENCED,
         "fenced: the token does not hold the key, or it is done; nothing was changed"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"t=$(hapax claim order-34) && hapax park order-34 --token $t --error 'no answer'",
         "wait for somebody who can find out"},
	{NULL, NULL},
};

const struct command hx_cmd_park = {
	.name = "park",
	.summary = "say that nobody knows whether the work happened: a person decides",
	.usage = "KEY --token N [--error TEXT] [OPTION]...",
	.description =
		"Ends a claim whose outcome is ambiguous: the request was sent and no answer came.\n"
		"From now on every claim is told 'parked', until 'hapax resolve' says that it was\n"
		"done or may be tried again. 'hapax keys --state parked' lists what waits.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.operands_min = 1,
	.operands_max = 1,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run,
};
