/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_key.h - derive the key of a run, from the input of its command if need be.
 */
#ifndef HX_CLI_RUN_RUN_KEY_H
#define HX_CLI_RUN_RUN_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/key.h>

#include "base/buf.h"

/*
 * Standard input that is read before the command gets it. A file can be read without moving the
 * command's offset. Other input is copied into an unnamed file, which the command gets instead.
 */
struct hx_cmd_run_stdin {
	const char *command;
	int file;      /* what we read: 0, or the copy */
	int copy;      /* the copy, or -1 */
	uint64_t from; /* where the command will begin to read */
};

/* HX_EXIT_OK, or another code after a message. */
int hx_cmd_run_stdin_open(struct hx_cmd_run_stdin *input, const char *command);

/* SHA-256 of all of it. HX_EXIT_OK or HX_EXIT_NO_INPUT. */
int hx_cmd_run_stdin_hash(
	const struct hx_cmd_run_stdin *input, unsigned char ret_digest[HAPAX_FINGERPRINT_SIZE]);

/* Read all of it into buf. HX_EXIT_DATA if it is too large for buf. */
int hx_cmd_run_stdin_read(const struct hx_cmd_run_stdin *input, struct hapax_buf *buf);

/* Does --strategy with this text read standard input? HX_EXIT_USAGE after a message. */
int hx_cmd_run_key_needs_stdin(const char *command, const char *text, bool *ret);

/*
 * Make the key that text describes: args, stdin, file:PATH or a strategy (key.h). input is NULL
 * unless it is needed. HX_EXIT_OK, or another code after a message.
 */
int hx_cmd_run_key_make(
	const char *command, const char *text, const char *const *argv,
	const struct hx_cmd_run_stdin *input, struct hapax_key *ret);

/* SHA-256 of arguments, each with its length before it. NO_MEMORY. */
enum hapax_status hx_cmd_run_key_hash_arguments(
	const char *const *argv, unsigned char ret_digest[HAPAX_FINGERPRINT_SIZE]);

#endif
