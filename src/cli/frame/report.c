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

#include "base/bytes.h"
#include "cli/frame/exit_code.h"
#include "cli/print/text.h"

enum { MESSAGE_SIZE = 2048 };

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

__attribute__((format(printf, 3, 0))) static void report(
	const char *prefix, const char *command, const char *format, va_list arguments)
{
	char line[HX_REPORT_SIZE];
	size_t used = format_line(line, prefix, command, format, arguments);

	/* A failure of standard error itself cannot be reported. */
	(void)fwrite(line, 1, used, stderr);
}

void hx_report(const char *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report("hapax: ", command, format, arguments);
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
	va_list arguments;

	va_start(arguments, format);
	report("hint: ", NULL, format, arguments);
	va_end(arguments);
}

void hx_report_line(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report("", NULL, format, arguments);
	va_end(arguments);
}

int hx_report_usage(const char *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report("hapax: ", command, format, arguments);
	va_end(arguments);
	return HX_EXIT_USAGE;
}

int hx_report_misuse(const char *command, const char *hint, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report("hapax: ", command, format, arguments);
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
