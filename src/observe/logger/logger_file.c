/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_file.c - a file that a log appends to, by the file seam.
 */
#include "observe/logger/logger_file.h"

#include <errno.h>

#include "base/error.h"
#include "base/io.h"

/* A line that a crash cut must not become one with the next. */
static int end_last_line(const struct hx_io *io, int file)
{
	struct hx_io_stat stat;
	int result = io->ops->stat(io->context, file, &stat);
	char last = '\n';

	if (result == 0 && stat.size > 0) {
		ssize_t size = hx_io_read_full(io, file, &last, 1, stat.size - 1);

		result = size < 0 ? (int)size : 0;
	}
	return result == 0 && last != '\n' ? hx_logger_file_append(file, "\n", 1) : result;
}

static enum hapax_status report_file(
	struct hapax_error *err, int result, const char *what, const char *path)
{
	if (result == -EAGAIN)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "another process is writing '%s'", path);
	return hx_error_set(
		err, hx_error_status_of(-result), -result, "could not %s '%s'", what, path);
}

enum hapax_status hx_logger_file_open(const char *path, int *ret_file, struct hapax_error *err)
{
	enum { TRIES = 10 };
	const struct hx_io *io = hx_io_system();
	int result = -EAGAIN;

	/* Before it is locked, an erasure may put another file in its place. */
	for (int i = 0; i < TRIES; i++) {
		int file = io->ops->open(
			io->context, path, HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE, 0600);

		if (file < 0)
			return report_file(err, file, "open", path);
		result = io->ops->lock(io->context, file);
		if (result == 0 && hx_logger_file_is_at(file, path)) {
			*ret_file = file;
			result = end_last_line(io, file);
			if (result == 0)
				return HAPAX_OK;
		}
		hx_logger_file_close(file);
		if (result != 0)
			break;
	}
	return report_file(err, result == 0 ? -EAGAIN : result, "lock", path);
}

void hx_logger_file_close(int file)
{
	const struct hx_io *io = hx_io_system();

	(void)io->ops->close(io->context, file);
}

bool hx_logger_file_is_at(int file, const char *path)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat mine, other;

	return io->ops->stat(io->context, file, &mine) == 0 &&
		io->ops->stat_path(io->context, path, &other) == 0 && mine.device == other.device &&
		mine.inode == other.inode;
}

int hx_logger_file_append(int file, const void *data, size_t size)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;
	int result = io->ops->stat(io->context, file, &stat);

	if (result != 0)
		return result;
	result = hx_io_write_full(io, file, data, size, stat.size);
	/* Half a line would become one with the next, which may be of another tenant. */
	if (result != 0)
		(void)io->ops->ftruncate(io->context, file, stat.size);
	return result;
}
