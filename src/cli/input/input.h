/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - read a file or standard input, whole or line by line.
 *
 * A pipe is read from standard input; a path must name a file that can be read at any offset. A
 * function that does not return HX_EXIT_OK has reported the error; a signal that is watched
 * (interrupt.h) and ends a read is none, and gives HX_EXIT_SIGNAL and above.
 */
#ifndef HX_CLI_INPUT_INPUT_H
#define HX_CLI_INPUT_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/record.h>

#include "base/buf.h"

/* The maximum size of a JSON text, and of a line. */
enum { HX_INPUT_SIZE_MAX = 64 * 1024 * 1024 };

/* For messages about a line. */
#define HX_INPUT_TOO_LONG "the line was longer than 64 MiB"

struct hx_input {
	const char *command;
	const char *name; /* for messages */
	int file;         /* -1: standard input */
	uint64_t size;    /* of the file when it was opened; 0: unknown */
	uint64_t offset;  /* bytes read */
	uint64_t line;    /* number of the last returned line, from 1 */
	struct hapax_buf buf;
	size_t at;      /* earlier bytes were returned already */
	bool is_at_end; /* nothing more to read */
};

/* path NULL or "-": standard input. HX_EXIT_NO_INPUT. */
int hx_input_open(struct hx_input *input, const char *command, const char *path);

/* Also works after a failed open. */
void hx_input_close(struct hx_input *input);

/* Read everything; borrowed until close. HX_EXIT_NO_INPUT, or HX_EXIT_DATA if it is too large. */
int hx_input_all(struct hx_input *input, struct hapax_bytes *ret);

/* The next bytes, borrowed until the next call. At the end there are none. HX_EXIT_NO_INPUT. */
int hx_input_piece(struct hx_input *input, struct hapax_bytes *ret);

enum hx_input_line {
	HX_INPUT_LINE,
	HX_INPUT_LINE_TOO_LONG, /* skipped; the next call continues after it */
	HX_INPUT_LINE_NONE,     /* at the end */
};

/* The next line without its line end, borrowed until the next call. */
int hx_input_line(struct hx_input *input, struct hapax_bytes *ret, enum hx_input_line *ret_kind);

/* A result of kind bytes. */
struct hx_input_result {
	struct hx_input input;
	struct hapax_result result;
};

/*
 * Read path, or standard input if it is "-", as a result of class result_class. NULL makes a result
 * of kind none. HX_EXIT_OK, or another code after a message. Close it even after a failure.
 */
int hx_input_result_open(
	struct hx_input_result *file, const char *command, const char *path,
	enum hapax_result_class result_class);

void hx_input_result_close(struct hx_input_result *file);

/*
 * The fingerprint of a payload: SHA-256 of the file at path, or of standard input if path is "-", of
 * any size.
 */
int hx_input_fingerprint(
	const char *command, const char *path, unsigned char out[HAPAX_FINGERPRINT_SIZE]);

#endif
