/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_replay.c - replay the output of a command.
 */
#include "cli/run/run_replay.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/stream.h"
#include "cli/frame/exit_code.h"
#include "cli/frame/report.h"
#include "cli/run/run_output.h"
#include "cli/run/run_signal.h"
#include "wire/exec_result.h"

/* Write all of piece. Returns the signal that stopped it, else 0. */
static int write_piece(int signal_fd, struct hx_cmd_run_output *output, struct hapax_bytes piece)
{
	const unsigned char *data = piece.data;
	size_t done = 0;

	while (done < piece.size) {
		struct pollfd fds[] = {
			{.fd = signal_fd, .events = POLLIN},
			{.fd = output->fd, .events = POLLOUT},
		};
		int signal;

		(void)hx_stream_wait(fds, HX_COUNT(fds), INT64_MAX);
		signal = hx_cmd_run_signal_asked();
		if (signal != 0)
			return signal;
		if (fds[1].revents != 0)
			done += hx_cmd_run_output_write(output, data + done, piece.size - done);
	}
	return 0;
}

/* A reader that has gone is not an error, as with the command itself. */
static int write_pieces(
	const struct hx_cmd_run_ledger *ledger, struct hx_exec_reader *reader,
	struct hx_cmd_run_output outputs[2])
{
	enum hx_exec_stream stream;
	struct hapax_bytes piece;

	while (hx_exec_reader_next(reader, &stream, &piece)) {
		struct hx_cmd_run_output *output = &outputs[stream == HX_EXEC_STDOUT ? 0 : 1];
		int signal = write_piece(ledger->signal_fd, output, piece);

		if (signal != 0)
			return HX_EXIT_SIGNAL + signal;
		if (hx_cmd_run_output_report(output, ledger->inv->command->name))
			return HX_EXIT_WRAPPER;
	}
	return HX_EXIT_OK;
}

static int replay_exec(
	const struct hx_cmd_run_ledger *ledger, const struct hapax_result *result, int *ret_signal)
{
	const char *command = ledger->inv->command->name;
	struct hx_cmd_run_output outputs[2];
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
			"note: the command has run before; its output (%" PRIu64
			" bytes) is not stored",
			result->omitted_bytes);
	hx_cmd_run_output_init(&outputs[0], STDOUT_FILENO);
	hx_cmd_run_output_init(&outputs[1], STDERR_FILENO);
	code = write_pieces(ledger, &reader, outputs);
	hx_cmd_run_output_done(&outputs[0]);
	hx_cmd_run_output_done(&outputs[1]);
	return code == HX_EXIT_OK ? (int)(result->status & UINT8_MAX) : code;
}

int hx_cmd_run_replay(
	const struct hx_cmd_run_ledger *ledger, const struct hapax_result *result, int *ret_signal)
{
	bool is_ok = result->result_class == HAPAX_RESULT_OK;

	*ret_signal = 0;
	if (result->kind == HAPAX_RESULT_EXEC)
		return replay_exec(ledger, result, ret_signal);
	hx_report(
		ledger->inv->command->name,
		"note: the work %s before, but not by 'hapax run'; there is no "
		"output",
		is_ok ? "was done" : "failed permanently");
	return is_ok ? HX_EXIT_OK : HX_EXIT_NO;
}
