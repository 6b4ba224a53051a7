/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_write.h - heads and chunks as bytes.
 *
 * A head is written line by line into a buffer of the caller's. The first failure is remembered, so
 * that callers check only the end; then nothing of the head remains in the buffer. The writer
 * refuses everything that would break the framing: a name that is not a token, a CR, LF or NUL in a
 * value, two lengths, or Content-Length, Transfer-Encoding or Connection by any except their own
 * functions.
 *
 *	struct hx_http1_writer writer;
 *
 *	hx_http1_write_response(&writer, out, 200);
 *	hx_http1_write_field(&writer, HX_BYTES_LIT("Content-Type"), type);
 *	hx_http1_write_length(&writer, body.size);
 *	status = hx_http1_write_end(&writer, &err);
 *
 * Threads: one at a time.
 */
#ifndef HX_HTTP1_WRITE_H
#define HX_HTTP1_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>
#include <hapax/key.h>

enum {
	/* "Sun, 06 Nov 1994 08:49:37 GMT" */
	HX_HTTP1_DATE_SIZE = 29,

	/* The size in hexadecimal, CR LF, and the CR LF of the chunk before. */
	HX_HTTP1_CHUNK_HEAD_MAX = 20,
};

/* Private. */
struct hx_http1_writer {
	struct hapax_buf *out;
	size_t begin; /* where this head begins in out */
	enum hapax_status status;
	const char *reason; /* of the first failure */
	char name[32];      /* of the field that failed, cut */
	bool has_framing;
};

/* "POST /path HTTP/1.1". The target must have been read, or be made of URI characters. */
void hx_http1_write_request(
	struct hx_http1_writer *writer, struct hapax_buf *out, struct hapax_bytes method,
	struct hapax_bytes target);

/* "HTTP/1.1 200 OK"; status from 100 to 599. */
void hx_http1_write_response(
	struct hx_http1_writer *writer, struct hapax_buf *out, unsigned status);

void hx_http1_write_field(
	struct hx_http1_writer *writer, struct hapax_bytes name, struct hapax_bytes value);

/* Could such a field be written? Its form must be valid, and it must not affect framing. */
bool hx_http1_is_field(struct hapax_bytes name, struct hapax_bytes value);

/* A field of a head that was read, unchanged: the reader has checked its form. */
void hx_http1_write_read_field(struct hx_http1_writer *writer, const struct hapax_field *field);

/* A field whose value is a number, in decimal digits. */
void hx_http1_write_number(
	struct hx_http1_writer *writer, struct hapax_bytes name, uint64_t number);

/* Content-Length, Transfer-Encoding: chunked; one of them at most. */
void hx_http1_write_length(struct hx_http1_writer *writer, uint64_t size);
void hx_http1_write_chunked(struct hx_http1_writer *writer);

/* Connection: close. Without it the connection is kept, as in HTTP/1.1. */
void hx_http1_write_close(struct hx_http1_writer *writer);

/*
 * The empty line. INVALID: something could not be written; err names it. LIMIT or NO_MEMORY: out is
 * full. out is then unchanged.
 */
enum hapax_status hx_http1_write_end(struct hx_http1_writer *writer, struct hapax_error *err);

/*
 * The bytes before the data of a chunk, to be sent with writev(2) or appended. size 0
 * ends the body. first: no chunk was sent before. Returns how many there are.
 */
size_t hx_http1_chunk_head(uint64_t size, bool first, char out[HX_HTTP1_CHUNK_HEAD_MAX]);

/* "HTTP/1.1 100 Continue" and an empty line. */
struct hapax_bytes hx_http1_continue(void);

/* "Not Found"; never NULL. */
const char *hx_http1_reason(unsigned status);

/* For the field Date. ms since 1970, of a year from 1970 to 9999. */
void hx_http1_date(int64_t ms, char out[HX_HTTP1_DATE_SIZE]);

#endif
