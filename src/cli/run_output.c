/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_output.c - our standard output and error, which nobody may be reading.
 */
#include "cli/run_output.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "base/stream.h"
#include "cli/report.h"

void hx_run_output_init(struct hx_run_output *output, int fd)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;

	*output = (struct hx_run_output){.fd = fd};
	output->is_file = io->ops->stat(io->context, fd, &stat) == 0 && stat.kind == HX_IO_FILE;
}

size_t hx_run_output_write(struct hx_run_output *output, const void *data, size_t size)
{
	size_t part = size;
	ssize_t done;

	if (output->os_errno != 0)
		return size;
	/* A pipe that has room takes this much without waiting. */
	if (!output->is_file && part > PIPE_BUF)
		part = PIPE_BUF;
	done = hx_stream_write(output->fd, data, part);
	if (done >= 0)
		return (size_t)done;
	if (done == -EINTR || done == -EAGAIN)
		return 0;
	output->os_errno = (int)-done;
	return size;
}

bool hx_run_output_has_room(const struct hx_run_output *output)
{
	struct pollfd fd = {.fd = output->fd, .events = POLLOUT};

	return hx_stream_wait(&fd, 1, 0) > 0;
}

bool hx_run_output_report(const struct hx_run_output *output, const char *command)
{
	struct hapax_error err;

	if (output->os_errno == 0 || output->os_errno == EPIPE)
		return false;
	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, output->os_errno, "standard %s was not written",
		output->fd == STDOUT_FILENO ? "output" : "error");
	hx_report(command, "%s", err.message);
	return true;
}
