/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_version.c - hapax version: print the version.
 */
#include <hapax/hapax.h>

#include "cli/frame/command.h"

static int run_version(struct hx_invocation *inv)
{
	hx_out_printf(&inv->out, "hapax %s\n", hapax_version());
	return HX_EXIT_OK;
}

static const struct command_example examples[] = {
	{"hapax version", "print the installed version"},
	{NULL, NULL},
};

const struct command hx_cmd_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "",
	.examples = examples,
	.run = run_version,
};
