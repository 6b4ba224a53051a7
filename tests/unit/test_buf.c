/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"

static void appends_and_grows(void **state)
{
	struct hapax_buf buf;
	unsigned char expected[1000];

	(void)state;
	hx_buf_init(&buf, 1000);
	assert_int_equal(hapax_buf_bytes(&buf).size, 0);
	for (size_t i = 0; i < 1000; i++) {
		expected[i] = (unsigned char)i;
		assert_int_equal(hx_buf_append_byte(&buf, (unsigned char)i), HAPAX_OK);
	}
	assert_int_equal(buf.size, 1000);
	assert_memory_equal(buf.data, expected, 1000);
	hx_buf_done(&buf);
	assert_null(buf.data);
	assert_int_equal(buf.size_max, 1000);
}

static void refuses_above_the_maximum(void **state)
{
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 8);
	assert_int_equal(hx_buf_append(&buf, "12345", 5), HAPAX_OK);
	assert_int_equal(hx_buf_append(&buf, "6789", 4), HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 5);
	assert_int_equal(hx_buf_reserve(&buf, SIZE_MAX), HAPAX_ERR_LIMIT);
	assert_int_equal(hx_buf_append(&buf, "678", 3), HAPAX_OK);
	assert_int_equal(hx_buf_append_byte(&buf, '9'), HAPAX_ERR_LIMIT);
	assert_int_equal(hx_buf_append(&buf, NULL, 0), HAPAX_OK);
	assert_memory_equal(buf.data, "12345678", 8);
	assert_true(buf.capacity <= 8);
	hx_buf_done(&buf);
}

static void of_size_zero_takes_nothing(void **state)
{
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 0);
	assert_int_equal(hx_buf_append(&buf, NULL, 0), HAPAX_OK);
	assert_int_equal(hx_buf_printf(&buf, "%s", ""), HAPAX_OK);
	assert_int_equal(hx_buf_append_byte(&buf, 1), HAPAX_ERR_LIMIT);
	assert_int_equal(hapax_buf_bytes(&buf).size, 0);
	hx_buf_done(&buf);
}

static void without_a_maximum_in_reach(void **state)
{
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, SIZE_MAX);
	assert_int_equal(hx_buf_append(&buf, "x", 1), HAPAX_OK);
	assert_int_equal(hx_buf_reserve(&buf, SIZE_MAX), HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 1);
	hx_buf_done(&buf);
}

static void clear_keeps_the_memory(void **state)
{
	struct hapax_buf buf;
	uint64_t count;

	(void)state;
	hx_buf_init(&buf, 4096);
	assert_int_equal(hx_buf_reserve(&buf, 4096), HAPAX_OK);
	count = hx_alloc_count();
	for (int round = 0; round < 3; round++) {
		hx_buf_clear(&buf);
		assert_int_equal(buf.size, 0);
		for (int i = 0; i < 1024; i++)
			assert_int_equal(hx_buf_append(&buf, "abcd", 4), HAPAX_OK);
	}
	assert_int_equal(hx_alloc_count(), count);
	hx_buf_done(&buf);
}

static void numbers_are_little_endian(void **state)
{
	static const unsigned char expected[] = {0x02, 0x01, 0x06, 0x05, 0x04, 0x03};
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, sizeof(expected));
	assert_int_equal(hx_buf_append_u16(&buf, 0x0102), HAPAX_OK);
	assert_int_equal(hx_buf_append_u32(&buf, 0x03040506), HAPAX_OK);
	assert_int_equal(buf.size, sizeof(expected));
	assert_memory_equal(buf.data, expected, sizeof(expected));
	/* A number is appended whole or not at all. */
	buf.size -= 1;
	assert_int_equal(hx_buf_append_u16(&buf, 1), HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, sizeof(expected) - 1);
	hx_buf_done(&buf);
}

static void prints(void **state)
{
	struct hapax_buf buf;
	char text[1000];

	(void)state;
	hx_buf_init(&buf, 1006);
	assert_int_equal(hx_buf_printf(&buf, "%d %s;", 42, "x"), HAPAX_OK);
	assert_int_equal(buf.size, 5);
	assert_memory_equal(buf.data, "42 x;", 5);

	/* Longer than what is formatted aside, and no byte is left for a NUL. */
	memset(text, 'y', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(hx_buf_printf(&buf, "%s%d", text, 77), HAPAX_OK);
	assert_int_equal(buf.size, 1006);
	assert_memory_equal(buf.data + 5, text, 999);
	assert_memory_equal(buf.data + 1004, "77", 2);

	assert_int_equal(hx_buf_printf(&buf, "z"), HAPAX_ERR_LIMIT);
	assert_int_equal(buf.size, 1006);
	hx_buf_done(&buf);
}

static void each_allocation_may_fail(void **state)
{
	int64_t live = hx_alloc_live();
	char text[600];

	(void)state;
	memset(text, 'y', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (uint64_t nth = 1; nth <= 3; nth++) {
		struct hapax_buf *buf;

		hx_alloc_fail_at(nth, 0);
		buf = hapax_buf_new(10000);
		assert_int_equal(buf == NULL, nth == 1);
		if (buf != NULL) {
			assert_int_equal(hx_buf_printf(buf, "%s", text), HAPAX_ERR_NO_MEMORY);
			assert_int_equal(buf->size, 0);
			assert_int_equal(hx_buf_printf(buf, "%s", text), HAPAX_OK);
			assert_int_equal(buf->size, 599);
		}
		hx_alloc_fail_at(0, 0);
		hapax_buf_free(buf);
		assert_int_equal(hx_alloc_live(), live);
	}
}

static void a_failed_growth_keeps_the_bytes(void **state)
{
	struct hapax_buf buf;

	(void)state;
	hx_buf_init(&buf, 10000);
	assert_int_equal(hx_buf_append(&buf, "kept", 4), HAPAX_OK);
	hx_alloc_fail_at(1, 1);
	assert_int_equal(hx_buf_reserve(&buf, 9000), HAPAX_ERR_NO_MEMORY);
	hx_alloc_fail_at(0, 0);
	assert_int_equal(buf.size, 4);
	assert_memory_equal(buf.data, "kept", 4);
	hx_buf_done(&buf);
}

static void public_life(void **state)
{
	struct hapax_buf *buf = hapax_buf_new(100);

	(void)state;
	assert_non_null(buf);
	assert_int_equal(hx_buf_append(buf, "a\0b", 3), HAPAX_OK);
	assert_true(hx_bytes_equal(hapax_buf_bytes(buf), HX_BYTES_LIT("a\0b")));
	hapax_buf_free(buf);
	hapax_buf_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends_and_grows),
		cmocka_unit_test(refuses_above_the_maximum),
		cmocka_unit_test(of_size_zero_takes_nothing),
		cmocka_unit_test(without_a_maximum_in_reach),
		cmocka_unit_test(clear_keeps_the_memory),
		cmocka_unit_test(numbers_are_little_endian),
		cmocka_unit_test(prints),
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(a_failed_growth_keeps_the_bytes),
		cmocka_unit_test(public_life),
	};

	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
