/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock.c - one run of a key at a time, on this host.
 */
#include "cli/run/run_lock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hapax/clock.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/process.h"
#include "base/sha256.h"

enum {
	HASH_BYTES = 16,
	/* Each retry means that another process removed the file we were about to lock. */
	TRIES_MAX = 1000,
};

/* False: the boot id is unknown, as in a container without /proc. */
static bool read_boot(unsigned char boot_id[HAPAX_BOOT_ID_SIZE])
{
	const struct hapax_clock *clock = hapax_clock_system();

	clock->boot_id(clock->context, boot_id);
	return hx_clock_boot_id_is_known(boot_id);
}

/* Hash the length first, so that no two keys collide. */
static void hash_part(struct hx_sha256 *sha, const void *data, size_t size)
{
	uint64_t length = size;

	hx_sha256_update(sha, &length, sizeof(length));
	hx_sha256_update(sha, data, size);
}

/* A store file may have many paths. */
static void hash_store(struct hx_sha256 *sha, const char *url)
{
	const struct hx_io *io = hx_io_system();
	const char *colon = strchr(url, ':');
	struct hx_io_stat stat;

	if (colon == NULL || io->ops->stat_path(io->context, colon + 1, &stat) != 0) {
		hash_part(sha, url, strlen(url));
		return;
	}
	hash_part(sha, url, (size_t)(colon - url));
	hash_part(sha, &stat.device, sizeof(stat.device));
	hash_part(sha, &stat.inode, sizeof(stat.inode));
}

bool hx_cmd_run_lock_name(const struct hx_cmd_run_lock_key *key, char ret[HX_RUN_LOCK_NAME_SIZE])
{
	unsigned char boot_id[HAPAX_BOOT_ID_SIZE], digest[HX_SHA256_SIZE];
	struct hx_sha256 sha = {NULL};

	_Static_assert(
		HX_RUN_LOCK_NAME_SIZE == 2 * HAPAX_BOOT_ID_SIZE + 1 + 2 * HASH_BYTES + 1,
		"boot, dash, hash, NUL");
	if (hx_sha256_init(&sha) != HAPAX_OK)
		return false;
	hash_store(&sha, key->store_url);
	hash_part(&sha, key->tenant.data, key->tenant.size);
	hash_part(&sha, key->group.data, key->group.size);
	hash_part(&sha, key->key.data, key->key.size);
	hx_sha256_final(&sha, digest);
	hx_sha256_done(&sha);
	(void)read_boot(boot_id);
	hx_hex_encode(boot_id, sizeof(boot_id), ret);
	ret[2 * HAPAX_BOOT_ID_SIZE] = '-';
	hx_hex_encode(digest, HASH_BYTES, ret + 2 * HAPAX_BOOT_ID_SIZE + 1);
	ret[HX_RUN_LOCK_NAME_SIZE - 1] = '\0';
	return true;
}

void hx_cmd_run_lock_init(
	struct hx_cmd_run_lock *lock, const struct hx_cmd_run_folders *folders,
	const struct hx_cmd_run_lock_key *key)
{
	lock->folders = folders;
	lock->key = *key;
	lock->file = -1;
	lock->is_left = false;
	lock->claim_count = 0;
	if (!hx_cmd_run_lock_name(key, lock->name))
		lock->name[0] = '\0';
}

static bool make_path(char out[HX_RUN_PATH_SIZE], const char *folder, const char *name)
{
	int size = snprintf(out, HX_RUN_PATH_SIZE, "%s/%s", folder, name);

	return name[0] != '\0' && size > 0 && size < HX_RUN_PATH_SIZE;
}

/* Does path still name the open file? */
static bool is_named(const char *path, int file)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat ours, named;

	return io->ops->stat(io->context, file, &ours) == 0 &&
		io->ops->stat_path(io->context, path, &named) == 0 && ours.device == named.device &&
		ours.inode == named.inode;
}

int hx_cmd_run_lock_file(const char *path)
{
	const struct hx_io *io = hx_io_system();
	int file = io->ops->open(io->context, path, HX_IO_READ | HX_IO_WRITE, 0);

	if (file < 0 || (hx_file_lock(file) && is_named(path, file)))
		return file;
	(void)io->ops->close(io->context, file);
	return -EAGAIN;
}

/* Read the note of a file. The note of a free file counts only if the boot id is known. */
static bool keep_claim(struct hx_cmd_run_lock *lock, int file, bool is_free)
{
	unsigned char boot_id[HAPAX_BOOT_ID_SIZE];
	struct hx_cmd_run_note note;

	if ((is_free && !read_boot(boot_id)) || !hx_cmd_run_note_read(file, &note))
		return false;
	assert(lock->claim_count < HX_COUNT(lock->claims));
	lock->claims[lock->claim_count++] = note.claim;
	return true;
}

static enum hx_cmd_run_lock_taken be_busy(struct hx_cmd_run_lock *lock, int file)
{
	lock->claim_count = 0;
	(void)keep_claim(lock, file, false);
	return HX_RUN_LOCK_BUSY;
}

/* Open or create the file at lock->path, and lock it. */
static enum hx_cmd_run_lock_taken take_file(struct hx_cmd_run_lock *lock)
{
	const struct hx_io *io = hx_io_system();

	for (int i = 0; i < TRIES_MAX; i++) {
		bool is_locked;
		int file = io->ops->open(
			io->context, lock->path, HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE, 0600);

		if (file < 0)
			return HX_RUN_LOCK_NONE;
		is_locked = hx_file_lock(file);
		if (is_locked && is_named(lock->path, file)) {
			lock->file = file;
			lock->is_left = keep_claim(lock, file, true);
			return HX_RUN_LOCK_TAKEN;
		}
		if (!is_locked)
			(void)be_busy(lock, file);
		(void)io->ops->close(io->context, file);
		if (!is_locked)
			return HX_RUN_LOCK_BUSY;
	}
	return HX_RUN_LOCK_BUSY;
}

/* Use the first folder that works: it is the same for all processes that share it. */
static enum hx_cmd_run_lock_taken take_first(struct hx_cmd_run_lock *lock)
{
	enum hx_cmd_run_lock_taken taken = HX_RUN_LOCK_NONE;

	for (size_t i = 0; i < lock->folders->make_count && taken == HX_RUN_LOCK_NONE; i++) {
		const char *folder = lock->folders->paths[i];

		if (make_path(lock->path, folder, lock->name) &&
		    hx_io_make_folders(hx_io_system(), folder, 0700, NULL) == HAPAX_OK)
			taken = take_file(lock);
	}
	return taken;
}

/* Does another process hold the lock in that folder? */
static bool is_held_in(struct hx_cmd_run_lock *lock, const char *folder)
{
	const struct hx_io *io = hx_io_system();
	char path[HX_RUN_PATH_SIZE];
	bool is_held = false;
	int file;

	if (!make_path(path, folder, lock->name))
		return false;
	/* One folder may have two names: then the file is our own. */
	if (lock->file >= 0 && is_named(path, lock->file))
		return false;
	file = io->ops->open(io->context, path, HX_IO_READ, 0);
	if (file < 0)
		return false;
	is_held = hx_file_is_locked(file);
	if (is_held)
		(void)be_busy(lock, file);
	else
		(void)keep_claim(lock, file, true);
	(void)io->ops->close(io->context, file);
	return is_held;
}

static bool is_held_elsewhere(struct hx_cmd_run_lock *lock)
{
	for (size_t i = 0; i < lock->folders->count; i++)
		if (is_held_in(lock, lock->folders->paths[i]))
			return true;
	return false;
}

enum hx_cmd_run_lock_taken hx_cmd_run_lock_take(struct hx_cmd_run_lock *lock)
{
	enum hx_cmd_run_lock_taken taken;

	if (lock->file >= 0)
		return HX_RUN_LOCK_TAKEN;
	lock->claim_count = 0;
	taken = take_first(lock);
	if (taken != HX_RUN_LOCK_BUSY && is_held_elsewhere(lock)) {
		hx_cmd_run_lock_drop(lock);
		taken = HX_RUN_LOCK_BUSY;
	}
	return taken;
}

bool hx_cmd_run_lock_tells_of(const struct hx_cmd_run_lock *lock, const struct hapax_record *record)
{
	for (size_t i = 0; i < lock->claim_count; i++)
		if (hx_cmd_run_note_claim_is_in(&lock->claims[i], record))
			return true;
	return false;
}

void hx_cmd_run_lock_settle(struct hx_cmd_run_lock *lock)
{
	const struct hx_io *io = hx_io_system();
	char path[HX_RUN_PATH_SIZE];

	lock->is_left = false;
	/*
	 * Our file goes when we drop the lock. Files in other folders are removed by the runs that
	 * find them.
	 */
	for (size_t i = 0; i < lock->folders->count && lock->claim_count > 0; i++) {
		int file;

		if (!make_path(path, lock->folders->paths[i], lock->name) ||
		    (lock->file >= 0 && is_named(path, lock->file)))
			continue;
		file = hx_cmd_run_lock_file(path);
		if (file < 0)
			continue;
		(void)io->ops->unlink(io->context, path);
		(void)io->ops->close(io->context, file);
	}
	lock->claim_count = 0;
}

void hx_cmd_run_lock_note(struct hx_cmd_run_lock *lock, const struct hapax_record *record)
{
	assert(lock->file >= 0);
	lock->is_left = false;
	(void)hx_cmd_run_note_write(
		lock->file, record, lock->key.tenant, lock->key.group, lock->key.key);
}

void hx_cmd_run_lock_drop(struct hx_cmd_run_lock *lock)
{
	const struct hx_io *io = hx_io_system();

	if (lock->file < 0)
		return;
	/* Remove it while locked: a process that has opened it sees that its name is gone. */
	if (!lock->is_left && is_named(lock->path, lock->file))
		(void)io->ops->unlink(io->context, lock->path);
	(void)io->ops->close(io->context, lock->file);
	lock->file = -1;
}

enum hx_cmd_run_lock_state hx_cmd_run_lock_probe(
	struct hx_cmd_run_lock *lock, const struct hapax_record *record)
{
	lock->claim_count = 0;
	if (is_held_elsewhere(lock))
		return HX_RUN_LOCK_HELD;
	if (record != NULL && record->state == HAPAX_STATE_CLAIMED &&
	    hx_cmd_run_lock_tells_of(lock, record))
		return HX_RUN_LOCK_FREE;
	return HX_RUN_LOCK_ABSENT;
}

void hx_cmd_run_lock_break(struct hx_cmd_run_lock *lock)
{
	const struct hx_io *io = hx_io_system();
	char path[HX_RUN_PATH_SIZE];

	for (size_t i = 0; i < lock->folders->count; i++)
		if (make_path(path, lock->folders->paths[i], lock->name))
			(void)io->ops->unlink(io->context, path);
}
