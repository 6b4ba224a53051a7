/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: traceparent and tracestate (src/wire/trace_context.c).
 *
 * What is taken for a traceparent is written as one of version 00 that is read as the
 * same; if it was of version 00 and has no unknown flags, it is written as it came. A
 * tracestate that is taken has a bounded number of members, and stays one, of twice as
 * many, when it is joined with itself.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/trace_context.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void check_parent(struct hapax_bytes text)
{
	struct hx_trace_context context;
	struct hx_trace_context again;
	char written[HX_TRACEPARENT_SIZE];

	if (!hx_trace_context_read(text, &context))
		return;
	must(text.size >= HX_TRACEPARENT_SIZE);
	must((context.flags & ~(HX_TRACE_SAMPLED | HX_TRACE_RANDOM)) == 0);
	hx_trace_context_write(&context, written);
	must(hx_trace_context_read(hx_bytes(written, sizeof(written)), &again));
	must(memcmp(&context, &again, sizeof(context)) == 0);
	/* All but the version and the flags is as it came. */
	must(memcmp((const char *)text.data + 2, written + 2, HX_TRACEPARENT_SIZE - 4) == 0);
	if (memcmp(text.data, "00", 2) == 0)
		must(text.size == HX_TRACEPARENT_SIZE);
}

static void check_state(const unsigned char *data, size_t size)
{
	int count = hx_trace_context_members(hx_bytes(data, size));
	unsigned char *twice;
	int both;

	must(count >= -1 && count <= HX_TRACESTATE_MEMBERS_MAX);
	if (count < 0 || size > 4096)
		return;
	twice = malloc(2 * size + 1);
	must(twice != NULL);
	if (size > 0)
		memcpy(twice, data, size);
	twice[size] = ',';
	if (size > 0)
		memcpy(twice + size + 1, data, size);
	both = hx_trace_context_members(hx_bytes(twice, 2 * size + 1));
	must(both == (2 * count <= HX_TRACESTATE_MEMBERS_MAX ? 2 * count : -1));
	free(twice);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	check_parent(hx_bytes(data, size));
	check_state(data, size);
	return 0;
}
