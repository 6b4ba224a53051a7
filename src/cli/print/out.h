/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h - standard output that remembers its first error.
 *
 * A full disk behind a redirection shows only at the flush, long after the call that filled the
 * buffer. So every write goes through here, and hx_out_finish() has the last word on the exit code.
 */
#ifndef HX_CLI_PRINT_OUT_H
#define HX_CLI_PRINT_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include <hapax/bytes.h>

#include "wire/json/json_write.h"

enum hx_color {
	HX_COLOR_NONE = 0,
	HX_COLOR_RED = 31,
	HX_COLOR_GREEN = 32,
	HX_COLOR_YELLOW = 33,
	HX_COLOR_BLUE = 34,
};

struct hx_out {
	FILE *file;
	bool is_colored; /* a terminal, and neither NO_COLOR nor TERM=dumb */
	bool is_silent;  /* nothing is written */
	int os_errno;    /* of the first write that failed, else 0 */
};

void hx_out_init(struct hx_out *out, FILE *file);

void hx_out_write(struct hx_out *out, const void *data, size_t size);
void hx_out_text(struct hx_out *out, const char *text);
__attribute__((format(printf, 2, 3))) void hx_out_printf(
	struct hx_out *out, const char *format, ...);

/* Write bytes of any origin, made safe for a terminal (text.h). */
void hx_out_escaped(struct hx_out *out, struct hapax_bytes bytes);

/* Write text in color, if colors are on. */
void hx_out_colored(struct hx_out *out, enum hx_color color, const char *text);

void hx_out_spaces(struct hx_out *out, size_t count);

/* Begin a document on out: an object, on a line of its own. Its failures are out's. */
void hx_out_json(struct hx_json_write *json, struct hx_out *out);

/* Write a field's name, padded to the column of the values. */
void hx_out_field(struct hx_out *out, const char *name);

/* The same with its value, as a line. */
__attribute__((format(printf, 3, 4))) void hx_out_line(
	struct hx_out *out, const char *name, const char *format, ...);
void hx_out_line_escaped(struct hx_out *out, const char *name, struct hapax_bytes value);

/* Write the buffer, before a message on standard error. */
void hx_out_flush(struct hx_out *out);

/*
 * Flush and close. Returns code, unless output was lost: HX_EXIT_IO after a message, or silently
 * 128 + SIGPIPE if the reader has gone.
 */
int hx_out_finish(struct hx_out *out, const char *command, int code);

#endif
