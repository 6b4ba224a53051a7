/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of commands, and what COMMAND tells of it.
 */
#include "resp/resp_command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "resp/commands.h"
#include "support/resp_case.h"
#include "wire/resp/resp_reply.h"

static struct resp_case c;

static int begin(void **state)
{
	(void)state;
	return resp_case_begin(&c, NULL) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	resp_case_end(&c);
	return 0;
}

static void check_row(const struct hx_resp_command *row)
{
	for (const char *at = row->name; *at != '\0'; at++)
		assert_false(isupper((unsigned char)*at));
	assert_int_not_equal(row->arity, 0);
	assert_true(row->plan != NULL || (row->flags & HX_RESP_PARENT) != 0);
	assert_int_equal(row->plan == hx_resp_plan_lookup, row->finish != NULL);
	assert_true(strlen(row->summary) > 0 && strlen(row->since) > 0 && strlen(row->group) > 0);
	/* Keys come behind the name, and within what is always there. */
	if (row->last_key != 0)
		assert_true((row->flags & (HX_RESP_READ | HX_RESP_WRITE)) != 0);
	/* One that reads and writes would be neither to those who route by it. */
	assert_true(
		(row->flags & (HX_RESP_READ | HX_RESP_WRITE)) != (HX_RESP_READ | HX_RESP_WRITE));
}

static void rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < hx_resp_command_count(); i++) {
		const struct hx_resp_command *row = hx_resp_command_at(i);
		const struct hx_resp_command *sub = NULL;
		size_t size = strlen(row->name);

		check_row(row);
		assert_int_equal(
			hx_resp_subcommand_next(row, NULL) != NULL,
			(row->flags & HX_RESP_PARENT) != 0);
		/* Names rise: they are looked for by halves. */
		if (i > 0)
			assert_true(strcmp(hx_resp_command_at(i - 1)->name, row->name) < 0);
		while ((sub = hx_resp_subcommand_next(row, sub)) != NULL) {
			check_row(sub);
			assert_memory_equal(sub->name, row->name, size);
			assert_int_equal(sub->name[size], '|');
			assert_ptr_equal(
				hx_resp_subcommand_find(
					row, hapax_bytes_from_text(sub->name + size + 1)),
				sub);
		}
	}
	assert_null(hx_resp_command_at(hx_resp_command_count()));
}

static void names(void **state)
{
	char name[64];

	(void)state;
	for (size_t i = 0; i < hx_resp_command_count(); i++) {
		const struct hx_resp_command *row = hx_resp_command_at(i);
		size_t size = strlen(row->name);

		for (size_t at = 0; at <= size; at++)
			name[at] =
				(char)(at % 2 == 0 ? toupper((unsigned char)row->name[at])
						   : row->name[at]);
		assert_ptr_equal(hx_resp_command_find(hx_bytes(name, size)), row);
		assert_null(hx_resp_command_find(hx_bytes(name, size + 1)));
		name[0] = '\0';
		assert_null(hx_resp_command_find(hx_bytes(name, size)));
	}
	assert_null(hx_resp_command_find(hx_bytes(NULL, 0)));
	assert_null(hx_resp_command_find(HX_BYTES_LIT("zzz")));
}

static struct hx_resp_value next(struct hapax_bytes *rest)
{
	struct hx_resp_value value;

	assert_true(hx_resp_next(rest, &value));
	return value;
}

/* Every command that is offered is there, once, in the order of the names, with its summary. */
static void docs(void **state)
{
	struct hapax_bytes rest;
	struct hx_resp_value value;

	(void)state;
	(void)resp_case_ask(&c, "HELLO 3\r\n");
	rest = hapax_bytes_from_text(resp_case_ask(&c, "COMMAND DOCS\r\n"));
	assert_int_equal(next(&rest).type, HX_RESP_MAP);
	for (size_t i = 0; i < hx_resp_command_count(); i++) {
		const struct hx_resp_command *row = hx_resp_command_at(i);

		if (!hx_resp_command_is_offered(row, &c.service))
			continue;
		value = next(&rest);
		assert_true(hx_bytes_equal(value.text, hapax_bytes_from_text(row->name)));
		value = next(&rest);
		assert_int_equal(value.type, HX_RESP_MAP);
		for (int64_t pair = 0; pair < value.integer / 2; pair++) {
			struct hx_resp_value word = next(&rest);
			struct hx_resp_value what = next(&rest);

			if (hx_bytes_equal(word.text, HX_BYTES_LIT("summary")))
				assert_true(hx_bytes_equal(
					what.text, hapax_bytes_from_text(row->summary)));
			hx_resp_skip(&rest, &what);
		}
	}
	assert_false(hx_resp_next(&rest, &value));
}

/* COMMAND, COMMAND COUNT, COMMAND LIST and COMMAND INFO are about the same commands. */
static void counts(void **state)
{
	char expected[64];
	size_t offered = 0;

	(void)state;
	for (size_t i = 0; i < hx_resp_command_count(); i++)
		offered += hx_resp_command_is_offered(hx_resp_command_at(i), &c.service);
	/* Those for test suites are not for everybody. */
	assert_int_equal(offered, hx_resp_command_count() - 2);
	(void)snprintf(expected, sizeof(expected), ":%zu\r\n", offered);
	assert_string_equal(resp_case_ask(&c, "COMMAND COUNT\r\n"), expected);
	(void)snprintf(expected, sizeof(expected), "*%zu\r\n", offered);
	assert_memory_equal(resp_case_ask(&c, "COMMAND\r\n"), expected, strlen(expected));
	assert_memory_equal(resp_case_ask(&c, "COMMAND LIST\r\n"), expected, strlen(expected));
	assert_string_equal(
		resp_case_ask(&c, "COMMAND INFO get nosuch client|id\r\n"),
		"*3\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n"
		"*0\r\n*0\r\n*0\r\n$-1\r\n*10\r\n$9\r\nclient|id\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n"
		"*0\r\n*0\r\n*0\r\n");
}

/* What stands in the table is what is asked for: one argument less is one too few. */
static void arities(void **state)
{
	static char line[256];

	(void)state;
	for (size_t i = 0; i < hx_resp_command_count(); i++) {
		const struct hx_resp_command *row = hx_resp_command_at(i);
		int least = row->arity < 0 ? -row->arity : row->arity;
		char expected[128];
		size_t size = 0;

		if (!hx_resp_command_is_offered(row, &c.service) || least < 2)
			continue;
		size += (size_t)snprintf(line, sizeof(line), "%s", row->name);
		for (int word = 2; word < least; word++)
			size += (size_t)snprintf(line + size, sizeof(line) - size, " x");
		(void)snprintf(line + size, sizeof(line) - size, "\r\n");
		(void)snprintf(
			expected, sizeof(expected),
			"-ERR wrong number of arguments for '%s' command\r\n", row->name);
		assert_string_equal(resp_case_ask(&c, line), expected);
	}
}

static int begin_with_limits(void **state)
{
	(void)state;
	return resp_case_begin(
		       &c,
		       &(struct hx_resp_service_options){
			       .value_size_max = 4 * 1024 * 1024,
			       .bytes_max = 5000,
			       .evict = HAPAX_EVICT_LRU})
		? 0
		: -1;
}

/* Who asks for a setting relies on it: that nothing is evicted, above all. */
static void settings(void **state)
{
	(void)state;
	assert_string_equal(
		resp_case_ask(&c, "CONFIG GET maxmemory* proto-max-bulk-len\r\n"),
		"*6\r\n$9\r\nmaxmemory\r\n$4\r\n5000\r\n$16\r\nmaxmemory-policy\r\n"
		"$11\r\nallkeys-lru\r\n$18\r\nproto-max-bulk-len\r\n$7\r\n4194304\r\n");
	assert_non_null(
		strstr(resp_case_ask(&c, "INFO memory\r\n"), "maxmemory_policy:allkeys-lru"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(names),
		cmocka_unit_test_setup_teardown(docs, begin, end),
		cmocka_unit_test_setup_teardown(counts, begin, end),
		cmocka_unit_test_setup_teardown(arities, begin, end),
		cmocka_unit_test_setup_teardown(settings, begin_with_limits, end),
	};

	return cmocka_run_group_tests_name("resp_command", tests, NULL, NULL);
}
