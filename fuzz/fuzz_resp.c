/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the Redis protocol as a client reads it (src/wire/resp/resp_reply.c) and as a
 * server reads it (src/wire/resp/resp_request.c).
 *
 * The first byte chooses where the rest is cut in two: in pieces and in one the
 * verdict is the same. A walk through a message ends where its scan ended. A request
 * that is understood can be written again and is then understood the same way.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/resp/resp_reply.h"
#include "wire/resp/resp_request.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { MESSAGE_SIZE_MAX = 1 << 16 };

static void must(int condition)
{
	if (!condition)
		abort();
}

static void walk(struct hapax_bytes message)
{
	struct hx_resp_value value;
	struct hapax_bytes text;
	int64_t integer;

	must(hx_resp_next(&message, &value));
	(void)hx_resp_text(&value, &text);
	(void)hx_resp_integer(&value, &integer);
	(void)hx_resp_is_error(&value, "ERR");
	hx_resp_skip(&message, &value);
	must(message.size == 0);
}

static void try_reply(struct hapax_bytes input, size_t split)
{
	struct hx_resp_scan whole = {0};
	struct hx_resp_scan parts = {0};
	enum hx_resp_result result = hx_resp_scan(&whole, input, MESSAGE_SIZE_MAX);
	enum hx_resp_result again =
		hx_resp_scan(&parts, hx_bytes(input.data, split), MESSAGE_SIZE_MAX);

	if (again == HX_RESP_MORE)
		again = hx_resp_scan(&parts, input, MESSAGE_SIZE_MAX);
	must(again == result);
	if (result != HX_RESP_DONE)
		return;
	must(whole.size == parts.size && whole.size <= input.size);
	walk(hx_bytes(input.data, whole.size));
}

static void compare_args(
	const struct hx_resp_request *a, struct hapax_bytes a_input,
	const struct hx_resp_request *b, struct hapax_bytes b_input)
{
	must(a->count == b->count);
	for (size_t i = 0; i < a->count; i++)
		must(hx_bytes_equal(
			hx_resp_request_arg(a, a_input, i), hx_resp_request_arg(b, b_input, i)));
}

/* What was understood, written as clients write it, is understood the same way. */
static void write_again(const struct hx_resp_request *request, struct hapax_bytes input)
{
	struct hx_resp_limits limits = {0, 0, false};
	struct hx_resp_request copy;
	struct hapax_buf buf;
	size_t size = 0;

	hx_buf_init(&buf, SIZE_MAX);
	must(hx_resp_put_array(&buf, request->count) == HAPAX_OK);
	for (size_t i = 0; i < request->count; i++)
		must(hx_resp_put_bulk(&buf, hx_resp_request_arg(request, input, i)) == HAPAX_OK);
	hx_resp_request_init(&copy);
	must(hx_resp_request_read(&copy, hx_bytes(buf.data, buf.size), &limits, &size) ==
	     HX_RESP_DONE);
	must(size == buf.size);
	compare_args(request, input, &copy, hx_bytes(buf.data, buf.size));
	hx_resp_request_done(&copy);
	hx_buf_done(&buf);
}

static void try_request(struct hapax_bytes input, size_t split)
{
	struct hx_resp_limits limits = {0, 0, false};
	struct hx_resp_request whole, parts;
	size_t whole_size = 0, parts_size = 0;
	enum hx_resp_result result, again;

	hx_resp_request_init(&whole);
	hx_resp_request_init(&parts);
	result = hx_resp_request_read(&whole, input, &limits, &whole_size);
	again = hx_resp_request_read(&parts, hx_bytes(input.data, split), &limits, &parts_size);
	if (again == HX_RESP_MORE)
		again = hx_resp_request_read(&parts, input, &limits, &parts_size);
	must(again == result);
	if (result == HX_RESP_DONE) {
		must(whole_size == parts_size && whole_size <= input.size);
		compare_args(&whole, input, &parts, input);
		write_again(&whole, input);
	} else if (result == HX_RESP_BAD) {
		must(strcmp(whole.error, parts.error) == 0 && whole.error[0] != '\0');
	}
	hx_resp_request_done(&whole);
	hx_resp_request_done(&parts);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct hapax_bytes input;
	size_t split;

	if (size == 0)
		return 0;
	input = hx_bytes(data + 1, size - 1);
	split = input.size == 0 ? 0 : data[0] % (input.size + 1);
	try_reply(input, split);
	try_request(input, split);
	return 0;
}
