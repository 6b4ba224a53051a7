/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_forget.c - hapax forget: delete a record, so that its key counts as new.
 */
#include <hapax/hapax.h>

#include "cli/frame/key_command.h"
#include "cli/frame/report.h"
#include "cli/print/record_out.h"

enum { OPTION_FORCE = 1 };

static const struct hx_option options[] = {
	{OPTION_FORCE, "force", 0, HX_OPTION_FLAG, NULL,
	 "also delete a claimed or parked key; fences the holder", NULL},
	{.name = NULL},
};

static void print_json(struct hx_out *out, const struct hapax_op *op)
{
	struct hx_json_write json;

	hx_out_json(&json, out);
	hx_json_write_text(&json, "outcome", hapax_outcome_name(op->outcome));
	hx_record_out_name(&json, op->tenant, op->group, op->key);
	if (op->outcome != HAPAX_OUTCOME_ABSENT)
		hx_json_write_text(&json, "state", hapax_state_name(op->record->state));
	hx_json_write_end(&json, '}');
}

static void print_text(struct hx_invocation *inv, const struct hapax_op *op)
{
	struct hx_out *out = &inv->out;

	hx_key_command_name(inv, op);
	if (op->outcome == HAPAX_OUTCOME_APPLIED)
		hx_out_printf(out, "forgotten  was %s\n", hapax_state_name(op->record->state));
	else if (op->outcome == HAPAX_OUTCOME_BUSY)
		hx_out_printf(out, "busy  is %s\n", hapax_state_name(op->record->state));
	else if (op->outcome == HAPAX_OUTCOME_ABSENT)
		hx_out_text(out, "absent\n");
}

static int print(struct hx_invocation *inv, struct hapax_store *store, struct hapax_op *op)
{
	(void)store;
	if (inv->settings.format == HX_FORMAT_JSON)
		print_json(&inv->out, op);
	else
		print_text(inv, op);
	if (op->outcome == HAPAX_OUTCOME_APPLIED)
		return HX_EXIT_OK;
	if (op->outcome == HAPAX_OUTCOME_ABSENT)
		return HX_EXIT_NO;
	if (op->outcome != HAPAX_OUTCOME_BUSY)
		return HX_EXIT_SOFTWARE;
	hx_report(
		inv->command->name, "cannot forget '%.*s': it is %s", (int)op->key.size,
		(const char *)op->key.data, hapax_state_name(op->record->state));
	hx_report_hint("--force deletes it and fences the holder; the work may then "
		       "run twice");
	return HX_EXIT_BUSY;
}

static int run_forget(struct hx_invocation *inv)
{
	struct hapax_op op;
	int code = hx_key_command_init(inv, HAPAX_OP_FORGET, &op);

	if (hx_options_has(&inv->options, OPTION_FORCE))
		op.flags |= HAPAX_OP_FORCE;
	return code == HX_EXIT_OK ? hx_key_command_each(inv, HX_OPEN_EXISTING, &op, print) : code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "removed"},
	{HX_EXIT_NO, "absent: there was nothing to remove"},
	{HX_EXIT_BUSY, "busy: the key is claimed or parked, and --force was not given"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"hapax forget order-17", "let the next delivery run"},
	{"hapax forget order-31 order-32 order-33", "forget several keys, one line for each"},
	{"hapax forget order-17 --force", "delete it even while it is claimed"},
	{NULL, NULL},
};

const struct command hx_cmd_forget = {
	.name = "forget",
	.summary = "delete the record of a key",
	.usage = "KEY... [--force] [OPTION]...",
	.description =
		"Deletes the record of KEY: its next delivery counts as the first. A claimed or parked key\n"
		"requires --force. Of several keys, each has a line of its own; the exit status is the\n"
		"highest.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE | COMMAND_ANSWERS,
	.operands = {1, SIZE_MAX},
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run_forget,
};
