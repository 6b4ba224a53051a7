/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_guard.c - one run of a key at a time decides to start, on this host.
 */
#include "cli/run_guard.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/hex.h"
#include "base/io.h"
#include "base/process.h"
#include "base/sha256.h"

enum {
	NAME_BYTES = 16,
	/* Each time somebody has removed the file that we were about to lock. */
	TRIES_MAX = 1000,
};

/* Each part with its length before it, so that no two keys meet. False: no memory. */
static bool make_name(
	const struct hapax_bytes *parts, size_t part_count, char out[2 * NAME_BYTES + 1])
{
	unsigned char digest[HX_SHA256_SIZE];
	struct hx_sha256 sha = {NULL};

	if (hx_sha256_init(&sha) != HAPAX_OK)
		return false;
	for (size_t i = 0; i < part_count; i++) {
		uint64_t size = parts[i].size;

		hx_sha256_update(&sha, &size, sizeof(size));
		hx_sha256_update(&sha, parts[i].data, parts[i].size);
	}
	hx_sha256_final(&sha, digest);
	hx_sha256_done(&sha);
	hx_hex_encode(digest, NAME_BYTES, out);
	out[2 * NAME_BYTES] = '\0';
	return true;
}

/* Does the name still mean the file that we have locked? */
static bool is_named(const char *path, int file)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat ours, named;

	return io->ops->stat(io->context, file, &ours) == 0 &&
		io->ops->stat_path(io->context, path, &named) == 0 && ours.device == named.device &&
		ours.inode == named.inode;
}

static enum hx_run_guard_state take_in(struct hx_run_guard *guard)
{
	const struct hx_io *io = hx_io_system();

	for (int i = 0; i < TRIES_MAX; i++) {
		bool is_locked;
		int file = io->ops->open(
			io->context, guard->path, HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE, 0600);

		if (file < 0)
			return HX_RUN_GUARD_NONE;
		is_locked = hx_file_lock(file);
		if (is_locked && is_named(guard->path, file)) {
			guard->file = file;
			return HX_RUN_GUARD_TAKEN;
		}
		(void)io->ops->close(io->context, file);
		if (!is_locked)
			return HX_RUN_GUARD_BUSY;
	}
	return HX_RUN_GUARD_BUSY;
}

enum hx_run_guard_state hx_run_guard_take(
	struct hx_run_guard *guard, const struct hx_run_lock_folders *folders,
	const struct hapax_bytes *parts, size_t part_count)
{
	const struct hx_io *io = hx_io_system();
	enum hx_run_guard_state state = HX_RUN_GUARD_NONE;
	char name[2 * NAME_BYTES + 1];

	guard->file = -1;
	if (!make_name(parts, part_count, name))
		return HX_RUN_GUARD_NONE;
	/* In the first folder that works, which is the same for all who share it. */
	for (size_t i = 0; i < folders->make_count && state == HX_RUN_GUARD_NONE; i++) {
		int size = snprintf(
			guard->path, sizeof(guard->path), "%s/.key-%s", folders->paths[i], name);

		if (size < 0 || (size_t)size >= sizeof(guard->path) ||
		    hx_dir_make_all(io, folders->paths[i], 0700, NULL) != HAPAX_OK)
			continue;
		state = take_in(guard);
	}
	return state;
}

void hx_run_guard_drop(struct hx_run_guard *guard)
{
	const struct hx_io *io = hx_io_system();

	if (guard->file < 0)
		return;
	/* Removed while it is locked: whoever opened it meanwhile sees that it has no name. */
	(void)io->ops->unlink(io->context, guard->path);
	(void)io->ops->close(io->context, guard->file);
	guard->file = -1;
}
