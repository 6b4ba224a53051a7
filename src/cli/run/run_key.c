/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_key.c - derive the key of a run, from the input of its command if need be.
 */
#include "cli/run/run_key.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/stream.h"
#include "cli/frame/environment.h"
#include "cli/input/event_reader.h"
#include "cli/frame/exit_code.h"
#include "cli/input/input.h"
#include "cli/frame/report.h"

/* ------------------------------------------------------------------ standard input */

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

	if (hx_sha256_init(&sha) != HAPAX_OK)
		return hx_report_no_memory(input->command);
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

/* ------------------------------------------------------------------ the key */

static const char file_prefix[] = "file:";

/* Limit for a document that is read for one of its fields. */
enum { DOCUMENT_SIZE_MAX = 16 * 1024 * 1024 };
static const size_t scratch_max = (size_t)40 * DOCUMENT_SIZE_MAX;

static bool is_file(const char *text)
{
	return strncmp(text, file_prefix, strlen(file_prefix)) == 0;
}

static int make_strategy(const char *command, const char *text, struct hapax_key_strategy **ret)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_error err;

	options.flags = HAPAX_KEY_RELATIVE | HAPAX_KEY_NO_FINGERPRINT;
	if (hapax_key_strategy_new(text, &options, ret, &err) == HAPAX_OK)
		return HX_EXIT_OK;
	return hx_report_misuse(
		command, "use args, stdin, file:PATH or a strategy of 'hapax help key'",
		"--strategy: %s", err.message);
}

int hx_cmd_run_key_needs_stdin(const char *command, const char *text, bool *ret)
{
	struct hapax_key_strategy *strategy;
	int code;

	if (strcmp(text, "file:-") == 0)
		return hx_report_usage(command, "--strategy: 'file:-' is not a file; use stdin");
	*ret = strcmp(text, "stdin") == 0;
	if (*ret || strcmp(text, "args") == 0 || is_file(text))
		return HX_EXIT_OK;
	code = make_strategy(command, text, &strategy);
	if (code != HX_EXIT_OK)
		return code;
	*ret = (hapax_key_strategy_needs(strategy) & HAPAX_KEY_NEEDS_DATA) != 0;
	hapax_key_strategy_free(strategy);
	return HX_EXIT_OK;
}

enum hapax_status hx_cmd_run_key_hash_arguments(
	const char *const *argv, unsigned char ret_digest[HAPAX_FINGERPRINT_SIZE])
{
	struct hx_sha256 sha = {NULL};

	if (hx_sha256_init(&sha) != HAPAX_OK)
		return HAPAX_ERR_NO_MEMORY;
	for (; *argv != NULL; argv++) {
		uint64_t size = strlen(*argv);
		unsigned char prefix[8];

		for (unsigned i = 0; i < sizeof(prefix); i++)
			prefix[i] = (unsigned char)(size >> 8 * i);
		hx_sha256_update(&sha, prefix, sizeof(prefix));
		hx_sha256_update(&sha, *argv, (size_t)size);
	}
	hx_sha256_final(&sha, ret_digest);
	hx_sha256_done(&sha);
	return HAPAX_OK;
}

/* "args:", "stdin:" or "file:" and the digest. */
static void write_digest(
	const char *prefix, const unsigned char digest[HAPAX_FINGERPRINT_SIZE],
	struct hapax_key *ret)
{
	size_t size = strlen(prefix);

	memcpy(ret->key, prefix, size);
	hx_hex_encode(digest, HAPAX_FINGERPRINT_SIZE, ret->key + size);
	ret->key_size = size + (size_t)2 * HAPAX_FINGERPRINT_SIZE;
	ret->key[ret->key_size] = '\0';
	ret->kind = HAPAX_KEY_MADE;
}

static int make_by_strategy(
	const char *command, const struct hapax_key_strategy *strategy, struct hapax_bytes document,
	struct hapax_key *ret)
{
	static struct hx_event_reader reader; /* too large for a stack */
	struct hapax_event event;
	struct hapax_buf scratch;
	struct hapax_error err;
	enum hapax_status status;

	hx_event_reader_init(&reader, HX_EVENT_DOCUMENT);
	hx_buf_init(&scratch, scratch_max);
	status = hx_event_reader_read(&reader, document, &event, &err);
	if (status == HAPAX_OK && document.data == NULL)
		event.time_ms = hx_clock_wall_ms();
	if (status == HAPAX_OK)
		status = hapax_key_make(strategy, &event, &scratch, ret, &err);
	hx_buf_done(&scratch);
	hx_event_reader_done(&reader);
	if (status == HAPAX_OK)
		return HX_EXIT_OK;
	hx_report(command, "--strategy: %s", err.message);
	return HX_EXIT_DATA;
}

static int make_from_document(
	const char *command, const char *text, const struct hx_cmd_run_stdin *input,
	struct hapax_key *ret)
{
	struct hapax_bytes document = {NULL, 0};
	struct hapax_key_strategy *strategy;
	struct hapax_buf buf;
	int code = make_strategy(command, text, &strategy);

	if (code != HX_EXIT_OK)
		return code;
	hx_buf_init(&buf, DOCUMENT_SIZE_MAX);
	if (input != NULL) {
		code = hx_cmd_run_stdin_read(input, &buf);
		document = hapax_buf_bytes(&buf);
	}
	if (code == HX_EXIT_OK)
		code = make_by_strategy(command, strategy, document, ret);
	hx_buf_done(&buf);
	hapax_key_strategy_free(strategy);
	return code;
}

int hx_cmd_run_key_make(
	const char *command, const char *text, const char *const *argv,
	const struct hx_cmd_run_stdin *input, struct hapax_key *ret)
{
	unsigned char digest[HAPAX_FINGERPRINT_SIZE];
	int code = HX_EXIT_OK;

	if (strcmp(text, "args") == 0) {
		if (hx_cmd_run_key_hash_arguments(argv, digest) != HAPAX_OK)
			return hx_report_no_memory(command);
		write_digest("args:", digest, ret);
	} else if (strcmp(text, "stdin") == 0) {
		code = hx_cmd_run_stdin_hash(input, digest);
		write_digest("stdin:", digest, ret);
	} else if (is_file(text)) {
		code = hx_input_fingerprint(command, text + strlen(file_prefix), digest);
		write_digest(file_prefix, digest, ret);
	} else {
		code = make_from_document(command, text, input, ret);
	}
	return code;
}
