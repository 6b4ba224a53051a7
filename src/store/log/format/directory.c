/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c - a store's directory.
 */
#include "store/log/format/directory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "base/lock_note.h"

enum {
	ID_DIGITS = 16,
	/* Records may hold any data: only the owner may read them. */
	MODE_DIRECTORY = 0700,
	MODE_FILE = 0600,
};

void hx_log_name(
	char ret_name[HX_LOG_NAME_SIZE], enum hx_log_kind kind, uint64_t id, const char *suffix)
{
	int size = snprintf(
		ret_name, HX_LOG_NAME_SIZE, "%s-%016" PRIx64 ".seg%s", hx_log_kind_name(kind), id,
		suffix);

	assert(size > 0);
	assert(size < HX_LOG_NAME_SIZE);
}

static bool parse_id(const char *digits, uint64_t *ret_id)
{
	uint64_t id = 0;

	for (int i = 0; i < ID_DIGITS; i++) {
		char c = digits[i];

		if (c >= '0' && c <= '9')
			id = id << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			id = id << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*ret_id = id;
	return true;
}

bool hx_log_name_parse(const char *name, enum hx_log_kind *ret_kind, uint64_t *ret_id)
{
	for (unsigned kind = 0; kind < HX_LOG_KIND_COUNT; kind++) {
		const char *word = hx_log_kind_name((enum hx_log_kind)kind);
		size_t size = strlen(word);

		if (strncmp(name, word, size) != 0 || name[size] != '-')
			continue;
		if (strlen(name) != size + 1 + ID_DIGITS + strlen(".seg") ||
		    strcmp(name + size + 1 + ID_DIGITS, ".seg") != 0)
			return false;
		*ret_kind = (enum hx_log_kind)kind;
		return parse_id(name + size + 1, ret_id);
	}
	return false;
}

/* The path is absolute and has no slash behind it, unless it is the root. */
static void directory_assert(const struct hx_log_directory *directory)
{
	assert(directory->io != NULL);
	assert(directory->path[0] == '/');
	assert(directory->path[sizeof(directory->path) - 1] == '\0');
	assert(directory->lock_file >= -1);
}

void hx_log_path(
	const struct hx_log_directory *directory, const char *name, char ret_path[HX_LOG_PATH_SIZE])
{
	int size = snprintf(ret_path, HX_LOG_PATH_SIZE, "%s/%s", directory->path, name);

	assert(size > 0);
	assert(size < HX_LOG_PATH_SIZE);
}

void hx_log_segment_path(
	const struct hx_log_directory *directory, enum hx_log_kind kind, uint64_t id,
	const char *suffix, char ret_path[HX_LOG_PATH_SIZE])
{
	char name[HX_LOG_NAME_SIZE];

	hx_log_name(name, kind, id, suffix);
	hx_log_path(directory, name, ret_path);
}

enum hapax_status hx_log_directory_init(
	struct hx_log_directory *directory, const struct hx_io *io, const char *path,
	struct hapax_error *err)
{
	size_t size = strlen(path);
	enum hapax_status status;

	memset(directory, 0, sizeof(*directory));
	directory->io = io;
	directory->lock_file = -1;
	while (size > 1 && path[size - 1] == '/')
		size--;
	if (size == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"missing directory in the store URL; use file:DIRECTORY, as in "
			"'file:/var/lib/hapax/store'");
	status = hx_io_path_absolute(
		hx_bytes(path, size), directory->path, sizeof(directory->path), err);
	if (status != HAPAX_OK)
		return status;
	/* A path that ends in "." has no name, so no sibling could be named after it. */
	size = strlen(directory->path);
	while (size > 2 && strcmp(directory->path + size - 2, "/.") == 0)
		directory->path[size -= 2] = '\0';
	directory_assert(directory);
	assert(directory->lock_file == -1);
	return HAPAX_OK;
}

static enum hapax_status failed_at(
	struct hapax_error *err, int failed, const char *what, const char *path)
{
	assert(failed < 0);
	return hx_error_set(
		err, hx_error_status_of(-failed), -failed, "could not %s '%s'", what, path);
}

/* The holder, as far as LOCK names it. */
static enum hapax_status refuse_second(
	struct hx_log_directory *directory, int file, struct hapax_error *err)
{
	struct hx_lock_note note;

	/* The other process holds it. */
	assert(directory->lock_file == -1);
	(void)hx_lock_note_read(directory->io, file, &note);
	(void)hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0,
		"store '%.128s' is in use by process %s; a file: store has one owner",
		directory->path, note.pid[0] != '\0' ? note.pid : "unknown");
	/* For callers; to people the message says more than its text. */
	if (err != NULL)
		err->os_errno = EBUSY;
	return HAPAX_ERR_UNAVAILABLE;
}

enum hapax_status hx_log_directory_lock(
	struct hx_log_directory *directory, bool may_create, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	unsigned flags = HX_IO_READ | HX_IO_WRITE | (may_create ? (unsigned)HX_IO_CREATE : 0);
	char path[HX_LOG_PATH_SIZE];
	struct hx_io_stat st;
	int file, failed;

	directory_assert(directory);
	/* A second lock by the same process would succeed, and its end would release both. */
	assert(directory->lock_file == -1);
	hx_log_path(directory, "LOCK", path);
	file = io->ops->open(io->context, path, flags, MODE_FILE);
	/* A process that has a store open has created LOCK. */
	if (file == -ENOENT && !may_create)
		return HAPAX_OK;
	if (file < 0)
		return failed_at(err, file, "open", path);
	failed = io->ops->lock(io->context, file);
	if (failed != 0) {
		enum hapax_status status = failed == -EAGAIN ? refuse_second(directory, file, err)
							     : failed_at(err, failed, "lock", path);

		(void)io->ops->close(io->context, file);
		return status;
	}
	directory->lock_file = file;
	failed = io->ops->stat_path(io->context, directory->path, &st);
	if (failed != 0)
		return failed_at(err, failed, "read", directory->path);
	directory->device = st.device;
	directory->inode = st.inode;
	return HAPAX_OK;
}

enum hapax_status hx_log_directory_try(struct hx_log_directory *directory, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	char path[HX_LOG_PATH_SIZE];
	int file, failed;

	assert(directory->lock_file >= 0);
	/* The name that a crash may leave and every open removes. */
	hx_log_path(directory, "STORE.tmp", path);
	file = io->ops->open(io->context, path, HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE, MODE_FILE);
	if (file < 0)
		return failed_at(err, file, "create", path);
	(void)io->ops->close(io->context, file);
	failed = io->ops->unlink(io->context, path);
	return failed == 0 ? HAPAX_OK : failed_at(err, failed, "removed", path);
}

void hx_log_directory_sign(struct hx_log_directory *directory)
{
	if (directory->lock_file >= 0)
		hx_lock_note_write(directory->io, directory->lock_file);
}

bool hx_log_directory_is_gone(const struct hx_log_directory *directory)
{
	const struct hx_io *io = directory->io;
	char path[HX_LOG_PATH_SIZE];
	struct hx_io_stat st;
	int failed = io->ops->stat_path(io->context, directory->path, &st);

	/* Device and inode are known since the lock was taken. */
	assert(directory->lock_file >= 0);
	if (failed == 0 && (st.device != directory->device || st.inode != directory->inode))
		return true;
	hx_log_path(directory, "STORE", path);
	return io->ops->stat_path(io->context, path, &st) == -ENOENT;
}

void hx_log_directory_done(struct hx_log_directory *directory)
{
	if (directory->lock_file >= 0)
		(void)directory->io->ops->close(directory->io->context, directory->lock_file);
	directory->lock_file = -1;
}

/* The content of a directory without STORE. */
struct contents {
	bool has_segments;
	bool has_others;
	bool has_lock;
};

/* Our LOCK holds a note, or nothing yet. */
static bool lock_is_ours(const struct hx_log_directory *directory)
{
	char path[HX_LOG_PATH_SIZE];
	struct hx_lock_note note;

	hx_log_path(directory, "LOCK", path);
	return hx_lock_note_find(directory->io, path, &note);
}

/* A segment that was being made? */
static bool is_unfinished(const char *name)
{
	static const char end[] = ".tmp";
	size_t size = strlen(name);
	char segment[HX_LOG_NAME_SIZE];
	enum hx_log_kind kind;
	uint64_t id;

	if (strcmp(name, "STORE.tmp") == 0)
		return true;
	if (size >= sizeof(segment) || size < sizeof(end) ||
	    strcmp(name + size - (sizeof(end) - 1), end) != 0)
		return false;
	memcpy(segment, name, size - (sizeof(end) - 1));
	segment[size - (sizeof(end) - 1)] = '\0';
	return hx_log_name_parse(segment, &kind, &id);
}

static int look_at(void *arg, const char *name)
{
	struct contents *contents = arg;
	enum hx_log_kind kind;
	uint64_t id;

	/* The reserve is made when STORE is durable, so it shows a store, too. */
	if (hx_log_name_parse(name, &kind, &id) ||
	    strncmp(name, HX_LOG_RESERVE_PREFIX, strlen(HX_LOG_RESERVE_PREFIX)) == 0)
		contents->has_segments = true;
	else if (strcmp(name, "LOCK") == 0)
		contents->has_lock = true;
	else if (strcmp(name, "STORE.tmp") != 0 && strcmp(name, "lost+found") != 0)
		contents->has_others = true;
	return 0;
}

static enum hapax_status judge_without_store(
	struct hx_log_directory *directory, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	struct contents contents = {0};
	int failed = io->ops->list(io->context, directory->path, look_at, &contents);

	directory_assert(directory);
	if (failed != 0)
		return failed_at(err, failed, "listed", directory->path);
	if (contents.has_segments)
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"'%.128s' has segments but no STORE file: it is damaged, or part of a "
			"backup",
			directory->path);
	if (contents.has_others || (contents.has_lock && !lock_is_ours(directory)))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"'%.128s' has other files and no store; choose an empty or a new directory",
			directory->path);
	return HAPAX_OK;
}

static enum hapax_status read_store_file(
	struct hx_log_directory *directory, int file, const char *path, struct hapax_error *err)
{
	unsigned char block[HX_LOG_BLOCK_SIZE];
	struct hapax_error why = {0};
	enum hapax_status status;
	ssize_t size = hx_io_read_full(directory->io, file, block, sizeof(block), 0);

	if (size < 0)
		return failed_at(err, (int)size, "read", path);
	if ((size_t)size < sizeof(block))
		return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "'%s' is truncated", path);
	status = hx_log_store_decode(block, &directory->store, &why);
	if (status != HAPAX_OK)
		hx_error_set(err, status, 0, "'%s': %s", path, why.message);
	return status;
}

enum hapax_status hx_log_directory_read(
	struct hx_log_directory *directory, bool *ret_found, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	char path[HX_LOG_PATH_SIZE];
	enum hapax_status status;
	int file;

	directory_assert(directory);
	*ret_found = false;
	hx_log_path(directory, "STORE", path);
	file = io->ops->open(io->context, path, HX_IO_READ, 0);
	if (file == -ENOENT)
		return judge_without_store(directory, err);
	if (file < 0)
		return failed_at(err, file, "open", path);
	status = read_store_file(directory, file, path, err);
	(void)io->ops->close(io->context, file);
	*ret_found = status == HAPAX_OK;
	return status;
}

static int write_block(
	const struct hx_io *io, const char *path, const unsigned char block[HX_LOG_BLOCK_SIZE])
{
	int file = io->ops->open(
		io->context, path, HX_IO_WRITE | HX_IO_CREATE | HX_IO_TRUNCATE, MODE_FILE);
	int failed;

	if (file < 0)
		return file;
	failed = hx_io_write_full(io, file, block, HX_LOG_BLOCK_SIZE, 0);
	if (failed == 0)
		failed = io->ops->fdatasync(io->context, file);
	(void)io->ops->close(io->context, file);
	return failed;
}

enum hapax_status hx_log_directory_write(
	struct hx_log_directory *directory, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	unsigned char block[HX_LOG_BLOCK_SIZE];
	char path[HX_LOG_PATH_SIZE], tmp[HX_LOG_PATH_SIZE];
	int failed;

	directory_assert(directory);
	/* Only the owner changes STORE. */
	assert(directory->lock_file >= 0);
	hx_log_store_encode(&directory->store, block);
	hx_log_path(directory, "STORE", path);
	hx_log_path(directory, "STORE.tmp", tmp);
	failed = write_block(io, tmp, block);
	if (failed == 0)
		failed = io->ops->rename(io->context, tmp, path);
	if (failed != 0) {
		(void)io->ops->unlink(io->context, tmp);
		return failed_at(err, failed, "write", path);
	}
	return hx_log_directory_sync(directory, err);
}

enum hapax_status hx_log_directory_vouch(
	struct hx_log_directory *directory, uint64_t id, struct hapax_error *err)
{
	uint64_t before = directory->store.log_id;
	enum hapax_status status;

	assert(id != 0);
	if (id <= before)
		return HAPAX_OK;
	directory->store.log_id = id;
	status = hx_log_directory_write(directory, err);
	if (status != HAPAX_OK)
		directory->store.log_id = before;
	/* It never takes a word back: the log that STORE names has been seen. */
	assert(directory->store.log_id >= before);
	assert(status != HAPAX_OK || directory->store.log_id == id);
	return status;
}

void hx_log_directory_parent(
	const struct hx_log_directory *directory, char ret_path[HX_LOG_PATH_SIZE])
{
	const char *slash = strrchr(directory->path, '/');

	assert(directory->path[0] == '/');
	assert(slash != NULL);
	/* The slash of the root is its name. */
	(void)snprintf(
		ret_path, HX_LOG_PATH_SIZE, "%.*s",
		slash == directory->path ? 1 : (int)(slash - directory->path), directory->path);
}

enum hapax_status hx_log_directory_make(struct hx_log_directory *directory, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	char parent[HX_LOG_PATH_SIZE];
	int failed = io->ops->mkdir(io->context, directory->path, MODE_DIRECTORY);

	directory_assert(directory);
	if (failed == -EEXIST)
		return HAPAX_OK;
	if (failed != 0)
		return failed_at(err, failed, "create", directory->path);
	hx_log_directory_parent(directory, parent);
	failed = io->ops->fsync_dir(io->context, parent);
	return failed == 0 ? HAPAX_OK : failed_at(err, failed, "sync", parent);
}

static int remove_unfinished(void *arg, const char *name)
{
	struct hx_log_directory *directory = arg;
	char path[HX_LOG_PATH_SIZE];

	if (!is_unfinished(name))
		return 0;
	/* Another process may be making what is unfinished. */
	assert(directory->lock_file >= 0);
	hx_log_path(directory, name, path);
	return directory->io->ops->unlink(directory->io->context, path);
}

enum hapax_status hx_log_directory_clean(
	struct hx_log_directory *directory, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	int failed = io->ops->list(io->context, directory->path, remove_unfinished, directory);

	directory_assert(directory);
	/* A name that has already disappeared is fine. */
	if (failed != 0 && failed != -ENOENT)
		return failed_at(err, failed, "cleaned", directory->path);
	return HAPAX_OK;
}

enum hapax_status hx_log_directory_sync(struct hx_log_directory *directory, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	int failed = io->ops->fsync_dir(io->context, directory->path);

	directory_assert(directory);
	return failed == 0 ? HAPAX_OK : failed_at(err, failed, "sync", directory->path);
}
