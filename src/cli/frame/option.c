/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option.c - the parser of command line options.
 */
#include "cli/frame/option.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/frame/exit_code.h"
#include "cli/frame/report.h"
#include "base/suggest.h"

static const struct hx_option no_options[] = {{.name = NULL}};

const struct hx_option hx_every_options[] = {
	{HX_OPTION_QUIET, "quiet", 'q', HX_OPTION_FLAG, NULL, "no notes, hints and progress", NULL},
	{.name = NULL},
};

enum { TABLES = 3 };

struct parser {
	const char *command;
	const struct hx_option *tables[TABLES];
	int argc;
	char **argv;
	int index; /* of the next argument */
	struct hx_options *options;
};

/* Find an option by the first name_size bytes of its name, or by its letter. */
static const struct hx_option *find(
	const struct parser *parser, const char *name, size_t name_size, char letter)
{
	for (size_t i = 0; i < TABLES; i++) {
		for (const struct hx_option *o = parser->tables[i]; o->name != NULL; o++) {
			if (letter != 0 && o->letter == letter)
				return o;
			if (letter == 0 && strlen(o->name) == name_size &&
			    memcmp(o->name, name, name_size) == 0)
				return o;
		}
	}
	return NULL;
}

static int unknown(const struct parser *parser, const char *argument, size_t name_size)
{
	struct hx_suggest suggest;
	char name[64];

	(void)hx_report_usage(
		parser->command, "unknown option '%.*s'", (int)(name_size + 2), argument);
	if (name_size >= sizeof(name))
		name_size = 0;
	memcpy(name, argument + 2, name_size);
	name[name_size] = '\0';
	hx_suggest_init(&suggest, name);
	for (size_t i = 0; i < TABLES; i++)
		for (const struct hx_option *o = parser->tables[i]; o->name != NULL; o++)
			hx_suggest_consider(&suggest, o->name);
	hx_suggest_consider(&suggest, "help");
	if (suggest.best != NULL)
		hx_report_hint("did you mean '--%s'?", suggest.best);
	else
		hx_report_hint("'hapax %s --help' lists the options", parser->command);
	return HX_EXIT_USAGE;
}

static int read_choice(const struct parser *parser, struct hx_option_value *value)
{
	const struct hx_option *option = value->option;
	struct hx_suggest suggest;

	hx_suggest_init(&suggest, value->text);
	for (int64_t i = 0; option->choices[i] != NULL; i++) {
		if (strcmp(option->choices[i], value->text) == 0) {
			value->number = i;
			return HX_EXIT_OK;
		}
		hx_suggest_consider(&suggest, option->choices[i]);
	}
	(void)hx_report_usage(
		parser->command, "--%s: '%s' is not one of %s", option->name, value->text,
		option->value);
	if (suggest.best != NULL)
		hx_report_hint("did you mean '%s'?", suggest.best);
	return HX_EXIT_USAGE;
}

static int read_count(const struct parser *parser, struct hx_option_value *value)
{
	char *end;

	errno = 0;
	value->number = strtoll(value->text, &end, 10);
	if (value->text[0] < '0' || value->text[0] > '9' || *end != '\0')
		return hx_report_usage(
			parser->command, "--%s: '%s' is not a whole number", value->option->name,
			value->text);
	if (errno == ERANGE)
		return hx_report_usage(
			parser->command, "--%s: '%s' is too large", value->option->name,
			value->text);
	if (value->number == 0)
		return hx_report_usage(
			parser->command, "--%s must be at least 1", value->option->name);
	return HX_EXIT_OK;
}

/* text is NULL for a flag. */
static int option_keep(
	const struct parser *parser, const struct hx_option *option, const char *text)
{
	struct hx_options *options = parser->options;
	struct hx_option_value *value;

	if (options->count == HX_OPTION_VALUES_MAX)
		return hx_report_usage(
			parser->command, "too many options: the limit is %d", HX_OPTION_VALUES_MAX);
	value = &options->values[options->count++];
	*value = (struct hx_option_value){.option = option, .text = text};
	switch (option->kind) {
	case HX_OPTION_FLAG:
	case HX_OPTION_TEXT:
	case HX_OPTION_MAYBE: return HX_EXIT_OK;
	case HX_OPTION_CHOICE: return read_choice(parser, value);
	case HX_OPTION_COUNT: return read_count(parser, value);
	}
	return HX_EXIT_OK;
}

/* Take the value from the next argument. */
static int keep_next(struct parser *parser, const struct hx_option *option)
{
	if (parser->index == parser->argc)
		return hx_report_usage(
			parser->command, "--%s needs a value: %s", option->name, option->value);
	return option_keep(parser, option, parser->argv[parser->index++]);
}

static int read_long(struct parser *parser, const char *argument)
{
	const char *name = argument + 2;
	size_t name_size = strcspn(name, "=");
	const char *value = name[name_size] == '=' ? name + name_size + 1 : NULL;
	const struct hx_option *option = find(parser, name, name_size, 0);

	if (strcmp(name, "help") == 0) {
		parser->options->help = 1;
		return HX_EXIT_OK;
	}
	if (option == NULL)
		return unknown(parser, argument, name_size);
	if (option->kind == HX_OPTION_FLAG) {
		if (value != NULL)
			return hx_report_usage(
				parser->command, "--%s takes no value", option->name);
		return option_keep(parser, option, NULL);
	}
	if (option->kind == HX_OPTION_MAYBE)
		return option_keep(parser, option, value);
	return value != NULL ? option_keep(parser, option, value) : keep_next(parser, option);
}

/* One or more letters; the first one that takes a value takes the rest. */
static int read_letters(struct parser *parser, const char *letters)
{
	int code = HX_EXIT_OK;

	for (; *letters != '\0' && code == HX_EXIT_OK; letters++) {
		const struct hx_option *option = find(parser, NULL, 0, *letters);

		if (*letters == 'h') {
			parser->options->help = 1;
			return HX_EXIT_OK;
		}
		if (option == NULL) {
			(void)hx_report_usage(parser->command, "unknown option '-%s'", letters);
			hx_report_hint(
				"'hapax %s --help' lists the options; '--' ends them",
				parser->command);
			return HX_EXIT_USAGE;
		}
		if (option->kind == HX_OPTION_FLAG || option->kind == HX_OPTION_MAYBE)
			code = option_keep(parser, option, NULL);
		else if (letters[1] != '\0')
			return option_keep(parser, option, letters + 1);
		else
			return keep_next(parser, option);
	}
	return code;
}

int hx_options_parse(
	const char *command, const struct hx_option *own, const struct hx_option *common,
	unsigned flags, int argc, char **argv, struct hx_options *ret)
{
	struct parser parser = {
		.command = command,
		.tables =
			{own != NULL ? own : no_options, common != NULL ? common : no_options,
			 hx_every_options},
		.argc = argc,
		.argv = argv,
		.options = ret,
	};
	bool is_ended = false;
	int code = HX_EXIT_OK;

	*ret = (struct hx_options){.operands = argv};
	while (parser.index < argc && code == HX_EXIT_OK && !ret->help) {
		char *argument = argv[parser.index++];

		/* Operands move to the front, over arguments already read. */
		if (is_ended || argument[0] != '-' || argument[1] == '\0') {
			argv[ret->operand_count++] = argument;
			is_ended = is_ended || (flags & HX_OPTIONS_END_AT_OPERAND) != 0;
		} else if (strcmp(argument, "--") == 0) {
			is_ended = true;
		} else if (argument[1] == '-') {
			code = read_long(&parser, argument);
		} else {
			code = read_letters(&parser, argument + 1);
		}
	}
	assert(ret->operand_count <= (size_t)argc);
	return code;
}

const struct hx_option_value *hx_options_get(const struct hx_options *options, int id)
{
	for (size_t i = options->count; i > 0; i--)
		if (options->values[i - 1].option->id == id)
			return &options->values[i - 1];
	return NULL;
}

bool hx_options_has(const struct hx_options *options, int id)
{
	return hx_options_get(options, id) != NULL;
}

const char *hx_options_text(const struct hx_options *options, int id)
{
	const struct hx_option_value *value = hx_options_get(options, id);

	return value != NULL ? value->text : NULL;
}

int64_t hx_options_number(const struct hx_options *options, int id)
{
	const struct hx_option_value *value = hx_options_get(options, id);

	return value != NULL ? value->number : 0;
}

size_t hx_options_all(const struct hx_options *options, int id, const char **texts, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < options->count; i++)
		if (options->values[i].option->id == id && count++ < max)
			texts[count - 1] = options->values[i].text;
	return count;
}

const char *hx_options_operand(const struct hx_options *options, size_t index)
{
	return index < options->operand_count ? options->operands[index] : NULL;
}
