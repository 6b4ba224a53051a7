/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.c - space for the ends of live claims when the disk is full.
 */
#include "store/log/write/reserve.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/io.h"

enum {
	PARTS = 4,
	/* A header, a frame and a seal are three blocks. */
	PART_BYTES_MIN = 4 * HX_LOG_BLOCK_SIZE,
	/* A small store stays small: all parts together are at most as large as its first segment. */
	PART_BYTES_SMALL = 256 * 1024,
	/* All parts together are a quarter of a large segment. */
	PART_DIVISOR = PARTS * 4,
	MODE_FILE = 0600,
};

uint64_t hx_log_reserve_part(uint64_t segment_bytes, uint64_t active_bytes)
{
	uint64_t part = segment_bytes / PARTS;

	if (part > PART_BYTES_SMALL)
		part = PART_BYTES_SMALL;
	if (part < active_bytes / PART_DIVISOR)
		part = active_bytes / PART_DIVISOR;
	if (part < PART_BYTES_MIN)
		part = PART_BYTES_MIN;
	return part / HX_LOG_BLOCK_SIZE * HX_LOG_BLOCK_SIZE;
}

static void part_path(
	const struct hx_log_directory *directory, unsigned part, char ret_path[HX_LOG_PATH_SIZE])
{
	char name[HX_LOG_NAME_SIZE];

	(void)snprintf(name, sizeof(name), HX_LOG_RESERVE_PREFIX "%u", part + 1);
	hx_log_path(directory, name, ret_path);
}

static uint64_t part_size(const struct hx_log_directory *directory, const char *path)
{
	struct hx_io_stat st;

	return directory->io->ops->stat_path(directory->io->context, path, &st) == 0 ? st.size : 0;
}

/* For file systems without fallocate(). */
static int write_zeros(const struct hx_io *io, int file, uint64_t offset, uint64_t end)
{
	static const unsigned char zeros[HX_LOG_BLOCK_SIZE];
	int failed = 0;

	for (; offset < end && failed == 0; offset += sizeof(zeros))
		failed = hx_io_write_full(io, file, zeros, sizeof(zeros), offset);
	return failed;
}

/* Whole, or as it was: a part of a part would only take space. */
static int grow(
	const struct hx_log_directory *directory, const char *path, uint64_t size, uint64_t wanted)
{
	const struct hx_io *io = directory->io;
	int file = io->ops->open(io->context, path, HX_IO_WRITE | HX_IO_CREATE, MODE_FILE);
	int failed;

	assert(size < wanted);
	if (file < 0)
		return file;
	failed = io->ops->fallocate(io->context, file, 0, wanted);
	if (failed == -EOPNOTSUPP)
		failed =
			write_zeros(io, file, size / HX_LOG_BLOCK_SIZE * HX_LOG_BLOCK_SIZE, wanted);
	if (failed != 0)
		(void)io->ops->ftruncate(io->context, file, size);
	(void)io->ops->close(io->context, file);
	return failed;
}

int hx_log_reserve_keep(const struct hx_log_directory *directory, uint64_t part_bytes)
{
	int failed = 0;

	/* Only the owner makes files. */
	assert(directory->lock_file >= 0);
	assert(part_bytes % HX_LOG_BLOCK_SIZE == 0);
	for (unsigned part = 0; part < PARTS && failed == 0; part++) {
		char path[HX_LOG_PATH_SIZE];
		uint64_t size;

		part_path(directory, part, path);
		size = part_size(directory, path);
		if (size < part_bytes)
			failed = grow(directory, path, size, part_bytes);
	}
	return failed;
}

bool hx_log_reserve_find(const struct hx_log_directory *directory, char ret_path[HX_LOG_PATH_SIZE])
{
	for (unsigned part = PARTS; part > 0; part--) {
		part_path(directory, part - 1, ret_path);
		if (part_size(directory, ret_path) >= PART_BYTES_MIN)
			return true;
	}
	return false;
}

uint64_t hx_log_reserve_bytes(const struct hx_log_directory *directory)
{
	uint64_t bytes = 0;

	for (unsigned part = 0; part < PARTS; part++) {
		char path[HX_LOG_PATH_SIZE];

		part_path(directory, part, path);
		bytes += part_size(directory, path);
	}
	return bytes;
}
