/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp.h - the Redis protocol, RESP2 and RESP3: values, and writing them.
 *
 * Replies and other messages are values, which may hold values. resp_reply.h reads
 * them, resp_request.h reads what clients send. Nothing is copied: what is read lies
 * in the caller's bytes.
 *
 * Writers append to a buffer, as a whole or not at all: LIMIT or NO_MEMORY leaves it
 * as it was. protocol is 2 or 3; a type that RESP2 lacks is written as what clients
 * of RESP2 expect in its place.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef HX_WIRE_RESP_RESP_H
#define HX_WIRE_RESP_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/buf.h"

/* The byte that a value begins with; what RESP2 says with a length of -1 is NULL too. */
enum hx_resp_type {
	HX_RESP_SIMPLE = '+',
	HX_RESP_ERROR = '-',
	HX_RESP_INTEGER = ':',
	HX_RESP_BULK = '$',
	HX_RESP_ARRAY = '*',
	HX_RESP_NULL = '_',
	HX_RESP_BOOLEAN = '#',
	HX_RESP_DOUBLE = ',',
	HX_RESP_BIG_NUMBER = '(',
	HX_RESP_BULK_ERROR = '!',
	HX_RESP_VERBATIM = '=',
	HX_RESP_MAP = '%',
	HX_RESP_SET = '~',
	HX_RESP_ATTRIBUTE = '|',
	HX_RESP_PUSH = '>',
};

/* How reading went. */
enum hx_resp_result {
	HX_RESP_DONE,
	HX_RESP_MORE, /* the bytes end before the message does */
	HX_RESP_BAD,  /* not the start of a message: the connection is unusable */
};

enum {
	HX_RESP_LINE_SIZE_MAX = 64 * 1024, /* of a simple string, or an inline request: as Redis */
	HX_RESP_NUMBER_SIZE_MAX = 24,      /* of a length or an integer, with its sign */
};

enum hapax_status hx_resp_put_simple(struct hapax_buf *buf, const char *text);

/* text begins with its code, as in "ERR no such key". Line ends in it become blanks. */
enum hapax_status hx_resp_put_error(struct hapax_buf *buf, const char *text);

enum hapax_status hx_resp_put_integer(struct hapax_buf *buf, int64_t value);
enum hapax_status hx_resp_put_bulk(struct hapax_buf *buf, struct hapax_bytes bytes);
enum hapax_status hx_resp_put_text(struct hapax_buf *buf, const char *text);

/* A bulk string that holds a number, as requests carry it. */
enum hapax_status hx_resp_put_bulk_integer(struct hapax_buf *buf, int64_t value);

/* Then come count values. */
enum hapax_status hx_resp_put_array(struct hapax_buf *buf, size_t count);

/*
 * A request: an array of bulk strings. The first failure stays in status, and nothing is written
 * after it; a part of the request is then in buf.
 *
 *	hx_resp_words_begin(&command, buf, 2);
 *	hx_resp_word_text(&command, "GET");
 *	hx_resp_word(&command, key);
 *	return command.status;
 */
struct hx_resp_words {
	struct hapax_buf *buf;
	enum hapax_status status;
};

static inline void hx_resp_words_begin(
	struct hx_resp_words *command, struct hapax_buf *buf, size_t count)
{
	*command = (struct hx_resp_words){buf, hx_resp_put_array(buf, count)};
}

static inline void hx_resp_word(struct hx_resp_words *command, struct hapax_bytes bytes)
{
	if (command->status == HAPAX_OK)
		command->status = hx_resp_put_bulk(command->buf, bytes);
}

static inline void hx_resp_word_text(struct hx_resp_words *command, const char *text)
{
	if (command->status == HAPAX_OK)
		command->status = hx_resp_put_text(command->buf, text);
}

static inline void hx_resp_word_integer(struct hx_resp_words *command, int64_t value)
{
	if (command->status == HAPAX_OK)
		command->status = hx_resp_put_bulk_integer(command->buf, value);
}

enum hapax_status hx_resp_put_null(struct hapax_buf *buf, int protocol);

/* "txt" text for people; RESP2 gets a bulk string. */
enum hapax_status hx_resp_put_verbatim(
	struct hapax_buf *buf, struct hapax_bytes text, int protocol);

/* Then come count values; a map's are count pairs. */
enum hapax_status hx_resp_put_map(struct hapax_buf *buf, size_t count, int protocol);
enum hapax_status hx_resp_put_set(struct hapax_buf *buf, size_t count, int protocol);

/*
 * A whole number in decimal digits, as Redis reads them: no blank, no plus, no
 * leading zero, no "-0". False: it is something else, or does not fit.
 */
bool hx_resp_parse_integer(struct hapax_bytes text, int64_t *ret_value);

#endif
