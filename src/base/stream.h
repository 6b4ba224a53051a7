/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - pipes and standard descriptors, and waiting for them.
 *
 * A stream is a descriptor without a position: bytes can be read once. Functions return a count or
 * 0, or a negative errno; errno itself is unchanged.
 *
 * Threads: any. hx_stream_write() may be called from a signal handler.
 */
#ifndef HX_STREAM_H
#define HX_STREAM_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum hx_stream_flag {
	HX_STREAM_READ_NOWAIT = 1 << 0,  /* reading gives -EAGAIN instead of waiting */
	HX_STREAM_WRITE_NOWAIT = 1 << 1, /* so does writing */
};

/*
 * A second descriptor of the pipe or terminal that fd writes to, on which writing returns -EAGAIN
 * instead of waiting; exec closes it. It is a separate open file: the flags of fd, which other
 * processes may share, do not change. Negative: fd is something else, or must not be opened, like
 * the terminal of another user.
 */
int hx_stream_open_nowait(int fd);

/* A pipe, ends[0] to read and ends[1] to write; both are closed by exec. */
int hx_stream_pipe(int ends[2], unsigned flags);

/* Nothing happens when fd is -1. */
void hx_stream_close(int fd);

/* Bytes read, usually fewer than requested; 0 at the end. */
ssize_t hx_stream_read(int fd, void *data, size_t size);

/* Bytes written, perhaps fewer than given. -EINTR: a signal came first. */
ssize_t hx_stream_write(int fd, const void *data, size_t size);

/* The same on a socket, with -EAGAIN instead of waiting. -ENOTSOCK: not a socket. */
ssize_t hx_stream_send_nowait(int fd, const void *data, size_t size);

/*
 * Wait until one of count descriptors is ready or the time is deadline_ns of
 * hx_clock_mono_ns(); INT64_MAX waits without end. How many are ready. A signal does
 * not end the wait: a handler writes into a pipe that is waited for.
 */
int hx_stream_wait(struct pollfd *fds, size_t count, int64_t deadline_ns);

/* The deadline ms from now; INT64_MAX if it would overflow. */
int64_t hx_stream_after_ms(int64_t ms);

/* The position of the next read, or -ESPIPE: not a file. */
int64_t hx_stream_offset(int fd);

/* Make exec close it. -EBADF: it is not open. */
int hx_stream_set_private(int fd);

/* A FILE that writes to fd and closes it. NULL with errno set. */
FILE *hx_stream_file(int fd);

#endif
