/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_replay.c - what a command wrote, once more.
 */
#include "cli/run_replay.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/error.h"
#include "base/stream.h"
#include "cli/exit_code.h"
#include "cli/report.h"
#include "wire/exec_result.h"

/* A reader that has gone is what it is with the command itself: no fault. */
static int write_pieces(const char *command, struct hx_exec_reader *reader)
{
	struct hapax_bytes piece;
	enum hx_exec_stream stream;
	struct hapax_error err;

	while (hx_exec_reader_next(reader, &stream, &piece)) {
		int fd = stream == HX_EXEC_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
		int os_errno = -hx_stream_write_full(fd, piece.data, piece.size);

		if (os_errno == 0 || os_errno == EPIPE)
			continue;
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, os_errno, "standard %s was not written",
			stream == HX_EXEC_STDOUT ? "output" : "error");
		hx_report(command, "%s", err.message);
		return HX_EXIT_WRAPPER;
	}
	return HX_EXIT_OK;
}

static int replay_exec(const char *command, const struct hapax_result *result, int *ret_signal)
{
	struct hx_exec_reader reader;
	struct hapax_error err;
	int code;

	if (hx_exec_reader_init(&reader, result, &err) != HAPAX_OK) {
		hx_report(command, "%s", err.message);
		return HX_EXIT_WRAPPER;
	}
	*ret_signal = reader.signal;
	if (result->omitted_bytes > 0)
		hx_report(
			command,
			"note: it was done before; its output, %" PRIu64 " bytes, was not kept",
			result->omitted_bytes);
	code = write_pieces(command, &reader);
	return code == HX_EXIT_OK ? (int)(result->status & UINT8_MAX) : code;
}

int hx_run_replay(const char *command, const struct hapax_result *result, int *ret_signal)
{
	bool is_ok = result->result_class == HAPAX_RESULT_OK;

	*ret_signal = 0;
	if (result->kind == HAPAX_RESULT_EXEC)
		return replay_exec(command, result, ret_signal);
	hx_report(
		command, "note: it %s before, but not by 'hapax run': there is no output to show",
		is_ok ? "was done" : "failed for good");
	return is_ok ? HX_EXIT_OK : HX_EXIT_NO;
}
