/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - messages on standard error.
 *
 * A message is composed in memory and written at once, so that two processes that share a terminal
 * do not mix within a line.
 */
#include "cli/frame/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/macros.h"
#include "cli/frame/exit_code.h"
#include "cli/print/text.h"
#include "wire/json/json_write.h"

enum { MESSAGE_SIZE = 2048 };

/* Of this process. A fault waits for its hint and exit code if they are to stand beside it. */
static struct {
	bool is_json;
	bool is_quiet;
	bool is_pending;
	char command[32];
	char message[MESSAGE_SIZE];
	char hint[MESSAGE_SIZE];
} state;

void hx_report_configure(bool is_json, bool is_quiet)
{
	state.is_json = is_json;
	state.is_quiet = is_quiet;
}

bool hx_report_is_quiet(void)
{
	return state.is_quiet;
}

/* The name of the JSON member for a message that is not a fault, or NULL. */
static const char *note_of(const char *message, size_t *ret_skip)
{
	static const struct {
		const char *prefix;
		const char *name;
		bool is_shown;
	} notes[] = {
		{"note: ", "note", false},
		{"warning: ", "warning", false},
		{"ready: ", "note", true}};

	for (size_t i = 0; i < HX_COUNT(notes); i++) {
		size_t size = strlen(notes[i].prefix);

		if (strncmp(message, notes[i].prefix, size) != 0)
			continue;
		*ret_skip = notes[i].is_shown ? 0 : size;
		return notes[i].name;
	}
	return NULL;
}

/* Append the safe form of text; cut what does not fit. */
static size_t append_safe(char *line, size_t used, size_t size, const char *text)
{
	struct hapax_bytes rest = hapax_bytes_from_text(text);

	while (rest.size > 0) {
		char unit[HX_TEXT_UNIT_SIZE];
		size_t taken = hx_text_unit(rest, unit);

		if (strlen(unit) > size - used)
			break;
		for (const char *c = unit; *c != '\0'; c++)
			line[used++] = *c;
		rest = hx_bytes((const char *)rest.data + taken, rest.size - taken);
	}
	return used;
}

__attribute__((format(printf, 4, 0))) static size_t format_line(
	char line[HX_REPORT_SIZE], const char *prefix, const char *command, const char *format,
	va_list arguments)
{
	char message[MESSAGE_SIZE];
	size_t room = HX_REPORT_SIZE - 1;
	size_t used = append_safe(line, 0, room, prefix);

	(void)vsnprintf(message, sizeof(message), format, arguments);
	if (command != NULL) {
		used = append_safe(line, used, room, command);
		used = append_safe(line, used, room, ": ");
	}
	used = append_safe(line, used, room, message);
	line[used++] = '\n';
	return used;
}

static void write_stderr(void *context, const void *data, size_t size)
{
	struct hapax_buf *line = context;

	/* A document that does not fit loses its end: the texts in it are bounded. */
	(void)hx_buf_append(line, data, size);
}

/* One document, written at once. name: of the member with the message. code < 0: unknown. */
static void write_json(
	const char *name, const char *command, const char *message, const char *hint, int code)
{
	/* Each byte may become six. */
	static unsigned char space[6 * (2 * MESSAGE_SIZE) + 256];
	struct hapax_buf line = {space, 0, sizeof(space), sizeof(space), NULL};
	struct hx_json_write json;

	hx_json_write_init_sink(&json, write_stderr, &line);
	hx_json_write_begin(&json, NULL, '{');
	if (command != NULL && command[0] != '\0')
		hx_json_write_text(&json, "command", command);
	hx_json_write_text(&json, name, message);
	if (hint != NULL && hint[0] != '\0')
		hx_json_write_text(&json, "hint", hint);
	if (code >= 0)
		hx_json_write_signed(&json, "exit", code);
	hx_json_write_end(&json, '}');
	(void)fwrite(line.data, 1, line.size, stderr);
}

static void write_pending(int code)
{
	if (!state.is_pending)
		return;
	state.is_pending = false;
	write_json("error", state.command, state.message, state.hint, code);
}

void hx_report_finish(int code)
{
	write_pending(code);
}

__attribute__((format(printf, 2, 0))) static void report_json(
	const char *command, const char *format, va_list arguments)
{
	char message[MESSAGE_SIZE];
	const char *name;
	size_t skip = 0;

	(void)vsnprintf(message, sizeof(message), format, arguments);
	name = note_of(message, &skip);
	write_pending(-1);
	if (name != NULL) {
		write_json(name, command, message + skip, NULL, -1);
		return;
	}
	state.is_pending = true;
	state.hint[0] = '\0';
	(void)snprintf(state.command, sizeof(state.command), "%s", command != NULL ? command : "");
	memcpy(state.message, message, sizeof(message));
}

/* A line of hx_report(). */
__attribute__((format(printf, 2, 0))) static void report(
	const char *command, const char *format, va_list arguments)
{
	char line[HX_REPORT_SIZE];
	size_t used, skip;

	/* Notes are told by their format: no note begins with a value. */
	if (state.is_quiet && note_of(format, &skip) != NULL)
		return;
	if (state.is_json) {
		report_json(command, format, arguments);
		return;
	}
	used = format_line(line, "hapax: ", command, format, arguments);
	/* A failure of standard error itself cannot be reported. */
	(void)fwrite(line, 1, used, stderr);
}

void hx_report(const char *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(command, format, arguments);
	va_end(arguments);
}

size_t hx_report_format(char line[HX_REPORT_SIZE], const char *command, const char *format, ...)
{
	va_list arguments;
	size_t used;

	va_start(arguments, format);
	used = format_line(line, "hapax: ", command, format, arguments);
	va_end(arguments);
	return used;
}

void hx_report_hint(const char *format, ...)
{
	char line[HX_REPORT_SIZE];
	va_list arguments;

	if (state.is_quiet)
		return;
	va_start(arguments, format);
	if (state.is_json)
		(void)vsnprintf(state.hint, sizeof(state.hint), format, arguments);
	else
		(void)fwrite(line, 1, format_line(line, "hint: ", NULL, format, arguments), stderr);
	va_end(arguments);
}

void hx_report_line(const char *format, ...)
{
	char line[HX_REPORT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	if (state.is_json) {
		(void)vsnprintf(line, sizeof(line), format, arguments);
		write_pending(-1);
		write_json("note", NULL, line, NULL, -1);
	} else if (!state.is_quiet) {
		(void)fwrite(line, 1, format_line(line, "", NULL, format, arguments), stderr);
	}
	va_end(arguments);
}

int hx_report_usage(const char *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(command, format, arguments);
	va_end(arguments);
	return HX_EXIT_USAGE;
}

int hx_report_misuse(const char *command, const char *hint, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(command, format, arguments);
	va_end(arguments);
	hx_report_hint("%s", hint);
	return HX_EXIT_USAGE;
}

int hx_report_no_memory(const char *command)
{
	hx_report(command, "not enough memory");
	return HX_EXIT_OS;
}

int hx_exit_of_status(enum hapax_status status)
{
	switch (status) {
	case HAPAX_OK: return HX_EXIT_OK;
	case HAPAX_ERR_INVALID: return HX_EXIT_USAGE;
	case HAPAX_ERR_NO_MEMORY: return HX_EXIT_OS;
	case HAPAX_ERR_LIMIT:
	case HAPAX_ERR_UNAVAILABLE:
	case HAPAX_ERR_UNSUPPORTED: return HX_EXIT_STORE;
	case HAPAX_ERR_UNCERTAIN:
	case HAPAX_ERR_CORRUPT:
	case HAPAX_ERR_FAILED: return HX_EXIT_IO;
	case HAPAX_ERR_FENCED: return HX_EXIT_FENCED;
	case HAPAX_ERR_HANDLER: return HX_EXIT_SOFTWARE;
	}
	return HX_EXIT_SOFTWARE;
}

/* A hint belongs to a cause. A status is none: LIMIT may be a full disk or a long text. */
static const char *hint_of(const struct hapax_error *err)
{
	switch (err->os_errno) {
	case EDQUOT:
	case ENOSPC: return "make room on the disk, or delete expired records with 'hapax gc'";
	case EMFILE:
	case ENFILE: return "raise the limit on open files with 'ulimit -n'";
	default: return NULL;
	}
}

int hx_report_error(const char *command, const struct hapax_error *err)
{
	const char *hint = hint_of(err);

	hx_report(command, "%s", err->message);
	if (hint != NULL)
		hx_report_hint("%s", hint);
	return hx_exit_of_status(err->status);
}
