/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.c - the operating system's files, and functions on any struct hx_io.
 */
#include "base/io.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"

/* Files that are read whole are small: most of them fit in one. */
enum { READ_CHUNK_BYTES = 64 * 1024 };

static int negative_errno(int failed)
{
	return failed ? -errno : 0;
}

static int open_flags(unsigned flags)
{
	int os_flags = O_CLOEXEC;

	assert(flags & (HX_IO_READ | HX_IO_WRITE));
	if (!(flags & HX_IO_WRITE))
		os_flags |= O_RDONLY;
	else
		os_flags |= flags & HX_IO_READ ? O_RDWR : O_WRONLY;
	os_flags |= flags & HX_IO_CREATE ? O_CREAT : 0;
	os_flags |= flags & HX_IO_EXCLUSIVE ? O_EXCL : 0;
	os_flags |= flags & HX_IO_TRUNCATE ? O_TRUNC : 0;
	os_flags |= flags & HX_IO_DIRECT ? O_DIRECT : 0;
	os_flags |= flags & HX_IO_DSYNC ? O_DSYNC : 0;
	return os_flags;
}

static int open_retried(const char *path, int os_flags, mode_t mode)
{
	int fd;

	do
		fd = open(path, os_flags, mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

static int system_open(void *context, const char *path, unsigned flags, mode_t mode)
{
	(void)context;
	return open_retried(path, open_flags(flags), mode);
}

static int system_close(void *context, int file)
{
	(void)context;
	/* Linux has closed it even after EINTR; a second close could hit another file. */
	if (close(file) != 0 && errno != EINTR)
		return -errno;
	return 0;
}

static ssize_t system_pread(void *context, int file, void *data, size_t size, uint64_t offset)
{
	ssize_t done;

	(void)context;
	assert(offset <= INT64_MAX);
	do
		done = pread(file, data, size, (off_t)offset);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}

static ssize_t system_pwrite(
	void *context, int file, const void *data, size_t size, uint64_t offset)
{
	ssize_t done;

	(void)context;
	assert(offset <= INT64_MAX);
	do
		done = pwrite(file, data, size, (off_t)offset);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}

static int system_fdatasync(void *context, int file)
{
	int failed;

	(void)context;
	do
		failed = fdatasync(file);
	while (failed && errno == EINTR);
	return negative_errno(failed);
}

static int system_fsync_dir(void *context, const char *path)
{
	int fd = open_retried(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int failed, result;

	(void)context;
	if (fd < 0)
		return fd;
	do
		failed = fsync(fd);
	while (failed && errno == EINTR);
	result = negative_errno(failed);
	(void)close(fd);
	return result;
}

static int system_rename(void *context, const char *source, const char *target)
{
	(void)context;
	return negative_errno(rename(source, target));
}

static int system_exchange(void *context, const char *one, const char *other)
{
	(void)context;
	return negative_errno(renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE));
}

static int system_unlink(void *context, const char *path)
{
	(void)context;
	return negative_errno(unlink(path));
}

static int system_mkdir(void *context, const char *path, mode_t mode)
{
	(void)context;
	return negative_errno(mkdir(path, mode));
}

static int system_fallocate(void *context, int file, uint64_t offset, uint64_t size)
{
	int failed;

	(void)context;
	assert(offset <= INT64_MAX && size <= INT64_MAX);
	do
		failed = fallocate(file, 0, (off_t)offset, (off_t)size);
	while (failed && errno == EINTR);
	return negative_errno(failed);
}

static int system_ftruncate(void *context, int file, uint64_t size)
{
	int failed;

	(void)context;
	assert(size <= INT64_MAX);
	do
		failed = ftruncate(file, (off_t)size);
	while (failed && errno == EINTR);
	return negative_errno(failed);
}

static enum hx_io_kind kind_from_mode(mode_t mode)
{
	if (S_ISREG(mode))
		return HX_IO_FILE;
	return S_ISDIR(mode) ? HX_IO_DIRECTORY : HX_IO_OTHER;
}

static struct hx_io_stat stat_from_system(const struct stat *st)
{
	return (struct hx_io_stat){
		.kind = kind_from_mode(st->st_mode),
		.size = (uint64_t)st->st_size,
		.allocated_bytes = (uint64_t)st->st_blocks * 512,
		.device = st->st_dev,
		.inode = st->st_ino,
		.mode = st->st_mode & 07777,
	};
}

static int system_stat(void *context, int file, struct hx_io_stat *ret)
{
	struct stat st;

	(void)context;
	if (fstat(file, &st) != 0)
		return -errno;
	*ret = stat_from_system(&st);
	return 0;
}

static int system_stat_path(void *context, const char *path, struct hx_io_stat *ret)
{
	struct stat st;

	(void)context;
	if (stat(path, &st) != 0)
		return -errno;
	*ret = stat_from_system(&st);
	return 0;
}

static bool is_self_or_parent(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int list_open_directory(DIR *directory, hx_io_list_fn *each, void *arg)
{
	for (;;) {
		const struct dirent *entry;
		int result;

		/* NULL is both the end and a failure; only errno tells them apart. */
		errno = 0;
		entry = readdir(directory);
		if (entry == NULL)
			return -errno;
		if (is_self_or_parent(entry->d_name))
			continue;
		result = each(arg, entry->d_name);
		if (result != 0)
			return result;
	}
}

static int system_list(void *context, const char *path, hx_io_list_fn *each, void *arg)
{
	DIR *directory = opendir(path);
	int result;

	(void)context;
	if (directory == NULL)
		return -errno;
	result = list_open_directory(directory, each, arg);
	(void)closedir(directory);
	return result;
}

/*
 * A lock of the open file and not of the process: a classic POSIX lock would not
 * keep a second store in this process out, and closing any other descriptor of the
 * same file would drop it.
 */
static int system_lock(void *context, int file)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	(void)context;
	if (fcntl(file, F_OFD_SETLK, &whole) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

static const struct hx_io_ops system_ops = {
	.open = system_open,
	.close = system_close,
	.pread = system_pread,
	.pwrite = system_pwrite,
	.fdatasync = system_fdatasync,
	.fsync_dir = system_fsync_dir,
	.rename = system_rename,
	.exchange = system_exchange,
	.unlink = system_unlink,
	.mkdir = system_mkdir,
	.fallocate = system_fallocate,
	.ftruncate = system_ftruncate,
	.stat = system_stat,
	.stat_path = system_stat_path,
	.list = system_list,
	.lock = system_lock,
};

const struct hx_io *hx_io_system(void)
{
	static const struct hx_io system_io = {.ops = &system_ops};

	return &system_io;
}

ssize_t hx_io_read_full(const struct hx_io *io, int file, void *data, size_t size, uint64_t offset)
{
	unsigned char *bytes = data;
	size_t done = 0;

	assert(size <= SSIZE_MAX);
	while (done < size) {
		ssize_t part =
			io->ops->pread(io->context, file, bytes + done, size - done, offset + done);

		if (part < 0)
			return part;
		if (part == 0)
			break;
		assert((size_t)part <= size - done);
		done += (size_t)part;
	}
	return (ssize_t)done;
}

int hx_io_write_full(
	const struct hx_io *io, int file, const void *data, size_t size, uint64_t offset)
{
	const unsigned char *bytes = data;
	size_t done = 0;

	while (done < size) {
		ssize_t part = io->ops->pwrite(
			io->context, file, bytes + done, size - done, offset + done);

		if (part < 0)
			return (int)part;
		/* No progress and no error: fail rather than loop forever. */
		if (part == 0)
			return -EIO;
		assert((size_t)part <= size - done);
		done += (size_t)part;
	}
	return 0;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
	size_t smaller = a < b ? a : b;

	return smaller < c ? smaller : c;
}

/* Appends to buf until the end of the file; the caller undoes it on failure. */
static enum hapax_status read_open_file(
	const struct hx_io *io, int file, const char *path, size_t size_max, struct hapax_buf *buf,
	struct hapax_error *err)
{
	size_t done = 0;

	for (;;) {
		size_t room =
			smallest(READ_CHUNK_BYTES, size_max - done, buf->size_max - buf->size);
		/* With no room left, one byte more tells a full file from one too large. */
		unsigned char probe;
		unsigned char *target = &probe;
		ssize_t part;

		if (room > 0) {
			if (hx_buf_reserve(buf, room) != HAPAX_OK)
				return hx_error_set(
					err, HAPAX_ERR_NO_MEMORY, 0,
					"not enough memory to read '%s'", path);
			target = buf->data + buf->size;
		}
		part = hx_io_read_full(io, file, target, room > 0 ? room : 1, done);
		if (part < 0)
			return hx_error_set(
				err, hx_error_status_of((int)-part), (int)-part,
				"could not read '%s'", path);
		if (part == 0)
			return HAPAX_OK;
		if (room == 0)
			return hx_error_set(
				err, HAPAX_ERR_LIMIT, 0, "'%s' is larger than %zu bytes", path,
				done);
		buf->size += (size_t)part;
		done += (size_t)part;
	}
}

enum hapax_status hx_io_read_all(
	const struct hx_io *io, const char *path, size_t size_max, struct hapax_buf *buf,
	struct hapax_error *err)
{
	int file = io->ops->open(io->context, path, HX_IO_READ, 0);
	size_t size_before = buf->size;
	enum hapax_status status;

	if (file < 0)
		return hx_error_set(
			err, hx_error_status_of(-file), -file, "could not open '%s'", path);
	status = read_open_file(io, file, path, size_max, buf, err);
	if (status != HAPAX_OK)
		buf->size = size_before;
	(void)io->ops->close(io->context, file);
	return status;
}

/* 0 when path is a directory now. */
static int make_one(const struct hx_io *io, const char *path, mode_t mode)
{
	int failed = io->ops->mkdir(io->context, path, mode);
	struct hx_io_stat st;

	if (failed == 0)
		return 0;
	/*
	 * Errors other than EEXIST may also mean that it exists: automounts and read-only file
	 * systems refuse before they look.
	 */
	if (io->ops->stat_path(io->context, path, &st) != 0)
		return failed;
	return st.kind == HX_IO_DIRECTORY ? 0 : -ENOTDIR;
}

/* Also creates the parents; path is cut at each slash and restored. */
static int make_all(const struct hx_io *io, char *path, mode_t mode)
{
	for (char *at = path; *at != '\0'; at++) {
		int failed;

		if (*at != '/' || at == path)
			continue;
		*at = '\0';
		failed = make_one(io, path, mode);
		*at = '/';
		if (failed)
			return failed;
	}
	return make_one(io, path, mode);
}

enum hapax_status hx_io_make_folders(
	const struct hx_io *io, const char *path, mode_t mode, struct hapax_error *err)
{
	char copy[PATH_MAX];
	int size = snprintf(copy, sizeof(copy), "%s", path);
	int failed =
		size >= 0 && (size_t)size < sizeof(copy) ? make_all(io, copy, mode) : -ENAMETOOLONG;

	if (failed)
		return hx_error_set(
			err, hx_error_status_of(-failed), -failed,
			"could not create directory '%s'", path);
	return HAPAX_OK;
}

bool hx_io_path_is_in_memory(const char *path)
{
	struct statfs system;

	return statfs(path, &system) == 0 &&
		(system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}

int hx_io_path_may_write(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t size = slash == NULL ? 0 : (size_t)(slash - path) + 1;
	struct stat stat_of;

	if (stat(path, &stat_of) == 0)
		return S_ISDIR(stat_of.st_mode)
			? -EISDIR
			: negative_errno(faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0);
	if (errno != ENOENT)
		return -errno;
	if (size + 1 >= sizeof(folder))
		return -ENAMETOOLONG;
	memcpy(folder, path, size);
	/* "/var/log/.", or "." for a name alone. */
	folder[size] = '.';
	folder[size + 1] = '\0';
	return negative_errno(faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0);
}

enum hapax_status hx_io_path_absolute(
	struct hapax_bytes path, char *ret_path, size_t size, struct hapax_error *err)
{
	const char *text = path.data;
	size_t used = 0;

	assert(path.size != 0 && size != 0);
	if (text[0] != '/') {
		if (getcwd(ret_path, size) == NULL)
			return hx_error_set(
				err, errno == ERANGE ? HAPAX_ERR_INVALID : HAPAX_ERR_UNAVAILABLE,
				errno, "could not determine the working directory");
		used = strlen(ret_path);
		/* The root ends with its slash. */
		if (used > 1 && used < size)
			ret_path[used++] = '/';
	}
	if (path.size >= size - used)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the path of the directory is too long");
	memcpy(ret_path + used, text, path.size);
	ret_path[used + path.size] = '\0';
	return HAPAX_OK;
}

int hx_io_path_real(const char *path, char ret_path[PATH_MAX])
{
	return realpath(path, ret_path) == NULL ? -errno : 0;
}

int hx_io_copy_owner(int from, int to)
{
	struct stat old, new;

	if (fstat(from, &old) != 0 || fstat(to, &new) != 0)
		return -errno;
	/* Only root may give a file away, but there is nothing to give if it is the same owner's. */
	if ((old.st_uid != new.st_uid || old.st_gid != new.st_gid) &&
	    fchown(to, old.st_uid, old.st_gid) != 0)
		return -errno;
	/* Last: to change the owner may take bits of the mode away. */
	return negative_errno(fchmod(to, old.st_mode & 07777) != 0);
}
