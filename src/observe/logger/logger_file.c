/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logger_file.c - a file that a log appends to, by the file seam.
 */
#include "observe/logger/logger_file.h"

#include <errno.h>

#include "base/error.h"
#include "base/io.h"

enum hapax_status hx_logger_file_open(const char *path, int *ret_file, struct hapax_error *err)
{
	const struct hx_io *io = hx_io_system();
	int file = io->ops->open(io->context, path, HX_IO_WRITE | HX_IO_CREATE, 0600);
	int result;

	if (file < 0)
		return hx_error_set(
			err, hx_error_status_of(-file), -file, "could not open '%s'", path);
	result = io->ops->lock(io->context, file);
	if (result == 0) {
		*ret_file = file;
		return HAPAX_OK;
	}
	hx_logger_file_close(file);
	if (result == -EAGAIN)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "another process is writing '%s'", path);
	return hx_error_set(err, hx_error_status_of(-result), -result, "could not lock '%s'", path);
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

	return result == 0 ? hx_io_write_full(io, file, data, size, stat.size) : result;
}
