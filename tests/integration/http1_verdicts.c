/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_verdicts.c - what our reader makes of bytes, for test_nginx.py to compare.
 *
 *	http1_verdicts        every case of the tables, each with one more request behind it
 *	http1_verdicts -      the streams on standard input, one in a line, in hexadecimal
 *
 * Prints a line for each stream: its bytes; "taken", "refused" or "unfinished"; the same
 * messages as our writer sends them on; then method, path and body of each message that
 * was read. Bytes are in hexadecimal, with "-" for none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/http1/http1.h"
#include "wire/http1/http1_write.h"

#include "../unit/http1_requests.h"
#include "smuggling.h"

enum { STREAM_MAX = 64 * 1024 };

static void must(int condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "http1_verdicts: %s\n", what);
	exit(1);
}

static void print_hex(struct hapax_bytes bytes)
{
	const unsigned char *at = bytes.data;

	if (bytes.size == 0)
		(void)printf(" -");
	else
		(void)printf(" ");
	for (size_t i = 0; i < bytes.size; i++)
		(void)printf("%02x", at[i]);
}

struct reading {
	struct hx_http1 http;
	struct hx_http1_head head;
	struct hapax_buf body;
	struct hapax_buf sent;  /* all messages, written again */
	struct hapax_buf lines; /* what to print of them: sizes and bytes */
};

static void keep(struct hapax_buf *buf, struct hapax_bytes bytes)
{
	must(hx_buf_append_u32(buf, (uint32_t)bytes.size) == HAPAX_OK &&
		     hx_buf_append(buf, bytes.data, bytes.size) == HAPAX_OK,
	     "no room");
}

/* As a proxy does: without the fields of the connection, with a length. */
static void send_on(struct reading *reading)
{
	const struct hx_http1_head *head = &reading->head;
	struct hx_http1_writer writer;

	hx_http1_write_request(&writer, &reading->sent, head->method, head->path);
	for (size_t i = 0; i < head->field_count; i++) {
		if (!hx_http1_is_hop(head, head->fields[i].name))
			hx_http1_write_field(&writer, head->fields[i].name, head->fields[i].value);
	}
	if (head->known[HX_HTTP1_HOST] == 0)
		hx_http1_write_field(&writer, HX_BYTES_LIT("Host"), HX_BYTES_LIT("h"));
	if (head->body != HX_HTTP1_BODY_NONE)
		hx_http1_write_length(&writer, reading->body.size);
	must(hx_http1_write_end(&writer, NULL) == HAPAX_OK &&
		     hx_buf_append(&reading->sent, reading->body.data, reading->body.size) ==
			     HAPAX_OK,
	     "a message that was read was not written");
}

static void end_message(struct reading *reading)
{
	keep(&reading->lines, reading->head.method);
	keep(&reading->lines, reading->head.path);
	keep(&reading->lines, hx_bytes(reading->body.data, reading->body.size));
	send_on(reading);
	hx_buf_clear(&reading->body);
	hx_http1_reset(&reading->http);
}

/* Returns the verdict. */
static const char *read_stream(struct reading *reading, struct hapax_bytes stream)
{
	const unsigned char *data = stream.data;
	struct hx_http1_event event = {HX_HTTP1_HEAD, 0, {NULL, 0}};
	size_t used = 0;

	hx_http1_init(&reading->http, HX_HTTP1_SERVER, NULL);
	while (event.type != HX_HTTP1_MORE) {
		if (hx_http1_next(
			    &reading->http, hx_bytes(data + used, stream.size - used),
			    &reading->head, &event, NULL) != HAPAX_OK)
			return "refused";
		used += event.used;
		if (event.type == HX_HTTP1_DATA)
			must(hx_buf_append(&reading->body, event.data.data, event.data.size) ==
				     HAPAX_OK,
			     "no room");
		if (event.type == HX_HTTP1_END) {
			bool keep_alive = reading->head.keep_alive;

			end_message(reading);
			if (!keep_alive)
				return "taken";
		}
	}
	return hx_http1_closed(&reading->http, &event, NULL) == HAPAX_OK ? "taken" : "unfinished";
}

static void print_stream(struct hapax_bytes stream)
{
	static struct reading reading;
	const char *verdict;
	size_t at = 0;

	hx_buf_init(&reading.body, STREAM_MAX);
	hx_buf_init(&reading.sent, 2 * STREAM_MAX);
	hx_buf_init(&reading.lines, 2 * STREAM_MAX);
	verdict = read_stream(&reading, stream);
	print_hex(stream);
	(void)printf(" %s", verdict);
	print_hex(hx_bytes(reading.sent.data, reading.sent.size));
	while (at < reading.lines.size) {
		const unsigned char *size = reading.lines.data + at;
		size_t length = (size_t)size[0] | (size_t)size[1] << 8 | (size_t)size[2] << 16;

		print_hex(hx_bytes(size + 4, length));
		at += 4 + length;
	}
	(void)printf("\n");
	hx_buf_done(&reading.body);
	hx_buf_done(&reading.sent);
	hx_buf_done(&reading.lines);
}

/* With a request behind it, whose place tells where the last message was thought to end. */
static void print_case(const char *data, size_t size)
{
	static const char canary[] = "GET /canary HTTP/1.1\r\nHost: canary\r\n\r\n";
	static char stream[STREAM_MAX];

	must(size + sizeof(canary) < sizeof(stream), "a case is too long");
	memcpy(stream, data, size);
	memcpy(stream + size, canary, sizeof(canary) - 1);
	print_stream(hx_bytes(stream, size + sizeof(canary) - 1));
}

static int digit(int byte)
{
	return byte <= '9' ? byte - '0' : byte - 'a' + 10;
}

static void print_input(void)
{
	static unsigned char stream[STREAM_MAX];
	size_t size = 0;
	int byte;

	while ((byte = getchar()) != EOF) {
		if (byte == '\n') {
			print_stream(hx_bytes(stream, size));
			size = 0;
			continue;
		}
		must(size < sizeof(stream), "a line is too long");
		stream[size++] = (unsigned char)(digit(byte) << 4 | digit(getchar()));
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		print_input();
		return 0;
	}
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		print_case(pairs[i].data, pairs[i].size);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		print_case(requests[i].data, requests[i].size);
	return 0;
}
