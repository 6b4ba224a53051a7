/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1.c - what a request pays before anything is decided: 1 KiB of a CloudEvent by
 * POST, read from its first byte to its end, beside memchr(3) from line end to line end
 * over the same bytes, which is what any reader has to do at the least.
 *
 * Cycles are those of the time stamp counter, where there is one. Uses internal headers;
 * messages stay in the first cache.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "wire/cloudevents/cloudevents.h"
#include "wire/http1/http1.h"

#include "contest.h"

enum {
	MESSAGE_SIZE = 1024,
	MESSAGES = 8, /* that differ, so that nothing can be learnt by heart */
};

struct http1_contest {
	uint64_t operations;
	char messages[MESSAGES][MESSAGE_SIZE];
	struct hx_http1_head head;
	struct hapax_buf scratch;
};

/* Keeps a result alive without storing it. */
static void use(uint64_t value)
{
	__asm__ volatile("" : : "r"(value) : "memory");
}

static uint64_t cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* As the npm package sends it through a proxy, filled up to 1 KiB by its data. */
static void make_message(uint64_t seed, unsigned index, char out[MESSAGE_SIZE])
{
	static const char form[] =
		"POST /webhooks/orders HTTP/1.1\r\n"
		"Host: hapax.example.internal:8080\r\n"
		"User-Agent: axios/1.7.2\r\n"
		"Accept: application/json, text/plain, */*\r\n"
		"Accept-Encoding: gzip, compress, deflate, br\r\n"
		"Content-Type: application/json; charset=utf-8\r\n"
		"ce-id: %08llx-41c5-4d7a-9b0e-%012u\r\n"
		"ce-source: /shops/eu-west/checkout\r\n"
		"ce-type: com.example.order.created.v2\r\n"
		"ce-specversion: 1.0\r\n"
		"ce-time: 2026-05-04T03:02:01.123Z\r\n"
		"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
		"Connection: keep-alive\r\n"
		"Content-Length: %03zu\r\n\r\n";
	size_t head = (size_t)snprintf(
		out, MESSAGE_SIZE, form, (unsigned long long)seed, index, (size_t)0);

	(void)snprintf(
		out, MESSAGE_SIZE, form, (unsigned long long)seed, index, MESSAGE_SIZE - head);
	memset(out + head, 'x', MESSAGE_SIZE - head);
	memcpy(out + head, "{\"note\":\"", 9);
	memcpy(out + MESSAGE_SIZE - 2, "\"}", 2);
}

/* One message in one piece; returns the bytes of its body. */
static size_t read_message(struct http1_contest *contest, const char *message)
{
	struct hapax_bytes input = {message, MESSAGE_SIZE};
	struct hx_http1_event event;
	struct hx_http1 http;
	size_t body = 0;

	hx_http1_init(&http, HX_HTTP1_SERVER, NULL);
	do {
		if (hx_http1_next(&http, input, &contest->head, &event, NULL) != HAPAX_OK)
			contest_fail("the message was refused");
		body += event.data.size;
		input = hx_bytes((const char *)input.data + event.used, input.size - event.used);
	} while (event.type != HX_HTTP1_END);
	return body;
}

static size_t count_lines(const char *message)
{
	const char *at = message;
	const char *end = message + MESSAGE_SIZE;
	size_t lines = 0;

	while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		lines++;
		at++;
	}
	return lines;
}

/* The counter runs on while others have the core, CPU time does not. */
static void print_cycles(
	const char *name, uint64_t spent, const struct contest_time *time, uint64_t operations)
{
	double share = (double)time->cpu_ns / (double)time->wall_ns;

	if (spent > 0)
		contest_print_value(
			name, (double)spent * share / (double)operations / (double)MESSAGE_SIZE);
}

static void time_memchr(struct http1_contest *contest)
{
	struct contest_time time = {0, 0};
	uint64_t lines = 0;
	uint64_t begin;

	contest_start(&time);
	begin = cycles();
	for (uint64_t i = 0; i < contest->operations; i++) {
		lines += count_lines(contest->messages[i % MESSAGES]);
		use(lines);
	}
	begin = cycles() - begin;
	contest_stop(&time);
	if (lines != 15 * contest->operations)
		contest_fail("memchr found %llu lines", (unsigned long long)lines);
	contest_print_time("memchr", &time, contest->operations);
	print_cycles("memchr_cycles_per_byte", begin, &time, contest->operations);
}

static void time_request(struct http1_contest *contest)
{
	struct contest_time time = {0, 0};
	uint64_t bytes = 0;
	uint64_t begin;

	contest_start(&time);
	begin = cycles();
	for (uint64_t i = 0; i < contest->operations; i++)
		bytes += read_message(contest, contest->messages[i % MESSAGES]);
	begin = cycles() - begin;
	contest_stop(&time);
	if (bytes != contest->head.content_length * contest->operations)
		contest_fail("a body had another size");
	contest_print_time("request", &time, contest->operations);
	print_cycles("request_cycles_per_byte", begin, &time, contest->operations);
}

/* What comes on top for a gateway: the attributes of the event. */
static void time_event(struct http1_contest *contest)
{
	struct contest_time time = {0, 0};
	const char *message = contest->messages[0];
	size_t body = read_message(contest, message);
	struct hx_cloudevent event = {.attribute_count = 0};

	contest_start(&time);
	for (uint64_t i = 0; i < contest->operations; i++) {
		if (hx_cloudevent_read_binary(
			    &event, contest->head.fields, contest->head.field_count,
			    hx_http1_known(&contest->head, HX_HTTP1_CONTENT_TYPE),
			    hx_bytes(message + MESSAGE_SIZE - body, body), &contest->scratch,
			    NULL) != HAPAX_OK)
			contest_fail("the event was refused");
		use(event.attribute_count);
	}
	contest_stop(&time);
	if (event.attribute_count != 6)
		contest_fail("the event had %zu attributes", event.attribute_count);
	contest_print_time("event", &time, contest->operations);
}

static void run_round(uint64_t seed, void *context)
{
	struct http1_contest *contest = context;

	for (unsigned i = 0; i < MESSAGES; i++)
		make_message(seed, i, contest->messages[i]);
	time_memchr(contest);
	time_request(contest);
	time_event(contest);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"operations", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	static struct http1_contest contest = {.operations = 1000000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'o': contest.operations = contest_parse_count(optarg); break;
		default: exit(64);
		}
	}
	hx_buf_init(&contest.scratch, 4096);
	contest_run("hapax", hapax_version(), run_round, &contest);
	hx_buf_done(&contest.scratch);
	return 0;
}
