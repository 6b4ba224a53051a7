/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk_io.c - the operations of the file seam on a simulated disk.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "support/sim_disk_private.h"

/* ------------------------------------------------------------------ around a call */

/* Count the call; the errno with which it must fail, 0, or -1 for SIM_SHORT. */
static int enter(struct sim_disk *disk, enum sim_call call)
{
	struct sim_failure *failure = &disk->failure;

	hx_mutex_lock(&disk->mutex);
	disk->calls[__builtin_ctz((unsigned)call)]++;
	if (!(failure->calls & call) || failure->left == 0)
		return 0;
	if (failure->left > 1) {
		failure->left--;
		return 0;
	}
	if (!failure->forever)
		failure->left = 0;
	disk->struck++;
	return failure->error == SIM_SHORT ? -1 : failure->error;
}

static void leave(struct sim_disk *disk)
{
	hx_mutex_unlock(&disk->mutex);
}

/* The end of a call that has changed the disk. */
static void leave_changed(struct sim_disk *disk, enum sim_call call)
{
	sim_observer_fn *observer = disk->observer;
	void *context = disk->observer_context;

	hx_mutex_unlock(&disk->mutex);
	if (observer)
		observer(disk, call, context);
}

/* ------------------------------------------------------------------ finding things */

static struct sim_handle *handle_of(struct sim_disk *disk, int file)
{
	if (file < 0 || (size_t)file >= disk->handle_count || disk->handles[file].inode < 0)
		return NULL;
	return &disk->handles[file];
}

static const struct sim_inode *inode_of(const struct sim_disk *disk, int number)
{
	assert(number >= 0 && (size_t)number < disk->inode_count && disk->inodes[number]);
	return disk->inodes[number];
}

static struct sim_inode *inode_to_change(struct sim_disk *disk, int number)
{
	(void)inode_of(disk, number);
	return sim_inode_own(&disk->inodes[number]);
}

static bool is_root(const char *path)
{
	return strcmp(path, "/") == 0;
}

/* Does the directory of path exist? 0 or a negative errno. */
static int check_parent(const struct sim_disk *disk, const char *path)
{
	char parent[SIM_PATH_SIZE];
	const char *slash = strrchr(path, '/');
	int number;

	if (path[0] != '/' || strlen(path) >= SIM_PATH_SIZE)
		return path[0] != '/' ? -EINVAL : -ENAMETOOLONG;
	if (slash == path)
		return 0;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	number = sim_names_find(&disk->names, parent);
	if (number < 0)
		return -ENOENT;
	return inode_of(disk, number)->kind == HX_IO_DIRECTORY ? 0 : -ENOTDIR;
}

static bool has_room(const struct sim_disk *disk, uint64_t pages)
{
	uint64_t used = 0;

	if (disk->room_pages == UINT64_MAX)
		return true;
	for (size_t i = 0; i < disk->inode_count; i++)
		if (disk->inodes[i])
			used += sim_inode_pages_allocated(disk->inodes[i]);
	return used + pages <= disk->room_pages;
}

/* ------------------------------------------------------------------ open and close */

static int open_inode(struct sim_disk *disk, const char *path, unsigned flags, mode_t mode)
{
	int number = sim_names_find(&disk->names, path);
	int failed = check_parent(disk, path);

	if (failed)
		return failed;
	if (number >= 0 && flags & HX_IO_CREATE && flags & HX_IO_EXCLUSIVE)
		return -EEXIST;
	if (number < 0 && !(flags & HX_IO_CREATE))
		return -ENOENT;
	if (flags & HX_IO_DIRECT && !disk->has_direct)
		return -EINVAL;
	if (number >= 0 && inode_of(disk, number)->kind == HX_IO_DIRECTORY)
		return flags & HX_IO_WRITE ? -EISDIR : number;
	if (number < 0) {
		number = sim_disk_add_inode(disk, HX_IO_FILE, mode);
		sim_names_step(&disk->names, NULL, path, number);
	}
	if (flags & HX_IO_TRUNCATE && inode_of(disk, number)->size > 0)
		sim_inode_truncate(inode_to_change(disk, number), 0);
	return number;
}

static int add_handle(struct sim_disk *disk, int inode, unsigned flags)
{
	size_t at = 0;

	while (at < disk->handle_count && disk->handles[at].inode >= 0)
		at++;
	if (at == SIM_HANDLES_MAX)
		return -EMFILE;
	if (at == disk->handle_count)
		disk->handle_count++;
	disk->handles[at] = (struct sim_handle){.inode = inode, .flags = flags};
	return (int)at;
}

static int sim_open(void *context, const char *path, unsigned flags, mode_t mode)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_OPEN);
	int number = failed > 0 ? -failed : open_inode(disk, path, flags, mode);
	int file = number < 0 ? number : add_handle(disk, number, flags);

	if (file >= 0 && flags & (HX_IO_CREATE | HX_IO_TRUNCATE))
		leave_changed(disk, SIM_OPEN);
	else
		leave(disk);
	return file;
}

static int sim_close(void *context, int file)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_CLOSE);
	struct sim_handle *handle = handle_of(disk, file);

	/* Linux closes it whatever it says. */
	if (handle) {
		*handle = (struct sim_handle){.inode = -1};
		sim_disk_collect(disk);
	}
	leave(disk);
	if (!handle)
		return -EBADF;
	return failed > 0 ? -failed : 0;
}

/* ------------------------------------------------------------------ bytes */

/* O_DIRECT wants sectors. */
static bool is_aligned(const struct sim_handle *handle, const void *data, size_t size, uint64_t at)
{
	return !(handle->flags & HX_IO_DIRECT) ||
		((uintptr_t)data % SIM_SECTOR_BYTES == 0 && size % SIM_SECTOR_BYTES == 0 &&
		 at % SIM_SECTOR_BYTES == 0);
}

/* Fewer, but not none; whole sectors where that is the unit. */
static size_t shorter(struct sim_disk *disk, const struct sim_handle *handle, size_t size)
{
	size_t unit = handle->flags & HX_IO_DIRECT ? SIM_SECTOR_BYTES : 1;

	if (size <= unit)
		return size;
	return unit * (1 + (size_t)hx_prng_below(&disk->prng, (size - 1) / unit));
}

static ssize_t sim_pread(void *context, int file, void *data, size_t size, uint64_t offset)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_PREAD);
	const struct sim_handle *handle = handle_of(disk, file);
	ssize_t done = -EBADF;

	if (failed > 0) {
		done = -failed;
	} else if (handle && handle->flags & HX_IO_READ) {
		if (failed < 0)
			size = shorter(disk, handle, size);
		done = is_aligned(handle, data, size, offset)
			? (ssize_t)sim_inode_read(
				  inode_of(disk, handle->inode), data, size, offset,
				  handle->flags & HX_IO_DIRECT)
			: -EINVAL;
	}
	leave(disk);
	return done;
}

/* What a write that failed has nevertheless written: any number of its first sectors. */
static size_t part_written(struct sim_disk *disk, size_t size)
{
	size_t part =
		SIM_SECTOR_BYTES * (size_t)hx_prng_below(&disk->prng, size / SIM_SECTOR_BYTES + 2);

	return part < size ? part : size;
}

/* How much of size fits on the disk, in whole pages. */
static size_t part_that_fits(
	const struct sim_disk *disk, const struct sim_inode *inode, size_t size, uint64_t offset)
{
	while (size > 0 && !has_room(disk, sim_inode_pages_needed(inode, offset, size))) {
		size_t cut = (size_t)((offset + size) % SIM_PAGE_BYTES);

		cut = cut ? cut : SIM_PAGE_BYTES;
		size = size > cut ? size - cut : 0;
	}
	return size;
}

static ssize_t write_now(
	struct sim_disk *disk, const struct sim_handle *handle, int failed, const void *data,
	size_t size, uint64_t offset)
{
	const struct sim_inode *inode = inode_of(disk, handle->inode);
	ssize_t done;

	if (failed > 0) {
		size = part_written(disk, size);
		done = -failed;
	} else {
		size_t fits = part_that_fits(disk, inode, size, offset);

		if (size > 0 && fits == 0)
			return -ENOSPC;
		size = failed < 0 ? shorter(disk, handle, fits) : fits;
		done = (ssize_t)size;
	}
	sim_inode_write(
		inode_to_change(disk, handle->inode), data, size, offset,
		handle->flags & HX_IO_DIRECT);
	return done;
}

static ssize_t sim_pwrite(void *context, int file, const void *data, size_t size, uint64_t offset)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_PWRITE);
	const struct sim_handle *handle = handle_of(disk, file);
	int inode = handle ? handle->inode : -1;
	unsigned flags = handle ? handle->flags : 0;
	ssize_t done;

	if (!(flags & HX_IO_WRITE) || !is_aligned(handle, data, size, offset)) {
		leave(disk);
		return flags & HX_IO_WRITE ? -EINVAL : -EBADF;
	}
	done = write_now(disk, handle, failed, data, size, offset);
	leave_changed(disk, SIM_PWRITE);
	if (done < 0 || !(flags & HX_IO_DSYNC))
		return done;
	hx_mutex_lock(&disk->mutex);
	sim_inode_sync(inode_to_change(disk, inode));
	leave_changed(disk, SIM_PWRITE);
	return done;
}

static int sim_fdatasync(void *context, int file)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_FDATASYNC);
	const struct sim_handle *handle = handle_of(disk, file);

	if (!handle) {
		leave(disk);
		return -EBADF;
	}
	if (failed > 0)
		sim_inode_sync_failed(inode_to_change(disk, handle->inode), &disk->prng);
	else if (inode_of(disk, handle->inode)->change_count)
		sim_inode_sync(inode_to_change(disk, handle->inode));
	leave_changed(disk, SIM_FDATASYNC);
	return failed > 0 ? -failed : 0;
}

static int sim_fallocate(void *context, int file, uint64_t offset, uint64_t size)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_FALLOCATE);
	const struct sim_handle *handle = handle_of(disk, file);
	int result = failed > 0 ? -failed : 0;

	if (!result && (!handle || !(handle->flags & HX_IO_WRITE)))
		result = -EBADF;
	if (!result &&
	    !has_room(disk, sim_inode_pages_needed(inode_of(disk, handle->inode), offset, size)))
		result = -ENOSPC;
	if (result) {
		leave(disk);
		return result;
	}
	sim_inode_reserve(inode_to_change(disk, handle->inode), offset, size);
	leave_changed(disk, SIM_FALLOCATE);
	return 0;
}

static int sim_ftruncate(void *context, int file, uint64_t size)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_FTRUNCATE);
	const struct sim_handle *handle = handle_of(disk, file);
	int result = failed > 0 ? -failed : 0;

	if (!result && (!handle || !(handle->flags & HX_IO_WRITE)))
		result = -EBADF;
	if (result) {
		leave(disk);
		return result;
	}
	sim_inode_truncate(inode_to_change(disk, handle->inode), size);
	leave_changed(disk, SIM_FTRUNCATE);
	return 0;
}

/* ------------------------------------------------------------------ names */

static int sim_fsync_dir(void *context, const char *path)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_FSYNC_DIR);
	int number = sim_names_find(&disk->names, path);

	if (!is_root(path) && (number < 0 || inode_of(disk, number)->kind != HX_IO_DIRECTORY)) {
		leave(disk);
		return number < 0 ? -ENOENT : -ENOTDIR;
	}
	if (failed > 0)
		sim_names_sync_failed(&disk->names, path, &disk->prng);
	else
		sim_names_sync(&disk->names, path);
	sim_disk_collect(disk);
	leave_changed(disk, SIM_FSYNC_DIR);
	return failed > 0 ? -failed : 0;
}

static bool is_same_directory(const char *one, const char *other)
{
	size_t size = (size_t)(strrchr(one, '/') - one);

	return size == (size_t)(strrchr(other, '/') - other) && memcmp(one, other, size) == 0;
}

static int rename_now(struct sim_disk *disk, const char *source, const char *target)
{
	int number = sim_names_find(&disk->names, source);
	int failed = check_parent(disk, target);

	if (failed || number < 0)
		return failed ? failed : -ENOENT;
	if (!is_same_directory(source, target) || inode_of(disk, number)->kind == HX_IO_DIRECTORY)
		return -EXDEV;
	sim_names_step(&disk->names, source, target, number);
	return 0;
}

static int sim_rename(void *context, const char *source, const char *target)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_RENAME);
	int result = failed > 0 ? -failed : rename_now(disk, source, target);

	if (result == 0)
		leave_changed(disk, SIM_RENAME);
	else
		leave(disk);
	return result;
}

/* As on a file system that has no such thing. */
static int sim_exchange(void *context, const char *one, const char *other)
{
	(void)context;
	(void)one;
	(void)other;
	return -EINVAL;
}

static int sim_unlink(void *context, const char *path)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_UNLINK);
	int number = sim_names_find(&disk->names, path);
	int result = failed > 0 ? -failed : number < 0 ? -ENOENT : 0;

	if (!result && inode_of(disk, number)->kind == HX_IO_DIRECTORY)
		result = -EISDIR;
	if (result) {
		leave(disk);
		return result;
	}
	sim_names_step(&disk->names, path, NULL, number);
	leave_changed(disk, SIM_UNLINK);
	return 0;
}

static int sim_mkdir(void *context, const char *path, mode_t mode)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_MKDIR);
	int result = failed > 0 ? -failed : check_parent(disk, path);

	if (!result && (is_root(path) || sim_names_find(&disk->names, path) >= 0))
		result = -EEXIST;
	if (result) {
		leave(disk);
		return result;
	}
	sim_names_step(&disk->names, NULL, path, sim_disk_add_inode(disk, HX_IO_DIRECTORY, mode));
	leave_changed(disk, SIM_MKDIR);
	return 0;
}

static struct hx_io_stat stat_of(const struct sim_inode *inode)
{
	return (struct hx_io_stat){
		.kind = inode->kind,
		.size = inode->size,
		.allocated_bytes = sim_inode_pages_allocated(inode) * SIM_PAGE_BYTES,
		.device = 1,
		.inode = inode->number,
		.mode = inode->mode,
	};
}

static int sim_stat(void *context, int file, struct hx_io_stat *ret)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_STAT);
	const struct sim_handle *handle = handle_of(disk, file);

	if (failed <= 0 && handle)
		*ret = stat_of(inode_of(disk, handle->inode));
	leave(disk);
	if (failed > 0)
		return -failed;
	return handle ? 0 : -EBADF;
}

static int sim_stat_path(void *context, const char *path, struct hx_io_stat *ret)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_STAT);
	int number = sim_names_find(&disk->names, path);

	if (failed > 0) {
		leave(disk);
		return -failed;
	}
	if (is_root(path))
		*ret = (struct hx_io_stat){.kind = HX_IO_DIRECTORY, .inode = 1, .mode = 0755};
	else if (number >= 0)
		*ret = stat_of(inode_of(disk, number));
	leave(disk);
	return is_root(path) || number >= 0 ? 0 : -ENOENT;
}

/* The names are copied first: the callee may change them. */
static int sim_list(void *context, const char *path, hx_io_list_fn *each, void *arg)
{
	struct sim_disk *disk = context;
	int result = -enter(disk, SIM_LIST);
	struct sim_names copy;

	if (result >= 0) {
		int number = sim_names_find(&disk->names, path);

		result = 0;
		if (!is_root(path) && number < 0)
			result = -ENOENT;
		else if (number >= 0 && inode_of(disk, number)->kind != HX_IO_DIRECTORY)
			result = -ENOTDIR;
	}
	if (result < 0) {
		leave(disk);
		return result;
	}
	sim_names_copy(&copy, &disk->names);
	leave(disk);
	for (size_t i = 0; i < copy.seen.count && result == 0; i++) {
		const char *name = sim_names_within(path, copy.seen.names[i].path);

		if (name)
			result = each(arg, name);
	}
	sim_names_done(&copy);
	return result;
}

static int sim_lock(void *context, int file)
{
	struct sim_disk *disk = context;
	int failed = enter(disk, SIM_LOCK);
	struct sim_handle *handle = handle_of(disk, file);
	int result = failed > 0 ? -failed : handle ? 0 : -EBADF;

	for (size_t i = 0; !result && i < disk->handle_count; i++)
		if (disk->handles[i].inode == handle->inode && disk->handles[i].has_lock &&
		    &disk->handles[i] != handle)
			result = -EAGAIN;
	if (!result)
		handle->has_lock = true;
	leave(disk);
	return result;
}

const struct hx_io_ops sim_disk_ops = {
	.open = sim_open,
	.close = sim_close,
	.pread = sim_pread,
	.pwrite = sim_pwrite,
	.fdatasync = sim_fdatasync,
	.fsync_dir = sim_fsync_dir,
	.rename = sim_rename,
	.exchange = sim_exchange,
	.unlink = sim_unlink,
	.mkdir = sim_mkdir,
	.fallocate = sim_fallocate,
	.ftruncate = sim_ftruncate,
	.stat = sim_stat,
	.stat_path = sim_stat_path,
	.list = sim_list,
	.lock = sim_lock,
};
