/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/trace_context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define SPAN   "b7ad6b7169203331"
#define PARENT "-" TRACE "-" SPAN "-"

static void what_is_a_traceparent(void **state)
{
	static const struct {
		const char *text;
		int flags; /* -1: it is none */
	} table[] = {
		{"00" PARENT "00", 0},
		{"00" PARENT "01", 1},
		{"00" PARENT "02", 2},
		{"00" PARENT "03", 3},
		{"00" PARENT "ff", 3},
		{"00" PARENT "fc", 0},
		{"01" PARENT "03", 1},
		{"cc" PARENT "01-what-comes-later", 1},
		{"fe" PARENT "01-", 1},
		{"", -1},
		{"00", -1},
		{"00" PARENT "0", -1},
		{"00" PARENT "01 ", -1},
		{" 00" PARENT "01", -1},
		{"00" PARENT "01-more", -1},
		{"01" PARENT "01more", -1},
		{"01" PARENT "0101", -1},
		{"ff" PARENT "01", -1},
		{"0" PARENT "001", -1},
		{"0x" PARENT "01", -1},
		{"00" PARENT "0x", -1},
		{"00" PARENT "0A", -1},
		{"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", -1},
		{"00-" TRACE "-B7AD6B7169203331-01", -1},
		{"00-00000000000000000000000000000000-" SPAN "-01", -1},
		{"00-" TRACE "-0000000000000000-01", -1},
		{"00_" TRACE "-" SPAN "-01", -1},
		{"00-" TRACE "_" SPAN "-01", -1},
		{"00-" TRACE "-" SPAN "_01", -1},
		{"00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01", -1},
		{"00-0af7651916cd43dd8448eb211c80319g-" SPAN "-01", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct hx_trace_context context;
		bool is_read =
			hx_trace_context_read(hapax_bytes_from_text(table[i].text), &context);

		if (is_read != (table[i].flags >= 0))
			fail_msg("'%s' is %s", table[i].text, is_read ? "taken" : "refused");
		if (is_read)
			assert_int_equal(context.flags, table[i].flags);
	}
}

static void it_is_written_as_it_was_read(void **state)
{
	static const char text[] = "00" PARENT "01";
	struct hx_trace_context context;
	char out[HX_TRACEPARENT_SIZE];

	(void)state;
	assert_true(hx_trace_context_read(hapax_bytes_from_text(text), &context));
	assert_int_equal(context.trace_id[0], 0x0a);
	assert_int_equal(context.trace_id[15], 0x9c);
	assert_int_equal(context.span_id[0], 0xb7);
	assert_int_equal(context.span_id[7], 0x31);
	hx_trace_context_write(&context, out);
	assert_memory_equal(out, text, HX_TRACEPARENT_SIZE);
}

/* Nothing is written when it is none. */
static void what_is_none_changes_nothing(void **state)
{
	struct hx_trace_context context;
	struct hx_trace_context before;

	(void)state;
	memset(&context, 0x5a, sizeof(context));
	before = context;
	assert_false(
		hx_trace_context_read(HX_BYTES_LIT("00-" TRACE "-0000000000000000-01"), &context));
	assert_memory_equal(&context, &before, sizeof(context));
}

static void what_is_a_tracestate(void **state)
{
	static const struct {
		const char *text;
		int members;
	} table[] = {
		{"", 0},
		{"rojo=00f067aa0ba902b7", 1},
		{"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", 2},
		{" a=1 ,\tb=2\t", 2},
		{"a=1,,b=2, ,", 2},
		{"fw529a3039@dt=FfAAAAUW9iAAAAAA", 1},
		{"0a-_*/@b=x y", 1},
		{"a=1 2", 1},
		{"a", -1},
		{"=1", -1},
		{"a=", -1},
		{"a= ", -1},
		{"A=1", -1},
		{"@a=1", -1},
		{"a b=1", -1},
		{"a=1=2", -1},
		{"a=\x01", -1},
		{"a=\xc3\xa4", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int members = hx_trace_context_members(hapax_bytes_from_text(table[i].text));

		if (members != table[i].members)
			fail_msg("'%s' has %d members", table[i].text, members);
	}
}

static void a_tracestate_has_bounds(void **state)
{
	char text[1024];
	size_t size = 0;

	(void)state;
	for (int i = 0; i < HX_TRACESTATE_MEMBERS_MAX; i++)
		size += (size_t)snprintf(text + size, sizeof(text) - size, "k%d=1,", i);
	assert_int_equal(hx_trace_context_members(hx_bytes(text, size)), HX_TRACESTATE_MEMBERS_MAX);
	size += (size_t)snprintf(text + size, sizeof(text) - size, "more=1");
	assert_int_equal(hx_trace_context_members(hx_bytes(text, size)), -1);
	memset(text, 'a', sizeof(text));
	text[256] = '=';
	assert_int_equal(hx_trace_context_members(hx_bytes(text, 256 + 1 + 256)), 1);
	assert_int_equal(hx_trace_context_members(hx_bytes(text, 256 + 1 + 257)), -1);
	text[257] = '=';
	text[256] = 'a';
	assert_int_equal(hx_trace_context_members(hx_bytes(text, 259)), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_a_traceparent),
		cmocka_unit_test(it_is_written_as_it_was_read),
		cmocka_unit_test(what_is_none_changes_nothing),
		cmocka_unit_test(what_is_a_tracestate),
		cmocka_unit_test(a_tracestate_has_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
