/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_action.c - the actions of a command: which one is meant, what it takes, and what of the
 * command's tables belongs to it. The messages: tests/cli/test_frame.py.
 */
#include "cli/frame/action.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int run_action(struct hx_invocation *inv)
{
	assert_true(inv->options.operand_count == 0 || inv->options.operands[0] != NULL);
	return (int)(40 + inv->options.operand_count);
}

static const struct hx_option options[] = {
	{.id = 1, .name = "force", .summary = "add, drop: do it all the same"},
	{.id = 2, .name = "fast", .summary = "do it at once"},
	{.id = 3, .name = "dry", .summary = "drop: change nothing"},
	{.id = 4, .name = "form", .summary = "a Form: as it is written"},
	{.name = NULL},
};
static const struct command_example examples[] = {
	{"hapax box add a", "one"},
	{"echo x | hapax box add", "one of a pipe"},
	{"hapax box additional", "another action"},
	{NULL, NULL},
};
static const struct command_action actions[] = {
	{.name = "add",
	 .summary = "put one in",
	 .usage = "[NAME]",
	 .operands = {0, 1},
	 .run = run_action},
	{.name = "drop",
	 .summary = "take one out",
	 .usage = "NAME",
	 .operands = {1, 1},
	 .run = run_action},
	{.name = NULL},
};
static const struct command box = {
	.name = "box", .options = options, .examples = examples, .actions = actions};

/* The exit code of the check, with that option (its row) or none (-1). */
static int check(char **operands, size_t count, int row)
{
	struct hx_invocation inv = {.command = &box};

	inv.options.operands = operands;
	inv.options.operand_count = count;
	if (row >= 0)
		inv.options.values[inv.options.count++].option = &options[row];
	return hx_action_check(&inv);
}

static void only_an_action_that_fits_is_accepted(void **state)
{
	char add[] = "add", drop[] = "drop", odd[] = "ad", name[] = "x";
	char *of_add[] = {add, name, name};
	char *of_drop[] = {drop, name};
	char *of_none[] = {odd};

	(void)state;
	assert_ptr_equal(hx_action_find(&box, "drop"), &actions[1]);
	assert_null(hx_action_find(&box, "dro"));
	assert_int_equal(check(of_add, 0, -1), HX_EXIT_USAGE);
	assert_int_equal(check(of_none, 1, -1), HX_EXIT_USAGE);
	assert_int_equal(check(of_add, 1, -1), HX_EXIT_OK);
	assert_int_equal(check(of_add, 2, -1), HX_EXIT_OK);
	assert_int_equal(check(of_add, 3, -1), HX_EXIT_USAGE);
	assert_int_equal(check(of_drop, 1, -1), HX_EXIT_USAGE);
	assert_int_equal(check(of_drop, 2, -1), HX_EXIT_OK);
}

static void an_option_of_another_action_is_refused(void **state)
{
	char add[] = "add", drop[] = "drop", name[] = "x";
	char *of_add[] = {add};
	char *of_drop[] = {drop, name};

	(void)state;
	assert_int_equal(check(of_add, 1, 0), HX_EXIT_OK);
	assert_int_equal(check(of_add, 1, 1), HX_EXIT_OK);
	assert_int_equal(check(of_add, 1, 2), HX_EXIT_USAGE);
	assert_int_equal(check(of_drop, 2, 2), HX_EXIT_OK);
	/* Words before a colon that are not names of actions are part of the summary. */
	assert_int_equal(check(of_add, 1, 3), HX_EXIT_OK);
}

static void an_action_gets_the_operands_after_its_name(void **state)
{
	char drop[] = "drop", name[] = "x";
	char *operands[] = {drop, name};
	struct hx_invocation inv = {.command = &box};

	(void)state;
	inv.options.operands = operands;
	inv.options.operand_count = 2;
	assert_int_equal(hx_action_run(&inv), 41);
}

static void help_shows_what_belongs_to_the_action(void **state)
{
	const struct command *add = hx_action_as_command(&box, &actions[0]);

	(void)state;
	assert_string_equal(add->name, "box add");
	assert_string_equal(add->usage, "[NAME]");
	assert_string_equal(add->options[0].summary, "do it all the same");
	assert_string_equal(add->options[1].name, "fast");
	assert_string_equal(add->options[2].summary, "a Form: as it is written");
	assert_null(add->options[3].name);
	assert_string_equal(add->examples[0].summary, "one");
	assert_string_equal(add->examples[1].summary, "one of a pipe");
	assert_null(add->examples[2].line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_an_action_that_fits_is_accepted),
		cmocka_unit_test(an_option_of_another_action_is_refused),
		cmocka_unit_test(an_action_gets_the_operands_after_its_name),
		cmocka_unit_test(help_shows_what_belongs_to_the_action),
	};

	return cmocka_run_group_tests_name("action", tests, NULL, NULL);
}
