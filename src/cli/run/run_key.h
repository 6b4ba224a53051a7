/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_key.h - derive the key of a run.
 */
#ifndef HX_CLI_RUN_RUN_KEY_H
#define HX_CLI_RUN_RUN_KEY_H

#include <stdbool.h>

#include <hapax/key.h>

#include "cli/run/run_stdin.h"

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
