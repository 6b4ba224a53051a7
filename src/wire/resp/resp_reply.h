/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_reply.h - parse replies of a Redis server: RESP2 and RESP3 values.
 *
 * There are two steps. struct hx_resp_scan finds the end of a message that arrives in pieces. It
 * reads each byte once and limits depth and size. hx_resp_next() then walks through a complete
 * message.
 *
 * Threads: any; a scan one at a time.
 */
#ifndef HX_WIRE_RESP_RESP_REPLY_H
#define HX_WIRE_RESP_RESP_REPLY_H

#include "wire/resp/resp.h"

enum { HX_RESP_DEPTH_MAX = 16 };

/* One value, or the head of one that contains others. */
struct hx_resp_value {
	enum hx_resp_type type;
	/* INTEGER; BOOLEAN 0 or 1; number of values that follow, where a pair counts as two */
	int64_t integer;
	struct hapax_bytes text; /* strings, errors, DOUBLE and BIG_NUMBER as digits */
};

/* The state of a scan. Zero it for each message; bytes before size are not read again. */
struct hx_resp_scan {
	size_t size; /* bytes of the message so far; when DONE, all of them */
	unsigned depth;
	uint64_t left[HX_RESP_DEPTH_MAX]; /* values to come, at each depth */
	const char *why;                  /* BAD: what is wrong */
};

/*
 * input begins with the message and contains at least the bytes of the previous call. BAD also if
 * the message has, or announces, more than size_max bytes.
 */
enum hx_resp_result hx_resp_scan(
	struct hx_resp_scan *scan, struct hapax_bytes input, size_t size_max);

/*
 * The first value of *rest, which begins with a complete message. *rest moves past the value, or
 * into it if it contains others. False at the end. Attributes are skipped.
 */
bool hx_resp_next(struct hapax_bytes *rest, struct hx_resp_value *ret_value);

/* Skip the content of value, which hx_resp_next() has just returned. */
void hx_resp_skip(struct hapax_bytes *rest, const struct hx_resp_value *value);

/* Is it an ERROR or BULK_ERROR with this code, such as "NOSCRIPT"? */
bool hx_resp_is_error(const struct hx_resp_value *value, const char *code);

/* The text of BULK, SIMPLE or VERBATIM (without its "txt:"); false for anything else. */
bool hx_resp_text(const struct hx_resp_value *value, struct hapax_bytes *ret_text);

/* An INTEGER, or text that is one. */
bool hx_resp_integer(const struct hx_resp_value *value, int64_t *ret_integer);

/* The same of the next value. */
bool hx_resp_next_text(struct hapax_bytes *rest, struct hapax_bytes *ret_text);
bool hx_resp_next_integer(struct hapax_bytes *rest, int64_t *ret_integer);

#endif
