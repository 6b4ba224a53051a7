/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - a command as data, and its input when it runs.
 *
 * One file per command, cmd_<name>.c, defines one const struct command (cmd_token.c has the four
 * that differ in data alone). Help, the parser and did-you-mean use the table, so a command states
 * nothing twice. To add a command, write its file and add a line to command.c and to meson.build.
 */
#ifndef HX_CLI_FRAME_COMMAND_H
#define HX_CLI_FRAME_COMMAND_H

#include <stddef.h>

#include "cli/frame/exit_code.h"
#include "cli/frame/option.h"
#include "cli/print/out.h"
#include "cli/frame/settings.h"

struct command;

struct hx_invocation {
	const struct command *command;
	unsigned flags; /* of the command and its action */
	struct hx_options options;
	struct hx_settings settings; /* for commands that use a store; of others only the format */
	struct hx_out out;           /* for data; everything else goes through report.h */
};

enum command_flags {
	COMMAND_STORE = 1 << 0, /* takes the common options; settings are read */
	COMMAND_SCOPE = 1 << 1, /* --scope has an effect */
	COMMAND_TTL = 1 << 2,   /* --ttl has an effect */
	/*
	 * Its operands are another program, whose exit status it passes on. They end the options,
	 * and every failure of our own is HX_EXIT_WRAPPER.
	 */
	COMMAND_WRAPPER = 1 << 3,
	COMMAND_STORE_OPERANDS = 1 << 4, /* operands may be URLs of stores */
	COMMAND_ANSWERS = 1 << 5,        /* by its exit status: with -q it prints no data */
};

/* A line that works as written; tests run every one. */
struct command_example {
	const char *line;
	const char *summary;
};

/* How many operands there may be. */
struct command_operands {
	size_t min;
	size_t max;
};

struct command_exit {
	int code;
	const char *meaning;
};

/* Returns the exit code. Reports each failure once. */
typedef int command_run_fn(struct hx_invocation *inv);

/* Print a list that is kept elsewhere, so that help need not repeat it. */
typedef void command_list_fn(struct hx_out *out);

/* What `hapax COMMAND ACTION` does (action.h). Its run gets the operands after its name. */
struct command_action {
	const char *name;
	const char *summary;     /* as in struct command; the same for the next two */
	const char *usage;       /* what follows the action's name */
	const char *description; /* NULL: the summary says it all */
	unsigned flags;          /* enum command_flags, in addition to the command's */
	struct command_operands operands;
	const struct command_exit *exits;
	command_run_fn *run;
};

struct command {
	const char *name;
	const char *summary;     /* for the list of commands: lower case, no full stop */
	const char *usage;       /* what follows the name: operands in capitals */
	const char *description; /* sentences in lines of at most 80 columns; NULL: none */
	command_list_fn *list;   /* prints a list after it with hx_cmd_help_item(); NULL: none */
	unsigned flags;          /* enum command_flags */
	struct command_operands operands;
	const struct hx_option *options;        /* its own; ends with an option without a name */
	const struct command_exit *exits;       /* its own, ascending; ends with a NULL meaning */
	const struct command_example *examples; /* ends with a NULL line */
	command_run_fn *run;
	const struct command_action *actions; /* besides or instead of run; ends without a name */
};

extern const struct command hx_cmd_backtest;
extern const struct command hx_cmd_check;
extern const struct command hx_cmd_claim;
extern const struct command hx_cmd_complete;
extern const struct command hx_cmd_completion;
extern const struct command hx_cmd_demo_upstream;
extern const struct command hx_cmd_config;
extern const struct command hx_cmd_consume;
extern const struct command hx_cmd_explain;
extern const struct command hx_cmd_decisions;
extern const struct command hx_cmd_forget;
extern const struct command hx_cmd_fsck;
extern const struct command hx_cmd_gc;
extern const struct command hx_cmd_journal;
extern const struct command hx_cmd_help;
extern const struct command hx_cmd_key;
extern const struct command hx_cmd_keys;
extern const struct command hx_cmd_lookup;
extern const struct command hx_cmd_outbox;
extern const struct command hx_cmd_park;
extern const struct command hx_cmd_release;
extern const struct command hx_cmd_renew;
extern const struct command hx_cmd_resolve;
extern const struct command hx_cmd_run;
extern const struct command hx_cmd_serve;
extern const struct command hx_cmd_stats;
extern const struct command hx_cmd_store;
extern const struct command hx_cmd_uuid7;
extern const struct command hx_cmd_version;

/* Every command, in the order of help; ends with NULL. */
extern const struct command *const hx_commands[];

/* NULL: no command has that name. */
const struct command *hx_command_find(const char *name);

/* Report an unknown command and suggest the nearest one. Returns HX_EXIT_USAGE. */
int hx_command_unknown(const char *name);

/* Run command with the arguments that follow its name. Returns the exit code. */
int hx_command_run(const struct command *command, int argc, char **argv);

/* Print the output of `hapax help`: the overview, or one command. */
void hx_cmd_help_overview(struct hx_out *out);
void hx_cmd_help_command(struct hx_out *out, const struct command *command);

/* Print a line of a two-column list. */
void hx_cmd_help_item(struct hx_out *out, const char *name, const char *summary);

#endif
