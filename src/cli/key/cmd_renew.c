/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_renew.c - hapax renew: the work takes longer than the lease.
 */
#include <hapax/hapax.h>

#include "base/limits.h"
#include "cli/frame/command.h"
#include "cli/input/duration_text.h"
#include "cli/key/holder.h"

enum { OPTION_LEASE = 1 };

static const struct hx_option options[] = {
	HX_HOLDER_OPTION_ROW,
	{OPTION_LEASE, "lease", 0, HX_OPTION_TEXT, "D", "how long it holds from now on; 30s", NULL},
	{.name = NULL},
};

static int run(struct hx_invocation *inv)
{
	const struct hx_option_value *lease = hx_options_get(&inv->options, OPTION_LEASE);
	struct hapax_op op = {.type = HAPAX_OP_RENEW};
	int code = HX_EXIT_OK;

	if (lease != NULL)
		code = hx_duration_text_read(
			inv->command->name, "--lease", lease->text, HX_LEASE_MS_MAX, &op.lease_ms);
	return code == HX_EXIT_OK ? hx_holder_run(inv, &op) : code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "renewed: the lease begins anew"},
	{HX_EXIT_FENCED, "fenced: the token does not hold the key, or it is done; stop the work"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"t=$(hapax claim order-31) && hapax renew order-31 --token $t --lease 5m",
         "five more minutes"},
	{NULL, NULL},
};

const struct command hx_cmd_renew = {
	.name = "renew",
	.summary = "hold a claim for another lease",
	.usage = "KEY --token N [--lease D] [OPTION]...",
	.description =
		"Restarts the lease of a claim. A parked key is claimed again by it. Whoever is\n"
		"fenced has lost the key and must stop: its work no longer counts.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.operands_min = 1,
	.operands_max = 1,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run,
};
