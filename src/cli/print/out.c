/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.c - standard output that remembers its first error.
 */
#include "cli/print/out.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/frame/environment.h"
#include "cli/frame/exit_code.h"
#include "cli/frame/report.h"
#include "cli/print/text.h"

static bool wants_color(FILE *file)
{
	const char *term = hx_environment("TERM");

	if (hx_environment("NO_COLOR") != NULL || term == NULL || strcmp(term, "dumb") == 0)
		return false;
	return isatty(fileno(file)) != 0;
}

void hx_out_init(struct hx_out *out, FILE *file)
{
	*out = (struct hx_out){.file = file, .is_colored = wants_color(file)};
}

static void note_failure(struct hx_out *out)
{
	if (out->os_errno == 0)
		out->os_errno = errno;
}

void hx_out_write(struct hx_out *out, const void *data, size_t size)
{
	/* After a failure the rest would be text with a gap. */
	if (out->os_errno != 0 || size == 0 || out->is_silent)
		return;
	if (fwrite(data, 1, size, out->file) != size)
		note_failure(out);
}

static void write_json(void *out, const void *data, size_t size)
{
	hx_out_write(out, data, size);
}

void hx_out_json(struct hx_json_write *json, struct hx_out *out)
{
	hx_json_write_init_sink(json, write_json, out);
	hx_json_write_begin(json, NULL, '{');
}

void hx_out_text(struct hx_out *out, const char *text)
{
	hx_out_write(out, text, strlen(text));
}

__attribute__((format(printf, 2, 0))) static void print(
	struct hx_out *out, const char *format, va_list arguments)
{
	if (out->os_errno == 0 && !out->is_silent && vfprintf(out->file, format, arguments) < 0)
		note_failure(out);
}

void hx_out_printf(struct hx_out *out, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print(out, format, arguments);
	va_end(arguments);
}

void hx_out_escaped(struct hx_out *out, struct hapax_bytes bytes)
{
	const unsigned char *data = bytes.data;

	for (size_t at = 0; at < bytes.size;) {
		char unit[HX_TEXT_UNIT_SIZE];

		at += hx_text_unit_exact(hx_bytes(data + at, bytes.size - at), unit);
		hx_out_text(out, unit);
	}
}

void hx_out_colored(struct hx_out *out, enum hx_color color, const char *text)
{
	if (out->is_colored && color != HX_COLOR_NONE)
		hx_out_printf(out, "\033[%dm%s\033[0m", (int)color, text);
	else
		hx_out_text(out, text);
}

void hx_out_spaces(struct hx_out *out, size_t count)
{
	static const char spaces[] = "                ";

	while (count > 0) {
		size_t some = count < sizeof(spaces) - 1 ? count : sizeof(spaces) - 1;

		hx_out_write(out, spaces, some);
		count -= some;
	}
}

void hx_out_field(struct hx_out *out, const char *name)
{
	hx_out_printf(out, "%-13s", name);
}

void hx_out_line(struct hx_out *out, const char *name, const char *format, ...)
{
	va_list arguments;

	hx_out_field(out, name);
	va_start(arguments, format);
	print(out, format, arguments);
	va_end(arguments);
	hx_out_text(out, "\n");
}

void hx_out_line_escaped(struct hx_out *out, const char *name, struct hapax_bytes value)
{
	hx_out_field(out, name);
	hx_out_escaped(out, value);
	hx_out_text(out, "\n");
}

void hx_out_flush(struct hx_out *out)
{
	if (out->os_errno == 0 && fflush(out->file) != 0)
		note_failure(out);
}

int hx_out_finish(struct hx_out *out, const char *command, int code)
{
	struct hapax_error err;

	/* A network file system may report an error only at close. */
	if (fclose(out->file) != 0)
		note_failure(out);
	if (out->os_errno == 0)
		return code;
	if (out->os_errno == EPIPE)
		return HX_EXIT_SIGNAL + SIGPIPE;
	/* The signal that ended the work also ended the write. */
	if (out->os_errno == EINTR && code > HX_EXIT_SIGNAL)
		return code;
	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, out->os_errno, "could not write standard output");
	hx_report(command, "%s", err.message);
	return HX_EXIT_IO;
}
