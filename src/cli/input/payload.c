/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.c - the fingerprint of a payload.
 */
#include "cli/input/payload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "base/sha256.h"
#include "cli/frame/exit_code.h"
#include "cli/frame/report.h"

enum { CHUNK_SIZE = 16 * 1024 };

static int failed(const char *command, const char *path, int os_errno)
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
	unsigned char chunk[CHUNK_SIZE];
	size_t size;

	while ((size = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
		hx_sha256_update(sha, chunk, size);
	return ferror(stdin) ? errno : 0;
}

/* 0, or an errno. */
static int hash_file(struct hx_sha256 *sha, const char *path)
{
	const struct hx_io *io = hx_io_system();
	unsigned char chunk[CHUNK_SIZE];
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

int hx_payload_fingerprint(
	const char *command, const char *path, unsigned char out[HAPAX_FINGERPRINT_SIZE])
{
	struct hx_sha256 sha = {NULL};
	int os_errno;

	_Static_assert(
		(int)HAPAX_FINGERPRINT_SIZE == (int)HX_SHA256_SIZE,
		"a fingerprint is a SHA-256 digest");
	if (hx_sha256_init(&sha) != HAPAX_OK) {
		hx_report(command, "not enough memory");
		return HX_EXIT_OS;
	}
	os_errno = strcmp(path, "-") == 0 ? hash_stdin(&sha) : hash_file(&sha, path);
	hx_sha256_final(&sha, out);
	hx_sha256_done(&sha);
	return os_errno == 0 ? HX_EXIT_OK : failed(command, path, os_errno);
}
