/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/thread.h"

char *hx_sqlite_plain_path(const char *name)
{
	bool is_absolute = name[0] == '/';
	size_t size = strlen(name) + 1;
	char *path = hx_alloc(size + 2);

	if (path == NULL)
		return NULL;
	memcpy(path, "./", 2);
	memcpy(is_absolute ? path : path + 2, name, size);
	return path;
}

/*
 * stat_path() and open() follow a symbolic link, as SQLite does: a dangling link names a file to
 * create. O_EXCL would find the link, and leave the file to SQLite.
 *
 * Closing a file drops every lock that the process holds on it. This file was absent under the
 * mutex, so no connection of this process has it open. Another process may create it in between,
 * and loses nothing.
 */
void hx_sqlite_make_private(const char *path)
{
	static struct hx_mutex making = HX_MUTEX_INIT;
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat about;
	int file = -1;

	hx_mutex_lock(&making);
	if (io->ops->stat_path(io->context, path, &about) == -ENOENT)
		file = io->ops->open(io->context, path, HX_IO_WRITE | HX_IO_CREATE, 0600);
	if (file >= 0)
		(void)io->ops->close(io->context, file);
	hx_mutex_unlock(&making);
}
