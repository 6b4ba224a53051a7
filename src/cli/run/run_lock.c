/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_lock.c - one run of a key at a time, on this host.
 */
#include "cli/run/run_lock.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hapax/clock.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/macros.h"
#include "base/process.h"
#include "base/sha256.h"
#include "cli/frame/environment.h"
#include "cli/print/record_out.h"
#include "cli/run/run_note.h"

enum {
	HASH_BYTES = 16,
	/* Each retry means that another process removed the file we were about to lock. */
	TRIES_MAX = 1000,
};

/* ------------------------------------------------------------------ folders */

/* A path that is too long is skipped. */
__attribute__((format(printf, 2, 3))) static void add(
	struct hx_cmd_run_folders *folders, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(folders->paths[folders->count], HX_RUN_PATH_SIZE, format, arguments);
	va_end(arguments);
	if (size > 0 && size < HX_RUN_PATH_SIZE)
		folders->count++;
}

/* Read the environment. May find no folder. */
static void find_folders(struct hx_cmd_run_folders *folders)
{
	const char *runtime = hx_environment("XDG_RUNTIME_DIR");
	const char *state = hx_environment("XDG_STATE_HOME");
	char room[HX_HOME_ROOM_SIZE];
	const char *home = hx_environment_home(room);

	folders->count = 0;
	/* The specification says to ignore a relative path. */
	if (runtime != NULL && runtime[0] == '/')
		add(folders, "%s/hapax/run", runtime);
	if (state != NULL && state[0] == '/')
		add(folders, "%s/hapax/run", state);
	else if (home != NULL)
		add(folders, "%s/.local/state/hapax/run", home);
	/* A system service has neither of these. */
	if (geteuid() == 0)
		add(folders, "/run/hapax/run");
	folders->make_count = folders->count;
	/* A session of the same user keeps its locks here; cron lacks the variable. */
	if (runtime == NULL)
		add(folders, "/run/user/%u/hapax/run", (unsigned)geteuid());
}

/* ------------------------------------------------------------------ notes */

enum {
	ATTEMPT_DIGITS = 2 * HAPAX_ATTEMPT_ID_SIZE,
	HOST_SIZE = 65,
};

_Static_assert(
	HOST_SIZE + 32 + ATTEMPT_DIGITS + 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX <
		HX_RUN_NOTE_SIZE,
	"the largest note fits");

/* Is it the current or the last claim of record? */
static bool is_claim_of(
	const struct hx_cmd_run_lock_claim *claim, const struct hapax_record *record)
{
	if (claim->token != record->token)
		return false;
	/* A record that is no longer claimed has lost its attempt id. */
	return record->state != HAPAX_STATE_CLAIMED ||
		memcmp(claim->attempt_id, record->attempt_id, HAPAX_ATTEMPT_ID_SIZE) == 0;
}

/* False: the file is empty, or not in our format. */
static bool note_read(int file, struct hx_cmd_run_note *ret)
{
	ssize_t size = hx_io_read_full(hx_io_system(), file, ret->bytes, sizeof(ret->bytes) - 1, 0);

	return size > 0 && hx_cmd_run_note_parse(ret, (size_t)size);
}

static void read_host(char out[HOST_SIZE])
{
	if (gethostname(out, HOST_SIZE) != 0)
		(void)snprintf(out, HOST_SIZE, "localhost");
	/* A truncated name may lack its NUL. */
	out[HOST_SIZE - 1] = '\0';
}

/* Replace the content with record's claim on key. False: not written. */
static bool note_write(
	int file, const struct hapax_record *record, struct hapax_bytes tenant,
	struct hapax_bytes group, struct hapax_bytes key)
{
	const struct hx_io *io = hx_io_system();
	char host[HOST_SIZE], attempt[ATTEMPT_DIGITS + 1] = "", text[HX_RUN_NOTE_SIZE];
	int size;

	read_host(host);
	hx_hex_encode(record->attempt_id, HAPAX_ATTEMPT_ID_SIZE, attempt);
	size = snprintf(
		text, sizeof(text), "%s\n%" PRIu64 " %s\n%.*s\n%.*s\n%.*s", host, record->token,
		attempt, (int)tenant.size, (const char *)tenant.data, (int)group.size,
		(const char *)group.data, (int)key.size, (const char *)key.data);
	if (size < 0 || (size_t)size >= sizeof(text) - 1)
		return false;
	return io->ops->ftruncate(io->context, file, 0) == 0 &&
		hx_io_write_full(io, file, text, (size_t)size, 0) == 0;
}

/* Was it written on a machine with our host name? */
static bool note_is_of_this_host(const struct hx_cmd_run_note *note)
{
	char host[HOST_SIZE];

	read_host(host);
	return note->host.size == strlen(host) &&
		memcmp(note->host.data, host, note->host.size) == 0;
}

/* ------------------------------------------------------------------ the lock */

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

/* The name of a key's lock in this boot. False: out of memory. */
static bool make_name(const struct hx_cmd_run_lock_key *key, char ret[HX_RUN_LOCK_NAME_SIZE])
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

void hx_cmd_run_lock_init(struct hx_cmd_run_lock *lock, const struct hx_cmd_run_lock_key *key)
{
	find_folders(&lock->folders);
	lock->key = *key;
	lock->file = -1;
	lock->is_left = false;
	lock->claim_count = 0;
	if (!make_name(key, lock->name))
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

/*
 * Lock an existing file without waiting. Returns the file, or negative: absent, or held by another
 * process.
 */
static int lock_file(const char *path)
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

	if ((is_free && !read_boot(boot_id)) || !note_read(file, &note))
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

	for (size_t i = 0; i < lock->folders.make_count && taken == HX_RUN_LOCK_NONE; i++) {
		const char *folder = lock->folders.paths[i];

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
	for (size_t i = 0; i < lock->folders.count; i++)
		if (is_held_in(lock, lock->folders.paths[i]))
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
		if (is_claim_of(&lock->claims[i], record))
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
	for (size_t i = 0; i < lock->folders.count && lock->claim_count > 0; i++) {
		int file;

		if (!make_path(path, lock->folders.paths[i], lock->name) ||
		    (lock->file >= 0 && is_named(path, lock->file)))
			continue;
		file = lock_file(path);
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
	(void)note_write(lock->file, record, lock->key.tenant, lock->key.group, lock->key.key);
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

	for (size_t i = 0; i < lock->folders.count; i++)
		if (make_path(path, lock->folders.paths[i], lock->name))
			(void)io->ops->unlink(io->context, path);
}

/* ------------------------------------------------------------------ what dead runs left */

enum { BOOT_DIGITS = 2 * HAPAX_BOOT_ID_SIZE };

struct gc {
	struct hapax_store *store;
	const char *store_url;
	const char *folder;
	char boot[BOOT_DIGITS];
	uint64_t removed;
};

/* Is it the name of a lock, of any boot and key? */
static bool is_lock_name(const char *name)
{
	if (strlen(name) != HX_RUN_LOCK_NAME_SIZE - 1)
		return false;
	for (size_t i = 0; name[i] != '\0'; i++)
		if (i == BOOT_DIGITS ? name[i] != '-' : hx_hex_digit((unsigned char)name[i]) < 0)
			return false;
	return true;
}

/* Is the claim that the note names still there? True if the store does not answer. */
static bool stands(struct gc *gc, const struct hx_cmd_run_note *note)
{
	struct hapax_record record;
	struct hapax_buf buf;
	struct hapax_op op = {
		.type = HAPAX_OP_LOOKUP,
		.tenant = note->tenant,
		.group = note->group,
		.key = note->key,
		.record = &record,
		.buf = &buf,
	};
	bool does_stand = true;

	hx_buf_init(&buf, HX_RECORD_SIZE_MAX);
	if (hapax_store_run(gc->store, &op, 1, NULL) == HAPAX_OK)
		does_stand = op.outcome == HAPAX_OUTCOME_FOUND &&
			record.state == HAPAX_STATE_CLAIMED && is_claim_of(&note->claim, &record);
	hx_buf_done(&buf);
	return does_stand;
}

/* We hold the lock: is its file no longer needed? */
static bool is_done_with(struct gc *gc, const char *name, int file)
{
	struct hx_cmd_run_note note;
	char ours[HX_RUN_LOCK_NAME_SIZE];

	/* The holder died before it claimed. */
	if (!note_read(file, &note))
		return true;
	/*
	 * An earlier boot of this machine is over. Another machine that shares the folder may be
	 * up, and its locks may be invisible here.
	 */
	if (memcmp(name, gc->boot, BOOT_DIGITS) != 0)
		return note_is_of_this_host(&note);
	return make_name(
		       &(struct hx_cmd_run_lock_key){
			       gc->store_url, note.tenant, note.group, note.key},
		       ours) &&
		strcmp(name, ours) == 0 && !stands(gc, &note);
}

static int look_at(void *arg, const char *name)
{
	const struct hx_io *io = hx_io_system();
	struct gc *gc = arg;
	char path[HX_RUN_PATH_SIZE];
	int file;

	if (!is_lock_name(name) || !make_path(path, gc->folder, name))
		return 0;
	file = lock_file(path);
	if (file < 0)
		return 0;
	if (is_done_with(gc, name, file) && io->ops->unlink(io->context, path) == 0)
		gc->removed++;
	(void)io->ops->close(io->context, file);
	return 0;
}

uint64_t hx_cmd_run_lock_gc(struct hapax_store *store, const char *store_url)
{
	static struct hx_cmd_run_folders folders; /* too large for a stack */
	const struct hx_io *io = hx_io_system();
	struct gc gc = {.store = store, .store_url = store_url};
	unsigned char boot_id[HAPAX_BOOT_ID_SIZE];

	(void)read_boot(boot_id);
	hx_hex_encode(boot_id, sizeof(boot_id), gc.boot);
	find_folders(&folders);
	for (size_t i = 0; i < folders.count; i++) {
		gc.folder = folders.paths[i];
		(void)io->ops->list(io->context, gc.folder, look_at, &gc);
	}
	return gc.removed;
}
