/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_request.h - reading what clients of Redis send: arrays of bulk strings, or
 * inline commands as people type them.
 *
 * Arguments are found where they lie; only those of an inline command that has
 * quotes are copied, into the request's own buffer. Errors are those of Redis, word
 * for word; after one, answer it and close.
 *
 * Threads: one at a time.
 */
#ifndef HX_WIRE_RESP_RESP_REQUEST_H
#define HX_WIRE_RESP_RESP_REQUEST_H

#include <assert.h>

#include "base/bytes.h"
#include "wire/resp/resp.h"

enum {
	HX_RESP_ERROR_SIZE = 64,
	HX_RESP_ARGS_MAX = 1024 * 1024, /* whatever the limits say */
};

/* Zero means the default. */
struct hx_resp_limits {
	size_t args_max;         /* 0: 65,536 */
	size_t bulk_size_max;    /* 0: 1 MiB */
	bool is_unauthenticated; /* at most 10 arguments of 16 KiB, as Redis has it */
};

struct hx_resp_arg {
	size_t offset;
	size_t size;
};

struct hx_resp_request {
	struct hx_resp_arg *args;
	size_t count;
	/* Private. */
	size_t capacity;
	size_t at;       /* bytes of the request that were understood */
	size_t expected; /* arguments that were announced */
	bool has_begun;
	bool is_copied; /* offsets are of copy, not of the input */
	struct hapax_buf copy;
	char error[HX_RESP_ERROR_SIZE];
};

/* Allocates nothing. */
void hx_resp_request_init(struct hx_resp_request *request);
void hx_resp_request_done(struct hx_resp_request *request);

/*
 * Look at input, which begins where the request begins and holds at least what it
 * held at the call before. DONE: *ret_size bytes make a request, count may be 0 (an
 * empty line or array, which Redis passes over); call hx_resp_request_next() before
 * the next one. BAD: request->error says what to answer, without "-ERR ".
 */
enum hx_resp_result hx_resp_request_read(
	struct hx_resp_request *request, struct hapax_bytes input,
	const struct hx_resp_limits *limits, size_t *ret_size);

/* An argument of a request that is DONE; input as given to read. */
static inline struct hapax_bytes hx_resp_request_arg(
	const struct hx_resp_request *request, struct hapax_bytes input, size_t index)
{
	const unsigned char *base = request->is_copied ? request->copy.data : input.data;
	const struct hx_resp_arg *arg = &request->args[index];

	assert(index < request->count);
	return hx_bytes(arg->size == 0 ? NULL : base + arg->offset, arg->size);
}

/* Ready for the next request; memory is kept. */
void hx_resp_request_next(struct hx_resp_request *request);

#endif
