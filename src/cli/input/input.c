/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c - read a file or standard input.
 */
#include "cli/input/input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "cli/frame/exit_code.h"
#include "cli/frame/interrupt.h"
#include "cli/frame/report.h"

enum { CHUNK_SIZE = 256 * 1024, HASH_SIZE = 16 * 1024 };

static int failed(const struct hx_input *input, int os_errno)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, os_errno, "could not read '%s'", input->name);
	hx_report(input->command, "%s", err.message);
	if (os_errno == ESPIPE)
		hx_report_hint("to read a pipe, use - as the file");
	return HX_EXIT_NO_INPUT;
}

static int too_large(const struct hx_input *input)
{
	hx_report(
		input->command, "'%s' is too large: the limit is %d MiB", input->name,
		HX_INPUT_SIZE_MAX / (1024 * 1024));
	return HX_EXIT_DATA;
}

int hx_input_open(struct hx_input *input, const char *command, const char *path)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;

	*input = (struct hx_input){.command = command, .name = "standard input", .file = -1};
	hx_buf_init(&input->buf, HX_INPUT_SIZE_MAX + CHUNK_SIZE);
	if (path == NULL || strcmp(path, "-") == 0)
		return HX_EXIT_OK;
	input->name = path;
	input->file = io->ops->open(io->context, path, HX_IO_READ, 0);
	if (input->file < 0) {
		int os_errno = -input->file;

		input->file = -1;
		return failed(input, os_errno);
	}
	if (io->ops->stat(io->context, input->file, &stat) == 0) {
		if (stat.kind == HX_IO_DIRECTORY)
			return failed(input, EISDIR);
		input->size = stat.size;
	}
	return HX_EXIT_OK;
}

void hx_input_close(struct hx_input *input)
{
	const struct hx_io *io = hx_io_system();

	if (input->file >= 0)
		(void)io->ops->close(io->context, input->file);
	input->file = -1;
	hx_buf_done(&input->buf);
}

/* Append one more chunk. */
static int read_more(struct hx_input *input)
{
	const struct hx_io *io = hx_io_system();
	struct hapax_buf *buf = &input->buf;
	ssize_t size;

	if (hx_buf_reserve(buf, CHUNK_SIZE) != HAPAX_OK)
		return too_large(input);
	if (input->file >= 0) {
		size = hx_io_read_full(
			io, input->file, buf->data + buf->size, CHUNK_SIZE, input->offset);
	} else {
		size = (ssize_t)fread(buf->data + buf->size, 1, CHUNK_SIZE, stdin);
		if (size == 0 && ferror(stdin))
			size = -errno;
	}
	if (size == -EINTR && hx_interrupt_signal() != 0)
		return HX_EXIT_SIGNAL + hx_interrupt_signal();
	if (size < 0)
		return failed(input, (int)-size);
	input->is_at_end = size == 0;
	input->offset += (uint64_t)size;
	buf->size += (size_t)size;
	return HX_EXIT_OK;
}

int hx_input_all(struct hx_input *input, struct hapax_bytes *ret)
{
	int code = HX_EXIT_OK;

	while (code == HX_EXIT_OK && !input->is_at_end)
		code = read_more(input);
	if (code == HX_EXIT_OK && input->buf.size > HX_INPUT_SIZE_MAX)
		code = too_large(input);
	*ret = hx_bytes(input->buf.data, input->buf.size);
	return code;
}

int hx_input_piece(struct hx_input *input, struct hapax_bytes *ret)
{
	int code;

	hx_buf_clear(&input->buf);
	code = read_more(input);
	*ret = hx_bytes(input->buf.data, code == HX_EXIT_OK ? input->buf.size : 0);
	return code;
}

/* Move unreturned bytes to the front. */
static void drop_returned(struct hx_input *input)
{
	struct hapax_buf *buf = &input->buf;
	size_t left = buf->size - input->at;

	if (input->at == 0 || buf->data == NULL)
		return;
	memmove(buf->data, buf->data + input->at, left);
	buf->size = left;
	input->at = 0;
}

int hx_input_line(struct hx_input *input, struct hapax_bytes *ret, enum hx_input_line *ret_kind)
{
	struct hapax_buf *buf = &input->buf;
	size_t searched = 0; /* bytes after at that hold no end of line */
	bool is_long = false;

	for (;;) {
		size_t left = buf->size - input->at;
		const unsigned char *begin = left == 0 ? NULL : buf->data + input->at;
		const unsigned char *end = NULL;
		int code;

		if (begin != NULL && left > searched)
			end = memchr(begin + searched, '\n', left - searched);
		if (end != NULL || (input->is_at_end && (left > 0 || is_long))) {
			*ret = hx_bytes(begin, end == NULL ? left : (size_t)(end - begin));
			input->at += ret->size + (end != NULL);
			input->line++;
			is_long |= ret->size > HX_INPUT_SIZE_MAX;
			*ret_kind = is_long ? HX_INPUT_LINE_TOO_LONG : HX_INPUT_LINE;
			if (begin != NULL && ret->size > 0 && begin[ret->size - 1] == '\r')
				ret->size--;
			return HX_EXIT_OK;
		}
		if (input->is_at_end) {
			*ret_kind = HX_INPUT_LINE_NONE;
			return HX_EXIT_OK;
		}
		is_long |= left > HX_INPUT_SIZE_MAX;
		if (is_long)
			input->at = buf->size;
		searched = is_long ? 0 : left;
		drop_returned(input);
		code = read_more(input);
		if (code != HX_EXIT_OK)
			return code;
	}
}

int hx_input_result_open(
	struct hx_input_result *file, const char *command, const char *path,
	enum hapax_result_class result_class)
{
	int code;

	*file = (struct hx_input_result){
		.input = {.file = -1},
		.result = {.result_class = result_class},
	};
	if (path == NULL)
		return HX_EXIT_OK;
	file->result.kind = HAPAX_RESULT_BYTES;
	code = hx_input_open(&file->input, command, path);
	if (code == HX_EXIT_OK)
		code = hx_input_all(&file->input, &file->result.body);
	if (code == HX_EXIT_OK && file->result.body.size > HX_RESULT_SIZE_DEFAULT)
		hx_report(
			command,
			"note: the result is too large to store (%zu bytes); only its "
			"size is stored",
			file->result.body.size);
	return code;
}

void hx_input_result_close(struct hx_input_result *file)
{
	hx_input_close(&file->input);
}

static int payload_failed(const char *command, const char *path, int os_errno)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, os_errno, "could not read payload '%s'", path);
	hx_report(command, "%s", err.message);
	if (os_errno == ESPIPE)
		hx_report_hint("to read a pipe, use '--payload -'");
	return HX_EXIT_NO_INPUT;
}

/* 0, or an errno. */
static int hash_stdin(struct hx_sha256 *sha)
{
	unsigned char chunk[HASH_SIZE];
	size_t size;

	while ((size = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
		hx_sha256_update(sha, chunk, size);
	return ferror(stdin) ? errno : 0;
}

/* 0, or an errno. */
static int hash_file(struct hx_sha256 *sha, const char *path)
{
	const struct hx_io *io = hx_io_system();
	unsigned char chunk[HASH_SIZE];
	uint64_t offset = 0;
	ssize_t size;
	int file = io->ops->open(io->context, path, HX_IO_READ, 0);

	if (file < 0)
		return -file;
	while ((size = hx_io_read_full(io, file, chunk, sizeof(chunk), offset)) > 0) {
		hx_sha256_update(sha, chunk, (size_t)size);
		offset += (uint64_t)size;
	}
	(void)io->ops->close(io->context, file);
	return size < 0 ? (int)-size : 0;
}

int hx_input_fingerprint(
	const char *command, const char *path, unsigned char out[HAPAX_FINGERPRINT_SIZE])
{
	struct hx_sha256 sha = {NULL};
	int os_errno;

	_Static_assert(
		(int)HAPAX_FINGERPRINT_SIZE == (int)HX_SHA256_SIZE,
		"a fingerprint is a SHA-256 digest");
	if (hx_sha256_init(&sha) != HAPAX_OK)
		return hx_report_no_memory(command);
	os_errno = strcmp(path, "-") == 0 ? hash_stdin(&sha) : hash_file(&sha, path);
	hx_sha256_final(&sha, out);
	hx_sha256_done(&sha);
	return os_errno == 0 ? HX_EXIT_OK : payload_failed(command, path, os_errno);
}
