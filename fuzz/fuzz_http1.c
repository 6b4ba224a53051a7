/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the HTTP/1.1 reader (src/wire/http1*.c) and writer (http1_write.c).
 *
 * The first byte says which direction and where to cut. The rest is read in one piece, in
 * two, and byte by byte: all must come to the same messages or the same refusal. A
 * request that was taken is written again by the writer, as a proxy does, and must be
 * read back with the same fields and body. What is refused has a status and a place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/http1/http1.h"
#include "wire/http1/http1_write.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { INPUT_MAX = 4096, TRANSCRIPT_MAX = 256 * 1024 };

static void must(int condition)
{
	if (!condition)
		abort();
}

static void note(struct hapax_buf *text, struct hapax_bytes bytes)
{
	unsigned char size[2] = {(unsigned char)(bytes.size >> 8), (unsigned char)bytes.size};

	must(hx_buf_append(text, size, 2) == HAPAX_OK);
	must(hx_buf_append(text, bytes.data, bytes.size) == HAPAX_OK);
}

static void check_head(const struct hx_http1_head *head)
{
	const unsigned framing = 1U << HX_HTTP1_CONTENT_LENGTH | 1U << HX_HTTP1_TRANSFER_ENCODING;

	must(head->field_count <= HX_HTTP1_FIELDS_MAX);
	must(head->version_minor <= 1);
	/* Of a response what decides nothing may occur twice. */
	must((head->repeated & framing) == 0);
	must(head->status != 0 || (head->repeated & 1U << HX_HTTP1_HOST) == 0);
	if (head->body == HX_HTTP1_BODY_CHUNKED)
		must(head->known[HX_HTTP1_CONTENT_LENGTH] == 0);
	for (size_t i = 0; i < head->field_count; i++) {
		struct hapax_bytes value = head->fields[i].value;

		must(head->fields[i].name.size > 0);
		must(value.size == 0 || memchr(value.data, '\r', value.size) == NULL);
		must(value.size == 0 || memchr(value.data, '\n', value.size) == NULL);
		must(value.size == 0 || memchr(value.data, '\0', value.size) == NULL);
	}
}

static void note_head(struct hapax_buf *text, const struct hx_http1_head *head)
{
	check_head(head);
	must(hx_buf_append_u16(text, head->status) == HAPAX_OK);
	note(text, head->method);
	note(text, head->path);
	note(text, head->authority);
	must(hx_buf_append(text, &head->content_length, sizeof(head->content_length)) == HAPAX_OK);
	must(hx_buf_append_u16(text, (uint16_t)((unsigned)head->body << 8 | head->keep_alive)) ==
	     HAPAX_OK);
	for (size_t i = 0; i < head->field_count; i++) {
		note(text, head->fields[i].name);
		note(text, head->fields[i].value);
	}
}

static void note_event(
	struct hapax_buf *text, struct hx_http1 *http, const struct hx_http1_head *head,
	const struct hx_http1_event *event)
{
	switch (event->type) {
	case HX_HTTP1_HEAD: note_head(text, head); break;
	case HX_HTTP1_DATA:
		must(event->data.size > 0);
		must(hx_buf_append(text, event->data.data, event->data.size) == HAPAX_OK);
		break;
	case HX_HTTP1_END:
		must(hx_buf_append(text, "END", 3) == HAPAX_OK);
		hx_http1_reset(http);
		break;
	case HX_HTTP1_MORE:
	case HX_HTTP1_IDLE: break;
	}
}

/* In pieces of step bytes, or first of cut and then the rest. */
static void read_all(
	struct hapax_bytes input, enum hx_http1_role role, size_t cut, size_t step,
	struct hapax_buf *text)
{
	static const struct hx_http1_limits limits = {64, 512, 16, 1000};
	static struct hx_http1_head head;
	const unsigned char *data = input.data;
	struct hx_http1_event event = {HX_HTTP1_MORE, 0, {NULL, 0}};
	struct hapax_error err;
	struct hx_http1 http;
	size_t used = 0;

	hx_buf_clear(text);
	hx_http1_init(&http, role, &limits);
	for (size_t have = cut; used <= input.size; have += step) {
		if (have > input.size)
			have = input.size;
		do {
			if (hx_http1_next(
				    &http, hx_bytes(data + used, have - used), &head, &event,
				    &err) != HAPAX_OK) {
				unsigned status = hx_http1_reply_status(&http);

				must(status >= 400 && status <= 505);
				must(strncmp(err.message, "byte ", 5) == 0);
				must(hx_buf_append(text, err.message, strlen(err.message)) ==
				     HAPAX_OK);
				return;
			}
			must(event.used <= have - used);
			used += event.used;
			note_event(text, &http, &head, &event);
		} while (event.type != HX_HTTP1_MORE);
		if (have == input.size)
			return;
	}
}

/* As a proxy sends it on. */
static void write_again(const struct hx_http1_head *head, struct hapax_buf *out)
{
	struct hx_http1_writer writer;

	hx_http1_write_request(&writer, out, head->method, head->path);
	for (size_t i = 0; i < head->field_count; i++) {
		if (!hx_http1_is_hop(head, head->fields[i].name))
			hx_http1_write_field(&writer, head->fields[i].name, head->fields[i].value);
	}
	if (head->body == HX_HTTP1_BODY_LENGTH)
		hx_http1_write_length(&writer, head->content_length);
	if (head->body == HX_HTTP1_BODY_CHUNKED)
		hx_http1_write_chunked(&writer);
	must(hx_http1_write_end(&writer, NULL) == HAPAX_OK);
}

/* What was taken and written again is taken again, as the same. */
static void check_round_trip(struct hapax_bytes input, struct hapax_buf *out)
{
	static struct hx_http1_head first;
	static struct hx_http1_head second;
	struct hx_http1_event event;
	struct hx_http1 http;

	hx_http1_init(&http, HX_HTTP1_SERVER, NULL);
	if (hx_http1_next(&http, input, &first, &event, NULL) != HAPAX_OK ||
	    event.type != HX_HTTP1_HEAD || first.known[HX_HTTP1_HOST] == 0)
		return;
	hx_buf_clear(out);
	write_again(&first, out);
	hx_http1_init(&http, HX_HTTP1_SERVER, NULL);
	must(hx_http1_next(&http, hx_bytes(out->data, out->size), &second, &event, NULL) ==
	     HAPAX_OK);
	must(event.type == HX_HTTP1_HEAD && event.used == out->size);
	must(hx_bytes_equal(first.path, second.path));
	must(hx_bytes_equal(first.authority, second.authority));
	must(first.body == second.body && first.content_length == second.content_length);
	for (size_t i = 0, at = 0; i < first.field_count; i++) {
		if (hx_http1_is_hop(&first, first.fields[i].name))
			continue;
		must(hx_bytes_equal(first.fields[i].name, second.fields[at].name));
		must(hx_bytes_equal(first.fields[i].value, second.fields[at].value));
		at++;
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct hapax_buf whole;
	static struct hapax_buf parts;
	struct hapax_bytes input;
	enum hx_http1_role role;

	if (size == 0 || size > INPUT_MAX)
		return 0;
	hx_buf_init(&whole, TRANSCRIPT_MAX);
	hx_buf_init(&parts, TRANSCRIPT_MAX);
	role = (data[0] & 1) != 0 ? HX_HTTP1_CLIENT : HX_HTTP1_SERVER;
	input = hx_bytes(data + 1, size - 1);
	read_all(input, role, input.size, 1, &whole);
	read_all(input, role, data[0] >> 1, input.size + 1, &parts);
	must(hx_bytes_equal(hx_bytes(whole.data, whole.size), hx_bytes(parts.data, parts.size)));
	read_all(input, role, 1, 1, &parts);
	must(hx_bytes_equal(hx_bytes(whole.data, whole.size), hx_bytes(parts.data, parts.size)));
	if (role == HX_HTTP1_SERVER)
		check_round_trip(input, &parts);
	hx_buf_done(&whole);
	hx_buf_done(&parts);
	return 0;
}
