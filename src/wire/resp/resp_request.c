/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_request.c - read requests of Redis clients.
 *
 * Stricter than Redis in one thing: where CR LF is due, anything else is an error,
 * while Redis passes over two bytes whatever they are.
 */
#include "wire/resp/resp_request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"

enum {
	ARGS_DEFAULT = 65536,
	ARGS_FIRST = 16,
	BULK_SIZE_DEFAULT = 1024 * 1024,
	UNAUTHENTICATED_ARGS_MAX = 10,
	UNAUTHENTICATED_BULK_MAX = 16384,
};

void hx_resp_request_init(struct hx_resp_request *request)
{
	memset(request, 0, sizeof(*request));
	hx_buf_init(&request->copy, HX_RESP_LINE_SIZE_MAX);
}

void hx_resp_request_done(struct hx_resp_request *request)
{
	hx_free(request->args);
	hx_buf_done(&request->copy);
	hx_resp_request_init(request);
}

void hx_resp_request_next(struct hx_resp_request *request)
{
	request->count = 0;
	request->at = 0;
	request->expected = 0;
	request->has_begun = false;
	request->is_copied = false;
	hx_buf_clear(&request->copy);
}

static enum hx_resp_result resp_request_refuse(struct hx_resp_request *request, const char *text)
{
	(void)snprintf(request->error, sizeof(request->error), "Protocol error: %s", text);
	return HX_RESP_BAD;
}

static enum hx_resp_result add_arg(struct hx_resp_request *request, size_t offset, size_t size)
{
	if (request->count == request->capacity) {
		size_t capacity = request->capacity == 0 ? ARGS_FIRST : 2 * request->capacity;
		struct hx_resp_arg *args =
			hx_realloc(request->args, capacity * sizeof(*request->args));

		if (args == NULL) {
			(void)snprintf(request->error, sizeof(request->error), "not enough memory");
			return HX_RESP_BAD;
		}
		request->args = args;
		request->capacity = capacity;
	}
	request->args[request->count++] = (struct hx_resp_arg){offset, size};
	return HX_RESP_DONE;
}

/*
 * A number of one or two digits behind the type byte at data, as almost all are: how many
 * digits it has. 0: it is another one, or none, or has not come yet.
 */
static inline size_t read_short_number(const char *data, size_t size, int64_t *ret_number)
{
	if (size < 5 || data[1] < '0' || data[1] > '9')
		return 0;
	*ret_number = data[1] - '0';
	if (data[2] == '\r' && data[3] == '\n')
		return 1;
	if (data[1] == '0' || data[2] < '0' || data[2] > '9' || data[3] != '\r' || data[4] != '\n')
		return 0;
	*ret_number = *ret_number * 10 + (data[2] - '0');
	return 2;
}

/*
 * The number on the line at request->at, behind its type byte. Only a number may
 * stand there, so that a line is never longer than one.
 */
static enum hx_resp_result read_number(
	struct hx_resp_request *request, struct hapax_bytes input, const char *too_big,
	const char *invalid, int64_t *ret_number)
{
	const char *data = input.data;
	size_t begin = request->at + 1;
	size_t size = read_short_number(data + request->at, input.size - request->at, ret_number);
	const char *end;

	if (size != 0) {
		request->at = begin + size + 2;
		return HX_RESP_DONE;
	}
	end = begin < input.size ? memchr(data + begin, '\r', input.size - begin) : NULL;
	size = end == NULL ? input.size - begin : (size_t)(end - data) - begin;
	if (size > HX_RESP_LINE_SIZE_MAX)
		return resp_request_refuse(request, too_big);
	if (end == NULL || (size_t)(end - data) + 1 == input.size)
		return HX_RESP_MORE;
	if (end[1] != '\n' || !hx_resp_parse_integer(hx_bytes(data + begin, size), ret_number))
		return resp_request_refuse(request, invalid);
	request->at = begin + size + 2;
	return HX_RESP_DONE;
}

static enum hx_resp_result read_count(
	struct hx_resp_request *request, struct hapax_bytes input,
	const struct hx_resp_limits *limits)
{
	size_t args_max = limits->args_max == 0 ? ARGS_DEFAULT : limits->args_max;
	int64_t count = 0;
	enum hx_resp_result result = read_number(
		request, input, "too big mbulk count string", "invalid multibulk length", &count);

	if (result != HX_RESP_DONE)
		return result;
	if (args_max > HX_RESP_ARGS_MAX)
		args_max = HX_RESP_ARGS_MAX;
	if (count > (int64_t)args_max)
		return resp_request_refuse(request, "invalid multibulk length");
	if (limits->is_unauthenticated && count > UNAUTHENTICATED_ARGS_MAX)
		return resp_request_refuse(request, "unauthenticated multibulk length");
	request->expected = count < 0 ? 0 : (size_t)count;
	return HX_RESP_DONE;
}

static enum hx_resp_result read_bulk(
	struct hx_resp_request *request, struct hapax_bytes input,
	const struct hx_resp_limits *limits)
{
	const char *data = input.data;
	size_t before = request->at;
	size_t size_max = limits->bulk_size_max == 0 ? BULK_SIZE_DEFAULT : limits->bulk_size_max;
	int64_t size = 0;
	enum hx_resp_result result;

	if (before >= input.size)
		return HX_RESP_MORE;
	if (data[before] != '$') {
		char text[32];

		(void)snprintf(text, sizeof(text), "expected '$', got '%c'", data[before]);
		return resp_request_refuse(request, text);
	}
	result = read_number(
		request, input, "too big bulk count string", "invalid bulk length", &size);
	if (result != HX_RESP_DONE)
		return result;
	if (size < 0 || (uint64_t)size > size_max)
		return resp_request_refuse(request, "invalid bulk length");
	if (limits->is_unauthenticated && size > UNAUTHENTICATED_BULK_MAX)
		return resp_request_refuse(request, "unauthenticated bulk length");
	if (input.size - request->at < (size_t)size + 2) {
		/* Read the number again with the rest: it is a few bytes. */
		request->at = before;
		return HX_RESP_MORE;
	}
	if (memcmp(data + request->at + size, "\r\n", 2) != 0)
		return resp_request_refuse(request, "invalid bulk length");
	result = add_arg(request, request->at, (size_t)size);
	request->at += (size_t)size + 2;
	return result;
}

/*
 * As many arguments as are short and have come, which most are and have: a few instructions
 * each. Whatever else stands there is left to read_bulk().
 */
static void read_short_bulks(
	struct hx_resp_request *request, struct hapax_bytes input,
	const struct hx_resp_limits *limits)
{
	const char *data = input.data;
	int64_t size_max =
		limits->bulk_size_max == 0 ? BULK_SIZE_DEFAULT : (int64_t)limits->bulk_size_max;
	size_t count_max =
		request->expected < request->capacity ? request->expected : request->capacity;
	size_t count = request->count;
	size_t at = request->at;

	while (count < count_max && at < input.size && data[at] == '$') {
		int64_t size;
		size_t digits = read_short_number(data + at, input.size - at, &size);
		size_t begin = at + 1 + digits + 2;

		if (digits == 0 || size > size_max || input.size - begin < (size_t)size + 2 ||
		    data[begin + (size_t)size] != '\r' || data[begin + (size_t)size + 1] != '\n')
			break;
		request->args[count++] = (struct hx_resp_arg){begin, (size_t)size};
		at = begin + (size_t)size + 2;
	}
	request->count = count;
	request->at = at;
}

static enum hx_resp_result read_array(
	struct hx_resp_request *request, struct hapax_bytes input,
	const struct hx_resp_limits *limits, size_t *ret_size)
{
	enum hx_resp_result result = HX_RESP_DONE;

	if (!request->has_begun) {
		result = read_count(request, input, limits);
		request->has_begun = result == HX_RESP_DONE;
	}
	while (result == HX_RESP_DONE && request->count < request->expected) {
		read_short_bulks(request, input, limits);
		if (request->count < request->expected)
			result = read_bulk(request, input, limits);
	}
	if (result == HX_RESP_DONE)
		*ret_size = request->at;
	return result;
}

/* ---------------------------------------------------------------- inline */

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

static unsigned char unescape(char letter)
{
	switch (letter) {
	case 'n': return '\n';
	case 'r': return '\r';
	case 't': return '\t';
	case 'b': return '\b';
	case 'a': return '\a';
	default: return (unsigned char)letter;
	}
}

static bool is_blank(char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* From behind an opening quote to behind the closing one; NULL: there is none. */
static const char *copy_quoted(
	struct hx_resp_request *request, const char *at, const char *end, char quote)
{
	for (; at < end && *at != quote; at++) {
		unsigned char byte = (unsigned char)*at;

		if (quote == '"' && *at == '\\' && end - at >= 4 && at[1] == 'x' &&
		    hex_value(at[2]) >= 0 && hex_value(at[3]) >= 0) {
			byte = (unsigned char)(hex_value(at[2]) * 16 + hex_value(at[3]));
			at += 3;
		} else if (quote == '"' && *at == '\\' && end - at >= 2) {
			byte = unescape(*++at);
		} else if (quote == '\'' && *at == '\\' && end - at >= 2 && at[1] == '\'') {
			byte = (unsigned char)*++at;
		}
		(void)hx_buf_append_byte(&request->copy, byte);
	}
	/* Behind a closing quote only a blank, or the end. */
	if (at >= end || (at + 1 < end && !is_blank(at[1])))
		return NULL;
	return at + 1;
}

static enum hx_resp_result split_line(
	struct hx_resp_request *request, const char *at, const char *end)
{
	/* Unescaping never makes it longer, so all that is appended below has its room. */
	if (hx_buf_reserve(&request->copy, (size_t)(end - at)) != HAPAX_OK) {
		(void)snprintf(request->error, sizeof(request->error), "not enough memory");
		return HX_RESP_BAD;
	}
	request->is_copied = true;
	for (;;) {
		size_t begin = request->copy.size;
		enum hx_resp_result result;

		while (at < end && is_blank(*at))
			at++;
		if (at == end)
			return HX_RESP_DONE;
		while (at < end && !is_blank(*at)) {
			if (*at == '"' || *at == '\'') {
				at = copy_quoted(request, at + 1, end, *at);
				if (at == NULL)
					return resp_request_refuse(
						request, "unbalanced quotes in request");
				break;
			}
			(void)hx_buf_append_byte(&request->copy, (unsigned char)*at++);
		}
		result = add_arg(request, begin, request->copy.size - begin);
		if (result != HX_RESP_DONE)
			return result;
	}
}

static enum hx_resp_result read_inline(
	struct hx_resp_request *request, struct hapax_bytes input, size_t *ret_size)
{
	const char *data = input.data;
	const char *end = memchr(data + request->at, '\n', input.size - request->at);
	size_t size = end == NULL ? input.size : (size_t)(end - data);
	const char *nul = memchr(data + request->at, '\0', size - request->at);
	enum hx_resp_result result;

	/* To Redis a line with a NUL has no end; no legitimate client sends one. */
	if (end == NULL || nul != NULL) {
		if (input.size > HX_RESP_LINE_SIZE_MAX)
			return resp_request_refuse(request, "too big inline request");
		request->at = nul == NULL ? input.size : (size_t)(nul - data);
		return HX_RESP_MORE;
	}
	*ret_size = size + 1;
	if (size > HX_RESP_LINE_SIZE_MAX)
		return resp_request_refuse(request, "too big inline request");
	if (size > 0 && data[size - 1] == '\r')
		size--;
	result = split_line(request, data, data + size);
	if (result == HX_RESP_BAD)
		request->count = 0;
	return result;
}

enum hx_resp_result hx_resp_request_read(
	struct hx_resp_request *request, struct hapax_bytes input,
	const struct hx_resp_limits *limits, size_t *ret_size)
{
	assert(request->at <= input.size);
	if (input.size == 0)
		return HX_RESP_MORE;
	if (*(const char *)input.data == '*')
		return read_array(request, input, limits, ret_size);
	return read_inline(request, input, ret_size);
}
