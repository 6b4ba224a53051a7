/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_json_name_cost.c - sorting names reads each part of an escaped name once.
 *
 * Calls are counted, not time. So json_name.c is compiled here a second time, with functions that
 * count in place of those that unescape.
 */
#define hx_json_names_sort        counted_names_sort
#define hx_json_string_piece_slow counted_piece_slow
#define hx_json_string_compare    counted_compare
/* The source itself, see above. NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "wire/json/json_name.c"
#undef hx_json_string_compare
#undef hx_json_string_piece_slow

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 2000, BEGINNING_MAX = 60, TEXT_SIZE = 6 * BEGINNING_MAX + 8 };

uint64_t hx_json_string_piece_slow(struct hx_json_string string, uint32_t *place);

static size_t pieces;

uint64_t counted_piece_slow(struct hx_json_string string, uint32_t *place)
{
	pieces++;
	return hx_json_string_piece_slow(string, place);
}

/* It unescapes both from their beginnings. */
int counted_compare(struct hx_json_string a, struct hx_json_string b)
{
	(void)a, (void)b;
	fail_msg("names are compared as strings");
	return 0;
}

/* The pieces that are unescaped for names that begin with so many escapes. */
static size_t count_pieces(size_t beginning)
{
	unsigned char *data = calloc(NAMES + 1, TEXT_SIZE);
	struct hx_json_name *names = calloc(NAMES, sizeof(*names));

	assert_true(data != NULL && names != NULL);
	for (uint32_t i = 0; i < NAMES; i++) {
		char *text = (char *)data + (size_t)i * TEXT_SIZE;
		uint32_t size = 0;

		while (size < 6 * beginning)
			size += (uint32_t)snprintf(text + size, TEXT_SIZE - size, "\\u0063");
		size += (uint32_t)snprintf(text + size, TEXT_SIZE - size, "%04u", i * 7919 % NAMES);
		names[i] = (struct hx_json_name){
			.text = i * TEXT_SIZE, .size = size, .tag = i, .escaped = true};
		names[i].prefix = hx_json_string_prefix_slow(hx_json_name_string(data, &names[i]));
	}
	pieces = 0;
	assert_null(counted_names_sort(data, names, NAMES));
	for (size_t i = 1; i < NAMES; i++)
		assert_true(
			strcmp((char *)data + names[i - 1].text, (char *)data + names[i].text) < 0);
	free(names);
	free(data);
	return pieces;
}

static void each_piece_is_unescaped_once(void **state)
{
	(void)state;
	/* The first piece is read a second time, to find where the next one begins. */
	for (size_t beginning = 0; beginning <= BEGINNING_MAX; beginning += 20) {
		size_t most = (beginning + 4) / HX_JSON_PIECE_SIZE + 2;

		assert_in_range(count_pieces(beginning), 0, most * NAMES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_piece_is_unescaped_once),
	};

	return cmocka_run_group_tests_name("json_name_cost", tests, NULL, NULL);
}
