/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_chunk.c - parse a chunked body (RFC 9112 7.1), byte by byte except the data.
 *
 *	SIZE ─► (EXTENSION…) ─► SIZE_LF ─► DATA ─► DATA_CR ─► DATA_LF ─► SIZE …
 *	                           └ size 0 ─► TRAILER … ─► LAST_LF ─► end
 *
 * An extension is ";name", ";name=token" or ";name=\"text\"", without blanks. Extensions
 * and trailers are checked and dropped: a trailer that is merged into the head could add a second
 * Content-Length or another key.
 */
#include "wire/http1/http1_parse.h"

#include "wire/http1/http1_text.h"

enum hx_http1_chunk_state {
	CHUNK_SIZE,
	CHUNK_EXTENSION_BEGIN,
	CHUNK_EXTENSION_NAME,
	CHUNK_EXTENSION_EQUALS,
	CHUNK_EXTENSION_TOKEN,
	CHUNK_EXTENSION_TEXT,
	CHUNK_EXTENSION_ESCAPE,
	CHUNK_EXTENSION_TEXT_END,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER_BEGIN,
	CHUNK_TRAILER_NAME,
	CHUNK_TRAILER_VALUE,
	CHUNK_TRAILER_LF,
	CHUNK_LAST_LF,
	CHUNK_END,
};

static void begin_chunk(struct hx_http1 *http)
{
	http->chunk_state = CHUNK_SIZE;
	http->left = 0;
	http->digits = 0;
	http->framing = 0;
}

void hx_http1_chunks_begin(struct hx_http1 *http)
{
	begin_chunk(http);
	http->extensions = 0;
	http->field_count = 0;
}

/* NULL: the byte is valid. */
static const char *step_size(struct hx_http1 *http, unsigned char byte)
{
	int digit = hx_http1_hex(byte);

	if (digit >= 0) {
		if (http->digits == HX_HTTP1_CHUNK_DIGITS_MAX)
			return "a chunk size has more than 15 digits";
		http->digits++;
		http->left = http->left << 4 | (uint64_t)digit;
		return NULL;
	}
	if (http->digits == 0)
		return "a chunk size is missing";
	if (byte != '\r' && byte != ';')
		return "not allowed in a chunk size";
	http->chunk_state = byte == ';' ? CHUNK_EXTENSION_BEGIN : CHUNK_SIZE_LF;
	return NULL;
}

/* The state after a name or a value. -1: the byte is not allowed there. */
static int after_extension(unsigned char byte)
{
	if (byte == '\r')
		return CHUNK_SIZE_LF;
	return byte == ';' ? CHUNK_EXTENSION_BEGIN : -1;
}

static const char *step_extension(struct hx_http1 *http, unsigned char byte)
{
	bool token = hx_http1_is(byte, HX_HTTP1_TOKEN);
	int next = -1;

	if (++http->framing > HX_HTTP1_CHUNK_EXTENSION_MAX ||
	    ++http->extensions > HX_HTTP1_EXTENSIONS_MAX)
		return "the chunk extensions are too long";
	switch (http->chunk_state) {
	case CHUNK_EXTENSION_BEGIN: next = token ? CHUNK_EXTENSION_NAME : -1; break;
	case CHUNK_EXTENSION_NAME:
		next = token ? CHUNK_EXTENSION_NAME : after_extension(byte);
		if (byte == '=')
			next = CHUNK_EXTENSION_EQUALS;
		break;
	case CHUNK_EXTENSION_EQUALS:
		next = byte == '"' ? CHUNK_EXTENSION_TEXT : token ? CHUNK_EXTENSION_TOKEN : -1;
		break;
	case CHUNK_EXTENSION_TOKEN:
		next = token ? CHUNK_EXTENSION_TOKEN : after_extension(byte);
		break;
	case CHUNK_EXTENSION_TEXT:
		if (hx_http1_is(byte, HX_HTTP1_VALUE))
			next = CHUNK_EXTENSION_TEXT;
		if (byte == '"')
			next = CHUNK_EXTENSION_TEXT_END;
		if (byte == '\\')
			next = CHUNK_EXTENSION_ESCAPE;
		break;
	case CHUNK_EXTENSION_ESCAPE:
		next = hx_http1_is(byte, HX_HTTP1_VALUE) ? CHUNK_EXTENSION_TEXT : -1;
		break;
	default: next = after_extension(byte); break; /* CHUNK_EXTENSION_TEXT_END */
	}
	if (next < 0)
		return "not allowed in a chunk extension";
	http->chunk_state = (uint8_t)next;
	return NULL;
}

/* Limits have their own status; any other error means a malformed message. */
static const char *limit(struct hx_http1 *http, const char *reason)
{
	http->fault = 431;
	return reason;
}

static const char *step_trailer(struct hx_http1 *http, unsigned char byte)
{
	if (++http->framing > http->limits.head_max)
		return limit(http, "the trailers are too long");
	switch (http->chunk_state) {
	case CHUNK_TRAILER_BEGIN:
		if (byte == '\r') {
			http->chunk_state = CHUNK_LAST_LF;
			return NULL;
		}
		if (!hx_http1_is(byte, HX_HTTP1_TOKEN))
			return hx_http1_is_blank(byte)
				? "a trailer must not continue on a second line"
				: "not allowed in the name of a trailer";
		if (http->field_count == http->limits.field_max)
			return limit(http, "too many trailers");
		http->field_count++;
		http->chunk_state = CHUNK_TRAILER_NAME;
		return NULL;
	case CHUNK_TRAILER_NAME:
		if (byte == ':')
			http->chunk_state = CHUNK_TRAILER_VALUE;
		else if (!hx_http1_is(byte, HX_HTTP1_TOKEN))
			return "not allowed in the name of a trailer";
		return NULL;
	default: /* CHUNK_TRAILER_VALUE */
		if (byte == '\r')
			http->chunk_state = CHUNK_TRAILER_LF;
		else if (!hx_http1_is(byte, HX_HTTP1_VALUE))
			return "not allowed in a trailer";
		return NULL;
	}
}

static const char *step_line_feed(struct hx_http1 *http, unsigned char byte)
{
	if (byte != '\n')
		return "CR without LF after it";
	switch (http->chunk_state) {
	case CHUNK_SIZE_LF:
		http->chunk_state = http->left > 0 ? CHUNK_DATA : CHUNK_TRAILER_BEGIN;
		http->framing = 0;
		break;
	case CHUNK_DATA_LF: begin_chunk(http); break;
	case CHUNK_TRAILER_LF: http->chunk_state = CHUNK_TRAILER_BEGIN; break;
	default: http->chunk_state = CHUNK_END; break; /* CHUNK_LAST_LF */
	}
	return NULL;
}

static const char *step(struct hx_http1 *http, unsigned char byte)
{
	switch (http->chunk_state) {
	case CHUNK_SIZE: return step_size(http, byte);
	case CHUNK_DATA_CR:
		http->chunk_state = CHUNK_DATA_LF;
		return byte == '\r' ? NULL : "the chunk should end here";
	case CHUNK_SIZE_LF:
	case CHUNK_DATA_LF:
	case CHUNK_TRAILER_LF:
	case CHUNK_LAST_LF: return step_line_feed(http, byte);
	case CHUNK_TRAILER_BEGIN:
	case CHUNK_TRAILER_NAME:
	case CHUNK_TRAILER_VALUE: return step_trailer(http, byte);
	default: return step_extension(http, byte);
	}
}

static size_t take_data(struct hx_http1 *http, size_t size)
{
	if (size > http->left)
		size = (size_t)http->left;
	http->left -= size;
	if (http->left == 0)
		http->chunk_state = CHUNK_DATA_CR;
	return size;
}

enum hx_http1_line hx_http1_chunks_next(
	struct hx_http1 *http, struct hapax_bytes input, struct hx_http1_event *ret,
	struct hx_http1_fault *fault)
{
	const unsigned char *begin = input.data;
	const unsigned char *end = begin + input.size;
	const unsigned char *at = begin;

	while (at < end) {
		const char *reason;
		size_t size;

		if (http->chunk_state == CHUNK_DATA) {
			size = take_data(http, (size_t)(end - at));
			*ret = (struct hx_http1_event){
				HX_HTTP1_DATA, (size_t)(at - begin) + size, {at, size}};
			return HX_HTTP1_LINE_READ;
		}
		reason = step(http, *at);
		if (reason != NULL)
			return hx_http1_bad(
				fault, http->fault != 0 ? http->fault : 400, at, reason);
		at++;
		if (http->chunk_state == CHUNK_END) {
			*ret = (struct hx_http1_event){
				HX_HTTP1_END, (size_t)(at - begin), {NULL, 0}};
			return HX_HTTP1_LINE_READ;
		}
		if (http->chunk_state == CHUNK_DATA) {
			http->body_size += http->left;
			if (http->body_size > http->limits.body_max)
				return hx_http1_bad(
					fault, 413, at, "the body is larger than the limit");
		}
	}
	*ret = (struct hx_http1_event){HX_HTTP1_MORE, input.size, {NULL, 0}};
	return HX_HTTP1_LINE_SHORT;
}
