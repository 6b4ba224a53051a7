/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.h - the file seam: all file access goes through a struct hx_io.
 *
 * hx_io_system() is the operating system. A crash test has its own table, which loses, tears and
 * fails like a disk. Operations return 0 or a count, or a negative errno; they never touch errno as
 * a result. They do what the system call does: they retry after EINTR, but return a short read or
 * write as such. Use hx_io_read_full() and hx_io_write_full() unless you want that.
 *
 * A file is a small non-negative number whose meaning belongs to its struct hx_io.
 *
 * After a failed fdatasync the kernel may have dropped the dirty pages and a second
 * one may succeed and prove nothing: callers latch on the first failure.
 *
 * Threads: any, several on one file (there is no shared position).
 */
#ifndef HX_IO_H
#define HX_IO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

struct hapax_buf;

enum hx_io_open_flag {
	HX_IO_READ = 1 << 0,
	HX_IO_WRITE = 1 << 1,
	HX_IO_CREATE = 1 << 2,    /* create it if absent; use mode */
	HX_IO_EXCLUSIVE = 1 << 3, /* with CREATE: -EEXIST if it is present */
	HX_IO_TRUNCATE = 1 << 4,
	HX_IO_DIRECT = 1 << 5, /* O_DIRECT: memory, offset and size are aligned */
	HX_IO_DSYNC = 1 << 6,  /* O_DSYNC: each write is durable when it returns */
};

enum hx_io_kind {
	HX_IO_FILE,
	HX_IO_DIRECTORY,
	HX_IO_OTHER,
};

struct hx_io_stat {
	enum hx_io_kind kind;
	uint64_t size;
	uint64_t allocated_bytes;
	uint64_t device; /* with inode: which file this is */
	uint64_t inode;
	mode_t mode; /* permission bits */
};

/* Called once per name, "." and ".." excepted; a return other than 0 ends the list. */
typedef int hx_io_list_fn(void *arg, const char *name);

struct hx_io_ops {
	/* A file, or a negative errno. Always close-on-exec. */
	int (*open)(void *context, const char *path, unsigned flags, mode_t mode);
	int (*close)(void *context, int file);
	/* Bytes read; 0 only at the end of the file. */
	ssize_t (*pread)(void *context, int file, void *data, size_t size, uint64_t offset);
	ssize_t (*pwrite)(void *context, int file, const void *data, size_t size, uint64_t offset);
	int (*fdatasync)(void *context, int file);
	/* Make the names in a directory durable: after create, rename and unlink. */
	int (*fsync_dir)(void *context, const char *path);
	/* Replaces target if it is there. */
	int (*rename)(void *context, const char *source, const char *target);
	/*
	 * Exchange two names, of files or directories, in one step. -EINVAL or -ENOSYS: not
	 * supported by the file system.
	 */
	int (*exchange)(void *context, const char *one, const char *other);
	int (*unlink)(void *context, const char *path);
	int (*mkdir)(void *context, const char *path, mode_t mode);
	/* Reserve space; the file grows to offset + size if it was smaller. */
	int (*fallocate)(void *context, int file, uint64_t offset, uint64_t size);
	int (*ftruncate)(void *context, int file, uint64_t size);
	int (*stat)(void *context, int file, struct hx_io_stat *ret);
	int (*stat_path)(void *context, const char *path, struct hx_io_stat *ret);
	/* In no order. 0, a negative errno, or what each returned. */
	int (*list)(void *context, const char *path, hx_io_list_fn *each, void *arg);
	/*
	 * Lock the whole file against every other open of it, even in this process, until close.
	 * Never waits: -EAGAIN if it is held. file must be writable.
	 */
	int (*lock)(void *context, int file);
};

struct hx_io {
	const struct hx_io_ops *ops;
	void *context; /* first argument of each operation */
};

/* The operating system's files. Borrowed, valid forever. */
const struct hx_io *hx_io_system(void);

/*
 * Read size bytes at offset, going on after short reads. Returns how many were
 * read, fewer only at the end of the file, or a negative errno.
 */
ssize_t hx_io_read_full(const struct hx_io *io, int file, void *data, size_t size, uint64_t offset);

/* Write all of it, or a negative errno; then any part of it may have been written. */
int hx_io_write_full(
	const struct hx_io *io, int file, const void *data, size_t size, uint64_t offset);

/*
 * Append the whole file to buf, which works for files of unknown size as in /proc. LIMIT if it is
 * larger than size_max or does not fit buf; else see hx_error_status_of(). On failure buf is
 * unchanged.
 */
enum hapax_status hx_io_read_all(
	const struct hx_io *io, const char *path, size_t size_max, struct hapax_buf *buf,
	struct hapax_error *err);

/*
 * A path that stays the same when the process changes its working directory. INVALID: it does
 * not fit into size bytes; UNAVAILABLE: the working directory has no name.
 */
enum hapax_status hx_io_path_absolute(
	struct hapax_bytes path, char *ret_path, size_t size, struct hapax_error *err);

/* The file that symbolic links lead to. Returns 0 or a negative errno. */
int hx_io_path_real(const char *path, char ret_path[PATH_MAX]);

/* Give to, a file of hx_io_system(), the owner, group and mode of from. 0 or a negative errno. */
int hx_io_copy_owner(int from, int to);

/* Is the path on a tmpfs or similar? False also if unknown. */
bool hx_io_path_is_in_memory(const char *path);

/*
 * Could this process write the file, or create it in its directory? 0 or a negative errno. Creates
 * nothing.
 */
int hx_io_path_may_write(const char *path);

/* Create a directory and its missing parents, all with mode. Present is fine. */
enum hapax_status hx_io_make_folders(
	const struct hx_io *io, const char *path, mode_t mode, struct hapax_error *err);

#endif
