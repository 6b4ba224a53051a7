/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json/json_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"

enum { NAMES_MAX = 5000, TEXT_SIZE = 56 };

/* Names one after the other, as the tokenizer keeps them. */
struct names {
	unsigned char data[NAMES_MAX * TEXT_SIZE + 16];
	size_t size;
	struct hx_json_name names[NAMES_MAX];
	size_t count;
};

static void add(struct names *names, const char *text)
{
	struct hx_json_name *name = &names->names[names->count];
	uint32_t size = (uint32_t)strlen(text);

	*name = (struct hx_json_name){
		.text = (uint32_t)names->size,
		.size = size,
		.tag = (uint32_t)names->count,
		.escaped = strchr(text, '\\') != NULL,
	};
	memcpy(names->data + names->size, text, size);
	names->size += size;
	name->prefix = hx_json_string_prefix_slow(hx_json_name_string(names->data, name));
	name->ordered = names->count == 0 ||
		(name[-1].ordered && hx_json_name_compare(names->data, name - 1, name) < 0);
	names->count++;
}

static struct names *new_names(void)
{
	struct names *names = calloc(1, sizeof(*names));

	assert_non_null(names);
	return names;
}

static void assert_sorted(struct names *names)
{
	for (size_t i = 1; i < names->count; i++)
		assert_true(
			hx_json_string_compare(
				hx_json_name_string(names->data, &names->names[i - 1]),
				hx_json_name_string(names->data, &names->names[i])) < 0);
}

static void names_in_order_stay(void **state)
{
	struct names *names = new_names();

	(void)state;
	add(names, "a");
	add(names, "ab");
	add(names, "b");
	assert_null(hx_json_names_sort(names->data, names->names, names->count));
	assert_true(names->names[2].ordered);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(names->names[i].tag, i);
	free(names);
}

static void equal_names_are_found_wherever_they_stand(void **state)
{
	(void)state;
	for (size_t count = 2; count <= 60; count++) {
		for (size_t first = 0; first + 1 < count; first++) {
			struct names *names = new_names();
			size_t second = first + 1 + (first * 7) % (count - first - 1);
			const struct hx_json_name *twice;

			for (size_t i = 0; i < count; i++) {
				char text[TEXT_SIZE];

				(void)snprintf(
					text, sizeof(text), "n%zu",
					(i == second ? first : i) * 7919 % 1000);
				add(names, text);
			}
			twice = hx_json_names_sort(names->data, names->names, names->count);
			assert_non_null(twice);
			assert_int_equal(twice->tag, second); /* the later one */
			free(names);
		}
	}
}

static void escaped_names_equal_plain_ones(void **state)
{
	struct names *names = new_names();

	(void)state;
	add(names, "b");
	add(names, "\\u0061");
	add(names, "a");
	assert_non_null(hx_json_names_sort(names->data, names->names, names->count));
	free(names);
}

/* Small and large objects are sorted in two ways; both must be right. */
static void any_order_any_count(void **state)
{
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 5);
	for (int round = 0; round < 300; round++) {
		struct names *names = new_names();
		size_t count = 1 + hx_prng_below(&prng, round % 3 == 0 ? 1500 : 40);
		uint64_t step = 1 + 2 * hx_prng_below(&prng, 5000);

		for (size_t i = 0; i < count; i++) {
			char text[TEXT_SIZE];

			/* Distinct: an odd step walks through all of 2^16. */
			(void)snprintf(
				text, sizeof(text), "prefix_%04llx",
				(unsigned long long)(i * step % 65536));
			add(names, text);
		}
		assert_null(hx_json_names_sort(names->data, names->names, names->count));
		assert_sorted(names);
		free(names);
	}
}

/* A name of a few characters, many of which are alike, in one of their spellings. */
static void spell(struct hx_prng *prng, char *text, size_t size)
{
	static const char *const spellings[][2] = {
		{"a", "\\u0061"},
		{"\\u0000", "\\u0000"},
		{"\xc3\xa9", "\\u00e9"},
		{"z", "\\u007a"},
		{"\xe2\x82\xac", "\\u20AC"},
		{"\xf0\x9f\x98\x80", "\\ud83d\\ude00"},
	};
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = hx_prng_below(prng, 14); i > 0 && at + 13 < size; i--) {
		size_t which = hx_prng_below(prng, 3) == 0 ? hx_prng_below(prng, 6) : 0;

		at += (size_t)snprintf(
			text + at, size - at, "%s", spellings[which][hx_prng_below(prng, 3) == 0]);
	}
}

static struct hx_json_string string_of(const struct names *names, size_t i)
{
	return hx_json_name_string(names->data, &names->names[i]);
}

/* As one by one, with escapes across pieces, also when some were sorted before. */
static void any_spelling(void **state)
{
	struct hx_prng prng;

	(void)state;
	hx_prng_seed(&prng, 6);
	for (int round = 0; round < 2000; round++) {
		struct names *names = new_names();
		size_t count = 2 + hx_prng_below(&prng, round % 50 == 0 ? 200 : 20);
		const struct hx_json_name *twice = NULL;
		bool is_twice = false;

		for (size_t i = 0; i < count && twice == NULL; i++) {
			char text[TEXT_SIZE];

			spell(&prng, text, sizeof(text));
			add(names, text);
			for (size_t j = 0; j < i; j++)
				is_twice |= hx_json_string_compare(
						    string_of(names, j), string_of(names, i)) == 0;
			if (i % 7 == 6 || i + 1 == count)
				twice = hx_json_names_sort(names->data, names->names, names->count);
		}
		assert_int_equal(twice != NULL, is_twice);
		if (twice == NULL)
			assert_sorted(names);
		free(names);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_spelling),
		cmocka_unit_test(names_in_order_stay),
		cmocka_unit_test(equal_names_are_found_wherever_they_stand),
		cmocka_unit_test(escaped_names_equal_plain_ones),
		cmocka_unit_test(any_order_any_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
