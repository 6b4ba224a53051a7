/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64: RFC 4648's own vectors, every byte value, and texts that have no reading or
 * more than one.
 */
#include "base/buf.h"
#include "wire/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void the_vectors_of_the_standard_are_read(void **state)
{
	static const char *const texts[] = {
		"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
	unsigned char out[8];
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_true(hx_base64_decode(hapax_bytes_from_text(texts[i]), out, &size));
		assert_int_equal(size, i);
		assert_memory_equal(out, "foobar", size);
	}
}

/* Three bytes of every value, encoded here in the plainest way, decoded in place. */
static void every_byte_is_read(void **state)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	(void)state;
	for (uint32_t value = 0; value < 1 << 24; value += 65793) {
		unsigned char text[4];
		size_t size;

		for (int i = 0; i < 4; i++)
			text[i] = (unsigned char)alphabet[value >> (18 - 6 * i) & 63];
		assert_true(hx_base64_decode((struct hapax_bytes){text, 4}, text, &size));
		assert_int_equal(size, 3);
		assert_int_equal((uint32_t)text[0] << 16 | (uint32_t)text[1] << 8 | text[2], value);
	}
}

static void what_is_not_base64_has_a_place(void **state)
{
	static const struct {
		const char *text;
		size_t offset;
	} cases[] = {
		{"Z", 1},
		{"Zg", 2},
		{"Zg=", 3},
		{"Zh==", 1},
		{"Zm9=", 2},
		{"=", 1},
		{"====", 0},
		{"Z===", 1},
		{"Zm=v", 2},
		{"Zm9vZ===", 5},
		{"Zm 9", 2},
		{"Zm\n9", 2},
		{"Zm9v\nYg=", 4},
		{"Zm9v----", 4},
		{"Zm9_", 3},
		{"Zm9v=", 5},
		{"Zg==Zg==", 2},
		{"\xff"
		 "m9v",
		 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned char out[16];
		size_t offset = 99;

		assert_false(hx_base64_decode(hapax_bytes_from_text(cases[i].text), out, &offset));
		assert_int_equal(offset, cases[i].offset);
	}
}

/* What is written is read as what it was, for every rest. */
static void writes_what_it_reads(void **state)
{
	static const struct {
		const char *bytes;
		const char *text;
	} cases[] = {
		{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"},
		{"\xff\xfe\xfd", "//79"},
	};
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 16);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hx_buf_clear(&buf);
		assert_int_equal(
			hx_base64_append(&buf, hapax_bytes_from_text(cases[i].bytes)), HAPAX_OK);
		assert_int_equal(buf.size, strlen(cases[i].text));
		assert_true(buf.size == 0 || memcmp(buf.data, cases[i].text, buf.size) == 0);
	}
	hx_buf_clear(&buf);
	assert_int_equal(
		hx_base64_append(&buf, hapax_bytes_from_text("thirteen byte")), HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 0);
	hx_buf_done(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_it_reads),
		cmocka_unit_test(the_vectors_of_the_standard_are_read),
		cmocka_unit_test(every_byte_is_read),
		cmocka_unit_test(what_is_not_base64_has_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
