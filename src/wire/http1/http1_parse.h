/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_parse.h - shared parts of the codec; for http1*.c only.
 *
 * A parser looks at one line from its beginning. It says SHORT when the bytes end before
 * the line does, and BAD at the first byte that cannot be right, so that the result is
 * the same however the bytes arrive.
 */
#ifndef HX_HTTP1_PARSE_H
#define HX_HTTP1_PARSE_H

#include <stdbool.h>

#include "wire/http1/http1.h"

enum hx_http1_state {
	HX_HTTP1_IN_HEAD,
	HX_HTTP1_IN_LENGTH,
	HX_HTTP1_IN_CHUNKS,
	HX_HTTP1_UNTIL_CLOSE,
	HX_HTTP1_COMPLETE,
	HX_HTTP1_REFUSED,
};

/* The result of reading a line. */
enum hx_http1_line {
	HX_HTTP1_LINE_READ,
	HX_HTTP1_LINE_SHORT,
	HX_HTTP1_LINE_BAD, /* the fault says why */
};

/* Why and where a message is refused. */
struct hx_http1_fault {
	unsigned status;
	const unsigned char *at;
	const char *reason;
	struct hapax_bytes name; /* of the field, if it is about one */
};

struct hx_http1_cursor {
	const unsigned char *at;
	const unsigned char *end;
};

static inline enum hx_http1_line hx_http1_bad(
	struct hx_http1_fault *fault, unsigned status, const unsigned char *at, const char *reason)
{
	*fault = (struct hx_http1_fault){status, at, reason, {NULL, 0}};
	return HX_HTTP1_LINE_BAD;
}

/* The same for a check of a whole head, which is false then. */
static inline bool hx_http1_fails(
	struct hx_http1_fault *fault, unsigned status, const void *at, const char *reason)
{
	(void)hx_http1_bad(fault, status, at, reason);
	return false;
}

/* CR LF. Anything else is BAD; at must not be within a value any more. */
enum hx_http1_line hx_http1_line_end(struct hx_http1_cursor *cursor, struct hx_http1_fault *fault);

enum hx_http1_line hx_http1_request_line(
	struct hx_http1_cursor *cursor, struct hx_http1_head *head, struct hx_http1_fault *fault);
enum hx_http1_line hx_http1_status_line(
	struct hx_http1_cursor *cursor, struct hx_http1_head *head, struct hx_http1_fault *fault);
enum hx_http1_line hx_http1_field_line(
	struct hx_http1_cursor *cursor, struct hapax_field *ret, struct hx_http1_fault *fault);

/* Note a field that was read, and whether the codec knows it. */
void hx_http1_note_field(struct hx_http1_head *head, size_t index);

/*
 * Derive the meaning of a whole head: body, keep_alive, expects_continue, authority. False: the
 * fault says why.
 */
bool hx_http1_understand_request(struct hx_http1_head *head, struct hx_http1_fault *fault);
bool hx_http1_understand_response(
	struct hx_http1_head *head, bool answers_head, struct hx_http1_fault *fault);

/* The states of a body in chunks; the order has no meaning. */
void hx_http1_chunks_begin(struct hx_http1 *http);

/*
 * Read chunks from the front of input, as far as one piece of data. READ: ret is DATA or
 * END. SHORT: all of input was used. BAD: fault.
 */
enum hx_http1_line hx_http1_chunks_next(
	struct hx_http1 *http, struct hapax_bytes input, struct hx_http1_event *ret,
	struct hx_http1_fault *fault);

#endif
