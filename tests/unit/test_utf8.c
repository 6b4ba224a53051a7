/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"

/* As RFC 3629 defines it, the slow way. */
static size_t encode(uint32_t code, unsigned char out[4])
{
	if (code < 0x80) {
		out[0] = (unsigned char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (unsigned char)(0xc0 | code >> 6);
		out[1] = (unsigned char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (unsigned char)(0xe0 | code >> 12);
		out[1] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (unsigned char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (unsigned char)(0xf0 | code >> 18);
	out[1] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (unsigned char)(0x80 | (code & 0x3f));
	return 4;
}

static void every_code_point(void **state)
{
	(void)state;
	for (uint32_t code = 0; code < 0x120000; code++) {
		unsigned char bytes[4];
		size_t size = encode(code, bytes);
		bool valid = code < 0x110000 && (code < 0xd800 || code > 0xdfff);
		uint32_t found = UINT32_MAX;

		assert_int_equal(hx_utf8_size(hx_bytes(bytes, size), &found), valid ? size : 0);
		if (!valid)
			continue;
		assert_int_equal(found, code);
		/* Cut, it is none. */
		for (size_t cut = 0; cut < size; cut++)
			assert_int_equal(hx_utf8_size(hx_bytes(bytes, cut), &found), 0);
	}
}

static void every_pair_of_bytes(void **state)
{
	(void)state;
	for (unsigned first = 0; first < 256; first++) {
		for (unsigned second = 0; second < 256; second++) {
			unsigned char bytes[2] = {(unsigned char)first, (unsigned char)second};
			bool both_ascii = first < 0x80 && second < 0x80;
			bool one = first >= 0xc2 && first < 0xe0 && (second & 0xc0) == 0x80;

			assert_int_equal(hx_utf8_is_valid(hx_bytes(bytes, 2)), both_ascii || one);
		}
	}
}

static void longer_forms_are_refused(void **state)
{
	(void)state;
	assert_false(hx_utf8_is_valid(HX_BYTES_LIT("\xc0\x80")));
	assert_false(hx_utf8_is_valid(HX_BYTES_LIT("\xe0\x9f\xbf")));
	assert_false(hx_utf8_is_valid(HX_BYTES_LIT("\xf0\x8f\xbf\xbf")));
	assert_false(hx_utf8_is_valid(HX_BYTES_LIT("\xf8\x88\x80\x80\x80")));
}

static void empty_text_is_valid(void **state)
{
	uint32_t code;

	(void)state;
	assert_true(hx_utf8_is_valid(hx_bytes(NULL, 0)));
	assert_int_equal(hx_utf8_size(hx_bytes(NULL, 0), &code), 0);
}

static void controls_are_c0_del_and_c1(void **state)
{
	(void)state;
	for (uint32_t code = 0; code < 0x300; code++) {
		bool control = code < 0x20 || code == 0x7f || (code >= 0x80 && code <= 0x9f);

		assert_int_equal(hx_utf8_is_control(code), control);
	}
}

/* Each byte at each place, among bytes at both ends of what is printable. */
static void eight_bytes_are_as_each_of_them(void **state)
{
	static const unsigned char around[] = {' ', '~', 'a'};

	(void)state;
	for (size_t k = 0; k < sizeof(around); k++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			for (size_t place = 0; place < 8; place++) {
				unsigned char text[8];

				memset(text, around[k], sizeof(text));
				text[place] = (unsigned char)byte;
				assert_int_equal(
					hx_ascii_is_printable8(text), byte >= ' ' && byte <= '~');
				assert_true(hx_ascii_has8(text, (unsigned char)byte));
				assert_int_equal(hx_ascii_has8(text, '%'), byte == '%');
				assert_int_equal(hx_ascii_has8(text, 0), byte == 0);
			}
		}
	}
}

/* Bounds of what shows nothing or reorders what is around it; texts of people are none of it. */
static void hidden_is_what_cannot_be_seen(void **state)
{
	static const uint32_t hidden[] = {0xad,   0x61c,  0x200b,  0x200f,  0x2028,
					  0x202a, 0x202e, 0x2060,  0x2066,  0x2069,
					  0x206f, 0xfeff, 0xe0000, 0xe0001, 0xe0fff};
	static const uint32_t shown[] = {' ',     'a',     0xac,    0xae,    0xfc,   0x200a,
					 0x2010,  0x2027,  0x202f,  0x205f,  0x2070, 0x6f22,
					 0x1f600, 0xdffff, 0xe1000, 0x10ffff};

	(void)state;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		assert_true(hx_utf8_is_hidden(hidden[i]));
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		assert_false(hx_utf8_is_hidden(shown[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point),
		cmocka_unit_test(every_pair_of_bytes),
		cmocka_unit_test(longer_forms_are_refused),
		cmocka_unit_test(empty_text_is_valid),
		cmocka_unit_test(controls_are_c0_del_and_c1),
		cmocka_unit_test(hidden_is_what_cannot_be_seen),
		cmocka_unit_test(eight_bytes_are_as_each_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
