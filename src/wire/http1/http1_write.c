/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_write.c - heads and chunks as bytes.
 */
#include "wire/http1/http1_write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/calendar.h"
#include "base/error.h"
#include "base/utf8.h"
#include "wire/http1/http1_text.h"

static void fail(
	struct hx_http1_writer *writer, enum hapax_status status, struct hapax_bytes name,
	const char *reason)
{
	size_t size = name.size < sizeof(writer->name) - 1 ? name.size : sizeof(writer->name) - 1;

	if (writer->status != HAPAX_OK)
		return;
	writer->status = status;
	writer->reason = reason;
	if (size > 0)
		memcpy(writer->name, name.data, size);
	writer->name[size] = '\0';
}

/* Parts of one line, with its end; one reservation for all of them. */
static void write_parts(
	struct hx_http1_writer *writer, const struct hapax_bytes *parts, size_t count)
{
	size_t size = 2;
	enum hapax_status status;
	unsigned char *to;

	if (writer->status != HAPAX_OK)
		return;
	for (size_t i = 0; i < count; i++)
		size += parts[i].size;
	status = hx_buf_reserve(writer->out, size);
	if (status != HAPAX_OK) {
		fail(writer, status, parts[0], "not enough space");
		return;
	}
	to = writer->out->data + writer->out->size;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].size > 0)
			memcpy(to, parts[i].data, parts[i].size);
		to += parts[i].size;
	}
	memcpy(to, "\r\n", 2);
	writer->out->size += size;
}

static void write_line(
	struct hx_http1_writer *writer, struct hapax_bytes name, struct hapax_bytes value)
{
	size_t size = name.size + value.size + 4;
	enum hapax_status status;
	unsigned char *to;

	if (writer->status != HAPAX_OK)
		return;
	status = hx_buf_reserve(writer->out, size);
	if (status != HAPAX_OK) {
		fail(writer, status, name, "not enough space");
		return;
	}
	to = writer->out->data + writer->out->size;
	memcpy(to, name.data, name.size);
	to += name.size;
	memcpy(to, ": ", 2);
	to += 2;
	if (value.size > 0)
		memcpy(to, value.data, value.size);
	to += value.size;
	memcpy(to, "\r\n", 2);
	writer->out->size += size;
}

static void begin(struct hx_http1_writer *writer, struct hapax_buf *out)
{
	*writer = (struct hx_http1_writer){.out = out, .begin = out->size, .status = HAPAX_OK};
}

static bool is_target(struct hapax_bytes target)
{
	const unsigned char *at = target.data;

	for (size_t i = 0; i < target.size; i++) {
		if (!hx_http1_is(at[i], HX_HTTP1_TARGET))
			return false;
	}
	return target.size > 0;
}

void hx_http1_write_request(
	struct hx_http1_writer *writer, struct hapax_buf *out, struct hapax_bytes method,
	struct hapax_bytes target)
{
	const struct hapax_bytes parts[] = {
		method, HX_BYTES_LIT(" "), target, HX_BYTES_LIT(" HTTP/1.1")};

	begin(writer, out);
	if (!hx_http1_is_token(method))
		fail(writer, HAPAX_ERR_INVALID, HX_BYTES_LIT("method"), "it is not a token");
	if (!is_target(target))
		fail(writer, HAPAX_ERR_INVALID, HX_BYTES_LIT("target"), "it is not a valid target");
	write_parts(writer, parts, 4);
}

void hx_http1_write_response(struct hx_http1_writer *writer, struct hapax_buf *out, unsigned status)
{
	const char *reason = hx_http1_reason(status);
	char digits[3] = {
		(char)('0' + status / 100 % 10), (char)('0' + status / 10 % 10),
		(char)('0' + status % 10)};
	const struct hapax_bytes parts[] = {
		HX_BYTES_LIT("HTTP/1.1 "), hx_bytes(digits, 3), HX_BYTES_LIT(" "),
		hx_bytes(reason, strlen(reason))};

	begin(writer, out);
	if (status < 100 || status > 599)
		fail(writer, HAPAX_ERR_INVALID, HX_BYTES_LIT("status"), "it is not a valid status");
	write_parts(writer, parts, 4);
}

/* Is it a field of this connection, or one that defines the end of a message? */
static bool is_reserved(struct hapax_bytes name)
{
	return hx_http1_text_equal(name, HX_BYTES_LIT("content-length")) ||
		hx_http1_text_equal(name, HX_BYTES_LIT("transfer-encoding")) ||
		hx_http1_text_equal(name, HX_BYTES_LIT("connection"));
}

static bool is_value(struct hapax_bytes value)
{
	const unsigned char *at = value.data;
	const unsigned char *end;

	if (value.size == 0)
		return true;
	end = at + value.size;
	while (end - at >= 8 && hx_ascii_is_printable8(at))
		at += 8;
	return hx_http1_skip_value(at, end) == end;
}

bool hx_http1_is_field(struct hapax_bytes name, struct hapax_bytes value)
{
	return hx_http1_is_token(name) && !is_reserved(name) && is_value(value);
}

void hx_http1_write_field(
	struct hx_http1_writer *writer, struct hapax_bytes name, struct hapax_bytes value)
{
	if (!hx_http1_is_token(name))
		fail(writer, HAPAX_ERR_INVALID, name, "it is not a valid header name");
	else if (is_reserved(name))
		fail(writer, HAPAX_ERR_INVALID, name, "only the codec writes it");
	else if (!is_value(value))
		fail(writer, HAPAX_ERR_INVALID, name, "its value has a control character");
	write_line(writer, name, value);
}

static void write_framing(
	struct hx_http1_writer *writer, struct hapax_bytes name, struct hapax_bytes value)
{
	if (writer->has_framing)
		fail(writer, HAPAX_ERR_INVALID, name, "the end of the body was already set");
	writer->has_framing = true;
	write_line(writer, name, value);
}

void hx_http1_write_read_field(struct hx_http1_writer *writer, const struct hapax_field *field)
{
	if (is_reserved(field->name))
		fail(writer, HAPAX_ERR_INVALID, field->name, "only the codec writes it");
	write_line(writer, field->name, field->value);
}

enum { DIGITS_MAX = 20 };

static struct hapax_bytes decimal(uint64_t number, char digits[DIGITS_MAX])
{
	size_t at = DIGITS_MAX;

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	return hx_bytes(digits + at, DIGITS_MAX - at);
}

void hx_http1_write_number(struct hx_http1_writer *writer, struct hapax_bytes name, uint64_t number)
{
	char digits[DIGITS_MAX];

	hx_http1_write_field(writer, name, decimal(number, digits));
}

void hx_http1_write_length(struct hx_http1_writer *writer, uint64_t size)
{
	char digits[DIGITS_MAX];

	write_framing(writer, HX_BYTES_LIT("Content-Length"), decimal(size, digits));
}

void hx_http1_write_chunked(struct hx_http1_writer *writer)
{
	write_framing(writer, HX_BYTES_LIT("Transfer-Encoding"), HX_BYTES_LIT("chunked"));
}

void hx_http1_write_close(struct hx_http1_writer *writer)
{
	const struct hapax_bytes line = HX_BYTES_LIT("Connection: close");

	write_parts(writer, &line, 1);
}

enum hapax_status hx_http1_write_end(struct hx_http1_writer *writer, struct hapax_error *err)
{
	const struct hapax_bytes empty = {NULL, 0};

	write_parts(writer, &empty, 1);
	if (writer->status == HAPAX_OK)
		return HAPAX_OK;
	writer->out->size = writer->begin;
	for (char *at = writer->name; *at != '\0'; at++) {
		if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
			*at = '?';
	}
	return hx_error_set(
		err, writer->status, 0, "could not write header '%s': %s", writer->name,
		writer->reason);
}

size_t hx_http1_chunk_head(uint64_t size, bool first, char out[HX_HTTP1_CHUNK_HEAD_MAX])
{
	static const char hex[] = "0123456789abcdef";
	unsigned digits = 1;
	size_t at = 0;

	/* Strict readers, including ours, accept at most 15 digits. */
	assert(size >> (4 * 15) == 0);
	while (digits < 15 && size >> (4 * digits) != 0)
		digits++;
	if (!first) {
		out[at++] = '\r';
		out[at++] = '\n';
	}
	while (digits > 0)
		out[at++] = hex[size >> (4 * --digits) & 0xf];
	out[at++] = '\r';
	out[at++] = '\n';
	if (size == 0) {
		out[at++] = '\r';
		out[at++] = '\n';
	}
	return at;
}

struct hapax_bytes hx_http1_continue(void)
{
	return HX_BYTES_LIT("HTTP/1.1 100 Continue\r\n\r\n");
}

const char *hx_http1_reason(unsigned status)
{
	static const char *const classes[] = {
		"Unknown", "Informational", "OK", "Redirection", "Client Error", "Server Error"};
	static const struct {
		unsigned status;
		const char *reason;
	} reasons[] = {
		{100, "Continue"},
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{206, "Partial Content"},
		{301, "Moved Permanently"},
		{302, "Found"},
		{303, "See Other"},
		{304, "Not Modified"},
		{307, "Temporary Redirect"},
		{308, "Permanent Redirect"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{411, "Length Required"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{425, "Too Early"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < HX_COUNT(reasons); i++) {
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return status >= 100 && status < 600 ? classes[status / 100] : classes[0];
}

static void two_digits(unsigned value, char *to)
{
	to[0] = (char)('0' + value / 10 % 10);
	to[1] = (char)('0' + value % 10);
}

void hx_http1_date(int64_t ms, char out[HX_HTTP1_DATE_SIZE])
{
	static const char days[] = "ThuFriSatSunMonTueWed";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int64_t seconds = ms / 1000;
	unsigned of_day = (unsigned)(seconds % 86400);
	struct hx_date date = hx_calendar_date(seconds / 86400);

	assert(ms >= 0 && seconds <= INT64_C(253402300799));
	memcpy(out, "Day, 00 Mon 0000 00:00:00 GMT", HX_HTTP1_DATE_SIZE);
	memcpy(out, days + 3 * (seconds / 86400 % 7), 3);
	two_digits((unsigned)date.day, out + 5);
	memcpy(out + 8, months + 3 * (size_t)(date.month - 1), 3);
	two_digits((unsigned)date.year / 100, out + 12);
	two_digits((unsigned)date.year, out + 14);
	two_digits(of_day / 3600, out + 17);
	two_digits(of_day / 60 % 60, out + 20);
	two_digits(of_day % 60, out + 23);
}
