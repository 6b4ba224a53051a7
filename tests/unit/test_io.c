/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "support/temp_dir.h"

static struct temp_dir dir;

static int setup(void **state)
{
	(void)state;
	temp_dir_init(&dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	temp_dir_done(&dir);
	return 0;
}

/* A path in the test's folder; valid until the eighth call after this one. */
static const char *path_of(const char *name)
{
	static char paths[8][512];
	static unsigned next;
	char *path = paths[next++ % 8];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", dir.path, name);
	return path;
}

static int open_file(const char *path, unsigned flags)
{
	const struct hx_io *io = hx_io_system();

	return io->ops->open(io->context, path, flags, 0600);
}

static void close_file(int file)
{
	const struct hx_io *io = hx_io_system();

	assert_int_equal(io->ops->close(io->context, file), 0);
}

static void write_file(const char *path, const void *data, size_t size)
{
	int file = open_file(path, HX_IO_WRITE | HX_IO_CREATE | HX_IO_TRUNCATE);

	assert_true(file >= 0);
	assert_int_equal(hx_io_write_full(hx_io_system(), file, data, size, 0), 0);
	close_file(file);
}

static void writes_and_reads(void **state)
{
	const struct hx_io *io = hx_io_system();
	char data[20];
	int file;

	(void)state;
	file = open_file(path_of("a"), HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE | HX_IO_EXCLUSIVE);
	assert_true(file >= 0);
	assert_int_equal(hx_io_write_full(io, file, "0123456789", 10, 0), 0);
	assert_int_equal(hx_io_write_full(io, file, "ab", 2, 4), 0);
	assert_int_equal(hx_io_write_full(io, file, NULL, 0, 0), 0);
	assert_int_equal(hx_io_read_full(io, file, data, 10, 0), 10);
	assert_memory_equal(data, "0123ab6789", 10);
	assert_int_equal(io->ops->fdatasync(io->context, file), 0);
	close_file(file);
}

static void the_end_of_the_file_is_no_error(void **state)
{
	const struct hx_io *io = hx_io_system();
	char data[20];
	int file;

	(void)state;
	write_file(path_of("a"), "0123456789", 10);
	file = open_file(path_of("a"), HX_IO_READ);
	assert_true(file >= 0);
	assert_int_equal(hx_io_read_full(io, file, data, sizeof(data), 6), 4);
	assert_memory_equal(data, "6789", 4);
	assert_int_equal(hx_io_read_full(io, file, data, sizeof(data), 10), 0);
	assert_int_equal(hx_io_read_full(io, file, data, sizeof(data), 1000), 0);
	close_file(file);
}

static void open_says_what_is_wrong(void **state)
{
	(void)state;
	assert_int_equal(open_file(path_of("none"), HX_IO_READ), -ENOENT);
	assert_int_equal(open_file(path_of("no/where"), HX_IO_WRITE | HX_IO_CREATE), -ENOENT);
	write_file(path_of("a"), "x", 1);
	assert_int_equal(
		open_file(path_of("a"), HX_IO_WRITE | HX_IO_CREATE | HX_IO_EXCLUSIVE), -EEXIST);
	assert_int_equal(open_file(path_of("a/b"), HX_IO_READ), -ENOTDIR);
	assert_int_equal(open_file(dir.path, HX_IO_WRITE), -EISDIR);
}

static void files_are_not_for_children(void **state)
{
	int file = open_file(path_of("a"), HX_IO_WRITE | HX_IO_CREATE | HX_IO_DSYNC);

	(void)state;
	assert_true(file >= 0);
	assert_true(fcntl(file, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(file, F_GETFL) & O_DSYNC);
	close_file(file);
}

static void a_bad_file_is_an_error_everywhere(void **state)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat st;
	char byte = 0;

	(void)state;
	assert_int_equal(io->ops->close(io->context, -1), -EBADF);
	assert_int_equal(io->ops->fdatasync(io->context, -1), -EBADF);
	assert_int_equal(io->ops->fallocate(io->context, -1, 0, 1), -EBADF);
	assert_int_equal(io->ops->ftruncate(io->context, -1, 1), -EBADF);
	assert_int_equal(io->ops->stat(io->context, -1, &st), -EBADF);
	assert_int_equal(io->ops->lock(io->context, -1), -EBADF);
	assert_int_equal(hx_io_read_full(io, -1, &byte, 1, 0), -EBADF);
	assert_int_equal(hx_io_write_full(io, -1, &byte, 1, 0), -EBADF);
	assert_int_equal(io->ops->stat_path(io->context, path_of("none"), &st), -ENOENT);
	assert_int_equal(io->ops->unlink(io->context, path_of("none")), -ENOENT);
	assert_int_equal(io->ops->rename(io->context, path_of("none"), path_of("b")), -ENOENT);
	assert_int_equal(io->ops->fsync_dir(io->context, path_of("none")), -ENOENT);
	assert_int_equal(io->ops->mkdir(io->context, dir.path, 0700), -EEXIST);
}

static void sizes_change(void **state)
{
	const struct hx_io *io = hx_io_system();
	int file = open_file(path_of("a"), HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE);
	struct hx_io_stat st, same;
	int result;

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(io->ops->ftruncate(io->context, file, 5000), 0);
	assert_int_equal(io->ops->stat(io->context, file, &st), 0);
	assert_int_equal(st.kind, HX_IO_FILE);
	assert_int_equal(st.size, 5000);
	assert_int_equal(st.mode, 0600);
	assert_int_equal(io->ops->ftruncate(io->context, file, 10), 0);
	result = io->ops->fallocate(io->context, file, 0, 65536);
	/* Not every file system can; then it says so. */
	assert_true(result == 0 || result == -EOPNOTSUPP);
	assert_int_equal(io->ops->stat_path(io->context, path_of("a"), &st), 0);
	assert_int_equal(st.size, result == 0 ? 65536 : 10);
	assert_true(result != 0 || st.allocated_bytes >= 65536);
	assert_int_equal(io->ops->stat(io->context, file, &same), 0);
	assert_true(st.device == same.device && st.inode == same.inode);
	close_file(file);
	assert_int_equal(io->ops->stat_path(io->context, dir.path, &st), 0);
	assert_int_equal(st.kind, HX_IO_DIRECTORY);
	assert_int_equal(io->ops->stat_path(io->context, "/dev/null", &st), 0);
	assert_int_equal(st.kind, HX_IO_OTHER);
}

static void names_change(void **state)
{
	const struct hx_io *io = hx_io_system();
	char byte;
	int file;

	(void)state;
	write_file(path_of("a"), "A", 1);
	write_file(path_of("b"), "B", 1);
	assert_int_equal(io->ops->rename(io->context, path_of("a"), path_of("b")), 0);
	assert_int_equal(io->ops->fsync_dir(io->context, dir.path), 0);
	assert_int_equal(open_file(path_of("a"), HX_IO_READ), -ENOENT);
	file = open_file(path_of("b"), HX_IO_READ);
	assert_int_equal(hx_io_read_full(io, file, &byte, 1, 0), 1);
	assert_int_equal(byte, 'A');
	close_file(file);
	assert_int_equal(io->ops->unlink(io->context, path_of("b")), 0);
	assert_int_equal(open_file(path_of("b"), HX_IO_READ), -ENOENT);
	assert_int_equal(io->ops->fsync_dir(io->context, "/dev/null"), -ENOTDIR);
}

/* Two directories change their names in one step. */
static void names_change_places(void **state)
{
	const struct hx_io *io = hx_io_system();
	int failed;

	(void)state;
	assert_int_equal(io->ops->mkdir(io->context, path_of("a"), 0700), 0);
	assert_int_equal(io->ops->mkdir(io->context, path_of("b"), 0700), 0);
	write_file(path_of("a/of a"), "A", 1);
	failed = io->ops->exchange(io->context, path_of("a"), path_of("b"));
	if (failed == -EINVAL || failed == -ENOSYS)
		skip();
	assert_int_equal(failed, 0);
	assert_int_equal(open_file(path_of("a/of a"), HX_IO_READ), -ENOENT);
	close_file(open_file(path_of("b/of a"), HX_IO_READ));
	assert_int_equal(io->ops->exchange(io->context, path_of("a"), path_of("none")), -ENOENT);
}

static void paths_become_absolute(void **state)
{
	struct hapax_error err = {0};
	char path[512], small[8], expected[512];
	char *before = getcwd(NULL, 0);

	(void)state;
	assert_non_null(before);
	assert_int_equal(chdir(dir.path), 0);
	assert_int_equal(
		hx_io_path_absolute((struct hapax_bytes){"a/b", 3}, path, sizeof(path), &err),
		HAPAX_OK);
	snprintf(expected, sizeof(expected), "%s/a/b", dir.path);
	assert_string_equal(path, expected);
	assert_int_equal(
		hx_io_path_absolute((struct hapax_bytes){"/a/bc", 4}, path, sizeof(path), &err),
		HAPAX_OK);
	assert_string_equal(path, "/a/b");
	/* Too long, alone or together. */
	assert_int_equal(
		hx_io_path_absolute((struct hapax_bytes){"/a/bcdefg", 8}, small, 8, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(
		hx_io_path_absolute((struct hapax_bytes){"/a/bcdefg", 7}, small, 8, &err),
		HAPAX_OK);
	assert_int_equal(
		hx_io_path_absolute((struct hapax_bytes){"a", 1}, small, 8, &err),
		HAPAX_ERR_INVALID);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(
		hx_io_path_absolute((struct hapax_bytes){"a", 1}, small, 8, &err), HAPAX_OK);
	assert_string_equal(small, "/a");
	assert_int_equal(chdir(before), 0);
	free(before);
}

struct listing {
	unsigned seen; /* bit n for name "n" */
	unsigned calls;
	int stop_with;
};

static int note_name(void *arg, const char *name)
{
	struct listing *listing = arg;

	listing->calls++;
	listing->seen |= name[1] == '\0' && name[0] >= '0' && name[0] <= '9' ? 1u << (name[0] - '0')
									     : 1u << 31;
	return listing->stop_with;
}

static void lists(void **state)
{
	const struct hx_io *io = hx_io_system();
	struct listing listing = {0, 0, 0};

	(void)state;
	assert_int_equal(io->ops->list(io->context, dir.path, note_name, &listing), 0);
	assert_int_equal(listing.calls, 0);
	for (int i = 0; i < 10; i++)
		write_file(path_of((char[]){(char)('0' + i), '\0'}), "", 0);
	assert_int_equal(io->ops->list(io->context, dir.path, note_name, &listing), 0);
	assert_int_equal(listing.seen, 0x3ff);
	assert_int_equal(listing.calls, 10);

	listing = (struct listing){0, 0, 42};
	assert_int_equal(io->ops->list(io->context, dir.path, note_name, &listing), 42);
	assert_int_equal(listing.calls, 1);
	assert_int_equal(io->ops->list(io->context, path_of("none"), note_name, &listing), -ENOENT);
	assert_int_equal(io->ops->list(io->context, path_of("0"), note_name, &listing), -ENOTDIR);
	assert_int_equal(listing.calls, 1);
}

static void a_lock_keeps_the_second_opener_out(void **state)
{
	const struct hx_io *io = hx_io_system();
	int first = open_file(path_of("lock"), HX_IO_WRITE | HX_IO_CREATE);
	int second = open_file(path_of("lock"), HX_IO_WRITE);
	int third = open_file(path_of("lock"), HX_IO_WRITE);

	(void)state;
	assert_int_equal(io->ops->lock(io->context, first), 0);
	assert_int_equal(io->ops->lock(io->context, first), 0);
	assert_int_equal(io->ops->lock(io->context, second), -EAGAIN);
	/* Closing another descriptor must not drop it, as a classic lock would. */
	close_file(third);
	assert_int_equal(io->ops->lock(io->context, second), -EAGAIN);
	close_file(first);
	assert_int_equal(io->ops->lock(io->context, second), 0);
	close_file(second);
}

static void direct_wants_alignment(void **state)
{
	const struct hx_io *io = hx_io_system();
	int file = open_file(path_of("d"), HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE | HX_IO_DIRECT);
	void *page = aligned_alloc(4096, 4096);

	(void)state;
	assert_non_null(page);
	memset(page, 'p', 4096);
	/* tmpfs of older kernels has no O_DIRECT. */
	if (file != -EINVAL) {
		assert_true(file >= 0);
		assert_true(fcntl(file, F_GETFL) & O_DIRECT);
		assert_int_equal(hx_io_write_full(io, file, page, 4096, 0), 0);
		assert_int_equal(hx_io_read_full(io, file, page, 4096, 0), 4096);
		close_file(file);
	}
	free(page);
}

/* Files that give and take at most step bytes at a time, and fail at fail_at. */
struct stingy {
	unsigned char data[1000];
	size_t size;
	size_t step;
	uint64_t fail_at;
};

static ssize_t stingy_pread(void *context, int file, void *data, size_t size, uint64_t offset)
{
	struct stingy *stingy = context;
	size_t part = size < stingy->step ? size : stingy->step;

	(void)file;
	if (offset >= stingy->fail_at)
		return -EIO;
	if (offset >= stingy->size)
		return 0;
	if (part > stingy->size - offset)
		part = stingy->size - offset;
	memcpy(data, stingy->data + offset, part);
	return (ssize_t)part;
}

static ssize_t stingy_pwrite(
	void *context, int file, const void *data, size_t size, uint64_t offset)
{
	struct stingy *stingy = context;
	size_t part = size < stingy->step ? size : stingy->step;

	(void)file;
	if (offset >= stingy->fail_at)
		return -ENOSPC;
	assert_true(offset + part <= sizeof(stingy->data));
	memcpy(stingy->data + offset, data, part);
	if (stingy->size < offset + part)
		stingy->size = offset + part;
	return (ssize_t)part;
}

static int stingy_open(void *context, const char *path, unsigned flags, mode_t mode)
{
	(void)context;
	(void)path;
	(void)flags;
	(void)mode;
	return 3;
}

static int stingy_closes;

static int stingy_close(void *context, int file)
{
	(void)context;
	assert_int_equal(file, 3);
	stingy_closes++;
	return 0;
}

static const struct hx_io_ops stingy_ops = {
	.open = stingy_open,
	.close = stingy_close,
	.pread = stingy_pread,
	.pwrite = stingy_pwrite,
};

static void short_reads_and_writes_go_on(void **state)
{
	(void)state;
	for (size_t step = 1; step < 20; step++) {
		struct stingy stingy = {.step = step, .fail_at = UINT64_MAX};
		const struct hx_io io = {&stingy_ops, &stingy};
		unsigned char data[300], back[400];

		memset(data, (int)step, sizeof(data));
		assert_int_equal(hx_io_write_full(&io, 3, data, sizeof(data), 50), 0);
		assert_int_equal(stingy.size, 350);
		assert_int_equal(hx_io_read_full(&io, 3, back, 300, 50), 300);
		assert_memory_equal(back, data, 300);
		assert_int_equal(hx_io_read_full(&io, 3, back, 400, 50), 300);
	}
}

static void errors_midway_are_told(void **state)
{
	struct stingy stingy = {.step = 10, .fail_at = 25};
	const struct hx_io io = {&stingy_ops, &stingy};
	unsigned char data[100] = {0};

	(void)state;
	stingy.size = sizeof(stingy.data);
	assert_int_equal(hx_io_read_full(&io, 3, data, 100, 0), -EIO);
	assert_int_equal(hx_io_read_full(&io, 3, data, 20, 0), 20);
	assert_int_equal(hx_io_write_full(&io, 3, data, 100, 0), -ENOSPC);
	/* A device that takes nothing and says nothing must not hold us forever. */
	stingy.step = 0;
	assert_int_equal(hx_io_write_full(&io, 3, data, 1, 0), -EIO);
}

static void reads_whole_files(void **state)
{
	const struct hx_io *io = hx_io_system();
	static char data[200000];
	struct hapax_buf buf;

	(void)state;
	memset(data, 'x', sizeof(data));
	write_file(path_of("a"), data, sizeof(data));
	hx_buf_init(&buf, sizeof(data) + 1);
	assert_int_equal(hx_buf_append_byte(&buf, 'y'), HAPAX_OK);
	assert_int_equal(hx_io_read_all(io, path_of("a"), sizeof(data), &buf, NULL), HAPAX_OK);
	assert_int_equal(buf.size, sizeof(data) + 1);
	assert_int_equal(buf.data[0], 'y');
	assert_memory_equal(buf.data + 1, data, sizeof(data));
	hx_buf_clear(&buf);
	write_file(path_of("empty"), "", 0);
	assert_int_equal(hx_io_read_all(io, path_of("empty"), 0, &buf, NULL), HAPAX_OK);
	assert_int_equal(buf.size, 0);
	/* A file whose size the system does not tell. */
	assert_int_equal(hx_io_read_all(io, "/proc/self/status", 100000, &buf, NULL), HAPAX_OK);
	assert_true(buf.size > 0);
	hx_buf_done(&buf);
}

static void a_file_too_large_is_refused(void **state)
{
	const struct hx_io *io = hx_io_system();
	struct hapax_error err;
	struct hapax_buf buf;

	(void)state;
	write_file(path_of("a"), "0123456789", 10);
	hx_buf_init(&buf, 12);
	assert_int_equal(hx_io_read_all(io, path_of("a"), 9, &buf, &err), HAPAX_ERR_LIMIT);
	assert_int_equal(err.status, HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 0);
	assert_int_equal(hx_io_read_all(io, path_of("a"), 10, &buf, NULL), HAPAX_OK);
	/* The buffer's own maximum holds as well. */
	assert_int_equal(hx_io_read_all(io, path_of("a"), 100, &buf, &err), HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 10);
	assert_memory_equal(buf.data, "0123456789", 10);
	hx_buf_done(&buf);
}

static void whole_files_can_fail(void **state)
{
	const struct hx_io *system = hx_io_system();
	struct stingy stingy = {.step = 10, .fail_at = 25};
	const struct hx_io io = {&stingy_ops, &stingy};
	int64_t live = hx_alloc_live();
	struct hapax_error err;
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 1000);
	assert_int_equal(
		hx_io_read_all(system, path_of("none"), 10, &buf, &err), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(err.os_errno, ENOENT);
	assert_non_null(strstr(err.message, "none"));
	assert_int_equal(hx_io_read_all(system, dir.path, 10, &buf, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.os_errno, EISDIR);

	hx_buf_done(&buf);
	hx_alloc_fail_at(1, 0);
	assert_int_equal(hx_io_read_all(system, "/dev/zero", 10, &buf, &err), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);

	stingy.size = 100;
	stingy_closes = 0;
	assert_int_equal(hx_io_read_all(&io, "x", 1000, &buf, &err), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(err.os_errno, EIO);
	assert_int_equal(buf.size, 0);
	assert_int_equal(stingy_closes, 1);
	hx_buf_done(&buf);
	assert_int_equal(hx_alloc_live(), live);
}

static void assert_directory(const char *path, mode_t mode)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 07777, mode);
}

static void makes_directories(void **state)
{
	const struct hx_io *io = hx_io_system();

	(void)state;
	assert_int_equal(hx_io_make_folders(io, path_of("a/b/c"), 0700, NULL), HAPAX_OK);
	assert_directory(path_of("a"), 0700);
	assert_directory(path_of("a/b/c"), 0700);
	assert_int_equal(hx_io_make_folders(io, path_of("a/b/c"), 0755, NULL), HAPAX_OK);
	assert_directory(path_of("a/b/c"), 0700);
	assert_int_equal(hx_io_make_folders(io, path_of("a//d/"), 0700, NULL), HAPAX_OK);
	assert_directory(path_of("a/d"), 0700);
	assert_int_equal(hx_io_make_folders(io, "/", 0700, NULL), HAPAX_OK);
	assert_int_equal(hx_io_make_folders(io, ".", 0700, NULL), HAPAX_OK);
}

static void directories_can_fail(void **state)
{
	const struct hx_io *io = hx_io_system();
	struct hapax_error err;
	char path[6000];

	(void)state;
	write_file(path_of("file"), "", 0);
	assert_int_equal(hx_io_make_folders(io, path_of("file"), 0700, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.os_errno, ENOTDIR);
	assert_int_equal(
		hx_io_make_folders(io, path_of("file/x/y"), 0700, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.os_errno, ENOTDIR);
	assert_int_equal(hx_io_make_folders(io, "", 0700, &err), HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(hx_io_make_folders(io, "/proc/none", 0700, &err), HAPAX_ERR_UNAVAILABLE);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(hx_io_make_folders(io, path, 0700, &err), HAPAX_ERR_INVALID);
	assert_int_equal(err.os_errno, ENAMETOOLONG);
}

#define IO_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IO_TEST(writes_and_reads),
		IO_TEST(the_end_of_the_file_is_no_error),
		IO_TEST(open_says_what_is_wrong),
		IO_TEST(files_are_not_for_children),
		IO_TEST(a_bad_file_is_an_error_everywhere),
		IO_TEST(sizes_change),
		IO_TEST(names_change),
		IO_TEST(names_change_places),
		IO_TEST(paths_become_absolute),
		IO_TEST(lists),
		IO_TEST(a_lock_keeps_the_second_opener_out),
		IO_TEST(direct_wants_alignment),
		IO_TEST(short_reads_and_writes_go_on),
		IO_TEST(errors_midway_are_told),
		IO_TEST(reads_whole_files),
		IO_TEST(a_file_too_large_is_refused),
		IO_TEST(whole_files_can_fail),
		IO_TEST(makes_directories),
		IO_TEST(directories_can_fail),
	};

	return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
