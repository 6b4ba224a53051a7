/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock.c - lock files of runs on this host.
 */
#include "cli/run_lock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hapax/clock.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/process.h"
#include "cli/environment.h"
#include "cli/owner.h"

enum {
	BOOT_TEXT_SIZE = 2 * HAPAX_BOOT_ID_SIZE,
	CONTENT_SIZE_MAX = BOOT_TEXT_SIZE + HX_OWNER_SIZE_MAX + 3,
};

/* False: the path was too long, and the folder does not count. */
__attribute__((format(printf, 2, 3))) static bool add_folder(
	struct hx_run_lock_folders *folders, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(folders->paths[folders->count], HX_RUN_LOCK_PATH_SIZE, format, arguments);
	va_end(arguments);
	if (size < 0 || size >= HX_RUN_LOCK_PATH_SIZE)
		return false;
	folders->count++;
	return true;
}

void hx_run_lock_folders(struct hx_run_lock_folders *folders)
{
	const char *runtime = hx_environment("XDG_RUNTIME_DIR");
	const char *state = hx_environment("XDG_STATE_HOME");
	const char *home = hx_environment("HOME");

	folders->count = 0;
	/* By the specification a relative path is ignored. */
	if (runtime != NULL && runtime[0] == '/')
		(void)add_folder(folders, "%s/hapax/run", runtime);
	if (state != NULL && state[0] == '/')
		(void)add_folder(folders, "%s/hapax/run", state);
	else if (home != NULL)
		(void)add_folder(folders, "%s/.local/state/hapax/run", home);
	/* A system service has neither. */
	if (geteuid() == 0)
		(void)add_folder(folders, "/run/hapax/run");
	folders->make_count = folders->count;
	/* Where a session of the same user keeps its own; cron is not told. */
	if (runtime == NULL)
		(void)add_folder(folders, "/run/user/%u/hapax/run", (unsigned)geteuid());
}

/* The path of a claim's file in a folder, with something before and behind its name. */
static bool make_path(
	char out[HX_RUN_LOCK_PATH_SIZE], const char *folder, const char *before,
	const struct hapax_record *record, const char *behind)
{
	char attempt[2 * HAPAX_ATTEMPT_ID_SIZE + 1] = "";
	int size;

	hx_hex_encode(record->attempt_id, HAPAX_ATTEMPT_ID_SIZE, attempt);
	size = snprintf(
		out, HX_RUN_LOCK_PATH_SIZE, "%s/%s%" PRIu64 "-%s%s", folder, before, record->token,
		attempt, behind);
	return size > 0 && size < HX_RUN_LOCK_PATH_SIZE;
}

/* False: the boot is not known, as in a container without /proc. */
static bool boot_text(char out[BOOT_TEXT_SIZE + 1])
{
	const struct hapax_clock *clock = hapax_clock_system();
	unsigned char boot_id[HAPAX_BOOT_ID_SIZE];

	clock->boot_id(clock->context, boot_id);
	hx_hex_encode(boot_id, sizeof(boot_id), out);
	out[BOOT_TEXT_SIZE] = '\0';
	return hx_boot_id_is_known(boot_id);
}

/*
 * A folder may be shared with other hosts, and outlive a reboot. A free file says that
 * a run is dead only if it was made in this boot.
 */
static bool is_of_this_boot(int file)
{
	const struct hx_io *io = hx_io_system();
	char ours[BOOT_TEXT_SIZE + 1], found[BOOT_TEXT_SIZE];
	ssize_t size = hx_io_read_full(io, file, found, sizeof(found), 0);

	return boot_text(ours) && size == BOOT_TEXT_SIZE &&
		memcmp(ours, found, BOOT_TEXT_SIZE) == 0;
}

static enum hx_run_lock_state probe_file(int file)
{
	bool is_held = hx_file_is_locked(file);

	/* Whatever keeps us from knowing, the lease still decides. */
	if (!is_held && (errno != 0 || !is_of_this_boot(file)))
		return HX_RUN_LOCK_ABSENT;
	return is_held ? HX_RUN_LOCK_HELD : HX_RUN_LOCK_FREE;
}

enum hx_run_lock_state hx_run_lock_probe(
	const struct hx_run_lock_folders *folders, const struct hapax_record *record,
	char ret_path[HX_RUN_LOCK_PATH_SIZE])
{
	const struct hx_io *io = hx_io_system();

	for (size_t i = 0; i < folders->count; i++) {
		enum hx_run_lock_state state;
		int file;

		if (!make_path(ret_path, folders->paths[i], "", record, ""))
			continue;
		file = io->ops->open(io->context, ret_path, HX_IO_READ, 0);
		if (file < 0)
			continue;
		state = probe_file(file);
		(void)io->ops->close(io->context, file);
		if (state != HX_RUN_LOCK_ABSENT)
			return state;
	}
	return HX_RUN_LOCK_ABSENT;
}

void hx_run_lock_remove_free(const char *path)
{
	const struct hx_io *io = hx_io_system();

	(void)io->ops->unlink(io->context, path);
}

static int write_content(int file)
{
	char boot[BOOT_TEXT_SIZE + 1], owner[HX_OWNER_SIZE_MAX + 1], text[CONTENT_SIZE_MAX];
	int size;

	(void)boot_text(boot);
	hx_owner_text(owner);
	size = snprintf(text, sizeof(text), "%s\n%s\n", boot, owner);
	return hx_io_write_full(hx_io_system(), file, text, (size_t)size, 0);
}

/* Locked first, then named. 0, or a negative errno. */
static int make_in(struct hx_run_lock *lock, const char *folder, const struct hapax_record *record)
{
	const struct hx_io *io = hx_io_system();
	char unnamed[HX_RUN_LOCK_PATH_SIZE];
	int file, failed;

	if (!make_path(unnamed, folder, ".", record, ".new") ||
	    !make_path(lock->path, folder, "", record, ""))
		return -ENAMETOOLONG;
	if (hx_dir_make_all(io, folder, 0700, NULL) != HAPAX_OK)
		return -ENOTDIR;
	file = io->ops->open(
		io->context, unnamed, HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE | HX_IO_EXCLUSIVE,
		0600);
	if (file < 0)
		return file;
	failed = hx_file_lock(file) ? write_content(file) : -errno;
	if (!failed)
		failed = io->ops->rename(io->context, unnamed, lock->path);
	if (failed) {
		(void)io->ops->unlink(io->context, unnamed);
		(void)io->ops->close(io->context, file);
		return failed;
	}
	lock->file = file;
	return 0;
}

enum hapax_status hx_run_lock_make(
	struct hx_run_lock *lock, const struct hx_run_lock_folders *folders,
	const struct hapax_record *record, struct hapax_error *err)
{
	int failed = -ENOENT;

	lock->file = -1;
	for (size_t i = 0; i < folders->make_count; i++) {
		failed = make_in(lock, folders->paths[i], record);
		if (!failed)
			return HAPAX_OK;
	}
	return hx_error_set(
		err, hx_status_from_errno(-failed), -failed, "no lock file was made%s%s",
		folders->make_count > 0 ? " in " : "",
		folders->make_count > 0 ? folders->paths[0] : "");
}

void hx_run_lock_remove(struct hx_run_lock *lock)
{
	const struct hx_io *io = hx_io_system();

	if (lock->file < 0)
		return;
	(void)io->ops->unlink(io->context, lock->path);
	(void)io->ops->close(io->context, lock->file);
	lock->file = -1;
}
