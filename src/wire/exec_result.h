/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_result.h - output and end of a command, as a result of kind exec.
 *
 * The body is the output of both streams, in the order in which it was read, so that it is readable
 * in the record. The headers say which bytes belong to which stream, and which signal ended the
 * command.
 *
 * A recorder holds output up to a maximum. Beyond it, or when memory runs out, or when the streams
 * alternate too often for the headers, it drops its content and only counts: the result becomes a
 * tombstone, and the stream continues.
 *
 * Threads: one at a time.
 */
#ifndef HX_EXEC_RESULT_H
#define HX_EXEC_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/record.h>

#include "base/buf.h"

enum hx_exec_stream {
	HX_EXEC_STDOUT = 0,
	HX_EXEC_STDERR = 1,
};

struct hx_exec_recorder {
	struct hapax_buf output;
	struct hapax_buf runs; /* headers: lengths, without the last one */
	enum hx_exec_stream stream;
	uint64_t run_size; /* of the run that is not yet in runs */
	uint64_t total;    /* bytes received, kept or not */
	bool is_omitted;
};

/* Keeps at most size_max bytes. Allocates nothing yet. */
void hx_exec_recorder_init(struct hx_exec_recorder *recorder, size_t size_max);
void hx_exec_recorder_done(struct hx_exec_recorder *recorder);

/* data may be NULL when size is 0. Never fails: see above. */
void hx_exec_recorder_add(
	struct hx_exec_recorder *recorder, enum hx_exec_stream stream, const void *data,
	size_t size);

/*
 * The result: status is the exit code, or 128 + signal when a signal other than 0 ended
 * the command. Once; no add follows. *ret borrows from recorder.
 */
void hx_exec_recorder_finish(
	struct hx_exec_recorder *recorder, int exit_code, int signal, struct hapax_result *ret);

struct hx_exec_reader {
	struct hapax_bytes runs; /* what is left of the headers */
	struct hapax_bytes body; /* what is left of the body */
	enum hx_exec_stream stream;
	int signal; /* that ended the command, or 0 */
};

/*
 * Read result, which must be of kind exec and outlive the reader. Empty headers mean that all of it
 * is standard output. CORRUPT: it was not made by a recorder; replay nothing.
 */
enum hapax_status hx_exec_reader_init(
	struct hx_exec_reader *reader, const struct hapax_result *result, struct hapax_error *err);

/* The next piece, never empty; false after the last. */
bool hx_exec_reader_next(
	struct hx_exec_reader *reader, enum hx_exec_stream *ret_stream,
	struct hapax_bytes *ret_piece);

#endif
