/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_check.c - hapax check: mark a key as seen and report whether it is new.
 */
#include <hapax/hapax.h>

#include "cli/frame/key_command.h"
#include "cli/input/payload.h"
#include "cli/print/outcome_out.h"

enum { OPTION_PAYLOAD = 1 };

static const struct hx_option options[] = {
	{OPTION_PAYLOAD, "payload", 0, HX_OPTION_TEXT, "FILE|-",
	 "also compare the SHA-256 of the payload", NULL},
	{.name = NULL},
};

static int print(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	bool is_first = op->outcome == HAPAX_OUTCOME_ACQUIRED;

	if (inv->settings.format == HX_FORMAT_JSON) {
		hx_outcome_out_json(&inv->out, op);
	} else if (is_first) {
		hx_out_colored(&inv->out, HX_COLOR_GREEN, "first");
		hx_out_text(&inv->out, "\n");
	} else {
		hx_outcome_out_text(&inv->out, op, hx_settings_now_ms(store));
	}
	if (is_first)
		hx_settings_tidy(store);
	return hx_outcome_out_exit(op->outcome);
}

static int run_check(struct hx_invocation *inv)
{
	const struct hx_option_value *payload = hx_options_get(&inv->options, OPTION_PAYLOAD);
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	struct hapax_op op;
	int code = hx_key_command_init(inv, HAPAX_OP_CHECK, &op);

	if (code == HX_EXIT_OK && payload != NULL) {
		code = hx_payload_fingerprint(inv->command->name, payload->text, fingerprint);
		op.fingerprint = fingerprint;
	}
	return code == HX_EXIT_OK ? hx_key_command_run(inv, HX_OPEN_CREATE, &op, print) : code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "first: do the work"},
	{HX_EXIT_NO, "duplicate: the key was seen before"},
	{HX_EXIT_MISMATCH, "mismatch: the key was used with a different payload"},
	{HX_EXIT_NO_INPUT, "the payload could not be read; nothing changed"},
	{HX_EXIT_BUSY, "in progress (retry later), or parked (run 'hapax resolve')"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax check order-17 && echo 'ship it'", "run a command for the first delivery only"},
	{"hapax check order-17 --ttl 7d -o json", "remember the key for a week; print JSON"},
	{"printf '{\"total\":42}' | hapax check order-18 --payload -",
	 "detect a repeated key with a different payload"},
	{"hapax check order-17 --scope acme/billing", "use the scope of one tenant and group"},
	{NULL, NULL},
};

const struct command hx_cmd_check = {
	.name = "check",
	.summary = "mark a key as seen and report whether it is new (at most once)",
	.usage = "KEY [--payload FILE|-] [OPTION]...",
	.description =
		"Marks KEY as seen in one step and reports whether it is new within its TTL. Of any\n"
		"number of concurrent callers, exactly one gets 'first'.\n"
		"\n"
		"This is at most once: the key is marked before the work, so a crash after the check\n"
		"loses the work. In a script:\n"
		"\n"
		"  hapax check \"$id\"; case $? in\n"
		"  0)  do_the_work ;;             # first\n"
		"  1)  ;;                         # duplicate: nothing to do\n"
		"  75) exit 75 ;;                 # in progress: retry later\n"
		"  *)  exit 1 ;;                  # not decided: see the message\n"
		"  esac\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_TTL,
	.operands_min = 1,
	.operands_max = 1,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_check,
};
