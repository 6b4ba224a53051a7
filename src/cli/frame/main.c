/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the program hapax: from argv to a command.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macros.h"
#include "cli/frame/command.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"

static bool is_closed(int fd)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;

	return io->ops->stat(io->context, fd, &stat) == -EBADF;
}

/*
 * If a standard descriptor is closed at start, the next opened file gets its number, and messages
 * would land in a database. Without standard output the program ends before it does anything.
 * Closed input and error are opened on /dev/null.
 */
static int guard_descriptors(void)
{
	static const int others[] = {STDIN_FILENO, STDERR_FILENO};
	const struct hx_io *io = hx_io_system();

	if (is_closed(STDOUT_FILENO)) {
		if (!is_closed(STDERR_FILENO))
			hx_report(NULL, "standard output is closed; nothing changed");
		return HX_EXIT_IO;
	}
	for (size_t i = 0; i < HX_COUNT(others); i++) {
		if (!is_closed(others[i]))
			continue;
		/* Open it for writing, so that a read fails instead of returning nothing. */
		if (io->ops->open(io->context, "/dev/null", HX_IO_WRITE, 0) != others[i])
			return HX_EXIT_OS;
	}
	return HX_EXIT_OK;
}

static int run_option(const char *option)
{
	static char *no_arguments[] = {NULL};

	if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0)
		return hx_command_run(&hx_cmd_help, 0, no_arguments);
	if (strcmp(option, "-V") == 0 || strcmp(option, "--version") == 0)
		return hx_command_run(&hx_cmd_version, 0, no_arguments);
	return hx_report_misuse(
		NULL, "options follow the command: hapax check KEY --ttl 1h",
		"unexpected option '%s' before the command", option);
}

/* Does this command pass on the exit codes of the program that it runs? */
static bool is_wrapper(const char *name)
{
	const struct command *command = hx_command_find(name);

	return command != NULL && (command->flags & COMMAND_WRAPPER) != 0;
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct hx_out err;
	int code;

	hx_interrupt_ignore_writes();
	code = guard_descriptors();
	if (code != HX_EXIT_OK)
		return argc > 1 && is_wrapper(argv[1]) ? HX_EXIT_WRAPPER : code;
	if (argc < 2) {
		hx_out_init(&err, stderr);
		hx_cmd_help_overview(&err);
		return HX_EXIT_USAGE;
	}
	if (argv[1][0] == '-')
		return run_option(argv[1]);
	command = hx_command_find(argv[1]);
	if (command == NULL)
		return hx_command_unknown(argv[1]);
	return hx_command_run(command, argc - 2, argv + 2);
}
