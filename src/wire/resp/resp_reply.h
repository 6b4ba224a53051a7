/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_reply.h - reading what a server sends: RESP2 and RESP3 values.
 *
 * Two steps. struct hx_resp_scan finds the end of a message in bytes that arrive in
 * pieces, looking at each byte once, with bounds on depth and size. hx_resp_next()
 * then walks through a message that is known to be whole.
 *
 * Threads: any; a scan one at a time.
 */
#ifndef HX_WIRE_RESP_RESP_REPLY_H
#define HX_WIRE_RESP_RESP_REPLY_H

#include "wire/resp/resp.h"

enum { HX_RESP_DEPTH_MAX = 16 };

/* One value, or the head of one that holds others. */
struct hx_resp_value {
	enum hx_resp_type type;
	int64_t integer; /* INTEGER; BOOLEAN 0 or 1; how many values follow, a pair being two */
	struct hapax_bytes text; /* strings, errors, DOUBLE and BIG_NUMBER as digits */
};

/* Where a scan stands. Zero it for each message; the bytes before size are not looked at again. */
struct hx_resp_scan {
	size_t size; /* of the message so far; of all of it when DONE */
	unsigned depth;
	uint64_t left[HX_RESP_DEPTH_MAX]; /* values to come, at each depth */
	const char *why;                  /* BAD: what is wrong */
};

/*
 * input begins with the message and holds at least what it held at the call before.
 * BAD also when the message has, or announces, more than size_max bytes.
 */
enum hx_resp_result hx_resp_scan(
	struct hx_resp_scan *scan, struct hapax_bytes input, size_t size_max);

/*
 * The first value of *rest, which begins with a whole message; *rest moves behind it,
 * or into it if it holds others. False at the end. Attributes are passed over.
 */
bool hx_resp_next(struct hapax_bytes *rest, struct hx_resp_value *ret_value);

/* Pass over what value, just returned by hx_resp_next(), holds. */
void hx_resp_skip(struct hapax_bytes *rest, const struct hx_resp_value *value);

/* An ERROR or BULK_ERROR with this code, such as "NOSCRIPT". */
bool hx_resp_is_error(const struct hx_resp_value *value, const char *code);

/* The text of BULK, SIMPLE or VERBATIM (without its "txt:"); false for anything else. */
bool hx_resp_text(const struct hx_resp_value *value, struct hapax_bytes *ret_text);

/* An INTEGER, or text that is one. */
bool hx_resp_integer(const struct hx_resp_value *value, int64_t *ret_integer);

#endif
