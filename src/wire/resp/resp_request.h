/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_request.h - parse requests of Redis clients: arrays of bulk strings, or inline commands
 * that a person types.
 *
 * Arguments are used in place. Only those of an inline command with quotes are copied, into the
 * request's own buffer. Errors are those of Redis, word for word. After an error, send it and
 * close the connection.
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
	HX_RESP_ARGS_MAX = 1024 * 1024, /* regardless of the limits */
};

/* Zero means the default. */
struct hx_resp_limits {
	size_t args_max;         /* 0: 65,536 */
	size_t bulk_size_max;    /* 0: 1 MiB */
	bool is_unauthenticated; /* at most 10 arguments of 16 KiB, as in Redis */
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
	size_t at;       /* bytes of the request that were parsed */
	size_t expected; /* arguments that were announced */
	bool has_begun;
	bool is_copied; /* offsets refer to copy, not to the input */
	struct hapax_buf copy;
	char error[HX_RESP_ERROR_SIZE];
};

/* Allocates nothing. */
void hx_resp_request_init(struct hx_resp_request *request);
void hx_resp_request_done(struct hx_resp_request *request);

/*
 * Parse input, which begins with the request and contains at least the bytes of the previous call.
 * DONE: the request has *ret_size bytes. count may be 0 (an empty line or array, which Redis
 * ignores). Call hx_resp_request_next() before the next one. BAD: request->error is the reply,
 * without "-ERR ".
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

/* Prepare for the next request; memory is kept. */
void hx_resp_request_next(struct hx_resp_request *request);

#endif
