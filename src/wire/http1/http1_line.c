/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_line.c - one line of a head: request line, status line, field.
 */
#include "wire/http1/http1_parse.h"

#include "wire/http1/http1_text.h"

enum hx_http1_line hx_http1_line_end(struct hx_http1_cursor *cursor, struct hx_http1_fault *fault)
{
	const unsigned char *at = cursor->at;

	if (at == cursor->end)
		return HX_HTTP1_LINE_SHORT;
	if (*at == '\n')
		return hx_http1_bad(fault, 400, at, "LF without CR before it");
	if (*at != '\r')
		return hx_http1_bad(
			fault, 400, at,
			*at == 0x7f || *at < 0x20 ? "control character"
						  : "the line should end here");
	if (at + 1 == cursor->end)
		return HX_HTTP1_LINE_SHORT;
	if (at[1] != '\n')
		return hx_http1_bad(fault, 400, at, "CR without LF after it");
	cursor->at = at + 2;
	return HX_HTTP1_LINE_READ;
}

/* "HTTP/1.0" or "HTTP/1.1", byte by byte; the first wrong byte is reported. */
static enum hx_http1_line read_version(
	struct hx_http1_cursor *cursor, uint8_t *ret_minor, struct hx_http1_fault *fault)
{
	static const unsigned char form[] = "HTTP/d.d";
	const unsigned char *begin = cursor->at;

	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		if (begin + i == cursor->end)
			return HX_HTTP1_LINE_SHORT;
		if (form[i] == 'd' ? !hx_http1_is_digit(begin[i]) : begin[i] != form[i])
			return hx_http1_bad(fault, 400, begin + i, "this is not an HTTP version");
	}
	if (begin[5] != '1' || begin[7] > '1')
		return hx_http1_bad(fault, 505, begin, "only HTTP/1.0 and HTTP/1.1 are supported");
	*ret_minor = (uint8_t)(begin[7] - '0');
	cursor->at = begin + 8;
	return HX_HTTP1_LINE_READ;
}

static enum hx_http1_line read_method(
	struct hx_http1_cursor *cursor, struct hapax_bytes *ret, struct hx_http1_fault *fault)
{
	const unsigned char *begin = cursor->at;
	const unsigned char *at = begin;

	while (at < cursor->end && hx_http1_is(*at, HX_HTTP1_TOKEN)) {
		if (at - begin == HX_HTTP1_METHOD_MAX)
			return hx_http1_bad(fault, 501, at, "the method is too long");
		at++;
	}
	if (at == cursor->end)
		return HX_HTTP1_LINE_SHORT;
	if (at == begin || *at != ' ')
		return hx_http1_bad(fault, 400, at, "expected a method and one space");
	*ret = (struct hapax_bytes){begin, (size_t)(at - begin)};
	cursor->at = at + 1;
	return HX_HTTP1_LINE_READ;
}

static enum hx_http1_line read_target(
	struct hx_http1_cursor *cursor, struct hapax_bytes *ret, struct hx_http1_fault *fault)
{
	const unsigned char *begin = cursor->at;
	const unsigned char *at = begin;

	while (at < cursor->end && hx_http1_is(*at, HX_HTTP1_TARGET))
		at++;
	if (at == cursor->end)
		return HX_HTTP1_LINE_SHORT;
	if (*at == '\r' || *at == '\n')
		return hx_http1_bad(fault, 400, at, "the HTTP version is missing");
	if (*at != ' ' || at == begin)
		return hx_http1_bad(
			fault, 400, at,
			at == begin ? "the target is missing" : "not allowed in a target");
	*ret = (struct hapax_bytes){begin, (size_t)(at - begin)};
	cursor->at = at + 1;
	return HX_HTTP1_LINE_READ;
}

enum hx_http1_line hx_http1_request_line(
	struct hx_http1_cursor *cursor, struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	struct hx_http1_cursor at = *cursor;
	enum hx_http1_line line = read_method(&at, &head->method, fault);

	if (line == HX_HTTP1_LINE_READ)
		line = read_target(&at, &head->target, fault);
	if (line == HX_HTTP1_LINE_READ)
		line = read_version(&at, &head->version_minor, fault);
	if (line == HX_HTTP1_LINE_READ)
		line = hx_http1_line_end(&at, fault);
	if (line == HX_HTTP1_LINE_READ)
		*cursor = at;
	return line;
}

/* Three digits from 100 to 599. */
static enum hx_http1_line read_status(
	struct hx_http1_cursor *cursor, uint16_t *ret, struct hx_http1_fault *fault)
{
	const unsigned char *at = cursor->at;
	unsigned status = 0;

	for (int i = 0; i < 4; i++) {
		if (at + i == cursor->end)
			return HX_HTTP1_LINE_SHORT;
		if (i == 0 && at[i] != ' ')
			return hx_http1_bad(fault, 502, at, "expected one space");
		if (i == 0)
			continue;
		if (!hx_http1_is_digit(at[i]))
			return hx_http1_bad(fault, 502, at + i, "a status must have three digits");
		status = status * 10 + (unsigned)(at[i] - '0');
	}
	if (status < 100 || status > 599)
		return hx_http1_bad(fault, 502, at + 1, "the status is out of range");
	*ret = (uint16_t)status;
	cursor->at = at + 4;
	return HX_HTTP1_LINE_READ;
}

/* The reason is not used. Many servers omit it, some also the blank before it. */
static enum hx_http1_line read_reason(
	struct hx_http1_cursor *cursor, struct hapax_bytes *ret, struct hx_http1_fault *fault)
{
	const unsigned char *begin = cursor->at;
	const unsigned char *at;

	*ret = (struct hapax_bytes){begin, 0};
	if (begin == cursor->end)
		return HX_HTTP1_LINE_SHORT;
	if (*begin != ' ')
		return hx_http1_line_end(cursor, fault);
	begin++;
	at = hx_http1_skip_value(begin, cursor->end);
	*ret = (struct hapax_bytes){begin, (size_t)(at - begin)};
	cursor->at = at;
	return hx_http1_line_end(cursor, fault);
}

enum hx_http1_line hx_http1_status_line(
	struct hx_http1_cursor *cursor, struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	struct hx_http1_cursor at = *cursor;
	enum hx_http1_line line = read_version(&at, &head->version_minor, fault);

	if (line == HX_HTTP1_LINE_READ)
		line = read_status(&at, &head->status, fault);
	if (line == HX_HTTP1_LINE_READ)
		line = read_reason(&at, &head->reason, fault);
	if (line == HX_HTTP1_LINE_READ)
		*cursor = at;
	return line;
}

static enum hx_http1_line bad_name(
	const unsigned char *begin, const unsigned char *at, struct hx_http1_fault *fault)
{
	enum hx_http1_line line;

	if (hx_http1_is_blank(*at) && at == begin)
		return hx_http1_bad(fault, 400, at, "a header must not continue on a second line");
	if (hx_http1_is_blank(*at))
		line = hx_http1_bad(fault, 400, at, "a space before the colon");
	else if (*at == ':')
		line = hx_http1_bad(fault, 400, at, "a header without a name");
	else if (*at == '\r' || *at == '\n')
		line = hx_http1_bad(fault, 400, at, "a line without a colon");
	else
		line = hx_http1_bad(fault, 400, at, "not allowed in the name of a header");
	fault->name = (struct hapax_bytes){begin, (size_t)(at - begin)};
	return line;
}

enum hx_http1_line hx_http1_field_line(
	struct hx_http1_cursor *cursor, struct hapax_field *ret, struct hx_http1_fault *fault)
{
	const unsigned char *begin = cursor->at;
	const unsigned char *end = cursor->end;
	const unsigned char *at = begin;
	const unsigned char *value;
	struct hx_http1_cursor rest;
	enum hx_http1_line line;

	while (end - at >= 4 &&
	       (hx_http1_classes[at[0]] & hx_http1_classes[at[1]] & hx_http1_classes[at[2]] &
		hx_http1_classes[at[3]] & HX_HTTP1_TOKEN) != 0)
		at += 4;
	while (at < end && hx_http1_is(*at, HX_HTTP1_TOKEN))
		at++;
	if (at == end)
		return HX_HTTP1_LINE_SHORT;
	if (*at != ':' || at == begin)
		return bad_name(begin, at, fault);
	ret->name = (struct hapax_bytes){begin, (size_t)(at - begin)};
	value = at + 1;
	while (value < end && hx_http1_is_blank(*value))
		value++;
	at = hx_http1_skip_value(value, end);
	rest = (struct hx_http1_cursor){at, end};
	line = hx_http1_line_end(&rest, fault);
	if (line != HX_HTTP1_LINE_READ) {
		fault->name = ret->name;
		return line;
	}
	while (at > value && hx_http1_is_blank(at[-1]))
		at--;
	ret->value = (struct hapax_bytes){value, (size_t)(at - value)};
	*cursor = rest;
	return HX_HTTP1_LINE_READ;
}
