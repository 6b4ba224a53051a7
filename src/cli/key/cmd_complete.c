/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_complete.c - hapax complete: the work is done, keep its result.
 */
#include <hapax/hapax.h>

#include "cli/frame/command.h"
#include "cli/key/holder.h"
#include "cli/input/result_file.h"

enum { OPTION_RESULT = 1, OPTION_DEFINITIVE };

static const struct hx_option options[] = {
	HX_HOLDER_OPTION_ROW,
	{OPTION_RESULT, "result", 0, HX_OPTION_TEXT, "FILE|-",
         "what the work returned; kept up to 256 KiB and replayed", NULL},
	{OPTION_DEFINITIVE, "definitive", 0, HX_OPTION_FLAG, NULL,
         "it failed, and would fail again: keep that", NULL},
	{.name = NULL},
};

static int run(struct hx_invocation *inv)
{
	const struct hx_option_value *path = hx_options_get(&inv->options, OPTION_RESULT);
	bool is_definitive = hx_options_get(&inv->options, OPTION_DEFINITIVE) != NULL;
	struct hapax_op op = {.type = HAPAX_OP_COMPLETE};
	struct hx_result_file file;
	int code = hx_result_file_open(
		&file, inv->command->name, path != NULL ? path->text : NULL,
		is_definitive ? HAPAX_RESULT_DEFINITIVE : HAPAX_RESULT_OK);

	op.result = &file.result;
	if (code == HX_EXIT_OK)
		code = hx_holder_run(inv, &op);
	hx_result_file_close(&file);
	return code;
}

static const struct command_exit exits[] = {
	{HX_EXIT_OK, "done; also when it was done with this token before"},
	{HX_EXIT_DATA, "the result is larger than 64 MiB; nothing was done"},
	{HX_EXIT_NO_INPUT, "the result could not be read; nothing was done"},
	{HX_EXIT_FENCED, "fenced: the token does not hold the key; the result is not kept"},
	{0, NULL},
};

static const struct command_example examples[] = {
	{"t=$(hapax claim o-32) && echo ok | hapax complete o-32 --token $t --result -",
         "done, with a receipt for whoever asks again"},
	{NULL, NULL},
};

const struct command hx_cmd_complete = {
	.name = "complete",
	.summary = "say that the work of a claim is done, and keep its result",
	.usage = "KEY --token N [--result FILE|-] [--definitive] [OPTION]...",
	.description =
		"Ends a claim: from now until its TTL is over every claim of KEY is a duplicate and\n"
		"gets the result. It may be repeated; the result that was stored first stays. A\n"
		"claim whose lease has ended can still be completed as long as nobody took over.\n",
	.flags = COMMAND_STORE | COMMAND_SCOPE,
	.operands_min = 1,
	.operands_max = 1,
	.options = options,
	.exits = exits,
	.examples = examples,
	.run = run,
};
