/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option.h - command line options as data, and their parser.
 *
 * The parser accepts --name VALUE, --name=VALUE, -n VALUE, -nVALUE, and --, which ends the options.
 * Options and operands may be mixed. If an option is repeated, the last one counts. Long names
 * cannot be abbreviated: a script must not break when a later version adds an option with the same
 * prefix.
 */
#ifndef HX_CLI_FRAME_OPTION_H
#define HX_CLI_FRAME_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hx_option_kind {
	HX_OPTION_FLAG,   /* takes no value */
	HX_OPTION_TEXT,   /* any value; the command checks it */
	HX_OPTION_CHOICE, /* one of choices */
	HX_OPTION_COUNT,  /* a whole number above 0 */
	HX_OPTION_MAYBE,  /* optional value, given as --name=VALUE only */
};

struct hx_option {
	int id;           /* the command's id for it; above 0, below HX_OPTION_COMMON */
	const char *name; /* without the dashes; NULL ends a table */
	char letter;      /* 0: none */
	enum hx_option_kind kind;
	const char *value;          /* the name of the value in help */
	const char *summary;        /* for help: lower case, no full stop */
	const char *const *choices; /* CHOICE: ends with NULL */
};

/* First id of the options that all commands with a store share (settings.h). */
enum { HX_OPTION_COMMON = 1000 };

/* Of every command, besides --help. */
enum { HX_OPTION_QUIET = HX_OPTION_COMMON + 100, HX_OPTION_IDEMPOTENCY_KEY };
extern const struct hx_option hx_every_options[];

/* Far more than is ever typed; bounds the memory. */
enum { HX_OPTION_VALUES_MAX = 256 };

struct hx_option_value {
	const struct hx_option *option;
	const char *text; /* NULL for a flag and a MAYBE without value; borrowed from argv */
	int64_t number;   /* COUNT: the number; CHOICE: its index */
};

struct hx_options {
	struct hx_option_value values[HX_OPTION_VALUES_MAX];
	size_t count;
	char **operands; /* borrowed from argv, which the parser reorders */
	size_t operand_count;
	int help; /* -h or --help was found; parsing stopped there */
};

enum hx_options_flag {
	/* The first operand ends the options: the rest belongs to another program. */
	HX_OPTIONS_END_AT_OPERAND = 1 << 0,
};

/*
 * Parse argv, whose first element is the first argument, by two tables; common may be NULL. Returns
 * HX_EXIT_OK, or HX_EXIT_USAGE after a message in the name of command.
 */
int hx_options_parse(
	const char *command, const struct hx_option *own, const struct hx_option *common,
	unsigned flags, int argc, char **argv, struct hx_options *ret);

/* The last value of the option with this id; NULL: not given. */
const struct hx_option_value *hx_options_get(const struct hx_options *options, int id);

/* The same in short: was it given; its text, or NULL; its number, or 0. */
bool hx_options_has(const struct hx_options *options, int id);
const char *hx_options_text(const struct hx_options *options, int id);
int64_t hx_options_number(const struct hx_options *options, int id);

/*
 * Every value of an option, in the order given; at most max of them go to texts. Returns how many
 * there are.
 */
size_t hx_options_all(const struct hx_options *options, int id, const char **texts, size_t max);

/* Operand number index, or NULL. */
const char *hx_options_operand(const struct hx_options *options, size_t index);

#endif
