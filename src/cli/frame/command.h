/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - a command as data, and what it is given to run.
 *
 * One file per command, cmd_<name>.c, which defines one const struct command (cmd_token.c has the
 * four that differ in data alone). Help, the parser and did-you-mean are made from the table, so a
 * command says nothing twice. A new command is: its file, its line in command.c and in meson.build.
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
	struct hx_options options;
	struct hx_settings settings; /* of commands that use a store, else zero */
	struct hx_out out;           /* data goes here, all else through report.h */
};

enum command_flags {
	COMMAND_STORE = 1 << 0, /* takes the common options; settings are read */
	COMMAND_SCOPE = 1 << 1, /* --scope means something here */
	COMMAND_TTL = 1 << 2,   /* so does --ttl */
	/*
	 * Its operands are another program, whose exit status it passes on: they end the
	 * options, and every failure of our own is HX_EXIT_WRAPPER.
	 */
	COMMAND_WRAPPER = 1 << 3,
	COMMAND_STORE_OPERANDS = 1 << 4, /* operands may be URLs of stores */
};

/* A line that works as it stands; tests run every one of them. */
struct command_example {
	const char *line;
	const char *summary;
};

struct command_exit {
	int code;
	const char *meaning;
};

/* Returns the exit code. Has reported, once, whatever went wrong. */
typedef int command_run_fn(struct hx_invocation *inv);

/* Print what is known elsewhere, so that help need not say it again. */
typedef void command_list_fn(struct hx_out *out);

/* What --help is about when there are operands before it, or NULL. Borrowed until the next call. */
typedef const struct command *command_refine_fn(const struct hx_options *options);

struct command {
	const char *name;
	const char *summary;     /* for the list of commands: lower case, no full stop */
	const char *usage;       /* what follows the name: operands in capitals */
	const char *description; /* sentences in lines of at most 80 columns; NULL: none */
	command_list_fn *list;   /* prints a list after it, of hx_cmd_help_item(); NULL: none */
	unsigned flags;          /* enum command_flags */
	size_t operands_min;
	size_t operands_max;
	const struct hx_option *options;        /* its own; ends with a nameless one */
	const struct command_exit *exits;       /* its own, rising; ends with a NULL meaning */
	const struct command_example *examples; /* ends with a NULL line */
	command_run_fn *run;
	command_refine_fn *refine; /* NULL: its help is all there is */
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

/* Every command in the order in which help lists them; ends with NULL. */
extern const struct command *const hx_commands[];

/* NULL: there is none of that name. */
const struct command *hx_command_find(const char *name);

/* Say that there is no such command, and which one was probably meant. HX_EXIT_USAGE. */
int hx_command_unknown(const char *name);

/* Run command with the arguments that follow its name. Returns the exit code. */
int hx_command_run(const struct command *command, int argc, char **argv);

/* What `hapax help` prints: everything, or one command. */
void hx_cmd_help_overview(struct hx_out *out);
void hx_cmd_help_command(struct hx_out *out, const struct command *command);

/* A line of a list in two columns. */
void hx_cmd_help_item(struct hx_out *out, const char *name, const char *summary);

#endif
