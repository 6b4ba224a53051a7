/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: what the API is sent (src/api): bodies of operations, request lines with their
 * names and queries, cursors, and what listeners say of where they were.
 *
 * The first byte chooses which. Operations that can be read are run on a store in memory,
 * and what they are answered is JSON, whatever came. A cursor that was not made here is
 * refused; one that was comes back as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "api/cursor.h"
#include "api/events.h"
#include "api/api_operation.h"
#include "api/route.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "support/virtual_clock.h"
#include "wire/percent.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { SCRATCH_MAX = 1 << 22, OUT_MAX = 1 << 26, KEYS_MAX = 2000 };

static const uint64_t cursor_key[2] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};

static void must(int condition)
{
	if (!condition)
		abort();
}

static void ignore(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	(void)count;
	(void)context;
}

static void answer(struct hx_api_batch *batch, enum hx_operation_use use)
{
	struct hx_json_reader reader;
	struct hx_json_write json;
	struct hapax_buf out;

	hx_buf_init(&out, OUT_MAX);
	hx_json_write_init(&json, &out);
	hx_json_write_begin(&json, NULL, '[');
	for (size_t i = 0; i < batch->count; i++)
		hx_api_answer_write(&json, &batch->items[i], &batch->ops[i], use, i % 2 == 0);
	hx_json_write_end(&json, ']');
	must(json.status == HAPAX_OK);
	hx_json_reader_init(&reader, OUT_MAX, NULL);
	must(hx_json_reader_read(&reader, hapax_buf_bytes(&out), NULL) == HAPAX_OK);
	hx_json_reader_done(&reader);
	hx_buf_done(&out);
}

static void run(struct hx_api_batch *batch, enum hx_operation_use use)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	static struct hx_virtual_clock clock;
	struct hapax_store *store;

	hx_virtual_clock_init(&clock, INT64_C(1700000000000));
	options.clock = hx_virtual_clock_clock(&clock);
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.keys_max = KEYS_MAX;
	must(hapax_store_open("memory:", &options, &store, NULL) == HAPAX_OK);
	hapax_store_submit(
		store, batch->ops, batch->count, (struct hapax_completion){ignore, NULL});
	answer(batch, use);
	hapax_store_close(store);
}

static void fuzz_body(struct hapax_bytes text, enum hx_operation_use use)
{
	struct hx_json_reader reader;
	struct hx_api_batch *batch = NULL;
	struct hapax_error err;

	hx_json_reader_init(&reader, SCRATCH_MAX, NULL);
	if (hx_json_reader_read(&reader, text, &err) == HAPAX_OK &&
	    hx_api_batch_read(&reader, use, NULL, &batch, &err) == HAPAX_OK) {
		for (size_t i = 0; i < batch->count; i++)
			must(batch->ops[i].key.size >= 1 && batch->ops[i].key.size <= 1024);
		run(batch, use);
		hx_api_batch_free(batch);
	}
	hx_json_reader_done(&reader);
}

static void fuzz_line(struct hapax_bytes line)
{
	struct hx_api_value values[HX_API_PARAMETERS_MAX];
	char allow[HX_API_ALLOW_SIZE];
	struct hx_api_match match;
	struct hapax_error err;
	struct hapax_buf buf;

	(void)hx_api_has(line);
	hx_api_allow(line, allow);
	must(memchr(allow, '\0', sizeof(allow)) != NULL);
	hx_api_match(HX_BYTES_LIT("GET"), line, &match);
	must(match.route == NULL || match.has_path);
	must(match.has_path == (allow[0] != '\0'));
	hx_buf_init(&buf, 1 << 20);
	must(hx_buf_reserve(&buf, line.size + 1) == HAPAX_OK);
	for (size_t i = 0; i < HX_API_NAMES_MAX && match.names[i].size > 0; i++) {
		size_t got;

		if (hx_percent_decode(match.names[i], buf.data, &got)) {
			struct hapax_buf text;
			unsigned char again[4096];
			size_t size;

			/* What is encoded is decoded to the same. */
			hx_buf_init(&text, 1 << 20);
			must(hx_percent_encode(&text, hx_bytes(buf.data, got)) == HAPAX_OK);
			if (text.size <= sizeof(again)) {
				must(hx_percent_decode(hapax_buf_bytes(&text), again, &size));
				must(size == got && memcmp(again, buf.data, got) == 0);
			}
			hx_buf_done(&text);
		}
	}
	for (size_t i = 0; i < hx_api_route_count; i++) {
		hx_buf_clear(&buf);
		(void)hx_api_query_read(
			hx_api_routes[i].parameters, match.query, &buf, values, &err);
	}
	hx_buf_done(&buf);
}

static void fuzz_cursor(struct hapax_bytes text)
{
	struct hapax_cursor cursor = {.size = 0}, again;
	struct hapax_buf out;

	must(!hx_api_cursor_read(cursor_key, 7, text, &again));
	cursor.size =
		(uint32_t)(text.size < sizeof(cursor.place) ? text.size : sizeof(cursor.place));
	memcpy(cursor.place, text.data, cursor.size);
	hx_buf_init(&out, 1 << 20);
	must(hx_api_cursor_write(cursor_key, 7, &cursor, &out) == HAPAX_OK);
	must(hx_api_cursor_read(cursor_key, 7, hapax_buf_bytes(&out), &again));
	must(again.size == cursor.size && memcmp(again.place, cursor.place, cursor.size) == 0);
	must(!hx_api_cursor_read(cursor_key, 8, hapax_buf_bytes(&out), &again));
	out.data[out.size - 1] = out.data[out.size - 1] == '0' ? '1' : '0';
	must(!hx_api_cursor_read(cursor_key, 7, hapax_buf_bytes(&out), &again));
	hx_buf_done(&out);
}

static void fuzz_listener(struct hapax_bytes text)
{
	struct hapax_error err;
	uint64_t number;
	unsigned bits;

	(void)hx_event_id_parse(text, 0xcafe, &number);
	if (hx_event_decisions_parse(text, &bits, &err) == HAPAX_OK)
		must(bits < 1U << 6);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_bytes rest;

	if (size < 2)
		return 0;
	rest = hx_bytes(data + 1, size - 1);
	switch (data[0] % 16) {
	case 13: fuzz_line(rest); break;
	case 14: fuzz_cursor(rest); break;
	case 15: fuzz_listener(rest); break;
	default: fuzz_body(rest, (enum hx_operation_use)(1 << data[0] % 8)); break;
	}
	return 0;
}
