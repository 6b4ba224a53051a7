/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_result.c - output and end of a command as bytes.
 *
 * The headers of version 1:
 *
 *	0  u8  version, 1
 *	1  u8  signal that ended the command, 1 to 127, or 0
 *	2      lengths of runs, of standard output and standard error by turns; only
 *	       the first may be 0. Each in groups of seven bits, lowest first, the
 *	       top bit set on all bytes but the last, without leading zeros.
 *
 *  (1) The lengths add up to the size of the body. A tombstone has no body and no runs.
 *  (2) There is one way to write each result: what a reader accepts, a recorder makes.
 */
#include "wire/exec_result.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"

enum {
	VERSION = 1,
	PREFIX_SIZE = 2,
	LENGTH_SIZE_MAX = 10, /* 64 bits in groups of seven */
	SIGNAL_MAX = 127,
	SIGNAL_STATUS = 128, /* as in shells */
};

void hx_exec_recorder_init(struct hx_exec_recorder *recorder, size_t size_max)
{
	*recorder = (struct hx_exec_recorder){.stream = HX_EXEC_STDOUT};
	hx_buf_init(&recorder->output, size_max);
	/* Room for the prefix and for the last length is kept, so that finish cannot fail. */
	hx_buf_init(&recorder->runs, HX_RESULT_HEADERS_SIZE_MAX - PREFIX_SIZE - LENGTH_SIZE_MAX);
}

void hx_exec_recorder_done(struct hx_exec_recorder *recorder)
{
	hx_buf_done(&recorder->output);
	hx_buf_done(&recorder->runs);
}

static size_t write_length(uint64_t length, unsigned char out[LENGTH_SIZE_MAX])
{
	size_t size = 0;

	for (; length >= 0x80; length >>= 7)
		out[size++] = (unsigned char)(length | 0x80);
	out[size++] = (unsigned char)length;
	assert(size <= LENGTH_SIZE_MAX);
	return size;
}

static void omit(struct hx_exec_recorder *recorder)
{
	recorder->is_omitted = true;
	hx_buf_done(&recorder->output);
	hx_buf_done(&recorder->runs);
}

/* Begin a run of the other stream. False: no room for the length of the one before. */
static bool turn(struct hx_exec_recorder *recorder, enum hx_exec_stream stream)
{
	unsigned char length[LENGTH_SIZE_MAX];
	size_t size = write_length(recorder->run_size, length);

	if (hx_buf_append(&recorder->runs, length, size) != HAPAX_OK)
		return false;
	recorder->stream = stream;
	recorder->run_size = 0;
	return true;
}

void hx_exec_recorder_add(
	struct hx_exec_recorder *recorder, enum hx_exec_stream stream, const void *data,
	size_t size)
{
	if (size == 0)
		return;
	recorder->total += size;
	if (recorder->is_omitted)
		return;
	if ((stream != recorder->stream && !turn(recorder, stream)) ||
	    hx_buf_append(&recorder->output, data, size) != HAPAX_OK) {
		omit(recorder);
		return;
	}
	recorder->run_size += size;
}

/* Put the prefix before the runs, and the last length behind them. */
static bool close_runs(struct hx_exec_recorder *recorder, int signal)
{
	unsigned char length[LENGTH_SIZE_MAX];
	size_t size = recorder->run_size > 0 ? write_length(recorder->run_size, length) : 0;
	size_t before = recorder->runs.size;

	recorder->runs.size_max = HX_RESULT_HEADERS_SIZE_MAX;
	if (hx_buf_reserve(&recorder->runs, PREFIX_SIZE + size) != HAPAX_OK)
		return false;
	memmove(recorder->runs.data + PREFIX_SIZE, recorder->runs.data, before);
	recorder->runs.data[0] = VERSION;
	recorder->runs.data[1] = (unsigned char)signal;
	if (size > 0)
		memcpy(recorder->runs.data + PREFIX_SIZE + before, length, size);
	recorder->runs.size = PREFIX_SIZE + before + size;
	return true;
}

void hx_exec_recorder_finish(
	struct hx_exec_recorder *recorder, int exit_code, int signal, struct hapax_result *ret)
{
	assert(signal >= 0 && signal <= SIGNAL_MAX);
	assert(signal > 0 || (exit_code >= 0 && exit_code <= UINT8_MAX));
	*ret = (struct hapax_result){
		.kind = HAPAX_RESULT_EXEC,
		.status = signal > 0 ? SIGNAL_STATUS + signal : exit_code,
	};
	if (!recorder->is_omitted && !close_runs(recorder, signal))
		omit(recorder);
	if (recorder->is_omitted) {
		recorder->run_size = 0;
		ret->omitted_bytes = recorder->total;
		/* Without headers the signal is known from the status alone. */
		if (!close_runs(recorder, signal))
			return;
	}
	ret->headers = hapax_buf_bytes(&recorder->runs);
	ret->body = hapax_buf_bytes(&recorder->output);
}

/* Take a length from the front of runs. False: it is not well formed. */
static bool read_length(struct hapax_bytes *runs, uint64_t *ret)
{
	const unsigned char *data = runs->data;
	uint64_t length = 0;

	for (size_t i = 0; i < runs->size && i < LENGTH_SIZE_MAX - 1; i++) {
		length |= (uint64_t)(data[i] & 0x7f) << (7 * i);
		if (data[i] & 0x80)
			continue;
		/* A last group of zeros would be a second way to write the same number. */
		if (i > 0 && data[i] == 0)
			return false;
		*runs = hx_bytes(data + i + 1, runs->size - i - 1);
		*ret = length;
		return true;
	}
	return false;
}

static bool runs_are_valid(struct hapax_bytes runs, uint64_t body_size)
{
	bool is_first = true;

	while (runs.size > 0) {
		uint64_t length;

		if (!read_length(&runs, &length) || length > body_size)
			return false;
		/* An empty first run is there for a second; alone it would be no run at all. */
		if (length == 0 && (!is_first || runs.size == 0))
			return false;
		body_size -= length;
		is_first = false;
	}
	return body_size == 0;
}

enum hapax_status hx_exec_reader_init(
	struct hx_exec_reader *reader, const struct hapax_result *result, struct hapax_error *err)
{
	const unsigned char *headers = result->headers.data;

	assert(result->kind == HAPAX_RESULT_EXEC);
	*reader = (struct hx_exec_reader){.body = result->body, .stream = HX_EXEC_STDOUT};
	if (result->headers.size == 0)
		return HAPAX_OK;
	if (result->headers.size < PREFIX_SIZE || headers[0] != VERSION)
		return hx_error_set(err, HAPAX_ERR_CORRUPT, 0, "the result has an unknown version");
	if (headers[1] > SIGNAL_MAX ||
	    (headers[1] > 0 && result->status != SIGNAL_STATUS + headers[1]))
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"the signal of the result does not match its status");
	reader->signal = headers[1];
	reader->runs = hx_bytes(headers + PREFIX_SIZE, result->headers.size - PREFIX_SIZE);
	if (!runs_are_valid(reader->runs, result->body.size))
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"the streams of the result do not add up to its output");
	return HAPAX_OK;
}

bool hx_exec_reader_next(
	struct hx_exec_reader *reader, enum hx_exec_stream *ret_stream,
	struct hapax_bytes *ret_piece)
{
	uint64_t length = reader->body.size;
	bool has_runs = reader->runs.size > 0;

	if (reader->body.size == 0)
		return false;
	if (has_runs && !read_length(&reader->runs, &length))
		return false;
	assert(length <= reader->body.size);
	*ret_stream = reader->stream;
	*ret_piece = hx_bytes(reader->body.data, (size_t)length);
	reader->body = hx_bytes(
		(const char *)reader->body.data + length, reader->body.size - (size_t)length);
	reader->stream = reader->stream == HX_EXEC_STDOUT ? HX_EXEC_STDERR : HX_EXEC_STDOUT;
	/* The first run may be empty. */
	return length > 0 || hx_exec_reader_next(reader, ret_stream, ret_piece);
}
