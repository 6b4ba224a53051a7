/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1.c - messages one after the other: head, body, end.
 *
 * Invariants:
 *
 *  (1) A head is read in one pass over all of its bytes before HEAD is returned. What
 *      came before it was complete is checked for its form, line by line, and then read
 *      again: twice the work for heads that come in pieces, none for the others, and no
 *      field has to be remembered for a connection that waits.
 *  (2) All lines are checked for their form before any is checked for its meaning, so
 *      that the same fault is found whatever the pieces were.
 *  (3) A parser never sees a byte beyond a limit, for the same reason.
 */
#include "wire/http1/http1.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "wire/http1/http1_parse.h"

enum { NAME_SHOWN_MAX = 64 };

static uint32_t or_default(uint32_t value, uint32_t standard)
{
	return value == 0 ? standard : value;
}

void hx_http1_init(
	struct hx_http1 *http, enum hx_http1_role role, const struct hx_http1_limits *limits)
{
	const struct hx_http1_limits none = {0, 0, 0, 0};
	const struct hx_http1_limits *given = limits == NULL ? &none : limits;

	*http = (struct hx_http1){.role = (uint8_t)role};
	http->limits.line_max = or_default(given->line_max, HX_HTTP1_LINE_MAX);
	http->limits.head_max = or_default(given->head_max, HX_HTTP1_HEAD_MAX);
	http->limits.field_max = or_default(given->field_max, HX_HTTP1_FIELDS_MAX);
	assert(http->limits.field_max <= HX_HTTP1_FIELDS_MAX);
	hx_http1_limit_body(http, given->body_max);
	hx_http1_reset(http);
}

void hx_http1_limit_body(struct hx_http1 *http, uint64_t body_max)
{
	http->limits.body_max = body_max == 0 ? UINT64_MAX : body_max;
}

static void begin_head(struct hx_http1 *http)
{
	http->state = HX_HTTP1_IN_HEAD;
	http->checked = 0;
	http->field_count = 0;
	http->first_line_read = false;
}

void hx_http1_reset(struct hx_http1 *http)
{
	begin_head(http);
	http->offset = 0;
	http->left = 0;
	http->body_size = 0;
	http->fault = 0;
	http->began = false;
	http->answers_head = false;
}

void hx_http1_reset_answer(struct hx_http1 *http, bool to_head)
{
	assert(http->role == HX_HTTP1_CLIENT);
	hx_http1_reset(http);
	http->answers_head = to_head;
}

unsigned hx_http1_reply_status(const struct hx_http1 *http)
{
	assert(http->state == HX_HTTP1_REFUSED);
	return http->role == HX_HTTP1_CLIENT ? 502 : http->fault;
}

unsigned hx_http1_timeout_status(const struct hx_http1 *http)
{
	if (http->role == HX_HTTP1_CLIENT)
		return 504;
	return http->began ? 408 : 0;
}

static enum hapax_status http1_refuse(
	struct hx_http1 *http, uint64_t offset, const struct hx_http1_fault *fault,
	struct hapax_error *err)
{
	bool limit = fault->status == 413 || fault->status == 414 || fault->status == 431;
	enum hapax_status status = limit ? HAPAX_ERR_LIMIT : HAPAX_ERR_INVALID;
	size_t shown = fault->name.size < NAME_SHOWN_MAX ? fault->name.size : NAME_SHOWN_MAX;

	http->state = HX_HTTP1_REFUSED;
	http->fault = (uint16_t)fault->status;
	if (shown > 0)
		return hx_error_set(
			err, status, 0, "byte %llu, header '%.*s': %s", (unsigned long long)offset,
			(int)shown, (const char *)fault->name.data, fault->reason);
	return hx_error_set(
		err, status, 0, "byte %llu: %s", (unsigned long long)offset, fault->reason);
}

/*
 * One empty line before a request is forgiven: old clients sent it after a body
 * (RFC 9112 2.2).
 */
static enum hx_http1_line skip_empty_line(
	const struct hx_http1 *http, struct hx_http1_cursor *cursor, struct hx_http1_fault *fault)
{
	if (cursor->at == cursor->end)
		return HX_HTTP1_LINE_SHORT;
	if (http->role != HX_HTTP1_SERVER || (*cursor->at != '\r' && *cursor->at != '\n'))
		return HX_HTTP1_LINE_READ;
	return hx_http1_line_end(cursor, fault);
}

static enum hx_http1_line read_first_line(
	struct hx_http1 *http, struct hx_http1_cursor *cursor, struct hx_http1_head *head,
	struct hx_http1_fault *fault)
{
	struct hx_http1_cursor line = *cursor;
	enum hx_http1_line result = skip_empty_line(http, &line, fault);
	size_t line_max = (size_t)http->limits.line_max + 2;
	bool cut;

	if (result != HX_HTTP1_LINE_READ)
		return result;
	cut = (size_t)(line.end - line.at) > line_max;
	if (cut)
		line.end = line.at + line_max;
	if (http->role == HX_HTTP1_SERVER)
		result = hx_http1_request_line(&line, head, fault);
	else
		result = hx_http1_status_line(&line, head, fault);
	if (result == HX_HTTP1_LINE_SHORT && cut)
		return hx_http1_bad(fault, 414, line.end, "the first line is too long");
	if (result == HX_HTTP1_LINE_READ)
		cursor->at = line.at;
	return result;
}

/* One field, or the empty line after the last: then *ret_last. */
static enum hx_http1_line read_line(
	struct hx_http1 *http, struct hx_http1_cursor *cursor, struct hx_http1_head *head,
	bool *ret_last, struct hx_http1_fault *fault)
{
	enum hx_http1_line result;

	*ret_last = false;
	if (cursor->at == cursor->end)
		return HX_HTTP1_LINE_SHORT;
	if (*cursor->at == '\r' || *cursor->at == '\n') {
		*ret_last = true;
		return hx_http1_line_end(cursor, fault);
	}
	if (http->field_count == http->limits.field_max)
		return hx_http1_bad(fault, 431, cursor->at, "too many headers");
	result = hx_http1_field_line(cursor, &head->fields[http->field_count], fault);
	if (result == HX_HTTP1_LINE_READ)
		http->field_count++;
	return result;
}

/* Read lines from http->checked on, to the end of the head or of the bytes. */
static enum hx_http1_line read_lines(
	struct hx_http1 *http, struct hapax_bytes input, struct hx_http1_head *head,
	struct hx_http1_fault *fault)
{
	const unsigned char *base = input.data;
	bool cut = input.size > http->limits.head_max;
	struct hx_http1_cursor cursor = {
		base + http->checked, base + (cut ? http->limits.head_max : input.size)};
	bool whole = http->checked == 0;
	bool last = false;

	if (whole) {
		memset(head->known, 0, sizeof(head->known));
		head->repeated = 0;
	}
	while (!last) {
		enum hx_http1_line line;

		if (!http->first_line_read)
			line = read_first_line(http, &cursor, head, fault);
		else
			line = read_line(http, &cursor, head, &last, fault);
		if (line == HX_HTTP1_LINE_SHORT && cut)
			return hx_http1_bad(fault, 431, cursor.end, "the request head is too long");
		if (line != HX_HTTP1_LINE_READ)
			return line;
		if (whole && http->first_line_read && !last)
			hx_http1_note_field(head, (size_t)http->field_count - 1);
		http->first_line_read = true;
		http->checked = (uint32_t)(cursor.at - base);
	}
	return HX_HTTP1_LINE_READ;
}

static void begin_body(struct hx_http1 *http, const struct hx_http1_head *head)
{
	switch (head->body) {
	case HX_HTTP1_BODY_NONE:
		if (head->status >= 100 && head->status < 200)
			begin_head(http);
		else
			http->state = HX_HTTP1_COMPLETE;
		break;
	case HX_HTTP1_BODY_LENGTH:
		http->state = HX_HTTP1_IN_LENGTH;
		http->left = head->content_length;
		break;
	case HX_HTTP1_BODY_CHUNKED:
		http->state = HX_HTTP1_IN_CHUNKS;
		hx_http1_chunks_begin(http);
		break;
	case HX_HTTP1_BODY_CLOSE: http->state = HX_HTTP1_UNTIL_CLOSE; break;
	}
}

static bool understand(
	const struct hx_http1 *http, struct hx_http1_head *head, struct hx_http1_fault *fault)
{
	bool understood = http->role == HX_HTTP1_SERVER
		? hx_http1_understand_request(head, fault)
		: hx_http1_understand_response(head, http->answers_head, fault);

	if (!understood)
		return false;
	/* A length above 64 bits is over the limit even if there is none. */
	if (head->body == HX_HTTP1_BODY_LENGTH &&
	    (head->content_length > http->limits.body_max || head->content_length == UINT64_MAX)) {
		struct hapax_field *field = &head->fields[head->known[HX_HTTP1_CONTENT_LENGTH] - 1];

		(void)hx_http1_bad(
			fault, 413, field->value.data, "the body is larger than the limit");
		fault->name = field->name;
		return false;
	}
	return true;
}

/* An extra CR LF of a client is not a message. */
static bool is_message(struct hapax_bytes input)
{
	return input.size > 2 || memcmp(input.data, "\r\n", input.size) != 0;
}

static enum hapax_status next_head(
	struct hx_http1 *http, struct hapax_bytes input, struct hx_http1_head *head,
	struct hx_http1_event *ret, struct hapax_error *err)
{
	struct hx_http1_fault fault = {0, NULL, NULL, {NULL, 0}};
	bool in_pieces = http->checked > 0;
	enum hx_http1_line line;

	http->began = http->began || is_message(input);
	line = read_lines(http, input, head, &fault);
	if (line == HX_HTTP1_LINE_SHORT) {
		*ret = (struct hx_http1_event){HX_HTTP1_MORE, 0, {NULL, 0}};
		return HAPAX_OK;
	}
	if (line == HX_HTTP1_LINE_READ && in_pieces) {
		begin_head(http);
		line = read_lines(http, input, head, &fault);
		assert(line == HX_HTTP1_LINE_READ);
	}
	head->field_count = http->field_count;
	if (line == HX_HTTP1_LINE_BAD || !understand(http, head, &fault)) {
		size_t offset = (size_t)(fault.at - (const unsigned char *)input.data);

		return http1_refuse(http, http->offset + offset, &fault, err);
	}
	*ret = (struct hx_http1_event){HX_HTTP1_HEAD, http->checked, {NULL, 0}};
	http->offset += http->checked;
	begin_body(http, head);
	return HAPAX_OK;
}

static enum hapax_status next_chunk(
	struct hx_http1 *http, struct hapax_bytes input, struct hx_http1_event *ret,
	struct hapax_error *err)
{
	struct hx_http1_fault fault;

	if (hx_http1_chunks_next(http, input, ret, &fault) == HX_HTTP1_LINE_BAD) {
		size_t offset = (size_t)(fault.at - (const unsigned char *)input.data);

		return http1_refuse(http, http->offset + offset, &fault, err);
	}
	http->offset += ret->used;
	if (ret->type == HX_HTTP1_END)
		http->state = HX_HTTP1_COMPLETE;
	return HAPAX_OK;
}

/* As much of the body as input has, at most max bytes. */
static void next_piece(
	struct hx_http1 *http, struct hapax_bytes input, uint64_t max, struct hx_http1_event *ret)
{
	size_t size = input.size < max ? input.size : (size_t)max;

	*ret = (struct hx_http1_event){HX_HTTP1_DATA, size, {input.data, size}};
	http->offset += size;
	http->body_size += size;
}

static enum hapax_status next_until_close(
	struct hx_http1 *http, struct hapax_bytes input, struct hx_http1_event *ret,
	struct hapax_error *err)
{
	struct hx_http1_fault fault = {413, NULL, "the body is larger than the limit", {NULL, 0}};
	uint64_t room = http->limits.body_max - http->body_size;

	if (room == 0)
		return http1_refuse(http, http->offset, &fault, err);
	next_piece(http, input, room, ret);
	return HAPAX_OK;
}

enum hapax_status hx_http1_next(
	struct hx_http1 *http, struct hapax_bytes input, struct hx_http1_head *head,
	struct hx_http1_event *ret, struct hapax_error *err)
{
	assert(http->state != HX_HTTP1_REFUSED);
	if (http->state == HX_HTTP1_IN_LENGTH && http->left == 0)
		http->state = HX_HTTP1_COMPLETE;
	if (http->state == HX_HTTP1_COMPLETE) {
		*ret = (struct hx_http1_event){HX_HTTP1_END, 0, {NULL, 0}};
		return HAPAX_OK;
	}
	if (input.size == 0) {
		*ret = (struct hx_http1_event){HX_HTTP1_MORE, 0, {NULL, 0}};
		return HAPAX_OK;
	}
	switch (http->state) {
	case HX_HTTP1_IN_HEAD: return next_head(http, input, head, ret, err);
	case HX_HTTP1_IN_CHUNKS: return next_chunk(http, input, ret, err);
	case HX_HTTP1_UNTIL_CLOSE: return next_until_close(http, input, ret, err);
	default: break;
	}
	next_piece(http, input, http->left, ret);
	http->left -= ret->used;
	return HAPAX_OK;
}

enum hapax_status hx_http1_closed(
	struct hx_http1 *http, struct hx_http1_event *ret, struct hapax_error *err)
{
	struct hx_http1_fault fault = {
		400, NULL, "the connection was closed within a head", {NULL, 0}};

	*ret = (struct hx_http1_event){HX_HTTP1_IDLE, 0, {NULL, 0}};
	switch ((enum hx_http1_state)http->state) {
	case HX_HTTP1_COMPLETE: return HAPAX_OK;
	case HX_HTTP1_UNTIL_CLOSE:
		ret->type = HX_HTTP1_END;
		http->state = HX_HTTP1_COMPLETE;
		return HAPAX_OK;
	case HX_HTTP1_IN_HEAD:
		if (!http->began)
			return HAPAX_OK;
		break;
	case HX_HTTP1_IN_LENGTH:
	case HX_HTTP1_IN_CHUNKS:
	case HX_HTTP1_REFUSED: fault.reason = "the connection was closed within a body"; break;
	}
	return http1_refuse(http, http->offset, &fault, err);
}
