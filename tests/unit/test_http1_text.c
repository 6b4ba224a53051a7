/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of HTTP, against the words of the RFCs.
 */
#include "wire/http1/http1_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/bytes.h"

static bool is_alphanumeric(unsigned byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= 'a' && byte <= 'z');
}

static bool is_one_of(unsigned byte, const char *text)
{
	return byte != 0 && strchr(text, (int)byte) != NULL;
}

static void classes_are_those_of_the_standards(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		bool visible = byte > 0x20 && byte < 0x7f;

		assert_int_equal(
			hx_http1_is((unsigned char)byte, HX_HTTP1_TOKEN),
			is_alphanumeric(byte) || is_one_of(byte, "!#$%&'*+-.^_`|~"));
		assert_int_equal(
			hx_http1_is((unsigned char)byte, HX_HTTP1_TARGET),
			visible && !is_one_of(byte, "\"#<>\\"));
		assert_int_equal(
			hx_http1_is((unsigned char)byte, HX_HTTP1_VALUE),
			visible || byte == ' ' || byte == '\t' || byte >= 0x80);
		assert_int_equal(
			hx_http1_is((unsigned char)byte, HX_HTTP1_REGNAME),
			is_alphanumeric(byte) || is_one_of(byte, "-._~!$&'()*+,;=%"));
	}
}

static unsigned lower(unsigned byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte;
}

/* Every pair of bytes, at every place of texts shorter and longer than a word. */
static void only_the_case_of_letters_does_not_matter(void **state)
{
	static const size_t sizes[] = {1, 7, 8, 9, 17};

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		size_t size = sizes[s];

		for (unsigned pair = 0; pair < 65536; pair++) {
			unsigned char a[17];
			unsigned char b[17];
			size_t at = pair % size;

			memset(a, 'x', sizeof(a));
			memset(b, 'X', sizeof(b));
			a[at] = (unsigned char)(pair >> 8);
			b[at] = (unsigned char)pair;
			assert_int_equal(
				hx_http1_text_equal(hx_bytes(a, size), hx_bytes(b, size)),
				lower(pair >> 8) == lower(pair & 0xff));
		}
	}
	assert_false(hx_http1_text_equal(HX_BYTES_LIT("a"), HX_BYTES_LIT("ab")));
	assert_true(hx_http1_text_equal(hx_bytes(NULL, 0), HX_BYTES_LIT("")));
}

/* Every byte at every place of a text in memory of just its size. */
static void values_end_at_the_first_byte_that_is_none(void **state)
{
	(void)state;
	for (size_t size = 1; size <= 40; size++) {
		unsigned char *text = malloc(size);

		assert_non_null(text);
		for (unsigned byte = 0; byte < 256; byte++) {
			size_t at = byte % size;
			bool good = hx_http1_is((unsigned char)byte, HX_HTTP1_VALUE);

			memset(text, 'v', size);
			text[at] = (unsigned char)byte;
			assert_ptr_equal(
				hx_http1_skip_value(text, text + size), text + (good ? size : at));
		}
		free(text);
	}
}

static void lists_have_elements(void **state)
{
	static const struct {
		const char *list;
		const char *elements[3];
	} cases[] = {
		{"", {NULL}},        {" , ,\t,", {NULL}},           {"a", {"a"}},
		{"a,b", {"a", "b"}}, {" a b ,, c\t", {"a b", "c"}}, {",a,", {"a"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_bytes list = hapax_bytes_from_text(cases[i].list);
		struct hapax_bytes element;
		size_t count = 0;

		while (hx_http1_list_next(&list, &element)) {
			assert_non_null(cases[i].elements[count]);
			assert_true(hx_bytes_equal(
				element, hapax_bytes_from_text(cases[i].elements[count])));
			count++;
		}
		assert_null(cases[i].elements[count]);
	}
}

static void tokens_have_at_least_one_byte(void **state)
{
	(void)state;
	assert_true(hx_http1_is_token(HX_BYTES_LIT("a-b")));
	assert_false(hx_http1_is_token(HX_BYTES_LIT("")));
	assert_false(hx_http1_is_token(HX_BYTES_LIT("a b")));
	assert_false(hx_http1_is_token(HX_BYTES_LIT("a:")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_are_those_of_the_standards),
		cmocka_unit_test(only_the_case_of_letters_does_not_matter),
		cmocka_unit_test(values_end_at_the_first_byte_that_is_none),
		cmocka_unit_test(lists_have_elements),
		cmocka_unit_test(tokens_have_at_least_one_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
