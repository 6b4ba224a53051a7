/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_stdin.h - standard input that is read before the command gets it.
 *
 * A file can be read without moving the command's offset. Other input is copied into an unnamed
 * file, which the command gets instead.
 */
#ifndef HX_CLI_RUN_RUN_STDIN_H
#define HX_CLI_RUN_RUN_STDIN_H

#include <stdint.h>

#include <hapax/record.h>

#include "base/buf.h"

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

#endif
