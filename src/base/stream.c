/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - pipes and standard descriptors.
 */
#include "base/stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The flags of an open descriptor, with extra ones. 0, or a negative errno. */
static int add_flags(int fd, int get, int set, int extra)
{
	int flags = fcntl(fd, get);

	if (flags < 0 || fcntl(fd, set, flags | extra) < 0)
		return -errno;
	return 0;
}

void hx_stream_close(int fd)
{
	int before = errno;

	/* Linux has closed it even after EINTR; a second close could hit another file. */
	if (fd >= 0)
		(void)close(fd);
	errno = before;
}

/* Reopening the controlling side of a terminal would create another terminal. */
static bool is_terminal(int fd)
{
	unsigned number;

	return isatty(fd) && ioctl(fd, TIOCGPTN, &number) != 0;
}

int hx_stream_open_nowait(int fd)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(fd)];
	int before = errno, flags = fcntl(fd, F_GETFL), opened = -EOPNOTSUPP;
	struct stat st;

	/* If fd is not writable, neither is the copy. */
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &st) != 0) {
		errno = before;
		return -EBADF;
	}
	if (S_ISFIFO(st.st_mode) || is_terminal(fd)) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		opened = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (opened < 0)
			opened = -errno;
	}
	errno = before;
	return opened;
}

int hx_stream_pipe(int ends[2], unsigned flags)
{
	int before = errno, made[2], failed = 0;

	if (pipe2(made, O_CLOEXEC) != 0) {
		failed = -errno;
		errno = before;
		return failed;
	}
	if (flags & HX_STREAM_READ_NOWAIT)
		failed = add_flags(made[0], F_GETFL, F_SETFL, O_NONBLOCK);
	if (!failed && (flags & HX_STREAM_WRITE_NOWAIT))
		failed = add_flags(made[1], F_GETFL, F_SETFL, O_NONBLOCK);
	errno = before;
	if (failed) {
		hx_stream_close(made[0]);
		hx_stream_close(made[1]);
		return failed;
	}
	ends[0] = made[0];
	ends[1] = made[1];
	return 0;
}

ssize_t hx_stream_read(int fd, void *data, size_t size)
{
	int before = errno;
	ssize_t done;

	assert(size <= SSIZE_MAX);
	do
		done = read(fd, data, size);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		done = -errno;
	errno = before;
	return done;
}

ssize_t hx_stream_write(int fd, const void *data, size_t size)
{
	int before = errno;
	ssize_t done = write(fd, data, size);

	if (done < 0)
		done = -errno;
	errno = before;
	return done;
}

ssize_t hx_stream_send_nowait(int fd, const void *data, size_t size)
{
	int before = errno;
	ssize_t done = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (done < 0)
		done = -errno;
	errno = before;
	return done;
}

int64_t hx_stream_after_ms(int64_t ms)
{
	int64_t span, end;

	if (__builtin_mul_overflow(ms, HX_NS_PER_MS, &span) ||
	    __builtin_add_overflow(hx_clock_mono_ns(), span, &end))
		return INT64_MAX;
	return end;
}

int hx_stream_wait(struct pollfd *fds, size_t count, int64_t deadline_ns)
{
	int before = errno, ready;

	do {
		int64_t left = deadline_ns == INT64_MAX ? 0 : deadline_ns - hx_clock_mono_ns();
		struct timespec span;

		left = left > 0 ? left : 0;
		span.tv_sec = (time_t)(left / HX_NS_PER_S);
		span.tv_nsec = (long)(left % HX_NS_PER_S);
		ready = ppoll(fds, (nfds_t)count, deadline_ns == INT64_MAX ? NULL : &span, NULL);
	} while (ready < 0 && errno == EINTR);
	if (ready < 0)
		ready = -errno;
	errno = before;
	return ready;
}

int64_t hx_stream_offset(int fd)
{
	int before = errno;
	off_t offset = lseek(fd, 0, SEEK_CUR);

	if (offset < 0)
		offset = -errno;
	errno = before;
	return offset;
}

int hx_stream_set_private(int fd)
{
	int before = errno;
	int failed = add_flags(fd, F_GETFD, F_SETFD, FD_CLOEXEC);

	errno = before;
	return failed;
}

FILE *hx_stream_file(int fd)
{
	return fdopen(fd, "w");
}
