/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_stdin.c - standard input that is read before the command gets it.
 */
#include "cli/run/run_stdin.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/stream.h"
#include "cli/frame/environment.h"
#include "cli/frame/exit_code.h"
#include "cli/frame/report.h"

enum { CHUNK_SIZE = 64 * 1024, NAME_BYTES = 8, PATH_SIZE = 4096 };

static int failed(const char *command, const char *what, int os_errno)
{
	struct hapax_error err;

	(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, os_errno, "%s", what);
	hx_report(command, "%s", err.message);
	return HX_EXIT_NO_INPUT;
}

/* A new file without a name, or a negative errno. */
static int make_copy(void)
{
	const struct hx_io *io = hx_io_system();
	const char *folder = hx_environment("TMPDIR");
	unsigned char random[NAME_BYTES];
	char name[2 * NAME_BYTES + 1] = "";
	char path[PATH_SIZE];
	int file;

	hx_random_bytes(random, sizeof(random));
	hx_hex_encode(random, sizeof(random), name);
	(void)snprintf(
		path, sizeof(path), "%s/hapax-run-%s", folder != NULL ? folder : "/tmp", name);
	file = io->ops->open(
		io->context, path, HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE | HX_IO_EXCLUSIVE, 0600);
	if (file >= 0)
		(void)io->ops->unlink(io->context, path);
	return file;
}

static int fill_copy(const struct hx_cmd_run_stdin *input)
{
	unsigned char chunk[CHUNK_SIZE];
	uint64_t offset = 0;
	ssize_t size;

	while ((size = hx_stream_read(STDIN_FILENO, chunk, sizeof(chunk))) > 0) {
		int os_errno =
			-hx_io_write_full(hx_io_system(), input->copy, chunk, (size_t)size, offset);

		if (os_errno != 0)
			return failed(input->command, "standard input was not copied", os_errno);
		offset += (uint64_t)size;
	}
	if (size < 0)
		return failed(input->command, "standard input was not read", (int)-size);
	return HX_EXIT_OK;
}

int hx_cmd_run_stdin_open(struct hx_cmd_run_stdin *input, const char *command)
{
	const struct hx_io *io = hx_io_system();
	int64_t offset = hx_stream_offset(STDIN_FILENO);
	struct hx_io_stat stat;

	*input = (struct hx_cmd_run_stdin){.command = command, .file = STDIN_FILENO, .copy = -1};
	if (offset >= 0 && io->ops->stat(io->context, STDIN_FILENO, &stat) == 0 &&
	    stat.kind == HX_IO_FILE) {
		input->from = (uint64_t)offset;
		return HX_EXIT_OK;
	}
	input->copy = make_copy();
	if (input->copy < 0)
		return failed(command, "no file for standard input was made", -input->copy);
	input->file = input->copy;
	return fill_copy(input);
}

int hx_cmd_run_stdin_hash(
	const struct hx_cmd_run_stdin *input, unsigned char ret_digest[HAPAX_FINGERPRINT_SIZE])
{
	unsigned char chunk[CHUNK_SIZE];
	struct hx_sha256 sha = {NULL};
	uint64_t offset = input->from;
	ssize_t size;

	if (hx_sha256_init(&sha) != HAPAX_OK) {
		hx_report(input->command, "not enough memory");
		return HX_EXIT_OS;
	}
	while ((size = hx_io_read_full(hx_io_system(), input->file, chunk, sizeof(chunk), offset)) >
	       0) {
		hx_sha256_update(&sha, chunk, (size_t)size);
		offset += (uint64_t)size;
	}
	hx_sha256_final(&sha, ret_digest);
	hx_sha256_done(&sha);
	return size == 0 ? HX_EXIT_OK
			 : failed(input->command, "standard input was not read", (int)-size);
}

int hx_cmd_run_stdin_read(const struct hx_cmd_run_stdin *input, struct hapax_buf *buf)
{
	unsigned char chunk[CHUNK_SIZE];
	uint64_t offset = input->from;
	ssize_t size;

	while ((size = hx_io_read_full(hx_io_system(), input->file, chunk, sizeof(chunk), offset)) >
	       0) {
		if (hx_buf_append(buf, chunk, (size_t)size) != HAPAX_OK) {
			hx_report(
				input->command,
				"standard input is too large: the limit is %zu bytes",
				buf->size_max);
			return HX_EXIT_DATA;
		}
		offset += (uint64_t)size;
	}
	return size == 0 ? HX_EXIT_OK
			 : failed(input->command, "standard input was not read", (int)-size);
}
