/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_reserve.c - space for the ends of live claims when the disk is full.
 */
#include "store/sqlite/sqlite_reserve.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/io.h"

enum {
	/* 250 pages: ends of claims fit several times between two checkpoints. */
	RESERVE_BYTES = 1024 * 1024,
	/* A part is released at a time: a process that opens the file leaves the rest to ends. */
	PART_BYTES = RESERVE_BYTES / 2,
	/* Left free in each part, for the shared index and pages that the database adds. */
	FREE_BYTES = 96 * 1024,
	MODE_FILE = 0600,
};

/* SQLite takes no path longer than 512 bytes. */
enum { NAME_SIZE = 1024 };

static void path_of(const char *database, const char *suffix, char ret_path[NAME_SIZE])
{
	int size = snprintf(ret_path, NAME_SIZE, "%s%s", database, suffix);

	assert(size > 0);
	assert(size < NAME_SIZE);
	(void)size;
}

static uint64_t size_of(const char *path)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat st;

	return io->ops->stat_path(io->context, path, &st) == 0 ? st.size : 0;
}

/* What it really holds: two processes that change its size at once may leave a hole. */
static uint64_t held_by(const char *path)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat st;

	if (io->ops->stat_path(io->context, path, &st) != 0)
		return 0;
	return st.allocated_bytes < st.size ? st.allocated_bytes : st.size;
}

uint64_t hx_sqlite_reserve_bytes(const char *database)
{
	char path[NAME_SIZE];

	path_of(database, "-reserve", path);
	return held_by(path);
}

/* Take that much; a part of it would only take space from others. 0, or a negative errno. */
static int allocate_file(const char *path, uint64_t size, uint64_t wanted, uint64_t kept)
{
	const struct hx_io *io = hx_io_system();
	int file = io->ops->open(io->context, path, HX_IO_WRITE | HX_IO_CREATE, MODE_FILE);
	int failed;

	if (file < 0)
		return file;
	failed = io->ops->fallocate(io->context, file, 0, wanted);
	if (failed != 0 || wanted != kept)
		(void)io->ops->ftruncate(io->context, file, failed != 0 ? size : kept);
	(void)io->ops->close(io->context, file);
	return failed;
}

bool hx_sqlite_reserve_keep(const char *database)
{
	char path[NAME_SIZE];
	uint64_t size;
	int failed;

	path_of(database, "-reserve", path);
	size = held_by(path);
	if (size >= RESERVE_BYTES)
		return true;
	failed = allocate_file(path, size, RESERVE_BYTES, RESERVE_BYTES);
	return failed != -ENOSPC && failed != -EDQUOT;
}

bool hx_sqlite_reserve_has_more(const char *database)
{
	char path[NAME_SIZE];

	path_of(database, "-reserve", path);
	return allocate_file(path, held_by(path), RESERVE_BYTES + PART_BYTES, RESERVE_BYTES) == 0;
}

/* Zeros behind the log are not frames. SQLite locks other files, so that closing this one is safe. */
static void hold_in_log(const char *database, uint64_t bytes)
{
	const struct hx_io *io = hx_io_system();
	char path[NAME_SIZE];
	int file;

	path_of(database, "-wal", path);
	file = io->ops->open(io->context, path, HX_IO_WRITE, 0);
	if (file < 0)
		return;
	(void)io->ops->fallocate(io->context, file, size_of(path), bytes);
	(void)io->ops->close(io->context, file);
}

bool hx_sqlite_reserve_release(const char *database)
{
	const struct hx_io *io = hx_io_system();
	char path[NAME_SIZE];
	uint64_t size, left;
	int file, failed;

	path_of(database, "-reserve", path);
	size = held_by(path);
	if (size == 0)
		return false;
	left = size > PART_BYTES ? size - PART_BYTES : 0;
	file = io->ops->open(io->context, path, HX_IO_WRITE, 0);
	if (file < 0)
		return false;
	failed = io->ops->ftruncate(io->context, file, left);
	(void)io->ops->close(io->context, file);
	/* At once: other programs wait for space, too. */
	if (failed == 0 && size - left > FREE_BYTES)
		hold_in_log(database, size - left - FREE_BYTES);
	return failed == 0;
}
