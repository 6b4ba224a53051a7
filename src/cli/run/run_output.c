/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_output.c - our standard output and error, possibly without a reader.
 */
#include "cli/run/run_output.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "base/stream.h"
#include "cli/frame/report.h"

enum {
	/*
	 * A terminal that reports room guarantees no more than this: a line end that it expands
	 * takes extra room.
	 */
	TERMINAL_PART = 1,
};

void hx_cmd_run_output_init(struct hx_cmd_run_output *output, int fd)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;

	*output = (struct hx_cmd_run_output){.fd = fd, .own_fd = -1, .part_max = SIZE_MAX};
	output->is_file = io->ops->stat(io->context, fd, &stat) == 0 && stat.kind == HX_IO_FILE;
	if (output->is_file)
		return;
	output->own_fd = hx_stream_open_nowait(fd);
	output->part_max = output->own_fd < 0 && isatty(fd) ? TERMINAL_PART : PIPE_BUF;
}

void hx_cmd_run_output_done(struct hx_cmd_run_output *output)
{
	hx_stream_close(output->own_fd);
	output->own_fd = -1;
}

static bool has_room(const struct hx_cmd_run_output *output)
{
	struct pollfd fd = {.fd = output->fd, .events = POLLOUT};

	return hx_stream_wait(&fd, 1, 0) > 0;
}

/* Bytes written, or a negative errno; -EAGAIN: there is no room. */
static ssize_t write_now(const struct hx_cmd_run_output *output, const void *data, size_t size)
{
	ssize_t done;

	if (output->is_file)
		return hx_stream_write(output->fd, data, size);
	if (output->own_fd >= 0)
		return hx_stream_write(output->own_fd, data, size);
	done = hx_stream_send_nowait(output->fd, data, size);
	if (done != -ENOTSOCK)
		return done;
	/* We could not reopen it: write little, and only into room that is there now. */
	return has_room(output) ? hx_stream_write(output->fd, data, size) : -EAGAIN;
}

size_t hx_cmd_run_output_write(struct hx_cmd_run_output *output, const void *data, size_t size)
{
	ssize_t done;

	if (output->os_errno != 0)
		return size;
	done = write_now(output, data, size < output->part_max ? size : output->part_max);
	if (done >= 0)
		return (size_t)done;
	if (done == -EINTR || done == -EAGAIN)
		return 0;
	output->os_errno = (int)-done;
	return size;
}

bool hx_cmd_run_output_report(const struct hx_cmd_run_output *output, const char *command)
{
	struct hapax_error err;

	if (output->os_errno == 0 || output->os_errno == EPIPE)
		return false;
	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, output->os_errno, "could not write standard %s",
		output->fd == STDOUT_FILENO ? "output" : "error");
	hx_report(command, "%s", err.message);
	return true;
}
