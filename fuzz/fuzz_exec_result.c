/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: results of commands (src/wire/exec_result.c).
 *
 * The bytes are an exit status, a size, headers of that size, and a body. They are
 * refused, or read piece by piece; pieces that are recorded again give the very same
 * headers and body.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "wire/exec_result.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void record_again(const struct hapax_result *result, const struct hx_exec_reader *reader)
{
	struct hx_exec_recorder recorder;
	struct hx_exec_reader pieces = *reader;
	struct hapax_result again;
	enum hx_exec_stream stream;
	struct hapax_bytes piece;

	hx_exec_recorder_init(&recorder, HX_RESULT_SIZE_LIMIT);
	while (hx_exec_reader_next(&pieces, &stream, &piece)) {
		must(piece.size > 0);
		hx_exec_recorder_add(&recorder, stream, piece.data, piece.size);
	}
	hx_exec_recorder_finish(&recorder, result->status & 255, reader->signal, &again);
	must(recorder.total == result->body.size && again.omitted_bytes == 0);
	must(hx_bytes_equal(again.body, result->body));
	if (result->headers.size > 0)
		must(hx_bytes_equal(again.headers, result->headers));
	hx_exec_recorder_done(&recorder);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_result result = {.kind = HAPAX_RESULT_EXEC};
	struct hx_exec_reader reader;
	size_t headers_size;

	if (size < 2)
		return 0;
	result.status = data[0];
	headers_size = data[1] < size - 2 ? data[1] : size - 2;
	result.headers = hx_bytes(data + 2, headers_size);
	result.body = hx_bytes(data + 2 + headers_size, size - 2 - headers_size);
	if (hx_exec_reader_init(&reader, &result, &err) != HAPAX_OK) {
		must(err.status == HAPAX_ERR_CORRUPT && err.message[0] != '\0');
		return 0;
	}
	must(reader.signal == 0 || result.status == 128 + reader.signal);
	record_again(&result, &reader);
	return 0;
}
